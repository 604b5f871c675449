//! Packet numbers of a session: 32 bits on the wire, 64 bits in the nonce, each accepted once.

use super::protect::epoch_of;

/// Number of the newest packets among which replays are recognised; older packets are refused.
/// deviation: RFC 4303 §3.4.3 recommends at least 64; 2048 packets of 9000 B are 1.5 ms at 100 Gb/s,
/// far more than paths of one fabric reorder.
pub(crate) const WINDOW: u64 = 2048;

/// As [`WINDOW`], for a session that uses several ports. Its packets take paths whose delays differ more.
/// deviation: no source; twice the largest range of packet numbers of a flow (16384), or 32 times the default range (1024).
pub(crate) const WIDE_WINDOW: u64 = 1 << 15;

const WORDS: usize = (WINDOW / 64) as usize;
const WIDE_WORDS: usize = (WIDE_WINDOW / 64) as usize;

/// Returns the number of a packet whose low 32 bits are `low`: the number nearest to the one after `largest` (RFC 9000,
/// App. A.3, with 32 bits).
pub(crate) fn expand(low: u32, largest: Option<u64>) -> u64 {
    const HALF: u64 = 1 << 31;
    const WHOLE: u64 = 1 << 32;
    let expected = largest.map_or(0, |l| l.saturating_add(1));
    let candidate = expected & !(WHOLE - 1) | u64::from(low);
    if candidate.saturating_add(HALF) <= expected && candidate <= u64::MAX - WHOLE {
        candidate + WHOLE
    } else if candidate > expected.saturating_add(HALF) && candidate >= WHOLE {
        candidate - WHOLE
    } else {
        candidate
    }
}

/// The accepted numbers among the newest [`WINDOW`], or [`WIDE_WINDOW`].
#[derive(Clone, Debug, Default)]
pub(crate) struct ReplayWindow {
    /// The largest number accepted.
    largest: Option<u64>,
    /// A ring of one bit per number. The position of a number is the number modulo the size of the ring.
    seen: [u64; WORDS],
    /// The wide ring, which replaces `seen` if it is present.
    wide: Option<Box<[u64; WIDE_WORDS]>>,
}

impl ReplayWindow {
    /// Returns the largest number accepted.
    #[inline]
    pub(crate) fn largest(&self) -> Option<u64> {
        self.largest
    }

    /// Makes the window wide. Numbers older than those of the narrow window count as accepted.
    fn widen(&mut self) {
        if self.wide.is_some() {
            return;
        }
        let mut wide = match self.largest {
            Some(_) => Box::new([u64::MAX; WIDE_WORDS]),
            None => Box::new([0; WIDE_WORDS]),
        };
        if let Some(largest) = self.largest {
            let first = largest.saturating_sub(WINDOW - 1);
            for number in (first..=largest).filter(|&number| self.is_new(number)) {
                wide[place(number, WIDE_WORDS)] &= !bit(number);
            }
        }
        self.wide = Some(wide);
    }

    #[inline]
    fn ring(&self) -> &[u64] {
        match &self.wide {
            Some(wide) => &wide[..],
            None => &self.seen,
        }
    }

    #[inline]
    fn ring_mut(&mut self) -> &mut [u64] {
        match &mut self.wide {
            Some(wide) => &mut wide[..],
            None => &mut self.seen,
        }
    }

    /// Returns `true` if `number` was not accepted before and is recent enough for the window to know this.
    #[inline]
    pub(crate) fn is_new(&self, number: u64) -> bool {
        let Some(largest) = self.largest else { return true };
        if number > largest {
            return true;
        }
        let ring = self.ring();
        largest - number < 64 * ring.len() as u64
            && ring[place(number, ring.len())] & bit(number) == 0
    }

    /// Records that `number` was accepted. The packet must be authentic, and the number must satisfy [`Self::is_new`].
    #[inline]
    pub(crate) fn accept(&mut self, number: u64) {
        debug_assert!(self.is_new(number), "a packet was opened that the window refuses");
        let next = self.largest.map_or(0, |l| l + 1);
        if number >= next {
            self.forget(next, number);
            self.largest = Some(number);
        }
        let ring = self.ring_mut();
        ring[place(number, ring.len())] |= bit(number);
    }

    /// Clears the bits of the numbers `from..=to`, which replace older numbers.
    fn forget(&mut self, from: u64, to: u64) {
        let ring = self.ring_mut();
        let words = ring.len();
        if to - from >= 64 * words as u64 {
            ring.fill(0);
            return;
        }
        let mut at = from;
        while at <= to {
            let end = (at | 63).min(to);
            let bits = end - at + 1;
            let mask = if bits == 64 { u64::MAX } else { ((1 << bits) - 1) << (at % 64) };
            ring[place(at, words)] &= !mask;
            at = end + 1;
        }
    }
}

/// The replay windows of the current key epoch and of the previous one. Both are needed because a change of key may skip
/// numbers, and reordered packets of the old key are still accepted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accepted {
    epoch: u64,
    present: ReplayWindow,
    before: ReplayWindow,
}

