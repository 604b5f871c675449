//! Metrics of named workloads.

use std::collections::BTreeMap;
use std::sync::Arc;

use apus_cc::Snapshot;
use apus_fabric::{Network, RouteError};
use apus_transport::{Completion, Handled, Outcome};
use apus_units::{Span, Time};
use apus_wire::{Body, Header};
use serde::Serialize;

use super::SizeRange;
use crate::metrics::{Connection, Distribution};
use crate::packets::PacketSizes;
use crate::part::Part;
use crate::plan::Plan;
use crate::slowdown::Ideal;
use crate::summary::{DistributionSummary, jain};

/// What is known of a connection, by its number.
#[derive(Clone, Copy, Debug)]
struct Member {
    /// Index of its workload, if that has a name.
    workload: Option<u32>,
    ideal: Ideal,
}

/// Accumulators of all named workloads, over the measured phase.
#[derive(Debug)]
pub(crate) struct WorkloadMetrics {
    members: Arc<[Member]>,
    tallies: Vec<Tally>,
    sizes: Vec<SizeRange>,
    packets: PacketSizes,
    warmup_end: Time,
    in_warmup: bool,
}

/// What one workload has done.
#[derive(Debug)]
struct Tally {
    deadline: Option<Span>,
    /// Wire bytes of data packets that reached a stack.
    wire_bytes: u64,
    acks_sent: u64,
    data_packets_sent: u64,
    ops: u64,
    ops_failed: u64,
    ops_late: u64,
    /// Acknowledgements that showed both windows, and those that showed the endpoint's as smaller.
    both_windows: u64,
    endpoint_limited: u64,
    fabric_rtt: Distribution,
    end_to_end_rtt: Distribution,
    endpoint_delay: Distribution,
    target_delay: Distribution,
    cwnd: Distribution,
    fabric_cwnd: Distribution,
    endpoint_cwnd: Distribution,
    op_latency: Distribution,
    slowdown: Distribution,
    by_size: Vec<OfSize>,
}

/// Ops of one range of sizes.
#[derive(Clone, Debug)]
struct OfSize {
    op_latency: Distribution,
    slowdown: Distribution,
}

impl WorkloadMetrics {
    /// Gives every part of the network its accumulators, if any workload has a name.
    ///
    /// # Errors
    /// If the hosts of a connection cannot reach each other.
    pub(crate) fn attach(
        plan: &Plan,
        network: &mut Network<Header>,
        parts: &mut [Part],
    ) -> Result<(), RouteError> {
        if plan.measures.workloads.is_empty() {
            return Ok(());
        }
        let members = plan.connections.iter().enumerate().map(|(index, connection)| {
            let ideal = Ideal::of(network, connection.data_ends(), index as u64, plan.sizes)?;
            Ok(Member { workload: connection.workload, ideal })
        });
        let members: Arc<[Member]> = members.collect::<Result<_, _>>()?;
        for part in parts {
            part.world.workloads = Some(Box::new(Self::new(plan, Arc::clone(&members))));
        }
        Ok(())
    }

    fn new(plan: &Plan, members: Arc<[Member]>) -> Self {
        let measures = &plan.measures;
        let tally = |deadline| Tally::new(deadline, measures.sizes.len());
        Self {
            members,
            tallies: measures.workloads.iter().map(|named| tally(named.deadline)).collect(),
            sizes: measures.sizes.clone(),
            packets: plan.sizes,
            warmup_end: Time::ZERO + plan.warmup,
            in_warmup: !plan.warmup.is_zero(),
        }
    }

    #[inline]
    fn tally(&mut self, connection: u32) -> Option<&mut Tally> {
        if self.in_warmup {
            return None;
        }
        let workload = self.members[connection as usize].workload?;
        Some(&mut self.tallies[workload as usize])
    }

    /// The warm-up is over. Nothing was counted in it.
    pub(crate) fn end_warmup(&mut self) {
        self.in_warmup = false;
    }

