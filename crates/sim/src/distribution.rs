//! Summary of a set of values.

use apus_units::Span;
use serde::Serialize;

use crate::bounds::Bounds;
use crate::metrics::Distribution;

/// A distribution in the unit that its name says. `null` where nothing was measured.
#[derive(Clone, Debug, Serialize)]
pub struct DistributionSummary {
    /// Number of values.
    pub count: u64,
    /// Exact mean.
    pub mean: Option<f64>,
    /// Exact minimum.
    pub min: Option<f64>,
    /// 1st percentile, to 0.1 %.
    pub p1: Option<f64>,
    /// 10th percentile, to 0.1 %.
    pub p10: Option<f64>,
    /// Median, to 0.1 %.
    pub p50: Option<f64>,
    /// 90th percentile, to 0.1 %.
    pub p90: Option<f64>,
    /// 99th percentile, to 0.1 %.
    pub p99: Option<f64>,
    /// 99.9th percentile, to 0.1 %.
    pub p99_9: Option<f64>,
    /// Exact maximum.
    pub max: Option<f64>,
    /// Unfinished ops; only in distributions over ops. A number above is `null` if it is censored: the bounds
    /// that the unfinished ops set differ by more than 1 %.
    #[serde(flatten)]
    pub open: Option<OpenEnd>,
}

/// The part of a distribution over ops that is known by bounds only.
#[derive(Clone, Debug, Serialize)]
pub struct OpenEnd {
    /// Ops that had not ended when the run was over.
    pub unfinished: u64,
    /// Age of the oldest unfinished op; 0 if there are none.
    pub oldest_unfinished_us: f64,
    /// Lower bounds, if each unfinished op ended at the end of the run. `count` includes these ops.
    pub lower: Box<DistributionSummary>,
    /// Upper bounds, if no unfinished op ever ends; `null` if unbounded. `count` includes these ops.
    pub upper: Box<DistributionSummary>,
}

impl DistributionSummary {
    /// Returns the summary of these values, with exact percentiles: the value of the rank.
    pub(crate) fn of_values(mut values: Vec<f64>) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        let count = values.len();
        let rank = |percent: f64| {
            let place = (count as f64 * percent / 100.0).ceil().max(1.0) as usize;
            values.get(place - 1).copied()
        };
        Self {
            count: count as u64,
            mean: (count > 0).then(|| values.iter().sum::<f64>() / count as f64),
            min: values.first().copied(),
            p1: rank(1.0),
            p10: rank(10.0),
            p50: rank(50.0),
            p90: rank(90.0),
            p99: rank(99.0),
            p99_9: rank(99.9),
            max: values.last().copied(),
            open: None,
        }
    }

    /// Summarises the ops that took `ended`, and unfinished ops: `unfinished` has their values if they ended
    /// now, `oldest` the age of the oldest.
    pub(crate) fn of_ops(
        ended: &Distribution,
        unfinished: Option<&Distribution>,
        oldest: Span,
    ) -> Self {
        let with = |lower: Self, upper: Self, count| {
            let one = |lower: Option<f64>, upper: Option<f64>| {
                Bounds { lower: lower?, upper: upper.unwrap_or(f64::INFINITY) }.value()
            };
            Self {
                count: ended.count(),
                mean: one(lower.mean, upper.mean),
                min: one(lower.min, upper.min),
                p1: one(lower.p1, upper.p1),
                p10: one(lower.p10, upper.p10),
                p50: one(lower.p50, upper.p50),
                p90: one(lower.p90, upper.p90),
                p99: one(lower.p99, upper.p99),
                p99_9: one(lower.p99_9, upper.p99_9),
                max: one(lower.max, upper.max),
                open: Some(OpenEnd {
                    unfinished: count,
                    oldest_unfinished_us: oldest.as_us_f64(),
                    lower: Box::new(lower),
                    upper: Box::new(upper),
                }),
            }
        };
        let Some(unfinished) = unfinished else {
            return with(Self::from(ended), Self::from(ended), 0);
        };
        let mut all = ended.clone();
        all.add(unfinished);
        let count = unfinished.count();
        with(Self::from(&all), Self::without_end(ended, count), count)
    }

    /// Returns the summary of `ended` and of `more` values that are larger than all of these.
    fn without_end(ended: &Distribution, more: u64) -> Self {
        let count = ended.count() + more;
        // The rank is computed as the histogram computes it.
        let rank = |percent: f64| ((percent / 100.0 * count as f64).ceil() as u64).max(1);
        let at = |percent| ended.of_rank(rank(percent));
        Self {
            count,
            mean: None,
            min: ended.min(),
            p1: at(1.0),
            p10: at(10.0),
            p50: at(50.0),
            p90: at(90.0),
            p99: at(99.0),
            p99_9: at(99.9),
            max: None,
            open: None,
        }
    }

    /// Returns a number of the distribution with its bounds, such as `bounds(|d| d.p99)`; `None` if it was
    /// not measured.
    #[must_use]
    pub fn bounds(&self, number: fn(&Self) -> Option<f64>) -> Option<Bounds> {
        if let Some(value) = number(self) {
            return Some(Bounds::exact(value));
        }
        let open = self.open.as_ref()?;
        let upper = number(&open.upper).unwrap_or(f64::INFINITY);
        Some(Bounds { lower: number(&open.lower)?, upper })
    }

    /// Returns the number of unfinished ops; 0 if the distribution is not over ops.
    #[must_use]
    pub fn unfinished(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.unfinished)
    }
}

impl From<&Distribution> for DistributionSummary {
    fn from(d: &Distribution) -> Self {
        Self {
            count: d.count(),
            mean: d.mean(),
            min: d.min(),
            p1: d.percentile(1.0),
            p10: d.percentile(10.0),
            p50: d.percentile(50.0),
            p90: d.percentile(90.0),
            p99: d.percentile(99.0),
            p99_9: d.percentile(99.9),
            max: d.max(),
            open: None,
        }
    }
}

/// Returns Jain's fairness index (Swift §5.5, reference \[26\]): 1 if all values are equal, 1/n if one value
/// has the whole sum.
#[must_use]
pub fn jain(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|v| v * v).sum();
    if squares == 0.0 { 1.0 } else { sum * sum / (values.len() as f64 * squares) }
}

#[cfg(test)]
mod tests {
    use super::jain;

    #[test]
    fn jain_is_one_for_equals_and_one_nth_for_one_taker() {
        assert!((jain(&[2.0; 7]) - 1.0).abs() < 1e-12);
        assert!((jain(&[5.0, 0.0, 0.0, 0.0]) - 0.25).abs() < 1e-12);
        assert!((jain(&[0.0, 0.0]) - 1.0).abs() < 1e-12);
    }
}
