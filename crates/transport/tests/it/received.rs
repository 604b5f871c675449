//! The SACK bitmap (Swift §3.6) against sets of packet numbers.

use std::collections::HashSet;

use apus_transport::received::{AckedPackets, ReceivedPackets, Recorded};
use apus_units::PacketNumber;
use proptest::prelude::*;

use crate::support::config;

fn pn(n: u64) -> PacketNumber {
    PacketNumber::new(n)
}

/// Returns the packet numbers that a bitmap reports as received.
fn members(largest: u64, bitmap: u128) -> HashSet<u64> {
    (0..128).filter(|i| bitmap >> i & 1 == 1).filter_map(|i| largest.checked_sub(i)).collect()
}

/// Largest packet number that an endpoint accepts.
const LAST_ACCEPTED: u64 = 1 << 62;

/// Packet numbers at which a shift, a sum or a difference could leave its range: the ends of 32 and
/// 64 bits, the largest accepted number, and their neighbours.
const EDGES: [u64; 8] = [0, 1, 127, 1 << 32, LAST_ACCEPTED, 1 << 63, u64::MAX - 1, u64::MAX];

/// The first packet number: near 0, or within 1000 of an edge.
fn first() -> impl Strategy<Value = u64> {
    let near = (prop::sample::select(EDGES.to_vec()), -1000i64..=1000)
        .prop_map(|(edge, away)| edge.saturating_add_signed(away));
    prop_oneof![0u64..2_000, near]
}

/// Packet numbers as on a real network: mostly the next number, some jumps, some late packets.
fn arrivals() -> impl Strategy<Value = Vec<u64>> {
    let step = prop_oneof![
        10 => Just(1i64),
        4 => -3i64..=3,
        2 => -140i64..=140,
        1 => -600i64..=600,
        1 => -1_000_000_000i64..=1_000_000_000,
        1 => (32u32..63, -140i64..=140, any::<bool>()).prop_map(|(bit, away, back)| {
            let step = (1i64 << bit) + away;
            if back { -step } else { step }
        }),
    ];
    (first(), prop::collection::vec(step, 1..300)).prop_map(|(start, steps)| {
        let mut n = start;
        let mut numbers = vec![n];
        for step in steps {
            n = n.saturating_add_signed(step);
            numbers.push(n);
        }
        numbers
    })
}

#[test]
fn swift_3_6_nothing_is_received_at_first() {
    let received = ReceivedPackets::default();
    assert_eq!((received.largest(), received.bitmap()), (None, 0));
    assert_eq!(AckedPackets::default().largest(), None);
}

#[test]
fn swift_3_6_bitmap_reads_from_the_largest_down() {
    let mut received = ReceivedPackets::default();
    for n in [10, 12, 13, 9] {
        assert_eq!(received.record(pn(n)), Recorded::New);
    }
    assert_eq!(received.largest(), Some(pn(13)));
    assert_eq!(received.bitmap(), 0b11011);
    assert_eq!(received.record(pn(12)), Recorded::Duplicate);
    assert_eq!(received.record(pn(13 + 127)), Recorded::New);
    assert_eq!(received.record(pn(13)), Recorded::Duplicate, "127 behind is still known");
    assert_eq!(received.record(pn(12)), Recorded::TooOld, "128 behind is not");
}

#[test]
fn swift_3_6_each_packet_is_acknowledged_once_oldest_first() {
    let mut acked = AckedPackets::default();
    let numbers = |newly: apus_transport::received::NewlyAcked| {
        newly.map(PacketNumber::get).collect::<Vec<_>>()
    };
    assert_eq!(numbers(acked.on_ack(pn(3), 0b1011)), [0, 2, 3]);
    assert_eq!(numbers(acked.on_ack(pn(4), 0b11111)), [1, 4]);
    assert!(numbers(acked.on_ack(pn(3), 0b1011)).is_empty(), "a stale ACK");
    assert_eq!(numbers(acked.on_ack(pn(1_000), 1)), [1_000], "a window that jumped");
    assert_eq!(acked.largest(), Some(pn(1_000)));
    assert_eq!(numbers(acked.on_ack(pn(872), 1)), [872], "128 behind counts");
    assert_eq!(numbers(acked.on_ack(pn(872), 1 << 127 | 1)), [745], "255 behind is the last");
    assert!(numbers(acked.on_ack(pn(744), 1)).is_empty(), "256 behind is not stored");
}

