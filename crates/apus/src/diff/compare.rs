//! Comparison of two results.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::load::Results;
use super::tolerance::Rules;
use crate::text;

/// Differences between two results.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// `true` if there is no difference.
    pub equal: bool,
    /// Number of runs that both results have.
    pub runs: usize,
    /// Number of compared values.
    pub values: usize,
    /// Differences, run by run.
    pub differences: Vec<Difference>,
    /// Runs that only the first results have.
    pub only_in_a: Vec<String>,
    /// Runs that only the second results have.
    pub only_in_b: Vec<String>,
    /// Paths of all values of either result.
    #[serde(skip)]
    pub metrics: Vec<String>,
}

/// A value that differs.
#[derive(Debug, Serialize)]
pub struct Difference {
    /// The run, as in the first results.
    pub run: String,
    /// Path of the value.
    pub metric: String,
    /// Value in the first results; absent if they lack it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a: Option<Value>,
    /// Value in the second results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub b: Option<Value>,
    /// Difference over the first value, if both are numbers and the first is not 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative: Option<f64>,
}

/// Maximum number of characters of a value in the text.
const WIDEST: usize = 40;
/// Maximum number of differences of a run in the text.
const SHOWN: usize = 40;

/// Compares all values of two results.
pub fn compare(a: &Results, b: &Results, rules: &Rules) -> Comparison {
    let mut compared = Comparison {
        equal: true,
        runs: 0,
        values: 0,
        differences: Vec::new(),
        only_in_a: Vec::new(),
        only_in_b: Vec::new(),
        metrics: Vec::new(),
    };
    let mut metrics: BTreeSet<String> = BTreeSet::new();
    let single = a.runs.len() == 1 && b.runs.len() == 1;
    let by_key: BTreeMap<&String, &Value> = b.runs.iter().map(|(key, run)| (key, run)).collect();
    for (key, ours) in &a.runs {
        let other = if single { Some(&b.runs[0].1) } else { by_key.get(key).copied() };
        let Some(theirs) = other else {
            compared.only_in_a.push(key.clone());
            metrics.extend(leaves(ours).into_keys());
            continue;
        };
        compared.runs += 1;
        let (ours, theirs) = (leaves(ours), leaves(theirs));
        let paths: BTreeMap<&String, ()> =
            ours.keys().chain(theirs.keys()).map(|p| (p, ())).collect();
        for path in paths.into_keys() {
            metrics.insert(path.clone());
            if rules.ignores(path) {
                continue;
            }
            compared.values += 1;
            let (a, b) = (ours.get(path).copied(), theirs.get(path).copied());
            let numbers = a.and_then(Value::as_f64).zip(b.and_then(Value::as_f64));
            let same = match numbers {
                Some((a, b)) => rules.accepts(path, a, b),
                None => a == b,
            };
            if !same {
                let relative = numbers.filter(|(a, _)| *a != 0.0).map(|(a, b)| (b - a) / a.abs());
                compared.differences.push(Difference {
                    run: key.clone(),
                    metric: path.clone(),
                    a: a.cloned(),
                    b: b.cloned(),
                    relative,
                });
            }
        }
    }
    if !single {
        let ours: BTreeSet<&String> = a.runs.iter().map(|(key, _)| key).collect();
        for (key, theirs) in b.runs.iter().filter(|(key, _)| !ours.contains(key)) {
            compared.only_in_b.push(key.clone());
            metrics.extend(leaves(theirs).into_keys());
        }
    }
    compared.metrics = metrics.into_iter().collect();
    compared.equal = compared.differences.is_empty()
        && compared.only_in_a.is_empty()
        && compared.only_in_b.is_empty();
    compared
}

impl Comparison {
    /// Returns the differences as text; `a` and `b` name the results.
    pub fn text(&self, a: &str, b: &str) -> String {
        let mut out = String::new();
        for of_run in self.differences.chunk_by(|a, b| a.run == b.run) {
            out += &format!("{}\n", of_run[0].run);
            let rows: Vec<Vec<String>> = of_run.iter().take(SHOWN).map(row).collect();
            out += &text::columns(&rows, "  ");
            if of_run.len() > SHOWN {
                out += &format!("  and {} more; --json has all\n", of_run.len() - SHOWN);
            }
        }
        for (runs, name) in [(&self.only_in_a, a), (&self.only_in_b, b)] {
            runs.iter().for_each(|run| out += &format!("{run}: only in {name}\n"));
        }
        if self.runs == 0 && !self.equal {
            return out + "no run is in both results\n";
        }
        let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let differ = match self.differences.len() {
            0 => "no difference".to_owned(),
            1 => "1 differs".to_owned(),
            n => format!("{n} differ"),
        };
        out + &format!("{} of {}: {differ}\n", count(self.values, "value"), count(self.runs, "run"))
    }
}

/// Returns name, both values and the relative difference.
fn row(difference: &Difference) -> Vec<String> {
    let value = |value: &Option<Value>| match value {
        None => "missing".to_owned(),
        Some(Value::String(text)) if text.chars().count() > WIDEST => {
            text.chars().take(WIDEST).chain("...".chars()).collect()
        }
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    };
    let Difference { metric, a, b, relative, .. } = difference;
    let relative = relative.map_or_else(String::new, |share| format!("{:+.3} %", share * 100.0));
    vec![metric.clone(), value(a), "->".to_owned(), value(b), relative]
}

/// Returns all values that are neither lists nor objects, by their path.
fn leaves(value: &Value) -> BTreeMap<String, &Value> {
    fn add<'a>(leaves: &mut BTreeMap<String, &'a Value>, path: &str, value: &'a Value) {
        let below =
            |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        match value {
            Value::Object(fields) => {
                fields.iter().for_each(|(name, value)| add(leaves, &below(name), value));
            }
            Value::Array(list) => {
                (0..)
                    .zip(list)
                    .for_each(|(n, value): (usize, _)| add(leaves, &below(&n.to_string()), value));
            }
            _ => {
                leaves.insert(path.to_owned(), value);
            }
        }
    }
    let mut all = BTreeMap::new();
    add(&mut all, "", value);
    all
}
