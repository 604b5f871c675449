//! SplitMix64: generates random numbers from a seed, and mixes words into a hash.
//!
//! Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014. The
//! generator is not cryptographically secure.

/// Increment of the state per number: the golden ratio as an odd fraction of 2^64.
pub const INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;

/// Applies the finaliser: every bit of `z` changes every bit of the result with a probability close to one
/// half, and no two values of `z` have the same result.
#[inline]
#[must_use]
pub const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns a uniform number in [0, 1), of the upper 53 of 64 random bits.
#[inline]
#[must_use]
pub const fn uniform(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// Returns a uniform number in 0..`n`, `n` at least 1, of 64 random bits; the bias of n / 2^64 is far below
/// anything that a run can detect.
#[inline]
#[must_use]
pub const fn below(bits: u64, n: u64) -> u64 {
    ((bits as u128 * n as u128) >> 64) as u64
}

/// A stream of 64-bit numbers in 8 bytes of state.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Returns the stream that begins with `seed`.
    #[inline]
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 bits.
    #[inline]
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(INCREMENT);
        mix(self.0)
    }

    /// Returns the next number, uniform in [0, 1).
    #[inline]
    pub const fn uniform(&mut self) -> f64 {
        uniform(self.bits())
    }

    /// Returns the next number, uniform in 0..`n`, `n` at least 1.
    #[inline]
    pub const fn below(&mut self, n: u64) -> u64 {
        below(self.bits(), n)
    }
}

#[cfg(test)]
mod tests {
    use super::{SplitMix64, below, uniform};

    #[test]
    fn numbers_equal_those_of_the_published_generator() {
        // The output of Vigna's splitmix64.c (https://prng.di.unimi.it/splitmix64.c) for this seed.
        let mut stream = SplitMix64::new(1_234_567);
        let expected: [u64; 5] = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(expected.map(|_| stream.bits()), expected);
    }

    #[test]
    fn ranges_end_where_they_must() {
        assert_eq!((uniform(0), uniform(1 << 63)), (0.0, 0.5));
        assert_eq!(uniform(u64::MAX), 1.0 - f64::EPSILON / 2.0);
        assert_eq!((below(0, 10), below(1 << 63, 10), below(u64::MAX, 10)), (0, 5, 9));
        assert_eq!(below(u64::MAX, 1), 0);
    }
}
