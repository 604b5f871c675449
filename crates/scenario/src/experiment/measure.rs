//! Computes the numbers of checks from summaries.

use serde::Serialize;
use serde_json::Value;

use crate::check::count_of;
use crate::{Check, CheckKind, Reduce, Relative, Run};
use apus_sim::bounds::Bounds;

/// A number of an experiment: the median over the seeds, and its spread.
#[derive(Clone, Debug, Serialize)]
pub struct Shown {
    /// Name of the check; with the variant if the check is applied to several one by one.
    pub name: String,
    /// Name of the quantity, which all variants of a check share.
    pub quantity: String,
    /// Path of the metric in the summary.
    pub metric: String,
    /// Whether the number is a ratio of the metric to another number, or of several runs.
    pub relative: bool,
    /// Kind of the check; `None` for a number without a check.
    pub kind: Option<CheckKind>,
    /// Setting that was fitted, and what it was fitted to, if the number is not a prediction.
    pub fitted: Option<String>,
    /// Reason why the publication's number is known less precisely than within 25 %.
    pub reading_error: Option<String>,
    /// The variant, if it is of one.
    pub variant: Option<String>,
    /// The variant's value, if it has one.
    pub value: Option<f64>,
    /// The publication's number.
    pub paper: Option<f64>,
    /// Median over the seeds; `None` if a run did not measure it, or if it is censored.
    pub measured: Option<f64>,
    /// Deviation of the median from the publication's number, in percent of that number; `None` if one
    /// of them is unknown, or the publication's is 0 and the median is not.
    pub deviation_percent: Option<f64>,
    /// Values by seed; empty if one of them is unknown.
    pub seeds: Vec<f64>,
    /// Reason why the value is censored, if it is: ops had not ended, so that only bounds are
    /// known.
    pub censored: Option<String>,
    /// Lower bound of a censored value.
    pub lower: Option<f64>,
    /// Upper bound of a censored value; `None` is unbounded.
    pub upper: Option<f64>,
    /// Unit of all numbers here.
    pub unit: String,
    /// Smallest accepted value.
    pub low: Option<f64>,
    /// Largest accepted value.
    pub high: Option<f64>,
    /// Place of the statement in the publication.
    pub source: String,
    /// Smallest and largest value over the seeds.
    pub spread: Option<(f64, f64)>,
    /// Reason why the measurement may differ.
    pub why: Option<String>,
}

/// Measures a check over the summaries `json`, which are by run and then by seed.
pub(super) fn measure(check: &Check, runs: &[Run], json: &[Vec<Value>]) -> Vec<Shown> {
    let data = Data { runs, json };
    if check.reduce.is_some() {
        return vec![data.measure(check, check.name.clone(), &check.runs)];
    }
    let one = |run: &usize| {
        let name = match &runs[*run].variant {
            Some(variant) if check.runs.len() > 1 => format!("{}, {variant}", check.name),
            _ => check.name.clone(),
        };
        data.measure(check, name, &[*run])
    };
    check.runs.iter().map(one).collect()
}

struct Data<'a> {
    runs: &'a [Run],
    json: &'a [Vec<Value>],
}

