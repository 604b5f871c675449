//! Congestion extensions: bytes written by hand from the layout in the crate's documentation,
//! encoding and decoding, and the operations of a switch without the keys of its session.

use apus_units::{FlowId, OpId, PacketNumber, Span};
use apus_wire::{
    Ack, Body, DecodeError, EncodeError, Extension, HOP_BYTES, Header, Hop, Hops, Illegal,
    MAX_EXTENSION_BYTES, MAX_HEADER_BYTES, MAX_HOPS, MAX_OWN_BYTES, OwnFields, RegionKey,
    SIGNAL_BYTES, Segment, SegmentKind, Signal, SwitchView, authenticated_from, decode,
    decode_extended, encode_extended, open, seal,
};
use proptest::prelude::*;

fn with_body(body: Body) -> Header {
    Header { flow: FlowId::new(0x0102_0304), seq: PacketNumber::new(0x1122_3344_5566_7788), body }
}

fn message() -> Header {
    with_body(Body::Data(Segment {
        op: OpId::new(0x0a),
        kind: SegmentKind::Message,
        offset: 0x1000,
        length: 3,
        op_length: 0x0001_0000_0002,
        attached: None,
    }))
}

/// Returns the header of a message that fits into one packet.
fn whole() -> Header {
    let op = OpId::new(0x1122_3344_5566_7700);
    let kind = SegmentKind::Message;
    with_body(Body::Data(Segment { op, kind, offset: 0, length: 3, op_length: 3, attached: None }))
}

fn ack() -> Header {
    with_body(Body::Ack(Ack {
        largest: PacketNumber::new(0xabcd),
        bitmap: 0b1011,
        echo: PacketNumber::new(0xabcc),
        remote_queuing: Span::from_us(100),
        hops: 5,
        marked: 1,
        receiver_level: 0,
        echo_marked: false,
        missing: None,
    }))
}

/// Returns the bytes of a header and its extension, without payload.
fn encoded(header: &Header, extension: &Extension<'_>) -> Vec<u8> {
    let mut bytes = vec![0xee; MAX_HEADER_BYTES + MAX_EXTENSION_BYTES];
    let length = encode_extended(header, extension, &mut bytes).unwrap();
    assert_eq!(length, header.encoded_len() + extension.encoded_len());
    assert!(bytes[length..].iter().all(|&byte| byte == 0xee));
    bytes.truncate(length);
    bytes
}

/// Returns a packet in plain mode, from an encoded header.
fn datagram(header: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut bytes = [header, payload].concat();
    // CRC-32C, computed bit by bit.
    let mut crc = u32::MAX;
    for &byte in &bytes[authenticated_from(header)..] {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
        }
    }
    bytes.extend((!crc).to_be_bytes());
    bytes
}

/// Returns an algorithm's own fields on a data packet.
fn own<'a>(id: u8, writable: &'a [u8], authenticated: &'a [u8]) -> Extension<'a> {
    Extension::Own(OwnFields { id, is_echo: false, writable, authenticated })
}

/// Returns an algorithm's own fields on an acknowledgement.
fn echo(id: u8, authenticated: &[u8]) -> Extension<'_> {
    Extension::Own(OwnFields { id, is_echo: true, writable: &[], authenticated })
}

/// Bolt's flag FIRST, followed by `t_data_tx`.
const BOLT_READ: [u8; 5] = [1, 0x89, 0xab, 0xcd, 0xef];
/// `t_data_tx` in [`BOLT_READ`].
const BOLT_SENT: u32 = 0x89ab_cdef;
/// The authenticated part of Bolt's fields: type, number of bytes, flags and `t_data_tx`.
const BOLT_FIELDS: [u8; 7] = [1, 5, 1, 0x89, 0xab, 0xcd, 0xef];

/// Returns Bolt's fields, with INC set in the writable byte.
fn bolt() -> Extension<'static> {
    own(1, &[4], &BOLT_READ)
}

/// Returns the bytes between the writable bytes and the body: version, kind, flow, packet number.
fn common(kind: u8) -> Vec<u8> {
    [&[1, kind, 1, 2, 3, 4][..], &[0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88]].concat()
}

fn check(header: Header, extension: Extension<'_>, kind: u8, writable: &[u8], fields: &[u8]) {
    let plain = encoded(&header, &Extension::None);
    let drawn = [&[writable.len() as u8], writable, &common(kind), fields, &plain[15..]].concat();
    assert_eq!(encoded(&header, &extension), drawn);
    let decoded = decode_extended(&drawn).unwrap();
    assert_eq!((decoded.header, decoded.extension), (header, extension));
    assert_eq!(decode(&drawn), Ok((header, drawn.len())), "the header alone");
    for cut in 0..drawn.len() {
        assert!(
            matches!(decode(&drawn[..cut]), Err(DecodeError::Truncated { available, .. }) if available == cut),
            "{cut} bytes"
        );
    }
}

