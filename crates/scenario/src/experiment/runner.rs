//! Parallel runs on threads, independent of each other.

use crate::set::{Plan, Simulation};
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::Setup;
use apus_sim::cores::free;
use apus_sim::summary::Summary;
use apus_sim::{Fault, INTERRUPTED, Progress, Watch};

/// The progress of one of several runs.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Index of the run.
    pub run: usize,
    /// Its progress.
    pub progress: Progress,
}

/// Number of threads of a run. No result depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// This many.
    Exactly(u32),
    /// As many threads as shorten the run (`Plan::threads_worth`) and have their own core
    /// (`apus_sim::cores::free`), at most this many.
    Worth(u32),
}

/// Runs all setups, at most `side_by_side` at a time, each on `threads`. The results are in the order of
/// `setups` and depend on neither number. Failures name their run. `watch` may end runs early; a run that it
/// ended before its start is a failure.
pub fn run_all(
    setups: &[Setup],
    side_by_side: NonZeroUsize,
    threads: Threads,
    watch: &Watch,
    progress: &(dyn Fn(Step) + Sync),
) -> Vec<Result<Summary, String>> {
    let results: Vec<Mutex<Option<Result<Summary, String>>>> =
        setups.iter().map(|_| Mutex::new(None)).collect();
    run_each(setups, side_by_side, threads, watch, progress, &|run, result| {
        if let Ok(mut place) = results[run].lock() {
            *place = Some(result);
        }
    });
    let results = results.into_iter().zip(setups);
    let results = results.map(|(result, setup)| {
        let result = result.into_inner().unwrap_or(None);
        result.unwrap_or_else(|| Err(format!("{}: the run did not end", setup.name())))
    });
    results.collect()
}

/// Runs all setups, in this thread and others; `done` is called with each run's index as soon as it ends. The runs begin in
/// the order of `setups`.
pub fn run_each(
    setups: &[Setup],
    side_by_side: NonZeroUsize,
    threads: Threads,
    watch: &Watch,
    progress: &(dyn Fn(Step) + Sync),
    done: &(dyn Fn(usize, Result<Summary, String>) + Sync),
) {
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let run = next.fetch_add(1, Ordering::Relaxed);
            let Some(setup) = setups.get(run) else { return };
            let mut report = |p| progress(Step { run, progress: p });
            done(run, run_one(setup, threads, watch, &mut report));
        }
    };
    thread::scope(|scope| {
        for _ in 1..side_by_side.get().min(setups.len()) {
            scope.spawn(work);
        }
        work();
    });
}

/// Runs a plan that a [`Setup`] made, without a recording. The simulator is compiled for the algorithms of
/// scenarios in this crate alone, so other crates call this function instead of `Simulation`. `on_built` is called
/// between the set-up and the first event.
///
/// # Errors
/// The plan cannot run, or its run failed: the reason as text.
pub fn run_plan(
    plan: Plan,
    name: &str,
    threads: u32,
    on_built: impl FnOnce(),
) -> Result<Summary, String> {
    let simulation = Simulation::of(plan, threads).map_err(|e| e.to_string())?;
    on_built();
    simulation.run(name, &mut |_| {}).map_err(|e| e.to_string())
}

/// End of the message of a run that was interrupted before it began.
pub const NOT_STARTED: &str = "interrupted before it began";

/// Returns `true` if a request ended a run or prevented its start. A run that the watchdog ended has failed.
#[must_use]
pub fn is_interrupted(result: &Result<Summary, String>) -> bool {
    match result {
        Ok(summary) => summary.stop_reason.as_deref() == Some(INTERRUPTED),
        Err(why) => why.ends_with(NOT_STARTED),
    }
}

fn run_one(
    setup: &Setup,
    threads: Threads,
    watch: &Watch,
    progress: &mut dyn FnMut(Progress),
) -> Result<Summary, String> {
    let fail = |why: String| format!("{} (seed {}): {why}", setup.name(), setup.seed());
    if watch.stop.load(Ordering::Relaxed) {
        return Err(fail(NOT_STARTED.to_owned()));
    }
    let run = || {
        let plan = setup.plan().map_err(|e| e.to_string())?;
        let threads = match threads {
            Threads::Exactly(threads) => threads,
            Threads::Worth(most) => free(plan.threads_worth(most)),
        };
        let mut simulation = Simulation::of(plan, threads).map_err(|e| e.to_string())?;
        if let Some(record) = setup.record() {
            simulation = simulation.record(record).map_err(|e| e.to_string())?;
            simulation = simulation.trace(setup.trace()).map_err(|e| e.to_string())?;
        }
        let summary = simulation.watched_by(watch).run(setup.name(), progress);
        let mut summary = summary.map_err(|e| e.to_string())?;
        summary.notes.extend(setup.notes().map(str::to_owned));
        Ok(summary)
    };
    Fault::caught(run).unwrap_or_else(|fault| Err(watch.failed(fault))).map_err(fail)
}
