//! `apus run`: runs a scenario.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::thread::available_parallelism;

use apus_scenario::experiment::{NOT_STARTED, Threads, run_all};
use apus_scenario::{Options, Scenario, Setup};
use apus_sim::Watch;
use apus_sim::cores::free;
use apus_sim::summary::Summary;
use clap::Args;
use serde_json::Value;

use crate::closer::PageOptions;
use crate::failure::Failure;
use crate::interrupt::{self, DEFAULT_SILENCE, Silence, read_silence};
use crate::library::Gathered;
use crate::memory::MaxMemory;
use crate::output::{OutputDir, print, say, to_json};
use crate::progress::Meter;
use crate::report::SecondRun;
use crate::reproduce::tables::tables;
use crate::results::{Judged, Runs, RunsWithCost, keep, keep_cost};
use crate::tables::TableFormat;
use crate::{bundle, closer, input, library, text};
#[cfg(feature = "live")]
use crate::{live, progress::Tracker};

/// Run a scenario and print its results.
#[derive(Args)]
pub struct Run {
    /// Scenario file, or name of a built-in scenario.
    #[arg(required_unless_present = "traffic", conflicts_with = "traffic")]
    file: Option<String>,
    /// Run the messages of FILE with Swift, or with the algorithm of `--set algorithm.name=NAME`. FILE is a .cm of htsim, a
    /// flow.txt of the HPCC simulator, or CSV with the header start_us,from,to,bytes. Each message has its own flow unless
    /// `--set workload.flows_per_pair=N` is given.
    #[arg(long, value_name = "FILE", requires = "topology")]
    traffic: Option<String>,
    /// Topology for the messages of `--traffic`: a .topo of htsim, a topology.txt of the HPCC simulator, an InfraGraph file,
    /// or one line such as "fat-tree k=8 100Gbps 1us".
    #[arg(long, value_name = "FILE", requires = "traffic", conflicts_with = "file")]
    topology: Option<String>,
    /// Set KEY to VALUE, as in `--set algorithm.base_target=50us`. May be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Seed of all random number streams.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=1 << 53))]
    seed: Option<u64>,
    /// Total number of threads, at most one per core. Parallel variants share them, and a run takes fewer while other
    /// programs use the cores. The results do not depend on the number [default: one per run, more for a single large run].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Option<u32>,
    /// Run only the variant NAME.
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Run the shortened version of the scenario: with its `[quick]` settings, and without the variants and checks that have
    /// `quick = false`.
    #[arg(long)]
    quick: bool,
    /// Write the effective configuration, summary.json, cost.json, tables and report.html to DIR.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    page: PageOptions,
    #[command(flatten)]
    tables: TableFormat,
    /// Also write a timeline of ops, flows, queues and faults to DIR, for https://ui.perfetto.dev.
    #[arg(long, requires = "out")]
    timeline: bool,
    /// Write a bundle to FILE, which must not exist: the scenario with all its files, the results, and what `apus rerun` needs
    /// to repeat the run and compare the results on another machine.
    #[arg(long, value_name = "FILE")]
    bundle: Option<PathBuf>,
    /// End a run if no packet is delivered for SPAN of simulated time while ops are outstanding, and report the waiting flow.
    /// `off` disables this check.
    #[arg(long, value_name = "SPAN", default_value = DEFAULT_SILENCE, value_parser = read_silence)]
    watchdog: Silence,
    /// Show goodput, queues and ports in the terminal during the run.
    #[cfg(feature = "live")]
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    max_memory: MaxMemory,
    /// Print the results as JSON.
    #[arg(long)]
    json: bool,
}

