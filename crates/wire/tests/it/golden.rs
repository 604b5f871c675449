//! Packets as bytes, written by hand from the layout in the crate's documentation.

use apus_units::{FlowId, OpId, PacketNumber, Span};
use apus_wire::{
    Ack, Attached, Body, Control, Credit, CreditEcho, DecodeError, EncodeError, Header, Illegal,
    Nack, Order, Received, RegionKey, Reject, RejectReason, Segment, SegmentKind, Signal, Trimmed,
    decode, encode, open, seal,
};

/// Returns a header with this body: flow 0x01020304, packet number 0x1122334455667788.
fn with_body(body: Body) -> Header {
    Header { flow: FlowId::new(0x0102_0304), seq: PacketNumber::new(0x1122_3344_5566_7788), body }
}

fn segment(kind: SegmentKind, length: u32) -> Header {
    with_body(Body::Data(Segment {
        op: OpId::new(0x0a),
        kind,
        offset: 0x1000,
        length,
        op_length: 0x0001_0000_0002,
        attached: None,
    }))
}

fn ack() -> Ack {
    Ack {
        largest: PacketNumber::new(0xabcd),
        bitmap: 1 << 127 | 0b1011,
        echo: PacketNumber::new(0xabcc),
        remote_queuing: Span::from_ns(0x0001_86a0),
        hops: 5,
        marked: 0xfffe_0001,
        receiver_level: 31,
        echo_marked: false,
        missing: None,
    }
}

#[rustfmt::skip]
const WRITE: [u8; 57] = [
    0, 1, 1,                                                // extension, version, kind
    0x01, 0x02, 0x03, 0x04,                                 // flow
    0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,         // seq
    0, 0, 0, 0, 0, 0, 0, 0x0a,                              // op
    0, 0, 0, 0, 0, 0, 0x10, 0x00,                           // offset
    0, 0, 0, 0x01, 0, 0, 0, 0x02,                           // op_length
    0x0f, 0xa0,                                             // length
    0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 0x01,                  // region
    0, 0, 0, 0, 0, 0, 0x20, 0x00,                           // address
];

/// A whole op of 64 bytes; its number is 0x1234 below that of the packet.
#[rustfmt::skip]
const WHOLE_WRITE: [u8; 39] = [
    0, 1, 0x11,
    0x01, 0x02, 0x03, 0x04,
    0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
    0, 0, 0, 0, 0x12, 0x34,                                 // distance of the op
    0, 64,                                                  // length
    0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 0x01,                  // region
    0, 0, 0, 0, 0, 0, 0x20, 0x00,                           // address
];

#[rustfmt::skip]
const MESSAGE: [u8; 41] = [
    0, 1, 2,
    0x01, 0x02, 0x03, 0x04,
    0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
    0, 0, 0, 0, 0, 0, 0, 0x0a,
    0, 0, 0, 0, 0, 0, 0x10, 0x00,
    0, 0, 0, 0x01, 0, 0, 0, 0x02,
    0x00, 0x03,
];

#[rustfmt::skip]
const ACK: [u8; 57] = [
    0, 1, 5,                                                // extension, version, kind
    0x01, 0x02, 0x03, 0x04,                                 // flow
    0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,         // seq
    0, 0, 0, 0, 0, 0, 0xab, 0xcd,                           // largest
    0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0b,   // bitmap
    0, 0, 0, 0, 0, 0, 0xab, 0xcc,                           // echo
    0, 0x01, 0x86, 0xa0,                                    // remote_queuing: 100 us
    5,                                                      // hops
    0xff, 0xfe, 0x00, 0x01,                                 // marked
    31,                                                     // receiver_level
];

#[rustfmt::skip]
const CREDIT: [u8; 50] = [
    0, 1, 9,
    0x01, 0x02, 0x03, 0x04,
    0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
    0x00, 0x00, 0x01, 0x07,                                 // number
    0xfe, 0xdc, 0xba, 0x98,                                 // sent_at_ns
    0, 0, 0, 0, 0, 0, 0xab, 0xcd,                           // largest
    0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0b,   // bitmap
    2, 0, 0,                                                // padding
];

