//! What a table of sessions sends of its own: answers to strangers, and what sessions want.

use apus_units::{Span, Time};

use super::cipher::Mode;
use super::cookie::Cookie;
use super::event::SessionId;
use super::handshake;
use super::key::KeyId;
use super::packet::{self, Command, Handshake, Message, Refusal};
use super::peer::Peer;
use super::state::want;
use super::table::Sessions;

/// Answers that wait to be sent and belong to no session. deviation: no source; what one step of an engine
/// may owe, and 16 kB.
const MAX_REPLIES: usize = 256;

/// Least time between two Unknowns, so that a flood of strange packets draws at most 10,000 answers a
/// second (no longer than what they answer). deviation: no source.
const UNKNOWN_EVERY: Span = Span::from_us(100);

/// An answer that costs no session.
pub(crate) enum Reply {
    Cookie { to: Peer, mode: Mode, key: KeyId, initiator: u32, cookie: Cookie },
    Refused { to: Peer, mode: Mode, key: KeyId, initiator: u32, why: Refusal },
    Unknown { to: Peer, session: u32, number: u32 },
}

impl Sessions {
    /// Whether [`Sessions::poll_transmit`] may have something to write.
    #[inline]
    #[must_use]
    pub fn has_transmit(&self) -> bool {
        !(self.replies.is_empty() && self.outbox.is_empty())
    }

    /// Writes the next packet of the session layer's own to `out` ([`handshake::MAX_HANDSHAKE_BYTES`]
    /// suffice), and returns where it goes and its length. A packet that does not fit is dropped.
    pub fn poll_transmit(&mut self, now: Time, out: &mut [u8]) -> Option<(Peer, usize)> {
        while let Some(reply) = self.replies.pop_front() {
            if let Some(sent) = self.write_reply(&reply, out) {
                return Some(sent);
            }
        }
        while let Some(id) = self.outbox.pop_front() {
            if let Some(sent) = self.write_wanted(now, id, out) {
                return Some(sent);
            }
        }
        None
    }

    fn write_reply(&self, reply: &Reply, out: &mut [u8]) -> Option<(Peer, usize)> {
        let (to, mode, key, initiator, message) = match *reply {
            Reply::Cookie { to, mode, key, initiator, cookie } => {
                (to, mode, key, initiator, Message::Cookie(cookie))
            }
            Reply::Refused { to, mode, key, initiator, why } => {
                (to, mode, key, initiator, Message::Refused(why))
            }
            Reply::Unknown { to, session, number } => {
                let bytes = packet::write_unknown(self.is_sealed(), session, number);
                out.get_mut(..bytes.len())?.copy_from_slice(&bytes);
                return Some((to, bytes.len()));
            }
        };
        let credential = self.keys.get(key)?;
        let packet = Handshake { mode, key, initiator, message };
        Some((to, packet.write(credential, out)?))
    }

    fn write_wanted(&mut self, now: Time, id: SessionId, out: &mut [u8]) -> Option<(Peer, usize)> {
        let session = self.get_mut(id).filter(|session| session.wants != 0)?;
        let wanted = session.wants & session.wants.wrapping_neg();
        session.wants &= !wanted;
        let to = session.peer;
        if session.wants != 0 {
            self.outbox.push_back(id);
        }
        let length = match wanted {
            want::PING => self.write_control(now, id, Command::Ping, out),
            want::PONG => self.write_control(now, id, Command::Pong, out),
            want::CLOSE => {
                let length = self.write_control(now, id, Command::Close, out);
                self.remove(id);
                length
            }
            _ => handshake::write(self.get(id)?, &self.keys, wanted, out),
        };
        length.map(|length| (to, length))
    }

    /// Puts an answer without session into the queue, or drops it.
    pub(crate) fn reply(&mut self, reply: Reply) {
        if self.replies.len() < MAX_REPLIES {
            self.replies.push_back(reply);
        } else {
            self.counters.replies_dropped += 1;
        }
    }

    /// Tells a peer that its session is not known, unless many were told just now.
    pub(crate) fn reply_unknown(&mut self, now: Time, to: Peer, session: u32, number: u32) {
        if now >= self.next_unknown {
            self.next_unknown = now.saturating_add(UNKNOWN_EVERY);
            self.reply(Reply::Unknown { to, session, number });
        }
    }

    /// Makes a session send a packet, a bit of [`want`].
    pub(crate) fn want(&mut self, id: SessionId, what: u8) {
        if let Some(session) = self.get_mut(id) {
            let queued = session.wants != 0;
            session.wants |= what;
            if !queued {
                self.outbox.push_back(id);
            }
        }
    }
}
