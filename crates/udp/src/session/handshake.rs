//! Initiator side of handshakes, and functions that both sides share. The documentation of the module describes the messages.

use apus_units::Time;
use apus_units::planted::{Bug, is_planted};

use super::cookie::Cookie;
use super::event::{ConnectError, Dropped, End, Event, Received, SessionId};
use super::guard::Guard;
use super::key::{Credential, KeyId, Level};
use super::liveness::ping_at;
use super::noise::{NOISE_OVERHEAD, Noise, STATIC_BYTES};
use super::packet::{Handshake, Message, Refusal, proven};
use super::peer::Peer;
use super::ring::KeyRing;
use super::state::{Session, Stage, want};
use super::table::Sessions;
use super::told::Told;

/// Maximum length in bytes of the hello that an application adds to a handshake.
pub const MAX_HELLO_BYTES: usize = 256;

/// Length in bytes of the longest packet that [`Sessions::poll_transmit`] writes: an Init.
pub const MAX_HANDSHAKE_BYTES: usize =
    16 + 16 + NOISE_OVERHEAD + STATIC_BYTES + PROCESS_BYTES + MAX_HELLO_BYTES + 16;

/// The sender's process and number for the session, before the hello in a Noise message.
const PROCESS_BYTES: usize = 20;

/// Returns the payload of a Noise message: process, session, hello.
pub(super) fn payload(instance: &[u8; 16], session: SessionId, hello: &[u8]) -> Vec<u8> {
    [&instance[..], &session.get().to_be_bytes(), hello].concat()
}

pub(super) fn parse_payload(payload: &[u8]) -> Option<([u8; 16], u32, &[u8])> {
    let (instance, rest) = payload.split_first_chunk::<16>()?;
    let (session, hello) = rest.split_first_chunk::<4>()?;
    (hello.len() <= MAX_HELLO_BYTES).then(|| (*instance, u32::from_be_bytes(*session), hello))
}

/// Writes the handshake packet that a session has to send.
pub(crate) fn write(
    session: &Session,
    keys: &KeyRing,
    wanted: u16,
    out: &mut [u8],
) -> Option<usize> {
    let (initiator, message) = match &session.stage {
        stage if wanted == want::HELLO && stage.asks() => (session.id.get(), Message::Hello),
        Stage::Opening { message, cookie, .. } if wanted == want::INIT => {
            (session.id.get(), Message::Init { cookie: *cookie, noise: message })
        }
        Stage::Answered { response } if wanted == want::RESPONSE => {
            (session.initiator, Message::Response { noise: response })
        }
        _ => return None, // the stage has changed since
    };
    let packet = Handshake { mode: session.mode, key: session.key, initiator, message };
    packet.write(keys.get(session.key)?, out)
}

impl Sessions {
    /// Opens a session with `peer` under a key of the key ring. [`Event::Connected`], [`Event::Refused`] or [`Event::Ended`]
    /// follows. The peer's application gets `hello`, which is authenticated and, if the session is sealed, encrypted.
    ///
    /// # Errors
    /// If the key is not in the key ring, `hello` is too long, the table is full, or there is a session with this address.
    pub fn connect(
        &mut self,
        now: Time,
        peer: impl Into<Peer>,
        key: KeyId,
        hello: &[u8],
    ) -> Result<SessionId, ConnectError> {
        let peer = peer.into();
        if hello.len() > MAX_HELLO_BYTES {
            return Err(ConnectError::HelloTooLong);
        }
        let credential = self.keys.get(key).filter(|credential| !credential.retired);
        let (identity, own) = match credential.map(|credential| &credential.level) {
            Some(Level::Shared) => (None, None),
            Some(Level::Peer { own, peer }) => (Some(*peer), Some(own.public())),
            // This host does not open sessions with itself.
            Some(Level::Own(_)) | None => return Err(ConnectError::NoKey(key)),
        };
        if let Some(&session) = self.by_peer.get(&peer) {
            return Err(ConnectError::Exists(session));
        }
        let mode = self.proposed();
        let session = self.insert(now, peer, key, mode, Stage::Asking).ok_or(ConnectError::Full)?;
        session.hello = hello.into();
        (session.identity, session.own) = (identity, own);
        let id = session.id;
        self.by_peer.insert(peer, id);
        self.want(id, want::HELLO);
        self.set_timer(id, now.saturating_add(self.config.retry));
        Ok(id)
    }

