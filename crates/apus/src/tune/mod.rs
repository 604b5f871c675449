//! `apus tune`: finds the smallest target that keeps the throughput of the user's own traffic.

mod curve;
mod report;
mod search;
mod session;

use std::path::PathBuf;

use apus_algorithms::registry::AlgorithmConfig;
use apus_scenario::{Options, Setup};
use apus_units::Span;
use clap::Args;
use curve::{Parameter, Parameters};
pub use report::Report;
use session::Session;

use crate::batch::{self, Execute, Job, Limits, read_percent};
use crate::closer::{self, PageOptions};
use crate::failure::Failure;
use crate::interrupt;
use crate::library;
use crate::output::{OutputDir, say, to_json};
use crate::store::Store;

/// Find the smallest base target of Swift, and the smallest flow-scaling range for it, that keep the
/// throughput of your traffic on your topology.
///
/// The scenario is first run with flow scaling off (as in Swift §5.1) and targets around its unloaded RTT, then with targets
/// closer to the one at which goodput begins to fall. With the target found, it is run with several flow-scaling ranges. The
/// output has both curves.
///
/// DIR gets tune.json, tune.svg, tune-fs_range.svg and report.html. For the report, the first seed is run again with the
/// original and with the tuned parameters, and once more each with records around its slowest ops. DIR/runs keeps each
/// finished run: the same command does not repeat these runs.
#[derive(Args)]
pub struct Tune {
    /// Scenario file, or name of a built-in scenario.
    file: String,
    /// Set KEY to VALUE in all runs, as in `--set duration=50ms`. May be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Tune for the variant NAME of the scenario.
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    #[command(flatten)]
    wanted: Wanted,
    /// Write the results to DIR.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    page: PageOptions,
    #[command(flatten)]
    limits: Limits,
    /// Print the results as JSON.
    #[arg(long)]
    json: bool,
}

/// Which algorithm is tuned, and how.
#[derive(Args, Clone, Debug)]
pub struct Wanted {
    /// Label of the algorithm to tune; required if several algorithms of the scenario have a base target.
    #[arg(long, value_name = "LABEL")]
    pub algorithm: Option<String>,
    /// Minimum goodput, in percent of the best goodput.
    #[arg(long, value_name = "PERCENT", default_value_t = 98.0, value_parser = read_percent)]
    pub keep: f64,
    /// Number of seeds per value, from the seed of the scenario upwards; medians are compared.
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: u64,
}

impl Tune {
    /// Runs the command.
    pub fn execute(&self) -> Result<(), Failure> {
        let setup = self.setup()?;
        let problem = |why: String| Failure::Input(format!("{}: {why}", self.file));
        let label = self.wanted.label(&setup).map_err(problem)?;
        if let Some(text) = varied(&self.set, label) {
            return Err(Failure::Input(format!(
                "--set {text}: has no effect, because `apus tune` varies `base_target`; remove it"
            )));
        }
        let dir = self.out.as_deref().map(OutputDir::renew).transpose().map_err(Failure::Input)?;
        let store = dir.as_ref().map(Store::open).transpose().map_err(Failure::Input)?;
        let watch = interrupt::watch(self.limits.watchdog)?;
        let execute =
            |jobs: Vec<Job>| batch::run(&self.file, jobs, store.as_ref(), self.limits, &watch);
        let report = self.wanted.search(&setup, &execute).map_err(|failure| match failure {
            Failure::Interrupted(why) => Failure::Interrupted(match store {
                Some(_) => noted(&why, "finished runs are kept, and the same command continues"),
                None => noted(&why, "no run is kept without --out DIR"),
            }),
            other => other,
        })?;
        let json = to_json(&report.json())? + "\n";
        let (mut failures, mut written) = (Vec::new(), Ok(()));
        if let Some(dir) = &dir {
            let charts = report.charts();
            let (worst, store) = (self.page.worst, store.as_ref());
            let (runs, without) =
                closer::pages(&self.file, &report.runs(), worst, store, self.limits, &watch);
            let page = report.html(runs, &without);
            failures.extend(without);
            let files = charts.iter().map(|(name, chart)| (*name, chart));
            written = [("tune.json", &json), ("report.html", &page)]
                .into_iter()
                .chain(files)
                .try_for_each(|(name, text)| dir.write(name, text));
        }
        say(&if self.json { json } else { report.text() }, &mut failures);
        let shown =
            written.map_err(Failure::Run).and_then(|()| self.page.show(self.out.as_deref()));
        failures.extend(shown.err().map(|why| why.to_string()));
        if interrupt::interrupted(&watch) {
            let message = "interrupted; the search is complete, but report.html lacks runs";
            return Err(interrupt::failure(message.to_owned(), &failures));
        }
        if report.base().is_none() {
            failures.push("none of the tried targets keeps the throughput".to_owned());
        }
        if failures.is_empty() { Ok(()) } else { Err(Failure::Run(failures.join("\n"))) }
    }