fn target() -> (RegionKey, u64) {
    (RegionKey::new(0xdead_beef_0000_0001), 0x2000)
}

/// Checks encoding and decoding.
fn check(header: Header, golden: &[u8]) {
    let mut bytes = [0xee; 72];
    assert_eq!(encode(&header, &mut bytes), Ok(golden.len()));
    assert_eq!(&bytes[..golden.len()], golden);
    assert_eq!(bytes[golden.len()], 0xee, "nothing is written behind the header");
    assert_eq!(header.encoded_len(), golden.len());
    assert_eq!(decode(golden), Ok((header, golden.len())));
    let mut longer = golden.to_vec();
    longer.push(7);
    assert_eq!(decode(&longer), Ok((header, golden.len())), "the rest is the payload");
    for length in 0..golden.len() {
        let cut = decode(&golden[..length]);
        assert!(
            matches!(cut, Err(DecodeError::Truncated { available, .. }) if available == length)
        );
        let mut short = vec![0xee; length];
        assert_eq!(
            encode(&header, &mut short),
            Err(EncodeError::BufferTooSmall { needed: golden.len(), available: length })
        );
        assert!(short.iter().all(|&byte| byte == 0xee), "an error writes nothing");
    }
}

#[test]
fn write_and_read_request() {
    let (region, address) = target();
    check(segment(SegmentKind::Write { region, address }, 4_000), &WRITE);
    let mut request = WRITE;
    request[2] = 3;
    request[39..41].copy_from_slice(&[0, 0]);
    check(segment(SegmentKind::ReadRequest { region, address }, 0), &request);
}

/// Returns a packet that carries a whole op of 64 bytes, whose number is `distance` below that of
/// the packet.
fn whole(kind: SegmentKind, distance: i64) -> Header {
    let op = OpId::new(0x1122_3344_5566_7788u64.wrapping_sub(distance as u64));
    with_body(Body::Data(Segment {
        op,
        kind,
        offset: 0,
        length: 64,
        op_length: 64,
        attached: None,
    }))
}

#[test]
fn a_whole_op_takes_18_bytes_less() {
    let (region, address) = target();
    check(whole(SegmentKind::Write { region, address }, 0x1234), &WHOLE_WRITE);
    for (kind, byte) in [(SegmentKind::Message, 0x12), (SegmentKind::ReadResponse, 0x14)] {
        let mut bytes = WHOLE_WRITE[..23].to_vec();
        bytes[2] = byte;
        check(whole(kind, 0x1234), &bytes);
        // An op of the other direction may have any number.
        bytes[15..21].copy_from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xfe]);
        check(whole(kind, -2), &bytes);
        let mut header = whole(kind, -2);
        if let Body::Data(segment) = &mut header.body {
            (segment.length, segment.op_length) = (0, 0);
            let echo = CreditEcho { number: 0x107, sent_at_ns: 0xfedc_ba98 };
            segment.attached = Some(Attached::Credit(echo));
        }
        (bytes[2], bytes[22]) = (byte | 0x80, 0);
        bytes.extend([0x00, 0x00, 0x01, 0x07, 0xfe, 0xdc, 0xba, 0x98]);
        check(header, &bytes);
    }
}

#[test]
fn a_sealed_write_of_64_bytes_takes_127() {
    let (region, address) = target();
    let header = whole(SegmentKind::Write { region, address }, 0x1234);
    // 16 bytes of tag, 4 of session and 4 of packet number.
    let guard = 24;
    assert_eq!(header.encoded_len() + header.payload_len() + guard, 127);
}

/// Returns an atomic op whose number is `distance` below that of the packet.
fn atomic(kind: SegmentKind, operands: u32, distance: i64) -> Header {
    let mut header = whole(kind, distance);
    if let Body::Data(segment) = &mut header.body {
        (segment.length, segment.op_length) = (operands, u64::from(operands));
    }
    header
}

