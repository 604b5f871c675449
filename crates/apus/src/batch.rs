//! Parallel runs, each kept on disk as soon as it is finished.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::thread::available_parallelism;

use apus_scenario::Setup;
use apus_scenario::experiment::run_each;
use apus_sim::Watch;
use apus_sim::summary::Summary;
use clap::Args;
use serde_json::Value;

use crate::interrupt::{self, DEFAULT_SILENCE, Silence, read_silence};
use crate::memory::MaxMemory;
use crate::progress::Meter;
use crate::store::Store;

/// A run of a batch.
pub struct Job {
    /// Configuration of the run.
    pub setup: Setup,
    /// Settings in which it differs from other runs, for messages.
    pub settings: String,
}

/// The options of commands that run many scenarios.
#[derive(Args, Clone, Copy)]
pub struct Limits {
    /// Maximum number of parallel runs [default: one per core].
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// End a run in which no packet is delivered for this simulated time while ops are outstanding, and
    /// report the waiting flow; `off` disables this check.
    #[arg(long, value_name = "SPAN", default_value = DEFAULT_SILENCE, value_parser = read_silence)]
    pub watchdog: Silence,
    #[command(flatten)]
    pub max_memory: MaxMemory,
}

/// Reads `--keep`.
pub fn read_percent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(percent) if percent > 0.0 && percent < 100.0 => Ok(percent),
        _ => Err("must be above 0 and below 100 percent".to_owned()),
    }
}

/// Returns the summaries of `jobs` as JSON, and the errors of runs. A summary is `None` if its run
/// failed or was interrupted. Runs that `store` has are not repeated; it keeps each finished run.
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
    let (places, (setups, settings)): (Vec<usize>, (Vec<Setup>, Vec<String>)) =
        missing.map(|(place, job)| (place, (job.setup, job.settings))).unzip();
    let cores = available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let threads = limits.max_memory.runs_at_once(setups.iter(), limits.threads.unwrap_or(cores));
    let meter = Meter::new(&vec![name; setups.len()], threads);
    let results: Mutex<Vec<_>> = Mutex::new(setups.iter().map(|_| None).collect());
    run_each(&setups, threads, 1, watch, &|step| meter.on_step(step), &|run, result| {
        meter.on_end(run);
        if interrupt::interrupted(watch) && !matches!(&result, Ok(run) if !run.interrupted) {
            return;
        }
        let result = finish(&setups[run], &settings[run], result, store);
        if let Ok(mut results) = results.lock() {
            results[run] = Some(result);
        }
    });
    let mut failures = Vec::new();
    let results = results.into_inner().unwrap_or_default();
    for (place, result) in places.into_iter().zip(results) {
        match result {
            Some(Ok(summary)) => summaries[place] = Some(summary),
            Some(Err(why)) => failures.push(why),
            None => {}
        }
    }
    (summaries, failures)
}

/// Keeps the summary of a run that has ended.
fn finish(
    setup: &Setup,
    settings: &str,
    result: Result<Summary, String>,
    store: Option<&Store>,
) -> Result<Value, String> {
    let summary = result?;
    if let Some(why) = summary.stop_reason {
        return Err(format!("{} ({settings}): {why}; --watchdog sets the span", summary.name));
    }
    let value = serde_json::to_value(&summary).map_err(|error| error.to_string())?;
    if let Some(store) = store {
        store.save(setup, &value)?;
    }
    Ok(value)
}
