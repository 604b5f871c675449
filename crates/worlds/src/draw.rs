//! Random choices of a world.

use apus_units::Span;
use apus_units::random::{SplitMix64, mix};

/// A stream of random choices.
#[derive(Clone, Debug)]
pub(crate) struct Draw(SplitMix64);

impl Draw {
    /// Returns the stream of a seed for one purpose.
    pub(crate) fn new(seed: u64, purpose: u64) -> Self {
        Self(SplitMix64::new(mix(seed) ^ mix(purpose.wrapping_add(0x5eed))))
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0.bits()
    }

    /// Returns a uniform number in `low..=high`.
    pub(crate) fn range(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.below(high - low + 1)
    }

    /// Returns a number in `low..=high` whose logarithm is uniformly distributed; `low` must be at least 1.
    pub(crate) fn log_range(&mut self, low: u64, high: u64) -> u64 {
        let octaves = (high / low).ilog2();
        let base = low << self.0.below(u64::from(octaves) + 1);
        (base + self.0.below(base)).min(high)
    }

    /// Returns a span in `low..=high` whose logarithm is uniformly distributed.
    pub(crate) fn span(&mut self, low: Span, high: Span) -> Span {
        Span::from_ps(self.log_range(low.as_ps().max(1), high.as_ps()))
    }

    /// Returns a span below `high`.
    pub(crate) fn below(&mut self, high: Span) -> Span {
        Span::from_ps(self.0.below(high.as_ps().max(1)))
    }

    /// Returns `true` with a probability of `permille` / 1000.
    pub(crate) fn chance(&mut self, permille: u64) -> bool {
        self.0.below(1000) < permille
    }

    /// Returns an index below `count`; `count` must be at least 1.
    pub(crate) fn index(&mut self, count: usize) -> usize {
        self.0.below(count as u64) as usize
    }

    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.index(of.len())]
    }

    /// Returns two different indices below `count`; `count` must be at least 2.
    pub(crate) fn pair(&mut self, count: usize) -> (usize, usize) {
        let a = self.index(count);
        let b = (a + 1 + self.index(count - 1)) % count;
        (a, b)
    }
}
