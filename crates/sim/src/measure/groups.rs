//! Groups of ports as a whole: traffic, losses and queues.

use crate::columns::{gbps, ratio, summary};
use apus_fabric::PortCounters;
use apus_units::{PortId, Rate, Span, Time};
use serde::Serialize;

use super::plan::{Measures, PortGroup};
use crate::distribution::DistributionSummary;
use crate::metrics::Distribution;

/// Samples of the queues of all groups, from the end of the warm-up onwards.
#[derive(Debug)]
pub(crate) struct GroupQueues {
    interval: Span,
    next: Time,
    groups: Vec<Queues>,
}

#[derive(Debug)]
struct Queues {
    ports: Vec<(PortId, Rate)>,
    time: Distribution,
    bytes: Distribution,
}

const SAMPLES: &str = "\
    over samples of each port, taken every `queue_interval`; mean (over time and ports) and maximum are exact";

summary! {
    /// Results of a group of ports, all traffic classes together.
    #[derive(Clone, Debug, Serialize)]
    pub struct GroupTotals {
        /// wire bytes that the group's ports sent * 8 / length of the measured phase
        pub throughput_gbps: f64 = number("sum over ports"),
        /// `throughput_gbps` / sum of the rates of the ports' links without faults
        pub utilisation: f64 = fraction("mean over the measured phase"),
        /// packets dropped / packets sent into the ports' queues
        pub loss_rate: f64 = fraction("all ports together"),
        /// packets dropped at the ports
        pub drops: u64 = number("sum over ports"),
        /// wire bytes in a port, the packet in service included, as the time that its link needs to send them without
        /// faults
        pub queue_us: DistributionSummary = stats(SAMPLES),
        /// wire bytes in a port, the packet in service included
        pub queue_bytes: DistributionSummary = stats(SAMPLES),
    }
}

impl GroupQueues {
    /// Returns the samples of these groups; `None` if there are no groups.
    pub(crate) fn new(
        measures: &Measures,
        now: Time,
        rate: impl Fn(PortId) -> Rate,
    ) -> Option<Self> {
        if measures.groups.is_empty() {
            return None;
        }
        // Without samples there are no percentiles.
        let interval = measures.queue_interval.unwrap_or(Span::MAX);
        let queues = |group: &PortGroup| Queues {
            ports: group.ports.iter().map(|&port| (port, rate(port))).collect(),
            time: Distribution::of_times(),
            bytes: Distribution::of_sizes(),
        };
        let groups = measures.groups.iter().map(queues).collect();
        Some(Self { interval, next: now.saturating_add(interval), groups })
    }

    /// Returns the time of the next sample.
    pub(crate) fn next(&self) -> Time {
        self.next
    }

    /// Stops taking samples.
    pub(crate) fn end(&mut self) {
        self.next = Time::MAX;
    }

    /// Takes a sample; `queued` returns the wire bytes in a port.
    pub(crate) fn sample(&mut self, queued: impl Fn(PortId) -> u64) {
        self.next = self.next.saturating_add(self.interval);
        for group in &mut self.groups {
            for (port, rate) in &group.ports {
                let bytes = queued(*port);
                group.time.record_number(time_us(bytes as f64, *rate));
                group.bytes.record_number(bytes as f64);
            }
        }
    }

    /// Returns the groups in order, from the counters of all ports at the end of the warm-up and
    /// now, `measured` later.
    pub(crate) fn summarize(
        &self,
        before: &[PortCounters],
        after: &[PortCounters],
        measured: Span,
    ) -> Vec<GroupTotals> {
        self.groups.iter().map(|group| group.summarize(before, after, measured)).collect()
    }
}

/// Returns the time that a link takes for `bytes`, in microseconds.
fn time_us(bytes: f64, rate: Rate) -> f64 {
    bytes * 8e6 / rate.as_bps() as f64
}

impl Queues {
    fn summarize(
        &self,
        before: &[PortCounters],
        after: &[PortCounters],
        measured: Span,
    ) -> GroupTotals {
        let (mut sent, mut dropped, mut offered, mut capacity) = (0, 0, 0, 0.0);
        let (mut mean_bytes, mut mean_us) = (0.0, 0.0);
        let (mut max_bytes, mut max_us) = (0.0f64, 0.0f64);
        for &(port, rate) in &self.ports {
            let (old, new) = (&before[port.index()], &after[port.index()]);
            sent += new.sent.bytes - old.sent.bytes;
            dropped += new.dropped.packets - old.dropped.packets;
            offered += new.offered.packets - old.offered.packets;
            capacity += rate.as_gbps_f64();
            let mean = (new.byte_time - old.byte_time) as f64 / measured.as_ps_f64().max(1.0);
            mean_bytes += mean;
            mean_us += time_us(mean, rate);
            let max = new.max_queue.get() as f64;
            max_bytes = max_bytes.max(max);
            max_us = max_us.max(time_us(max, rate));
        }
        let ports = self.ports.len().max(1) as f64;
        let seconds = measured.as_secs_f64();
        let throughput_gbps = gbps(sent, seconds);
        let exact = |sampled: &Distribution, mean: f64, max: f64| DistributionSummary {
            mean: Some(mean / ports),
            max: Some(max),
            ..DistributionSummary::from(sampled)
        };
        GroupTotals {
            throughput_gbps,
            utilisation: throughput_gbps / capacity,
            loss_rate: ratio(dropped, offered),
            drops: dropped,
            queue_us: exact(&self.time, mean_us, max_us),
            queue_bytes: exact(&self.bytes, mean_bytes, max_bytes),
        }
    }
}
