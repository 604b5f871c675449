//! Reading and writing numbers with units.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::error::Error;
use core::fmt::{self, Write as _};

/// The units of a quantity.
pub(crate) struct Units {
    /// Name of the quantity with its article, for messages.
    pub(crate) what: &'static str,
    /// Zero, as it is written.
    pub(crate) zero: &'static str,
    /// Each unit with its factor to the base unit (picosecond, byte, bit per second); the base unit is first.
    pub(crate) scales: &'static [(&'static str, u64)],
}

/// Implements `Display` and `Debug` for newtypes of `u64` with these units.
macro_rules! written_with_units {
    ($units:ident: $($name:ident),*) => {$(
        impl core::fmt::Display for $name {
            /// Writes the shortest exact form, such as `25us`, `64KiB` or `2.5Gbps`.
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                crate::quantity::format(f, self.0, &$units)
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Display::fmt(self, f)
            }
        }
    )*};
}

/// Implements the addition of another newtype of `u64` and its subtraction.
macro_rules! sums {
    ($name:ident, $other:ident) => {
        impl core::ops::Add<$other> for $name {
            type Output = Self;
            #[inline]
            fn add(self, other: $other) -> Self {
                Self(self.0 + other.0)
            }
        }

        impl core::ops::AddAssign<$other> for $name {
            #[inline]
            fn add_assign(&mut self, other: $other) {
                self.0 += other.0;
            }
        }

        impl core::ops::Sub<$other> for $name {
            type Output = Self;
            #[inline]
            fn sub(self, other: $other) -> Self {
                Self(self.0 - other.0)
            }
        }

        impl core::ops::SubAssign<$other> for $name {
            #[inline]
            fn sub_assign(&mut self, other: $other) {
                self.0 -= other.0;
            }
        }
    };
}

pub(crate) use {sums, written_with_units};

/// A quantity that could not be read: quotes the text and names the mistake and a valid form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseQuantityError(String);

impl fmt::Display for ParseQuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for ParseQuantityError {}

/// Reads `<decimal number><unit>`, exactly: digits beyond the base unit are an error, not rounded.
pub(crate) fn parse(text: &str, units: &Units) -> Result<u64, ParseQuantityError> {
    let Units { what, scales, .. } = *units;
    let base = scales[0].0;
    let names = || scales.iter().map(|&(unit, _)| unit).collect::<Vec<_>>().join(", ");
    let fail = |why: String| Err(ParseQuantityError(format!("`{text}` is not {what}: {why}")));
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = (&trimmed[..split], trimmed[split..].trim_start());
    if number.is_empty() {
        return fail(format!("it must start with a number, like `1{base}`"));
    }
    if unit.is_empty() {
        return fail(format!("the unit is missing; write one of {} after the number", names()));
    }
    let Some(&(_, factor)) = scales.iter().find(|scale| scale.0 == unit) else {
        let other_case = scales.iter().find(|scale| scale.0.eq_ignore_ascii_case(unit));
        return fail(match other_case {
            Some((meant, _)) => format!("unknown unit `{unit}`; did you mean `{meant}`?"),
            None => format!("unknown unit `{unit}`; the units are {}", names()),
        });
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
        return fail(format!("`{number}` is not a decimal number"));
    }
    let too_large = || fail(format!("it is larger than {} {base}", u64::MAX));
    // Leading digits only, so that the number is 0 without them.
    let Ok(whole) = format!("0{whole}").parse::<u64>() else { return too_large() };
    // Exact decimal arithmetic: n digits are worth their number times factor / 10^n.
    let digits = fraction.trim_end_matches('0');
    let worth = 10u64.checked_pow(digits.len() as u32).and_then(|denominator| {
        let numerator: u128 = format!("0{digits}").parse().ok()?;
        let (numerator, denominator) = (numerator * u128::from(factor), u128::from(denominator));
        numerator.is_multiple_of(denominator).then_some(numerator / denominator)
    });
    let Some(worth) = worth else { return fail(format!("it has digits below 1 {base}")) };
    u64::try_from(u128::from(whole) * u128::from(factor) + worth).or_else(|_| too_large())
}

/// Writes `value` in the largest unit in which it has at most three decimals, or none if the unit is a
/// power of two.
pub(crate) fn format(f: &mut fmt::Formatter<'_>, value: u64, units: &Units) -> fmt::Result {
    if value == 0 {
        return f.pad(units.zero);
    }
    let fits = |&&(_, factor): &&(&str, u64)| {
        let parts = if factor.is_power_of_two() { 1 } else { 1000 };
        value >= factor && (u128::from(value) * parts).is_multiple_of(u128::from(factor))
    };
    let &(unit, factor) = units.scales.iter().rev().find(fits).unwrap_or(&units.scales[0]);
    let mut text = (value / factor).to_string();
    let thousandths = u128::from(value % factor) * 1000 / u128::from(factor);
    if thousandths != 0 {
        write!(text, ".{thousandths:03}")?;
        text.truncate(text.trim_end_matches('0').len());
    }
    text.push_str(unit);
    f.pad(&text)
}

#[cfg(test)]
mod tests {
    use crate::{Bytes, Rate, Span};
    use alloc::string::ToString;

    #[test]
    fn reads_units_exactly() {
        assert_eq!("25us".parse(), Ok(Span::from_us(25)));
        assert_eq!("1.5 ms".parse(), Ok(Span::from_us(1500)));
        assert_eq!("25034752ps".parse(), Ok(Span::from_ps(25_034_752)));
        assert_eq!("12.7MB".parse(), Ok(Bytes::new(12_700_000)));
        assert_eq!("64KiB".parse(), Ok(Bytes::new(65_536)));
        assert_eq!("2.5Gbps".parse(), Ok(Rate::from_bps(2_500_000_000)));
    }

    #[test]
    fn a_bare_number_is_an_error_that_lists_the_units() {
        let error = "25".parse::<Span>().unwrap_err().to_string();
        assert!(
            error.contains("unit is missing") && error.contains("ps, ns, us, ms, s"),
            "{error}"
        );
    }

    #[test]
    fn errors_name_a_valid_form() {
        let error = |text: &str| text.parse::<Rate>().unwrap_err().to_string();
        assert!(error("100gbps").contains("did you mean `Gbps`"));
        assert!(error("100Gb").contains("unknown unit `Gb`"));
        assert!(error("-3Gbps").contains("must start with a number"));
        assert!(error("1.2.3Gbps").contains("not a decimal number"));
        assert!(error(".Gbps").contains("not a decimal number"));
        assert!(error("0.3bps").contains("digits below 1 bps"));
        assert!(error("99999999999999999999Tbps").contains("larger than"));
        assert!(error("99999999999Tbps").contains("larger than"));
        assert!("1.0000000000000000000000001s".parse::<Span>().is_err());
    }

    #[test]
    fn written_quantities_read_back() {
        for ps in [0, 1, 999, 1_000, 25_000_000, 25_034_752, 1_500_000_000, u64::MAX] {
            let span = Span::from_ps(ps);
            assert_eq!(span.to_string().parse(), Ok(span), "{span}");
        }
        assert_eq!(Span::from_us(1500).to_string(), "1.5ms");
        assert_eq!(Span::ZERO.to_string(), "0s");
        assert_eq!(Bytes::new(65_536).to_string(), "64KiB");
        assert_eq!(Bytes::new(400_000).to_string(), "400kB");
    }
}
