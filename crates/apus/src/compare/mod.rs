//! `apus compare`: one scenario under many algorithms, side by side.

mod field;
mod report;
mod table;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use apus_sim::scenario::{Options, Scenario, Setup};
use clap::Args;
use field::Changes;
use table::{Contestant, Metrics};

use crate::batch::{self, Job};
use crate::failure::Failure;
use crate::interrupt::{self, DEFAULT_SILENCE, Silence, read_silence};
use crate::library;
use crate::output::{OutputDir, print, to_json};
use crate::store::Store;

/// Runs one scenario under several algorithms and puts their results side by side.
///
/// Each algorithm carries all of the scenario's traffic, with switches that do what it needs. The
/// parameters that the scenario sets hold for the algorithm of that name; parameters that depend on
/// the network follow from it, by each algorithm's own rule. DIR gets compare.json, compare.csv and
/// report.html; finished runs are kept in DIR/runs, so that the same command again runs only what is
/// missing.
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
    /// Compares on this variant of the scenario.
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Seeds per algorithm, from the scenario's own on; the table shows medians.
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// A metric for the table besides, as `apus list metrics` names it; may be given several times.
    #[arg(long, value_name = "NAME")]
    metric: Vec<String>,
    /// Where results go.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Runs side by side; by default one per core.
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// As for `apus run`.
    #[arg(long, value_name = "SPAN", default_value = DEFAULT_SILENCE, value_parser = read_silence)]
    watchdog: Silence,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

impl Compare {
    /// Does it.
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
        let watch = interrupt::watch(self.watchdog)?;
        let failures = self.run(&mut contestants, store.as_ref(), &watch);
        let report = report::Report {
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
        let set = changes.scenario.clone();
        let options = Options { set, variant: self.variant.clone(), ..Options::default() };
        let scenario = library::open(&self.file, &options)?;
        if scenario.runs.len() == 1 {
            return Ok(scenario);
        }
        let names: Vec<&str> =
            scenario.runs.iter().filter_map(|run| run.variant.as_deref()).collect();
        Err(Failure::Input(format!(
            "{}: has several variants; choose one with --variant ({})",
            self.file,
            names.join(", ")
        )))
    }

    /// Runs every algorithm with every seed; returns what went wrong.
    fn run(
        &self,
        contestants: &mut [Contestant],
        store: Option<&Store>,
        watch: &apus_sim::Watch,
    ) -> Vec<String> {
        let mut missing: Vec<(usize, usize, Setup)> = Vec::new();
        for (index, contestant) in contestants.iter_mut().enumerate() {
            for (place, summary) in contestant.summaries.iter_mut().enumerate() {
                let seed = contestant.setup.seed().saturating_add(place as u64);
                let setup = contestant.setup.clone().with_seed(seed);
                *summary = store.and_then(|store| store.load(&setup));
                if summary.is_none() {
                    missing.push((index, place, setup));
                }
            }
        }
        let job = |(index, _, setup): &'_ (usize, usize, Setup)| {
            contestants[*index].label.clone() + &format!(", seed {}", setup.seed())
        };
        let jobs: Vec<Job<'_>> =
            missing.iter().map(|one| Job { setup: &one.2, settings: job(one) }).collect();
        let (done, failures) = batch::run(&self.file, &jobs, store, self.threads, watch);
        for ((index, place, _), summary) in missing.iter().zip(done) {
            contestants[*index].summaries[*place] = summary;
        }
        failures
    }
}
