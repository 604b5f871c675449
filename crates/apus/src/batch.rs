//! Parallel runs. Each result is stored on disk as soon as the run ends.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;

use apus_scenario::Setup;
use apus_scenario::experiment::{self, Threads};
use apus_sim::Watch;
use apus_sim::summary::Summary;
use clap::Args;
use serde_json::Value;

use crate::interrupt::{DEFAULT_SILENCE, Silence, read_silence};
use crate::memory::MaxMemory;
use crate::progress::Meter;
use crate::store::Store;

/// A run of a batch.
pub struct Job {
    /// Configuration of the run.
    pub setup: Setup,
    /// Settings that distinguish the run from the other runs, for messages.
    pub settings: String,
}

/// Executes runs: returns the summary of each as JSON, `None` if it failed or was interrupted, and the errors.
pub type Execute<'a> = dyn Fn(Vec<Job>) -> (Vec<Option<Value>>, Vec<String>) + 'a;

/// The options of commands that run many scenarios.
#[derive(Args, Clone, Copy)]
pub struct Limits {
    /// Maximum number of parallel runs [default: one per core].
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// End a run if no packet is delivered for SPAN of simulated time while ops are outstanding, and report the waiting flow.
    /// `off` disables this check.
    #[arg(long, value_name = "SPAN", default_value = DEFAULT_SILENCE, value_parser = read_silence)]
    pub watchdog: Silence,
    #[command(flatten)]
    pub max_memory: MaxMemory,
}

impl Limits {
    /// Returns how many of these setups run in parallel.
    pub fn side_by_side(&self, setups: &[Setup]) -> NonZeroUsize {
        let cores = available_parallelism().unwrap_or(NonZeroUsize::MIN);
        self.max_memory.runs_at_once(setups.iter(), self.threads.unwrap_or(cores))
    }
}

/// Reads `--keep`.
pub fn read_percent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(percent) if percent > 0.0 && percent < 100.0 => Ok(percent),
        _ => Err("must be above 0 and below 100 percent".to_owned()),
    }
}

/// Returns the summaries of `jobs` as JSON, and the errors of failed runs. A summary is `None` if its run failed or was
/// interrupted. Runs in `store` are not repeated; new results are added to it.
pub fn run(
    name: &str,
    jobs: Vec<Job>,
    store: Option<&Store>,
    limits: Limits,
    watch: &Watch,
) -> (Vec<Option<Value>>, Vec<String>) {
    let kept = jobs.iter().map(|job| store.and_then(|store| store.load(&job.setup)));
    let mut summaries: Vec<Option<Value>> = kept.collect();
    let missing = (0..).zip(jobs).filter(|(place, _)| summaries[*place].is_none());
    let (places, jobs): (Vec<usize>, Vec<Job>) = missing.unzip();
    let results: Mutex<Vec<_>> = Mutex::new(jobs.iter().map(|_| None).collect());
    run_each(name, jobs, store, limits, watch, &|place, result| {
        results.lock().unwrap_or_else(PoisonError::into_inner)[place] = Some(result);
    });
    let mut failures = Vec::new();
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    for (place, result) in places.into_iter().zip(results) {
        match result {
            Some(Ok(summary)) => summaries[place] = Some(summary),
            Some(Err(why)) => failures.push(why),
            None => {}
        }
    }
    (summaries, failures)
}

/// Runs all jobs. As soon as a run ends, `ended` is called with its index and its result: the summary as JSON, or the
/// reason of the failure. `store` keeps both. `ended` is not called for interrupted jobs.
pub fn run_each(
    name: &str,
    jobs: Vec<Job>,
    store: Option<&Store>,
    limits: Limits,
    watch: &Watch,
    ended: &(dyn Fn(usize, Result<Value, String>) + Sync),
) {
    let (setups, settings): (Vec<Setup>, Vec<String>) =
        jobs.into_iter().map(|job| (job.setup, job.settings)).unzip();
    run_summaries(name, &setups, limits, watch, &|run, result| {
        ended(run, finish(&setups[run], &settings[run], result, store));
    });
}

/// Runs all setups. As soon as a run ends, `ended` is called with its index and its summary, or the reason of the
/// failure. `ended` is not called for interrupted runs.
pub fn run_summaries(
    name: &str,
    setups: &[Setup],
    limits: Limits,
    watch: &Watch,
    ended: &(dyn Fn(usize, Result<Summary, String>) + Sync),
) {
    let threads = limits.side_by_side(setups);
    let meter = Meter::new(&vec![name; setups.len()], threads);
    let step = |step| meter.on_step(step);
    experiment::run_each(setups, threads, Threads::Exactly(1), watch, &step, &|run, result| {
        meter.on_end(run);
        if !experiment::is_interrupted(&result) {
            ended(run, result);
        }
    });
}

/// Stores the result of a run that has ended.
fn finish(
    setup: &Setup,
    settings: &str,
    result: Result<Summary, String>,
    store: Option<&Store>,
) -> Result<Value, String> {
    let failed = |why: String| match store.map(|store| store.save_failure(setup, settings, &why)) {
        Some(Err(unkept)) => format!("{why}\n{unkept}"),
        _ => why,
    };
    let summary = result.map_err(|why| failed(format!("{settings}: {why}")))?;
    if let Some(why) = summary.stop_reason {
        let name = summary.name;
        return Err(failed(format!("{name} ({settings}): {why}; --watchdog sets the span")));
    }
    let value = serde_json::to_value(&summary).map_err(|error| error.to_string())?;
    if let Some(store) = store {
        store.save(setup, &value)?;
    }
    Ok(value)
}