impl Data<'_> {
    fn measure(&self, check: &Check, name: String, runs: &[usize]) -> Shown {
        let seeds = self.json.first().map_or(0, Vec::len);
        let bounds: Option<Vec<Bounds>> =
            (0..seeds).map(|seed| self.of_seed(check, runs, seed)).collect();
        let bounds = bounds.unwrap_or_default();
        let median = Bounds::median(&bounds);
        let few = self.too_few(check, runs);
        let measured = median.and_then(Bounds::value).filter(|_| few.is_none());
        let open = median.filter(|_| measured.is_none() && few.is_none());
        // A median may be known although the values of some seeds are not.
        let values: Option<Vec<f64>> = bounds.into_iter().map(Bounds::value).collect();
        let values = values.unwrap_or_default();
        let finite = |value: f64| value.is_finite().then_some(value);
        let one = if let [run] = runs { Some(&self.runs[*run]) } else { None };
        Shown {
            name,
            quantity: check.name.clone(),
            metric: check.metric.clone(),
            relative: check.relative.is_some() || check.reduce.is_some(),
            kind: check.kind,
            fitted: check.fitted.clone(),
            reading_error: check.reading_error.clone(),
            variant: one.and_then(|run| run.variant.clone()),
            value: one.and_then(|run| run.value),
            paper: check.paper,
            measured,
            deviation_percent: check.paper.zip(measured).and_then(deviation_percent),
            spread: smallest(&values).zip(largest(&values)),
            seeds: values,
            censored: few.or_else(|| open.map(|_| self.why_censored(check, runs))),
            lower: open.and_then(|open| finite(open.lower)),
            upper: open.and_then(|open| finite(open.upper)),
            unit: check.unit.clone(),
            low: check.low,
            high: check.high,
            source: check.source.clone(),
            why: check.why.clone(),
        }
    }

    /// The value of a check in the runs with one seed.
    fn of_seed(&self, check: &Check, runs: &[usize], seed: usize) -> Option<Bounds> {
        let values: Option<Vec<Bounds>> = runs
            .iter()
            .map(|&run| {
                let place = check.runs.iter().position(|own| *own == run);
                let value = self.metric(run, seed, &check.metric)?;
                let Some(relative) = &check.relative else { return Some(value) };
                let base = match relative {
                    Relative::Largest => {
                        let all: Option<Vec<Bounds>> = (0..self.runs.len())
                            .map(|run| self.metric(run, seed, &check.metric))
                            .collect();
                        of_each(&all?, largest)?
                    }
                    Relative::Value => Bounds::exact(self.runs[run].value?),
                    Relative::Own { metric } => self.metric(run, seed, metric)?,
                    Relative::Runs { runs, metric, .. } => {
                        let own = place.and_then(|place| runs.get(place));
                        self.metric(*own.or(runs.first())?, seed, metric)?
                    }
                };
                let ratio = value.over(base);
                let known = ratio.lower.is_finite() && !ratio.upper.is_nan();
                let gain = matches!(relative, Relative::Runs { gain: true, .. });
                known.then(|| ratio.map(|ratio| if gain { ratio - 1.0 } else { ratio }))
            })
            .collect();
        let values = values?;
        let reduced = match check.reduce {
            None => values.first().copied(),
            Some(Reduce::Min) => of_each(&values, smallest),
            Some(Reduce::Max) => of_each(&values, largest),
            Some(Reduce::Mean) => {
                of_each(&values, |all| Some(all.iter().sum::<f64>() / all.len() as f64))
            }
            Some(Reduce::Median) => Bounds::median(&values),
            Some(Reduce::Exponent) => of_known(&values, |values| {
                let points =
                    runs.iter().zip(values).map(|(&run, y)| Some((self.runs[run].value?, *y)));
                exponent(&points.collect::<Option<Vec<_>>>()?)
            }),
            Some(Reduce::Rise) => of_known(&values, least_rise),
            Some(Reduce::Rank(number)) => {
                of_known(&values, |values| Some(share_below(values, number)))
            }
        };
        reduced.map(|bounds| bounds.map(|value| check.in_unit(value)))
    }

    /// A number of a summary, by its path.
    fn metric(&self, run: usize, seed: usize, path: &str) -> Option<Bounds> {
        Bounds::of_metric(self.json.get(run)?.get(seed)?, path)
    }

    /// Returns a description of the first run whose percentile is of too few values, if there is one.
    fn too_few(&self, check: &Check, runs: &[usize]) -> Option<String> {
        let least = check.samples?;
        let all = match &check.relative {
            Some(Relative::Runs { runs: bases, metric, .. }) if *metric == check.metric => {
                runs.iter().chain(bases).copied().collect()
            }
            _ => runs.to_vec(),
        };
        let path = count_of(&check.metric)?;
        let counts = all.iter().flat_map(|run| self.json.get(*run).into_iter().flatten());
        let counts = counts
            .map(|summary| Bounds::of_metric(summary, &path).map_or(0.0, |bounds| bounds.lower));
        let fewest = smallest(&counts.collect::<Vec<f64>>())?;
        (fewest < least as f64)
            .then(|| format!("one run has {fewest} values, but the check needs {least}"))
    }

    /// Returns a description of the ops that had not ended in the first run with a censored metric.
    fn why_censored(&self, check: &Check, runs: &[usize]) -> String {
        let mut paths = vec![&check.metric];
        if let Some(Relative::Own { metric } | Relative::Runs { metric, .. }) = &check.relative {
            paths.push(metric);
        }
        let all = (0..self.runs.len()).filter(|run| runs.contains(run) || check.relative.is_some());
        for (run, path) in all.flat_map(|run| paths.iter().map(move |path| (run, path))) {
            for summary in self.json.get(run).into_iter().flatten() {
                let bounds = Bounds::of_metric(summary, path);
                if bounds.is_some_and(|bounds| bounds.value().is_none()) {
                    return describe_unfinished(summary, path);
                }
            }
        }
        "ops had not ended".to_owned()
    }
}

/// Applies a function to all lower bounds, and to all upper bounds. The function must be
/// non-decreasing in each value.
fn of_each(values: &[Bounds], of: impl Fn(&[f64]) -> Option<f64>) -> Option<Bounds> {
    let all = |bound: fn(&Bounds) -> f64| values.iter().map(bound).collect::<Vec<f64>>();
    Some(Bounds { lower: of(&all(|b| b.lower))?, upper: of(&all(|b| b.upper))? })
}

/// Applies a function to numbers that are known. If one is censored, so is the result, without bounds.
fn of_known(values: &[Bounds], of: impl Fn(&[f64]) -> Option<f64>) -> Option<Bounds> {
    let known: Option<Vec<f64>> = values.iter().map(|bounds| bounds.value()).collect();
    match known {
        Some(known) => of(&known).map(Bounds::exact),
        None => Some(Bounds { lower: f64::NEG_INFINITY, upper: f64::INFINITY }),
    }
}

