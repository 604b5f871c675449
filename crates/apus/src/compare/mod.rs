//! `apus compare`: one scenario under several algorithms.

mod field;
mod paired;
mod report;
mod table;
mod tuning;

use std::ops::Range;
use std::path::PathBuf;

use apus_scenario::{Options, Scenario};
use apus_sim::results::METRICS;
use apus_units::suggestion;
use clap::Args;
use field::Changes;
use serde_json::Value;
use table::{Contestant, Metrics};
use tuning::{Objective, Search};

use crate::batch::{self, Job, Limits, read_percent};
use crate::failure::Failure;
use crate::interrupt;
use crate::library;
use crate::output::{OutputDir, print, to_json};
use crate::store::Store;

/// Run one scenario with several algorithms and compare their results.
///
/// Each algorithm carries all of the scenario's traffic, with switches that do what it needs. The
/// parameters that the scenario sets hold for the algorithm of that name; parameters that depend on
/// the network follow from it, by each algorithm's own rule. DIR gets compare.json, compare.csv and
/// report.html. DIR/runs keeps each finished run: the same command repeats none of them.
#[derive(Args)]
pub struct Compare {
    /// A scenario file, or the name of a scenario of the library.
    file: String,
    /// Algorithms by name, each with a profile if it is not the default one (`swift,dctcp:gcn`), or by
    /// their label in the scenario.
    #[arg(long, value_name = "NAME[:PROFILE],...", required = true, value_delimiter = ',')]
    algorithms: Vec<String>,
    /// Change a setting of all runs (`--set duration=50ms`), or a parameter of one algorithm of the
    /// comparison (`--set hpcc.base_rtt=13us`). May be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Compare on this variant of the scenario.
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Number of seeds, from the scenario's own upwards; all algorithms run with each. The table shows
    /// medians, and differences with a confidence interval. If the first two seeds give equal results,
    /// no other seed is run.
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// Additional metric for the table (see `apus list metrics`); may be given several times.
    #[arg(long, value_name = "NAME")]
    metric: Vec<String>,
    /// First search the best value of each algorithm's own parameter, with one objective and one number
    /// of runs for all. The comparison then uses these values.
    #[arg(long)]
    tune_each: bool,
    /// The metric to search for: the lowest value, or the highest of goodput, throughput, utilisation,
    /// fairness and completed ops.
    #[arg(
        long,
        value_name = "METRIC",
        default_value = "op_latency_us.p99",
        requires = "tune_each"
    )]
    objective: String,
    /// Minimum goodput of a value, in percent of the algorithm's best.
    #[arg(long, value_name = "PERCENT", default_value_t = 98.0, requires = "tune_each",
          value_parser = read_percent)]
    keep: f64,
    /// Values per algorithm, including its present parameters.
    #[arg(long, value_name = "N", default_value_t = 8, requires = "tune_each",
          value_parser = clap::value_parser!(u32).range(2..=100))]
    tune_values: u32,
    /// Seeds per value; they differ from the seeds of the comparison.
    #[arg(long, value_name = "N", default_value_t = 3, requires = "tune_each",
          value_parser = clap::value_parser!(u64).range(1..=1000))]
    tune_seeds: u64,
    /// Directory of results.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    limits: Limits,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Compare {
    /// Runs the command.
    pub fn execute(&self) -> Result<(), Failure> {
        let changes = Changes::new(&self.set, &self.algorithms);
        let scenario = self.open(&changes)?;
        let setup = &scenario.runs[0].setup;
        field::check_settings(setup, &self.algorithms, &changes).map_err(Failure::Input)?;
        let contestants =
            field::contestants(setup, &self.algorithms, &changes, self.seeds as usize);
        let mut contestants = contestants.map_err(Failure::Input)?;
        let metrics =
            Metrics::of(&contestants[0].setup, &scenario, &self.metric).map_err(Failure::Input)?;
        let dir = self.out.as_deref().map(OutputDir::open).transpose().map_err(Failure::Input)?;
        let store = dir.as_ref().map(Store::open).transpose().map_err(Failure::Input)?;
        let watch = interrupt::watch(self.limits.watchdog)?;
        let session = Session { command: self, store: store.as_ref(), watch: &watch };
        let mut failures = Vec::new();
        let objective = self.objective(setup.seed(), &metrics)?;
        if let Some(objective) = &objective {
            failures.extend(session.tune(&mut contestants, objective));
        }
        if failures.is_empty() && !interrupt::interrupted(&watch) {
            failures.extend(session.compare(&mut contestants));
        }
        let report = report::Report {
            objective: objective.as_ref(),
            scenario: &scenario,
            seeds: (setup.seed(), self.seeds),
            contestants: &contestants,
            metrics: &metrics,
        };
        let json = to_json(&report.json())? + "\n";
        if let Some(dir) = &dir {
            dir.write("compare.json", &json)
                .and_then(|()| dir.write("compare.csv", &report.csv()))
                .and_then(|()| dir.write("report.html", &report.html()))
                .map_err(Failure::Run)?;
        }
        print(&if self.json { json } else { report.text() })?;
        if interrupt::interrupted(&watch) {
            let message = "interrupted; the numbers above are of the runs that are complete";
            return Err(Failure::Interrupted(message.to_owned()));
        }
        if failures.is_empty() { Ok(()) } else { Err(Failure::Run(failures.join("\n"))) }
    }

    fn open(&self, changes: &Changes<'_>) -> Result<Scenario, Failure> {
        let options = Options {
            set: changes.scenario.clone(),
            variant: self.variant.clone(),
            memory: self.limits.max_memory.limit(),
            ..Options::default()
        };
        library::open_variant(&self.file, &options)
    }

    /// Returns the objective of `--tune-each`, if it is given.
    fn objective(&self, first: u64, metrics: &Metrics) -> Result<Option<Objective>, Failure> {
        if !self.tune_each {
            return Ok(None);
        }
        let metric = self.objective.clone();
        let known = || METRICS.iter().copied().chain(metrics.names.iter().map(String::as_str));
        if !known().any(|name| name == metric) {
            let hint = suggestion(&metric, known());
            let message = format!("--objective: unknown metric `{metric}`{hint}");
            return Err(Failure::Input(message));
        }
        Ok(Some(Objective {
            metric,
            keep: self.keep / 100.0,
            values: self.tune_values as usize,
            seeds: (first.saturating_add(self.seeds), self.tune_seeds),
        }))
    }
}

