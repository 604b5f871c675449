//! Flows without progress, as the summary lists them.

use serde::Serialize;

use super::declare::summary;

/// A flow that made no progress for a time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StalledFlow {
    /// The connection.
    pub flow: u32,
    /// The host that waits.
    pub host: u32,
    /// Host of its peer.
    pub peer: u32,
    /// Time of the last acknowledgement of the peer.
    pub since_us: f64,
    /// Time at which it was seen to make progress again; `null` if it never was.
    pub until_us: Option<f64>,
    /// Ops that were outstanding when it was noticed.
    pub ops: usize,
    /// Reason, if it is known.
    pub reason: String,
}

summary! {
    /// Flows that made no progress for a time.
    #[derive(Clone, Debug, Default, Serialize)]
    pub struct StallSummary {
        /// flows that were stalled at a check. A flow is stalled if its peer has acknowledged nothing for longer than
        /// 4 retransmission timeouts with a pacing gap each, or if 4 timeouts in a row have expired. If a link on its
        /// path is down, one timeout without an acknowledgement is enough. The simulator checks 4 to 32 times in
        /// `duration`, less often with many flows, and at the end of the drain
        pub noticed: u64 = number("over the whole run, drain included"),
        /// flows that were still stalled
        pub at_end: u64 = number("at the end of the drain"),
        /// the first 64 stalled flows: `flow`, `host` and `peer`, `since_us` (last acknowledgement), `until_us`
        /// (check that found progress; null if none did), the number of outstanding `ops`, and the `reason` if it is
        /// known
        pub flows: Vec<StalledFlow> = list("-"),
    }
}

impl std::fmt::Display for StalledFlow {
    /// "flow 3 (host 1 -> host 2): no progress from 300.0 us on, 1 op outstanding: the link h1 -> switch 0 is
    /// down since 300us".
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { flow, host, peer, since_us, until_us, ops, reason } = self;
        write!(f, "flow {flow} (host {host} -> host {peer}): no progress from {since_us:.1} us")?;
        if let Some(until) = until_us {
            write!(f, " to {until:.1} us at most")?;
        } else {
            f.write_str(" on")?;
        }
        write!(f, ", {ops} op{} outstanding: {reason}", if *ops == 1 { "" } else { "s" })
    }
}
