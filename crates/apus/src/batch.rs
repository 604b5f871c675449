//! Parallel runs, each kept on disk as soon as it is finished.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{available_parallelism, scope};

use apus_scenario::Setup;
use apus_scenario::experiment::{Step, run_all};
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

/// Returns the summaries of `jobs` as JSON, and the errors of runs. A summary is `None` if its run failed
/// or was interrupted. Runs that `store` has are not repeated; it keeps each finished run.
pub fn run(
    name: &str,
    jobs: &[Job],
    store: Option<&Store>,
    limits: Limits,
    watch: &Watch,
) -> (Vec<Option<Value>>, Vec<String>) {
    let kept = jobs.iter().map(|job| store.and_then(|store| store.load(&job.setup)));
    let mut summaries: Vec<Option<Value>> = kept.collect();
    let missing: Vec<usize> = (0..jobs.len()).filter(|&i| summaries[i].is_none()).collect();
    let meter = Meter::new(name, missing.len());
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<Value, String>)>> = Mutex::default();
    let cores = available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let setups = missing.iter().map(|&index| &jobs[index].setup);
    let threads = limits.max_memory.runs_at_once(setups, limits.threads.unwrap_or(cores));
    let threads = threads.get().min(missing.len());
    scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !interrupt::interrupted(watch) {
                    let run = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&index) = missing.get(run) else { return };
                    let step = |step: Step| meter.on_step(Step { run, ..step });
                    let result = finish(&jobs[index], store, watch, &step).transpose();
                    let Some(result) = result else { continue };
                    if let Ok(mut done) = done.lock() {
                        done.push((index, result));
                    }
                }
            });
        }
    });
    let mut failures = Vec::new();
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(index, _)| *index);
    for (index, result) in done {
        match result {
            Ok(summary) => summaries[index] = Some(summary),
            Err(why) => failures.push(why),
        }
    }
    (summaries, failures)
}

/// Finishes a run and keeps its summary; `None` if it was interrupted.
fn finish(
    job: &Job,
    store: Option<&Store>,
    watch: &Watch,
    step: &(dyn Fn(Step) + Sync),
) -> Result<Option<Value>, String> {
    let setups = std::slice::from_ref(&job.setup);
    let Some(result) = run_all(setups, NonZeroUsize::MIN, 1, watch, step).pop() else {
        return Ok(None);
    };
    if interrupt::interrupted(watch) && !matches!(&result, Ok(Summary { interrupted: false, .. })) {
        return Ok(None);
    }
    let summary = result?;
    if let Some(why) = summary.stop_reason {
        let settings = &job.settings;
        return Err(format!("{} ({settings}): {why}; --watchdog sets the span", summary.name));
    }
    let value = serde_json::to_value(&summary).map_err(|error| error.to_string())?;
    if let Some(store) = store {
        store.save(&job.setup, &value)?;
    }
    Ok(Some(value))
}
