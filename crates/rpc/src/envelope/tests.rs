//! Encoded messages are decoded to the same messages, and arbitrary bytes cause only errors.

use proptest::prelude::*;

use super::*;

const ID: CallId = CallId { slot: 0x0102, turn: 0x0304 };

/// The bytes follow from the layout in the documentation of this module.
#[test]
fn messages_have_the_documented_bytes() {
    let hello = encode(&Header::Hello { min: 1, max: 3 }, b"ignored");
    assert_eq!(hello, *b"\x00\x00\x01\x03ARPC");
    let welcome = Header::Welcome { version: 1, calls: 256, lanes: 2 };
    let table = encode_methods(["a", "bc"].into_iter()).expect("names");
    assert_eq!(table, *b"\x00\x00\x01a\x00\x01\x02bc");
    assert_eq!(encode(&welcome, &table)[..9], *b"\x01\x00\x01\x00\x01\x00\x00\x02\x00");
    let request = Header::Request {
        id: ID,
        method: 5,
        remaining_us: Some(0x0a0b),
        place: Some(LanePlace { lane: 7, sequence: 8 }),
        grant: Some(Grant { region: 9, capacity: 10, length: None, whole: false }),
    };
    let bytes = encode(&request, b"hi");
    assert_eq!(bytes[..12], [0x13, 3, 0, 5, 1, 2, 3, 4, 0, 0, 0xa, 0xb]);
    assert_eq!(bytes[12..18], [0, 7, 0, 0, 0, 8]);
    assert_eq!(bytes[18..26], 9u64.to_be_bytes());
    assert_eq!(bytes[34..], *b"\xff\xff\xff\xff\xff\xff\xff\xffhi");
    assert_eq!(decode(&bytes), Ok((request, 42)));
    let response = Header::Response { id: ID, status: Status::Expired, grant: None };
    assert_eq!(encode(&response, b"x"), [0x14, 0, 0, 3, 1, 2, 3, 4, b'x']);
    let advance = Header::Advance { id: ID, position: 1, progress: Progress::End };
    assert_eq!(encode(&advance, b""), [0x16, 8, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 1]);
}

#[test]
fn messages_that_no_encoder_writes_are_rejected() {
    let request = |flags: u8, rest: &[u8]| {
        [&[VERSION << 4 | REQUEST, flags, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0], rest].concat()
    };
    assert!(decode(&request(0, b"")).is_ok());
    assert_eq!(decode(&request(0, b"")[..11]), Err(Malformed::Truncated));
    assert_eq!(decode(&request(16, b"")), Err(Malformed::Flags(16)));
    assert_eq!(decode(&request(FLAG_WHOLE, b"")), Err(Malformed::Flags(FLAG_WHOLE)));
    assert_eq!(decode(&request(FLAG_GRANT, &[0; 23])), Err(Malformed::Truncated));
    assert_eq!(decode(&request(FLAG_GRANT, &[0; 24])), Err(Malformed::Field("size of a region")));
    assert_eq!(decode(&[0x23, 0]), Err(Malformed::Version(2)));
    assert_eq!(decode(&[0x1f, 0]), Err(Malformed::Kind(15)));
    assert_eq!(decode(&[0x15, 0, 0, 0, 0, 0, 0, 0, 9]), Err(Malformed::Trailing(1)));
    assert_eq!(decode(&[0x14, 0, 0, 12, 0, 0, 0, 0]), Err(Malformed::Field("status")));
    assert_eq!(decode(b"\x00\x00\x01\x01ARPX").map(|_| ()), {
        Err(Malformed::Field("identification of the protocol"))
    });
    assert_eq!(decode_methods(b"\x00\x00\x02a"), Err(Malformed::Truncated));
    assert_eq!(decode_methods(b"\x00\x00\x00"), Err(Malformed::Field("name of a method")));
    assert!(encode_methods([""].into_iter()).is_none());
    assert!(encode_methods([&*"x".repeat(256)].into_iter()).is_none());
}

#[test]
fn status_numbers_are_their_places() {
    for (number, status) in Status::ALL.into_iter().enumerate() {
        assert_eq!(status as usize, number);
    }
}

proptest! {
    /// Every accepted message is encoded to the same bytes.
    #[test]
    fn accepted_messages_are_canonical(bytes in arbitrary_message()) {
        if let Ok((header, payload)) = decode(&bytes) {
            prop_assert_eq!(encode(&header, &bytes[payload..]), bytes);
        }
    }

    #[test]
    fn tables_of_methods_are_canonical(bytes in prop::collection::vec(0u8..4, 0..40)) {
        if let Ok(methods) = decode_methods(&bytes) {
            let numbered = methods.iter().enumerate().all(|(n, (number, _))| n == *number as usize);
            let again = encode_methods(methods.iter().map(|(_, name)| *name)).expect("names");
            prop_assert_eq!(again == bytes, numbered);
        }
    }

    #[test]
    fn failures_round_trip(code: u32, text: String) {
        prop_assert_eq!(decode_failure(&encode_failure(code, &text)), Ok((code, text)));
    }
}

/// Returns messages of which most have valid first bytes.
fn arbitrary_message() -> impl Strategy<Value = Vec<u8>> {
    let tail =
        prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(255), any::<u8>()], 0..60);
    (0u8..2, 0u8..9, 0u8..32, 0u8..2, 0u8..13, tail).prop_map(
        |(version, kind, flags, high, low, tail)| {
            let magic = if kind == HELLO { &MAGIC[..] } else { &[] };
            [&[version << 4 | kind, flags, high, low], magic, &tail].concat()
        },
    )
}
