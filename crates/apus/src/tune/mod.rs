//! `apus tune`: the smallest target that keeps the throughput of a user's own traffic.

mod report;
mod search;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use apus_cc::registry::AlgorithmConfig;
use apus_sim::Watch;
use apus_sim::scenario::{Options, Setup};
use apus_units::Span;
use clap::Args;
use search::{Next, Tried};
use serde_json::Value;

use crate::batch::{self, Job};
use crate::failure::Failure;
use crate::interrupt::{self, DEFAULT_SILENCE, Silence, read_silence};
use crate::library;
use crate::output::{OutputDir, print, to_json};
use crate::store::Store;
use crate::sweep::table::{median, metric};

/// Finds the smallest base target of Swift, and the smallest flow-scaling range beside it, that keep
/// the throughput of your traffic on your topology.
///
/// The scenario is run with targets around its unloaded RTT and flow scaling off, so that the target
/// stands for itself (as in Swift §5.1), then ever closer to where goodput begins to fall; and with the
/// target found, with ranges of flow scaling. The answer comes with both curves. DIR gets tune.json,
/// tune.svg and tune-fs_range.svg; finished runs are kept in DIR/runs, so that the same command again
/// runs only what is missing.
#[derive(Args)]
pub struct Tune {
    /// A scenario file, or the name of a scenario of the library.
    file: String,
    /// Changes a setting of all runs: `--set duration=50ms`. May be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Tunes for this variant of the scenario.
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// The label of the algorithm to tune, if the scenario has several with a base target.
    #[arg(long, value_name = "LABEL")]
    algorithm: Option<String>,
    /// The part of the best goodput that is to be kept, in percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 98.0)]
    keep: f64,
    /// Seeds per value, from the scenario's own on; medians decide.
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// Where the curve and finished runs go.
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

/// A parameter that is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parameter {
    BaseTarget,
    FlowScaling,
}

impl Parameter {
    fn name(self) -> &'static str {
        match self {
            Self::BaseTarget => "base_target",
            Self::FlowScaling => "fs_range",
        }
    }

    /// What has no effect beside `value`.
    fn dropped(self, value: Span) -> &'static [&'static str] {
        match self {
            Self::FlowScaling if value.is_zero() => &["fs_min_cwnd", "fs_max_cwnd"],
            _ => &[],
        }
    }
}

/// One value of a parameter with its medians over the seeds.
#[derive(Clone, Debug)]
struct Sample {
    value: Span,
    medians: Vec<Option<f64>>,
}

/// What is measured for each value, and shown in the table.
const METRICS: [&str; 6] = [
    "goodput_gbps",
    "fabric_rtt_us.p50",
    "fabric_rtt_us.p99",
    "op_latency_us.p99",
    "loss_rate",
    "jain",
];
const GOODPUT: usize = 0;
const JAIN: usize = 5;
/// How far Jain's index may fall below the best one while flow scaling shrinks, where flows always
/// have something to send: what they get is then not what they asked for.
/// deviation: no source; a difference of 0.05 is the spread over seeds of the 5000-flow incast.
const JAIN_SLACK: f64 = 0.05;
/// The part of goodput by which a range of flow scaling may miss what the target, which lies at the
/// edge of keeping it, just met. deviation: no source; medians of three seeds vary by as much.
const GOODPUT_SLACK: f64 = 0.005;

/// A curve and what was read from it.
struct Curve {
    parameter: Parameter,
    samples: Vec<Sample>,
    /// The best goodput of another curve that this one is to keep up with, Gb/s.
    rival: f64,
    /// Whether flows should be equal.
    fair: bool,
    /// The smallest value that keeps; `None`: not even the largest does.
    found: Option<Span>,
}

impl Curve {
    fn best_goodput(&self) -> f64 {
        self.best(GOODPUT).max(self.rival)
    }

    /// What was measured with `value`.
    fn sample(&self, value: Span) -> Option<&Sample> {
        self.samples.iter().find(|sample| sample.value == value)
    }

    fn best(&self, index: usize) -> f64 {
        self.samples.iter().filter_map(|sample| sample.medians[index]).fold(0.0, f64::max)
    }

