//! Queue of the first messages of handshakes.
//!
//! Each first message costs the responder a Diffie-Hellman and further work, in total about 200 us. The packets of all sessions
//! wait meanwhile. A burst of first messages would make an engine late for tens of milliseconds. Therefore a few are handled at
//! once, and each further one waits for its turn.

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

/// Maximum time between consecutive handshakes. With a lower [`Config::handshake_rate`] only the number of admitted
/// handshakes is smaller. deviation: no source; a fifth of a core at 200 us each.
const MAX_GAP: Span = Span::from_ms(1);
/// Number of handshakes that may be handled at once. deviation: no source; 1.6 ms, which an engine catches up with before it
/// counts as overloaded (`share`).
const AT_ONCE: u64 = 8;

/// An Init whose cookie is valid.
#[derive(Debug)]
struct Waiting {
    from: Peer,
    mode: Mode,
    key: KeyId,
    initiator: u32,
    cookie: Cookie,
    noise: Box<[u8]>,
}

/// The queue of first messages, and the rate at which they are handled.
#[derive(Debug)]
pub(crate) struct Turns {
    waiting: VecDeque<Waiting>,
    /// Addresses, initiators' numbers and cookies of the waiting messages.
    known: BTreeSet<(Peer, u32, Cookie)>,
    /// Maximum number of waiting messages: as many as may come at once from all addresses. Handling them takes a quarter of a
    /// second, far less than the default of [`Config::handshake_timeout`].
    most: usize,
    /// Time between turns. It gives the rate of all addresses together, or a higher rate.
    gap: Span,
    /// Time at which the rate limit is unused again (the theoretical arrival time of the generic cell rate algorithm, ITU-T
    /// I.371).
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

    /// Returns the time of the next turn.
    fn next(&self) -> Time {
        Time::from_ps(self.used.as_ps().saturating_sub((self.gap * (AT_ONCE - 1)).as_ps()))
    }

    /// Returns the time at which a waiting message has its turn; `None` if no message waits.
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

    /// Returns `true` if this message is already waiting.
    pub(crate) fn has(&self, from: Peer, initiator: u32, cookie: Cookie) -> bool {
        self.known.contains(&(from, initiator, cookie))
    }
}

impl Sessions {
    /// Handles an admitted Init at once if a turn is free, or queues it until its turn.
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
            // A repeated Init is skipped. A new Init replaces the session of an older one of the same initiator.
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