    /// A host let a packet go.
    #[inline]
    pub(crate) fn on_sent(&mut self, connection: u32, body: &Body) {
        let Some(tally) = self.tally(connection) else { return };
        tally.data_packets_sent += u64::from(matches!(body, Body::Data(_)));
        tally.acks_sent += u64::from(matches!(body, Body::Ack(_)));
    }

    /// A stack handled a packet; `state` is that of its flow's algorithm afterwards.
    #[inline]
    pub(crate) fn on_handled(
        &mut self,
        connection: u32,
        handled: &Handled,
        wire_bytes: u32,
        state: impl FnOnce() -> Option<Snapshot>,
    ) {
        let Some(tally) = self.tally(connection) else { return };
        match handled {
            Handled::Data { .. } | Handled::Duplicate | Handled::OutOfOrder { .. } => {
                tally.wire_bytes += u64::from(wire_bytes);
            }
            Handled::Ack(Some(sample)) => {
                tally.fabric_rtt.record(sample.fabric_rtt);
                tally.end_to_end_rtt.record(sample.end_to_end_rtt);
                tally.endpoint_delay.record(sample.endpoint_delay);
                if let Some(state) = state() {
                    tally.on_state(&state);
                }
            }
            _ => {}
        }
    }

    /// An op completed at the true time `now`; its own times are of its host's clock.
    pub(crate) fn on_completion(&mut self, now: Time, connection: u32, completion: &Completion) {
        let Member { workload: Some(_), ideal } = self.members[connection as usize] else { return };
        let (packets, size) = (self.packets, completion.submitted.length);
        let latency = completion.completed_at.since(completion.submitted_at);
        let counts = now.saturating_sub(latency) >= self.warmup_end;
        let range = self.sizes.iter().position(|range| range.holds(size));
        let Some(tally) = self.tally(connection) else { return };
        tally.ops += 1;
        let done = completion.outcome == Outcome::Done;
        tally.ops_failed += u64::from(!done);
        if !counts {
            return;
        }
        tally.op_latency.record(latency);
        let late = !done || tally.deadline.is_some_and(|deadline| latency > deadline);
        tally.ops_late += u64::from(late);
        let slowdown = ideal.slowdown(latency, size, packets);
        tally.slowdown.record_number(slowdown);
        if let Some(of_size) = range.and_then(|range| tally.by_size.get_mut(range)) {
            of_size.op_latency.record(latency);
            of_size.slowdown.record_number(slowdown);
        }
    }

    /// Adds what another part of the network has measured; the order does not matter.
    pub(crate) fn add(&mut self, other: &Self) {
        for (tally, more) in self.tallies.iter_mut().zip(&other.tallies) {
            tally.add(more);
        }
    }
}

impl Tally {
    fn new(deadline: Option<Span>, sizes: usize) -> Self {
        let (time, window, ratio) =
            (Distribution::of_times, Distribution::of_windows, Distribution::of_ratios);
        let by_size = vec![OfSize { op_latency: time(), slowdown: ratio() }; sizes];
        Self {
            deadline,
            wire_bytes: 0,
            acks_sent: 0,
            data_packets_sent: 0,
            ops: 0,
            ops_failed: 0,
            ops_late: 0,
            both_windows: 0,
            endpoint_limited: 0,
            fabric_rtt: time(),
            end_to_end_rtt: time(),
            endpoint_delay: time(),
            target_delay: time(),
            cwnd: window(),
            fabric_cwnd: window(),
            endpoint_cwnd: window(),
            op_latency: time(),
            slowdown: ratio(),
            by_size,
        }
    }

