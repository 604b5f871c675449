//! Arbitrary bytes as a packet: no panic, and whatever is decoded is legal and encodes to the bytes
//! it came from, with and without a checksum.
#![no_main]

use apus_wire::{MAX_HEADER_BYTES, decode, encode, open, seal};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let decoded = decode(bytes);
    if let Ok((header, length)) = decoded {
        let mut out = [0; MAX_HEADER_BYTES];
        assert_eq!(encode(&header, &mut out), Ok(length));
        assert_eq!(out[..length], bytes[..length]);

        // The checksum is what a fuzzer cannot guess: seal what it wrote and open that.
        let rest = &bytes[length..];
        if let Some(payload) = rest.get(..header.payload_len()) {
            let mut datagram = vec![0; header.sealed_len()];
            assert_eq!(seal(&header, payload, &mut datagram), Ok(datagram.len()));
            assert_eq!(open(&datagram), Ok((header, payload)));
        }
    }
    if let Ok((header, _)) = open(bytes) {
        assert_eq!(decoded.map(|(header, _)| header), Ok(header));
    }
});