#[test]
fn bolt_listing_1_on_data_and_acknowledgements() {
    check(message(), bolt(), 0x22, &[4], &BOLT_FIELDS);
    // The flags LAST and FAVOURED in the authenticated part; DEC in the writable byte.
    let other = own(1, &[8], &[18, 0, 0, 0, 7]);
    check(message(), other, 0x22, &[8], &[1, 5, 18, 0, 0, 0, 7]);
    check(whole(), bolt(), 0x32, &[4], &BOLT_FIELDS);
    check(ack(), echo(1, &[0, 1, 0, 2]), 0x25, &[], &[0x81, 4, 0, 1, 0, 2]);
}

#[test]
fn hpcc_figure_7_hops() {
    let hop = Hop { link_rate: 6, at: 0x0102_0304, sent: 0x05_0607_0809, queue: 0x0a_0b0c };
    let bytes = [6, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
    assert_eq!(hop.to_bytes(), bytes);
    assert_eq!(Hop::from_bytes(&bytes), hop);
    let cut = Hop { sent: 1 << 40 | 5, queue: u32::MAX, ..hop };
    assert_eq!(Hop::from_bytes(&cut.to_bytes()), Hop { sent: 5, queue: (1 << 24) - 1, ..hop });

    let room = [&[0; 3][..], &[0; 2 * HOP_BYTES]].concat();
    check(message(), Extension::Telemetry(Hops::room(2)), 0x22, &room, &[126]);
    let echo = Extension::TelemetryEcho(Hops::noted(0x0abc, &bytes));
    check(ack(), echo, 0x25, &[], &[&[254, 1, 1, 0x0a, 0xbc][..], &bytes].concat());
    let most = Hops::room(99);
    assert_eq!(most.capacity(), MAX_HOPS);
    assert_eq!(
        Extension::Telemetry(most).encoded_len(),
        MAX_EXTENSION_BYTES - 1,
        "no count of hops"
    );
    let full = [7; MAX_HOPS * HOP_BYTES + 5];
    assert_eq!(Extension::TelemetryEcho(Hops::noted(0, &full)).encoded_len(), MAX_EXTENSION_BYTES);
}

#[test]
fn rcp_rate_and_rtt() {
    check(message(), own(2, &[1, 2, 3], &[4, 5]), 0x22, &[1, 2, 3], &[2, 2, 4, 5]);
    check(ack(), echo(2, &[1, 2, 3]), 0x25, &[], &[0x82, 3, 1, 2, 3]);
}

#[test]
fn own_fields_of_the_smallest_and_largest_sizes_and_identifiers_pass() {
    let (first, second) = (core::array::from_fn(|i| i as u8), core::array::from_fn(|i| !i as u8));
    let (first, second): ([u8; 16], [u8; 16]) = (first, second);
    assert_eq!(MAX_OWN_BYTES, 16);
    for id in [1, 64, 125] {
        check(message(), own(id, &[], &[]), 0x22, &[], &[id, 0]);
        check(message(), own(id, &first, &[]), 0x22, &first, &[id, 0]);
        let fields = [&[id, 16][..], &second].concat();
        check(message(), own(id, &[], &second), 0x22, &[], &fields);
        check(message(), own(id, &first, &second), 0x22, &first, &fields);
        check(whole(), own(id, &first, &second), 0x32, &first, &fields);
        check(ack(), echo(id, &[]), 0x25, &[], &[128 + id, 0]);
        check(ack(), echo(id, &second), 0x25, &[], &[&[128 + id, 16][..], &second].concat());
    }
}

#[test]
fn an_extension_behind_a_credit_and_on_every_kind_of_data() {
    let (region, address) = (RegionKey::new(3), 4);
    let kinds = [
        (SegmentKind::Write { region, address }, 1),
        (SegmentKind::Message, 2),
        (SegmentKind::ReadRequest { region, address }, 3),
        (SegmentKind::ReadResponse, 4),
        (SegmentKind::Cancel, 6),
        (SegmentKind::CompareAndSwap { region, address: 8 }, 13),
        (SegmentKind::FetchAdd { region, address: 8 }, 14),
    ];
    for (kind, byte) in kinds {
        for (mut header, form) in [(message(), 0), (whole(), 0x10)] {
            let Body::Data(segment) = &mut header.body else { unreachable!("it is data") };
            segment.kind = kind;
            match byte {
                3 | 6 => segment.length = 0,
                // The operands of an atomic op are its whole op, so it has only the short form.
                13 | 14 if form == 0 => continue,
                13 | 14 => {
                    segment.length = if byte == 13 { 16 } else { 8 };
                    segment.op_length = u64::from(segment.length);
                }
                _ => {}
            }
            // Read requests and cancels have no short form.
            let byte = if matches!(byte, 3 | 6) { byte } else { byte + form };
            check(header, bolt(), 0x20 + byte, &[4], &BOLT_FIELDS);
            let Body::Data(segment) = &mut header.body else { unreachable!("it is data") };
            let echo = apus_wire::CreditEcho { number: 1, sent_at_ns: 2 };
            segment.attached = Some(apus_wire::Attached::Credit(echo));
            check(header, bolt(), 0xa0 + byte, &[4], &BOLT_FIELDS);
        }
    }
}

#[test]
fn illegal_extensions_are_refused() {
    // Byte 1 is writable, byte 16 is the type, byte 17 the number of bytes after it.
    let drawn = encoded(&message(), &bolt());
    let refused = |at: usize, byte: u8| {
        let mut bytes = drawn.clone();
        bytes[at] = byte;
        decode(&bytes).unwrap_err()
    };
    for unknown in [0, 127, 128, 255] {
        assert_eq!(refused(16, unknown), DecodeError::Extension(unknown));
    }
    assert_eq!(refused(16, 126), Illegal::WritableLength.into(), "telemetry has 3 bytes and more");
    assert_eq!(refused(16, 0x81), Illegal::WritableLength.into(), "acknowledgements have none");
    assert_eq!(refused(16, 254), Illegal::WritableLength.into(), "acknowledgements have none");
    assert_eq!(refused(17, 17), Illegal::ExtensionLength.into());
    assert_eq!(refused(17, 255), Illegal::ExtensionLength.into());
    assert_eq!(refused(3, 0x02), Illegal::WritableLength.into(), "no extension, yet a byte");
    assert_eq!(refused(3, 0x2c), DecodeError::Kind(0x2c), "a signal has none");
    // 17 writable bytes.
    let mut long = drawn.clone();
    long[0] = 17;
    long.splice(1..1, [0; 16]);
    assert_eq!(decode(&long), Err(Illegal::ExtensionLength.into()));
    // The identifier of an acknowledgement's fields, without writable bytes, on a data packet.
    let mut data = encoded(&message(), &own(1, &[], &BOLT_READ));
    data[15] = 0x81;
    assert_eq!(decode(&data), Err(Illegal::ExtensionOfBody.into()));
    let mut answer = encoded(&ack(), &echo(1, &[0; 4]));
    answer[15] = 1;
    assert_eq!(decode(&answer), Err(Illegal::ExtensionOfBody.into()));
    // Room for half a hop.
    let mut half = encoded(&message(), &Extension::Telemetry(Hops::room(1)));
    half.remove(4);
    half[0] -= 1;
    assert_eq!(decode(&half), Err(Illegal::TelemetryRoom.into()));
}

#[test]
fn illegal_extensions_are_not_encoded() {
    let refused = |header: Header, extension: Extension<'_>, rule| {
        let mut out = [0xee; 256];
        let error = encode_extended(&header, &extension, &mut out);
        assert_eq!(error, Err(EncodeError::Illegal(rule)), "{extension:?}");
        assert_eq!(out, [0xee; 256], "nothing is written");
    };
    refused(ack(), bolt(), Illegal::ExtensionOfBody);
    refused(message(), echo(1, &[0; 4]), Illegal::ExtensionOfBody);
    refused(ack(), Extension::Telemetry(Hops::room(1)), Illegal::ExtensionOfBody);
    refused(message(), Extension::TelemetryEcho(Hops::room(1)), Illegal::ExtensionOfBody);
    for id in [0, 126, 127, 128, 129, 255] {
        refused(message(), own(id, &[4], &BOLT_READ), Illegal::ExtensionId);
        refused(ack(), echo(id, &[0; 4]), Illegal::ExtensionId);
    }
    let long = [0; MAX_OWN_BYTES + 1];
    refused(message(), own(1, &long, &[]), Illegal::ExtensionLength);
    refused(message(), own(1, &[], &long), Illegal::ExtensionLength);
    refused(ack(), echo(1, &long), Illegal::ExtensionLength);
    let writable = OwnFields { id: 1, is_echo: true, writable: &[4], authenticated: &[0, 0, 0, 1] };
    refused(ack(), Extension::Own(writable), Illegal::ExtensionLength);
}

