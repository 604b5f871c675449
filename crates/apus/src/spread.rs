//! A number over the seeds of a setting.

use apus_sim::bounds::Bounds;
use serde_json::{Value, json};

/// Median, smallest and largest value over the seeds, and the value of each seed. If the value of a seed is censored,
/// its lower bound counts for the smallest value and its upper bound for the largest.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    /// Median over the seeds that measured the number.
    pub median: Bounds,
    /// Smallest lower bound of a seed.
    pub min: f64,
    /// Largest upper bound of a seed; infinite if there is none.
    pub max: f64,
    /// Values by seed; `None` if the number was not measured or is censored.
    pub by_seed: Vec<Option<f64>>,
}

impl Spread {
    /// Returns the spread of the values by seed; `None` if no seed measured the number.
    pub fn of(by_seed: &[Option<Bounds>]) -> Option<Self> {
        let values: Vec<Bounds> = by_seed.iter().flatten().copied().collect();
        Some(Self {
            median: Bounds::median(&values)?,
            min: values.iter().map(|value| value.lower).fold(f64::INFINITY, f64::min),
            max: values.iter().map(|value| value.upper).fold(f64::NEG_INFINITY, f64::max),
            by_seed: by_seed.iter().map(|value| (*value)?.value()).collect(),
        })
    }

    /// Returns the spread of a single value or its bounds.
    #[cfg(any(test, feature = "real"))]
    pub fn one(value: Bounds) -> Self {
        Self { median: value, min: value.lower, max: value.upper, by_seed: vec![value.value()] }
    }

    /// Returns the spread of a metric over these summaries, one per seed; `None` stands for a seed without a summary.
    pub fn of_metric<'a>(
        summaries: impl Iterator<Item = Option<&'a Value>>,
        name: &str,
    ) -> Option<Self> {
        let by_seed: Vec<_> = summaries.map(|summary| Bounds::of_metric(summary?, name)).collect();
        Self::of(&by_seed)
    }

    /// Returns the spread as JSON. `median` is `null` if it is censored; `lower` and `upper` are then its bounds.
    pub fn json(&self) -> Value {
        let finite = |value: f64| value.is_finite().then_some(value);
        json!({
            "median": self.median.value(),
            "lower": finite(self.median.lower),
            "upper": finite(self.median.upper),
            "min": finite(self.min),
            "max": finite(self.max),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Bounds, Spread};

    /// Three seeds measured 1, at least 4, and 2; a fourth has failed. The median of the three is 2.
    #[test]
    fn a_censored_seed_counts_by_its_bounds_and_a_failed_one_not_at_all() {
        let open = Bounds { lower: 4.0, upper: f64::INFINITY };
        let values = [Some(Bounds::exact(1.0)), Some(open), None, Some(Bounds::exact(2.0))];
        let spread = Spread::of(&values).expect("values");
        assert_eq!(
            (spread.median, spread.min, spread.max),
            (Bounds::exact(2.0), 1.0, f64::INFINITY)
        );
        assert_eq!(spread.by_seed, [Some(1.0), None, None, Some(2.0)]);
        assert_eq!(Spread::of(&[None]), None);
    }
}
