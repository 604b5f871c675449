//! Experiments: the runs of a scenario over several seeds, and what its checks make of them.

mod measure;
mod runner;
mod verdict;

use std::num::NonZeroUsize;

use serde_json::Value;

pub use measure::Shown;
pub use runner::{Step, run_all};
pub use verdict::{CheckResult, Verdict};

use crate::Watch;
use crate::scenario::{Check, Scenario};
use crate::summary::Summary;

/// Seeds of an experiment in full: enough that a median is not one run's luck.
pub const FULL_SEEDS: u64 = 5;
/// Seeds in quick mode.
pub const QUICK_SEEDS: u64 = 1;

/// What an experiment yields.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Each check with its measured value, in the scenario's order.
    pub checks: Vec<CheckResult>,
    /// What is shown besides.
    pub shown: Vec<Shown>,
    /// The summaries, by run and then by seed.
    pub summaries: Vec<Vec<Summary>>,
}

impl Experiment {
    /// Whether every check passes, but for those that the scenario says cannot.
    #[must_use]
    pub fn passes(&self) -> bool {
        self.checks.iter().all(|check| check.verdict.is_as_stated())
    }
}

/// Runs a scenario with `seeds` seeds from its own on, on `threads` threads. The results do not
/// depend on the number of threads. Progress comes from any of them.
///
/// # Errors
/// The first run that fails or is ended by `watch` before its time, by name, and why.
pub fn run(
    scenario: &Scenario,
    seeds: u64,
    threads: NonZeroUsize,
    watch: &Watch,
    progress: &(dyn Fn(Step) + Sync),
) -> Result<Experiment, String> {
    let setups: Vec<_> = scenario
        .runs
        .iter()
        .flat_map(|run| {
            let first = run.setup.seed();
            (first..first + seeds).map(move |seed| {
                // One seed's tables and charts are enough; the spread is in the checks.
                let recorded = seed == first && run.setup.record().is_some();
                run.setup.clone().with_seed(seed).recorded(recorded)
            })
        })
        .collect();
    let mut results = run_all(&setups, threads, 1, watch, progress).into_iter();
    let mut summaries = Vec::new();
    for _ in &scenario.runs {
        let of_run = results.by_ref().take(seeds as usize);
        let of_run = of_run.map(|result| match result {
            Ok(Summary { stop_reason: Some(why), name, seed, .. }) => {
                Err(format!("{name} (seed {seed}): {why}"))
            }
            result => result,
        });
        summaries.push(of_run.collect::<Result<Vec<Summary>, String>>()?);
    }
    Ok(judge(scenario, summaries))
}

/// Holds the summaries of a scenario's runs, by run and then by seed, against its checks.
#[must_use]
pub fn judge(scenario: &Scenario, summaries: Vec<Vec<Summary>>) -> Experiment {
    let json: Vec<Vec<Value>> = summaries
        .iter()
        .map(|of_run| of_run.iter().map(|s| serde_json::to_value(s).unwrap_or_default()).collect())
        .collect();
    let seeds = json.first().map_or(0, Vec::len) as u64;
    let measured = |check: &Check| measure::measure(check, &scenario.runs, &json);
    let judged = |check: &Check| verdict::judge(measured(check), check.differs.as_ref(), seeds);
    Experiment {
        checks: scenario.checks.iter().flat_map(judged).collect(),
        shown: scenario.shown.iter().flat_map(measured).collect(),
        summaries,
    }
}