    /// What the algorithm shows after an acknowledgement.
    fn on_state(&mut self, state: &Snapshot) {
        self.cwnd.record_number(state.cwnd);
        if let Some(target) = state.target_delay {
            self.target_delay.record(target);
        }
        if let Some(fabric) = state.fabric_cwnd {
            self.fabric_cwnd.record_number(fabric);
        }
        if let Some(endpoint) = state.endpoint_cwnd {
            self.endpoint_cwnd.record_number(endpoint);
        }
        if let (Some(fabric), Some(endpoint)) = (state.fabric_cwnd, state.endpoint_cwnd) {
            self.both_windows += 1;
            self.endpoint_limited += u64::from(endpoint < fabric);
        }
    }

    fn add(&mut self, other: &Self) {
        self.wire_bytes += other.wire_bytes;
        self.acks_sent += other.acks_sent;
        self.data_packets_sent += other.data_packets_sent;
        self.ops += other.ops;
        self.ops_failed += other.ops_failed;
        self.ops_late += other.ops_late;
        self.both_windows += other.both_windows;
        self.endpoint_limited += other.endpoint_limited;
        self.fabric_rtt.add(&other.fabric_rtt);
        self.end_to_end_rtt.add(&other.end_to_end_rtt);
        self.endpoint_delay.add(&other.endpoint_delay);
        self.target_delay.add(&other.target_delay);
        self.cwnd.add(&other.cwnd);
        self.fabric_cwnd.add(&other.fabric_cwnd);
        self.endpoint_cwnd.add(&other.endpoint_cwnd);
        self.op_latency.add(&other.op_latency);
        self.slowdown.add(&other.slowdown);
        for (of_size, more) in self.by_size.iter_mut().zip(&other.by_size) {
            of_size.op_latency.add(&more.op_latency);
            of_size.slowdown.add(&more.slowdown);
        }
    }
}

/// One named workload, over the measured phase.
#[derive(Clone, Debug, Serialize)]
pub struct WorkloadSummary {
    /// Wire bytes of data packets that reached a stack per time, resent ones included, Gb/s.
    pub throughput_gbps: f64,
    /// Payload bytes delivered once per time, Gb/s.
    pub goodput_gbps: f64,
    /// Ops that completed.
    pub ops: u64,
    /// The same per second.
    pub ops_per_s: f64,
    /// Ops that completed without success.
    pub ops_failed: u64,
    /// Ops that failed or took longer than the workload's deadline, over those that count in
    /// `op_latency_us`; `null` without a deadline or ops.
    pub late: Option<f64>,
    /// Data packets that hosts sent, retransmissions included.
    pub data_packets_sent: u64,
    /// Acknowledgements that hosts sent.
    pub acks_sent: u64,
    /// Jain's index of its connections' goodput.
    pub jain: f64,
    /// Goodput over the mean of the workload's connections, per connection.
    pub flow_share: DistributionSummary,
    /// Submission to completion, per op.
    pub op_latency_us: DistributionSummary,
    /// Latency over the ideal completion time, per op.
    pub slowdown: DistributionSummary,
    /// NIC-to-NIC RTT as Swift computes it, per acknowledgement.
    pub fabric_rtt_us: DistributionSummary,
    /// t6 - t1, per acknowledgement.
    pub end_to_end_rtt_us: DistributionSummary,
    /// `remote_queuing` + (t6 - t5), per acknowledgement.
    pub endpoint_delay_us: DistributionSummary,
    /// The fabric target as the algorithm shows it, per acknowledgement.
    pub target_delay_us: DistributionSummary,
    /// The window in force as the algorithm shows it, per acknowledgement.
    pub cwnd_packets: DistributionSummary,
    /// The window that follows the fabric delay, per acknowledgement.
    pub fabric_cwnd_packets: DistributionSummary,
    /// The window that follows the endpoint delay, per acknowledgement.
    pub endpoint_cwnd_packets: DistributionSummary,
    /// Share of the acknowledgements after which the endpoint's window was the smaller; `null` for
    /// algorithms without both.
    pub endpoint_limited: Option<f64>,
    /// By range of op sizes, by the number of the range from 0.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub size: BTreeMap<String, SizeSummary>,
}

