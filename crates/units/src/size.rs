//! Sizes in bytes.

use core::iter::Sum;
use core::ops::{Add, Mul};
use core::str::FromStr;

use crate::quantity::{self, ParseQuantityError, Units, sums, written_with_units};

/// A size in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);
    /// The largest size: used for "unlimited".
    pub const MAX: Self = Self(u64::MAX);

    /// Returns a size of `n` bytes.
    #[inline]
    #[must_use]
    pub const fn new(n: u64) -> Self {
        Self(n)
    }

    /// Returns the number of bytes.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns `self - other`, or zero.
    #[inline]
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Returns `self * factor` rounded down, saturating; `factor` must not be negative.
    #[inline]
    #[must_use]
    pub fn mul_f64(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor) as u64)
    }
}

sums!(Bytes, Bytes);

impl Mul<u64> for Bytes {
    type Output = Self;
    fn mul(self, n: u64) -> Self {
        Self(self.0 * n)
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

const UNITS: Units = Units {
    what: "a size",
    zero: "0B",
    scales: &[
        ("B", 1),
        ("kB", 1_000),
        ("KiB", 1 << 10),
        ("MB", 1_000_000),
        ("MiB", 1 << 20),
        ("GB", 1_000_000_000),
        ("GiB", 1 << 30),
        ("TB", 1_000_000_000_000),
        ("TiB", 1 << 40),
    ],
};

impl FromStr for Bytes {
    type Err = ParseQuantityError;
    /// Parses `64KiB`, `12.7MB`, `4096B`; kB, MB, GB, TB are powers of 1000 and KiB, MiB, GiB, TiB
    /// powers of 1024.
    fn from_str(text: &str) -> Result<Self, ParseQuantityError> {
        quantity::parse(text, &UNITS).map(Self)
    }
}

written_with_units!(UNITS: Bytes);