    /// Returns the setup of the run to tune.
    fn setup(&self) -> Result<Setup, Failure> {
        let options = Options {
            set: self.set.clone(),
            variant: self.variant.clone(),
            memory: self.limits.max_memory.limit(),
            ..Options::default()
        };
        Ok(library::open_variant(&self.file, &options)?.runs.swap_remove(0).setup)
    }
}

/// Returns a message with a note at the end of its first line; the lines about failures follow.
fn noted(why: &str, note: &str) -> String {
    let line = why.lines().next().unwrap_or_default();
    format!("{line}; {note}{}", &why[line.len()..])
}

/// Returns the first of these settings that the search varies.
#[must_use]
pub fn varied<'a>(set: &'a [String], label: &str) -> Option<&'a str> {
    let parameter = Parameter::BaseTarget.name();
    let keys = [format!("algorithm.{parameter}"), format!("algorithm.{label}.{parameter}")];
    let key_of = |text: &str| text.split('=').next().unwrap_or_default().trim().to_owned();
    set.iter().map(String::as_str).find(|text| keys.contains(&key_of(text)))
}

impl Wanted {
    /// Searches for the base target, and then for the range of flow scaling. `execute` executes the runs.
    ///
    /// # Errors
    /// If no algorithm can be tuned, a run fails, or `execute` leaves out runs, as after an interruption.
    pub fn search<'a>(
        &self,
        setup: &'a Setup,
        execute: &Execute<'_>,
    ) -> Result<Report<'a>, Failure> {
        let (label, config) = self.algorithm(setup).map_err(Failure::Input)?;
        let parameters = Parameters::of(config);
        let mut session = Session {
            execute,
            seeds: self.seeds,
            keep: self.keep / 100.0,
            label,
            unloaded_us: f64::INFINITY,
        };
        session.measure(setup, Parameter::BaseTarget, &[parameters.base_target])?;
        if !session.unloaded_us.is_finite() {
            let message = "no packet was acknowledged in the measured time: make `duration` longer";
            return Err(Failure::Run(message.to_owned()));
        }
        let mut values = session.grid();
        // Flow scaling would compensate for a target that is too small.
        let unscaled = session.change(setup, Parameter::FlowScaling, Span::ZERO)?;
        let target = session.search(&unscaled, Parameter::BaseTarget, &values, 0.0)?;
        let floor = search::round(
            Span::from_ps_f64(session.unloaded_us * 1e6).saturating_sub(parameters.hop_scale),
        )
        .min(search::MOST);
        let base = target.found.map(|found| found.max(floor));
        let scaling = match base {
            Some(base) => {
                let tuned = session.change(setup, Parameter::BaseTarget, base)?;
                // Flow scaling turned off, as in the search for the target, and with the range of the scenario.
                values.extend([Span::ZERO, parameters.fs_range]);
                let best = target.best_goodput();
                Some(session.search(&tuned, Parameter::FlowScaling, &values, best)?)
            }
            None => None,
        };
        Ok(Report {
            setup,
            label,
            keep: self.keep,
            seeds: self.seeds,
            unloaded_us: session.unloaded_us,
            floor,
            parameters,
            target,
            scaling,
        })
    }

    /// Returns the label of the algorithm to tune, which has a base target.
    ///
    /// # Errors
    /// If there is no such algorithm, or there are several and none is selected.
    pub fn label<'a>(&self, setup: &'a Setup) -> Result<&'a str, String> {
        Ok(self.algorithm(setup)?.0)
    }

    fn algorithm<'a>(&self, setup: &'a Setup) -> Result<(&'a str, &'a AlgorithmConfig), String> {
        let tunable = |config: &AlgorithmConfig| {
            config.effective().iter().any(|(name, _)| *name == Parameter::BaseTarget.name())
        };
        if let Some(label) = &self.algorithm {
            let Some(found) = setup.algorithms().find(|(known, _)| known == label) else {
                let labels: Vec<&str> = setup.algorithms().map(|(label, _)| label).collect();
                return Err(format!("has no algorithm `{label}`; it has {}", labels.join(", ")));
            };
            if !tunable(found.1) {
                return Err(format!("`{label}` has no base target to tune"));
            }
            return Ok(found);
        }
        let mut found = setup.algorithms().filter(|(_, config)| tunable(config));
        match (found.next(), found.next()) {
            (Some(one), None) => Ok(one),
            (None, _) => Err("none of its algorithms has a base target to tune".to_owned()),
            (Some((a, _)), Some((b, _))) => Err(format!(
                "has several algorithms with a base target (`{a}`, `{b}`); choose one with \
                 --algorithm"
            )),
        }
    }
}
