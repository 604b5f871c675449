//! `ops.csv`.

use apus_units::Time;

use super::declare::{row, us};
use crate::record::Recording;

row! {
    "ops.csv"
    /// One row per op that was submitted before the end of the measured phase: ended ops in
    /// order of completion, then unfinished ops in order of submission. An answer of a round counts as an op, from
    /// its request's submission to its last byte.
    #[derive(Clone, Debug)]
    pub struct OpRow {
        /// the connection, numbered from 0 in the scenario's order
        pub flow: u32 = "key column",
        /// its number within the flow; empty if it had not ended
        pub op: Option<u64> = "key column",
        /// the host that submits ops
        pub from: String = "key column",
        /// its peer
        pub to: String = "key column",
        /// write, read or message
        pub kind: &'static str = "-",
        /// payload of the op
        pub size_bytes: u64 = "-",
        /// when it was submitted, or came if it waited for room: complete_us - latency_us
        pub submit_us: f64 = "-",
        /// when its last byte was acknowledged, or a read's or round's last byte was here
        pub complete_us: Option<f64> = "-",
        /// submission to completion on the clock of the submitting host
        pub latency_us: Option<f64> = "one op",
        /// max(1, latency / (base RTT + (size + header * packets) / rate of the slowest link))
        pub slowdown: Option<f64> = "one op",
        /// done; failed: nothing was sent; unknown: parts may have been applied; unfinished: it had
        /// not ended
        pub outcome: &'static str = "-",
        /// measured if it was submitted after the warm-up, else startup
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
