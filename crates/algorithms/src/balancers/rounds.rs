//! Rounds over all entropy values, each in a different order.

use apus_cc::{Ev, MAX_EVS};
use apus_units::random::SplitMix64;

/// Rounds in which each of E entropy values occurs once: EV = (i xor r) mod E for i from 0 to E - 1, with a
/// different r in each round (uet-htsim 40ccb05, `uec_mp.cpp`). The bits above E are drawn once per flow.
#[derive(Clone, Debug)]
pub(super) struct Rounds {
    random: SplitMix64,
    /// E - 1; E is a power of two.
    mask: u16,
    /// The bits of all values of the flow above `mask`.
    upper: u16,
    position: u16,
    order: u16,
}

impl Rounds {
    /// Creates the rounds of `evs` values, a power of two from 1 to 65536.
    pub(super) fn new(evs: u32) -> Self {
        let mask = (evs.clamp(1, MAX_EVS) - 1) as u16; // at most 65535
        Self { random: SplitMix64::new(0), mask, upper: 0, position: 0, order: 0 }
    }

    pub(super) fn reseed(&mut self, seed: u64) {
        self.random = SplitMix64::new(seed);
        let bits = self.random.bits();
        (self.position, self.order) = (0, bits as u16); // the lower bits
        self.upper = (bits >> 32) as u16 & !self.mask;
    }

    /// Returns the value at the present position and moves to the next position.
    #[inline]
    pub(super) fn next(&mut self) -> Ev {
        let ev = self.upper | ((self.position ^ self.order) & self.mask);
        self.position = self.position.wrapping_add(1) & self.mask;
        if self.position == 0 {
            self.order = self.random.bits() as u16; // the lower bits
        }
        Ev::new(ev)
    }

    /// Returns the index of a value of this flow, below E.
    #[inline]
    pub(super) fn index(&self, ev: Ev) -> usize {
        usize::from(ev.get() & self.mask)
    }
}
