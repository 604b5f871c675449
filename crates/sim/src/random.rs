//! Streams of random numbers, one per (seed, entity, purpose), so that the numbers of one entity do
//! not depend on those of others.

use apus_units::random::{self, INCREMENT, mix};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Purpose of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Start times and pairs of a workload.
    Workload = 1,
    /// Times and stalls of a host's engine.
    Engine = 2,
    /// Interference between a host's stack and the wire.
    Jitter = 3,
    /// Offsets and drifts of clocks.
    Clock = 4,
    /// Effects of a faulty link on its packets.
    Fault = 5,
    /// Random numbers of the algorithm of a flow.
    Flow = 6,
    /// Random numbers of the switch half of a class of a port.
    Switch = 7,
    /// Times of a device that answers reads.
    Service = 8,
    /// Random numbers of the path policy of a flow.
    Path = 9,
    /// Choice of the packet that a port trims.
    Trim = 10,
    /// Choice of the links that fail, and of the times at which they fail.
    Failure = 11,
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// Returns the stream of this purpose and entity in the run with this seed.
    #[must_use]
    pub fn new(seed: u64, purpose: Purpose, entity: u64) -> Self {
        // SplitMix64's finaliser mixes each input, so that similar keys give unrelated streams.
        let mut state = seed;
        for part in [purpose as u64, entity] {
            state = mix(state ^ mix(part.wrapping_add(INCREMENT)));
        }
        Self(Xoshiro256PlusPlus::seed_from_u64(state))
    }

    /// Draws 64 bits, for example the seed of another stream.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Draws a number uniform in [0, 1), with 53 bits.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        random::uniform(self.0.next_u64())
    }

    /// Draws an integer uniform in 0..n, `n` at least 1.
    pub fn below(&mut self, n: u64) -> u64 {
        random::below(self.0.next_u64(), n)
    }

    /// Draws an exponentially distributed number with mean 1. It uses `libm` so that the number is the same
    /// on every machine.
    pub fn exponential(&mut self) -> f64 {
        -libm::log(1.0 - self.uniform())
    }

    /// Returns a random order of 0..n (Fisher-Yates).
    pub fn permutation(&mut self, n: u32) -> Vec<u32> {
        let mut order: Vec<u32> = (0..n).collect();
        for last in (1..order.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            order.swap(last, other);
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_different_entities_differ() {
        let mut a = Stream::new(1, Purpose::Engine, 0);
        let mut b = Stream::new(1, Purpose::Engine, 1);
        let mut c = Stream::new(1, Purpose::Jitter, 0);
        let (x, y, z) = (a.below(u64::MAX), b.below(u64::MAX), c.below(u64::MAX));
        assert!(x != y && x != z && y != z);
    }

    #[test]
    fn exponential_has_mean_one() {
        let mut stream = Stream::new(7, Purpose::Engine, 3);
        let n = 100_000;
        let mean = (0..n).map(|_| stream.exponential()).sum::<f64>() / f64::from(n);
        // The standard error is 1/sqrt(n) = 0.003; the tolerance is five of them.
        assert!((mean - 1.0).abs() < 0.016, "{mean}");
    }

    #[test]
    fn permutation_holds_each_once() {
        let mut order = Stream::new(1, Purpose::Workload, 0).permutation(100);
        assert_ne!(order, (0..100).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..100).collect::<Vec<_>>());
    }
}