/// Bolt §4.3 and Alg. 1 l. 6-10: a switch has no key of the session. It uses the readable part of the
/// packet, and its writes keep the authentication valid.
#[test]
fn bolt_4_3_a_switch_answers_and_marks_a_packet_without_its_key() {
    let header = encoded(&message(), &bolt());
    // The header is followed by ciphertext, the tag and the session's numbers, which the switch
    // cannot use.
    let sealed = [&header[..], &[0xc1; 3], &[0x7a; 16], &[0, 0, 0, 9, 0, 0, 0, 1]].concat();
    let mut passing = sealed.clone();
    let mut view = SwitchView::new(&mut passing).unwrap();
    assert_eq!(view.extension(), bolt());
    let src = view.signal(0x01_2345, 6, BOLT_SENT).unwrap();
    assert_eq!(view.writable(), [4], "INC");
    view.writable()[0] = 8;
    assert_eq!(view.extension(), own(1, &[8], &BOLT_READ));

    assert_eq!(passing[..2], [1, 8], "INC off, DEC on");
    assert_eq!(passing[2..], sealed[2..], "nothing else is changed");
    // The SRC packet: Listing 1's fields after the flow and number of the data packet.
    #[rustfmt::skip]
    let expected: [u8; 23] = [
        0, 1, 12,
        0x01, 0x02, 0x03, 0x04,
        0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
        0x01, 0x23, 0x45, 0x06,
        0x89, 0xab, 0xcd, 0xef,
    ];
    assert_eq!(src[..23], expected);
    assert_eq!(src.len(), SIGNAL_BYTES);
    let signal = Signal { queue: 0x01_2345, link_rate: 6, sent: BOLT_SENT };
    assert_eq!(open(&src), Ok((Header { body: Body::Signal(signal), ..message() }, &[][..])));
    let mut view = SwitchView::new(&mut passing).unwrap();
    assert_eq!(view.signal(1 << 24, 6, BOLT_SENT), None, "24 bits of queue");
    assert_eq!(view.signal(0, 0, BOLT_SENT), None, "a rate");
    view.note_hop(&Hop::default(), 1);
    assert_eq!(passing[..2], [1, 8], "no room for telemetry");
    assert_eq!(passing[2..], sealed[2..], "nothing else is changed");
}

