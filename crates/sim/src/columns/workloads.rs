//! `workloads.csv`.

use super::declare::row;
use crate::distribution::DistributionSummary;
use crate::summary::Summary;

const ITS_OPS: &str = "over its ops submitted in the measured phase";

row! {
    "workloads.csv"
    /// One row per workload, over the measured phase. If a workload name occurs with several algorithms or traffic
    /// classes, each combination has a row. The latencies of such a name are measured for all its rows together: they are
    /// in `workload` of `summary.json`, and empty here. In a run of more than 64 workloads, those without a name have no
    /// latencies of their own.
    #[derive(Clone, Debug)]
    pub struct WorkloadRow {
        /// name of the workload, or a label derived from its kind
        pub workload: String = "key column",
        /// label of its congestion control algorithm
        pub algorithm: String = "key column",
        /// traffic class of its packets; empty if the topology has no classes
        pub class: Option<String> = "key column",
        /// ops of the workload that completed, with any outcome
        pub ops: u64 = "count over the measured phase",
        /// ops submitted in the measured phase that had not ended after the drain
        pub unfinished_ops: u64 = "count over the measured phase",
        /// age of the oldest unfinished op; empty if there are none
        pub oldest_unfinished_us: Option<f64> = "maximum over the measured phase",
        /// payload bytes of the workload delivered once * 8 / length of the measured phase
        pub goodput_gbps: f64 = "sum over its flows",
        /// `goodput_gbps` / goodput of all flows of the run; empty if no payload was delivered
        pub goodput_share: Option<f64> = "over the measured phase",
        /// median latency, from submission to completion; empty if it is censored
        pub op_latency_p50_us: Option<f64> = ITS_OPS,
        /// lower bound of `op_latency_p50_us`, if each unfinished op ended at the end of the run
        pub op_latency_p50_lower_us: Option<f64> = ITS_OPS,
        /// upper bound of `op_latency_p50_us`, if no unfinished op ever ends; empty if unbounded
        pub op_latency_p50_upper_us: Option<f64> = ITS_OPS,
        /// 99th percentile of the latency; empty if it is censored
        pub op_latency_p99_us: Option<f64> = ITS_OPS,
        /// lower bound of `op_latency_p99_us`, if each unfinished op ended at the end of the run
        pub op_latency_p99_lower_us: Option<f64> = ITS_OPS,
        /// upper bound of `op_latency_p99_us`, if no unfinished op ever ends; empty if unbounded
        pub op_latency_p99_upper_us: Option<f64> = ITS_OPS,
        /// 99th percentile of the slowdown; empty if it is censored, and if the only workload of the run has no name
        pub slowdown_p99: Option<f64> = ITS_OPS,
        /// lower bound of `slowdown_p99`, if each unfinished op ended at the end of the run
        pub slowdown_p99_lower: Option<f64> = ITS_OPS,
        /// upper bound of `slowdown_p99`, if no unfinished op ever ends; empty if unbounded
        pub slowdown_p99_upper: Option<f64> = ITS_OPS,
    }
}

impl Summary {
    /// Returns the rows of workloads.csv.
    pub fn workload_rows(&self) -> impl Iterator<Item = WorkloadRow> {
        self.groups.iter().map(|group| {
            let (share, times) = (&group.share, self.times_of_group(group));
            let p50 = with_bounds(times.op_latency_us, |d| d.p50);
            let p99 = with_bounds(times.op_latency_us, |d| d.p99);
            let slowdown = with_bounds(times.slowdown, |d| d.p99);
            WorkloadRow {
                workload: group.workload.clone(),
                algorithm: group.algorithm.clone(),
                class: group.class.clone(),
                ops: share.ops,
                unfinished_ops: share.unfinished_ops,
                oldest_unfinished_us: (share.unfinished_ops > 0)
                    .then_some(share.oldest_unfinished_us),
                goodput_gbps: share.goodput_gbps,
                goodput_share: share.goodput_share,
                op_latency_p50_us: p50[0],
                op_latency_p50_lower_us: p50[1],
                op_latency_p50_upper_us: p50[2],
                op_latency_p99_us: p99[0],
                op_latency_p99_lower_us: p99[1],
                op_latency_p99_upper_us: p99[2],
                slowdown_p99: slowdown[0],
                slowdown_p99_lower: slowdown[1],
                slowdown_p99_upper: slowdown[2],
            }
        })
    }
}

/// Returns a number of a distribution over ops with its lower and upper bound.
fn with_bounds(
    distribution: Option<&DistributionSummary>,
    value: fn(&DistributionSummary) -> Option<f64>,
) -> [Option<f64>; 3] {
    let open = distribution.and_then(|d| d.open.as_ref());
    [
        distribution.and_then(value),
        open.and_then(|open| value(&open.lower)),
        open.and_then(|open| value(&open.upper)),
    ]
}