#[test]
fn atomic_ops_are_whole() {
    let (region, address) = target();
    let swap = SegmentKind::CompareAndSwap { region, address };
    let add = SegmentKind::FetchAdd { region, address };
    for (kind, byte, operands) in [(swap, 13, 16), (add, 14, 8)] {
        let mut short = WHOLE_WRITE;
        (short[2], short[22]) = (byte + 16, operands);
        check(atomic(kind, u32::from(operands), 0x1234), &short);
        let mut long = long_form(byte, 1 << 47);
        (long[38], long[40]) = (operands, operands);
        long.extend(&WRITE[41..]);
        check(atomic(kind, u32::from(operands), 1 << 47), &long);
    }
}

#[test]
fn illegal_atomic_ops_are_refused_both_ways() {
    let (region, address) = target();
    let add = |address| SegmentKind::FetchAdd { region, address };
    let mut golden = WHOLE_WRITE;
    (golden[2], golden[22]) = (0x1e, 8);
    for (length, refuses) in [(0, true), (7, true), (8, false), (9, true), (16, true)] {
        let header = atomic(add(address), length, 0x1234);
        if refuses {
            refused(header, &golden, |b| b[22] = length as u8, Illegal::Operands);
        } else {
            check(header, &golden);
        }
    }
    let swap = SegmentKind::CompareAndSwap { region, address };
    refused(atomic(swap, 8, 0x1234), &golden, |b| b[2] = 0x1d, Illegal::Operands);
    for offset in [1u8, 4, 7] {
        let header = atomic(add(address + u64::from(offset)), 8, 0x1234);
        refused(header, &golden, |b| b[38] = offset, Illegal::UnalignedWord);
    }
    let last = atomic(add(u64::MAX - 7), 8, 0x1234);
    let to_last = |b: &mut [u8]| {
        b[31..38].fill(0xff);
        b[38] = 0xf8;
    };
    refused(last, &golden, to_last, Illegal::AddressOverflow);
    // Only part of the operands, in the long form.
    let part = segment(add(address), 8);
    let mut long = WRITE;
    (long[2], long[39], long[40]) = (14, 0, 8);
    assert_eq!(encode(&part, &mut [0; 72]), Err(Illegal::Operands.into()));
    assert_eq!(decode(&long), Err(Illegal::Operands.into()));
}

/// Returns the long form of a packet that carries a whole op of 64 bytes.
fn long_form(kind: u8, distance: i64) -> Vec<u8> {
    let op = 0x1122_3344_5566_7788u64.wrapping_sub(distance as u64);
    let mut bytes = MESSAGE.to_vec();
    bytes[2] = kind;
    bytes[15..23].copy_from_slice(&op.to_be_bytes());
    bytes[23..31].fill(0);
    bytes[31..39].copy_from_slice(&64u64.to_be_bytes());
    bytes[39..41].copy_from_slice(&[0, 64]);
    bytes
}

#[test]
fn an_op_whose_number_is_far_away_takes_the_long_form() {
    for distance in [1 << 47, -(1 << 47) - 1, i64::MAX, i64::MIN] {
        check(whole(SegmentKind::Message, distance), &long_form(2, distance));
    }
    for (distance, bytes) in
        [((1 << 47) - 1, [0x7f, 0xff, 0xff, 0xff, 0xff, 0xff]), (-(1 << 47), [0x80, 0, 0, 0, 0, 0])]
    {
        let mut short = WHOLE_WRITE[..23].to_vec();
        short[2] = 0x12;
        short[15..21].copy_from_slice(&bytes);
        check(whole(SegmentKind::Message, distance), &short);
    }
}

#[test]
fn a_header_has_one_form() {
    for kind in [2, 4] {
        for distance in [0, 0x1234, (1 << 47) - 1, -(1 << 47)] {
            let refused = Err(DecodeError::Illegal(Illegal::LongForm));
            assert_eq!(decode(&long_form(kind, distance)), refused, "kind {kind}, {distance}");
        }
    }
    let (region, address) = target();
    let mut write = long_form(1, 5);
    write.extend(&WRITE[41..]);
    assert_eq!(decode(&write), Err(DecodeError::Illegal(Illegal::LongForm)));
    // Requests and cancels have the long form only, even with a length of zero.
    let mut request = long_form(3, 5);
    request[31..41].fill(0);
    request.extend(&WRITE[41..]);
    let mut header = whole(SegmentKind::ReadRequest { region, address }, 5);
    if let Body::Data(segment) = &mut header.body {
        (segment.length, segment.op_length) = (0, 0);
    }
    check(header, &request);
    for kind in [0x10, 0x13, 0x15, 0x16, 0x17, 0x19, 0x1c, 0x33, 0x35, 0x37, 0x51, 0x93, 0x96, 0x52]
    {
        let mut bytes = WRITE;
        bytes[2] = kind;
        assert_eq!(decode(&bytes), Err(DecodeError::Kind(kind)));
    }
}

