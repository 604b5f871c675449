//! The runs of all experiments on all cores: none waits for the end of another experiment.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use apus_sim::Watch;
use apus_sim::experiment::{Experiment, Step, collect, run_each, setups};
use apus_sim::scenario::{Scenario, Setup};
use apus_sim::summary::Summary;

use crate::interrupt::interrupted;
use crate::progress::RunsMeter;

/// Experiments whose runs share the cores.
pub struct Pool<'a> {
    parts: Vec<Part<'a>>,
    setups: Vec<Setup>,
    names: Vec<&'a str>,
}

/// The runs of one experiment, from `first` on.
struct Part<'a> {
    scenario: &'a Scenario,
    first: usize,
    runs: usize,
}

/// What became of an experiment.
pub struct Finished {
    /// Its checks over the seeds of which every run was finished, or why there are none.
    pub experiment: Result<Experiment, String>,
    /// Whether all of its runs were finished.
    pub complete: bool,
    /// Real seconds of all its runs together.
    pub wall_s: f64,
}

/// What the runs have yielded so far.
struct State {
    results: Vec<Option<Result<Summary, String>>>,
    walls: Vec<Duration>,
    /// How many runs of each experiment are still to come.
    left: Vec<usize>,
    /// The first experiment that has not been handed on.
    next: usize,
}

impl<'a> Pool<'a> {
    /// All runs of these experiments, in their order.
    pub fn new(experiments: impl Iterator<Item = (&'a str, &'a Scenario)>, seeds: u64) -> Self {
        let mut pool = Self { parts: Vec::new(), setups: Vec::new(), names: Vec::new() };
        for (name, scenario) in experiments {
            let own = setups(scenario, seeds);
            let (first, runs) = (pool.setups.len(), own.len());
            pool.names.extend(own.iter().map(|_| name));
            pool.setups.extend(own);
            pool.parts.push(Part { scenario, first, runs });
        }
        pool
    }

    /// Runs all. `done` gets each experiment in order, as soon as it and those before it are
    /// finished; if `watch` ends them, those that have one finished seed at least.
    pub fn run(&self, watch: &Watch, done: &mut (dyn FnMut(usize, Finished) + Send)) {
        let threads = available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let meter = RunsMeter::new(&self.names, threads);
        let state = Mutex::new((
            State {
                results: self.setups.iter().map(|_| None).collect(),
                walls: vec![Duration::ZERO; self.setups.len()],
                left: self.parts.iter().map(|part| part.runs).collect(),
                next: 0,
            },
            done,
        ));
        let started: Vec<Mutex<Option<Instant>>> =
            self.setups.iter().map(|_| Mutex::new(None)).collect();
        let on_step = |step: Step| {
            if let Ok(mut at) = started[step.run].lock() {
                at.get_or_insert_with(Instant::now);
            }
            meter.on_step(step);
        };
        run_each(&self.setups, threads, 1, watch, &on_step, &|run, result| {
            meter.on_end(run);
            let at = started[run].lock().ok().and_then(|at| *at);
            let wall = at.map_or(Duration::ZERO, |at| at.elapsed());
            // Another thread that panicked takes the whole command with it.
            let Ok(mut guard) = state.lock() else { return };
            let (state, done) = &mut *guard;
            // What the user ended is not finished, and no failure.
            let ended = match &result {
                Ok(summary) => summary.interrupted,
                Err(_) => true,
            };
            state.results[run] = (!(ended && interrupted(watch))).then_some(result);
            state.walls[run] = wall;
            let index = self.parts.partition_point(|part| part.first <= run) - 1;
            state.left[index] -= 1;
            while state.left.get(state.next) == Some(&0) {
                let index = state.next;
                state.next += 1;
                if let Some(finished) = self.finished(index, state) {
                    meter.pause(|| done(index, finished));
                }
            }
        });
    }

    /// Puts an experiment's results together; `None` if it was interrupted before a seed was
    /// finished.
    fn finished(&self, index: usize, state: &mut State) -> Option<Finished> {
        let Part { scenario, first, runs } = self.parts[index];
        let own = first..first + runs;
        let results: Vec<_> = state.results[own.clone()].iter_mut().map(Option::take).collect();
        let complete = results.iter().all(Option::is_some);
        let failed = results.iter().any(|result| matches!(result, Some(Err(_))));
        let experiment = collect(scenario, results);
        let empty = matches!(&experiment, Ok(experiment) if experiment.seeds() == 0);
        if empty && !complete && !failed {
            return None;
        }
        let wall_s = state.walls[own].iter().sum::<Duration>().as_secs_f64();
        Some(Finished { experiment, complete, wall_s })
    }
}
