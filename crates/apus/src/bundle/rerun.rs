//! `apus rerun`: repeats the runs of a bundle and compares the results.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::thread::available_parallelism;

use apus_scenario::experiment::{Threads, run_all};
use apus_scenario::{Options, Scenario};
use apus_sim::Watch;
use apus_sim::summary::Summary;
use clap::Args;
use serde::Serialize;

use super::Bundle;
use crate::diff::{Comparison, Results, Rules, compare};
use crate::failure::Failure;
use crate::interrupt::{self, Silence, read_silence};
use crate::memory::MaxMemory;
use crate::output::{OutputDir, print, to_json};
use crate::progress::Meter;
use crate::results::{Judged, Runs, keep, keep_cost};

/// Repeat the runs of a bundle, and compare the results with those of the bundle.
///
/// A scenario and a seed give the same results on every machine, so every number must be equal. The exit status is 0 if the
/// effective configuration, the events and all numbers are equal, and 1 otherwise.
#[derive(Args)]
pub struct Rerun {
    /// Bundle that `apus run --bundle` wrote.
    bundle: PathBuf,
    /// Write all results to DIR, as `apus run --out` does.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Maximum number of parallel runs [default: one per core].
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// End a run if no packet is delivered for SPAN of simulated time while ops are outstanding, and report the waiting flow.
    /// `off` disables this check [default: the span of the bundle].
    #[arg(long, value_name = "SPAN", value_parser = read_silence)]
    watchdog: Option<Silence>,
    #[command(flatten)]
    max_memory: MaxMemory,
    /// Print the results as JSON.
    #[arg(long)]
    json: bool,
}

/// The comparison of a bundle's runs with their repetition.
#[derive(Serialize)]
struct Verdict {
    /// `true` if configurations, events and results are equal.
    equal: bool,
    /// Version of apus that made the bundle.
    version_of_bundle: String,
    /// Version of apus that repeated the runs.
    version: &'static str,
    /// Lines of the effective configuration that differ: the run, the line of the bundle and the line of this version.
    configuration: Vec<[String; 3]>,
    /// Runs whose events differ.
    events: Vec<String>,
    /// Differences of the results.
    results: Comparison,
}

impl Rerun {
    /// Runs the command.
    pub fn execute(&self) -> Result<(), Failure> {
        let bundle = Bundle::read(&self.bundle).map_err(Failure::Input)?;
        let options = Options { memory: self.max_memory.limit(), ..Options::default() };
        let scenario =
            bundle.scenario(&options).map_err(|error| Failure::Input(error.to_string()))?;
        let out = match &self.out {
            Some(path) => Some(OutputDir::create(path, &scenario).map_err(Failure::Input)?),
            None => None,
        };
        let watchdog = self.watchdog.map_or_else(|| bundle.watchdog(), Ok);
        let watch = interrupt::watch(watchdog.map_err(Failure::Input)?)?;
        let runs = self.run(&scenario, out.is_some(), &watch)?;
        let runs = Runs::new(runs);
        let json = to_json(&runs)? + "\n";
        let kept_in = out.map_or(Ok(()), |dir| {
            let all: Vec<&Summary> = runs.runs.iter().collect();
            keep_cost(&dir, all.iter().copied())?;
            keep(&dir, "rerun", &scenario, (&all, &all), &json, Judged::default(), &BTreeMap::new())
        });
        let verdict = judge(&bundle, &scenario, &runs, &json).map_err(Failure::Run)?;
        if self.json {
            print(&(to_json(&verdict)? + "\n"))?;
        } else {
            print(&verdict.text())?;
        }
        kept_in.map_err(Failure::Run)?;
        if verdict.equal { Ok(()) } else { Err(Failure::Checks) }
    }

    /// Runs the scenario until it ends.
    fn run(
        &self,
        scenario: &Scenario,
        recorded: bool,
        watch: &Watch,
    ) -> Result<Vec<Summary>, Failure> {
        let setups: Vec<_> =
            scenario.runs.iter().map(|run| run.setup.clone().recorded(recorded)).collect();
        let cores = available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let at_once = self.max_memory.runs_at_once(setups.iter(), self.threads.unwrap_or(cores));
        let meter = Meter::new(&vec![scenario.name.as_str(); setups.len()], at_once);
        let results =
            run_all(&setups, at_once, Threads::Exactly(1), watch, &|step| meter.on_step(step));
        drop(meter);
        if interrupt::interrupted(watch) {
            let message = "interrupted; nothing was compared";
            return Err(Failure::Interrupted(message.to_owned()));
        }
        results.into_iter().collect::<Result<Vec<_>, _>>().map_err(Failure::Run)
    }
}

/// Compares a bundle with the repetition of its runs; `json` is the content of their summary.json.
fn judge(
    bundle: &Bundle,
    scenario: &Scenario,
    runs: &Runs<Summary>,
    json: &str,
) -> Result<Verdict, String> {
    let (mut configuration, mut events) = (Vec::new(), Vec::new());
    for (entry, run) in bundle.manifest.runs.iter().zip(&scenario.runs) {
        let (before, now) = (bundle.effective(entry)?, run.setup.to_toml());
        let missing = |of: &str, other: &str| -> Vec<String> {
            let other: BTreeSet<&str> = other.lines().collect();
            of.lines().filter(|line| !other.contains(line)).map(str::to_owned).collect()
        };
        let (before, now) = (missing(&before, &now), missing(&now, &before));
        for line in 0..before.len().max(now.len()) {
            let text = |lines: &[String]| lines.get(line).cloned().unwrap_or_default();
            configuration.push([entry.name.clone(), text(&before), text(&now)]);
        }
    }
    for (entry, run) in bundle.manifest.runs.iter().zip(&runs.runs) {
        if (entry.events, &entry.event_hash) != (run.work.events, &run.work.event_hash) {
            events.push(entry.name.clone());
        }
    }
    let again = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let results =
        compare(&Results::parse(bundle.summary())?, &Results::parse(&again)?, &Rules::default());
    Ok(Verdict {
        equal: configuration.is_empty() && events.is_empty() && results.equal,
        version_of_bundle: bundle.manifest.version.clone(),
        version: env!("CARGO_PKG_VERSION"),
        configuration,
        events,
        results,
    })
}

/// Maximum number of configuration lines in the text.
const SHOWN: usize = 20;

impl Verdict {
    fn text(&self) -> String {
        let mut text = String::new();
        if self.version_of_bundle != self.version {
            text += &format!(
                "the bundle was made by apus {}, this is apus {}\n",
                self.version_of_bundle, self.version
            );
        }
        for [run, before, now] in self.configuration.iter().take(SHOWN) {
            text += &format!("{run}: effective configuration: `{before}` is now `{now}`\n");
        }
        if self.configuration.len() > SHOWN {
            let more = self.configuration.len() - SHOWN;
            text += &format!("and {more} more lines of the effective configuration\n");
        }
        for run in &self.events {
            text += &format!("{run}: its events differ\n");
        }
        text + &self.results.text("the bundle", "this run")
    }
}