#[test]
fn a_switch_acts_only_on_data_with_its_fields() {
    assert!(SwitchView::new(&mut encoded(&message(), &Extension::None)).is_none());
    assert!(SwitchView::new(&mut encoded(&ack(), &echo(1, &[0, 0, 0, 1]))).is_none());
    assert!(SwitchView::new(&mut [1, 2, 3]).is_none());
}

#[test]
fn hops_are_noted_in_order_as_far_as_there_is_room() {
    let mut packet = encoded(&message(), &Extension::Telemetry(Hops::room(2)));
    let hop = |at| Hop { link_rate: 6, at, sent: 1, queue: 2 };
    for at in 1..=3 {
        SwitchView::new(&mut packet).unwrap().note_hop(&hop(at), 1 << at);
    }
    let Extension::Telemetry(hops) = decode_extended(&packet).unwrap().extension else {
        unreachable!("it is telemetry")
    };
    assert_eq!(hops.iter().collect::<Vec<_>>(), [hop(1), hop(2)]);
    assert_eq!(packet[1], 3, "all passed ports are counted");
    assert_eq!(packet[2..4], [0, 0b1110], "and make up its path");
    packet[1] = 255;
    SwitchView::new(&mut packet).unwrap().note_hop(&hop(4), 1);
    assert_eq!(packet[1], 255);
}

#[test]
fn a_switch_view_of_telemetry_has_no_own_writable_bytes() {
    let mut packet = encoded(&message(), &Extension::Telemetry(Hops::room(2)));
    assert!(SwitchView::new(&mut packet).unwrap().writable().is_empty());
}

#[test]
fn a_switch_view_writes_all_writable_bytes_of_any_algorithm() {
    let sealed = encoded(&message(), &own(125, &[1; MAX_OWN_BYTES], &[2; MAX_OWN_BYTES]));
    let mut packet = sealed.clone();
    let mut view = SwitchView::new(&mut packet).unwrap();
    view.writable().fill(0xa5);
    assert_eq!(view.extension(), own(125, &[0xa5; MAX_OWN_BYTES], &[2; MAX_OWN_BYTES]));
    assert_eq!(packet[17..], sealed[17..], "the bytes that it only reads are not touched");
}

