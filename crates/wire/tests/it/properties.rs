//! Every legal packet is unchanged after encoding and decoding; every damaged packet is refused.

use apus_units::{FlowId, OpId, PacketNumber, Span};
use apus_wire::{
    Ack, Attached, Body, Control, Credit, CreditEcho, Header, MAX_HEADER_BYTES, Nack, Order,
    Received, RegionKey, Reject, RejectReason, Segment, SegmentKind, Trimmed, decode, encode, open,
    seal,
};
use proptest::prelude::*;

fn kind() -> impl Strategy<Value = SegmentKind> {
    let target = || (any::<u64>().prop_map(RegionKey::new), 0..1u64 << 63);
    prop_oneof![
        target().prop_map(|(region, address)| SegmentKind::Write { region, address }),
        Just(SegmentKind::Message),
        target().prop_map(|(region, address)| SegmentKind::ReadRequest { region, address }),
        Just(SegmentKind::ReadResponse),
        Just(SegmentKind::Cancel),
        target().prop_map(|(region, word)| {
            SegmentKind::CompareAndSwap { region, address: word & !7 }
        }),
        target().prop_map(|(region, word)| SegmentKind::FetchAdd { region, address: word & !7 }),
    ]
}

/// Returns the number of bytes of the operands of an atomic op, which are its whole payload.
fn operands(kind: &SegmentKind) -> Option<u32> {
    match kind {
        SegmentKind::CompareAndSwap { .. } => Some(16),
        SegmentKind::FetchAdd { .. } => Some(8),
        _ => None,
    }
}

prop_compose! {
    fn segment()(
        kind in kind(),
        op in any::<u64>(),
        length in 0u32..2_000,
        offset in 0..1u64 << 62,
        rest in 0..1u64 << 32,
        attached in prop::option::of(prop_oneof![
            (any::<u32>(), any::<u32>())
                .prop_map(|(number, sent_at_ns)| Attached::Credit(CreditEcho { number, sent_at_ns })),
            (any::<u16>(), any::<bool>())
                .prop_map(|(awaited_behind, ack_now)| Attached::Order(Order { awaited_behind, ack_now })),
        ]),
    ) -> Segment {
        let empty = matches!(kind, SegmentKind::ReadRequest { .. } | SegmentKind::Cancel);
        let length = if empty { 0 } else { length };
        let (offset, length, rest) = match operands(&kind) {
            Some(operands) => (0, operands, 0),
            None => (offset, length, rest),
        };
        let op_length = offset + u64::from(length) + rest;
        Segment { op: OpId::new(op), kind, offset, length, op_length, attached }
    }
}

/// Returns packet numbers and segments that carry their whole op. The two numbers have any
/// distance, often one at which the form changes.
fn whole() -> impl Strategy<Value = (u64, Segment)> {
    let edges: Vec<i64> = [0, 1, 1 << 32, 1 << 47, 1 << 48, i64::MAX]
        .iter()
        .flat_map(|&edge: &i64| [edge - 1, edge, edge.saturating_add(1)])
        .flat_map(|edge| [edge, -edge])
        .collect();
    let distance = prop_oneof![prop::sample::select(edges), any::<i64>()];
    (any::<u64>(), distance, segment()).prop_map(|(seq, distance, segment)| {
        let op = OpId::new(seq.wrapping_sub(distance as u64));
        (seq, Segment { op, offset: 0, op_length: u64::from(segment.length), ..segment })
    })
}

prop_compose! {
    fn ack()(
        largest in prop_oneof![0u64..200, any::<u64>()],
        bitmap in any::<u128>(),
        behind in 0u64..1_000,
        ns in any::<u32>(),
        hops in any::<u8>(),
        marked in any::<u32>(),
        receiver_level in 0u8..=31,
        echo_marked in any::<bool>(),
        missing in prop::option::of(any::<u16>()),
    ) -> Ack {
        Ack {
            largest: PacketNumber::new(largest),
            bitmap: 1 | bitmap & (u128::MAX >> 127u64.saturating_sub(largest)),
            echo: PacketNumber::new(largest.saturating_sub(behind)),
            remote_queuing: Span::from_ns(u64::from(ns)),
            hops,
            marked,
            receiver_level,
            echo_marked,
            missing,
        }
    }
}

