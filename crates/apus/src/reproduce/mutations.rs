//! Mutations: each one removes a mechanism from the runs of an experiment that demonstrates it, and at least one check
//! must notice. If no mutation makes a check fail, the check may be unable to fail.

use std::collections::BTreeMap;
use std::path::Path;

use apus_scenario::experiment::{CheckResult, Experiment};
use apus_scenario::file::{DATA_BYTES, read_text};
use apus_scenario::{Mutation, Options, Scenario};
use serde::Deserialize;

use super::pool::Pool;
use crate::failure::Failure;
use crate::interrupt::{self, DEFAULT_SILENCE, read_silence};
use crate::library;
use crate::memory::MaxMemory;
use crate::output::{print, write_file};
use crate::text::columns;

/// The mutations of the built-in experiments.
const LIST: &str = include_str!("../../assets/mutations.toml");

/// Start of a page of mutations, which identifies it.
const TITLE: &str = "# Mutations\n";

/// Minimum fraction of its throughput that a run without the mechanism must keep: the loss of all traffic would make
/// any check fail.
const KEPT: f64 = 0.5;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    mutation: Vec<Entry>,
}

/// A mechanism and the experiment that demonstrates it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// The mechanism, and its location in the publication.
    mechanism: String,
    source: String,
    experiment: String,
    /// Variants that have the mechanism; all variants if empty.
    #[serde(default)]
    variants: Vec<String>,
    /// Settings that remove the mechanism.
    set: Vec<String>,
}

impl Entry {
    fn mutation(&self) -> Mutation {
        Mutation { variants: self.variants.clone(), set: self.set.clone() }
    }
}

/// Effect of a mutation.
struct Effect {
    /// Smallest ratio of a mutated run's throughput to that of the same run with the mechanism.
    kept: f64,
    /// Checks that passed without the mutation and fail with it.
    red: Vec<String>,
    /// Reason why the runs have no results.
    error: Option<String>,
}

impl Effect {
    fn is_good(&self) -> bool {
        self.error.is_none() && self.kept >= KEPT && !self.red.is_empty()
    }
}

/// Runs the mutations of `names`, or all mutations, and prints their table.
///
/// # Errors
/// If a named experiment has no mutations, a scenario cannot be read, the page cannot be written, or a mutation remains
/// unnoticed by all checks.
pub(super) fn execute(
    names: Option<&Vec<String>>,
    page: Option<&Path>,
    memory: MaxMemory,
) -> Result<(), Failure> {
    let list: List = toml::from_str(LIST).map_err(|error| Failure::Run(error.to_string()))?;
    let mut entries = list.mutation;
    if let Some(names) = names {
        for name in names {
            if !entries.iter().any(|entry| entry.experiment == *name) {
                let why = "has no mutations; docs/mutations.md lists the experiments that have";
                return Err(Failure::Input(format!("the experiment `{name}` {why}")));
            }
        }
        entries.retain(|entry| names.contains(&entry.experiment));
    }
    if let Some(page) = page {
        is_replaceable(page).map_err(Failure::Input)?;
    }
    let watch = interrupt::watch(read_silence(DEFAULT_SILENCE).map_err(Failure::Input)?)?;
    let read = |name: &str, mutation| {
        let memory = memory.limit();
        library::open(name, &Options { quick: true, memory, mutation, ..Options::default() })
    };
    let mut scenarios: Vec<(String, Scenario)> = Vec::new();
    for entry in &entries {
        if !scenarios.iter().any(|(name, _)| *name == entry.experiment) {
            scenarios.push((entry.experiment.clone(), read(&entry.experiment, None)?));
        }
    }
    let originals = scenarios.len();
    for entry in &entries {
        let name = format!("{} without {}", entry.experiment, entry.mechanism);
        scenarios.push((name, read(&entry.experiment, Some(entry.mutation()))?));
    }
    let mut results: BTreeMap<usize, Result<Experiment, String>> = BTreeMap::new();
    let pool = Pool::new(scenarios.iter().map(|(name, scenario)| (name.as_str(), scenario)), 1);
    pool.run(memory, &watch, &mut |index, finished| {
        results.insert(index, finished.experiment);
    });
    if interrupt::interrupted(&watch) {
        return Err(Failure::Interrupted("interrupted; no mutation was judged".to_owned()));
    }
    let effects: Vec<Effect> = entries
        .iter()
        .enumerate()
        .map(|(index, entry)| {
            let place =
                scenarios[..originals].iter().position(|(name, _)| *name == entry.experiment);
            let with = place.and_then(|place| results.get(&place));
            effect(entry, with, results.get(&(originals + index)))
        })
        .collect();
    print(&table(&entries, &effects))?;
    if let Some(page) = page {
        write_file(page, &document(&entries, &effects)).map_err(Failure::Run)?;
        print(&format!("wrote {}\n", page.display()))?;
    }
    if effects.iter().all(Effect::is_good) { Ok(()) } else { Err(Failure::Checks) }
}

