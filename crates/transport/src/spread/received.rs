//! Packet numbers that a receiver records if packets may overtake each other, and the times of its
//! acknowledgements.

use alloc::boxed::Box;
use alloc::vec;

use apus_units::PacketNumber;
use apus_wire::Order;

use crate::received::Recorded;

/// Bits of a word of the record.
const WORD: u64 = u64::BITS as u64;

/// The data packets that a receiver has received, for the last `range` packet numbers.
#[derive(Clone, Debug)]
pub(crate) struct WideReceived {
    /// Bit n modulo the range is set if packet n was received.
    words: Box<[u64]>,
    /// As `words`, for packets that arrived trimmed; empty before the first one.
    trimmed: Box<[u64]>,
    /// The largest number that arrived, whole or trimmed.
    largest: Option<u64>,
    /// The first number that the sender awaits and that has not arrived whole.
    awaited: u64,
}

impl WideReceived {
    /// Returns an empty record. `range` is a power of two, at least
    /// [`MIN_RANGE`](super::MIN_RANGE).
    pub(crate) fn new(range: u32) -> Self {
        let words = vec![0; (range / u64::BITS) as usize].into();
        Self { words, trimmed: Box::default(), largest: None, awaited: 0 }
    }

    fn range(&self) -> u64 {
        self.words.len() as u64 * WORD
    }

    fn bit(&self, number: u64) -> (usize, u64) {
        let place = number & (self.range() - 1);
        ((place / WORD) as usize, 1 << (place % WORD))
    }

    /// Returns `true` if a number within the range was received.
    fn has(&self, number: u64) -> bool {
        let (word, bit) = self.bit(number);
        self.words[word] & bit != 0
    }

    /// Returns `true` if a packet was received, as far as that is known.
    pub(crate) fn contains(&self, packet: PacketNumber) -> bool {
        let number = packet.get();
        let known = self.largest.filter(|&largest| number <= largest);
        known.is_some_and(|largest| largest - number < self.range()) && self.has(number)
    }

    /// Records a packet that has arrived and returns whether it is new.
    pub(crate) fn record(&mut self, packet: PacketNumber) -> Recorded {
        let number = packet.get();
        if self.extend(number) {
            // No larger number had arrived.
        } else if self.is_too_old(number) {
            return Recorded::TooOld;
        } else if self.has(number) {
            return Recorded::Duplicate;
        }
        let (word, bit) = self.bit(number);
        self.words[word] |= bit;
        self.advance();
        Recorded::New
    }

    /// Extends the record to `number` if no larger number has arrived; returns `false` otherwise.
    fn extend(&mut self, number: u64) -> bool {
        let next = self.largest.map_or(0, |largest| largest + 1);
        if number < next {
            return false;
        }
        // The new numbers were not received; their bits still belong to numbers one range earlier.
        if number - next >= self.range() {
            self.words.fill(0);
            self.trimmed.fill(0);
        } else {
            for new in next..=number {
                let (word, bit) = self.bit(new);
                self.words[word] &= !bit;
                if let Some(trimmed) = self.trimmed.get_mut(word) {
                    *trimmed &= !bit;
                }
            }
        }
        self.largest = Some(number);
        true
    }

    fn is_too_old(&self, number: u64) -> bool {
        self.largest.is_some_and(|largest| number + self.range() <= largest)
    }

    /// Records that the sender awaits no number below this one: missing ones will never arrive.
    pub(crate) fn give_up_below(&mut self, awaited: u64) {
        if awaited > self.awaited {
            self.awaited = awaited;
            self.advance();
        }
    }

    /// Moves the first awaited number past all numbers that have arrived.
    fn advance(&mut self) {
        let Some(largest) = self.largest else { return };
        // Numbers that have left the range are given up.
        self.awaited = self.awaited.max((largest + 1).saturating_sub(self.range()));
        while self.awaited <= largest {
            let (word, bit) = self.bit(self.awaited);
            let offset = bit.trailing_zeros();
            let here = u64::from((self.words[word] >> offset).trailing_ones());
            self.awaited += here;
            if here < WORD - u64::from(offset) {
                break;
            }
        }
        self.awaited = self.awaited.min(largest + 1);
    }