/// Returns "12 of 4000 ops had not ended, the oldest of them after 19000.0 us", for the distribution that
/// contains `path`.
#[must_use]
pub fn describe_unfinished(summary: &Value, path: &str) -> String {
    let parent = path.rsplit_once('.').map_or("", |(parent, _)| parent);
    let parent = if parent.ends_with("_us") || parent.ends_with("slowdown") {
        parent.to_owned()
    } else {
        format!("{parent}.op_latency_us")
    };
    let of = |name: &str| {
        let path = format!("{parent}.{name}");
        Bounds::of_metric(summary, &path).map_or(0.0, |bounds| bounds.lower)
    };
    let (open, all) = (of("unfinished"), of("lower.count"));
    let oldest = of("oldest_unfinished_us");
    format!("{open} of {all} ops had not ended, the oldest of them after {oldest:.1} us")
}

/// Returns the smallest ratio of a value to the previous one. A value after a zero counts as a
/// million times as large, unless it is zero too.
fn least_rise(values: &[f64]) -> Option<f64> {
    const LARGEST: f64 = 1e6;
    let ratio = |pair: &[f64]| if pair[0] == pair[1] { 1.0 } else { pair[1] / pair[0] };
    let ratios: Vec<f64> = values.windows(2).map(ratio).collect();
    smallest(&ratios).map(|least| least.min(LARGEST))
}

/// Returns the share of values that are less than `number`.
fn share_below(values: &[f64], number: f64) -> f64 {
    values.iter().filter(|value| **value < number).count() as f64 / values.len().max(1) as f64
}

/// Returns the deviation of a measured number from that of the publication, in percent.
fn deviation_percent((paper, measured): (f64, f64)) -> Option<f64> {
    if measured == paper {
        return Some(0.0);
    }
    (paper != 0.0).then(|| (measured - paper) / paper.abs() * 100.0)
}

fn smallest(values: &[f64]) -> Option<f64> {
    values.iter().copied().min_by(f64::total_cmp)
}

fn largest(values: &[f64]) -> Option<f64> {
    values.iter().copied().max_by(f64::total_cmp)
}

/// The exponent b of y = a x^b through `points`, by least squares over the logarithms; `None` if they
/// do not have two different, positive x, or not all y are positive.
fn exponent(points: &[(f64, f64)]) -> Option<f64> {
    if points.iter().any(|&(x, y)| x <= 0.0 || y <= 0.0) {
        return None;
    }
    let logs: Vec<(f64, f64)> = points.iter().map(|&(x, y)| (x.ln(), y.ln())).collect();
    let mean = |of: fn(&(f64, f64)) -> f64| logs.iter().map(of).sum::<f64>() / logs.len() as f64;
    let (mean_x, mean_y) = (mean(|p| p.0), mean(|p| p.1));
    let covariance: f64 = logs.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let variance: f64 = logs.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    (variance > 0.0).then(|| covariance / variance)
}

#[cfg(test)]
mod tests {
    use super::{exponent, least_rise, share_below};

    /// 3 sqrt(x) has the exponent 1/2; a fit by hand through (1, 1), (2, 1), (4, 4) gives x^1.
    #[test]
    fn exponent_of_a_power_law() {
        let root = exponent(&[1.0, 10.0, 100.0].map(|x: f64| (x, 3.0 * x.sqrt())));
        assert!((root.unwrap() - 0.5).abs() < 1e-12, "{root:?}");
        let fit = exponent(&[(1.0, 1.0), (2.0, 1.0), (4.0, 4.0)]);
        assert!((fit.unwrap() - 1.0).abs() < 1e-12, "{fit:?}");
        assert_eq!(exponent(&[(2.0, 1.0), (2.0, 3.0)]), None);
        assert_eq!(exponent(&[(1.0, 1.0), (2.0, 0.0)]), None);
        assert_eq!(exponent(&[]), None);
    }

    #[test]
    fn the_rank_of_a_number_counts_smaller_values() {
        let values = [3.0, 1.0, 2.0, 4.0];
        assert_eq!(
            [0.5, 2.0, 2.5, 9.0].map(|number| share_below(&values, number)),
            [0.0, 0.25, 0.5, 1.0]
        );
    }

    #[test]
    fn a_growing_metric_never_falls_below_the_previous_value() {
        assert_eq!(least_rise(&[1.0, 2.0, 3.0]), Some(1.5));
        assert_eq!(least_rise(&[1.0, 2.0, 1.0]), Some(0.5));
        assert_eq!(least_rise(&[0.0, 0.0, 1.0]), Some(1.0));
        assert_eq!(least_rise(&[0.0, 1.0]), Some(1e6));
        assert_eq!(least_rise(&[1.0]), None);
    }
}
