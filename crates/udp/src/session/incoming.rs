//! Responder side of handshakes: sessions that peers request.

use apus_units::Time;
use apus_units::planted::{Bug, is_planted};

use super::cipher::Mode;
use super::cookie::Cookie;
use super::event::{AcceptError, Dropped, End, Event, SessionId};
use super::guard::Guard;
use super::handshake::{MAX_HELLO_BYTES, parse_payload, payload};
use super::key::Level;
use super::noise::Noise;
use super::outgoing::Reply;
use super::packet::{Handshake, Message, Refusal};
use super::peer::Peer;
use super::quota::Principal;
use super::state::{Session, Stage, want};
use super::table::Sessions;
use super::told::Told;

impl Sessions {
    /// Accepts a session that a peer requested. [`Event::Connected`] follows with the peer's first packet under the new keys;
    /// if the handshake fails, [`Event::Ended`] follows.
    ///
    /// # Errors
    /// If the session does not wait for an answer, or the hello is too long.
    pub fn accept(&mut self, now: Time, id: SessionId, hello: &[u8]) -> Result<(), AcceptError> {
        if hello.len() > MAX_HELLO_BYTES {
            return Err(AcceptError::HelloTooLong);
        }
        let payload = payload(&self.instance, id, hello);
        let renew_at = now.saturating_add(self.config.key_life);
        let session = self.get_mut(id).ok_or(AcceptError::NotWaiting)?;
        let Stage::Offered { noise } = &mut session.stage else {
            return Err(AcceptError::NotWaiting);
        };
        let response = noise.write(&payload).ok_or(AcceptError::NotWaiting)?;
        let stage = core::mem::replace(&mut session.stage, Stage::Answered { response });
        if let Stage::Offered { noise } = stage
            && let Some(secrets) = noise.finish()
        {
            Guard::start(&mut session.guard, session.mode, &secrets, false, renew_at);
            session.since = now;
            self.open_account(id);
            self.want(id, want::RESPONSE);
            self.set_timer(id, now.saturating_add(self.config.handshake_timeout));
        }
        Ok(())
    }

    /// Refuses a session that a peer requested, and tells the peer.
    pub fn refuse(&mut self, id: SessionId) {
        self.refuse_for(id, Refusal::Application);
    }

    /// As [`Sessions::refuse`], and tells the peer that this host drains.
    pub fn refuse_draining(&mut self, id: SessionId) {
        self.refuse_for(id, Refusal::Draining);
    }

    /// As [`Sessions::refuse`], and tells the peer the reason. Only the peer can read the reason, and no other host can
    /// change it. It is cut to [`MAX_REASON_BYTES`](super::MAX_REASON_BYTES).
    pub fn refuse_because(&mut self, id: SessionId, reason: &str) {
        self.refuse_and_tell(id, &Told::application(reason));
    }

    /// As [`Sessions::refuse_because`], and tells the peer that its quota allows no more.
    pub fn refuse_beyond_quota(&mut self, now: Time, id: SessionId) {
        let of_unlisted = self.get(id).filter(|s| matches!(s.holder(), Principal::Unlisted(_)));
        if let Some(from) = of_unlisted.map(|session| session.peer.address.ip()) {
            // The peer's next handshake may use another key, so the refusal counts for the address.
            self.quotas.count_refused(now, from, &self.config);
        }
        self.refuse_and_tell(id, &Told::Quota);
    }

    fn refuse_and_tell(&mut self, id: SessionId, told: &Told) {
        let Some(session) = self.get_mut(id) else { return };
        let Stage::Offered { noise } = &mut session.stage else { return };
        let sealed = noise.write(&told.encode());
        let Session { peer, mode, key, initiator, .. } = *session;
        if let Some(noise) = sealed {
            self.reply(peer, Reply::Told { mode, key, initiator, noise });
        }
        self.counters.failed += 1;
        self.remove(id);
    }

