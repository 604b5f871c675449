//! A number that is known only by two bounds, because some ops had not ended.

use serde_json::Value;

/// Largest difference of two bounds that count as one number, relative to the upper bound. deviation: no
/// source; rationale: ten times the resolution of percentiles, 0.1 %, and small against the differences of
/// several percent for which results are compared.
const CLOSE: f64 = 0.01;

/// A number between two bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Largest known lower bound.
    pub lower: f64,
    /// Smallest known upper bound; infinite if there is none.
    pub upper: f64,
}

/// Returns the value under a key of a table, or under the number of an entry of a list.
fn within<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    match value {
        Value::Array(list) => list.get(key.parse::<usize>().ok()?),
        value => value.get(key),
    }
}

impl Bounds {
    /// A number that is known.
    #[must_use]
    pub const fn exact(value: f64) -> Self {
        Self { lower: value, upper: value }
    }

    /// Returns the percentile `share` (0.99 is the 99th) of ops. `ended` has the sorted latencies of the ops
    /// that ended, each with its number of ops; `open` has the ages of the unfinished ops. The lower bound is
    /// the percentile if the unfinished ops ended now, the upper bound the percentile if they never ended.
    /// Returns `None` without ops.
    #[must_use]
    pub fn of_percentile(ended: &[(f64, u64)], open: &[f64], share: f64) -> Option<Self> {
        if open.is_empty() {
            return percentile(ended, share).map(Self::exact);
        }
        let with = |value: fn(f64) -> f64| {
            let mut all = ended.to_vec();
            all.extend(open.iter().map(|&age| (value(age), 1)));
            all.sort_by(|a, b| a.0.total_cmp(&b.0));
            percentile(&all, share)
        };
        Some(Self { lower: with(|age| age)?, upper: with(|_| f64::INFINITY)? })
    }

    /// Returns the upper bound if both bounds are close enough to count as one number. The upper bound
    /// ensures that unfinished ops never make a result look better. Returns `None` if the number is censored.
    #[must_use]
    pub fn value(self) -> Option<f64> {
        self.value_within(CLOSE)
    }

    /// Returns the same as [`Bounds::value`], but the bounds may differ by the fraction `resolution` of the
    /// upper bound.
    #[must_use]
    pub fn value_within(self, resolution: f64) -> Option<f64> {
        let close = self.lower == self.upper
            || self.upper.is_finite() && self.upper - self.lower <= resolution * self.upper.abs();
        close.then_some(self.upper)
    }

    /// Returns the number that a summary has at `path`, such as "`op_latency_us.p99`"; `None` if it was not measured.
    #[must_use]
    pub fn of_metric(summary: &Value, path: &str) -> Option<Self> {
        let mut words: Vec<&str> = path.split('.').collect();
        let last = words.pop()?;
        let step = |value, key: &&str| within(value, key);
        let parent = words.iter().try_fold(summary, step)?;
        if let Some(value) = parent.get(last)?.as_f64() {
            return Some(Self::exact(value));
        }
        let bound = |side: &str| match parent.get(side) {
            Some(of_side) => of_side.get(last)?.as_f64(),
            // Names end with their unit, so the bounds of `makespan_us` are `makespan_lower_us` and
            // `makespan_upper_us`.
            None => match last.strip_suffix("_us") {
                Some(stem) => parent.get(format!("{stem}_{side}_us"))?.as_f64(),
                None => parent.get(format!("{last}_{side}"))?.as_f64(),
            },
        };
        Some(Self { lower: bound("lower")?, upper: bound("upper").unwrap_or(f64::INFINITY) })
    }

    /// Returns the median of the lower bounds and the median of the upper bounds.
    #[must_use]
    pub fn median(values: &[Self]) -> Option<Self> {
        let of = |bound: fn(&Self) -> f64| median(values.iter().map(bound).collect());
        Some(Self { lower: of(|b| b.lower)?, upper: of(|b| b.upper)? })
    }

    /// Returns the quotient of two numbers, both at least 0.
    #[must_use]
    pub fn over(self, base: Self) -> Self {
        if self.lower == self.upper && base.lower == base.upper {
            return Self::exact(self.lower / base.lower);
        }
        Self { lower: self.lower / base.upper, upper: self.upper / base.lower }
    }

    /// Applies a non-decreasing function to both bounds.
    #[must_use]
    pub fn map(self, rising: impl Fn(f64) -> f64) -> Self {
        Self { lower: rising(self.lower), upper: rising(self.upper) }
    }
}

/// Returns the percentile `share` (0.99 is the 99th) by nearest rank of sorted values, each with its number
/// of occurrences. Returns `None` without values.
#[must_use]
pub fn percentile(values: &[(f64, u64)], share: f64) -> Option<f64> {
    let count: u64 = values.iter().map(|(_, count)| count).sum();
    let rank = ((count as f64 * share).ceil() as u64).max(1);
    let mut seen = 0;
    values.iter().find_map(|&(value, count)| {
        seen += count;
        (seen >= rank).then_some(value)
    })
}

