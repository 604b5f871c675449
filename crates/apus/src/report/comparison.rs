//! Comparison of settings or algorithms: the same data structure for `compare`, `sweep`, `tune` and `emulate`.

use apus_sim::columns::unit_of;
use apus_sim::record::Cdf;
use apus_sim::results::pattern_of;
use serde_json::{Value, json};

use super::short;
use crate::paired::quantile;
use crate::spread::Spread;

/// Smallest distance of two points of a distribution; a factor of ten towards the tail has length 1.
const RESOLUTION: f64 = 0.01;

/// A varied setting.
pub struct Axis {
    /// Key of the setting.
    pub key: String,
    /// Values of the setting, in order.
    pub values: Vec<String>,
}

/// A setting or algorithm.
pub struct Row {
    /// Name of the row.
    pub label: String,
    /// Value on each axis.
    pub values: Vec<String>,
    /// Further distinguishing parts, such as the variant of the scenario.
    pub parts: Vec<String>,
    /// Values by metric; `None` if the metric was not measured.
    pub numbers: Vec<Option<Spread>>,
    /// `true` for the row that the command chose.
    pub chosen: bool,
}

/// A distribution for each row.
pub struct Distribution {
    /// Name of the distribution.
    pub name: &'static str,
    /// Points by row, each a value in microseconds and the fraction of values at or below it.
    pub rows: Vec<Cdf>,
}

impl Distribution {
    fn json(&self) -> Value {
        let row = |points: &Cdf| {
            let points = thinned(points);
            let (values, fractions): (Vec<Value>, Vec<f64>) = points
                .into_iter()
                .map(|(value, f)| (short(value), (f * 1e7).round() / 1e7))
                .unzip();
            json!([values, fractions])
        };
        json!({ "name": self.name, "rows": self.rows.iter().map(row).collect::<Vec<_>>() })
    }
}

/// Returns the points that are distinguishable on an axis where each factor of ten towards the tail has the same
/// length.
fn thinned(points: &Cdf) -> Cdf {
    let nines = |fraction: f64| -(1.0 - fraction).max(1e-9).log10();
    let mut last = f64::NEG_INFINITY;
    let mut kept = Cdf::new();
    for (place, &(value, fraction)) in points.iter().enumerate() {
        let at = nines(fraction);
        if at - last >= RESOLUTION || place + 1 == points.len() {
            kept.push((value, fraction));
            last = at;
        }
    }
    kept
}

/// A comparison.
pub struct Comparison {
    /// Sentence that describes the comparison.
    pub caption: String,
    /// Names of the metrics.
    pub metrics: Vec<String>,
    /// Headings of the metrics, without units.
    pub headings: Vec<String>,
    /// Varied settings.
    pub axes: Vec<Axis>,
    /// Compared settings or algorithms.
    pub rows: Vec<Row>,
    /// Sentences: reasons of a choice, and changes to the scenario that a row needed.
    pub reasons: Vec<String>,
    /// Distributions of ops and packets.
    pub distributions: Vec<Distribution>,
    /// Further tables, each with its caption.
    pub tables: Vec<(String, Vec<Vec<String>>)>,
    /// Indices of the two metrics of the first picture.
    pub against: [usize; 2],
}

impl Comparison {
    pub(super) fn json(&self) -> Value {
        let metric = |(name, heading): (&String, &String)| {
            json!({ "name": name, "pattern": pattern(name), "heading": heading, "unit": unit_of(name),
                    "better": better(name), "fraction": is_fraction(name) })
        };
        let number = |number: &Option<Spread>| {
            let Some(Spread { median, min, max, by_seed }) = number else { return Value::Null };
            let mut all = vec![
                median.value().map_or(Value::Null, short),
                short(median.lower),
                short(median.upper),
                short(*min),
                short(*max),
            ];
            if by_seed.len() > 1 {
                all.push(by_seed.iter().map(|value| value.map(precise)).collect());
            }
            Value::from(all)
        };
        let row = |row: &Row| {
            json!({ "label": row.label, "values": row.values, "parts": row.parts,
                    "chosen": row.chosen, "numbers": row.numbers.iter().map(number).collect::<Vec<_>>() })
        };
        let axis = |axis: &Axis| json!({ "key": axis.key, "values": axis.values });
        json!({
            "caption": self.caption,
            "metrics": self.metrics.iter().zip(&self.headings).map(metric).collect::<Vec<_>>(),
            "axes": self.axes.iter().map(axis).collect::<Vec<_>>(),
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
            "reasons": self.reasons,
            "distributions": self.distributions.iter().map(Distribution::json).collect::<Vec<_>>(),
            "quantiles": self.quantiles(),
            "tables": self.tables,
            "against": self.against,
        })
    }

