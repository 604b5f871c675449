//! Many runs side by side, each kept on disk as soon as it is finished.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{available_parallelism, scope};

use apus_scenario::Setup;
use apus_scenario::experiment::{Step, run_all};
use apus_sim::Watch;
use apus_sim::summary::Summary;
use serde_json::Value;

use crate::interrupt;
use crate::memory::MaxMemory;
use crate::progress::Meter;
use crate::store::Store;

/// A run of a batch.
pub struct Job<'a> {
    /// What to run.
    pub setup: &'a Setup,
    /// What tells it from the others, for messages.
    pub settings: String,
}

/// Runs all, at most `threads` at a time (by default one per core) and as many as `memory` allows, and
/// keeps each result in `store`.
/// Returns the summaries as JSON, `None` for what was interrupted or failed, and what went wrong.
pub fn run(
    name: &str,
    jobs: &[Job<'_>],
    store: Option<&Store>,
    threads: Option<NonZeroUsize>,
    memory: MaxMemory,
    watch: &Watch,
) -> (Vec<Option<Value>>, Vec<String>) {
    let meter = Meter::new(name, jobs.len());
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<Value, String>)>> = Mutex::default();
    let cores = available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let threads = memory.runs_at_once(jobs.iter().map(|job| job.setup), threads.unwrap_or(cores));
    let threads = threads.get().min(jobs.len());
    scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !interrupt::interrupted(watch) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(index) else { return };
                    let step = |step: Step| meter.on_step(Step { run: index, ..step });
                    let Some(result) = finish(job, store, watch, &step).transpose() else {
                        continue;
                    };
                    if let Ok(mut done) = done.lock() {
                        done.push((index, result));
                    }
                }
            });
        }
    });
    let mut summaries: Vec<Option<Value>> = jobs.iter().map(|_| None).collect();
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

/// Runs one to its end and keeps its summary; `None` if it was interrupted.
fn finish(
    job: &Job<'_>,
    store: Option<&Store>,
    watch: &Watch,
    step: &(dyn Fn(Step) + Sync),
) -> Result<Option<Value>, String> {
    let setups = std::slice::from_ref(job.setup);
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
        store.save(job.setup, &value)?;
    }
    Ok(Some(value))
}
