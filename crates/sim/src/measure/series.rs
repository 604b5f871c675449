//! Quantities over time: settling times, and values within a span of time.

use crate::columns::{gbps, summary};
use std::collections::BTreeMap;

use apus_cc::AlgorithmFactory;
use apus_fabric::PortCounters;
use apus_units::{PortId, Rate, Span, Time};
use serde::Serialize;

use super::plan::{Moment, Quantity, Question, SeriesPlan, Subject, Threshold, Which};
use crate::distribution::DistributionSummary;
use crate::plan::Plan;

impl Threshold {
    /// A value that is not a number is on neither side.
    fn holds(self, value: f64) -> bool {
        match self {
            Self::Above(least) => value >= least,
            Self::Below(most) => value <= most,
        }
    }
}

/// All series of a run.
#[derive(Debug)]
pub(crate) struct SeriesSampler {
    series: Vec<Series>,
    /// By connection: payload delivered before the end of the warm-up, at which metrics restart.
    startup_bytes: Vec<u64>,
}

#[derive(Debug)]
struct Series {
    plan: SeriesPlan,
    subject: Parts,
    /// Start of the first interval.
    start: Time,
    /// End of the next interval; at first the start of the first interval.
    next: Time,
    begun: bool,
    before: Seen,
    settling: Settling,
    /// Values of all intervals; none if the result is known during the run.
    values: Vec<f64>,
}

/// State of the search for the time at which a quantity settles.
#[derive(Debug, Default)]
struct Settling {
    /// Start of the current stretch beyond the threshold.
    since: Option<Time>,
    settled: Option<Time>,
}

impl Settling {
    /// Handles the end of an interval.
    fn take(&mut self, interval: (Time, Time), value: f64, threshold: Threshold, hold: Span) {
        let (start, end) = interval;
        self.since = threshold.holds(value).then(|| self.since.unwrap_or(start));
        self.settled = self.since.filter(|since| end.since(*since) >= hold);
    }
}

/// Time at which the first or the last op of a workload ended.
type EndOf<'a> = &'a dyn Fn(u32, Which) -> Option<Time>;

impl Moment {
    /// Resolves the time; `None` if there was no such op.
    fn time(self, end_of: EndOf<'_>) -> Option<Time> {
        match self {
            Self::At(time) => Some(time),
            Self::End { workload, op, lead } => Some(end_of(workload, op)?.saturating_sub(lead)),
        }
    }
}

#[derive(Debug)]
enum Parts {
    Ports(Vec<(PortId, Rate)>),
    Connections(Vec<u32>),
}

/// Counters at the start of an interval.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// Counter of the subject: wire bytes sent, or payload delivered.
    bytes: u64,
    /// Payload that all connections delivered.
    all: u64,
    /// By port: integral of the occupancy.
    byte_times: Vec<u128>,
}

/// State of a run at one time.
pub(crate) struct Look<'a> {
    pub(crate) ports: &'a dyn Fn(PortId) -> PortCounters,
    /// Payload that a connection delivered since the last restart of metrics.
    pub(crate) delivered: &'a dyn Fn(usize) -> u64,
}

impl SeriesSampler {
    /// Returns the series of a plan; `None` if it has none.
    pub(crate) fn new<F: AlgorithmFactory>(
        plan: &Plan<F>,
        rate: impl Fn(PortId) -> Rate,
    ) -> Option<Self> {
        if plan.measures.series.is_empty() {
            return None;
        }
        let series = plan.measures.series.iter().map(|one| Series::new(one, plan, &rate));
        let startup_bytes = vec![0; plan.connections.len()];
        Some(Self { series: series.collect(), startup_bytes })
    }

    /// Returns the next start or end of an interval.
    pub(crate) fn next(&self) -> Time {
        self.series.iter().map(|series| series.next).min().unwrap_or(Time::MAX)
    }

    /// Ends all intervals before their time.
    pub(crate) fn end(&mut self) {
        self.series.iter_mut().for_each(|series| series.next = Time::MAX);
    }

