//! Comparison of checks with their bands.

use serde::Serialize;

use super::measure::Shown;

/// Number of seeds of a full experiment: enough that the median does not depend on a single run.
pub const FULL_SEEDS: u64 = 5;

/// The verdict on a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The median is within the band.
    Pass,
    /// The median is outside the band, or was not measured.
    Fail,
    /// The median is outside the band, as the scenario documents.
    Differs,
    /// The median is within the band, though the scenario documents a miss.
    Stale,
}

/// A check and whether it passes.
#[derive(Clone, Debug, Serialize)]
pub struct CheckResult {
    /// The number and its band.
    #[serde(flatten)]
    pub shown: Shown,
    /// The verdict.
    pub verdict: Verdict,
    /// Whether the median is within the band.
    pub pass: bool,
    /// Seeds whose own value is outside the band.
    pub seeds_outside: usize,
    /// The measured value and the likely cause, if the scenario documents that the check is missed.
    pub differs: Option<String>,
}

/// Compares the numbers of one check with its band. A check that `differs` counts as stale only
/// after a full experiment, not after a single seed.
pub(super) fn judge(numbers: Vec<Shown>, differs: Option<&String>, seeds: u64) -> Vec<CheckResult> {
    let passing: Vec<bool> = numbers.iter().map(in_band).collect();
    let stale = seeds >= FULL_SEEDS && passing.iter().all(|pass| *pass);
    let result = |(shown, pass): (Shown, bool)| {
        let verdict = match (pass, differs) {
            (true, Some(_)) if stale => Verdict::Stale,
            (true, _) => Verdict::Pass,
            (false, Some(_)) if shown.measured.is_some() => Verdict::Differs,
            (false, _) => Verdict::Fail,
        };
        let outside = |value: &&f64| !accepts(&shown, **value);
        let seeds_outside = shown.seeds.iter().filter(outside).count();
        CheckResult { shown, verdict, pass, seeds_outside, differs: differs.cloned() }
    };
    numbers.into_iter().zip(passing).map(result).collect()
}

/// Returns `true` if the value was measured and is within the band.
fn in_band(shown: &Shown) -> bool {
    shown.measured.is_some_and(|value| accepts(shown, value))
}

/// Returns `true` if the band accepts the value.
fn accepts(shown: &Shown, value: f64) -> bool {
    shown.low.is_none_or(|low| low <= value) && shown.high.is_none_or(|high| value <= high)
}

impl Verdict {
    /// Returns `true` if the experiment agrees with its scenario.
    #[must_use]
    pub fn is_as_stated(self) -> bool {
        matches!(self, Self::Pass | Self::Differs)
    }

    /// The word in tables.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "FAIL",
            Self::Differs => "differs",
            Self::Stale => "STALE",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CheckKind;

    fn shown(measured: Option<f64>) -> Shown {
        Shown {
            name: "rate".to_owned(),
            quantity: "rate".to_owned(),
            metric: "throughput_gbps".to_owned(),
            relative: false,
            kind: Some(CheckKind::Shape),
            fitted: None,
            reading_error: None,
            variant: None,
            value: None,
            paper: None,
            measured,
            deviation_percent: None,
            seeds: measured.into_iter().collect(),
            censored: None,
            lower: None,
            upper: None,
            unit: String::new(),
            low: Some(1.0),
            high: Some(2.0),
            source: "calculated by hand".to_owned(),
            spread: None,
            why: None,
        }
    }

    fn verdicts(measured: &[Option<f64>], differs: bool, seeds: u64) -> Vec<Verdict> {
        let reason = "the testbed is another".to_owned();
        let numbers = measured.iter().map(|value| shown(*value)).collect();
        let judged = judge(numbers, differs.then_some(&reason), seeds);
        judged.iter().map(|check| check.verdict).collect()
    }

    #[test]
    fn a_band_includes_its_ends() {
        let values = [Some(0.9), Some(1.0), Some(2.0), Some(2.1), None];
        let [f, p] = [Verdict::Fail, Verdict::Pass];
        assert_eq!(verdicts(&values, false, FULL_SEEDS), [f, p, p, f, f]);
    }

    /// The median passes, and one of the seeds is outside.
    #[test]
    fn seeds_outside_the_band_are_counted() {
        let mut number = shown(Some(1.5));
        number.seeds = vec![1.0, 1.5, 2.5];
        let judged = judge(vec![number], None, 3);
        assert_eq!((judged[0].verdict, judged[0].seeds_outside), (Verdict::Pass, 1));
    }

    #[test]
    fn a_documented_miss_differs_until_all_values_pass() {
        let [p, d, s] = [Verdict::Pass, Verdict::Differs, Verdict::Stale];
        assert_eq!(verdicts(&[Some(1.5), Some(3.0)], true, FULL_SEEDS), [p, d]);
        assert_eq!(verdicts(&[Some(1.5), Some(2.0)], true, FULL_SEEDS), [s, s]);
        assert_eq!(verdicts(&[Some(1.5), Some(2.0)], true, 1), [p, p]);
        assert!(d.is_as_stated() && !s.is_as_stated());
    }

    /// A lower bound within the band does not determine the number, and `differs` does not apply.
    #[test]
    fn a_censored_number_fails() {
        let mut open = shown(None);
        (open.censored, open.lower) = (Some("1 of 2 ops had not ended".to_owned()), Some(1.5));
        let reason = "the testbed is another".to_owned();
        for differs in [None, Some(&reason)] {
            assert_eq!(judge(vec![open.clone()], differs, FULL_SEEDS)[0].verdict, Verdict::Fail);
        }
    }

    #[test]
    fn an_unmeasured_value_fails_and_does_not_differ() {
        assert_eq!(verdicts(&[None], true, FULL_SEEDS), [Verdict::Fail]);
    }
}