/// Returns the median; for an even number of values the mean of the middle two.
#[must_use]
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Bounds, percentile};

    #[test]
    fn bounds_within_one_percent_are_one_number_and_it_is_the_upper_one() {
        let value = |lower, upper| Bounds { lower, upper }.value();
        assert_eq!(value(5.0, 5.0), Some(5.0));
        assert_eq!(value(99.0, 100.0), Some(100.0));
        assert_eq!(value(98.9, 100.0), None);
        assert_eq!(value(5.0, f64::INFINITY), None);
        assert_eq!(value(0.0, 0.0), Some(0.0));
    }

    #[test]
    fn bounds_count_as_one_number_within_a_given_resolution() {
        let bounds = Bounds { lower: 64.0, upper: 65.0 };
        assert_eq!((bounds.value(), bounds.value_within(1.0 / 64.0)), (None, Some(65.0)));
    }

    #[test]
    fn percentiles_are_values_of_their_rank() {
        let values = [(1.0, 2), (2.0, 1), (9.0, 1)];
        assert_eq!(percentile(&values, 0.5), Some(1.0));
        assert_eq!(percentile(&values, 0.75), Some(2.0));
        assert_eq!(percentile(&values, 0.99), Some(9.0));
        assert_eq!(percentile(&[], 0.5), None);
    }

    /// Of a hundred ops, 98 took 1 to 98 us and two have been outstanding for 500 us: the 99th percentile is
    /// one of these two.
    #[test]
    fn percentile_among_unfinished_ops_has_no_upper_bound() {
        let ended: Vec<(f64, u64)> = (1..=98).map(|us| (f64::from(us), 1)).collect();
        let of = |open: &[f64], share| Bounds::of_percentile(&ended, open, share).expect("ops");
        assert_eq!(of(&[500.0, 500.0], 0.5), Bounds::exact(50.0));
        let p99 = of(&[500.0, 500.0], 0.99);
        assert_eq!((p99.lower, p99.upper), (500.0, f64::INFINITY));
        assert_eq!(of(&[], 0.99), Bounds::exact(98.0));
        assert_eq!(Bounds::of_percentile(&[], &[], 0.5), None);
    }

    /// An op that is younger than the percentile may still end below or above it.
    #[test]
    fn young_unfinished_op_moves_both_bounds() {
        let ended = [(10.0, 1), (20.0, 1), (30.0, 1)];
        let p50 = Bounds::of_percentile(&ended, &[1.0], 0.5).expect("ops");
        assert_eq!((p50.lower, p50.upper), (10.0, 20.0));
    }

    #[test]
    fn a_censored_number_is_read_with_its_bounds() {
        let summary = json!({
            "goodput": 3.0,
            "late": null, "late_lower": 0.25, "late_upper": 0.5,
            "latency": {
                "p50": 2.0, "p99": null, "max": null, "mean": null,
                "lower": { "p50": 2.0, "p99": 7.0, "max": 9.0, "mean": null },
                "upper": { "p50": 2.0, "p99": 8.0, "max": null, "mean": null },
            },
        });
        let of = |path| Bounds::of_metric(&summary, path).map(|b| (b.lower, b.upper));
        assert_eq!(of("goodput"), Some((3.0, 3.0)));
        assert_eq!(of("late"), Some((0.25, 0.5)));
        assert_eq!(of("latency.p50"), Some((2.0, 2.0)));
        assert_eq!(of("latency.p99"), Some((7.0, 8.0)));
        assert_eq!(of("latency.max"), Some((9.0, f64::INFINITY)));
        assert_eq!(of("latency.mean"), None);
        assert_eq!(of("latency.p10"), None);
        assert_eq!(of("nothing.p50"), None);
    }

    #[test]
    fn median_of_even_and_odd_numbers() {
        assert_eq!(super::median(vec![]), None);
        assert_eq!(super::median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(super::median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    /// If one of three seeds is unbounded, the median is bounded; if two are, it is not.
    #[test]
    fn a_median_is_censored_only_if_the_middle_is() {
        let (known, open) = (Bounds::exact(4.0), Bounds { lower: 9.0, upper: f64::INFINITY });
        let of = |values: &[Bounds]| Bounds::median(values).and_then(Bounds::value);
        assert_eq!(of(&[Bounds::exact(2.0), open, known]), Some(4.0));
        assert_eq!(of(&[open, open, known]), None);
        assert_eq!(Bounds::median(&[]), None);
        let ratio = open.over(Bounds::exact(3.0));
        assert_eq!((ratio.lower, ratio.upper), (3.0, f64::INFINITY));
        let ratio = known.over(open);
        assert_eq!((ratio.lower, ratio.upper), (0.0, 4.0 / 9.0));
    }
}
