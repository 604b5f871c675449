//! A comparison: its settings, its runs and their results, independent of the command line.

use apus_scenario::{MemoryLimit, Options, Scenario, Setup};
use clap::Args;
use serde_json::Value;

use super::field::{self, Changes};
use super::report::Report;
use super::table::{Contestant, Metrics, check};
use super::tuning::{Objective, Search};
use crate::batch::{Execute, Job, read_percent};

/// What is compared, and how.
#[derive(Args, Clone, Debug)]
pub struct Contest {
    /// Algorithms to compare: names, each with a profile if it is not the default (`swift,dctcp:gcn`), or labels of the
    /// scenario.
    #[arg(long, value_name = "NAME[:PROFILE],...", required = true, value_delimiter = ',')]
    pub algorithms: Vec<String>,
    /// Set KEY to VALUE in all runs (`--set duration=50ms`), or for one algorithm of the comparison
    /// (`--set hpcc.base_rtt=13us`). May be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Compare on the variant NAME of the scenario.
    #[arg(long, value_name = "NAME")]
    pub variant: Option<String>,
    /// Number of seeds, from the seed of the scenario upwards; all algorithms run with each. The table shows medians, and
    /// differences with their confidence intervals.
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: u64,
    /// Additional metric for the table (see `apus list metrics`). May be given several times.
    #[arg(long, value_name = "NAME")]
    pub metric: Vec<String>,
    /// First search for the best value of one parameter of each algorithm, with the same objective and number of runs for all.
    /// The comparison then uses these values.
    #[arg(long)]
    pub tune_each: bool,
    /// Metric to optimise. Goodput, throughput, utilisation, fairness and completed ops are maximised, all other metrics are
    /// minimised.
    #[arg(
        long,
        value_name = "METRIC",
        default_value = "op_latency_us.p99",
        requires = "tune_each"
    )]
    pub objective: String,
    /// Minimum goodput of a value, in percent of the best goodput of the algorithm.
    #[arg(long, value_name = "PERCENT", default_value_t = 98.0, requires = "tune_each",
          value_parser = read_percent)]
    pub keep: f64,
    /// Number of values per algorithm, its present parameters included.
    #[arg(long, value_name = "N", default_value_t = 8, requires = "tune_each",
          value_parser = clap::value_parser!(u32).range(2..=100))]
    pub tune_values: u32,
    /// Number of seeds per value; they differ from the seeds of the comparison.
    #[arg(long, value_name = "N", default_value_t = 3, requires = "tune_each",
          value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub tune_seeds: u64,
}

/// A scenario under several algorithms.
pub struct Comparison<'a> {
    contest: &'a Contest,
    scenario: Scenario,
    contestants: Vec<Contestant>,
    metrics: Metrics,
    objective: Option<Objective>,
}

impl Contest {
    /// Returns the options with which the scenario is read.
    #[must_use]
    pub fn options(&self, memory: Option<MemoryLimit>) -> Options {
        Options {
            set: Changes::new(&self.set, &self.algorithms).scenario,
            variant: self.variant.clone(),
            memory,
            ..Options::default()
        }
    }

    /// Returns the objective of `--tune-each`, if the option is given.
    fn objective(&self, setup: &Setup, metrics: &Metrics) -> Result<Option<Objective>, String> {
        if !self.tune_each {
            return Ok(None);
        }
        let metric = self.objective.clone();
        check("--objective", &metric, metrics.names.iter().chain(&setup.part_metrics()))?;
        Ok(Some(Objective {
            metric,
            keep: self.keep / 100.0,
            values: self.tune_values as usize,
            seeds: (setup.seed().saturating_add(self.seeds), self.tune_seeds),
        }))
    }
}

impl<'a> Comparison<'a> {
    /// Prepares the comparison on `scenario`, which has a single run.
    ///
    /// # Errors
    /// An unknown algorithm or metric, or settings without effect.
    pub fn new(contest: &'a Contest, scenario: Scenario) -> Result<Self, String> {
        let changes = Changes::new(&contest.set, &contest.algorithms);
        let setup = &scenario.runs[0].setup;
        field::check_settings(setup, &contest.algorithms, &changes)?;
        let seeds = contest.seeds as usize;
        let contestants = field::contestants(setup, &contest.algorithms, &changes, seeds)?;
        let metrics = Metrics::of(&contestants[0].setup, &scenario, &contest.metric)?;
        let objective = contest.objective(setup, &metrics)?;
        Ok(Self { contest, scenario, contestants, metrics, objective })
    }

    /// Executes all runs and returns their errors.
    pub fn run(&mut self, run: &Execute<'_>, interrupted: &dyn Fn() -> bool) -> Vec<String> {
        let mut failures = Vec::new();
        if let Some(objective) = &self.objective {
            failures.extend(tune(&mut self.contestants, objective, run));
        }
        // If a run of the search fails, only its value is excluded from the choice.
        if !interrupted() {
            failures.extend(compare(&mut self.contestants, self.contest.seeds as usize, run));
        }
        failures
    }

    /// Returns the first-seed run of each algorithm that has finished it, with the name of the algorithm.
    #[must_use]
    pub fn first_seed(&self) -> Vec<Setup> {
        let done = self.contestants.iter().filter(|one| matches!(one.summaries[..], [Some(_), ..]));
        done.map(|one| one.setup.clone().with_name(&one.label)).collect()
    }

    /// Returns the results so far.
    #[must_use]
    pub fn report(&self) -> Report<'_> {
        Report {
            objective: self.objective.as_ref(),
            scenario: &self.scenario,
            seeds: (self.scenario.runs[0].setup.seed(), self.contest.seeds),
            contestants: &self.contestants,
            metrics: &self.metrics,
        }
    }
}

/// Searches for the best value of every algorithm's parameter and sets it. Returns the errors of runs.
fn tune(contestants: &mut [Contestant], objective: &Objective, run: &Execute<'_>) -> Vec<String> {
    let mut searches: Vec<Search> =
        contestants.iter().map(|one| Search::new(one, objective)).collect();
    let mut places = Vec::new();
    let mut jobs = Vec::new();
    let (first, seeds) = objective.seeds;
    for (index, (search, one)) in searches.iter().zip(contestants.iter()).enumerate() {
        // Without a tunable parameter there is nothing to search.
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
    let (summaries, failures) = run(jobs);
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

/// Runs every algorithm with every seed. Returns the errors of runs.
fn compare(contestants: &mut [Contestant], seeds: usize, run: &Execute<'_>) -> Vec<String> {
    let mut places = Vec::new();
    let mut jobs = Vec::new();
    for (index, one) in contestants.iter().enumerate() {
        for place in 0..seeds {
            let seed = one.setup.seed().saturating_add(place as u64);
            let setup = one.setup.clone().with_seed(seed);
            jobs.push(Job { setup, settings: format!("{}, seed {seed}", one.label) });
            places.push((index, place));
        }
    }
    let (summaries, failures) = run(jobs);
    for ((index, place), summary) in places.into_iter().zip(summaries) {
        contestants[index].summaries[place] = summary;
    }
    for one in contestants.iter_mut() {
        let measured: Vec<_> = one.summaries.iter().map(|one| one.as_ref().map(measured)).collect();
        one.same = match &measured[..] {
            [first @ Some(_), others @ ..] if !others.is_empty() => {
                others.iter().all(|other| other == first)
            }
            _ => false,
        };
    }
    failures
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
