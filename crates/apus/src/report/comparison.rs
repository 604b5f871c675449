//! Settings or algorithms side by side: the same data for `compare`, `sweep`, `tune` and `emulate`.

use apus_sim::bounds::Bounds;
use apus_sim::columns::unit_of;
use serde::Serialize;
use serde_json::{Value, json};

use super::short;

/// A setting that is varied.
pub struct Axis {
    /// Its key.
    pub key: String,
    /// Its values, in their order.
    pub values: Vec<String>,
}

/// A setting or algorithm.
pub struct Row {
    /// Its name.
    pub label: String,
    /// Its value of each axis.
    pub values: Vec<String>,
    /// By metric: median, smallest and largest value over the seeds; `None` if it was not measured.
    pub numbers: Vec<Option<(Bounds, f64, f64)>>,
    /// The command's choice.
    pub chosen: bool,
}

/// Percentiles of the distributions of a comparison, by their names in summary.json.
pub const PERCENTILES: [(&str, f64); 6] =
    [("p1", 1.0), ("p10", 10.0), ("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p99_9", 99.9)];

/// A distribution of each row.
#[derive(Serialize)]
pub struct Distribution {
    /// Its name.
    pub name: &'static str,
    /// By row: the percentiles [`PERCENTILES`], where they are known.
    pub rows: Vec<Vec<Option<f64>>>,
}

/// A comparison.
pub struct Comparison {
    /// Sentence about what is compared.
    pub caption: String,
    /// Names of the metrics.
    pub metrics: Vec<String>,
    /// Headings of the metrics, without units.
    pub headings: Vec<String>,
    /// Settings that are varied.
    pub axes: Vec<Axis>,
    /// What is compared.
    pub rows: Vec<Row>,
    /// Sentences: reasons of a choice, and changes that a row needed.
    pub reasons: Vec<String>,
    /// Distributions of ops and packets.
    pub distributions: Vec<Distribution>,
    /// Further tables, each with its caption.
    pub tables: Vec<(String, Vec<Vec<String>>)>,
    /// The two metrics of the first picture.
    pub against: [usize; 2],
}

impl Comparison {
    pub(super) fn json(&self) -> Value {
        let metric = |(name, heading): (&String, &String)| {
            json!({ "name": name, "heading": heading, "unit": unit_of(name),
                    "better": better(name), "fraction": apus_sim::results::is_fraction(name) })
        };
        let number = |number: &Option<(Bounds, f64, f64)>| {
            let Some((median, min, max)) = number else { return Value::Null };
            json!([
                median.value().map_or(Value::Null, short),
                short(median.lower),
                short(median.upper),
                short(*min),
                short(*max)
            ])
        };
        let row = |row: &Row| {
            json!({ "label": row.label, "values": row.values, "chosen": row.chosen,
                    "numbers": row.numbers.iter().map(number).collect::<Vec<_>>() })
        };
        let axis = |axis: &Axis| json!({ "key": axis.key, "values": axis.values });
        json!({
            "caption": self.caption,
            "metrics": self.metrics.iter().zip(&self.headings).map(metric).collect::<Vec<_>>(),
            "axes": self.axes.iter().map(axis).collect::<Vec<_>>(),
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
            "reasons": self.reasons,
            "percentiles": PERCENTILES.map(|(_, percent)| percent),
            "distributions": self.distributions,
            "tables": self.tables,
            "against": self.against,
        })
    }

    /// Returns the place of a metric, or `other` if it is not compared.
    pub fn place(metrics: &[String], name: &str, other: usize) -> usize {
        metrics
            .iter()
            .position(|metric| metric == name)
            .unwrap_or(other.min(metrics.len().saturating_sub(1)))
    }
}

/// Returns whether larger values of a metric are better (1), smaller ones (-1), or neither (0).
pub(super) fn better(name: &str) -> i8 {
    let words = |all: &[&str]| all.iter().any(|word| name.contains(word));
    if words(&["duplicate"]) {
        -1
    } else if words(&["goodput", "throughput", "utilisation", "jain", "bandwidth"])
        || name.ends_with("ops")
    {
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