fn reject() -> impl Strategy<Value = Reject> {
    let reason = prop_oneof![
        Just(RejectReason::NoRegion),
        Just(RejectReason::NotAllowed),
        Just(RejectReason::OutOfBounds),
        Just(RejectReason::TooLong),
        Just(RejectReason::Withdrawn),
    ];
    (any::<u64>(), reason).prop_map(|(op, reason)| Reject { op: OpId::new(op), reason })
}

prop_compose! {
    fn credit()(
        number in any::<u32>(),
        sent_at_ns in any::<u32>(),
        largest in prop_oneof![0u64..200, any::<u64>()],
        bitmap in prop::option::of(any::<u128>()),
        padding in 0u8..=16,
    ) -> Control {
        let received = bitmap.map(|bitmap| Received {
            largest: PacketNumber::new(largest),
            bitmap: 1 | bitmap & (u128::MAX >> 127u64.saturating_sub(largest)),
        });
        Control::Credit(Credit { number, sent_at_ns, received, padding })
    }
}

fn control() -> impl Strategy<Value = Control> {
    let plain = [Control::CreditStop, Control::Notification];
    let request = any::<u32>().prop_map(|packets| Control::CreditRequest { packets });
    let probe = any::<u32>().prop_map(|number| Control::Probe { number });
    let answer = any::<u32>().prop_map(|number| Control::ProbeAnswer { number });
    let grant = any::<u32>().prop_map(|total| Control::Grant { total });
    prop_oneof![credit(), request, grant, probe, answer, prop::sample::select(plain.to_vec())]
}

fn header() -> impl Strategy<Value = Header> {
    let body = prop_oneof![
        segment().prop_map(Body::Data),
        ack().prop_map(Body::Ack),
        reject().prop_map(Body::Reject),
        (0u32..1 << 24, 1u8.., any::<u32>()).prop_map(|(queue, link_rate, sent)| {
            Body::Signal(apus_wire::Signal { queue, link_rate, sent })
        }),
        control().prop_map(Body::Control),
        (any::<u64>(), 0u64..u64::MAX - 65_535, 1u32..=65_535, any::<[bool; 2]>()).prop_map(
            |(op, offset, length, [is_answer, last_hop])| {
                Body::Trimmed(Trimmed { op: OpId::new(op), is_answer, offset, length, last_hop })
            }
        ),
        (any::<u64>(), any::<[bool; 2]>()).prop_map(|(packet, [last_hop, marked])| {
            Body::Nack(Nack { packet: PacketNumber::new(packet), last_hop, marked })
        }),
    ];
    let numbered = prop_oneof![
        3 => (any::<u64>(), body),
        1 => whole().prop_map(|(seq, segment)| (seq, Body::Data(segment))),
    ];
    (any::<u32>(), numbered).prop_map(|(flow, (seq, body))| Header {
        flow: FlowId::new(flow),
        seq: PacketNumber::new(seq),
        body,
    })
}

/// Returns a payload of the length that the header states.
fn payload(header: &Header) -> Vec<u8> {
    (0..header.payload_len()).map(|i| (i * 31) as u8).collect()
}

