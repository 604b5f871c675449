//! Reading and writing numbers with units.

use alloc::format;
use alloc::string::{String, ToString};
use core::error::Error;
use core::fmt::{self, Write as _};

/// A unit of a quantity and its factor to the base unit (picosecond, byte, bit per second).
pub(crate) struct Scale {
    pub(crate) unit: &'static str,
    pub(crate) factor: u64,
}

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
pub(crate) fn parse(text: &str, what: &str, scales: &[Scale]) -> Result<u64, ParseQuantityError> {
    let units = || scales.iter().map(|s| s.unit).collect::<alloc::vec::Vec<_>>().join(", ");
    let fail = |why: String| Err(ParseQuantityError(format!("`{text}` is not {what}: {why}")));
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = (&trimmed[..split], trimmed[split..].trim_start());
    if number.is_empty() {
        return fail(format!("it must start with a number, like `1{}`", scales[0].unit));
    }
    if unit.is_empty() {
        return fail(format!("the unit is missing; write one of {} after the number", units()));
    }
    let Some(scale) = scales.iter().find(|s| s.unit == unit) else {
        let other_case = scales.iter().find(|s| s.unit.eq_ignore_ascii_case(unit));
        return fail(match other_case {
            Some(scale) => format!("unknown unit `{unit}`; did you mean `{}`?", scale.unit),
            None => format!("unknown unit `{unit}`; the units are {}", units()),
        });
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
        return fail(format!("`{number}` is not a decimal number"));
    }
    let too_large = || format!("it is larger than {} {}", u64::MAX, scales[0].unit);
    let mut value: u128 = 0;
    for digit in whole.bytes() {
        value = value * 10 + u128::from(digit - b'0');
        if value > u128::from(u64::MAX) {
            return fail(too_large());
        }
    }
    value *= u128::from(scale.factor);
    let mut place = u128::from(scale.factor);
    let mut remainder_lost = false;
    // Exact decimal arithmetic: each digit is worth factor / 10^n, carried as numerator over 10^n.
    let mut numerator: u128 = 0;
    let mut denominator: u128 = 1;
    for digit in fraction.trim_end_matches('0').bytes() {
        if denominator > 1_000_000_000_000_000_000 {
            remainder_lost = true;
            break;
        }
        numerator = numerator * 10 + u128::from(digit - b'0');
        denominator *= 10;
    }
    place *= numerator;
    if remainder_lost || !place.is_multiple_of(denominator) {
        return fail(format!("it has digits below 1 {}", scales[0].unit));
    }
    value += place / denominator;
    u64::try_from(value).or_else(|_| fail(too_large()))
}

/// Writes `value` in the largest unit in which it has at most three decimals, or none if the unit is a
/// power of two.
pub(crate) fn format(f: &mut fmt::Formatter<'_>, value: u64, scales: &[Scale]) -> fmt::Result {
    let fits = |s: &&Scale| {
        let parts = if s.factor.is_power_of_two() { 1 } else { 1000 };
        value >= s.factor && (u128::from(value) * parts).is_multiple_of(u128::from(s.factor))
    };
    let scale = scales.iter().rev().find(fits).unwrap_or(&scales[0]);
    let mut text = (value / scale.factor).to_string();
    let thousandths = u128::from(value % scale.factor) * 1000 / u128::from(scale.factor);
    if thousandths != 0 {
        write!(text, ".{thousandths:03}")?;
        text.truncate(text.trim_end_matches('0').len());
    }
    text.push_str(scale.unit);
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
