//! Instants and spans in picoseconds.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};
use core::str::FromStr;

use crate::quantity::{self, ParseQuantityError, Scale};

/// An instant: picoseconds since the epoch of its clock (in a simulation, the start of the run).
/// 64 bits hold 213 days.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

/// A length of time in picoseconds, never negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(u64);

impl Time {
    /// The epoch.
    pub const ZERO: Self = Self(0);
    /// The end of time: used for "never".
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `ps` picoseconds after the epoch.
    #[inline]
    #[must_use]
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// Picoseconds since the epoch.
    #[inline]
    #[must_use]
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Seconds since the epoch, for output.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-12
    }

    /// The span from `earlier` to `self`; zero if `earlier` is later.
    #[inline]
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// `self + span`, or [`Time::MAX`] if that is beyond the end of time.
    #[inline]
    #[must_use]
    pub const fn saturating_add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// `self - span`, or the epoch if that is before it.
    #[inline]
    #[must_use]
    pub const fn saturating_sub(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl Span {
    /// The empty span.
    pub const ZERO: Self = Self(0);
    /// The longest span.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `ps` picoseconds.
    #[inline]
    #[must_use]
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// A span of `ns` nanoseconds.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns * 1_000)
    }

    /// A span of `us` microseconds.
    #[must_use]
    pub const fn from_us(us: u64) -> Self {
        Self(us * 1_000_000)
    }

    /// A span of `ms` milliseconds.
    #[must_use]
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms * 1_000_000_000)
    }

    /// A span of `secs` seconds.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000_000_000)
    }

    /// The span nearest to `ps` picoseconds; zero for negative or NaN, [`Span::MAX`] beyond it.
    #[inline]
    #[must_use]
    pub fn from_ps_f64(ps: f64) -> Self {
        // `as` saturates and maps NaN to 0; + 0.5 rounds to the nearest.
        Self((ps + 0.5) as u64)
    }

    /// Picoseconds.
    #[inline]
    #[must_use]
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Picoseconds as floating point (exact below 2^53 ps = 2.5 h).
    #[inline]
    #[must_use]
    pub const fn as_ps_f64(self) -> f64 {
        self.0 as f64
    }

    /// Microseconds, for output.
    #[must_use]
    pub fn as_us_f64(self) -> f64 {
        self.0 as f64 * 1e-6
    }

    /// Seconds, for output.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-12
    }

    /// Returns `true` if the span is zero.
    #[inline]
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `self - other`, or zero.
    #[inline]
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// `self + other`, or [`Span::MAX`].
    #[inline]
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// `self * factor` rounded to the nearest picosecond, saturating; `factor` must not be negative.
    #[inline]
    #[must_use]
    pub fn mul_f64(self, factor: f64) -> Self {
        Self::from_ps_f64(self.as_ps_f64() * factor)
    }
}

impl Add<Span> for Time {
    type Output = Self;
    #[inline]
    fn add(self, span: Span) -> Self {
        Self(self.0 + span.0)
    }
}

impl AddAssign<Span> for Time {
    #[inline]
    fn add_assign(&mut self, span: Span) {
        self.0 += span.0;
    }
}

impl Sub<Span> for Time {
    type Output = Self;
    #[inline]
    fn sub(self, span: Span) -> Self {
        Self(self.0 - span.0)
    }
}

impl Add for Span {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Span {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Span {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl SubAssign for Span {
    #[inline]
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}

impl Mul<u64> for Span {
    type Output = Self;
    #[inline]
    fn mul(self, n: u64) -> Self {
        Self(self.0 * n)
    }
}

impl Div<u64> for Span {
    type Output = Self;
    #[inline]
    fn div(self, n: u64) -> Self {
        Self(self.0 / n)
    }
}

const SCALES: &[Scale] = &[
    Scale { unit: "ps", factor: 1 },
    Scale { unit: "ns", factor: 1_000 },
    Scale { unit: "us", factor: 1_000_000 },
    Scale { unit: "ms", factor: 1_000_000_000 },
    Scale { unit: "s", factor: 1_000_000_000_000 },
];

impl FromStr for Span {
    type Err = ParseQuantityError;
    /// Parses `25us`, `1.5 ms`, `25034752ps`; the units are ps, ns, us, ms and s.
    fn from_str(text: &str) -> Result<Self, ParseQuantityError> {
        quantity::parse(text, "a time", SCALES).map(Self)
    }
}

impl fmt::Display for Span {
    /// The shortest exact form that [`Span::from_str`] reads back: `25us`, `1.5ms`, `0s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        format(f, self.0)
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        format(f, self.0)
    }
}

/// Writes picoseconds in the largest fitting unit, and zero in seconds: `0ps` would suggest a
/// measurement.
fn format(f: &mut fmt::Formatter<'_>, ps: u64) -> fmt::Result {
    match ps {
        0 => f.pad("0s"),
        _ => quantity::format(f, ps, SCALES),
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_never_goes_negative() {
        assert_eq!(Time::from_ps(3).since(Time::from_ps(5)), Span::ZERO);
        assert_eq!(Time::from_ps(5).since(Time::from_ps(3)), Span::from_ps(2));
    }

    #[test]
    fn from_ps_f64_rounds_and_saturates() {
        assert_eq!(Span::from_ps_f64(1.5), Span::from_ps(2));
        assert_eq!(Span::from_ps_f64(-1.0), Span::ZERO);
        assert_eq!(Span::from_ps_f64(f64::NAN), Span::ZERO);
        assert_eq!(Span::from_ps_f64(1e30), Span::MAX);
    }
}