#[test]
fn a_short_form_beyond_the_region_is_refused_both_ways() {
    let kind = SegmentKind::Write { region: target().0, address: u64::MAX - 63 };
    refused(
        whole(kind, 0x1234),
        &WHOLE_WRITE,
        |b| {
            b[31..38].fill(0xff);
            b[38] = 0xc0;
        },
        Illegal::AddressOverflow,
    );
}

#[test]
fn control_packets() {
    let received = Received { largest: PacketNumber::new(0xabcd), bitmap: 1 << 127 | 0b1011 };
    let credit =
        Credit { number: 0x107, sent_at_ns: 0xfedc_ba98, received: Some(received), padding: 2 };
    check(with_body(Body::Control(Control::Credit(credit))), &CREDIT);
    // If no data packet was received, the bytes are zero.
    let mut first = CREDIT;
    first[23..47].fill(0);
    let credit = Credit { received: None, ..credit };
    check(with_body(Body::Control(Control::Credit(credit))), &first);
    let mut request = CREDIT[..15].to_vec();
    request[2] = 8;
    request.extend([0, 0, 0x12, 0x34]);
    check(with_body(Body::Control(Control::CreditRequest { packets: 0x1234 })), &request);
    for (kind, control) in [
        (24, Control::Grant { total: 0x1234 }),
        (26, Control::Probe { number: 0x1234 }),
        (27, Control::ProbeAnswer { number: 0x1234 }),
    ] {
        request[2] = kind;
        check(with_body(Body::Control(control)), &request);
    }
    for (kind, control) in [(10, Control::CreditStop), (11, Control::Notification)] {
        let mut bytes = CREDIT[..15].to_vec();
        bytes[2] = kind;
        check(with_body(Body::Control(control)), &bytes);
    }
}

#[test]
fn illegal_credits_are_refused() {
    let refused = |at: usize, byte: u8| {
        let mut bytes = CREDIT;
        bytes[at] = byte;
        decode(&bytes)
    };
    let illegal = |rule| Err(DecodeError::Illegal(rule));
    assert_eq!(refused(46, 0x0a), illegal(Illegal::BitmapWithoutLargest));
    assert_eq!(refused(48, 1), illegal(Illegal::Padding));
    assert_eq!(refused(47, 3), Err(DecodeError::Truncated { needed: 51, available: 50 }));
    let mut long = CREDIT[..48].to_vec();
    long[47] = 17;
    long.extend([0; 17]);
    assert_eq!(decode(&long), illegal(Illegal::Padding));
}

#[test]
fn data_that_echoes_a_credit() {
    let echo = CreditEcho { number: 0x107, sent_at_ns: 0xfedc_ba98 };
    let mut header = segment(SegmentKind::Message, 3);
    if let Body::Data(segment) = &mut header.body {
        segment.attached = Some(Attached::Credit(echo));
    }
    let mut bytes = MESSAGE.to_vec();
    bytes[2] = 0x82;
    bytes.extend([0x00, 0x00, 0x01, 0x07, 0xfe, 0xdc, 0xba, 0x98]);
    check(header, &bytes);
    let (region, address) = target();
    let mut header = segment(SegmentKind::Write { region, address }, 4_000);
    if let Body::Data(segment) = &mut header.body {
        segment.attached = Some(Attached::Credit(echo));
    }
    let mut bytes = WRITE.to_vec();
    bytes[2] = 0x81;
    bytes.extend([0x00, 0x00, 0x01, 0x07, 0xfe, 0xdc, 0xba, 0x98]);
    check(header, &bytes);
}

