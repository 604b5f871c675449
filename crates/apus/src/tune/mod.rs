//! `apus tune`: smallest target that keeps the throughput of a user's own traffic.

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
use session::Session;

use crate::batch::{Limits, read_percent};
use crate::failure::Failure;
use crate::interrupt;
use crate::library;
use crate::output::{OutputDir, print, to_json};
use crate::store::Store;

/// Find the smallest base target of Swift, and the smallest flow-scaling range for it, that keep the
/// throughput of your traffic on your topology.
///
/// The scenario is first run with flow scaling off (as in Swift §5.1) and targets around its unloaded
/// RTT, then with targets closer to the one at which goodput begins to fall. With the target found, it
/// is run with ranges of flow scaling. The output has both curves. DIR gets tune.json, tune.svg and
/// tune-fs_range.svg. DIR/runs keeps each finished run: the same command repeats none of them.
#[derive(Args)]
pub struct Tune {
    /// A scenario file, or the name of a scenario of the library.
    file: String,
    /// Change a setting of all runs: `--set duration=50ms`. May be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Tune for this variant of the scenario.
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Label of the algorithm to tune, if several algorithms of the scenario have a base target.
    #[arg(long, value_name = "LABEL")]
    algorithm: Option<String>,
    /// Minimum goodput, in percent of the best goodput.
    #[arg(long, value_name = "PERCENT", default_value_t = 98.0, value_parser = read_percent)]
    keep: f64,
    /// Number of seeds per value, from the scenario's own upwards; medians are compared.
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// Directory of results.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    limits: Limits,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Tune {
    /// Runs the command.
    pub fn execute(&self) -> Result<(), Failure> {
        let setup = self.setup()?;
        let (label, config) = self.algorithm(&setup)?;
        self.check_settings(label)?;
        let parameters = Parameters::of(config);
        let dir = self.out.as_deref().map(OutputDir::open).transpose().map_err(Failure::Input)?;
        let store = dir.as_ref().map(Store::open).transpose().map_err(Failure::Input)?;
        let watch = interrupt::watch(self.limits.watchdog)?;
        let mut session = Session {
            file: &self.file,
            seeds: self.seeds,
            limits: self.limits,
            keep: self.keep / 100.0,
            label,
            watch: &watch,
            store: store.as_ref(),
            unloaded_us: f64::INFINITY,
        };
        session.measure(&setup, Parameter::BaseTarget, &[parameters.base_target])?;
        if !session.unloaded_us.is_finite() {
            let message = "no packet was acknowledged in the measured time: make `duration` longer";
            return Err(Failure::Run(message.to_owned()));
        }
        let mut values = session.grid();
        // Flow scaling would compensate a target that is too small.
        let unscaled = session.change(&setup, Parameter::FlowScaling, Span::ZERO)?;
        let target = session.search(&unscaled, Parameter::BaseTarget, &values, 0.0)?;
        let floor = search::round(
            Span::from_ps_f64(session.unloaded_us * 1e6).saturating_sub(parameters.hop_scale),
        );
        let base = target.found.map(|found| found.max(floor));
        let scaling = match base {
            Some(base) => {
                let tuned = session.change(&setup, Parameter::BaseTarget, base)?;
                // Off, as in the search of the target, and as in the scenario.
                values.extend([Span::ZERO, parameters.fs_range]);
                let best = target.best_goodput();
                Some(session.search(&tuned, Parameter::FlowScaling, &values, best)?)
            }
            None => None,
        };
        let report = report::Report {
            setup: &setup,
            label,
            keep: self.keep,
            seeds: self.seeds,
            unloaded_us: session.unloaded_us,
            floor,
            parameters,
            target,
            scaling,
        };
        let json = to_json(&report.json())? + "\n";
        if let Some(dir) = &dir {
            let charts = report.charts();
            let files = charts.iter().map(|(name, chart)| (*name, chart));
            for (name, text) in [("tune.json", &json)].into_iter().chain(files) {
                dir.write(name, text).map_err(Failure::Run)?;
            }
        }
        print(&if self.json { json } else { report.text() })?;
        match report.base() {
            Some(_) => Ok(()),
            None => Err(Failure::Run("none of the tried targets keeps the throughput".to_owned())),
        }
    }

    /// Returns an error for a setting of the parameter that is searched.
    fn check_settings(&self, label: &str) -> Result<(), Failure> {
        let parameter = Parameter::BaseTarget.name();
        let keys = [format!("algorithm.{parameter}"), format!("algorithm.{label}.{parameter}")];
        for text in &self.set {
            let key = text.split('=').next().unwrap_or_default().trim();
            if keys.iter().any(|known| known == key) {
                let message = format!(
                    "--set {text}: has no effect, because `apus tune` varies `{parameter}`; remove it"
                );
                return Err(Failure::Input(message));
            }
        }
        Ok(())
    }

    /// Returns the run to tune.
    fn setup(&self) -> Result<Setup, Failure> {
        let options = Options {
            set: self.set.clone(),
            variant: self.variant.clone(),
            memory: self.limits.max_memory.limit(),
            ..Options::default()
        };
        Ok(library::open_variant(&self.file, &options)?.runs.swap_remove(0).setup)
    }

    /// Returns the algorithm to tune: the one with a base target.
    fn algorithm<'a>(&self, setup: &'a Setup) -> Result<(&'a str, &'a AlgorithmConfig), Failure> {
        let fail = |why: String| Err(Failure::Input(format!("{}: {why}", self.file)));
        let tunable = |config: &AlgorithmConfig| {
            config.effective().iter().any(|(name, _)| *name == Parameter::BaseTarget.name())
        };
        if let Some(label) = &self.algorithm {
            let Some(found) = setup.algorithms().find(|(known, _)| known == label) else {
                let labels: Vec<&str> = setup.algorithms().map(|(label, _)| label).collect();
                return fail(format!("has no algorithm `{label}`; it has {}", labels.join(", ")));
            };
            if !tunable(found.1) {
                return fail(format!("`{label}` has no base target to tune"));
            }
            return Ok(found);
        }
        let mut found = setup.algorithms().filter(|(_, config)| tunable(config));
        match (found.next(), found.next()) {
            (Some(one), None) => Ok(one),
            (None, _) => fail("none of its algorithms has a base target to tune".to_owned()),
            (Some((a, _)), Some((b, _))) => fail(format!(
                "has several algorithms with a base target (`{a}`, `{b}`); choose one with \
                 --algorithm"
            )),
        }
    }
}
