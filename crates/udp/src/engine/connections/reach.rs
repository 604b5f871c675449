//! Probes of an address that does not answer. They distinguish a closed port from a silent one.

use apus_units::{Span, Time};

use crate::engine::network::Network;
use crate::error::ConnectError;
use crate::session::Peer;
use crate::sys::{Reach, Unreachable};

/// Maximum number of probes of an address. deviation: no source; rationale: the first probe is sent after the first
/// wait for an answer, and the waits between probes grow fourfold, so that few probes cover the whole handshake.
const MAX_PROBES: u32 = 4;
/// Minimum interval between notes on dropped handshakes. deviation: no source; rationale: a person reads them in a log,
/// and at 100 per second a flood costs the engine nothing.
pub(super) const NOTE_INTERVAL: Span = Span::from_ms(10);

/// The probes of an address whose answer to a handshake is awaited.
#[derive(Debug)]
pub(super) struct ReachProbes {
    /// When the next probe is due.
    next_at: Time,
    sent: u32,
    last: Option<Reach>,
}

impl ReachProbes {
    /// Returns probes of which the first is due at `first`.
    pub(super) fn new(first: Time) -> Self {
        Self { next_at: first, sent: 0, last: None }
    }

    /// Sends a probe if one is due. Returns when the next probe is due. The waits between probes start from `retry`.
    pub(super) fn handle_timeout<N: Network>(
        &mut self,
        now: Time,
        peer: Peer,
        retry: Span,
        network: &N,
    ) -> Time {
        if self.next_at <= now {
            self.last = Some(network.probe_reach(peer.address));
            self.sent += 1;
            let more = self.sent < MAX_PROBES;
            self.next_at = if more { now + retry * (1u64 << (2 * self.sent)) } else { Time::MAX };
        }
        self.next_at
    }

    /// Returns the reason why there was no answer.
    pub(super) fn verdict(self) -> ConnectError {
        match self.last.and_then(Reach::verdict) {
            Some(Unreachable::Port) => ConnectError::PortClosed,
            Some(Unreachable::Host) => ConnectError::NoRoute,
            None => ConnectError::NoAnswer,
        }
    }
}