    /// Handles a handshake packet.
    pub(crate) fn on_handshake(
        &mut self,
        now: Time,
        from: Peer,
        datagram: &[u8],
    ) -> Received<'static> {
        let Some(packet) = Handshake::parse(datagram) else {
            return self.drop(Dropped::Malformed);
        };
        if packet.mode.is_sealed() != self.is_sealed() {
            if matches!(packet.message, Message::Hello) {
                // The answer is the same as to a packet of an unknown session. It is shorter than the Hello.
                self.reply_unknown(now, from, packet.initiator, 0);
            }
            return self.drop(Dropped::OtherMode);
        }
        let opens = matches!(packet.message, Message::Hello | Message::Init { .. });
        let Some(credential) = self.keys.get(packet.key).filter(|c| {
            c.level.is_identified() == packet.mode.is_identified() && !(opens && c.retired)
        }) else {
            return self.drop(Dropped::UnknownKey);
        };
        if !proven(datagram, credential) {
            return self.drop(Dropped::Unproven);
        }
        let done = match packet.message {
            Message::Hello => {
                let cookie = self.baker.make(now, from.address, packet.key, packet.initiator);
                self.reply_handshake(from, &packet, Message::Cookie(cookie));
                Ok(())
            }
            Message::Cookie(cookie) => self.on_cookie(now, from, &packet, cookie),
            Message::Init { cookie, noise } => self.on_init(now, from, &packet, cookie, noise),
            Message::Response { noise } => self.on_response(now, from, &packet, noise),
            Message::Refused(why) => self.on_refused(from, &packet, why),
            Message::Told { noise } => self.on_told(from, &packet, noise),
        };
        match done {
            Ok(()) => Received::Own,
            Err(why) => self.drop(why),
        }
    }

    /// Returns the session opened here to which an answer belongs.
    fn ours(&mut self, from: Peer, packet: &Handshake<'_>) -> Result<&mut Session, Dropped> {
        self.get_mut(SessionId(packet.initiator))
            .filter(|s| s.peer == from && s.key == packet.key && s.mode == packet.mode)
            .ok_or(Dropped::Stray)
    }

    fn on_cookie(
        &mut self,
        now: Time,
        from: Peer,
        packet: &Handshake<'_>,
        cookie: Cookie,
    ) -> Result<(), Dropped> {
        let (instance, retry) = (self.instance, self.config.retry);
        let mut entropy = self.random.bytes().ok_or(Dropped::NoRandomness)?;
        if is_planted(Bug::EphemeralAgain) {
            entropy.fill(1);
        }
        let credential: Credential = self.keys.get(packet.key).ok_or(Dropped::Stray)?.clone();
        let session = self.ours(from, packet)?;
        if !session.stage.asks() {
            return Err(Dropped::Stray);
        }
        match &mut session.stage {
            // The responder knows this cookie, and perhaps the Init that shows it. It would take another Init for a
            // repetition.
            Stage::Opening { cookie: shown, asks, .. } if *shown == cookie => *asks = false,
            stage => {
                let mut noise =
                    Noise::new(true, &credential, packet, cookie, entropy).ok_or(Dropped::Stray)?;
                let payload = payload(&instance, session.id, &session.hello);
                let message = noise.write(&payload).ok_or(Dropped::Stray)?;
                *stage = Stage::Opening { noise, message, cookie, asks: false };
            }
        }
        session.tries = 0;
        let id = session.id;
        self.want(id, want::INIT);
        self.set_timer(id, now.saturating_add(retry));
        Ok(())
    }

    fn on_response(
        &mut self,
        now: Time,
        from: Peer,
        packet: &Handshake<'_>,
        message: &[u8],
    ) -> Result<(), Dropped> {
        let own = self.instance;
        let renew_at = now.saturating_add(self.config.key_life);
        let session = self.ours(from, packet)?;
        let Stage::Opening { noise, .. } = &mut session.stage else {
            return Err(Dropped::Stray);
        };
        let text = noise.read(message).ok_or(Dropped::Unproven)?;
        let (instance, remote, hello) = parse_payload(&text).ok_or(Dropped::Malformed)?;
        if instance == own {
            return Err(Dropped::Stray);
        }
        let id = session.id;
        session.instance = instance;
        session.remote = remote;
        session.hello = hello.into();
        let stage = core::mem::replace(&mut session.stage, Stage::Confirming);
        session.tries = 0;
        if let Stage::Opening { noise, .. } = stage
            && let Some(secrets) = noise.finish()
        {
            Guard::start(&mut session.guard, session.mode, &secrets, true, renew_at);
            session.last_received = now;
        }
        self.open_account(id);
        self.win_crossing(from, &instance);
        // The responder waits for the first packet under the new keys. The answer to the ping shows that it keeps the
        // session.
        self.want(id, want::PING);
        self.set_timer(id, now.saturating_add(self.config.retry));
        Ok(())
    }

    /// Ends a crossing attempt once the peer has accepted the session that this side opens. If this side has the smaller
    /// process number, sessions of the same peer process that were requested or accepted here and are not confirmed end. The
    /// peer ends its side when it confirms this session. Otherwise each side could confirm one of the two sessions at the
    /// same time, and end the other.
    fn win_crossing(&mut self, from: Peer, instance: &[u8; 16]) {
        if *instance < self.instance {
            return;
        }
        let pending = self.pending.range((from, 0)..=(from, u32::MAX));
        let of_peer = |&(_, &id): &(_, &SessionId)| {
            self.get(id).is_some_and(|session| session.instance == *instance)
        };
        let crossed: Vec<SessionId> = pending.filter(of_peer).map(|(_, &id)| id).collect();
        for id in crossed {
            self.end(id, End::Crossed);
        }
    }

    fn on_refused(
        &mut self,
        from: Peer,
        packet: &Handshake<'_>,
        why: Refusal,
    ) -> Result<(), Dropped> {
        let session = self.ours(from, packet)?;
        if !matches!(session.stage, Stage::Opening { .. }) {
            return Err(Dropped::Stray);
        }
        let id = session.id;
        let reason = match why {
            Refusal::Full => End::PeerFull,
            Refusal::Application => End::Refused,
            Refusal::Cipher => End::CipherRefused,
            Refusal::Draining => End::PeerDraining,
        };
        self.end(id, reason);
        Ok(())
    }

    /// Handles a refusal whose reason the responder has sealed.
    fn on_told(
        &mut self,
        from: Peer,
        packet: &Handshake<'_>,
        message: &[u8],
    ) -> Result<(), Dropped> {
        let session = self.ours(from, packet)?;
        let Stage::Opening { noise, .. } = &mut session.stage else {
            return Err(Dropped::Stray);
        };
        let text = noise.read(message).ok_or(Dropped::Unproven)?;
        let told = Told::decode(&text).ok_or(Dropped::Malformed)?;
        let id = session.id;
        self.counters.failed += 1;
        self.remove(id);
        self.events.push_back(Event::Refused { session: id, told });
        Ok(())
    }

    /// Handles the first packet of the peer under the new keys. The session is connected, and an older session with the same
    /// address ends.
    pub(crate) fn confirm(&mut self, id: SessionId) {
        let keepalive = self.config.keepalive;
        let Some(session) = self.get_mut(id) else { return };
        let stage = core::mem::replace(&mut session.stage, Stage::Connected);
        let hello = core::mem::take(&mut session.hello);
        let Session { peer, initiator, instance, charged, .. } = *session;
        if let Some(who) = charged {
            self.quotas.connected(who);
        }
        if !matches!(stage, Stage::Confirming) {
            self.pending.remove(&(peer, initiator));
            if let Some(&old) = self.by_peer.get(&peer) {
                let reason = match self.get(old) {
                    // This side was opening a session at the same time.
                    Some(old) if !old.is_connected() => End::Crossed,
                    Some(old) if old.instance == instance => End::Replaced,
                    _ => End::Restarted,
                };
                self.end(old, reason);
            }
            self.by_peer.insert(peer, id);
        }
        self.counters.connected += 1;
        self.events.push_back(Event::Connected { session: id, hello });
        if let Some(session) = self.get(id) {
            self.set_timer(id, ping_at(session, keepalive));
        }
    }

    pub(crate) fn drop(&mut self, why: Dropped) -> Received<'static> {
        self.counters.count(why);
        Received::Dropped(why)
    }
}
