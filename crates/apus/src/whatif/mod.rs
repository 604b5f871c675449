//! `apus whatif`: fails each link or switch of a scenario in turn and ranks the failures by their harm.

mod harm;
mod report;
mod units;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use apus_scenario::{Options, Setup};
use apus_sim::results::pattern_of;
use clap::Args;

use crate::batch::{self, Limits};
use crate::failure::Failure;
use crate::interrupt;
use crate::library;
use crate::output::{OutputDir, say, to_json};
use crate::tables::TableFormat;
use harm::{Harm, Healthy};
use report::Report;
use units::{Case, Fault, read_fault};

/// Fail each link of a scenario in turn, and rank the failures by their harm.
///
/// The scenario runs once without a failure, and once with each failure added. Runs that the watchdog ends for lack of progress
/// are the worst and have no value, then come runs that leave more ops unfinished. All others are ranked by a metric over its
/// value without the failure: the completion time of the first job, the makespan of traces, or the p99 of op latency.
///
/// A flow counts as delayed if one of its ops took over 10 % longer than its longest op without the failure. DIR gets
/// whatif.json and whatif.csv, a table of all failures.
#[derive(Args)]
pub struct WhatIf {
    /// Scenario file, or name of a built-in scenario.
    file: String,
    /// Links to fail, named as in `link` of `[[fault]]`: "agg * <-> core *", or with `->` one direction each. May be given
    /// several times [default without `--switch`: every link between switches, both directions].
    #[arg(long, value_name = "LINKS")]
    link: Vec<String>,
    /// Switches to fail with all their links, such as "core *". May be given several times.
    #[arg(long, value_name = "SWITCHES")]
    switch: Vec<String>,
    /// Fault of these links and switches: its kind and other keys of `[[fault]]`, such as "slow fraction=0.25" or
    /// "down at=1ms until=3ms".
    #[arg(long, value_name = "FAULT", default_value = "down", value_parser = read_fault)]
    fault: Fault,
    /// Fail each pair of these links and switches at once.
    #[arg(long)]
    pairs: bool,
    /// Run only N failures, drawn by the seed.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    sample: Option<u64>,
    /// Metric to rank by (see `apus list metrics`); larger values count as worse.
    #[arg(long, value_name = "NAME")]
    metric: Option<String>,
    /// Set KEY to VALUE, as in `--set routing.balancer=reps`. May be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Seed of all random number streams and of `--sample`.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=1 << 53))]
    seed: Option<u64>,
    /// Run only the variant NAME.
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Write the results to DIR.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    tables: TableFormat,
    #[command(flatten)]
    limits: Limits,
    /// Print the results as JSON.
    #[arg(long)]
    json: bool,
}

impl WhatIf {
    /// Runs the command.
    pub fn execute(&self) -> Result<(), Failure> {
        let options = Options {
            set: self.set.clone(),
            seed: self.seed,
            variant: self.variant.clone(),
            memory: self.limits.max_memory.limit(),
            expects_faults: true,
            ..Options::default()
        };
        let scenario = library::open_variant(&self.file, &options)?;
        let setup = scenario.runs[0].setup.clone().with_all_ops();
        let metric = self.metric(&setup).map_err(Failure::Input)?;
        let cases = self.cases(&setup).map_err(Failure::Input)?;
        let read = |case: &Case| self.fault.add(&setup, case);
        let setups = cases.iter().map(read).collect::<Result<Vec<_>, _>>();
        let setups = setups.map_err(|why| Failure::Input(format!("{}: {why}", self.file)))?;
        let dir = self.out.as_deref().map(OutputDir::renew).transpose().map_err(Failure::Input)?;
        let dir = dir.map(|dir| dir.with_tables(self.tables.format));
        let watch = interrupt::watch(self.limits.watchdog)?;

        let healthy = Mutex::new(None);
        batch::run_summaries(&self.file, &[setup], self.limits, &watch, &|_, result| {
            *healthy.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        });
        let healthy = match healthy.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(Ok(summary)) => match summary.stop_reason {
                None => Healthy::new(&summary, &metric).map_err(Failure::Run)?,
                Some(why) => {
                    let name = summary.name;
                    let message =
                        format!("{name}, without a failure: {why}; --watchdog sets the span");
                    return Err(Failure::Run(message));
                }
            },
            Some(Err(why)) => return Err(Failure::Run(why)),
            None => {
                return Err(Failure::Interrupted("interrupted; there are no results".to_owned()));
            }
        };
        let results: Mutex<Vec<Option<Result<Harm, String>>>> =
            Mutex::new(cases.iter().map(|_| None).collect());
        batch::run_summaries(&self.file, &setups, self.limits, &watch, &|case, result| {
            let harm = result.map(|summary| healthy.harm(&summary));
            results.lock().unwrap_or_else(PoisonError::into_inner)[case] = Some(harm);
        });
        let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        let report = Report::new(&self.file, &self.fault, healthy, cases, results);
        let json = to_json(&report.json())? + "\n";
        let written = dir.as_ref().map_or(Ok(()), |dir| {
            dir.write("whatif.json", &json).and_then(|()| report.write_table(dir))
        });
        let mut failures = report.failures().to_vec();
        say(&if self.json { json } else { report.text() }, &mut failures);
        failures.extend(written.err());
        if interrupt::interrupted(&watch) {
            let message = "interrupted; the numbers above cover the completed runs only";
            return Err(interrupt::failure(message.to_owned(), &failures));
        }
        if failures.is_empty() { Ok(()) } else { Err(Failure::Run(failures.join("\n"))) }
    }

    /// Returns the metric by which failures are ranked.
    fn metric(&self, setup: &Setup) -> Result<String, String> {
        if let Some(name) = &self.metric {
            return match pattern_of(name) {
                Some(_) => Ok(name.clone()),
                None => Err(format!("--metric: unknown metric `{name}`; see `apus list metrics`")),
            };
        }
        let default = if setup.job_names().next().is_some() {
            "jobs.0.completion_us"
        } else if setup.has_makespan() {
            "makespan_us"
        } else {
            "op_latency_us.p99"
        };
        Ok(default.to_owned())
    }

    /// Returns the failures to run.
    fn cases(&self, setup: &Setup) -> Result<Vec<Case>, String> {
        let mut units = Vec::new();
        for pattern in &self.link {
            let links = setup.links_named(pattern).map_err(|why| format!("--link: {why}"))?;
            units.extend(links.into_iter().map(units::Unit::Link));
        }
        for pattern in &self.switch {
            let switches =
                setup.switches_named(pattern).map_err(|why| format!("--switch: {why}"))?;
            units.extend(switches.into_iter().map(units::Unit::Switch));
        }
        if self.link.is_empty() && self.switch.is_empty() {
            let links = setup.links_of_switches().map_err(|why| why.to_string())?;
            units.extend(links.into_iter().map(units::Unit::Link));
        }
        // Several patterns may name the same unit.
        let mut seen = BTreeSet::new();
        units.retain(|unit| seen.insert(unit.name().to_owned()));
        if units.is_empty() {
            let message =
                "the topology has no link between switches; name those of hosts with --link";
            return Err(format!("{}: {message}", self.file));
        }
        if let ([only], true) = (&units[..], self.pairs) {
            return Err(format!(
                "--pairs: needs at least two to fail at once, but there is only {}",
                only.name()
            ));
        }
        Ok(units::cases(&units, self.pairs, self.sample, setup.seed()))
    }
}