    /// Whether a sample keeps the share `keep` of the best goodput, and fairness beside flow scaling.
    fn keeps(&self, sample: &Sample, keep: f64) -> bool {
        let of = |index: usize| sample.medians[index].unwrap_or(0.0);
        let fair = !self.fair || of(JAIN) >= self.best(JAIN) - JAIN_SLACK;
        let slack = match self.parameter {
            Parameter::BaseTarget => 0.0,
            Parameter::FlowScaling => GOODPUT_SLACK,
        };
        fair && of(GOODPUT) >= keep * (1.0 - slack) * self.best_goodput()
    }

    fn tried(&self, keep: f64) -> Vec<Tried> {
        let tried =
            |sample: &Sample| Tried { value: sample.value, keeps: self.keeps(sample, keep) };
        self.samples.iter().map(tried).collect()
    }
}

impl Tune {
    /// Does it.
    pub fn execute(&self) -> Result<(), Failure> {
        if !(self.keep > 0.0 && self.keep < 100.0) {
            let message = format!("--keep {}: it must be above 0 and below 100 percent", self.keep);
            return Err(Failure::Input(message));
        }
        let setup = self.setup()?;
        let (label, config) = self.algorithm(&setup)?;
        let parameters = Parameters::of(config);
        let dir = self.out.as_deref().map(OutputDir::open).transpose().map_err(Failure::Input)?;
        let store = self.out.as_deref().map(Store::open).transpose().map_err(Failure::Input)?;
        let watch = interrupt::watch(self.watchdog)?;
        let mut session = Session {
            tune: self,
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
        // Flow scaling would stand in for the part of the target that is missing.
        let unscaled = session.change(&setup, Parameter::FlowScaling, Span::ZERO)?;
        let target = session.search(&unscaled, Parameter::BaseTarget, &values, 0.0)?;
        let floor = search::round(
            Span::from_ps_f64(session.unloaded_us * 1e6).saturating_sub(parameters.hop_scale),
        );
        let base = target.found.map(|found| found.max(floor));
        let scaling = match base {
            Some(base) => {
                let tuned = session.change(&setup, Parameter::BaseTarget, base)?;
                // Off, as the target was found, and as it is.
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
            None => Err(Failure::Run("no target that was tried keeps the throughput".to_owned())),
        }
    }

    /// The one run to tune.
    fn setup(&self) -> Result<Setup, Failure> {
        let options =
            Options { set: self.set.clone(), variant: self.variant.clone(), ..Options::default() };
        let mut scenario = library::open(&self.file, &options)?;
        if scenario.runs.len() > 1 {
            let names = scenario.runs.iter().filter_map(|run| run.variant.as_deref());
            let names: Vec<&str> = names.collect();
            let message = format!(
                "{}: has several variants; choose one with --variant ({})",
                self.file,
                names.join(", ")
            );
            return Err(Failure::Input(message));
        }
        let missing = || Failure::Input(format!("{}: has no run", self.file));
        scenario.runs.pop().map(|run| run.setup).ok_or_else(missing)
    }

    /// The algorithm to tune: the one that has a base target.
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

/// The parameters as the scenario has them.
#[derive(Clone, Copy, Debug)]
struct Parameters {
    base_target: Span,
    hop_scale: Span,
    fs_range: Span,
}

impl Parameters {
    fn of(config: &AlgorithmConfig) -> Self {
        let effective = config.effective();
        let span = |name: &str| {
            let value = effective.iter().find(|(known, _)| *known == name);
            value.and_then(|(_, text)| text.parse().ok()).unwrap_or(Span::ZERO)
        };
        Self {
            base_target: span("base_target"),
            hop_scale: span("hop_scale"),
            fs_range: span("fs_range"),
        }
    }
}

/// What all measurements of a call share.
struct Session<'a> {
    tune: &'a Tune,
    label: &'a str,
    watch: &'a Watch,
    store: Option<&'a Store>,
    /// The smallest fabric RTT of any packet of any run, us.
    unloaded_us: f64,
}

impl Session<'_> {
    fn change(&self, setup: &Setup, parameter: Parameter, value: Span) -> Result<Setup, Failure> {
        let changes = [(parameter.name(), value.to_string())];
        let changes = changes.each_ref().map(|(name, text)| (*name, text.as_str()));
        let changed = setup.clone().with_parameters(self.label, &changes, parameter.dropped(value));
        changed.map_err(|error| Failure::Input(error.message))
    }

    /// Runs a setup with values of a parameter, each with all seeds.
    fn measure(
        &mut self,
        setup: &Setup,
        parameter: Parameter,
        values: &[Span],
    ) -> Result<Vec<Sample>, Failure> {
        let mut setups = Vec::new();
        for value in values {
            let changed = self.change(setup, parameter, *value)?;
            let first = changed.seed();
            let seeds = first..first.saturating_add(self.tune.seeds);
            setups.extend(seeds.map(|seed| changed.clone().with_seed(seed)));
        }
        let summaries = self.run(&setups, parameter, values)?;
        for summary in &summaries {
            let min = metric(summary, "fabric_rtt_us.min").unwrap_or(f64::INFINITY);
            self.unloaded_us = self.unloaded_us.min(min);
        }
        let of_value = summaries.chunks(self.tune.seeds as usize).zip(values);
        let samples = of_value.map(|(summaries, value)| {
            let median =
                |name: &&str| median(summaries.iter().filter_map(|s| metric(s, name)).collect());
            Sample { value: *value, medians: METRICS.iter().map(median).collect() }
        });
        Ok(samples.collect())
    }

    fn run(
        &self,
        setups: &[Setup],
        parameter: Parameter,
        values: &[Span],
    ) -> Result<Vec<Value>, Failure> {
        let kept = setups.iter().map(|setup| self.store.and_then(|store| store.load(setup)));
        let mut summaries: Vec<Option<Value>> = kept.collect();
        let missing: Vec<usize> = (0..setups.len()).filter(|&i| summaries[i].is_none()).collect();
        let seeds = self.tune.seeds as usize;
        let job = |&index: &usize| Job {
            setup: &setups[index],
            settings: format!("{} {}", parameter.name(), values[index / seeds]),
        };
        let jobs: Vec<Job<'_>> = missing.iter().map(job).collect();
        let (done, failures) =
            batch::run(&self.tune.file, &jobs, self.store, self.tune.threads, self.watch);
        if !failures.is_empty() {
            return Err(Failure::Run(failures.join("\n")));
        }
        for (index, summary) in missing.into_iter().zip(done) {
            summaries[index] = summary;
        }
        let all: Option<Vec<Value>> = summaries.into_iter().collect();
        all.ok_or_else(|| {
            let kept = match self.store {
                Some(_) => "; what is complete is kept, and the same command goes on",
                None => "; nothing was kept: --out DIR would keep finished runs",
            };
            Failure::Interrupted(format!("interrupted before the answer{kept}"))
        })
    }

    /// Values around the unloaded RTT.
    fn grid(&self) -> Vec<Span> {
        search::grid(Span::from_ps_f64(self.unloaded_us * 1e6))
    }

    /// Looks for the smallest value that keeps, beginning with `values`; `rival` is a goodput to keep
    /// up with besides the curve's own best.
    fn search(
        &mut self,
        setup: &Setup,
        parameter: Parameter,
        values: &[Span],
        rival: f64,
    ) -> Result<Curve, Failure> {
        let mut values = values.to_vec();
        values.sort();
        values.dedup();
        let fair = parameter == Parameter::FlowScaling && setup.is_closed_loop();
        let mut curve = Curve { parameter, samples: Vec::new(), rival, fair, found: None };
        let mut grown = 0;
        loop {
            let samples = self.measure(setup, parameter, &values)?;
            curve.samples.extend(samples);
            curve.samples.sort_by_key(|sample| sample.value);
            match search::next(&curve.tried(self.tune.keep / 100.0), &mut grown) {
                Next::Try(more) => values = more,
                Next::Found(value) => curve.found = Some(value),
                Next::Nothing => return Ok(curve),
            }
            if curve.found.is_some() {
                return Ok(curve);
            }
        }
    }
}
