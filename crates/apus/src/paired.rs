//! Differences between two algorithms from paired seeds, with a confidence interval.

use apus_sim::bounds::Bounds;
use serde_json::Value;

/// The mean of the differences of pairs with the same seed, in the metric's unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Mean of the differences.
    pub mean: f64,
    /// Half of the 95 % confidence interval by Student's t; `None` for a single pair.
    pub half_width: Option<f64>,
    /// Number of pairs.
    pub pairs: usize,
}

impl Difference {
    /// Returns the difference of `of` from `reference`, seed by seed. Pairs with an unknown number (not measured, or
    /// censored) are skipped. Returns `None` if no pair remains.
    pub fn new(of: &[Option<f64>], reference: &[Option<f64>]) -> Option<Self> {
        let both = of.iter().zip(reference).filter_map(|(a, b)| Some((*a)? - (*b)?));
        let differences: Vec<f64> = both.collect();
        let pairs = differences.len();
        if pairs == 0 {
            return None;
        }
        let mean = differences.iter().sum::<f64>() / pairs as f64;
        let half_width = (pairs > 1).then(|| {
            let freedom = (pairs - 1) as f64;
            let squares: f64 = differences.iter().map(|d| (d - mean) * (d - mean)).sum();
            quantile(pairs - 1) * (squares / freedom / pairs as f64).sqrt()
        });
        Some(Self { mean, half_width, pairs })
    }

    /// Returns `true` if the interval excludes 0, so the difference is larger than the variation between seeds
    /// explains.
    pub fn is_significant(&self) -> bool {
        self.half_width.is_some_and(|half| self.mean.abs() > half)
    }
}

/// Returns the number of a summary for a metric; `None` if it was not measured or is censored.
pub fn known(summary: &Value, name: &str) -> Option<f64> {
    Bounds::of_metric(summary, name)?.value()
}

/// Returns the 97.5 % quantile of Student's t distribution with `freedom` degrees of freedom: tabulated up to 30
/// (NIST/SEMATECH e-Handbook §1.3.6.7.2), beyond that by the Cornish-Fisher expansion (Abramowitz and Stegun 26.7.5),
/// whose error in that range is below 1e-4.
pub fn quantile(freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    if let Some(value) = freedom.checked_sub(1).and_then(|index| TABLE.get(index)) {
        return *value;
    }
    let (x, n) = (1.959_964, freedom as f64);
    let (x3, x5) = (x * x * x, x * x * x * x * x);
    x + (x3 + x) / (4.0 * n) + (5.0 * x5 + 16.0 * x3 + 3.0 * x) / (96.0 * n * n)
}

#[cfg(test)]
mod tests {
    use super::{Difference, quantile};

    /// Differences 1, 2 and 3: mean 2, standard error 1/sqrt(3), t of two degrees of freedom 4.303.
    #[test]
    fn paired_seeds_give_the_interval_by_hand() {
        let of = [Some(11.0), Some(22.0), Some(33.0), None, Some(1.0)];
        let reference = [Some(10.0), Some(20.0), Some(30.0), Some(7.0), None];
        let found = Difference::new(&of, &reference).expect("pairs");
        assert_eq!((found.mean, found.pairs), (2.0, 3));
        let half = found.half_width.expect("an interval");
        assert!((half - 4.303 / 3f64.sqrt()).abs() < 1e-9, "{half}");
        assert!(!found.is_significant());
        // The values spread by 20, but the paired differences only by 0.2, so pairing makes the difference significant.
        let close = [Some(11.0), Some(21.1), Some(30.9)];
        assert!(Difference::new(&close, &reference[..3]).expect("pairs").is_significant());
    }

    #[test]
    fn one_pair_has_no_interval_and_none_no_difference() {
        let one = Difference::new(&[Some(2.0)], &[Some(5.0)]).expect("a pair");
        assert_eq!((one.mean, one.half_width), (-3.0, None));
        assert_eq!(Difference::new(&[None], &[Some(5.0)]), None);
    }

    /// The e-Handbook gives t_{0.975} as 2.021 with 40, 1.984 with 100 and 1.962 with 1000 degrees of freedom.
    #[test]
    fn quantiles_beyond_the_table_meet_the_handbook() {
        for (freedom, expected) in
            [(1, 12.706), (4, 2.776), (40, 2.021), (100, 1.984), (1000, 1.962)]
        {
            assert!((quantile(freedom) - expected).abs() < 6e-4, "{freedom}");
        }
    }
}
