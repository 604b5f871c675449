//! The failures to try.

use std::path::Path;

use apus_scenario::{Options, Problem, ScenarioError, Setup, Source};
use apus_sim::random::{Purpose, Stream};

use crate::library;

/// A link or a switch, identified by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// A link, such as "agg 0 <-> core 0".
    Link(String),
    /// A switch, such as "core 0".
    Switch(String),
}

impl Unit {
    /// Returns its name.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Link(name) | Self::Switch(name) => name,
        }
    }
}

/// Links and switches that fail at the same time.
pub(super) type Case = Vec<Unit>;

/// Returns the failures of single units or of pairs, or a sample of them.
pub(super) fn cases(units: &[Unit], pairs: bool, sample: Option<u64>, seed: u64) -> Vec<Case> {
    let mut all: Vec<Case> = if pairs {
        let others = |first: usize| units[first + 1..].iter().map(move |other| (first, other));
        let both = (0..units.len()).flat_map(others);
        both.map(|(first, other)| vec![units[first].clone(), other.clone()]).collect()
    } else {
        units.iter().map(|unit| vec![unit.clone()]).collect()
    };
    if let Some(sample) = sample.filter(|sample| *sample < all.len() as u64) {
        let mut stream = Stream::new(seed, Purpose::Failure, u64::MAX);
        // A topology whose links can be tried in pairs has fewer than 2^16 of them.
        let mut chosen = stream.permutation(u32::try_from(all.len()).unwrap_or(u32::MAX));
        chosen.truncate(sample as usize);
        chosen.sort_unstable();
        all = chosen.into_iter().map(|place| all[place as usize].clone()).collect();
    }
    all
}

/// The fault that `--fault` applies to the units.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    /// Text of the option.
    pub(super) text: String,
    /// Keys of `[[fault]]` with their values, in TOML.
    keys: String,
}

/// Reads `--fault`, such as "slow fraction=0.25".
pub(super) fn read_fault(text: &str) -> Result<Fault, String> {
    let mut words = text.split_whitespace();
    let Some(kind) = words.next().filter(|word| !word.contains('=')) else {
        return Err(
            "must begin with a kind of fault, like \"down\" or \"slow fraction=0.25\"".to_owned()
        );
    };
    let mut keys = format!("kind = {kind:?}\n");
    for word in words {
        let Some((key, value)) = word.split_once('=') else {
            return Err(format!("has \"{word}\" behind the kind; write `key=value`"));
        };
        if ["link", "switch", "kind", "share", "count", "keep_paths"].contains(&key) {
            return Err(format!("has the key `{key}`, which --link and --switch decide"));
        }
        keys += &format!("{key} = {}\n", toml_value(value));
    }
    Ok(Fault { text: text.to_owned(), keys })
}

/// Returns the value of a key in TOML: a number, `true`, `false`, or otherwise a string.
fn toml_value(value: &str) -> String {
    if ["true", "false"].contains(&value) {
        return value.to_owned();
    }
    // TOML does not allow leading zeros.
    if let Ok(number) = value.parse::<i64>() {
        return number.to_string();
    }
    // TOML needs a digit before and after the decimal point, and `nan` in lower case.
    let text = |number: f64| format!("{number:?}").to_lowercase();
    value.parse().map_or_else(|_| format!("{value:?}"), text)
}

impl Fault {
    /// Returns the run with the failure of these units.
    ///
    /// # Errors
    /// If the scenario cannot have this fault; the message names the option at fault.
    pub(super) fn add(&self, setup: &Setup, case: &Case) -> Result<Setup, String> {
        let mut text = setup.to_toml();
        for unit in case {
            let (key, name) = match unit {
                Unit::Link(name) => ("link", name),
                Unit::Switch(name) => ("switch", name),
            };
            text += &format!("\n[[fault]]\n{key} = {name:?}\n{}", self.keys);
        }
        let source = Source { name: String::new(), text };
        let options = Options { expects_faults: true, ..Options::default() };
        let scenario = library::read(&source, Path::new(""), &options);
        let mut scenario = scenario.map_err(|ScenarioError(problems)| {
            let all = problems.iter().map(|problem| self.describe(problem, &source.text, case));
            all.collect::<Vec<_>>().join("\n")
        })?;
        let run = scenario.runs.pop().ok_or("no run")?;
        Ok(run.setup.with_all_ops())
    }

    /// Describes a problem by the option that caused it, because its position refers to a text that the user did not
    /// write.
    fn describe(&self, problem: &Problem, text: &str, case: &Case) -> String {
        let names = case.iter().map(Unit::name).collect::<Vec<_>>().join(" and ");
        let line = problem.position.and_then(|(line, _)| text.lines().nth(line - 1));
        let of_unit =
            line.is_some_and(|line| line.starts_with("link") || line.starts_with("switch"));
        let why = &problem.message;
        if of_unit && case.len() > 1 {
            format!("--pairs: {names}: {why}")
        } else {
            format!("--fault {:?} on {names}: {why}", self.text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_and_samples_are_counted() {
        let units: Vec<Unit> = (0..6).map(|n| Unit::Link(n.to_string())).collect();
        assert_eq!(cases(&units, false, None, 1).len(), 6);
        assert_eq!(cases(&units, true, None, 1).len(), 15);
        let sample = cases(&units, true, Some(4), 1);
        assert_eq!(sample.len(), 4);
        assert_eq!(sample, cases(&units, true, Some(4), 1));
        assert!((2..9).any(|seed| cases(&units, true, Some(4), seed) != sample));
        assert_eq!(cases(&units, false, Some(9), 1).len(), 6);
    }

    #[test]
    fn a_fault_is_written_as_a_table() {
        let fault = read_fault("slow fraction=0.25 at=1ms").expect("a fault");
        assert_eq!(fault.keys, "kind = \"slow\"\nfraction = 0.25\nat = \"1ms\"\n");
        let keys = read_fault("slow fraction=.5 count_of=3 name=x.5").expect("a fault").keys;
        assert_eq!(keys, "kind = \"slow\"\nfraction = 0.5\ncount_of = 3\nname = \"x.5\"\n");
        let keys = read_fault("slow fraction=nan count_of=-007 last=-INF").expect("a fault").keys;
        assert_eq!(keys, "kind = \"slow\"\nfraction = nan\ncount_of = -7\nlast = -inf\n");
        assert!(read_fault("").is_err() && read_fault("fraction=1").is_err());
        assert!(read_fault("down 5ms").is_err_and(|why| why.contains("key=value")));
        assert!(read_fault("down link=a").is_err_and(|why| why.contains("--link")));
    }
}
