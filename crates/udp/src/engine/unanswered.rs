//! Attempts to connect that fail: what this side finds out about the reason, and what it tells its own application of
//! the attempts of peers that it did not answer.

use std::net::SocketAddr;

use apus_units::{Span, Time};

use super::Engine;
use crate::error::{ConnectError, DroppedHandshake, HandshakeFault};
use crate::session::{Dropped, SessionId};
use crate::sys::{Reach, Unreachable};

/// Probes of an address that does not answer. deviation: no source; rationale: the first probe goes after the first wait
/// for an answer, and the waits between probes grow fourfold, so that few probes cover the whole handshake.
const PROBES: u32 = 4;
/// Least time between two notes of dropped handshakes. deviation: no source; rationale: a person reads them in a log,
/// and at 100 a second a flood costs the engine nothing.
const NOTE_EVERY: Span = Span::from_ms(10);

/// Probes of whether anything listens at an address, while an answer of it is awaited.
#[derive(Debug)]
pub(super) struct ReachProbes {
    /// When the next probe is due.
    at: Time,
    sent: u32,
    reach: Option<Reach>,
}

impl ReachProbes {
    pub(super) fn new(at: Time) -> Self {
        Self { at, sent: 0, reach: None }
    }

    /// Why there was no answer.
    pub(super) fn verdict(self) -> ConnectError {
        match self.reach.and_then(Reach::verdict) {
            Some(Unreachable::Port) => ConnectError::PortClosed,
            Some(Unreachable::Host) => ConnectError::NoRoute,
            None => ConnectError::NoAnswer,
        }
    }
}

impl Engine {
    /// Probes the address of a connection that is being opened, if a probe is due.
    pub(super) fn probe_reach(&mut self, now: Time, session: SessionId) {
        let local = self.shared.address;
        let retry = self.config.session.retry;
        let Some(connection) = self.connections.get_mut(session.index()) else { return };
        let Some(probes) = &mut connection.reach_probes else { return };
        if probes.at <= now {
            probes.reach = Some(Reach::probe(local, connection.peer.address));
            probes.sent += 1;
            let more = probes.sent < PROBES;
            probes.at = if more { now + retry * (1u64 << (2 * probes.sent)) } else { Time::MAX };
        }
        self.next_probe = self.next_probe.min(probes.at);
    }

    /// Notes for the application a handshake that was dropped without an answer to its sender.
    #[cold]
    pub(super) fn note_dropped(&mut self, now: Time, from: SocketAddr, why: Dropped) {
        let fault = match why {
            Dropped::OtherMode if self.sessions.is_sealed() => HandshakeFault::Insecure,
            Dropped::OtherMode => HandshakeFault::Sealed,
            Dropped::UnknownKey => HandshakeFault::UnknownKey,
            Dropped::Unproven => HandshakeFault::Unproven,
            _ => return,
        };
        if now >= self.next_note {
            self.next_note = now + NOTE_EVERY;
            self.shared.note(DroppedHandshake { from, fault });
        }
    }
}
