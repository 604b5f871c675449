//! Numbers with units: every value is read back as it was written, and texts have their exact value.

use std::fmt::Display;
use std::str::FromStr;

use apus_units::{Bytes, Rate, Span, Time};
use proptest::prelude::*;

use crate::support::{config, number};

/// Units with a factor to the base unit.
const TIMES: [(&str, u64); 5] =
    [("ps", 1), ("ns", 1_000), ("us", 1_000_000), ("ms", 1_000_000_000), ("s", 1_000_000_000_000)];
const SIZES: [(&str, u64); 9] = [
    ("B", 1),
    ("kB", 1_000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
    ("TB", 1_000_000_000_000),
    ("TiB", 1 << 40),
];
const RATES: [(&str, u64); 5] = [
    ("bps", 1),
    ("kbps", 1_000),
    ("Mbps", 1_000_000),
    ("Gbps", 1_000_000_000),
    ("Tbps", 1_000_000_000_000),
];

/// Numbers that are often whole in a larger unit, up to three decimals.
fn written() -> impl Strategy<Value = u64> {
    let scaled = (number(), 0u32..=15).prop_map(|(n, tens)| n.saturating_mul(10u64.pow(tens)));
    prop_oneof![number(), scaled]
}

fn reads_back<T: FromStr + Display + PartialEq>(value: T) -> bool {
    value.to_string().parse::<T>().is_ok_and(|read| read == value)
}

/// Returns the exact value of `whole.fraction` with a unit of this factor, in base units; `None` if
/// it is not a whole number of 64 bits. `fraction` has `digits` digits.
fn exact(whole: u64, fraction: u64, digits: u32, factor: u64) -> Option<u64> {
    let (parts, factor) = (10u128.pow(digits), u128::from(factor));
    let part = u128::from(fraction) * factor;
    let value = u128::from(whole) * factor + part / parts;
    part.is_multiple_of(parts).then(|| u64::try_from(value).ok()).flatten()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_quantity_reads_back_as_it_was_written(n in written()) {
        prop_assert!(reads_back(Span::from_ps(n)), "{}", Span::from_ps(n));
        prop_assert!(reads_back(Bytes::new(n)), "{}", Bytes::new(n));
        prop_assert!(reads_back(Rate::from_bps(n)), "{}", Rate::from_bps(n));
        prop_assert_eq!(Time::from_ps(n).to_string(), Span::from_ps(n).to_string());
    }

    #[test]
    fn a_text_has_its_exact_value_or_none(
        whole in number(), fraction in number(), digits in 0u32..=12, unit in 0usize..9,
    ) {
        let fraction = fraction % 10u64.pow(digits);
        let text = match digits {
            0 => whole.to_string(),
            _ => format!("{whole}.{fraction:0width$}", width = digits as usize),
        };
        let (name, factor) = TIMES[unit % TIMES.len()];
        let span = format!("{text}{name}").parse().ok();
        prop_assert_eq!(span, exact(whole, fraction, digits, factor).map(Span::from_ps));
        let (name, factor) = RATES[unit % RATES.len()];
        let rate = format!("{text} {name}").parse().ok();
        prop_assert_eq!(rate, exact(whole, fraction, digits, factor).map(Rate::from_bps));
        let (name, factor) = SIZES[unit];
        let size = format!("{text}{name}").parse().ok();
        prop_assert_eq!(size, exact(whole, fraction, digits, factor).map(Bytes::new));
    }
}
