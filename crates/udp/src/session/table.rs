//! The table of sessions: who is in it, and what is due when.

use apus_units::Time;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::cipher::{Cipher, Mode};
use super::config::{Config, MAX_SESSIONS};
use super::cookie::Baker;
use super::counters::Counters;
use super::event::{End, Event, SessionId};
use super::guard::{Guard, guard_bytes};
use super::key::{KeyId, KeyRing};
use super::outgoing::Reply;
use super::peer::Peer;
use super::random::Randomness;
use super::state::{Session, Stage, want};

struct Slot {
    /// Changes with each session that takes the place; above the index in a session's number.
    generation: u32,
    session: Option<Box<Session>>,
}

/// All sessions of one engine.
///
/// Feed every datagram to [`Sessions::receive`]; after any call that takes `&mut self`, poll events and
/// packets to send until there are none, and call [`Sessions::handle_timeout`] at
/// [`Sessions::next_timeout`].
pub struct Sessions {
    pub(crate) config: Config,
    pub(crate) keys: KeyRing,
    pub(crate) random: Randomness,
    pub(crate) baker: Baker,
    /// Tells this process from one that had the same address before.
    pub(crate) instance: [u8; 16],
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// The one session of an address that is being opened from here, or connected.
    pub(crate) by_peer: BTreeMap<Peer, SessionId>,
    /// Sessions that peers have asked for, by address and initiator's number, until confirmed.
    pub(crate) pending: BTreeMap<(Peer, u32), SessionId>,
    timers: BTreeSet<(Time, SessionId)>,
    /// Sessions that have something to send.
    pub(super) outbox: VecDeque<SessionId>,
    pub(super) replies: VecDeque<Reply>,
    pub(super) next_unknown: Time,
    pub(crate) events: VecDeque<Event>,
    pub(crate) counters: Counters,
}

