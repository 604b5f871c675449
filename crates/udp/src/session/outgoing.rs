//! The packets that a table of sessions sends: answers that belong to no session, and the packets of sessions.

use apus_units::planted::{Bug, is_planted};
use apus_units::{Span, Time};

use super::cipher::Mode;
use super::event::SessionId;
use super::handshake;
use super::key::KeyId;
use super::packet::{self, Command, Handshake, Message};
use super::peer::Peer;
use super::state::want;
use super::table::Sessions;

/// Maximum number of queued answers that belong to no session. deviation: no source; an engine sends fewer per step, and 256
/// answers take about 20 kB.
const MAX_REPLIES: usize = 256;

/// Minimum interval of Unknowns, so that a flood of packets of unknown sessions causes at most 10,000 answers per second,
/// which are no longer than those packets. deviation: no source.
const UNKNOWN_INTERVAL: Span = Span::from_us(100);

/// An answer that belongs to no session.
pub(crate) enum Reply {
    Handshake(Handshake<'static>),
    /// A refusal whose reason is sealed.
    Told {
        mode: Mode,
        key: KeyId,
        initiator: u32,
        noise: Vec<u8>,
    },
    Unknown {
        session: u32,
        number: u32,
    },
}

impl Sessions {
    /// Returns `true` if [`Sessions::poll_transmit`] may have a packet to write.
    #[inline]
    #[must_use]
    pub fn has_transmit(&self) -> bool {
        !(self.replies.is_empty() && self.outbox.is_empty())
    }

    /// Writes the next packet of the session layer to `out`; [`handshake::MAX_HANDSHAKE_BYTES`] suffice. Returns the
    /// destination and length of the packet. A packet that does not fit is dropped. Answers that belong to no session, which
    /// unauthenticated senders can cause, take turns with packets of sessions.
    pub fn poll_transmit(&mut self, now: Time, out: &mut [u8]) -> Option<(Peer, usize)> {
        if core::mem::take(&mut self.replied)
            && let Some(sent) = self.write_any_wanted(now, out)
        {
            return Some(sent);
        }
        while let Some((to, reply)) = self.replies.pop_front() {
            if let Some(length) = self.write_reply(&reply, out) {
                self.replied = true;
                return Some((to, length));
            }
        }
        self.write_any_wanted(now, out)
    }

    /// Writes a packet of the next session that has one to send.
    fn write_any_wanted(&mut self, now: Time, out: &mut [u8]) -> Option<(Peer, usize)> {
        while let Some(id) = self.outbox.pop_front() {
            if let Some(sent) = self.write_wanted(now, id, out) {
                return Some(sent);
            }
        }
        None
    }

    fn write_reply(&self, reply: &Reply, out: &mut [u8]) -> Option<usize> {
        match reply {
            Reply::Handshake(packet) => packet.write(self.keys.get(packet.key)?, out),
            Reply::Told { mode, key, initiator, noise } => {
                let (mode, key, initiator) = (*mode, *key, *initiator);
                let packet = Handshake { mode, key, initiator, message: Message::Told { noise } };
                packet.write(self.keys.get(key)?, out)
            }
            &Reply::Unknown { session, number } => {
                let bytes = packet::write_unknown(self.is_sealed(), session, number);
                out.get_mut(..bytes.len())?.copy_from_slice(&bytes);
                Some(bytes.len())
            }
        }
    }

    fn write_wanted(&mut self, now: Time, id: SessionId, out: &mut [u8]) -> Option<(Peer, usize)> {
        let session = self.get_mut(id).filter(|session| session.wants != 0)?;
        let wanted = session.wants & session.wants.wrapping_neg();
        session.wants &= !wanted;
        let to = match wanted {
            want::PING => session.pinged_at(session.doubt.map_or(0, |doubt| doubt.tries - 1)),
            want::PONG => session.pinged_from,
            _ => session.peer,
        };
        if session.wants != 0 {
            self.outbox.push_back(id);
        }
        let length = match wanted {
            want::PING => self.seal_control(now, id, Command::Ping, &[], out),
            want::PONG => self.seal_control(now, id, Command::Pong, &[], out),
            want::DRAINING => self.seal_control(now, id, Command::Draining, &[], out),
            want::IDLE => self.seal_control(now, id, Command::Idle, &[], out),
            want::PORTS => return self.write_answer(now, id, out),
            want::CLOSE => {
                let length = self.seal_control(now, id, Command::Close, &[], out);
                if !is_planted(Bug::ClosingStays) {
                    self.remove(id);
                }
                length
            }
            _ => handshake::write(self.get(id)?, &self.keys, wanted, out),
        };
        length.map(|length| (to, length))
    }

    /// Queues an answer that belongs to no session. A full queue drops it.
    pub(super) fn reply(&mut self, to: Peer, reply: Reply) {
        if self.replies.len() < MAX_REPLIES {
            self.replies.push_back((to, reply));
        } else {
            self.counters.replies_dropped += 1;
        }
    }

    /// Answers a handshake packet with another one.
    pub(crate) fn reply_handshake(
        &mut self,
        to: Peer,
        request: &Handshake<'_>,
        message: Message<'static>,
    ) {
        let &Handshake { mode, key, initiator, .. } = request;
        self.reply(to, Reply::Handshake(Handshake { mode, key, initiator, message }));
    }

    /// Tells a peer that its session is unknown, at most once per [`UNKNOWN_INTERVAL`].
    pub(crate) fn reply_unknown(&mut self, now: Time, to: Peer, session: u32, number: u32) {
        if now >= self.next_unknown {
            self.next_unknown = now.saturating_add(UNKNOWN_INTERVAL);
            self.reply(to, Reply::Unknown { session, number });
        }
    }

    /// Asks the peer of a connected session to submit no more ops. While none of its ops is outstanding, each call is answered
    /// by [`Event::PeerIdle`](super::Event::PeerIdle), unless a packet is lost.
    pub fn announce_draining(&mut self, id: SessionId) {
        if self.is_connected(id) {
            self.want(id, want::DRAINING);
        }
    }

    /// Answers [`Event::PeerDraining`](super::Event::PeerDraining): no op of this side is outstanding.
    pub fn announce_idle(&mut self, id: SessionId) {
        if self.is_connected(id) {
            self.want(id, want::IDLE);
        }
    }

    /// Requests that a session sends a packet, given as a bit of [`want`].
    pub(crate) fn want(&mut self, id: SessionId, what: u16) {
        if let Some(session) = self.get_mut(id) {
            let queued = session.wants != 0;
            session.wants |= what;
            if !queued {
                self.outbox.push_back(id);
            }
        }
    }
}
