//! Runs of all experiments on all cores: no experiment waits for the end of another one.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::thread::available_parallelism;
use std::time::Duration;

use apus_scenario::experiment::{
    Experiment, Step, Threads, collect, is_interrupted, run_each, setups,
};
use apus_scenario::{Scenario, Setup};
use apus_sim::Watch;
use apus_sim::summary::Summary;

use crate::memory::MaxMemory;
use crate::progress::Meter;

/// Experiments whose runs share the cores.
pub struct Pool<'a> {
    parts: Vec<Part<'a>>,
    /// Every distinct run once, even if several experiments use it.
    setups: Vec<Setup>,
    /// First experiment that uses each run.
    names: Vec<&'a str>,
    /// Uses of each run: indices in the list of all experiments' runs.
    places: Vec<Vec<usize>>,
    /// Name that the experiment gives to the run at each index.
    run_names: Vec<String>,
}

/// Runs of one experiment in the list of all runs; they start at `first`.
struct Part<'a> {
    scenario: &'a Scenario,
    first: usize,
    runs: usize,
}

/// Result of an experiment.
pub struct Finished {
    /// Checks over the seeds of which every run has finished, or the reason why there are none.
    pub experiment: Result<Experiment, String>,
    /// `true` if all of its runs have finished.
    pub complete: bool,
    /// Real time of all its runs together, in seconds.
    pub wall_s: f64,
}

/// Results of the runs so far.
struct State {
    results: Vec<Option<Result<Summary, String>>>,
    walls: Vec<Duration>,
    /// Number of remaining runs of each experiment.
    left: Vec<usize>,
    /// First experiment whose result has not been passed on.
    next: usize,
}

impl<'a> Pool<'a> {
    /// Returns all runs of these experiments, in order.
    pub fn new(experiments: impl Iterator<Item = (&'a str, &'a Scenario)>, seeds: u64) -> Self {
        let mut pool = Self {
            parts: Vec::new(),
            setups: Vec::new(),
            names: Vec::new(),
            places: Vec::new(),
            run_names: Vec::new(),
        };
        let (mut known, mut first) = (BTreeMap::new(), 0);
        for (name, scenario) in experiments {
            let own = setups(scenario, seeds);
            let runs = own.len();
            for (place, setup) in (first..).zip(own) {
                pool.run_names.push(setup.name().to_owned());
                // Runs with tables are not shared: the tables belong to the experiment that writes them.
                let shared = setup.record().is_none();
                let key = shared.then(|| setup.clone().with_name("").to_toml());
                if let Some(&run) = key.as_ref().and_then(|key| known.get(key)) {
                    let places: &mut Vec<usize> = &mut pool.places[run];
                    places.push(place);
                    continue;
                }
                known.extend(key.map(|key| (key, pool.setups.len())));
                pool.setups.push(setup);
                pool.names.push(name);
                pool.places.push(vec![place]);
            }
            pool.parts.push(Part { scenario, first, runs });
            first += runs;
        }
        pool
    }

    /// Returns the number of runs of the experiments; a run that two experiments use counts twice.
    fn all_runs(&self) -> usize {
        self.parts.last().map_or(0, |part| part.first + part.runs)
    }

    /// Executes all runs. `done` receives each experiment in order, as soon as it and all earlier ones have finished.
    /// If `watch` ends the runs, `done` receives the experiments with at least one finished seed.
    pub fn run(
        &self,
        memory: MaxMemory,
        watch: &Watch,
        done: &mut (dyn FnMut(usize, Finished) + Send),
    ) {
        let cores = available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let threads = memory.runs_at_once(self.setups.iter(), cores);
        let meter = Meter::new(&self.names, threads);
        let state = Mutex::new((
            State {
                results: (0..self.all_runs()).map(|_| None).collect(),
                walls: vec![Duration::ZERO; self.all_runs()],
                left: self.parts.iter().map(|part| part.runs).collect(),
                next: 0,
            },
            done,
        ));
        let on_step = |step: Step| meter.on_step(step);
        run_each(&self.setups, threads, Threads::Exactly(1), watch, &on_step, &|run, result| {
            let wall = meter.on_end(run);
            // The lock is poisoned only if another thread panicked, which ends the command.
            let Ok(mut guard) = state.lock() else { return };
            let (state, done) = &mut *guard;
            // A run that the user ended counts as neither finished nor failed.
            let result = (!is_interrupted(&result)).then_some(result);
            state.walls[self.places[run][0]] = wall;
            for &place in &self.places[run] {
                // Each experiment has its own name for a run, so that its results do not depend on the others.
                let mut result = result.clone();
                if let Some(Ok(summary)) = &mut result {
                    summary.name.clone_from(&self.run_names[place]);
                }
                state.results[place] = result;
                let index = self.parts.partition_point(|part| part.first <= place) - 1;
                state.left[index] -= 1;
            }
            while state.left.get(state.next) == Some(&0) {
                let index = state.next;
                state.next += 1;
                if let Some(finished) = self.finished(index, state) {
                    meter.pause(|| done(index, finished));
                }
            }
        });
    }

    /// Merges the results of an experiment; `None` if it was interrupted before any seed finished.
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use apus_scenario::Options;

    use super::Pool;
    use crate::library;

    /// Two scenarios that only use runs of a third one add no runs of their own.
    #[test]
    fn equal_runs_are_run_once() {
        let names = ["swift/cluster", "swift/fig6", "swift/fig10"];
        let scenarios = names.map(|name| {
            let source = library::find(name).expect("listed");
            library::read(&source, Path::new(""), &Options::default()).expect("a scenario")
        });
        let seeds = 2;
        let pool = Pool::new(names.into_iter().zip(&scenarios), seeds);
        assert_eq!(pool.setups.len(), scenarios[0].runs.len() * seeds as usize);
        let all: usize = scenarios.iter().map(|scenario| scenario.runs.len()).sum();
        assert_eq!(pool.all_runs(), all * seeds as usize);
        let mut places: Vec<usize> = pool.places.concat();
        places.sort_unstable();
        assert_eq!(places, (0..pool.all_runs()).collect::<Vec<_>>());
    }
}
