//! Connections that do not come about: what this side can find out of the reason, and what it tells its own
//! application of attempts that it did not answer.

use std::net::SocketAddr;

use apus_units::{Span, Time};

use super::Engine;
use crate::error::{ConnectError, DroppedHandshake, HandshakeFault};
use crate::session::{Dropped, SessionId};
use crate::sys::{Reach, Unreachable};

/// Times that the network is asked whether anything listens at an address. deviation: no source; the first
/// goes after the first wait for an answer, the last when most of the time for the handshake is over.
const PROBES: u32 = 4;
/// Least time between two notes of dropped handshakes. deviation: no source; a hundred a second, of which an
/// application writes the first to its log.
const NOTE_EVERY: Span = Span::from_ms(10);

/// Whether anything listens where an answer is waited for.
#[derive(Debug)]
pub(super) struct Asking {
    /// When the network is asked next.
    at: Time,
    sent: u32,
    reach: Option<Reach>,
}

impl Asking {
    pub(super) fn new(at: Time) -> Self {
        Self { at, sent: 0, reach: None }
    }

    /// Why there was no answer.
    pub(super) fn verdict(self) -> ConnectError {
        match self.reach.and_then(Reach::verdict) {
            Some(Unreachable::Port) => ConnectError::NobodyListens,
            Some(Unreachable::Host) => ConnectError::NoRoute,
            None => ConnectError::NoAnswer,
        }
    }
}

impl Engine {
    /// Asks the network whether anything listens at the address of a connection that is being opened, if it is
    /// time.
    pub(super) fn probe_reach(&mut self, now: Time, session: SessionId) {
        let local = self.shared.address;
        let retry = self.config.session.retry;
        let Some(connection) = self.connections.get_mut(session.index()) else { return };
        let Some(asking) = &mut connection.asking else { return };
        if asking.at <= now {
            asking.reach = Some(Reach::probe(local, connection.peer.address));
            asking.sent += 1;
            let more = asking.sent < PROBES;
            asking.at = if more { now + retry * (1u64 << (2 * asking.sent)) } else { Time::MAX };
        }
        self.next_probe = self.next_probe.min(asking.at);
    }

    /// A handshake was dropped without a word to its sender: the application is told instead.
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