    /// Records that a packet arrived trimmed: it was not received, and never will be.
    pub(crate) fn note_trimmed(&mut self, packet: PacketNumber) {
        let number = packet.get();
        if !self.extend(number) && (self.is_too_old(number) || self.has(number)) {
            return;
        }
        if self.trimmed.is_empty() {
            self.trimmed = vec![0; self.words.len()].into();
        }
        let (word, bit) = self.bit(number);
        self.trimmed[word] |= bit;
    }

    /// Returns `true` if every awaited number up to the largest has arrived, whole or trimmed.
    pub(crate) fn is_complete(&self) -> bool {
        let Some(largest) = self.largest else { return true };
        let mut number = self.awaited;
        while number <= largest {
            let (word, bit) = self.bit(number);
            let offset = bit.trailing_zeros();
            let here = self.words[word] | self.trimmed.get(word).copied().unwrap_or(0);
            let here = u64::from((here >> offset).trailing_ones());
            number += here;
            if here < WORD - u64::from(offset) {
                break;
            }
        }
        number > largest
    }

    /// Returns the number of packet numbers from the first awaited and missing one up to `top`; 0
    /// if none is missing.
    pub(crate) fn missing(&self, top: PacketNumber) -> u16 {
        let behind = (top.get() + 1).saturating_sub(self.awaited);
        u16::try_from(behind).unwrap_or(u16::MAX)
    }

    /// Returns a bitmap of the recorded numbers up to `last`: bit i is set if `last - i` was
    /// received. `last` is at most the largest number.
    fn up_to(&self, last: u64) -> u128 {
        // The 128 numbers up to `last` lie in at most three words, the earliest number in the
        // lowest bit.
        let first = last.wrapping_sub(u64::from(u128::BITS) - 1);
        let words = self.words.len();
        let start = ((first & (self.range() - 1)) / WORD) as usize;
        let word = |i: usize| u128::from(self.words[(start + i) % words]);
        let shift = (first % WORD) as u32;
        let low = (word(0) | word(1) << WORD) >> shift;
        let high = if shift == 0 { 0 } else { word(2) << (u128::BITS - shift) };
        let bits = (low | high).reverse_bits();
        // The bits of numbers that are older than the record, or below 0, belong to other numbers.
        let oldest = self.largest.map_or(0, |largest| (largest + 1).saturating_sub(self.range()));
        let span = (last - oldest.min(last)).min(u64::from(u128::BITS) - 1) as u32;
        bits & u128::MAX >> (u128::BITS - 1 - span)
    }

    /// Returns the largest packet number and the bitmap of an acknowledgement that packet `echo`
    /// caused: a received number, and in bit i whether that number minus i was received. The bitmap
    /// contains `echo`, in its middle if later numbers arrived; if the first awaited number is
    /// later, it begins with that (uet-htsim 40ccb05, `sackBitmapBase`).
    pub(crate) fn word(&self, echo: PacketNumber) -> (PacketNumber, u128) {
        let echo = echo.get();
        let far = (echo + WORD - 1).max(self.awaited.saturating_add(u64::from(u128::BITS) - 1));
        let highest = self.largest.unwrap_or(echo).min(far);
        let known = self.up_to(highest);
        if known == 0 {
            return (PacketNumber::new(echo), 1);
        }
        let top = highest - u64::from(known.trailing_zeros());
        (PacketNumber::new(top), self.up_to(top) | 1)
    }
}

/// When a receiver acknowledges (uet-htsim 40ccb05, `processData`): after `every` bytes of payload.
/// It also acknowledges immediately the first packet, a marked packet, a packet after which the
/// sender waits, the packet that then closes the last hole, and a repeated packet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckPace {
    /// Payload bytes after which an acknowledgement is due; 0: each packet causes one.
    every: u32,
    /// Payload bytes since the last acknowledgement.
    bytes: u32,
    has_begun: bool,
    /// Whether the sender waited for an acknowledgement while packets were missing.
    is_awaited: bool,
}