/// A spread flow adds 192 to the kind and 3 bytes after the body; an acknowledgement has 2 bytes
/// more.
#[test]
fn packets_that_others_may_overtake() {
    let mut header = segment(SegmentKind::Message, 3);
    if let Body::Data(segment) = &mut header.body {
        let order = Order { awaited_behind: 0x1234, ack_now: true };
        segment.attached = Some(Attached::Order(order));
    }
    let mut bytes = MESSAGE.to_vec();
    bytes[2] = 0xc2;
    bytes.extend([0x12, 0x34, 1]);
    check(header, &bytes);
    let last = bytes.len() - 1;
    bytes[last] = 2;
    assert_eq!(decode(&bytes), Err(DecodeError::Illegal(Illegal::OrderFlags)));
    bytes[2] = 0x42;
    assert_eq!(decode(&bytes), Err(DecodeError::Kind(0x42)));
    let header = with_body(Body::Ack(Ack { missing: Some(0x0708), ..ack() }));
    let mut bytes = ACK.to_vec();
    bytes[2] = 0xc5;
    bytes.extend([7, 8]);
    check(header, &bytes);
}

#[test]
fn message_and_read_response() {
    check(segment(SegmentKind::Message, 3), &MESSAGE);
    let mut response = MESSAGE;
    response[2] = 4;
    check(segment(SegmentKind::ReadResponse, 3), &response);
}

#[test]
fn swift_app_b_ack() {
    check(with_body(Body::Ack(ack())), &ACK);
}

#[test]
fn swift_app_b_remote_queuing_is_4_bytes_of_nanoseconds() {
    let through_the_wire = |span| {
        let mut bytes = [0; 57];
        let body = Body::Ack(Ack { remote_queuing: span, ..ack() });
        encode(&with_body(body), &mut bytes).unwrap();
        match decode(&bytes).unwrap().0.body {
            Body::Ack(ack) => ack.remote_queuing,
            other => unreachable!("an ACK was sent, not {other:?}"),
        }
    };
    let most = Span::from_ns(u64::from(u32::MAX));
    assert_eq!(through_the_wire(Span::from_ps(1_499)), Span::from_ns(1), "to the nearest");
    assert_eq!(through_the_wire(Span::from_ps(1_500)), Span::from_ns(2));
    assert_eq!(through_the_wire(most), most);
    assert_eq!(through_the_wire(Span::from_secs(5)), most, "saturating");
    assert_eq!(through_the_wire(Span::MAX), most);
}

#[test]
fn swift_app_b_sealed_message() {
    let header = segment(SegmentKind::Message, 3);
    let mut out = [0xee; 64];
    assert_eq!(seal(&header, b"abc", &mut out), Ok(48));
    assert_eq!(out[..41], MESSAGE);
    assert_eq!(&out[41..44], b"abc");
    // CRC-32C, computed bit by bit, over all bytes after the extension.
    let mut crc = u32::MAX;
    for &byte in &out[1..44] {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
        }
    }
    assert_eq!(out[44..48], (!crc).to_be_bytes());
    assert_eq!(out[48], 0xee);
    assert_eq!(open(&out[..48]), Ok((header, b"abc".as_slice())));
    assert_eq!(
        open(&out[..47]),
        Err(DecodeError::Truncated { needed: 48, available: 47 }),
        "the checksum is cut"
    );
    assert_eq!(
        open(&out[..49]),
        Err(DecodeError::TrailingBytes { expected: 48, available: 49 }),
        "a datagram holds one packet"
    );
    assert_eq!(
        seal(&header, b"ab", &mut out),
        Err(EncodeError::PayloadLength { stated: 3, given: 2 })
    );
    assert_eq!(
        seal(&header, b"abc", &mut out[..47]),
        Err(EncodeError::BufferTooSmall { needed: 48, available: 47 })
    );
}

