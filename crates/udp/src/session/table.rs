//! The table of sessions, and their timers.

use apus_units::{Span, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::cipher::Mode;
use super::config::{Config, MAX_SESSIONS};
use super::cookie::Baker;
use super::counters::Counters;
use super::event::{End, Event, SessionId};
use super::guard::guard_bytes;
use super::identity::PeerKey;
use super::key::KeyId;
use super::outgoing::Reply;
use super::peer::Peer;
use super::quota::{Principal, Quotas};
use super::random::Randomness;
use super::ring::KeyRing;
use super::share::Shares;
use super::state::{Session, Stage, want};
use super::turns::Turns;
use super::window::Accepted;

/// Number of ended sessions whose guards are kept.
#[cfg(any(test, feature = "worlds"))]
const ENDED: usize = 64;

/// A slot for a session.
pub(super) struct Slot {
    /// Upper bits of a session's number, which change with each session of the slot.
    generation: u32,
    session: Option<Box<Session>>,
}

/// All sessions of one engine.
///
/// Pass every datagram to [`Sessions::receive`]. After any call that takes `&mut self`, poll events and packets to send until
/// there are none. Call [`Sessions::handle_timeout`] at [`Sessions::next_timeout`].
pub struct Sessions {
    pub(crate) config: Config,
    pub(crate) keys: KeyRing,
    pub(crate) random: Randomness,
    pub(crate) baker: Baker,
    /// Distinguishes this process from an earlier one with the same address.
    pub(crate) instance: [u8; 16],
    pub(super) slots: Vec<Slot>,
    free: Vec<u32>,
    /// The session of each address that is being opened here, or connected.
    pub(crate) by_peer: BTreeMap<Peer, SessionId>,
    /// Sessions that peers have requested, by address and initiator's number, until they are confirmed.
    pub(crate) pending: BTreeMap<(Peer, u32), SessionId>,
    pub(crate) quotas: Quotas,
    pub(crate) shares: Shares,
    /// First messages of peers that wait for their turn.
    pub(crate) turns: Turns,
    timers: BTreeSet<(Time, SessionId)>,
    /// Sessions with packets to send.
    pub(super) outbox: VecDeque<SessionId>,
    pub(super) replies: VecDeque<(Peer, Reply)>,
    /// Whether the packet sent last was one of `replies`.
    pub(super) replied: bool,
    pub(super) next_unknown: Time,
    pub(crate) events: VecDeque<Event>,
    pub(crate) counters: Counters,
    /// The sessions that ended last, whose packets may still be queued for the network: the peer's numbers, and the guards.
    #[cfg(any(test, feature = "worlds"))]
    ended: VecDeque<Box<Session>>,
}

impl Sessions {
    /// Returns an empty table. Ephemeral keys, the secret of cookies and the process's identity are drawn from `randomness`:
    /// [`Randomness::System`], or a seed in tests.
    ///
    /// # Errors
    /// If a setting is invalid, or the system provides no random bytes.
    pub fn new(
        config: Config,
        keys: KeyRing,
        randomness: impl Into<Randomness>,
    ) -> Result<Self, String> {
        config.check()?;
        let mut random = randomness.into();
        let mut draw = || random.bytes().ok_or("the system gives no randomness");
        let baker = Baker::new(&*draw()?);
        let mut instance = [0; 16];
        instance.copy_from_slice(&draw()?[..16]);
        let turns = Turns::new(&config);
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
            quotas: Quotas::default(),
            shares: Shares::default(),
            turns,
            timers: BTreeSet::new(),
            outbox: VecDeque::new(),
            replies: VecDeque::new(),
            replied: false,
            next_unknown: Time::from_ps(0),
            events: VecDeque::new(),
            counters: Counters::default(),
            #[cfg(any(test, feature = "worlds"))]
            ended: VecDeque::new(),
        })
    }

    /// Returns the public names of the credentials ([`KeyRing::ids`]).
    pub fn key_ids(&self) -> impl Iterator<Item = KeyId> + '_ {
        self.keys.ids()
    }

    /// Returns the key ring.
    #[must_use]
    pub fn ring(&self) -> &KeyRing {
        &self.keys
    }

    /// Returns the key of its own that the peer of a connected session has proved, if both sides have one.
    #[must_use]
    pub fn identity(&self, id: SessionId) -> Option<PeerKey> {
        self.get(id)?.identity
    }

    /// Returns the quota holder that the peer of a session is.
    pub(crate) fn holder(&self, id: SessionId) -> Option<Principal> {
        self.get(id).map(Session::holder)
    }

    /// Returns the public name of the credential of a session.
    #[must_use]
    pub fn key(&self, id: SessionId) -> Option<KeyId> {
        self.get(id).map(|session| session.key)
    }

    /// Returns `true` if packets are sealed. In the insecure mode they are only protected against damage.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        !self.keys.is_insecure()
    }

    /// Returns the protection of sessions that are opened here.
    pub(crate) fn proposed(&self) -> Mode {
        match self.config.cipher {
            _ if !self.is_sealed() => Mode::Insecure,
            cipher if self.keys.is_identified() => Mode::Identified(cipher),
            cipher => Mode::Sealed(cipher),
        }
    }

    /// Returns the length in bytes of the guard, which follows header and payload.
    #[must_use]
    pub fn overhead(&self) -> usize {
        guard_bytes(self.is_sealed())
    }

    /// Returns the counters since the creation of the table.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the number of sessions in the table, including those being opened.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns the number of queued answers that belong to no session.
    #[cfg(any(test, feature = "worlds"))]
    pub(crate) fn waiting_replies(&self) -> usize {
        self.replies.len()
    }

    /// Returns a fingerprint of the secret under which a recent packet was sealed, and the packet's number. The pair
    /// determines key and nonce. Returns `None` for other packets.
    #[cfg(any(test, feature = "worlds"))]
    pub(crate) fn nonce_of(&self, packet: &[u8]) -> Option<(u64, u64)> {
        // Two sessions may have the same number of the peer, for example if an Init is repeated after its session has begun.
        let (remote, _) = super::guard::numbers(true, packet)?;
        let ended = self.ended.iter().map(|session| &**session);
        let mut own = self.all().chain(ended).filter(|session| session.remote == remote);
        own.find_map(|session| session.guard.as_ref()?.nonce_of(packet))
    }

    /// Makes a session replace its sending key with the next packet.
    #[cfg(test)]
    pub(crate) fn skip_key(&mut self, id: SessionId) {
        if let Some(guard) = self.get_mut(id).and_then(|session| session.guard.as_mut()) {
            guard.skip_key();
        }
    }

    /// Returns the epochs of a session's sending and receiving key.
    #[cfg(test)]
    pub(crate) fn epochs(&self, id: SessionId) -> Option<[u64; 2]> {
        Some(self.get(id)?.guard.as_ref()?.epochs())
    }

    /// Returns `true` if the table is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns `true` if a session is connected.
    #[must_use]
    pub fn is_connected(&self, id: SessionId) -> bool {
        self.get(id).is_some_and(Session::is_connected)
    }

    /// Returns `true` if [`Sessions::poll_event`] would return an event.
    #[inline]
    #[must_use]
    pub fn has_event(&self) -> bool {
        !self.events.is_empty()
    }

    /// Takes the oldest event that was not polled yet.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Closes a session and notifies the peer. No event follows.
    pub fn close(&mut self, now: Time, id: SessionId) {
        let Some(session) = self.get(id) else { return };
        if matches!(session.stage, Stage::Closing) {
            return self.remove(id);
        }
        let is_told = session.guard.is_some();
        self.count_end(id);
        if is_told {
            self.begin_closing(now, id);
        } else {
            self.remove(id);
        }
    }

    /// Returns the latest time for the next call of [`Sessions::handle_timeout`]; `None` without timers. Every call that
    /// takes `&mut self` may change the time. The time may be too early, but never too late.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Time> {
        let timer = self.timers.first().map(|&(at, _)| at);
        timer.into_iter().chain(self.turns.next_timeout()).min()
    }

    /// Runs the timers that are due at `now`: answers queued handshakes, repeats handshakes and pings of this side, and gives up
    /// peers.
    pub fn handle_timeout(&mut self, now: Time) {
        self.handle_turns(now);
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

    /// Sets the timer of a session and replaces its earlier one.
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
        find(&mut self.slots, id)
    }

    /// Returns all sessions, those being opened or closed included.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Session> {
        self.slots.iter().filter_map(|slot| slot.session.as_deref())
    }

    /// Adds a session. Returns `None` if the table is full, or the system provides no random bytes.
    pub(crate) fn insert(
        &mut self,
        now: Time,
        peer: Peer,
        key: KeyId,
        mode: Mode,
        stage: Stage,
    ) -> Option<&mut Session> {
        let index = self.free.pop().or_else(|| {
            let index = self.slots.len() as u32; // at most MAX_SESSIONS
            if index >= self.config.max_sessions {
                return None;
            }
            // A random start, so that packets to an earlier process match no session.
            let generation = self.random.u32()?;
            self.slots.push(Slot { generation, session: None });
            Some(index)
        })?;
        let slot = &mut self.slots[index as usize];
        slot.generation = slot.generation.wrapping_add(1);
        let id = SessionId(slot.generation.wrapping_mul(MAX_SESSIONS) | index);
        Some(slot.session.insert(Box::new(Session {
            id,
            peer,
            ports: None,
            pinged_from: peer,
            key,
            identity: None,
            own: None,
            charged: None,
            account: None,
            mode,
            stage,
            other_mode: false,
            guard: None,
            window: Accepted::default(),
            remote: 0,
            instance: [0; 16],
            hello: Box::default(),
            initiator: 0,
            shown: None,
            since: now,
            last_received: now,
            doubt: None,
            tries: 0,
            wants: 0,
            timer: Time::MAX,
        })))
    }

    /// Returns the quota holder of a peer with this key of its own.
    pub(crate) fn principal(&self, peer: PeerKey) -> Principal {
        let listed = self.keys.lists(&peer, false);
        if listed { Principal::Peer(peer) } else { Principal::Unlisted(peer) }
    }

    /// Assigns the account of its peer to a session whose secrets are known.
    pub(crate) fn open_account(&mut self, id: SessionId) {
        let Some(session) = self.get(id).filter(|session| session.account.is_none()) else {
            return;
        };
        let who = session.holder();
        let account = self.shares.open(who.source(session.peer.address.ip()));
        if let Some(session) = self.get_mut(id) {
            session.account = Some(account);
        }
    }

    /// Records that the engine has polled its sockets. `waited` is the number of a port and the time for which the oldest
    /// datagram found there had waited. `empty` states that no port has datagrams left. If the engine is overloaded for long,
    /// each peer gets a share of it.
    #[inline]
    pub fn on_poll(&mut self, now: Time, waited: (u8, Span), empty: bool) {
        self.shares.on_poll(now, waited, empty);
    }

    /// Returns `true` if [`Sessions::on_poll`] must also be called after polls that find no datagram.
    #[inline]
    #[must_use]
    pub fn counts_shares(&self) -> bool {
        self.shares.counts()
    }

    /// Removes a session at once.
    pub(crate) fn remove(&mut self, id: SessionId) {
        self.set_timer(id, Time::MAX);
        let Some(slot) = self.slots.get_mut(id.index()) else { return };
        let Some(session) = slot.session.take_if(|s| s.id == id) else { return };
        self.free.push(id.index() as u32);
        if self.by_peer.get(&session.peer) == Some(&id) {
            self.by_peer.remove(&session.peer);
        }
        let asked = (session.peer, session.initiator);
        if let Some(account) = session.account {
            self.shares.close(account);
        }
        if let Some(who) = session.charged {
            self.quotas.end(who, session.stage.is_pending());
        }
        if self.pending.get(&asked) == Some(&id) {
            self.pending.remove(&asked);
        }
        #[cfg(any(test, feature = "worlds"))]
        {
            self.ended.truncate(ENDED - 1);
            self.ended.push_front(session);
        }
    }

    /// Ends a session for `reason`, which is reported as an event.
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

    /// Replaces all packets that a session has to send by the one that closes it.
    fn begin_closing(&mut self, now: Time, id: SessionId) {
        let timeout = self.config.handshake_timeout;
        let Some(session) = self.get_mut(id) else { return };
        let before = core::mem::replace(&mut session.stage, Stage::Closing);
        let unconfirmed = session.charged.filter(|_| before.is_pending());
        // A session that already had packets to send is queued already.
        let queued = session.wants != 0;
        session.wants = want::CLOSE;
        let peer = session.peer;
        if let Some(who) = unconfirmed {
            self.quotas.connected(who);
        }
        if !queued {
            self.outbox.push_back(id);
        }
        if self.by_peer.get(&peer) == Some(&id) {
            self.by_peer.remove(&peer);
        }
        self.set_timer(id, now.saturating_add(timeout));
    }
}

/// Returns the session of this number.
#[inline]
pub(super) fn find(slots: &mut [Slot], id: SessionId) -> Option<&mut Session> {
    slots.get_mut(id.index())?.session.as_deref_mut().filter(|s| s.id == id)
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