/// Compares the experiment with its mutation.
fn effect(
    entry: &Entry,
    with: Option<&Result<Experiment, String>>,
    without: Option<&Result<Experiment, String>>,
) -> Effect {
    let (with, without) = match (with, without) {
        (Some(Ok(with)), Some(Ok(without))) => (with, without),
        (Some(Err(error)), _) | (_, Some(Err(error))) => {
            return Effect { kept: 0.0, red: Vec::new(), error: Some(error.clone()) };
        }
        _ => {
            let error = Some("was not run".to_owned());
            return Effect { kept: 0.0, red: Vec::new(), error };
        }
    };
    let mutation = entry.mutation();
    let runs = with.summaries.iter().flatten().zip(without.summaries.iter().flatten());
    let changed = runs.filter(|(with, _)| {
        let variant = with.name.strip_prefix(&entry.experiment);
        mutation.changes(variant.and_then(|rest| rest.strip_prefix('/')))
    });
    let kept = changed.map(|(with, without)| {
        let before = with.throughput_gbps.max(f64::MIN_POSITIVE);
        without.throughput_gbps / before
    });
    let red = |(with, without): (&CheckResult, &CheckResult)| {
        (with.pass && !without.pass).then(|| with.shown.name.clone())
    };
    let red = with.checks.iter().zip(&without.checks).filter_map(red).collect();
    Effect { kept: kept.fold(f64::INFINITY, f64::min), red, error: None }
}

/// Returns the table for the terminal.
fn table(entries: &[Entry], effects: &[Effect]) -> String {
    let header = ["mechanism", "experiment", "throughput kept", "red checks", ""];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for (entry, effect) in entries.iter().zip(effects) {
        let first = effect.red.first().cloned().unwrap_or_default();
        let verdict = match (&effect.error, effect.red.is_empty(), effect.kept < KEPT) {
            (Some(error), _, _) => format!("ERROR: {error}"),
            (None, true, _) => "NOT NOTICED".to_owned(),
            (None, false, true) => "TOO LITTLE THROUGHPUT".to_owned(),
            (None, false, false) => String::new(),
        };
        let red = format!("{} ({first})", effect.red.len());
        let kept = format!("{:.0} %", effect.kept * 100.0);
        rows.push(vec![entry.mechanism.clone(), entry.experiment.clone(), kept, red, verdict]);
    }
    let good = effects.iter().filter(|effect| effect.is_good()).count();
    columns(&rows, "") + &format!("{good} of {} mutations are noticed\n", effects.len())
}

/// Returns the page.
fn document(entries: &[Entry], effects: &[Effect]) -> String {
    let mut text = format!(
        "{TITLE}\n\
         Each row removes one mechanism of a paper from an experiment that shows it, by settings of the scenario. At least\n\
         one check must then miss its band, while the run keeps at least {:.0} % of its throughput.\n\
         Written by `apus reproduce --all --mutations --report FILE`; the runs are those of `--quick`.\n\n\
         | mechanism | source | experiment | removed by | throughput kept | checks that miss their band |\n\
         |---|---|---|---|---|---|\n",
        KEPT * 100.0
    );
    for (entry, effect) in entries.iter().zip(effects) {
        let set: Vec<String> = entry.set.iter().map(|set| format!("`{set}`")).collect();
        let runs = match entry.variants.as_slice() {
            [] => String::new(),
            variants => format!(" ({})", variants.join(", ")),
        };
        let shown: Vec<&str> = effect.red.iter().map(String::as_str).take(3).collect();
        let more = match effect.red.len().saturating_sub(3) {
            0 => String::new(),
            more => format!("; {more} more"),
        };
        let red = match effect.red.is_empty() {
            true => "**none**".to_owned(),
            false => format!("{}{more}", shown.join("; ")),
        };
        text += &format!(
            "| {} | {} | {}{runs} | {} | {:.0} % | {} |\n",
            entry.mechanism,
            entry.source,
            entry.experiment,
            set.join(", "),
            effect.kept * 100.0,
            red.replace('|', "\\|"),
        );
    }
    text
}

/// Returns an error if the file to overwrite is not a page of mutations.
fn is_replaceable(page: &Path) -> Result<(), String> {
    match read_text(page, DATA_BYTES) {
        Ok(text) if text.starts_with(TITLE) => Ok(()),
        Err(_) if !page.exists() => Ok(()),
        _ => Err(format!(
            "--report {}: this file is not a page of mutations; move it away, or choose another name",
            page.display()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every mutation names an experiment, settings that it accepts, and variants that it has.
    #[test]
    fn every_mutation_can_be_read() {
        let list: List = toml::from_str(LIST).expect("TOML");
        for entry in &list.mutation {
            let mutation = Some(entry.mutation());
            let options = Options { quick: true, mutation, ..Options::default() };
            let read = library::open(&entry.experiment, &options);
            let Err(Failure::Input(why)) = read else { continue };
            panic!("{}: {why}", entry.mechanism);
        }
    }
}
