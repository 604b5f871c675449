//! First messages of handshakes that wait for their turn.
//!
//! Each costs the responder a Diffie-Hellman and more, some 200 us, in which the packets of all sessions wait. A burst of them would make
//! an engine late for tens of milliseconds. So a few are handled at once, and each of the others waits for its turn.

use std::collections::{BTreeSet, VecDeque};

use apus_units::{Span, Time};

use super::cipher::Mode;
use super::config::Config;
use super::cookie::Cookie;
use super::event::Dropped;
use super::key::KeyId;
use super::packet::{Handshake, Message};
use super::peer::Peer;
use super::quota::{interval, of_all_addresses};
use super::table::Sessions;

/// Maximum time between handshakes that follow each other: a lower [`Config::handshake_rate`] only admits fewer. deviation: no source; a
/// fifth of a core at 200 us each.
const MAX_GAP: Span = Span::from_ms(1);
/// Handshakes that may follow each other at once. deviation: no source; 1.6 ms, which an engine catches up with before it counts as
/// overloaded (`share`).
const AT_ONCE: u64 = 8;

/// An Init whose cookie is good.
#[derive(Debug)]
struct Waiting {
    from: Peer,
    mode: Mode,
    key: KeyId,
    initiator: u32,
    cookie: Cookie,
    noise: Box<[u8]>,
}

/// The turns of first messages.
#[derive(Debug)]
pub(crate) struct Turns {
    waiting: VecDeque<Waiting>,
    /// Addresses, initiators' numbers and cookies of those that wait.
    known: BTreeSet<(Peer, u32, Cookie)>,
    /// Maximum number that waits: as many as may come at once from all addresses. They take a quarter of a second, far less than the
    /// default of [`Config::handshake_timeout`].
    most: usize,
    /// Time between turns: as many as may come from all addresses, or more.
    gap: Span,
    /// When nothing is used up any more (the theoretical arrival time of the generic cell rate algorithm, ITU-T I.371).
    used: Time,
    /// Number of handshakes that had their turn.
    #[cfg(test)]
    pub(crate) taken: u64,
}

impl Turns {
    pub(crate) fn new(config: &Config) -> Self {
        let (rate, burst) = of_all_addresses(config);
        Self {
            waiting: VecDeque::new(),
            known: BTreeSet::new(),
            most: burst as usize, // at most the largest rate, 100,000
            gap: interval(rate).min(MAX_GAP),
            used: Time::ZERO,
            #[cfg(test)]
            taken: 0,
        }
    }

    /// Returns when the next one has its turn.
    fn next(&self) -> Time {
        Time::from_ps(self.used.as_ps().saturating_sub((self.gap * (AT_ONCE - 1)).as_ps()))
    }

    /// Returns when a message that waits has its turn.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        (!self.waiting.is_empty()).then(|| self.next())
    }

    fn take(&mut self, now: Time) -> bool {
        let taken = self.next() <= now;
        if taken {
            self.used = self.used.max(now) + self.gap;
            #[cfg(test)]
            {
                self.taken += 1;
            }
        }
        taken
    }

    /// Returns `true` if this message waits already.
    pub(crate) fn has(&self, from: Peer, initiator: u32, cookie: Cookie) -> bool {
        self.known.contains(&(from, initiator, cookie))
    }
}

impl Sessions {
    /// Handles the Init of a peer that may ask now, or keeps it until its turn.
    pub(super) fn on_admitted_init(
        &mut self,
        now: Time,
        from: Peer,
        packet: &Handshake<'_>,
        cookie: Cookie,
        noise: &[u8],
    ) -> Result<(), Dropped> {
        if self.turns.waiting.is_empty() && self.turns.take(now) {
            return self.on_init_in_turn(now, from, packet, cookie, noise);
        }
        if self.turns.waiting.len() >= self.turns.most {
            return Err(Dropped::Rate);
        }
        let &Handshake { mode, key, initiator, .. } = packet;
        self.turns.known.insert((from, initiator, cookie));
        self.turns.waiting.push_back(Waiting {
            from,
            mode,
            key,
            initiator,
            cookie,
            noise: noise.into(),
        });
        Ok(())
    }

    /// Handles the messages whose turn has come.
    pub(super) fn handle_turns(&mut self, now: Time) {
        while !self.turns.waiting.is_empty() && self.turns.take(now) {
            let Some(next) = self.turns.waiting.pop_front() else { return };
            let Waiting { from, mode, key, initiator, cookie, noise } = next;
            self.turns.known.remove(&(from, initiator, cookie));
            // It replaces the session of an older message of the same initiator.
            if self.is_again(from, initiator, cookie) {
                continue;
            }
            let message = Message::Init { cookie, noise: &noise };
            let packet = Handshake { mode, key, initiator, message };
            if let Err(why) = self.on_init_in_turn(now, from, &packet, cookie, &noise) {
                self.drop(why);
            }
        }
    }
}