    /// Ends the intervals that are due at `now`.
    pub(crate) fn sample(&mut self, now: Time, look: &Look<'_>) {
        for series in self.series.iter_mut().filter(|series| series.next == now) {
            let seen = series.look(&self.startup_bytes, look);
            series.take(now, seen);
        }
    }

    /// Ends the warm-up. Call it before the metrics restart.
    pub(crate) fn end_warmup(&mut self, delivered: &dyn Fn(usize) -> u64) {
        for (connection, bytes) in self.startup_bytes.iter_mut().enumerate() {
            *bytes += delivered(connection);
        }
    }

    /// Returns the settling time of each quantity, by name.
    pub(crate) fn settled(&self, end_of: EndOf<'_>) -> BTreeMap<String, SettleSummary> {
        let settled = self.series.iter().filter_map(|series| {
            let Question::Settle { after, hold, threshold } = series.plan.question else {
                return None;
            };
            let time = |after| Some(series.settled(after, hold, threshold)?.since(after));
            let time_us = after.time(end_of).and_then(time).map(Span::as_us_f64);
            Some((series.plan.name.clone(), SettleSummary { time_us }))
        });
        settled.collect()
    }

    /// Returns the value of each quantity in its span, by name.
    pub(crate) fn spans(
        &self,
        end_of: EndOf<'_>,
    ) -> BTreeMap<String, BTreeMap<&'static str, DistributionSummary>> {
        let mut spans: BTreeMap<String, BTreeMap<_, _>> = BTreeMap::new();
        for series in &self.series {
            let Question::Span { from, to } = series.plan.question else { continue };
            let ends = from.time(end_of).zip(to.time(end_of));
            let values = ends.map_or_else(Vec::new, |(from, to)| series.between(from, to));
            let values = DistributionSummary::of_values(values);
            let of_name = spans.entry(series.plan.name.clone()).or_default();
            of_name.insert(series.plan.quantity.metric(), values);
        }
        spans
    }
}

summary! {
    /// Time at which a quantity settled.
    #[derive(Clone, Debug, Serialize)]
    pub struct SettleSummary {
        /// time from `after` to the start of the first interval from which the quantity stays at or beyond its
        /// threshold (`above` or `below`) for `hold`; null if it never does
        pub time_us: Option<f64> = number("over the warm-up and the measured phase"),
    }
}

impl Series {
    fn new<F: AlgorithmFactory>(
        one: &SeriesPlan,
        plan: &Plan<F>,
        rate: &impl Fn(PortId) -> Rate,
    ) -> Self {
        let subject = match one.of {
            Subject::Ports(group) => {
                let ports = &plan.measures.groups[group].ports;
                Parts::Ports(ports.iter().map(|&port| (port, rate(port))).collect())
            }
            Subject::Workload(workload) => {
                let own =
                    |index: &u32| plan.connections[*index as usize].workload == Some(workload);
                Parts::Connections((0..plan.connections.len() as u32).filter(own).collect())
            }
            Subject::Flow(flow) => {
                let exists = (flow as usize) < plan.connections.len();
                Parts::Connections(exists.then_some(flow).into_iter().collect())
            }
        };
        let begin = match one.question {
            Question::Settle { after, .. } => after,
            Question::Span { from, .. } => from,
        };
        // If the end of an op determines the start of the search, that time is not known in advance: all
        // intervals are kept.
        let start = begin.set().unwrap_or(Time::ZERO);
        Self {
            plan: one.clone(),
            subject,
            start,
            next: start,
            begun: false,
            before: Seen::default(),
            settling: Settling::default(),
            values: Vec::new(),
        }
    }

