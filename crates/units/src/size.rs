//! Sizes in bytes.

use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Mul, Sub, SubAssign};
use core::str::FromStr;

use crate::quantity::{self, ParseQuantityError, Scale};

/// A size in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(u64);

impl Bytes {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// The largest size: used for "unlimited".
    pub const MAX: Self = Self(u64::MAX);

    /// `n` bytes.
    #[inline]
    #[must_use]
    pub const fn new(n: u64) -> Self {
        Self(n)
    }

    /// The number of bytes.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// `self - other`, or zero.
    #[inline]
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Bytes {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Bytes {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl SubAssign for Bytes {
    #[inline]
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}

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

const SCALES: &[Scale] = &[
    Scale { unit: "B", factor: 1 },
    Scale { unit: "kB", factor: 1_000 },
    Scale { unit: "KiB", factor: 1 << 10 },
    Scale { unit: "MB", factor: 1_000_000 },
    Scale { unit: "MiB", factor: 1 << 20 },
    Scale { unit: "GB", factor: 1_000_000_000 },
    Scale { unit: "GiB", factor: 1 << 30 },
    Scale { unit: "TB", factor: 1_000_000_000_000 },
    Scale { unit: "TiB", factor: 1 << 40 },
];

impl FromStr for Bytes {
    type Err = ParseQuantityError;
    /// Parses `64KiB`, `12.7MB`, `4096B`; kB, MB, GB, TB are powers of 1000 and KiB, MiB, GiB, TiB
    /// powers of 1024.
    fn from_str(text: &str) -> Result<Self, ParseQuantityError> {
        quantity::parse(text, "a size", SCALES).map(Self)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        quantity::format(f, self.0, SCALES)
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
