//! Points of a sweep: the product of all values.

use apus_scenario::{Options, Setup};

use crate::failure::Failure;
use crate::library;

/// A setting and its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Dotted key of the setting.
    pub key: String,
    /// Its values as the user wrote them.
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
#[derive(Clone, Debug)]
pub struct Point {
    /// Value of each axis, in their order.
    pub values: Vec<String>,
    /// Variant of the scenario, if it has variants.
    pub variant: Option<String>,
    /// The run with its seed.
    pub setup: Setup,
}

/// Returns all runs. The last axis varies fastest among the settings, then follow the variants,
/// then the seeds from the scenario's own upwards.
pub fn points(
    file: &str,
    options: &Options,
    axes: &[Axis],
    seeds: u64,
) -> Result<Vec<Point>, Failure> {
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
        let set = options.set.iter().cloned().chain(varied).collect();
        let scenario = library::open(file, &Options { set, ..options.clone() })?;
        for run in scenario.runs {
            let first = run.setup.seed();
            for seed in first..first.saturating_add(seeds) {
                let (values, variant) = (values.clone(), run.variant.clone());
                points.push(Point { values, variant, setup: run.setup.clone().with_seed(seed) });
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