impl Run {
    /// Runs the command.
    pub fn execute(&self) -> Result<(), Failure> {
        let options = Options {
            set: self.set.clone(),
            seed: self.seed,
            variant: self.variant.clone(),
            quick: self.quick,
            memory: self.max_memory.limit(),
            ..Options::default()
        };
        #[cfg(feature = "live")]
        if self.live {
            live::check_terminal()?;
        }
        if let Some(file) = &self.bundle {
            bundle::check_new(file).map_err(Failure::Input)?;
        }
        let gathered = self.open(&options)?;
        let scenario = &gathered.scenario;
        if self.quick && scenario.quick.is_empty() {
            let message = "--quick: has no effect, because the scenario has neither `[quick]` nor \
                           `quick = false`; remove it";
            return Err(Failure::Input(message.to_owned()));
        }
        let out = match &self.out {
            Some(path) => {
                let dir = OutputDir::create(path, scenario).map_err(Failure::Input)?;
                Some(dir.with_tables(self.tables.format).with_timeline(self.timeline))
            }
            None => None,
        };
        let setups: Vec<_> =
            scenario.runs.iter().map(|run| run.setup.clone().recorded(out.is_some())).collect();
        let watch = interrupt::watch(self.watchdog)?;
        let (side_by_side, per_run) = self.share_threads(&setups);
        let results = self.run_all(&scenario.name, &setups, (side_by_side, per_run), &watch)?;
        let ended = interrupt::interrupted(&watch);
        let (runs, mut failures, missing) = sorted(results);
        if runs.is_empty() && !ended {
            return Err(Failure::Run(failures.join("\n")));
        }
        let runs = Runs::new(runs);
        let json = to_json(&runs)? + "\n";
        // If results cannot be stored they are still printed, and vice versa.
        let kept_in: Result<Option<PathBuf>, String> = out.map_or(Ok(None), |dir| {
            let all: Vec<&Summary> = runs.runs.iter().collect();
            keep_cost(&dir, all.iter().copied())?;
            let causes = self.look_closer(scenario, &all, side_by_side, &watch);
            keep(&dir, "run", scenario, (&all, &all), &json, Judged::default(), &causes)?;
            Ok(Some(dir.path().to_owned()))
        });
        let mut problems = Vec::new();
        if self.json {
            say(&(to_json(&RunsWithCost::new(&runs))? + "\n"), &mut problems);
        } else {
            if !scenario.quick.is_empty() {
                say(&format!("quick: {}\n\n", scenario.quick.join("; ")), &mut problems);
            }
            let texts: Vec<String> = runs.runs.iter().map(with_cost).collect();
            say(&texts.join("\n"), &mut problems);
        }
        // The repetition for the report may have been interrupted.
        let lacks_causes = !ended && interrupt::interrupted(&watch);
        let shown = kept_in.map_err(Failure::Run).and_then(|out| self.page.show(out.as_deref()));
        problems.extend(shown.err().map(|why| why.to_string()));
        if ended {
            let message = kept(&runs, failures.len(), missing);
            failures.extend(problems);
            return Err(interrupt::failure(message, &failures));
        }
        let stopped = runs.runs.iter().filter_map(|run| {
            let why = run.stop_reason.as_ref()?;
            Some(format!("{}: {why}; --watchdog sets the span", run.name))
        });
        failures.extend(stopped);
        if !failures.is_empty() {
            failures.extend(problems);
            return Err(Failure::Run(failures.join("\n")));
        }
        if let Some(file) = &self.bundle {
            let how = (&options, self.watchdog);
            problems.extend(bundle::write(file, &gathered, how, &runs.runs, &json).err());
        }
        let verdict = self.judge(scenario, &runs.runs);
        if lacks_causes {
            let message =
                "interrupted; all runs are complete, but report.html lacks causes of slow ops";
            problems.extend(verdict.err().map(|why| why.to_string()).filter(|why| !why.is_empty()));
            return Err(interrupt::failure(message.to_owned(), &problems));
        }
        if problems.is_empty() {
            return verdict;
        }
        let problems = problems.join("\n");
        Err(match verdict {
            Ok(()) => Failure::Run(problems),
            Err(failure) => failure.and(&problems),
        })
    }

    /// Runs all setups and shows the progress on standard error.
    fn run_all(
        &self,
        scenario: &str,
        setups: &[Setup],
        (side_by_side, per_run): (NonZeroUsize, Threads),
        watch: &Watch,
    ) -> Result<Vec<Result<Summary, String>>, Failure> {
        let names = vec![scenario; setups.len()];
        #[cfg(feature = "live")]
        if self.live {
            let tracker = Tracker::new(&names, side_by_side);
            let runs: Vec<&str> = setups.iter().map(Setup::name).collect();
            return live::show(&runs, &tracker, watch, |watch, on_step| {
                run_all(setups, side_by_side, per_run, watch, on_step)
            });
        }
        let meter = Meter::new(&names, side_by_side);
        Ok(run_all(setups, side_by_side, per_run, watch, &|step| meter.on_step(step)))
    }

    /// Repeats the runs with the slowest ops, with the same seeds, and returns the causes of these ops by the names of
    /// the runs.
    fn look_closer(
        &self,
        scenario: &Scenario,
        runs: &[&Summary],
        side_by_side: NonZeroUsize,
        watch: &Watch,
    ) -> BTreeMap<String, Value> {
        if self.page.worst == 0 || interrupt::interrupted(watch) {
            return BTreeMap::new();
        }
        let second = |summary: &&Summary| {
            let run = scenario.runs.iter().find(|run| run.setup.name() == summary.name)?;
            SecondRun::of(&run.setup, summary, self.page.worst as usize, runs.len())
        };
        let again: Vec<SecondRun> = runs.iter().filter_map(second).collect();
        closer::follow(&again, side_by_side, watch)
    }

    /// Evaluates the scenario's checks with a single seed.
    fn judge(&self, scenario: &Scenario, runs: &[Summary]) -> Result<(), Failure> {
        if scenario.checks.is_empty() {
            return Ok(());
        }
        let summaries = runs.iter().map(|run| vec![run.clone()]).collect();
        let judged = apus_scenario::experiment::judge(scenario, summaries);
        let table = format!("\nchecks\n{}", tables(&judged.checks, &[]));
        if !self.json {
            print(&table)?;
        } else if !judged.passes() {
            // The JSON contains the runs; scripts read the verdict from the exit code.
            eprint!("{table}");
        }
        if judged.passes() { Ok(()) } else { Err(Failure::Checks) }
    }

