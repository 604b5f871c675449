//! Results of named workloads.

use std::collections::BTreeMap;

use serde::Serialize;

use super::plan::NamedWorkload;
use super::workload::{Tally, WorkloadMetrics};
use crate::bounds::Bounds;
use crate::columns::{gbps, summary};
use crate::distribution::{DistributionSummary, jain};
use crate::metrics::{Connection, Distribution};
use crate::op_times::OpTimes;
use crate::plan::Plan;
use apus_cc::AlgorithmFactory;

const ITS_FLOWS: &str = "sum over its flows";
const ITS_OPS: &str = "over its ops submitted in the measured phase";
const ITS_ACKS: &str = "over its acknowledgements of the measured phase";

summary! {
    /// Results of a workload.
    #[derive(Clone, Debug, Serialize)]
    pub struct WorkloadSummary {
        /// wire bytes of the workload's data packets that reached a stack, retransmissions included, * 8 / length of
        /// the measured phase
        pub throughput_gbps: f64 = number(ITS_FLOWS),
        /// payload bytes of the workload delivered once * 8 / length of the measured phase
        pub goodput_gbps: f64 = number(ITS_FLOWS),
        /// ops of the workload that completed, with any outcome
        pub ops: u64 = number(ITS_FLOWS),
        /// `ops` / length of the measured phase
        pub ops_per_s: f64 = number("-"),
        /// ops that `ops` counts and that did not succeed
        pub ops_failed: u64 = number(ITS_FLOWS),
        /// ops that failed or took longer than the workload's `deadline` / all ops; null without a deadline, or if
        /// `late_lower` and `late_upper` differ by more than 1 %
        pub late: Option<f64> = fraction(ITS_OPS),
        /// lower bound of `late`: an unfinished op that has not exceeded the deadline counts as in time
        pub late_lower: Option<f64> = fraction(ITS_OPS),
        /// upper bound of `late`: every unfinished op counts as late
        pub late_upper: Option<f64> = fraction(ITS_OPS),
        /// data packets that hosts sent, retransmissions included
        pub data_packets_sent: u64 = number(ITS_FLOWS),
        /// acknowledgements that hosts sent, NACKs not included
        pub acks_sent: u64 = number(ITS_FLOWS),
        /// Jain's index of goodput, as `jain` of the run
        pub jain: f64 = fraction("over its flows, measured phase"),
        /// goodput of a flow / mean goodput of the workload's flows
        pub flow_share: DistributionSummary = stats("over its flows, measured phase"),
        /// as `op_latency_us` of the run
        pub op_latency_us: DistributionSummary = op_stats(ITS_OPS),
        /// latency / ideal completion time, at least 1; null if it is censored, as `op_latency_us`
        pub slowdown: DistributionSummary = op_stats(ITS_OPS),
        /// as `fabric_rtt_us` of the run
        pub fabric_rtt_us: DistributionSummary = stats(ITS_ACKS),
        /// as `end_to_end_rtt_us` of the run
        pub end_to_end_rtt_us: DistributionSummary = stats(ITS_ACKS),
        /// as `endpoint_delay_us` of the run
        pub endpoint_delay_us: DistributionSummary = stats(ITS_ACKS),
        /// fabric target delay (Swift §3.5), as the algorithm reports it
        pub target_delay_us: DistributionSummary = stats(ITS_ACKS),
        /// congestion window in force, as the algorithm reports it; no values for a flow without a window limit
        pub cwnd_packets: DistributionSummary = stats(ITS_ACKS),
        /// congestion window that follows the fabric delay, as the algorithm reports it
        pub fabric_cwnd_packets: DistributionSummary = stats(ITS_ACKS),
        /// congestion window that follows the endpoint delay, as the algorithm reports it
        pub endpoint_cwnd_packets: DistributionSummary = stats(ITS_ACKS),
        /// share of acknowledgements after which the endpoint window was smaller than the fabric window; null for
        /// algorithms without these two windows
        pub endpoint_limited: Option<f64> = fraction(ITS_ACKS),
        /// By range of op sizes, by the number of the range from 0.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        pub size: BTreeMap<String, SizeSummary> = parts("<n>"),
    }
}