fn sealed(header: &Header) -> Vec<u8> {
    let mut out = vec![0; header.sealed_len()];
    assert_eq!(seal(header, &payload(header), &mut out), Ok(out.len()));
    out
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn headers_survive_the_round_trip(header in header()) {
        let mut out = [0; MAX_HEADER_BYTES];
        let length = encode(&header, &mut out).unwrap();
        prop_assert_eq!(length, header.encoded_len());
        prop_assert_eq!(decode(&out[..length]), Ok((header, length)));
    }

    #[test]
    fn datagrams_survive_the_round_trip(header in header()) {
        let (datagram, payload) = (sealed(&header), payload(&header));
        prop_assert_eq!(open(&datagram), Ok((header, payload.as_slice())));
    }

    #[test]
    fn any_flipped_bit_is_refused(header in header()) {
        let mut datagram = sealed(&header);
        for bit in 0..datagram.len() * 8 {
            datagram[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(open(&datagram).is_err(), "bit {} of {:?}", bit, header);
            datagram[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn datagrams_of_another_length_are_refused(header in header(), cut in any::<prop::sample::Index>()) {
        let mut datagram = sealed(&header);
        prop_assert!(open(&datagram[..cut.index(datagram.len())]).is_err());
        datagram.push(0);
        prop_assert!(open(&datagram).is_err());
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..128)) {
        let _ = decode(&bytes);
        let _ = open(&bytes);
    }

    /// A header has 15 bytes up to the packet number, then 8 in the short form or 26 in the long
    /// one, 16 of region and address, and 8 of a credit or 3 of the order of packets.
    #[test]
    fn whole_ops_have_the_short_form_if_their_number_is_near((seq, segment) in whole()) {
        let header = Header {
            flow: FlowId::new(1),
            seq: PacketNumber::new(seq),
            body: Body::Data(segment),
        };
        let distance = i128::from(seq.wrapping_sub(segment.op.get()) as i64);
        let near = (-(1i128 << 47)..1 << 47).contains(&distance);
        let region = matches!(segment.kind, SegmentKind::Write { .. } | SegmentKind::ReadRequest { .. })
            || operands(&segment.kind).is_some();
        let asks = matches!(segment.kind, SegmentKind::ReadRequest { .. } | SegmentKind::Cancel);
        let mut expected = if near && !asks { 23 } else { 41 };
        expected += if region { 16 } else { 0 };
        expected += match segment.attached {
            None => 0,
            Some(Attached::Credit(_)) => 8,
            Some(Attached::Order(_)) => 3,
        };
        prop_assert_eq!(header.encoded_len(), expected);
    }

    /// Arbitrary fields after a valid start: decoded packets are legal and encode to the same
    /// bytes.
    #[test]
    fn decoded_packets_encode_to_the_same_bytes(
        kind in prop_oneof![
            1u8..=14,
            0x81u8..=0x84,
            0xc1u8..=0xc6,
            26u8..=27,
            prop::sample::select(vec![0x11u8, 0x12, 0x14, 0x1d, 0x1e, 0x91, 0x92, 0x94, 0x9d, 0x9e]),
        ],
        mut bytes in prop::collection::vec(any::<u8>(), 63),
        level in 0u8..32,
    ) {
        bytes.splice(0..0, [0, 1, kind]);
        if kind == 5 {
            bytes[56] = level;
            bytes[38] |= 1;
            bytes[39] = 0;
        }
        // Makes the operands of an atomic op and the address of its word valid.
        match kind & 0x1f {
            0x1d | 0x1e => {
                bytes[21..23].copy_from_slice(&[0, if kind & 1 == 1 { 16 } else { 8 }]);
                bytes[38] &= !7;
            }
            13 | 14 => {
                bytes[23..39].fill(0);
                let operands = if kind == 13 { 16 } else { 8 };
                bytes[38..41].copy_from_slice(&[operands, 0, operands]);
                bytes[56] &= !7;
            }
            _ => {}
        }
        if kind == 9 {
            bytes[47] = level % 16;
            bytes[46] |= 1;
            bytes[23] = 1;
            bytes[48..].fill(0);
        }
        if let Ok((header, length)) = decode(&bytes) {
            let mut out = [0; MAX_HEADER_BYTES];
            prop_assert_eq!(encode(&header, &mut out), Ok(length));
            prop_assert_eq!(&out[..length], &bytes[..length]);
        }
    }
}
