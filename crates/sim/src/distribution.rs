//! What a set of values is summed up by.

use serde::Serialize;

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
}

impl DistributionSummary {
    /// Of these values, all of them exact: the percentile is the value of its rank.
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
        }
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
        }
    }
}

/// Jain's fairness index (Swift §5.5, reference \[26\]): 1 if all are equal, 1/n if one has all.
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