#[test]
fn swift_3_6_a_bit_below_packet_0_is_ignored() {
    let newly = AckedPackets::default().on_ack(pn(2), u128::MAX);
    assert_eq!(newly.len(), 3);
    assert_eq!(newly.map(PacketNumber::get).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn an_ack_that_names_no_packet_changes_nothing() {
    let mut acked = AckedPackets::default();
    // Packets 1 and 0 are not among the bits; all other bits lie below 0.
    assert_eq!(acked.on_ack(pn(1), u128::MAX << 2).len(), 0);
    assert_eq!(acked.largest(), None);
    assert_eq!(acked.on_ack(pn(0), 1).map(PacketNumber::get).collect::<Vec<_>>(), [0]);
}

/// Two packets at every distance up to more than both bitmaps, and at 2^32 more, at every edge, in
/// both orders.
#[test]
fn swift_3_6_a_packet_is_known_at_127_behind_and_acknowledged_at_255() {
    for edge in EDGES {
        for distance in (0..=600).chain(1 << 32..=(1 << 32) + 600) {
            let pairs = [
                (edge.checked_sub(distance).map(|older| (older, edge))),
                (edge.checked_add(distance).map(|newer| (edge, newer))),
            ];
            for (older, newer) in pairs.into_iter().flatten() {
                let what = format!("{older} and {newer}");
                let mut received = ReceivedPackets::default();
                received.record(pn(newer));
                let expected = match distance {
                    0 => Recorded::Duplicate,
                    1..=127 => Recorded::New,
                    _ => Recorded::TooOld,
                };
                assert_eq!(received.record(pn(older)), expected, "{what}");
                assert_eq!(received.contains(pn(older)), distance <= 127, "{what}");
                let mut received = ReceivedPackets::default();
                received.record(pn(older));
                received.record(pn(newer));
                let bit = if distance <= 127 { 1u128 << distance } else { 0 };
                assert_eq!(received.bitmap(), bit | 1, "{what}");
                assert_eq!(received.contains(pn(older)), distance <= 127, "{what}");

                let mut acked = AckedPackets::default();
                assert_eq!(acked.on_ack(pn(newer), 1).count(), 1, "{what}");
                let late = acked.on_ack(pn(older), 1).count();
                assert_eq!(late, usize::from((1..=255).contains(&distance)), "{what}");
                let mut acked = AckedPackets::default();
                assert_eq!(acked.on_ack(pn(older), 1).count(), 1, "{what}");
                let bits = if distance <= 127 { 1 | 1 << distance } else { 1 };
                let newly = acked.on_ack(pn(newer), bits).map(PacketNumber::get);
                let expected = if distance == 0 { vec![] } else { vec![newer] };
                assert_eq!(newly.collect::<Vec<_>>(), expected, "{what}: each once");
                assert_eq!(acked.on_ack(pn(older), 1).count(), 0, "{what}: each once");
            }
        }
    }
}

proptest! {
    #![proptest_config(config(500))]

    #[test]
    fn receiver_behaves_like_a_set(numbers in arrivals()) {
        let mut received = ReceivedPackets::default();
        let mut model = HashSet::new();
        let mut largest: Option<u64> = None;
        for n in numbers {
            let expected = match largest {
                Some(largest) if n < largest && largest - n > 127 => Recorded::TooOld,
                _ if model.insert(n) => Recorded::New,
                _ => Recorded::Duplicate,
            };
            prop_assert_eq!(received.record(pn(n)), expected);
            largest = largest.max(Some(n));
            let top = largest.unwrap();
            prop_assert_eq!(received.largest(), Some(pn(top)));
            let window: HashSet<u64> = model.iter().copied().filter(|n| top - n <= 127).collect();
            prop_assert_eq!(members(top, received.bitmap()), window);
        }
    }

    /// Any (largest, bitmap), in any order: each number is yielded once, and every number within
    /// the record is yielded.
    #[test]
    fn sender_behaves_like_a_set_for_arbitrary_acks(
        numbers in arrivals(),
        bitmaps in prop::collection::vec(any::<u128>(), 301),
    ) {
        let mut acked = AckedPackets::default();
        let mut model = HashSet::new();
        let mut top = 0;
        for (n, bitmap) in numbers.into_iter().zip(bitmaps) {
            let newly: Vec<u64> = acked.on_ack(pn(n), bitmap).map(PacketNumber::get).collect();
            if bitmap != 0 {
                top = top.max(n);
            }
            let mut expected: Vec<u64> = members(n, bitmap)
                .into_iter()
                .filter(|n| (*n >= top || top - n <= 255) && model.insert(*n))
                .collect();
            expected.sort_unstable();
            prop_assert_eq!(newly, expected);
        }
    }

    /// From receiver to sender with ACKs that are lost, repeated and late: no number is yielded
    /// twice, and after one more ACK the sender knows all numbers in the receiver's bitmap.
    #[test]
    fn swift_3_6_sender_learns_the_received_packets(
        numbers in arrivals(),
        fates in prop::collection::vec(0usize..6, 301),
    ) {
        let mut received = ReceivedPackets::default();
        let mut acked = AckedPackets::default();
        let mut arrived = HashSet::new();
        let mut learned = HashSet::new();
        let mut acks = Vec::new();
        for (n, fate) in numbers.into_iter().zip(fates) {
            if received.record(pn(n)) == Recorded::New {
                arrived.insert(n);
            }
            acks.push((received.largest().unwrap(), received.bitmap()));
            // Fate 0 loses this ACK; other values deliver it or an older one in its place.
            if fate > 0 {
                let (largest, bitmap) = acks[acks.len().saturating_sub(fate)];
                for newly in acked.on_ack(largest, bitmap) {
                    prop_assert!(arrived.contains(&newly.get()));
                    prop_assert!(learned.insert(newly.get()), "{} twice", newly);
                }
            }
        }
        let (largest, bitmap) = (received.largest().unwrap(), received.bitmap());
        learned.extend(acked.on_ack(largest, bitmap).map(PacketNumber::get));
        prop_assert!(members(largest.get(), bitmap).is_subset(&learned));
    }
}
