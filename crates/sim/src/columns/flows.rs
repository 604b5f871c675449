//! `flows.csv`.

use apus_transport::FlowCounters;

use super::declare::{gbps, row};
use crate::record::Recording;

const MEASURED: &str = "sum over the measured phase";

row! {
    "flows.csv"
    /// One row per flow (connection), over the measured phase.
    #[derive(Clone, Debug, Default)]
    pub struct FlowRow {
        /// number of the connection, from 0 in the order of the scenario
        pub flow: u32 = "key column",
        /// host that submits the ops
        pub from: String = "key column",
        /// peer of `from`
        pub to: String = "key column",
        /// congestion control algorithm of the flow
        pub algorithm: String = "-",
        /// payload bytes delivered once
        pub delivered_bytes: u64 = MEASURED,
        /// delivered_bytes * 8 / length of the measured phase, times in which the flow had nothing to send included
        pub goodput_gbps: f64 = "mean over the measured phase",
        /// data packets that the data sender sent, retransmissions included
        pub packets_sent: u64 = MEASURED,
        /// data packets declared lost from the SACK bitmap
        pub fast_losses: u64 = MEASURED,
        /// data packets declared lost by a timeout
        pub timeout_losses: u64 = MEASURED,
        /// retransmission timeouts that expired
        pub timeouts: u64 = MEASURED,
        /// fabric RTT: t6 - t1 - endpoint delay
        pub mean_fabric_rtt_us: Option<f64> = "mean over acknowledgements of the measured phase",
        /// fabric RTT: t6 - t1 - endpoint delay
        pub max_fabric_rtt_us: Option<f64> = "maximum over acknowledgements of the measured phase",
        /// base RTT: time of a full data packet and its acknowledgement, without other packets and without processing
        /// in hosts
        pub base_rtt_us: Option<f64> = "of the pair of hosts",
        /// rate of the slowest link of the path; if packets take several paths, times the number of ports of the host
        /// with fewer ports
        pub line_rate_gbps: Option<f64> = "of the pair of hosts",
        /// ops in ops.csv that were submitted in the measured phase and have ended
        pub ops: u64 = "count over the measured phase",
        /// ops in ops.csv that were submitted in the measured phase and had not ended after the drain
        pub unfinished_ops: u64 = "count over the measured phase",
        /// age of the oldest op that `unfinished_ops` counts; empty if there are none
        pub oldest_unfinished_us: Option<f64> = "maximum over the measured phase",
        /// `slowdown` of ops.csv; empty if `ops` is 0
        pub mean_slowdown: Option<f64> = "mean over the ops that `ops` counts",
    }
}

impl FlowRow {
    /// Returns the row of a flow that delivered `bytes` in `seconds` and has these counters. The other columns are
    /// empty or 0.
    #[must_use]
    pub fn of_transport(flow: u32, bytes: u64, seconds: f64, counters: &FlowCounters) -> Self {
        Self {
            flow,
            delivered_bytes: bytes,
            goodput_gbps: gbps(bytes, seconds),
            packets_sent: counters.packets_sent,
            fast_losses: counters.fast_losses,
            timeout_losses: counters.timeout_losses,
            timeouts: counters.timeouts,
            ..Self::default()
        }
    }

    /// Adds an op that had not ended at this age.
    pub fn add_unfinished(&mut self, age_us: f64) {
        self.unfinished_ops += 1;
        self.oldest_unfinished_us =
            Some(self.oldest_unfinished_us.map_or(age_us, |o| o.max(age_us)));
    }
}

impl Recording {
    /// Returns the rows of flows.csv.
    #[must_use]
    pub fn flow_rows(&self) -> Vec<FlowRow> {
        let seconds = self.measured_seconds();
        let row = |(flow, record): (u32, &crate::record::FlowRecord)| FlowRow {
            from: record.from.to_string(),
            to: record.to.to_string(),
            algorithm: record.algorithm.to_owned(),
            mean_fabric_rtt_us: record.rtt.mean_us(),
            max_fabric_rtt_us: (record.rtt.count > 0).then(|| record.rtt.max.as_us_f64()),
            base_rtt_us: Some(record.ideal.base_rtt.as_us_f64()),
            line_rate_gbps: Some(record.ideal.line_rate.as_gbps_f64()),
            ..FlowRow::of_transport(flow, record.delivered, seconds, &record.counters)
        };
        let mut rows: Vec<FlowRow> = (0..).zip(&self.flows).map(row).collect();
        for op in self.open_ops.iter().filter(|op| op.submitted >= self.warmup) {
            rows[op.flow as usize].add_unfinished(op.age.as_us_f64());
        }
        let mut slowdowns = vec![0.0; rows.len()];
        for op in self.ops.iter().filter(|op| op.submitted >= self.warmup) {
            rows[op.flow as usize].ops += 1;
            slowdowns[op.flow as usize] += self.slowdown(op);
        }
        for (row, sum) in rows.iter_mut().zip(slowdowns) {
            row.mean_slowdown = (row.ops > 0).then(|| sum / row.ops as f64);
        }
        rows
    }
}
