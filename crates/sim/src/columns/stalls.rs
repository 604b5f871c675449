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
        /// flows of which the peer acknowledged nothing for longer than 4 retransmission timeouts with
        /// their pace's gaps, or over 4 timeouts in a row; one timeout is enough if a link on their
        /// path is down. Looked for about 30 times a run
        pub noticed: u64 = number("over the whole run and its drain"),
        /// stalled flows that made no further progress
        pub at_end: u64 = number("at the end of the drain"),
        /// the first 64 of them: `flow`, `host` and `peer`, from `since_us` to `until_us` (null: to the
        /// end), the number of outstanding `ops`, and the `reason` if known
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
