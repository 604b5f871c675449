//! Flows that spread their packets over several paths: policy, loss detection, and the packet numbers that
//! may be out of order.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use apus_cc::{Ev, PathPolicy};
use apus_units::{PacketNumber, Span, Time};

use crate::received::Recorded;

/// How a flow whose packets overtake each other detects losses without a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossRule {
    /// A packet is lost once a packet sent this many numbers later is acknowledged (RFC 9002 §6.1.1).
    Count(u64),
    /// A packet is lost once a packet sent this much later is acknowledged (RACK, RFC 8985 §6.2).
    Time(Span),
    /// A packet is lost once a later packet with its entropy value is acknowledged: a path keeps the order.
    EvOrder,
    /// Only timeouts detect losses.
    Timeout,
}

/// Settings of a flow that spreads its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpreadConfig {
    /// Loss detection.
    pub loss: LossRule,
    /// Packet numbers from the oldest in flight to the newest, and those that the receiver remembers; a
    /// power of two from [`MIN_RANGE`] to [`MAX_RANGE`]. The sender stops at the edge.
    pub range: u32,
}

/// Smallest [`SpreadConfig::range`]: the bitmap of an acknowledgement.
pub const MIN_RANGE: u32 = u128::BITS;
/// Largest [`SpreadConfig::range`] (uet-htsim 40ccb05: 16384).
pub const MAX_RANGE: u32 = 16_384;
/// Default of [`SpreadConfig::range`] (Falcon, isekai v1.1: senders track 1024 packets).
pub const DEFAULT_RANGE: u32 = 1024;

/// The path of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// The flow's only path, with the label of its algorithm.
    Label(u32),
    /// Any of several paths, by this entropy value.
    Spread(Ev),
    /// A packet that answers one which came by the path of this number.
    Back(u32),
}

/// State of a flow that spreads its packets.
#[derive(Clone, Debug)]
pub(crate) struct Spread<P> {
    pub(crate) policy: P,
    pub(crate) config: SpreadConfig,
    pub(crate) reported: Reported,
    pub(crate) received: WideReceived,
    /// Entropy values of packets that were just declared lost.
    pub(crate) lost: Vec<Ev>,
    /// Path of the newest data packet of the peer.
    pub(crate) came_by: u32,
    /// Entropy value of the packet that was sent last.
    pub(crate) latest: Ev,
}

impl<P: PathPolicy> Spread<P> {
    pub(crate) fn new(mut policy: P, config: SpreadConfig, seed: u64) -> Self {
        policy.reseed(seed);
        Self {
            policy,
            config,
            reported: Reported::default(),
            received: WideReceived::new(config.range),
            lost: Vec::new(),
            came_by: 0,
            latest: Ev::default(),
        }
    }
}

/// Packets that the peer has acknowledged, as far as loss detection needs them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reported {
    /// The last acknowledgement's word.
    last: (u64, u128),
    /// Largest packet number acknowledged.
    pub(crate) largest: u64,
    /// Latest departure of an acknowledged packet.
    pub(crate) latest_sent_at: Time,
}

impl Reported {
    /// Returns the packets of an acknowledgement's word that the word before did not contain, the largest
    /// first: bit i stands for `largest - i`.
    pub(crate) fn newly(
        &mut self,
        (largest, bitmap): (PacketNumber, u128),
    ) -> impl Iterator<Item = u64> + use<> {
        let largest = largest.get();
        let (last, known) = self.last;
        let shift = |by: u64| u32::try_from(by).unwrap_or(u32::MAX);
        let known = match largest.checked_sub(last) {
            Some(ahead) => known.checked_shl(shift(ahead)),
            None => known.checked_shr(shift(last - largest)),
        };
        let mut new = bitmap & !known.unwrap_or(0);
        self.last = (largest, bitmap);
        core::iter::from_fn(move || {
            let lowest = (new != 0).then(|| new.trailing_zeros())?;
            new &= new - 1;
            largest.checked_sub(u64::from(lowest))
        })
    }
}

/// The data packets that a receiver has received, of the last `range` numbers.
#[derive(Clone, Debug)]
pub(crate) struct WideReceived {
    /// Bit n modulo the range: packet n was received.
    words: Box<[u64]>,
    largest: Option<u64>,
}

impl WideReceived {
    /// `range` is a power of two, at least [`MIN_RANGE`].
    fn new(range: u32) -> Self {
        Self { words: vec![0; (range / u64::BITS) as usize].into(), largest: None }
    }

    fn range(&self) -> u64 {
        self.words.len() as u64 * u64::from(u64::BITS)
    }

    fn bit(&self, number: u64) -> (usize, u64) {
        let place = number & (self.range() - 1);
        ((place / u64::from(u64::BITS)) as usize, 1 << (place % u64::from(u64::BITS)))
    }

    fn has(&self, number: u64) -> bool {
        let (word, bit) = self.bit(number);
        self.words[word] & bit != 0
    }

    /// Records a packet that has arrived and returns whether it is new.
    pub(crate) fn record(&mut self, packet: PacketNumber) -> Recorded {
        let number = packet.get();
        let next = self.largest.map_or(0, |largest| largest + 1);
        if number >= next {
            // The numbers between were not received; their bits are of numbers one range before.
            if number - next >= self.range() {
                self.words.fill(0);
            } else {
                for skipped in next..number {
                    let (word, bit) = self.bit(skipped);
                    self.words[word] &= !bit;
                }
            }
            self.largest = Some(number);
        } else if next - number > self.range() {
            return Recorded::TooOld;
        } else if self.has(number) {
            return Recorded::Duplicate;
        }
        let (word, bit) = self.bit(number);
        self.words[word] |= bit;
        Recorded::New
    }

    /// Returns the word of an acknowledgement that `echo` drew: a received number, and in bit i whether
    /// that number minus i was received. The word has `echo` in it, in its middle if later numbers arrived.
    pub(crate) fn word(&self, echo: PacketNumber) -> (PacketNumber, u128) {
        let echo = echo.get();
        let highest = self.largest.unwrap_or(echo).min(echo + u64::from(u64::BITS) - 1);
        let top = (echo..=highest).rev().find(|&number| self.has(number)).unwrap_or(echo);
        let oldest = self.largest.map_or(0, |largest| (largest + 1).saturating_sub(self.range()));
        let span = (top - oldest.min(top)).min(u64::from(u128::BITS) - 1);
        let bits =
            (0..=span).filter(|back| self.has(top - back)).fold(0, |bits, back| bits | 1 << back);
        (PacketNumber::new(top), bits | 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