impl AckPace {
    /// Returns the initial state. `every`: payload bytes after which an acknowledgement is due; 0:
    /// each packet causes one.
    pub(crate) fn new(every: u32) -> Self {
        Self { every, ..Self::default() }
    }

    /// Counts a packet with this payload. `is_complete` returns `true` if no awaited packet up to
    /// the largest is missing. Returns `true` if an acknowledgement is due.
    pub(crate) fn on_packet(
        &mut self,
        payload: u32,
        (is_new, marked): (bool, bool),
        order: Order,
        is_complete: impl FnOnce() -> bool,
    ) -> bool {
        if self.every == 0 {
            return true;
        }
        self.bytes = self.bytes.saturating_add(payload);
        self.is_awaited |= order.ack_now;
        let closes = self.is_awaited && is_complete();
        self.is_awaited &= !closes;
        let first = !core::mem::replace(&mut self.has_begun, true);
        let due = !is_new || marked || order.ack_now || closes || first || self.bytes >= self.every;
        if due {
            self.bytes = 0;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spread::losses::Reported;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn number(n: u64) -> PacketNumber {
        PacketNumber::new(n)
    }

    #[test]
    fn packets_within_the_range_are_never_too_old() {
        let mut received = WideReceived::new(256);
        assert_eq!(received.record(number(300)), Recorded::New);
        assert_eq!(received.record(number(45)), Recorded::New); // 300 - 255
        assert_eq!(received.record(number(45)), Recorded::Duplicate);
        assert_eq!(received.record(number(44)), Recorded::TooOld);
        assert!(received.contains(number(45)) && !received.contains(number(44)));
        // Number 45 shares its bit with 301, which has not arrived.
        assert_eq!(received.record(number(302)), Recorded::New);
        assert_eq!(received.record(number(301)), Recorded::New);
        assert_eq!(received.record(number(10_000)), Recorded::New);
        assert_eq!(received.record(number(9_999)), Recorded::New);
    }

    #[test]
    fn a_word_lies_around_the_packet_that_drew_it() {
        let mut received = WideReceived::new(1024);
        for n in (0..400).filter(|n| n % 10 != 0) {
            received.record(number(n));
        }
        received.record(number(100));
        let (top, bits) = received.word(number(100));
        assert_eq!(top, number(163)); // 100 + 63
        assert_eq!(bits >> 63 & 1, 1); // 100 itself
        assert_eq!(bits >> 3 & 1, 0); // 160
        assert_eq!(bits >> 127 & 1, 1); // 36
        let mut reported = Reported::default();
        let first: Vec<u64> = reported.newly((top, bits)).collect();
        assert!(first.contains(&100) && !first.contains(&160) && first.contains(&36));
        received.record(number(160));
        let (top, bits) = received.word(number(160));
        let second: Vec<u64> = reported.newly((top, bits)).collect();
        assert!(second.contains(&160) && !second.contains(&100) && second.contains(&223));
    }

    /// Records packets from number `start` on, and compares the record with a set after each. Each
    /// step is added to the largest number, up to the last one that an endpoint accepts, 2^62.
    fn compare_with_a_set(range: u32, start: u64, steps: impl IntoIterator<Item = i64>) {
        let mut received = WideReceived::new(range);
        let mut here = alloc::collections::BTreeSet::new();
        for step in steps {
            let n = received.largest.unwrap_or(start).saturating_add_signed(step).min(1 << 62);
            let before = here.last().copied();
            let expected = match before {
                Some(largest) if n < largest && largest - n >= range.into() => Recorded::TooOld,
                _ if here.insert(n) => Recorded::New,
                _ => Recorded::Duplicate,
            };
            assert_eq!(received.record(number(n)), expected, "{n} after {before:?}");
            let largest = here.last().copied().expect("a packet has arrived");
            assert_eq!(received.largest, Some(largest));
            let oldest = (largest + 1).saturating_sub(u64::from(range));
            assert_eq!(received.contains(number(n)), n >= oldest);
            // The bitmap that is read word by word equals the one read bit by bit, at every position.
            // If nothing has arrived behind the first awaited number, only the packet itself is in it,
            // because the sender learns from the number of missing ones that all before it are settled.
            let (top, bits) = received.word(number(n));
            let is_alone = (top, bits) == (number(n), 1) && received.missing(top) == 0;
            for back in 1..128 {
                let expected =
                    top.get().checked_sub(back).is_some_and(|m| m >= oldest && here.contains(&m));
                let bit = bits >> back & 1 == 1;
                assert!(bit == expected || is_alone, "{top:?} - {back} of {n}");
            }
            assert_eq!(bits & 1, 1);
            let awaited = (oldest..=largest).find(|m| !here.contains(m)).unwrap_or(largest + 1);
            assert_eq!(received.awaited, awaited);
            assert_eq!(u64::from(received.missing(number(largest))), largest + 1 - awaited);
            here = here.split_off(&oldest);
        }
    }

    #[test]
    fn a_word_has_the_bit_of_each_number() {
        let mut random = apus_units::random::SplitMix64::new(3);
        for range in [128, 256, 1024] {
            let steps = (0..3000).map(|_| {
                let back = random.below(u64::from(range) + 20) as i64;
                (random.below(4) * random.below(40)) as i64 - back * (back % 2)
            });
            compare_with_a_set(range, 0, steps);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// From 0, across 2^32, and up to 2^62, with jumps of 2^32.
        #[test]
        fn a_record_agrees_with_a_set_at_the_ends_of_packet_numbers(
            range in (7u32..=14).prop_map(|log2| 1 << log2),
            start in prop_oneof![
                Just(0),
                (1u64 << 32) - 2_000..1 << 32,
                Just((1u64 << 62) - 10_000),
                0..1u64 << 61,
            ],
            steps in prop::collection::vec(prop_oneof![
                4 => Just(1i64),
                4 => -10i64..10,
                2 => -300i64..60,
                1 => -17_000i64..100,
                1 => (1i64 << 32)..(1 << 32) + 100,
            ], 1..100),
        ) {
            compare_with_a_set(range, start, steps);
        }
    }

    #[test]
    fn numbers_that_are_not_awaited_do_not_count_as_missing() {
        let mut received = WideReceived::new(128);
        for n in [0, 1, 4, 5] {
            received.record(number(n));
        }
        assert!(!received.is_complete());
        assert_eq!(received.missing(number(5)), 4); // 2 to 5
        received.give_up_below(3);
        assert_eq!(received.missing(number(5)), 3);
        // Packet 3 arrived trimmed: no awaited packet is missing, but packet 3 was not received.
        received.note_trimmed(number(3));
        assert!(received.is_complete());
        assert_eq!(received.missing(number(5)), 3);
        assert!(!received.contains(number(3)));
        received.give_up_below(4);
        assert!(received.is_complete());
        assert_eq!(received.missing(number(5)), 0);
    }

    /// 16384 B are four payloads of 4096 B.
    #[test]
    fn every_fourth_packet_is_acknowledged_and_some_at_once() {
        let mut pace = AckPace::new(16_384);
        let plain = Order::default();
        let asks = Order { ack_now: true, ..plain };
        let mut packet =
            |marked, order, complete| pace.on_packet(4096, (true, marked), order, || complete);
        assert!(packet(false, plain, true), "the first");
        assert_eq!([(); 4].map(|()| packet(false, plain, true)), [false, false, false, true]);
        assert!(packet(true, plain, true), "marked");
        assert!(!packet(false, plain, true));
        assert!(packet(false, asks, false), "asked for");
        assert!(!packet(false, plain, false));
        assert!(packet(false, plain, true), "the last hole is closed");
        assert!(!packet(false, plain, true), "once");
        assert!(pace.on_packet(4096, (false, false), plain, || true), "repeated");
    }
}