impl Accepted {
    /// Returns the largest number accepted.
    #[inline]
    pub(crate) fn largest(&self) -> Option<u64> {
        self.present.largest()
    }

    /// Makes the windows wide, for packets on paths that differ.
    pub(crate) fn widen(&mut self) {
        self.present.widen();
        self.before.widen();
    }

    /// Returns `true` if `number` was not accepted before and is recent enough for its window to know this.
    #[inline]
    pub(crate) fn is_new(&self, number: u64) -> bool {
        let epoch = epoch_of(number);
        if epoch == self.epoch {
            self.present.is_new(number)
        } else if epoch + 1 == self.epoch {
            self.before.is_new(number)
        } else {
            epoch > self.epoch
        }
    }

    /// Records that `number` was accepted. The packet must be authentic, and the number must satisfy [`Self::is_new`].
    #[inline]
    pub(crate) fn accept(&mut self, number: u64) {
        let epoch = epoch_of(number);
        if epoch > self.epoch {
            let last = core::mem::take(&mut self.present);
            if last.wide.is_some() {
                self.present.widen();
            }
            self.before = if epoch == self.epoch + 1 { last } else { self.present.clone() };
            self.epoch = epoch;
        }
        if epoch == self.epoch {
            self.present.accept(number);
        } else {
            self.before.accept(number);
        }
    }
}

/// Returns the index of the word that holds the bit of `number`, in a ring of `words` words. `words` is a power of two.
#[inline]
fn place(number: u64, words: usize) -> usize {
    (number / 64) as usize & (words - 1)
}

fn bit(number: u64) -> u64 {
    1 << (number % 64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_skipped_at_a_change_of_key_cost_nothing() {
        let next = 1 << 22;
        let mut accepted = Accepted::default();
        for number in [0, 5, next + 3, 7, next] {
            assert!(accepted.is_new(number));
            accepted.accept(number);
            assert!(!accepted.is_new(number));
        }
        assert_eq!(accepted.largest(), Some(next + 3));
        assert!(!accepted.is_new(5) && accepted.is_new(6));
        accepted.accept(2 * next);
        assert!(!accepted.is_new(6), "its key is forgotten");
        assert!(accepted.is_new(next + 1) && !accepted.is_new(next));
        accepted.accept(5 * next);
        assert!(!accepted.is_new(2 * next) && accepted.is_new(4 * next));
    }

    /// The examples of RFC 9000, App. A.3, and of its text, adapted to 32 bits.
    #[test]
    fn rfc_9000_a_3_numbers_are_expanded_to_the_nearest() {
        assert_eq!(expand(0, None), 0);
        assert_eq!(expand(7, None), 7);
        assert_eq!(expand(0x8309_b32f, Some(0xa_8309_b30e)), 0xa_8309_b32f);
        assert_eq!(expand(0, Some(0xffff_ffff)), 0x1_0000_0000, "the low bits wrap");
        assert_eq!(expand(0xffff_ffff, Some(0x1_0000_0000)), 0xffff_ffff, "a late one");
        assert_eq!(expand(0xffff_ffff, Some(3)), 0xffff_ffff, "never below zero");
        assert_eq!(expand(1, Some(u64::MAX)), 0xffff_ffff_0000_0001, "never beyond the last");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_number_within_half_the_range_is_found(
            largest in 0..u64::MAX - (1 << 33), away in -(1i64 << 31) + 1..1 << 31,
        ) {
            if let Some(number) = (largest + 1).checked_add_signed(away) {
                prop_assert_eq!(expand(number as u32, Some(largest)), number);
            }
        }

        /// Compares the window with a set that keeps all numbers.
        #[test]
        fn the_window_accepts_what_a_set_does(
            widens_after in prop_oneof![Just(usize::MAX), 0..300usize],
            start in prop_oneof![Just(0u64), any::<u32>().prop_map(u64::from)],
            steps in prop::collection::vec(prop_oneof![
                8 => -40i64..80, 2 => -2_100i64..2_100, 1 => -33_000i64..0, 1 => 0i64..10_000,
            ], 1..300),
        ) {
            let (mut window, mut seen) = (ReplayWindow::default(), BTreeSet::new());
            // The numbers that the window knows: their count, and the first one. Older numbers count as accepted.
            let (mut count, mut first) = (WINDOW, 0);
            for (n, step) in steps.into_iter().enumerate() {
                if n == widens_after {
                    window.widen();
                    first = window.largest().map_or(0, |largest| largest.saturating_sub(WINDOW - 1));
                    count = WIDE_WINDOW;
                }
                let base = window.largest().unwrap_or(start);
                let number = base.saturating_add_signed(step);
                let largest = seen.last().copied();
                let recent =
                    largest.is_none_or(|l| number > l || l - number < count && number >= first);
                prop_assert_eq!(window.is_new(number), recent && !seen.contains(&number));
                if window.is_new(number) {
                    window.accept(number);
                    seen.insert(number);
                }
            }
        }
    }
}
