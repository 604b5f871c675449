//! Links that lose, corrupt or hold back packets at random, with a random stream given at
//! construction.

use apus_units::Span;
use apus_units::random::SplitMix64;

use crate::counters::DropReason;

/// Random drops and delays of packets on a link. Each departure takes one number of the stream, so
/// the treatment of a packet depends only on the stream and on its position among the port's
/// departures.
#[derive(Clone, Debug)]
pub struct Impairment {
    /// Threshold: the impairment applies to packets whose 64-bit random draw is below it.
    threshold: u64,
    fate: Fate,
    stream: SplitMix64,
}

/// The effect of an impairment on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The packet is dropped.
    Drop(DropReason),
    /// The packet enters the link later by this span; later packets may overtake it.
    Hold(Span),
}

impl Impairment {
    /// Returns an impairment that loses packets with this probability, from 0 to 1; `seed` starts
    /// the random stream.
    #[must_use]
    pub fn loss(probability: f64, seed: u64) -> Self {
        Self::new(probability, Fate::Drop(DropReason::Loss), seed)
    }

    /// Returns an impairment that corrupts packets with this probability, from 0 to 1; the checksum
    /// at the far end detects it.
    #[must_use]
    pub fn corruption(probability: f64, seed: u64) -> Self {
        Self::new(probability, Fate::Drop(DropReason::Corruption), seed)
    }

    /// Returns an impairment that holds packets back by `delay` with this probability, from 0 to 1,
    /// so that later packets overtake them.
    #[must_use]
    pub fn reordering(probability: f64, delay: Span, seed: u64) -> Self {
        Self::new(probability, Fate::Hold(delay), seed)
    }

    fn new(probability: f64, fate: Fate, seed: u64) -> Self {
        // The conversion saturates, so that probability 1 does not apply to one draw in 2^64.
        let threshold = (probability * (u64::MAX as f64)) as u64;
        Self { threshold, fate, stream: SplitMix64::new(seed) }
    }

    /// Draws the effect on the next packet; `None` if it passes unchanged.
    pub(crate) fn draw(&mut self) -> Option<Fate> {
        (self.stream.bits() < self.threshold).then_some(self.fate)
    }
}
