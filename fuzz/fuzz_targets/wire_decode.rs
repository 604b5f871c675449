//! Arbitrary bytes as a packet, with and without a checksum: no panic. A decoded packet is legal and encodes to the
//! bytes from which it was decoded. If a switch writes into it, it is still a packet.
#![no_main]

use apus_wire::{
    Body, Extension, Header, Hop, MAX_EXTENSION_BYTES, MAX_HEADER_BYTES, Signal, SwitchView,
    decode_extended, encode_extended, open, seal,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let decoded = decode_extended(bytes);
    if let Ok(decoded) = decoded {
        let (header, length) = (decoded.header, decoded.length);
        let mut out = [0; MAX_HEADER_BYTES + MAX_EXTENSION_BYTES];
        assert_eq!(encode_extended(&header, &decoded.extension, &mut out), Ok(length));
        assert_eq!(out[..length], bytes[..length]);

        // A fuzzer cannot guess the checksum, so the target computes it over the fuzzer's bytes and decodes the result.
        let rest = &bytes[length..];
        if let Some(payload) = rest.get(..header.payload_len()) {
            let mut datagram = vec![0; header.sealed_len()];
            assert_eq!(seal(&header, payload, &mut datagram), Ok(datagram.len()));
            assert_eq!(open(&datagram), Ok((header, payload)));
        }
    }
    if let Ok((header, _)) = open(bytes) {
        assert_eq!(decoded.map(|decoded| decoded.header), Ok(header));
    }
    let mut passing = bytes.to_vec();
    if let Some(mut view) = SwitchView::new(&mut passing) {
        let header = *view.header();
        if let Some(signal) = view.signal(1_000, 6, 9) {
            let (made, _) = open(&signal).expect("a datagram");
            let body = Body::Signal(Signal { queue: 1_000, link_rate: 6, sent: 9 });
            assert_eq!(made, Header { body, ..header });
        }
        view.writable().fill(0xa5);
        view.note_hop(&Hop::default(), 7);
        assert_ne!(view.extension(), Extension::None);
        assert_eq!(decode_extended(&passing).map(|decoded| decoded.header), Ok(header));
    }
});
