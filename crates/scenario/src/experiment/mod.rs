//! Experiments: the runs of a scenario over several seeds, and the results of its checks.

mod measure;
mod runner;
mod verdict;

use std::num::NonZeroUsize;

use serde_json::Value;

pub use measure::{Shown, describe_unfinished};
pub use runner::{NOT_STARTED, Step, Threads, is_interrupted, run_all, run_each, run_plan};
pub use verdict::{CheckResult, FULL_SEEDS, Verdict};

use crate::{Check, Scenario, Setup};
use apus_sim::Watch;
use apus_sim::summary::Summary;

/// Number of seeds in quick mode.
pub const QUICK_SEEDS: u64 = 1;

/// The result of an experiment.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Each check with its measured value, in the scenario's order.
    pub checks: Vec<CheckResult>,
    /// Numbers shown without a check.
    pub shown: Vec<Shown>,
    /// The summaries, by run and then by seed.
    pub summaries: Vec<Vec<Summary>>,
}

impl Experiment {
    /// Returns the number of seeds.
    #[must_use]
    pub fn seeds(&self) -> u64 {
        self.summaries.first().map_or(0, Vec::len) as u64
    }

    /// Returns `true` if every check passes, except those that the scenario documents as misses.
    #[must_use]
    pub fn passes(&self) -> bool {
        self.checks.iter().all(|check| check.verdict.is_as_stated())
    }
}

/// Runs a scenario with `seeds` consecutive seeds, beginning with its own, on `threads` threads.
/// The results do not depend on the number of threads. Any of the threads may report progress.
///
/// # Errors
/// The name of the first run that failed or that `watch` ended early, and the reason.
pub fn run(
    scenario: &Scenario,
    seeds: u64,
    threads: NonZeroUsize,
    watch: &Watch,
    progress: &(dyn Fn(Step) + Sync),
) -> Result<Experiment, String> {
    let results = run_all(&setups(scenario, seeds), threads, Threads::Exactly(1), watch, progress);
    collect(scenario, results.into_iter().map(Some).collect())
}

/// Returns the runs of an experiment seed by seed, so that an interrupted experiment has some complete seeds.
#[must_use]
pub fn setups(scenario: &Scenario, seeds: u64) -> Vec<Setup> {
    let of_seed = |index: u64| {
        scenario.runs.iter().map(move |run| {
            // One seed's tables and charts are enough; the checks show the spread.
            let recorded = index == 0 && run.setup.record().is_some();
            run.setup.clone().with_seed(run.setup.seed() + index).recorded(recorded)
        })
    };
    (0..seeds).flat_map(of_seed).collect()
}

/// Judges the results of [`setups`]; `None` stands for an unfinished run. Only the first seeds of which every
/// run was finished count.
///
/// # Errors
/// The name of the first run that failed or ended early, and the reason.
pub fn collect(
    scenario: &Scenario,
    results: Vec<Option<Result<Summary, String>>>,
) -> Result<Experiment, String> {
    let mut summaries: Vec<Vec<Summary>> = scenario.runs.iter().map(|_| Vec::new()).collect();
    let mut results = results.into_iter();
    loop {
        let of_seed: Vec<_> = results.by_ref().take(summaries.len()).collect();
        let whole = !of_seed.is_empty() && of_seed.iter().all(Option::is_some);
        for (index, result) in of_seed.into_iter().enumerate() {
            match result {
                Some(Ok(Summary { stop_reason: Some(why), name, seed, .. })) => {
                    return Err(format!("{name} (seed {seed}): {why}"));
                }
                Some(Ok(summary)) if whole => summaries[index].push(summary),
                Some(Ok(_)) | None => {}
                Some(Err(why)) => return Err(why),
            }
        }
        if !whole {
            return Ok(judge(scenario, summaries));
        }
    }
}

/// Compares the summaries of a scenario's runs, by run and then by seed, with its checks.
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
