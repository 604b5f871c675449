//! Arbitrary bytes as a message of the RPC protocol: no panic, and every accepted message is encoded to the same bytes.
#![no_main]

use apus_rpc::envelope::{Header, decode, decode_failure, decode_methods, encode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok((header, payload)) = decode(bytes) {
        let payload = &bytes[payload..];
        assert_eq!(encode(&header, payload), bytes);
        if let Header::Welcome { .. } = header {
            let _ = decode_methods(payload);
        }
    }
    let _ = decode_failure(bytes);
});
