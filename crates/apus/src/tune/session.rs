//! Execution of the runs of a search.

use apus_scenario::Setup;
use apus_sim::bounds::Bounds;
use apus_units::Span;
use serde_json::Value;

use super::curve::{Curve, METRICS, Parameter, Sample};
use super::search::{self, Next};
use crate::batch::{Execute, Job};
use crate::failure::Failure;
use crate::interrupt;
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
    /// Returns the setup with a different value of a parameter.
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

    /// Runs a setup with every given value of a parameter and all seeds.
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
        let all: Vec<Value> = summaries.iter().flatten().cloned().collect();
        // Some run has neither ended nor failed, so the search was interrupted.
        if all.len() + failures.len() < summaries.len() {
            let message = "interrupted before the search ended";
            return Err(interrupt::failure(message.to_owned(), &failures));
        }
        if failures.is_empty() { Ok(all) } else { Err(Failure::Run(failures.join("\n"))) }
    }

    /// Returns values around the unloaded RTT.
    pub(super) fn grid(&self) -> Vec<Span> {
        search::grid(Span::from_ps_f64(self.unloaded_us * 1e6))
    }

    /// Searches for the smallest value that keeps the goodput, starting with `values`. `rival` is a goodput to reach in
    /// addition to the best one of the curve.
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

#[cfg(test)]
mod tests {
    use apus_scenario::{Options, Source};
    use serde_json::json;

    use super::*;
    use crate::library;

    /// Of three runs, one has failed and one has ended. The third one has not begun in the first case, and has ended in
    /// the second.
    #[test]
    fn an_interrupt_after_a_failure_is_an_interrupt_that_names_the_failure() {
        let text = "duration = \"1ms\"\ntopology = \"star hosts=2 1Gbps 1us\"\n\
            algorithm = { name = \"swift\" }\n[[workload]]\nkind = \"incast\"\nsize = \"1kB\"\n";
        let source = Source { name: "late".to_owned(), text: text.to_owned() };
        let scenario = library::read(&source, std::path::Path::new(""), &Options::default());
        let setup = scenario.expect("good").runs.swap_remove(0).setup;
        let ends = |last: Option<Value>| {
            let execute = |jobs: Vec<Job>| {
                assert_eq!(jobs.len(), 3);
                (vec![None, Some(json!({})), last.clone()], vec!["a reason".to_owned()])
            };
            let (seeds, unloaded_us) = (3, f64::INFINITY);
            let mut session =
                Session { execute: &execute, seeds, keep: 0.98, label: "swift", unloaded_us };
            session.measure(&setup, Parameter::BaseTarget, &[Span::from_us(20)]).err()
        };
        let Some(Failure::Interrupted(why)) = ends(None) else { panic!("it was not interrupted") };
        assert_eq!(why, "interrupted before the search ended\na reason");
        let Some(Failure::Run(why)) = ends(Some(json!({}))) else { panic!("no run has failed") };
        assert_eq!(why, "a reason");
    }
}