impl Sessions {
    /// An empty table. Ephemeral keys, the secret of cookies and the process's identity are drawn from
    /// `randomness`: [`Randomness::System`], or a seed in tests.
    ///
    /// # Errors
    /// What is wrong with the settings; that the system gives no randomness.
    pub fn new(
        config: Config,
        keys: KeyRing,
        randomness: impl Into<Randomness>,
    ) -> Result<Self, &'static str> {
        config.check()?;
        let mut random = randomness.into();
        let mut draw = || random.bytes().ok_or("the system gives no randomness");
        let baker = Baker::new(&*draw()?);
        let mut instance = [0; 16];
        instance.copy_from_slice(&draw()?[..16]);
        Ok(Self {
            config,
            keys,
            random,
            baker,
            instance,
            slots: Vec::new(),
            free: Vec::new(),
            by_peer: BTreeMap::new(),
            pending: BTreeMap::new(),
            timers: BTreeSet::new(),
            outbox: VecDeque::new(),
            replies: VecDeque::new(),
            next_unknown: Time::from_ps(0),
            events: VecDeque::new(),
            counters: Counters::default(),
        })
    }

    /// The public names of the keys, the first being the one to offer by default.
    pub fn key_ids(&self) -> impl Iterator<Item = KeyId> + '_ {
        self.keys.ids()
    }

    /// Whether packets are sealed, and not only guarded against damage.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        !self.keys.is_insecure()
    }

    /// What sessions that are opened from here are guarded with.
    pub(crate) fn proposed(&self) -> Mode {
        if self.is_sealed() { Mode::Sealed(self.config.cipher) } else { Mode::Insecure }
    }

    /// Bytes that the guard adds behind header and payload.
    #[must_use]
    pub fn overhead(&self) -> usize {
        guard_bytes(self.is_sealed())
    }

    /// Counts since the table was made.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Sessions in the table, those being opened included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The peer of a session that is in the table.
    #[must_use]
    pub fn peer(&self, id: SessionId) -> Option<Peer> {
        self.get(id).map(|s| s.peer)
    }

    /// The key of a session that is in the table.
    #[must_use]
    pub fn key(&self, id: SessionId) -> Option<KeyId> {
        self.get(id).map(|s| s.key)
    }

    /// What seals the packets of a session that is in the table; `None` in the insecure mode.
    #[must_use]
    pub fn cipher(&self, id: SessionId) -> Option<Cipher> {
        match self.get(id)?.mode {
            Mode::Sealed(cipher) => Some(cipher),
            Mode::Insecure => None,
        }
    }

    /// All sessions, those being opened or closed included.
    pub(crate) fn ids(&self) -> impl Iterator<Item = SessionId> + '_ {
        self.all().map(|session| session.id)
    }

    /// Whether a session is connected.
    #[must_use]
    pub fn is_connected(&self, id: SessionId) -> bool {
        self.get(id).is_some_and(Session::is_connected)
    }

    /// Whether [`Sessions::poll_event`] has one.
    #[inline]
    #[must_use]
    pub fn has_event(&self) -> bool {
        !self.events.is_empty()
    }

    /// What has happened since the last call, oldest first.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Closes a session: tells the peer, and forgets it. No event follows.
    pub fn close(&mut self, now: Time, id: SessionId) {
        let Some(session) = self.get(id) else { return };
        if session.guard.is_some() && !matches!(session.stage, Stage::Closing) {
            self.count_end(id);
            self.last_words(now, id);
        } else {
            self.remove(id);
        }
    }

    /// When to call [`Sessions::handle_timeout`] at the latest; `None` if nothing is timed. The answer
    /// changes with every call that takes `&mut self`, and may be early, never late.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Time> {
        self.timers.first().map(|&(at, _)| at)
    }

    /// Does what is due at `now`: sends handshakes and pings again, and gives peers up.
    pub fn handle_timeout(&mut self, now: Time) {
        while let Some(&(at, id)) = self.timers.first() {
            if at > now {
                return;
            }
            self.timers.pop_first();
            if let Some(session) = self.get_mut(id) {
                session.timer = Time::MAX;
                self.on_timer(now, id);
            }
        }
    }

    /// Sets the timer of a session, in place of the one it had.
    pub(crate) fn set_timer(&mut self, id: SessionId, at: Time) {
        let Some(session) = self.get_mut(id) else { return };
        let before = core::mem::replace(&mut session.timer, at);
        self.timers.remove(&(before, id));
        if at != Time::MAX {
            self.timers.insert((at, id));
        }
    }

    #[inline]
    pub(crate) fn get(&self, id: SessionId) -> Option<&Session> {
        self.slots.get(id.index())?.session.as_deref().filter(|s| s.id == id)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: SessionId) -> Option<&mut Session> {
        self.slots.get_mut(id.index())?.session.as_deref_mut().filter(|s| s.id == id)
    }

    /// All sessions, those being opened or closed included.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Session> {
        self.slots.iter().filter_map(|slot| slot.session.as_deref())
    }

    /// Puts a session into the table; `None` if it is full, or the system gives no randomness.
    pub(crate) fn insert(
        &mut self,
        now: Time,
        peer: Peer,
        key: KeyId,
        mode: Mode,
        stage: Stage,
    ) -> Option<SessionId> {
        let index = self.free.pop().or_else(|| {
            let index = self.slots.len() as u32; // at most MAX_SESSIONS
            if index >= self.config.max_sessions {
                return None;
            }
            // A random start, so that packets to a process before find no session.
            let generation = self.random.u32()?;
            self.slots.push(Slot { generation, session: None });
            Some(index)
        })?;
        let slot = &mut self.slots[index as usize];
        slot.generation = slot.generation.wrapping_add(1);
        let id = SessionId(slot.generation.wrapping_mul(MAX_SESSIONS) | index);
        slot.session = Some(Box::new(Session::new(id, peer, key, mode, stage, now)));
        Some(id)
    }

    /// Forgets a session at once.
    pub(crate) fn remove(&mut self, id: SessionId) {
        self.set_timer(id, Time::MAX);
        let Some(slot) = self.slots.get_mut(id.index()) else { return };
        let Some(session) = slot.session.take_if(|s| s.id == id) else { return };
        self.free.push(id.index() as u32);
        if self.by_peer.get(&session.peer) == Some(&id) {
            self.by_peer.remove(&session.peer);
        }
        let asked = (session.peer, session.initiator);
        if self.pending.get(&asked) == Some(&id) {
            self.pending.remove(&asked);
        }
    }

    /// Ends a session for `reason` and says so.
    pub(crate) fn end(&mut self, id: SessionId, reason: End) {
        if self.get(id).is_some() {
            self.count_end(id);
            self.remove(id);
            self.events.push_back(Event::Ended { session: id, reason });
        }
    }

    fn count_end(&mut self, id: SessionId) {
        if self.is_connected(id) {
            self.counters.ended += 1;
        } else {
            self.counters.failed += 1;
        }
    }

    /// Leaves only the packet that closes the session.
    fn last_words(&mut self, now: Time, id: SessionId) {
        let timeout = self.config.handshake_timeout;
        let Some(session) = self.get_mut(id) else { return };
        session.stage = Stage::Closing;
        // Queued already if it wanted anything.
        let queued = session.wants != 0;
        session.wants = want::CLOSE;
        let peer = session.peer;
        if !queued {
            self.outbox.push_back(id);
        }
        if self.by_peer.get(&peer) == Some(&id) {
            self.by_peer.remove(&peer);
        }
        self.set_timer(id, now.saturating_add(timeout));
    }

    /// A guard for a session that has just got its secrets.
    pub(crate) fn make_guard(
        &self,
        now: Time,
        mode: Mode,
        secrets: &super::noise::Secrets,
        initiator: bool,
    ) -> Guard {
        match mode {
            Mode::Insecure => Guard::Insecure { next: 0 },
            Mode::Sealed(cipher) => {
                let renew_at = now.saturating_add(self.config.key_life);
                Guard::sealed(cipher, secrets, initiator, renew_at)
            }
        }
    }
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sessions")
            .field("config", &self.config)
            .field("sessions", &self.len())
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}