#[test]
fn foreign_packets_are_named() {
    assert_eq!(decode(&[]), Err(DecodeError::Truncated { needed: 15, available: 0 }));
    assert_eq!(decode(&[9, 1, 1]), Err(DecodeError::Truncated { needed: 24, available: 3 }));
    assert_eq!(decode(&[0, 2, 1]), Err(DecodeError::Version(2)));
    assert_eq!(decode(&[0, 1, 0]), Err(DecodeError::Kind(0)));
    assert_eq!(decode(&[0, 1, 47]), Err(DecodeError::Kind(47)));
    assert_eq!(decode(&[0, 1, 64]), Err(DecodeError::Kind(64)));
    assert_eq!(decode(&[0, 1, 5]), Err(DecodeError::Truncated { needed: 57, available: 3 }));
    let text = DecodeError::Truncated { needed: 57, available: 3 }.to_string();
    assert_eq!(text, "truncated: at least 57 bytes needed, 3 available");
    let text = DecodeError::Illegal(Illegal::RangeBeyondOp).to_string();
    assert_eq!(text, "illegal header: offset + length must not exceed op_length");
}

/// Checks that encoding and decoding refuse the same change by the same rule.
fn refused(header: Header, golden: &[u8], change: impl Fn(&mut [u8]), rule: Illegal) {
    assert_eq!(encode(&header, &mut [0; 64]), Err(EncodeError::Illegal(rule)));
    let mut bytes = golden.to_vec();
    change(&mut bytes);
    assert_eq!(decode(&bytes), Err(DecodeError::Illegal(rule)));
}

#[test]
fn illegal_segments_are_refused_both_ways() {
    let (region, address) = target();
    let header = segment(SegmentKind::Message, 3);
    let Body::Data(data) = header.body else { unreachable!("it is data") };
    let with = |data| with_body(Body::Data(data));

    let beyond = with(Segment { op_length: 0x1002, ..data });
    let set_op_length = |b: &mut [u8]| b[31..39].copy_from_slice(&0x1002u64.to_be_bytes());
    refused(beyond, &MESSAGE, set_op_length, Illegal::RangeBeyondOp);

    let overflow = with(Segment { offset: u64::MAX, op_length: u64::MAX, ..data });
    refused(overflow, &MESSAGE, |b| b[23..39].fill(0xff), Illegal::RangeBeyondOp);

    let asks = with(Segment { kind: SegmentKind::ReadRequest { region, address }, ..data });
    refused(asks, &WRITE, |b| (b[2], b[39], b[40]) = (3, 0, 3), Illegal::PayloadInReadRequest);

    let kind = SegmentKind::Write { region, address: u64::MAX };
    refused(
        with(Segment { kind, ..data }),
        &WRITE,
        |b| b[49..57].fill(0xff),
        Illegal::AddressOverflow,
    );

    let long = with(Segment { length: 65_536, ..data });
    assert_eq!(encode(&long, &mut [0; 64]), Err(Illegal::PayloadTooLong.into()));
}

#[test]
fn reject_names_op_and_reason() {
    #[rustfmt::skip]
    let golden = [
        0, 1, 7,
        0x01, 0x02, 0x03, 0x04,
        0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
        0, 0, 0, 0, 0, 0, 0, 0x0a,                          // op
        3,                                                  // reason
    ];
    let reject = Reject { op: OpId::new(0x0a), reason: RejectReason::OutOfBounds };
    let header = with_body(Body::Reject(reject));
    let mut out = [0; 24];
    assert_eq!(encode(&header, &mut out), Ok(24));
    assert_eq!(out, golden);
    assert_eq!(decode(&golden), Ok((header, 24)));
    for reason in [0, 6, 255] {
        let mut bytes = golden;
        bytes[23] = reason;
        assert_eq!(decode(&bytes), Err(DecodeError::Illegal(Illegal::RejectReason)));
    }
}

#[test]
fn cancel_is_laid_out_as_a_message_and_carries_nothing() {
    let cancel = segment(SegmentKind::Cancel, 0);
    let mut golden = MESSAGE;
    (golden[2], golden[40]) = (6, 0);
    let mut out = [0; 41];
    assert_eq!(encode(&cancel, &mut out), Ok(41));
    assert_eq!(out, golden);
    assert_eq!(decode(&golden), Ok((cancel, 41)));
    let loaded = segment(SegmentKind::Cancel, 3);
    refused(loaded, &MESSAGE, |b| b[2] = 6, Illegal::PayloadInCancel);
}