summary! {
    /// Ops of one range of sizes.
    #[derive(Clone, Debug, Serialize)]
    pub struct SizeSummary {
        /// as `op_latency_us` of the run, for ops in the range `n` (from 0) of `sizes` in `[measure]`
        pub op_latency_us: DistributionSummary = op_stats(ITS_OPS),
        /// as `slowdown` of the workload, for ops in the range `n` (from 0) of `sizes` in `[measure]`
        pub slowdown: DistributionSummary = op_stats(ITS_OPS),
    }
}

/// Returns the named workloads of a run that measured for `seconds`, by name.
pub(crate) fn summarize<F: AlgorithmFactory>(
    metrics: Option<&WorkloadMetrics>,
    plan: &Plan<F>,
    connections: &[Connection],
    seconds: f64,
) -> BTreeMap<String, WorkloadSummary> {
    let Some(metrics) = metrics else { return BTreeMap::new() };
    let named = plan.measures.workloads.iter().zip(&metrics.tallies);
    let summary = |(index, (named, tally)): (usize, (&NamedWorkload, &Tally))| {
        let own = metrics.members.iter().zip(connections);
        let own = own.filter(|(member, _)| member.workload == Some(index as u32));
        let bytes: Vec<f64> = own.map(|(_, connection)| connection.new_bytes as f64).collect();
        (named.name.clone(), tally.summary(&bytes, seconds))
    };
    named.enumerate().map(summary).collect()
}

/// Adds the times of ops to the summaries of named workloads.
pub(crate) fn note_times<F: AlgorithmFactory>(
    workloads: &mut BTreeMap<String, WorkloadSummary>,
    plan: &Plan<F>,
    times: &OpTimes,
) {
    for (named, times) in plan.measures.workloads.iter().zip(&times.named) {
        let Some(summary) = workloads.get_mut(&named.name) else { continue };
        summary.op_latency_us = times.latency.summary();
        summary.slowdown = times.slowdown.summary();
        let by_size = times.by_size.iter().enumerate().map(|(index, of_size)| {
            let op_latency_us = of_size.latency.summary();
            let slowdown = of_size.slowdown.summary();
            (index.to_string(), SizeSummary { op_latency_us, slowdown })
        });
        summary.size = by_size.collect();
        if let Some((lower, upper)) = times.late() {
            summary.late = Bounds { lower, upper }.value();
            (summary.late_lower, summary.late_upper) = (Some(lower), Some(upper));
        }
    }
}

impl Tally {
    /// Returns the summary. `bytes`: the bytes that each connection delivered.
    fn summary(&self, bytes: &[f64], seconds: f64) -> WorkloadSummary {
        let per_second = |total: f64| if seconds > 0.0 { total / seconds } else { 0.0 };
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let distribution = DistributionSummary::from;
        // Times of ops are known when the last op has ended: `note_times`.
        let later = || DistributionSummary::of_values(Vec::new());
        WorkloadSummary {
            throughput_gbps: gbps(self.wire_bytes, seconds),
            goodput_gbps: gbps(bytes.iter().sum::<f64>() as u64, seconds),
            ops: self.ops,
            ops_per_s: per_second(self.ops as f64),
            ops_failed: self.ops_failed,
            late: None,
            late_lower: None,
            late_upper: None,
            data_packets_sent: self.data_packets_sent,
            acks_sent: self.acks_sent,
            jain: jain(bytes),
            flow_share: distribution(&shares(bytes)),
            op_latency_us: later(),
            slowdown: later(),
            fabric_rtt_us: distribution(&self.fabric_rtt),
            end_to_end_rtt_us: distribution(&self.end_to_end_rtt),
            endpoint_delay_us: distribution(&self.endpoint_delay),
            target_delay_us: distribution(&self.target_delay),
            cwnd_packets: distribution(&self.cwnd),
            fabric_cwnd_packets: distribution(&self.fabric_cwnd),
            endpoint_cwnd_packets: distribution(&self.endpoint_cwnd),
            endpoint_limited: share(self.endpoint_limited, self.both_windows),
            size: BTreeMap::new(),
        }
    }
}

/// Returns each of `bytes` over their mean; no values if the mean is 0.
fn shares(bytes: &[f64]) -> Distribution {
    // As for windows, values from 10^-6 upwards are resolved.
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
