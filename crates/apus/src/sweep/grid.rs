//! Points of a sweep: the Cartesian product of all values.

use apus_scenario::{Options, Setup};

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::{library, store};

/// A setting and its values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// Dotted key of the setting.
    pub key: String,
    /// Values as the user wrote them.
    pub values: Vec<String>,
}

/// Reads `key=a,b,c`; commas within brackets, braces or quotes do not separate values.
pub fn read_axis(text: &str) -> Result<Axis, String> {
    let example = "write --vary algorithm.base_target=20us,30us,50us";
    let Some((key, list)) = text.split_once('=') else {
        return Err(format!("lacks `=`; {example}"));
    };
    let mut values = vec![String::new()];
    let (mut depth, mut quoted) = (0i32, false);
    for c in list.chars() {
        match c {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth -= 1,
            _ => {}
        }
        if c == ',' && depth == 0 && !quoted {
            values.push(String::new());
        } else if let Some(value) = values.last_mut() {
            value.push(c);
        }
    }
    let values: Vec<String> = values.iter().map(|value| value.trim().to_owned()).collect();
    let key = key.trim().to_owned();
    if key.is_empty() || values.iter().any(String::is_empty) {
        return Err(format!("a key or a value is empty; {example}"));
    }
    if let Some(twice) = values.iter().enumerate().find(|(i, v)| values[..*i].contains(v)) {
        return Err(format!("the value `{}` is there twice; remove one", twice.1));
    }
    Ok(Axis { key, values })
}

/// One run of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Value on each axis, in order.
    pub values: Vec<String>,
    /// Variant of the scenario, if it has variants.
    pub variant: Option<String>,
    /// Seed of the run.
    pub seed: u64,
    /// Key of the run in the store.
    pub run: String,
}

impl Point {
    /// Returns the settings that distinguish the run from others, for messages.
    pub fn describe(&self, axes: &[Axis]) -> String {
        let settings = axes.iter().zip(&self.values);
        let mut parts: Vec<String> =
            settings.map(|(axis, value)| format!("{}={value}", axis.key)).collect();
        parts.extend(self.variant.as_ref().map(|name| format!("variant {name}")));
        parts.push(format!("seed {}", self.seed));
        parts.join(", ")
    }
}

/// Returns all runs. Seeds, from the scenario's own upwards, vary fastest, then the variants, then the settings; among
/// the settings, the last axis varies fastest.
pub fn points(
    file: &str,
    options: &Options,
    axes: &[Axis],
    seeds: u64,
) -> Result<Vec<(Point, Setup)>, Failure> {
    let count: usize = axes.iter().map(|axis| axis.values.len()).product();
    let mut points = Vec::new();
    for index in 0..count {
        let mut rest = index;
        let mut values: Vec<String> = Vec::new();
        for axis in axes.iter().rev() {
            values.insert(0, axis.values[rest % axis.values.len()].clone());
            rest /= axis.values.len();
        }
        let varied = axes.iter().zip(&values).map(|(axis, value)| format!("{}={value}", axis.key));
        let vary = varied.collect();
        let scenario = library::open(file, &Options { vary, ..options.clone() })?;
        for run in scenario.runs {
            let first = run.setup.seed();
            for seed in first..first.saturating_add(seeds) {
                let (values, variant) = (values.clone(), run.variant.clone());
                let setup = run.setup.clone().with_seed(seed);
                let run = store::key(&setup);
                points.push((Point { values, variant, seed, run }, setup));
            }
        }
    }
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::read_axis;

    #[test]
    fn values_are_split_at_commas_outside_of_lists() {
        let axis = read_axis("workload.senders = [0,1], [2, 3] ,\"a,b\"").expect("axis");
        assert_eq!(axis.key, "workload.senders");
        assert_eq!(axis.values, ["[0,1]", "[2, 3]", "\"a,b\""]);
        for wrong in ["a", "a=", "=1", "a=1,,2", "a=1,1"] {
            assert!(read_axis(wrong).is_err(), "{wrong}");
        }
    }
}