    fn refuse_for(&mut self, id: SessionId, why: Refusal) {
        let Some(session) = self.get(id) else { return };
        if matches!(session.stage, Stage::Offered { .. }) {
            let Session { peer, mode, key, initiator, .. } = *session;
            let message = Message::Refused(why);
            self.reply_handshake(peer, &Handshake { mode, key, initiator, message }, message);
            self.counters.failed += 1;
            self.remove(id);
        }
    }

    pub(super) fn on_init(
        &mut self,
        now: Time,
        from: Peer,
        packet: &Handshake<'_>,
        cookie: Cookie,
        message: &[u8],
    ) -> Result<(), Dropped> {
        let (mode, key, initiator) = (packet.mode, packet.key, packet.initiator);
        if !self.baker.is_good(now, from.address, key, initiator, cookie) {
            return Err(Dropped::Unproven);
        }
        if self.is_again(from, initiator, cookie) {
            return Ok(());
        }
        if !self.takes(mode) {
            self.reply_handshake(from, packet, Message::Refused(Refusal::Cipher));
            self.counters.failed += 1;
            return Ok(());
        }
        if self.turns.has(from, initiator, cookie) {
            return Ok(());
        }
        if !self.quotas.admit_address(now, from.address.ip(), &self.config) {
            return Err(Dropped::Rate);
        }
        self.on_admitted_init(now, from, packet, cookie, message)
    }

    /// Handles an Init whose cookie is valid and whose turn has come.
    pub(super) fn on_init_in_turn(
        &mut self,
        now: Time,
        from: Peer,
        packet: &Handshake<'_>,
        cookie: Cookie,
        message: &[u8],
    ) -> Result<(), Dropped> {
        let (mode, key, initiator) = (packet.mode, packet.key, packet.initiator);
        let mut entropy = self.random.bytes().ok_or(Dropped::NoRandomness)?;
        if is_planted(Bug::EphemeralAgain) {
            entropy.fill(1);
        }
        let credential = self.keys.get(key).ok_or(Dropped::Unproven)?;
        let own = match &credential.level {
            Level::Shared => None,
            Level::Own(pair) => Some(pair.public()),
            // Only the named peer can respond.
            Level::Peer { .. } => return Err(Dropped::Stray),
        };
        let mut noise =
            Noise::new(false, credential, packet, cookie, entropy).ok_or(Dropped::Unproven)?;
        let text = noise.read(message).ok_or(Dropped::Unproven)?;
        let (instance, _, hello) = parse_payload(&text).ok_or(Dropped::Malformed)?;
        let identity = noise.peer();
        if own.is_some() && identity.is_none() {
            return Err(Dropped::Unproven);
        }
        let who = identity.map_or(Principal::Key(key), |peer| self.principal(peer));
        if let Some(why) = self.refusal(now, from, who)? {
            return self.tell(from, packet, noise, &why);
        }
        self.check_crossing(from, &instance)?;

        let full = self.pending.len() >= self.config.max_pending as usize;
        let stage = Stage::Offered { noise };
        let room = if full { None } else { self.insert(now, from, key, mode, stage) };
        let Some(session) = room else {
            self.reply_handshake(from, packet, Message::Refused(Refusal::Full));
            return Err(Dropped::Full);
        };
        session.initiator = initiator;
        session.remote = initiator;
        session.shown = Some(cookie);
        session.instance = instance;
        session.hello = hello.into();
        (session.identity, session.own, session.charged) = (identity, own, Some(who));
        let id = session.id;
        self.quotas.begin(who);
        self.pending.insert((from, initiator), id);
        self.set_timer(id, now.saturating_add(self.config.handshake_timeout));
        let hello = hello.into();
        self.events.push_back(Event::Incoming { session: id, from, key, identity, hello });
        Ok(())
    }