/// Ops of one range of sizes.
#[derive(Clone, Debug, Serialize)]
pub struct SizeSummary {
    /// Submission to completion, per op.
    pub op_latency_us: DistributionSummary,
    /// Latency over the ideal completion time, per op.
    pub slowdown: DistributionSummary,
}

/// The named workloads of a run that measured for `seconds`, by name.
pub(crate) fn summarize(
    metrics: Option<&WorkloadMetrics>,
    plan: &Plan,
    connections: &[Connection],
    seconds: f64,
) -> BTreeMap<String, WorkloadSummary> {
    let Some(metrics) = metrics else { return BTreeMap::new() };
    let named = plan.measures.workloads.iter().zip(&metrics.tallies);
    let summary = |(index, (named, tally)): (usize, (&super::NamedWorkload, &Tally))| {
        let own = metrics.members.iter().zip(connections);
        let own = own.filter(|(member, _)| member.workload == Some(index as u32));
        let bytes: Vec<f64> = own.map(|(_, connection)| connection.new_bytes as f64).collect();
        (named.name.clone(), tally.summary(&bytes, seconds))
    };
    named.enumerate().map(summary).collect()
}

impl Tally {
    /// `bytes` is what each connection delivered.
    fn summary(&self, bytes: &[f64], seconds: f64) -> WorkloadSummary {
        let per_second = |total: f64| if seconds > 0.0 { total / seconds } else { 0.0 };
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let distribution = DistributionSummary::from;
        let by_size = self.by_size.iter().enumerate().map(|(index, of_size)| {
            let summary = SizeSummary {
                op_latency_us: distribution(&of_size.op_latency),
                slowdown: distribution(&of_size.slowdown),
            };
            (index.to_string(), summary)
        });
        WorkloadSummary {
            throughput_gbps: per_second(self.wire_bytes as f64 * 8e-9),
            goodput_gbps: per_second(bytes.iter().sum::<f64>() * 8e-9),
            ops: self.ops,
            ops_per_s: per_second(self.ops as f64),
            ops_failed: self.ops_failed,
            late: self.deadline.and_then(|_| share(self.ops_late, self.op_latency.count())),
            data_packets_sent: self.data_packets_sent,
            acks_sent: self.acks_sent,
            jain: jain(bytes),
            flow_share: distribution(&shares(bytes)),
            op_latency_us: distribution(&self.op_latency),
            slowdown: distribution(&self.slowdown),
            fabric_rtt_us: distribution(&self.fabric_rtt),
            end_to_end_rtt_us: distribution(&self.end_to_end_rtt),
            endpoint_delay_us: distribution(&self.endpoint_delay),
            target_delay_us: distribution(&self.target_delay),
            cwnd_packets: distribution(&self.cwnd),
            fabric_cwnd_packets: distribution(&self.fabric_cwnd),
            endpoint_cwnd_packets: distribution(&self.endpoint_cwnd),
            endpoint_limited: share(self.endpoint_limited, self.both_windows),
            size: by_size.collect(),
        }
    }
}

/// Each of `bytes` over their mean; nothing if there is none.
fn shares(bytes: &[f64]) -> Distribution {
    // Windows are numbers from a millionth on, as shares are.
    let mut shares = Distribution::of_windows();
    let mean = bytes.iter().sum::<f64>() / bytes.len() as f64;
    if mean > 0.0 {
        bytes.iter().for_each(|bytes| shares.record_number(bytes / mean));
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::{DistributionSummary, shares};

    #[test]
    fn shares_are_parts_of_the_mean() {
        let of = DistributionSummary::from(&shares(&[0.0, 1.0, 1.0, 6.0]));
        assert_eq!((of.count, of.mean, of.min, of.max), (4, Some(1.0), Some(0.0), Some(3.0)));
        assert!(of.p50.is_some_and(|p50| (0.5..0.5006).contains(&p50)), "{of:?}");
        assert_eq!(DistributionSummary::from(&shares(&[0.0, 0.0])).mean, None);
    }
}