/// State that all runs of a command share.
struct Session<'a> {
    command: &'a Compare,
    store: Option<&'a Store>,
    watch: &'a apus_sim::Watch,
}

impl Session<'_> {
    /// Searches the best value of every algorithm's parameter and sets it. Returns errors of runs.
    fn tune(&self, contestants: &mut [Contestant], objective: &Objective) -> Vec<String> {
        let mut searches: Vec<Search> =
            contestants.iter().map(|one| Search::new(one, objective)).collect();
        let mut places = Vec::new();
        let mut jobs = Vec::new();
        let (first, seeds) = objective.seeds;
        for (index, (search, one)) in searches.iter().zip(contestants.iter()).enumerate() {
            // Nothing is searched without a parameter.
            let candidates = if search.tunable.is_some() { &search.candidates[..] } else { &[] };
            for (which, candidate) in candidates.iter().enumerate() {
                let value = candidate.value.as_deref().unwrap_or("as it is");
                for seed in 0..seeds {
                    let setup = candidate.setup.clone().with_seed(first.saturating_add(seed));
                    let settings = format!("{}, {value}, seed {}", one.label, setup.seed());
                    jobs.push(Job { setup, settings });
                    places.push((index, which, seed as usize));
                }
            }
        }
        let (summaries, failures) = self.run(jobs);
        for ((index, which, seed), summary) in places.into_iter().zip(summaries) {
            searches[index].candidates[which].summaries[seed] = summary;
        }
        for (one, mut search) in contestants.iter_mut().zip(searches) {
            search.choose(objective);
            one.setup = search.candidates[search.best].setup.clone();
            one.search = Some(search);
        }
        failures
    }

    /// Runs every algorithm with every seed, or with two if these give equal results. Returns errors of
    /// runs.
    fn compare(&self, contestants: &mut [Contestant]) -> Vec<String> {
        let seeds = self.command.seeds as usize;
        let mut failures = self.run_seeds(contestants, 0..seeds.min(2));
        for one in contestants.iter_mut() {
            if let [Some(first), Some(second), ..] = &one.summaries[..] {
                one.same = measured(first) == measured(second);
            }
        }
        if failures.is_empty() {
            failures = self.run_seeds(contestants, 2..seeds.max(2));
        }
        for one in contestants.iter_mut().filter(|one| one.same) {
            let first = one.summaries[0].clone();
            one.summaries.fill(first);
        }
        failures
    }

    /// Runs the seeds of those algorithms whose results depend on it.
    fn run_seeds(&self, contestants: &mut [Contestant], seeds: Range<usize>) -> Vec<String> {
        let mut places = Vec::new();
        let mut jobs = Vec::new();
        for (index, one) in contestants.iter().enumerate().filter(|(_, one)| !one.same) {
            for place in seeds.clone() {
                let seed = one.setup.seed().saturating_add(place as u64);
                let setup = one.setup.clone().with_seed(seed);
                jobs.push(Job { setup, settings: format!("{}, seed {seed}", one.label) });
                places.push((index, place));
            }
        }
        let (summaries, failures) = self.run(jobs);
        for ((index, place), summary) in places.into_iter().zip(summaries) {
            contestants[index].summaries[place] = summary;
        }
        failures
    }

    fn run(&self, jobs: Vec<Job>) -> (Vec<Option<Value>>, Vec<String>) {
        batch::run(&self.command.file, jobs, self.store, self.command.limits, self.watch)
    }
}

/// Returns the summary of a run without its seed and cost.
fn measured(summary: &Value) -> Value {
    let mut measured = summary.clone();
    if let Some(fields) = measured.as_object_mut() {
        fields.remove("seed");
        fields.remove("cost");
    }
    measured
}
