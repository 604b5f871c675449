//! Runs of a search.

use apus_scenario::Setup;
use apus_sim::bounds::Bounds;
use apus_units::Span;
use serde_json::Value;

use super::curve::{Curve, METRICS, Parameter, Sample};
use super::search::{self, Next};
use crate::batch::{Execute, Job};
use crate::failure::Failure;
use crate::spread::Spread;

/// State that all measurements of a search share.
pub(super) struct Session<'a> {
    pub(super) execute: &'a Execute<'a>,
    /// Seeds per value.
    pub(super) seeds: u64,
    /// Minimum goodput, as a fraction of the best.
    pub(super) keep: f64,
    pub(super) label: &'a str,
    /// Smallest fabric RTT of any packet of any run, us.
    pub(super) unloaded_us: f64,
}

impl Session<'_> {
    /// Returns the setup with another value of a parameter.
    pub(super) fn change(
        &self,
        setup: &Setup,
        parameter: Parameter,
        value: Span,
    ) -> Result<Setup, Failure> {
        let changes = [(parameter.name(), value.to_string())];
        let changes = changes.each_ref().map(|(name, text)| (*name, text.as_str()));
        let changed = setup.clone().with_parameters(self.label, &changes, parameter.dropped(value));
        changed.map_err(|error| Failure::Input(error.message))
    }

    /// Runs a setup with each value of a parameter and all seeds.
    pub(super) fn measure(
        &mut self,
        setup: &Setup,
        parameter: Parameter,
        values: &[Span],
    ) -> Result<Vec<Sample>, Failure> {
        let mut jobs = Vec::new();
        for value in values {
            let changed = self.change(setup, parameter, *value)?;
            let first = changed.seed();
            let seeds = first..first.saturating_add(self.seeds);
            jobs.extend(seeds.map(|seed| Job {
                setup: changed.clone().with_seed(seed),
                settings: format!("{} {value}", parameter.name()),
            }));
        }
        let summaries = self.run(jobs)?;
        for summary in &summaries {
            let min = Bounds::of_metric(summary, "fabric_rtt_us.min").and_then(Bounds::value);
            self.unloaded_us = self.unloaded_us.min(min.unwrap_or(f64::INFINITY));
        }
        let of_value = summaries.chunks(self.seeds as usize).zip(values);
        let samples = of_value.map(|(summaries, value)| {
            let number = |name: &&str| Spread::of_metric(summaries.iter().map(Some), name);
            Sample { value: *value, numbers: METRICS.iter().map(number).collect() }
        });
        Ok(samples.collect())
    }

    fn run(&self, jobs: Vec<Job>) -> Result<Vec<Value>, Failure> {
        let (summaries, failures) = (self.execute)(jobs);
        if !failures.is_empty() {
            return Err(Failure::Run(failures.join("\n")));
        }
        let all: Option<Vec<Value>> = summaries.into_iter().collect();
        all.ok_or_else(|| Failure::Interrupted("interrupted before the search ended".to_owned()))
    }

    /// Returns values around the unloaded RTT.
    pub(super) fn grid(&self) -> Vec<Span> {
        search::grid(Span::from_ps_f64(self.unloaded_us * 1e6))
    }

    /// Searches for the smallest value that keeps the goodput, beginning with `values`. `rival` is a goodput
    /// to reach in addition to the best of the curve.
    pub(super) fn search(
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
            match search::next(&curve.tried(self.keep), &mut grown) {
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
