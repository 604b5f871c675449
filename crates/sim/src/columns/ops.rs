//! `ops.csv`.

use apus_units::Time;

use super::declare::{row, us};
use crate::record::Recording;

row! {
    "ops.csv"
    /// One row per op that was submitted before the end of the measured phase. Ops that ended come first, in order of
    /// completion; unfinished ops follow, in order of submission. An answer of a round counts as one op, which lasts from
    /// the submission of its request to the arrival of its last byte.
    #[derive(Clone, Debug)]
    pub struct OpRow {
        /// number of the connection, from 0 in the order of the scenario
        pub flow: u32 = "key column",
        /// number of the op within its flow; empty if the op is unfinished
        pub op: Option<u64> = "key column",
        /// host that submits the op
        pub from: String = "key column",
        /// peer of `from`
        pub to: String = "key column",
        /// write, read or message
        pub kind: &'static str = "-",
        /// payload of the op
        pub size_bytes: u64 = "-",
        /// time of submission, or of arrival if the op was queued until its flow could accept it; for an op that
        /// ended: complete_us - latency_us
        pub submit_us: f64 = "-",
        /// time at which the last byte was acknowledged; for a read or a round, time at which the last byte arrived;
        /// empty if the op is unfinished
        pub complete_us: Option<f64> = "-",
        /// submission to completion on the clock of the submitting host
        pub latency_us: Option<f64> = "one op",
        /// max(1, latency / (base RTT + (size + header * packets) / line rate)); the line rate is `line_rate_gbps` of
        /// flows.csv
        pub slowdown: Option<f64> = "one op",
        /// `done`, `failed` (nothing was sent), `unknown` (parts may have been applied) or `unfinished` (not ended
        /// after the drain)
        pub outcome: &'static str = "-",
        /// `measured` if the op was submitted after the warm-up, otherwise `startup`
        pub phase: &'static str = "-",
    }
}

impl Recording {
    /// Returns the rows of ops.csv.
    pub fn op_rows(&self) -> impl Iterator<Item = OpRow> {
        let warmup = self.warmup;
        let phase = move |submitted: Time| if submitted >= warmup { "measured" } else { "startup" };
        let ended = self.ops.iter().map(move |op| {
            let flow = &self.flows[op.flow as usize];
            OpRow {
                flow: op.flow,
                op: Some(op.op),
                from: flow.from.to_string(),
                to: flow.to.to_string(),
                kind: op.kind_name(),
                size_bytes: op.size,
                submit_us: us(op.submitted),
                complete_us: Some(us(op.completed)),
                latency_us: Some(op.latency().as_us_f64()),
                slowdown: Some(self.slowdown(op)),
                outcome: op.outcome_name(),
                phase: phase(op.submitted),
            }
        });
        let open = self.open_ops.iter().map(move |op| {
            let flow = &self.flows[op.flow as usize];
            OpRow {
                flow: op.flow,
                op: None,
                from: flow.from.to_string(),
                to: flow.to.to_string(),
                kind: flow.kind_name(),
                size_bytes: op.size,
                submit_us: us(op.submitted),
                complete_us: None,
                latency_us: None,
                slowdown: None,
                outcome: "unfinished",
                phase: phase(op.submitted),
            }
        });
        ended.chain(open)
    }
}
