//! Links that lose or corrupt packets at random, from a stream given at construction.

use crate::counters::DropReason;

/// What a link does to packets. Each departure takes one number of the stream, so the fate of a
/// packet depends on the stream and its place among the port's departures alone.
#[derive(Clone, Debug)]
pub struct Impairment {
    /// A packet is dropped if its 64-bit draw is below this.
    threshold: u64,
    reason: DropReason,
    state: u64,
}

impl Impairment {
    /// Packets are lost with this probability, from 0 to 1; `seed` begins the stream.
    #[must_use]
    pub fn loss(probability: f64, seed: u64) -> Self {
        Self::new(probability, DropReason::Loss, seed)
    }

    /// Packets are corrupted with this probability, from 0 to 1; the far end's checksum finds it.
    #[must_use]
    pub fn corruption(probability: f64, seed: u64) -> Self {
        Self::new(probability, DropReason::Corruption, seed)
    }

    fn new(probability: f64, reason: DropReason, seed: u64) -> Self {
        // The conversion saturates: probability 1 spares one draw in 2^64.
        let threshold = (probability * (u64::MAX as f64)) as u64;
        Self { threshold, reason, state: seed }
    }

    /// What becomes of the next packet: why it is dropped, if it is.
    pub(crate) fn draw(&mut self) -> Option<DropReason> {
        // SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        (z < self.threshold).then_some(self.reason)
    }
}