    /// Returns the reason to refuse a session of this key before the application is asked; `None` if there is no reason.
    fn refusal(&mut self, now: Time, from: Peer, who: Principal) -> Result<Option<Told>, Dropped> {
        if let Some(peer) = who.peer() {
            let may_open = match who {
                Principal::Unlisted(_) => self.config.accept_unlisted,
                // A retired key is refused even if unlisted peers may connect.
                _ => self.keys.lists(&peer, true),
            };
            if !may_open {
                self.quotas.count_refused(now, from.address.ip(), &self.config);
                return Ok(Some(Told::Unlisted));
            }
            if !self.quotas.admit_peer(now, peer, &self.config) {
                self.quotas.count_refused(now, from.address.ip(), &self.config);
                return Err(Dropped::Rate);
            }
        }
        // A session replaces an older one from the same address.
        let older = self.by_peer.get(&from).and_then(|&id| self.get(id));
        let replaced = older.and_then(|older| older.charged);
        let room = self.quotas.has_room(who, replaced, &self.config);
        if !room && matches!(who, Principal::Unlisted(_)) {
            // The peer's next handshake may use another key, so the refusal counts for the address.
            self.quotas.count_refused(now, from.address.ip(), &self.config);
        }
        Ok((!room).then_some(Told::Quota))
    }

    /// Refuses a session and sends the reason to the peer, under the keys of the handshake.
    fn tell(
        &mut self,
        to: Peer,
        packet: &Handshake<'_>,
        mut noise: Noise,
        why: &Told,
    ) -> Result<(), Dropped> {
        let &Handshake { mode, key, initiator, .. } = packet;
        let noise = noise.write(&why.encode()).ok_or(Dropped::Unproven)?;
        self.reply(to, Reply::Told { mode, key, initiator, noise });
        self.counters.failed += 1;
        Ok(())
    }

    /// Returns `true` if peers may open sessions with this protection.
    fn takes(&self, mode: Mode) -> bool {
        // A mode without a cipher is insecure. The caller has checked that this table is insecure too.
        mode.cipher().is_none_or(|cipher| self.config.accept_ciphers.contains(&cipher))
    }

    /// Returns `true` if an Init was received before. If its Response was sent already, the Response is repeated. A new Init
    /// of the same initiator replaces the old one.
    pub(super) fn is_again(&mut self, from: Peer, initiator: u32, cookie: Cookie) -> bool {
        let connected = self.by_peer.get(&from).and_then(|&id| self.get(id));
        if connected.is_some_and(|s| s.initiator == initiator && s.shown == Some(cookie)) {
            return true;
        }
        let Some(&id) = self.pending.get(&(from, initiator)) else { return false };
        let Some(session) = self.get(id) else { return false };
        if session.shown != Some(cookie) {
            self.end(id, End::Replaced);
            return false;
        }
        if matches!(session.stage, Stage::Answered { .. }) {
            self.want(id, want::RESPONSE);
        }
        true
    }

    /// Resolves handshakes that both sides begin at the same time, which must not result in two sessions. The side with the
    /// smaller process number opens the session, unless the peer has already accepted the attempt of the other side. The
    /// attempt of the other side continues until the peer's session is confirmed, because the peer's Init may be a replay
    /// without a current attempt. A packet of this process that returns to it proves nothing.
    fn check_crossing(&self, from: Peer, instance: &[u8; 16]) -> Result<(), Dropped> {
        if *instance == self.instance {
            return Err(Dropped::Stray);
        }
        let own = self.by_peer.get(&from).and_then(|&id| self.get(id));
        let continues = own.is_some_and(|session| match session.stage {
            Stage::Asking | Stage::Opening { .. } => *instance > self.instance,
            // The peer has accepted the session, and ends its own attempt once the session is confirmed. Another process
            // cannot confirm it.
            Stage::Confirming => *instance == session.instance,
            _ => false,
        });
        if continues { Err(Dropped::Stray) } else { Ok(()) }
    }
}