#[test]
fn a_switch_signals_for_fields_that_it_only_reads() {
    let mut packet = encoded(&message(), &own(70, &[], &[9, 9]));
    let mut view = SwitchView::new(&mut packet).unwrap();
    assert!(view.writable().is_empty());
    let (header, _) = open(&view.signal(5, 6, 7).unwrap()).map(|(h, p)| (h, p.len())).unwrap();
    let signal = Signal { queue: 5, link_rate: 6, sent: 7 };
    assert_eq!(header, Header { body: Body::Signal(signal), ..message() });
}

fn extension(area: &[u8]) -> impl Strategy<Value = Extension<'_>> {
    prop_oneof![
        Just(Extension::None),
        (1..126u8, 0..=MAX_OWN_BYTES, 0..=MAX_OWN_BYTES).prop_map(|(id, writable, read)| own(
            id,
            &area[..writable],
            &area[writable..][..read]
        )),
        (1..126u8, 0..=MAX_OWN_BYTES).prop_map(|(id, read)| echo(id, &area[..read])),
        (0..=MAX_HOPS).prop_map(|n| Extension::Telemetry(Hops::noted(7, &area[..n * HOP_BYTES]))),
        (0..=MAX_HOPS)
            .prop_map(|n| Extension::TelemetryEcho(Hops::noted(7, &area[..n * HOP_BYTES]))),
    ]
}

static AREA: [u8; MAX_HOPS * HOP_BYTES] = [0x5a; MAX_HOPS * HOP_BYTES];

/// Returns a header to which an extension may belong. If that is data and `short` is set, it
/// carries a whole op.
fn header_for(extension: &Extension<'_>, short: bool) -> Header {
    let data = if short { whole() } else { message() };
    if extension.check(&data.body).is_ok() { data } else { ack() }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn extensions_survive_the_round_trip(
        extension in extension(&AREA),
        short in any::<bool>(),
    ) {
        let header = header_for(&extension, short);
        let bytes = encoded(&header, &extension);
        let decoded = decode_extended(&bytes).unwrap();
        prop_assert_eq!((decoded.header, decoded.extension), (header, extension));
    }

    /// Switches may write the writable bytes, and the packet opens with any value of them. Any
    /// other flipped bit is detected, including those of the count of writable bytes.
    #[test]
    fn any_flipped_bit_but_a_switchs_is_refused(
        extension in extension(&AREA),
        short in any::<bool>(),
    ) {
        let header = header_for(&extension, short);
        let payload: &[u8] = if header.payload_len() > 0 { b"abc" } else { b"" };
        let mut bytes = datagram(&encoded(&header, &extension), payload);
        prop_assert_eq!(open(&bytes), Ok((header, payload)));
        let writable = 8..authenticated_from(&bytes) * 8;
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            match open(&bytes) {
                Ok(opened) => {
                    prop_assert!(writable.contains(&bit), "bit {} of {:?}", bit, extension);
                    prop_assert_eq!(opened, (header, payload));
                }
                Err(error) => prop_assert!(!writable.contains(&bit), "bit {}: {}", bit, error),
            }
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn decoded_packets_encode_to_the_same_bytes(
        writable in prop_oneof![Just(0usize), Just(1), Just(3), 0usize..=110],
        kind in prop_oneof![
            Just(0x22u8),
            Just(0x25),
            Just(0xa1),
            0x21u8..0x27,
            prop::sample::select(vec![0x31u8, 0x32, 0x34, 0xb1, 0xb2, 0xb4]),
        ],
        extension in prop_oneof![
            any::<u8>(),
            prop::sample::select(vec![1u8, 125, 126, 129, 253, 254]),
        ],
        rooms in 0u8..20,
        mut bytes in prop::collection::vec(0u8..4, 300),
    ) {
        let start = 1 + writable;
        bytes[0] = writable as u8;
        (bytes[start], bytes[start + 1]) = (1, kind);
        (bytes[start + 14], bytes[start + 15]) = (extension, rooms);
        if let Ok(decoded) = decode_extended(&bytes) {
            let again = encoded(&decoded.header, &decoded.extension);
            prop_assert_eq!(&again[..], &bytes[..decoded.length]);
        }
    }

    #[test]
    fn a_switch_never_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let before = bytes.len();
        if let Some(mut view) = SwitchView::new(&mut bytes) {
            let _ = view.signal(1, 1, 1);
            view.writable().fill(0xff);
            view.note_hop(&Hop::default(), 1);
        }
        prop_assert_eq!(bytes.len(), before);
    }
}

#[test]
fn plain_packets_are_as_before() {
    let mut bytes = [0; 64];
    let length = seal(&message(), b"abc", &mut bytes).unwrap();
    assert_eq!(bytes[..length], datagram(&encoded(&message(), &Extension::None), b"abc"));
}