    fn open(&self, options: &Options) -> Result<Gathered, Failure> {
        let bundles = self.bundle.is_some();
        match (&self.traffic, &self.topology, &self.file) {
            (Some(traffic), Some(topology), _) => input::open(traffic, topology, bundles, options),
            (_, _, file) => {
                library::open_gathered(file.as_deref().unwrap_or_default(), bundles, options)
            }
        }
    }

    /// Returns the number of parallel runs, and the number of threads of each.
    fn share_threads(&self, setups: &[Setup]) -> (NonZeroUsize, Threads) {
        let at_once = |max| self.max_memory.runs_at_once(setups.iter(), max);
        let cores = available_parallelism().map_or(1, |cores| cores.get() as u32);
        let Some(threads) = self.threads else {
            let per_run = match setups {
                [_] => Threads::Worth(cores),
                _ => Threads::Exactly(1),
            };
            return (at_once(available_parallelism().unwrap_or(NonZeroUsize::MIN)), per_run);
        };
        // More threads than cores would wait for each other; the results do not depend on the number.
        let threads = threads.min(cores);
        let side_by_side = threads.clamp(1, setups.len().max(1) as u32);
        let side_by_side =
            at_once(NonZeroUsize::new(side_by_side as usize).unwrap_or(NonZeroUsize::MIN));
        // The number is at most `threads`, which is a u32.
        (side_by_side, Threads::Exactly(free(threads / side_by_side.get() as u32)))
    }
}

/// Returns the text of a run, with its cost.
fn with_cost(run: &Summary) -> String {
    text::summary(run) + &text::cost(&run.cost)
}

/// Returns the runs with results, the errors of failed runs, which do not affect the other runs, and the number of runs
/// that were interrupted before they began.
fn sorted(results: Vec<Result<Summary, String>>) -> (Vec<Summary>, Vec<String>, usize) {
    let (mut runs, mut failures, mut missing) = (Vec::new(), Vec::new(), 0);
    for result in results {
        match result {
            Ok(summary) => runs.push(summary),
            Err(why) if why.ends_with(NOT_STARTED) => missing += 1,
            Err(why) => failures.push(why),
        }
    }
    (runs, failures, missing)
}

/// Returns the message of an interrupted command.
fn kept(runs: &Runs<Summary>, failed: usize, missing: usize) -> String {
    let ended = runs.runs.iter().filter(|run| run.interrupted);
    let parts: Vec<String> = ended
        .map(|run| format!("{} after {} ms of simulated time", run.name, run.simulated_s * 1e3))
        .collect();
    let complete = runs.runs.len() - parts.len();
    let mut text = format!("interrupted; results are partial: {complete} runs complete");
    if !parts.is_empty() {
        text += &format!(", ended early: {}", parts.join(", "));
    }
    for (count, what) in [(failed, "failed"), (missing, "not started")] {
        if count > 0 {
            text += &format!(", {count} {what}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use apus_scenario::experiment::is_interrupted;

    use super::*;

    /// Of an interrupted command's runs, one failed earlier and another one has not begun.
    #[test]
    fn a_run_that_failed_is_not_counted_as_one_that_did_not_begin() {
        let text = "duration = \"1ms\"\ntopology = \"star hosts=2 1Gbps 1us\"\n\
            algorithm = { name = \"swift\" }\n[[workload]]\nkind = \"incast\"\nsize = \"1kB\"\n";
        let source = apus_scenario::Source { name: "late".to_owned(), text: text.to_owned() };
        let scenario = library::read(&source, std::path::Path::new(""), &Options::default());
        let setup = scenario.expect("good").runs.swap_remove(0).setup;
        let watch = Watch::default();
        watch.stop.store(true, Ordering::Relaxed);
        let setups = [setup];
        let run = || run_all(&setups, NonZeroUsize::MIN, Threads::Exactly(1), &watch, &|_| ());
        let mut results = run();
        assert!(results.iter().all(is_interrupted));
        // If the watchdog ends a run early, that is a failure.
        watch.stop.store(false, Ordering::Relaxed);
        let mut stopped = run().swap_remove(0).expect("a run");
        stopped.interrupted = true;
        stopped.stop_reason = Some("no packet was delivered for 1 ms".to_owned());
        assert!(!is_interrupted(&Ok(stopped)));
        results.push(Err("other: a reason".to_owned()));
        let (runs, failures, missing) = sorted(results);
        assert_eq!((runs.len(), missing), (0, 1));
        assert_eq!(failures, ["other: a reason"]);
        let text = kept(&Runs::new(runs), failures.len(), missing);
        assert!(text.ends_with("0 runs complete, 1 failed, 1 not started"), "{text}");
    }
}