    /// Returns the quantiles of Student's t from which the page computes intervals of differences, by number of pairs
    /// from 2 upwards.
    fn quantiles(&self) -> Vec<f64> {
        let numbers = self.rows.iter().flat_map(|row| row.numbers.iter().flatten());
        let seeds = numbers.map(|number| number.by_seed.len()).max().unwrap_or(0);
        (1..seeds).map(quantile).collect()
    }

    /// Returns the index of a metric, or `other` if the metric is not compared.
    pub fn place(metrics: &[String], name: &str, other: usize) -> usize {
        metrics
            .iter()
            .position(|metric| metric == name)
            .unwrap_or(other.min(metrics.len().saturating_sub(1)))
    }
}

/// Returns a value with seven digits, because its differences from other values matter.
fn precise(value: f64) -> f64 {
    format!("{value:.6e}").parse().unwrap_or(value)
}

/// Returns `true` if a metric is a fraction. Metrics of `emulate`, which are named in words, are included.
fn is_fraction(name: &str) -> bool {
    apus_sim::results::is_fraction(name) || name.starts_with("utilisation")
}

/// Returns the name of a metric with the user's names replaced by `<name>`. The names of `apus emulate` are words and
/// stay.
fn pattern(name: &str) -> &str {
    pattern_of(name).unwrap_or(name)
}

/// Returns 1 if larger values of a metric are better, -1 if smaller ones are, and 0 if neither holds. Names that the
/// user chose, and the number of values of a distribution, are not considered.
pub(super) fn better(name: &str) -> i8 {
    if name.ends_with(".count") {
        return 0;
    }
    let name = pattern(name);
    let words = |all: &[&str]| all.iter().any(|word| name.contains(word));
    let ops = name == "ops" || name.ends_with(".ops");
    if words(&["duplicate"]) {
        -1
    } else if words(&["goodput", "throughput", "jain", "bandwidth"]) || ops {
        1
    } else if words(&[
        "_us",
        "loss",
        "drop",
        "queue",
        "slowdown",
        "unfinished",
        "deviation",
        "stall",
    ]) {
        -1
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::{better, pattern, thinned};

    #[test]
    fn fewer_drops_and_unfinished_ops_are_better_and_more_ops_are() {
        let names = ["drops", "measured.drops", "unfinished_ops", "ops", "workload.calls.ops"];
        assert_eq!(names.map(better), [-1, -1, -1, 1, 1]);
    }

    #[test]
    fn the_direction_of_a_metric_does_not_depend_on_names_of_the_user() {
        let smaller = ["workload.throughput.slowdown.p99", "ports.bandwidth.queue_us.p99"];
        assert_eq!(smaller.map(better), [-1, -1]);
        assert_eq!(better("workload.drop.goodput_gbps"), 1);
        assert_eq!(better("workload.duplicate.ops"), 1);
        let neither = ["op_latency_us.count", "workload.web.slowdown.count", "work.events"];
        assert_eq!(neither.map(better), [0, 0, 0]);
        // The page searches for words in the result.
        assert_eq!(pattern("workload.packets.ops"), "workload.<name>.ops");
        // Metrics of `apus emulate` are named in words.
        assert_eq!(better("goodput of host 1, kernel"), 1);
    }

    /// 10,000 points at equal distances: on an axis that stretches the tail, those of the lower half nearly coincide.
    #[test]
    fn points_of_a_distribution_are_dense_in_the_tail() {
        let all: Vec<(f64, f64)> =
            (1..=10_000).map(|n| (f64::from(n), f64::from(n) / 1e4)).collect();
        let kept = thinned(&all);
        // Four decades with at most a hundred points each; the tail has fewer.
        assert!(kept.len() < 400 && kept.len() > 200, "{}", kept.len());
        assert_eq!(kept.last(), Some(&(10_000.0, 1.0)));
        assert_eq!(kept.iter().filter(|(_, fraction)| *fraction >= 0.9989).count(), 12);
    }
}