    fn look(&self, startup: &[u64], look: &Look<'_>) -> Seen {
        match &self.subject {
            Parts::Ports(ports) => {
                let counters: Vec<_> = ports.iter().map(|(port, _)| (look.ports)(*port)).collect();
                Seen {
                    bytes: counters.iter().map(|counters| counters.sent.bytes).sum(),
                    all: 0,
                    byte_times: counters.iter().map(|counters| counters.byte_time).collect(),
                }
            }
            Parts::Connections(connections) => {
                let total = |index: usize| startup[index] + (look.delivered)(index);
                let share = self.plan.quantity == Quantity::Share;
                Seen {
                    bytes: connections.iter().map(|&index| total(index as usize)).sum(),
                    all: if share { (0..startup.len()).map(total).sum() } else { 0 },
                    byte_times: Vec::new(),
                }
            }
        }
    }

    /// Ends an interval with the current counters, or begins the first interval.
    fn take(&mut self, now: Time, seen: Seen) {
        let interval = self.plan.interval;
        self.next = now.saturating_add(interval);
        let before = std::mem::replace(&mut self.before, seen);
        if !std::mem::replace(&mut self.begun, true) {
            return;
        }
        let value = self.value(&before);
        match self.plan.question {
            Question::Settle { after: Moment::At(_), hold, threshold } => {
                self.settling.take((now.saturating_sub(interval), now), value, threshold, hold);
                if self.settling.settled.is_some() {
                    self.next = Time::MAX;
                }
            }
            Question::Settle { .. } => self.values.push(value),
            Question::Span { to, .. } => {
                self.values.push(value);
                if to.set().is_some_and(|to| self.next > to) {
                    self.next = Time::MAX;
                }
            }
        }
    }

    /// Returns the intervals that were kept, each with the value of the quantity.
    fn intervals(&self) -> impl Iterator<Item = ((Time, Time), f64)> {
        let (first, interval) = (self.start, self.plan.interval);
        let begin = move |n: u64| first.saturating_add(Span::from_ps(interval.as_ps() * n));
        self.values.iter().zip(0..).map(move |(value, index)| {
            let start = begin(index);
            ((start, start.saturating_add(interval)), *value)
        })
    }

    /// Returns the time, not before `after`, from which the quantity stays beyond the threshold.
    fn settled(&self, after: Time, hold: Span, threshold: Threshold) -> Option<Time> {
        let mut settling = Settling::default();
        for (interval, value) in self.intervals().filter(|((start, _), _)| *start >= after) {
            settling.take(interval, value, threshold, hold);
            if settling.settled.is_some() {
                break;
            }
        }
        self.settling.settled.or(settling.settled)
    }

    /// Returns the value of the quantity over the whole intervals between two times.
    fn between(&self, from: Time, to: Time) -> Vec<f64> {
        let within = self.intervals().filter(|((start, end), _)| *start >= from && *end <= to);
        within.map(|(_, value)| value).filter(|value| !value.is_nan()).collect()
    }

    /// Returns the quantity over the interval that ends with the latest counters.
    fn value(&self, before: &Seen) -> f64 {
        let (now, interval) = (&self.before, self.plan.interval);
        let bytes = now.bytes - before.bytes;
        match self.plan.quantity {
            Quantity::Throughput | Quantity::Goodput => gbps(bytes, interval.as_secs_f64()),
            Quantity::Share => bytes as f64 / (now.all - before.all) as f64,
            Quantity::Queue => self.longest_queue(before, |bytes, rate| bytes * 8e6 / rate),
            Quantity::QueueBytes => self.longest_queue(before, |bytes, _| bytes),
        }
    }

    /// Returns the largest mean occupancy of a port, converted by `measure` from bytes and the rate in bit/s.
    fn longest_queue(&self, before: &Seen, measure: impl Fn(f64, f64) -> f64) -> f64 {
        let Parts::Ports(ports) = &self.subject else { return f64::NAN };
        let times = self.before.byte_times.iter().zip(&before.byte_times);
        let queues = ports.iter().zip(times).map(|((_, rate), (now, before))| {
            let mean = (now - before) as f64 / self.plan.interval.as_ps_f64();
            measure(mean, rate.as_bps() as f64)
        });
        queues.fold(f64::NAN, f64::max)
    }
}