#[test]
fn illegal_acks_are_refused_both_ways() {
    let with = |ack| with_body(Body::Ack(ack));
    refused(
        with(Ack { bitmap: 0b1010, ..ack() }),
        &ACK,
        |b| b[38] = 0x0a,
        Illegal::BitmapWithoutLargest,
    );
    refused(
        with(Ack { largest: PacketNumber::new(126), echo: PacketNumber::new(0), ..ack() }),
        &ACK,
        |b| (b[21], b[22]) = (0, 126),
        Illegal::BitmapBelowZero,
    );
    refused(
        with(Ack { echo: PacketNumber::new(0xabce), ..ack() }),
        &ACK,
        |b| b[46] = 0xce,
        Illegal::EchoBeyondLargest,
    );
    refused(
        with(Ack { receiver_level: 32, ..ack() }),
        &ACK,
        |b| b[56] = 32,
        Illegal::ReceiverLevel,
    );
}

#[test]
fn bolt_listing_1_a_signal_is_queue_rate_and_transmission_time() {
    let signal = Signal { queue: 0x01_2345, link_rate: 6, sent: 0x89ab_cdef };
    let mut bytes = [0; 23];
    assert_eq!(encode(&with_body(Body::Signal(signal)), &mut bytes), Ok(23));
    #[rustfmt::skip]
    let expected: [u8; 23] = [
        0, 1, 12,
        0x01, 0x02, 0x03, 0x04,
        0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
        0x01, 0x23, 0x45, 0x06,
        0x89, 0xab, 0xcd, 0xef,
    ];
    assert_eq!(bytes, expected);
    assert_eq!(decode(&bytes), Ok((with_body(Body::Signal(signal)), 23)));
}

#[test]
fn a_signal_has_24_bits_of_queue_and_names_a_rate() {
    let encoded = |signal| encode(&with_body(Body::Signal(signal)), &mut [0; 23]);
    let signal = Signal { queue: 1 << 24, link_rate: 6, sent: 0 };
    assert_eq!(encoded(signal), Err(EncodeError::Illegal(Illegal::SignalQueue)));
    let signal = Signal { queue: 0, link_rate: 0, sent: 0 };
    assert_eq!(encoded(signal), Err(EncodeError::Illegal(Illegal::SignalRate)));
}

#[test]
fn a_trimmed_packet_names_its_range_and_a_nack_its_number() {
    let trimmed = Trimmed {
        op: OpId::new(0x0a),
        is_answer: true,
        offset: 0x1000,
        length: 0x0800,
        last_hop: false,
    };
    let mut bytes = [0; 34];
    assert_eq!(encode(&with_body(Body::Trimmed(trimmed)), &mut bytes), Ok(34));
    #[rustfmt::skip]
    let expected: [u8; 34] = [
        0, 1, 31,
        0x01, 0x02, 0x03, 0x04,
        0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
        0, 0, 0, 0, 0, 0, 0, 0x0a,                          // op
        0, 0, 0, 0, 0, 0, 0x10, 0,                          // offset
        0x08, 0,                                            // length
        2,                                                  // flags: an answer
    ];
    assert_eq!(bytes, expected);
    assert_eq!(decode(&bytes), Ok((with_body(Body::Trimmed(trimmed)), 34)));
    bytes[33] = 4;
    assert_eq!(decode(&bytes), Err(DecodeError::Illegal(Illegal::TrimFlags)));
    (bytes[31], bytes[33]) = (0, 0);
    assert_eq!(decode(&bytes), Err(DecodeError::Illegal(Illegal::NothingTrimmed)));

    let nack = Nack { packet: PacketNumber::new(0x99), last_hop: true, marked: true };
    let mut bytes = [0; 24];
    assert_eq!(encode(&with_body(Body::Nack(nack)), &mut bytes), Ok(24));
    assert_eq!((bytes[2], bytes[22], bytes[23]), (15, 0x99, 3));
    assert_eq!(decode(&bytes), Ok((with_body(Body::Nack(nack)), 24)));
}
