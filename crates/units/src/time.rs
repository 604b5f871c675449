//! Instants and spans in picoseconds.

use core::ops::{Div, Mul};
use core::str::FromStr;

use crate::quantity::{self, ParseQuantityError, Units, sums, written_with_units};

/// An instant: picoseconds since the epoch of its clock (in a simulation, the start of the run).
/// 64 bits hold 213 days.
///
/// # Overflow
/// The operators `+`, `-` and `*` of times, spans and sizes need a result within 64 bits. Beyond it,
/// they panic in builds that check overflow, such as those of the tests, and wrap around in release
/// builds. The caller must therefore know a bound of the result: scenarios accept no time above a
/// day, and engines of the transport over UDP end after 213 days. Spans without such a bound, for
/// example a timeout or a pace, need [`Time::saturating_add`] or [`Span::saturating_add`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

/// A length of time in picoseconds, never negative. [`Time`] describes the bounds of its operators.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(u64);

impl Time {
    /// The epoch.
    pub const ZERO: Self = Self(0);
    /// The end of time: used for "never".
    pub const MAX: Self = Self(u64::MAX);

    /// Returns the instant `ps` picoseconds after the epoch.
    #[inline]
    #[must_use]
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// Returns the picoseconds since the epoch.
    #[inline]
    #[must_use]
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Returns the seconds since the epoch, for output.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-12
    }

    /// Returns the span from `earlier` to `self`; zero if `earlier` is later.
    #[inline]
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// Returns `self + span`, or [`Time::MAX`] if that is beyond the end of time.
    #[inline]
    #[must_use]
    pub const fn saturating_add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// Returns `self - span`, or the epoch if that is before it.
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

    /// Returns a span of `ps` picoseconds.
    #[inline]
    #[must_use]
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// Returns a span of `ns` nanoseconds, at most 18,446,744,073,709,551.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns * 1_000)
    }

    /// Returns a span of `us` microseconds, at most 18,446,744,073,709.
    #[must_use]
    pub const fn from_us(us: u64) -> Self {
        Self(us * 1_000_000)
    }

    /// Returns a span of `ms` milliseconds, at most 18,446,744,073.
    #[must_use]
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms * 1_000_000_000)
    }

    /// Returns a span of `secs` seconds, at most 18,446,744.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000_000_000)
    }

    /// Returns the span nearest to `ps` picoseconds; zero for negative or NaN, [`Span::MAX`] beyond it.
    /// A half is rounded up.
    #[inline]
    #[must_use]
    pub fn from_ps_f64(ps: f64) -> Self {
        // The largest number below 0.5. With 0.5 itself, the sum would be rounded to the next whole
        // number if `ps` is this number, or an odd number from 2^52 to 2^53.
        const HALF: f64 = 0.5_f64.next_down();
        // `as` saturates, rounds down and maps NaN to 0.
        Self((ps + HALF) as u64)
    }

    /// Returns the picoseconds.
    #[inline]
    #[must_use]
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Returns the picoseconds as floating point (exact below 2^53 ps = 2.5 h).
    #[inline]
    #[must_use]
    pub const fn as_ps_f64(self) -> f64 {
        self.0 as f64
    }

    /// Returns the microseconds, for output.
    #[must_use]
    pub fn as_us_f64(self) -> f64 {
        self.0 as f64 * 1e-6
    }

    /// Returns the seconds, for output.
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

    /// Returns `self - other`, or zero.
    #[inline]
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Returns `self + other`, or [`Span::MAX`].
    #[inline]
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Returns `self * factor` rounded to the nearest picosecond, saturating; `factor` must not be negative.
    #[inline]
    #[must_use]
    pub fn mul_f64(self, factor: f64) -> Self {
        Self::from_ps_f64(self.as_ps_f64() * factor)
    }
}

sums!(Time, Span);
sums!(Span, Span);

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

const UNITS: Units = Units {
    what: "a time",
    // `0ps` would suggest a measurement.
    zero: "0s",
    scales: &[
        ("ps", 1),
        ("ns", 1_000),
        ("us", 1_000_000),
        ("ms", 1_000_000_000),
        ("s", 1_000_000_000_000),
    ],
};

impl FromStr for Span {
    type Err = ParseQuantityError;
    /// Parses `25us`, `1.5 ms`, `25034752ps`; the units are ps, ns, us, ms and s.
    fn from_str(text: &str) -> Result<Self, ParseQuantityError> {
        quantity::parse(text, &UNITS).map(Self)
    }
}

written_with_units!(UNITS: Time, Span);

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
