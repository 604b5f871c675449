//! Setting of each algorithm that a search for the best operating point varies, and its range.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use apus_units::{Bytes, Span};

use crate::NetworkInfo;
use crate::derivation::whole;

/// Setting that a search varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunedSetting {
    /// A parameter of the algorithm.
    Parameter(&'static str),
    /// The queue length from which switches mark packets, which belongs to the network.
    MarkingThreshold,
}

/// The smallest and the largest value of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range {
    /// A number, in steps of equal difference.
    Number(f64, f64),
    /// A whole number of packets, in steps of equal ratio.
    Packets(f64, f64),
    /// A number, in steps of equal ratio.
    Factor(f64, f64),
    /// A time, in steps of equal ratio.
    Time(Span, Span),
    /// A size, in steps of equal ratio.
    Size(Bytes, Bytes),
}

/// The setting of an algorithm that a search varies.
#[derive(Clone, Copy, Debug)]
pub struct Tunable {
    /// The setting.
    pub setting: TunedSetting,
    /// The profiles that have it.
    pub profiles: &'static [&'static str],
    /// The range in words.
    pub range: &'static str,
    /// Source of the setting and its range, or `deviation:` and the reason.
    pub source: &'static str,
    /// The range in a network.
    pub bounds: fn(&NetworkInfo) -> Range,
}

impl Tunable {
    /// Returns at most `count` different values over the range, ascending, as a user would write them: the
    /// ends of the range and steps between them.
    #[must_use]
    pub fn values(&self, network: &NetworkInfo, count: usize) -> Vec<String> {
        let bounds = (self.bounds)(network);
        let last = count.saturating_sub(1).max(1) as f64;
        let mut values: Vec<String> = Vec::new();
        for step in 0..count {
            let value = bounds.at(step as f64 / last);
            if values.last() != Some(&value) {
                values.push(value);
            }
        }
        values
    }
}

impl Range {
    /// The value at `part` of the way from the smallest to the largest.
    fn at(self, part: f64) -> String {
        let ratio = |low: f64, high: f64| {
            let low = low.max(f64::MIN_POSITIVE);
            low * libm::pow((high / low).max(1.0), part)
        };
        match self {
            Self::Number(low, high) => rounded(low + (high - low) * part),
            Self::Factor(low, high) => rounded(ratio(low, high)),
            Self::Packets(low, high) => whole(ratio(low, high) - 0.5),
            Self::Time(low, high) => {
                let ps = ratio(low.as_ps_f64(), high.as_ps_f64());
                // To 10 ns.
                format!("{}", Span::from_ns((ps / 1e4 + 0.5) as u64 * 10))
            }
            Self::Size(low, high) => {
                let bytes = ratio(low.get() as f64, high.get() as f64);
                format!("{}B", (bytes + 0.5) as u64)
            }
        }
    }
}

/// To four places after the point.
fn rounded(value: f64) -> String {
    format!("{}", libm::round(value * 1e4) / 1e4)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of equal difference from 0.9 to 0.99, steps of equal ratio from 10 us to 40 us, and
    /// whole packets without repetitions. All expected values are calculated by hand.
    #[test]
    fn values_cover_the_range_with_its_ends() {
        assert_eq!(
            [0.0, 0.5, 1.0].map(|part| Range::Number(0.9, 0.99).at(part)),
            ["0.9", "0.945", "0.99"]
        );
        let time = Range::Time(Span::from_us(10), Span::from_us(40));
        assert_eq!([0.0, 0.5, 1.0].map(|part| time.at(part)), ["10us", "20us", "40us"]);
        assert_eq!(Range::Packets(1.0, 4.0).at(0.5), "2");
        let size = Range::Size(Bytes::new(1000), Bytes::new(4000));
        assert_eq!(size.at(0.5), "2000B");
    }
}
