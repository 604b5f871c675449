//! One session, from the first Hello to its end.

use apus_units::Time;

use super::cipher::Mode;
use super::cookie::Cookie;
use super::event::{End, SessionId};
use super::guard::Guard;
use super::key::KeyId;
use super::noise::Noise;
use super::peer::Peer;
use super::window::Accepted;

/// Where a session stands.
pub(crate) enum Stage {
    /// Ours: asks for a cookie.
    Asking,
    /// Ours: has sent its Init, kept for sending again, and waits for the Response.
    Opening { noise: Noise, message: Vec<u8>, cookie: Cookie },
    /// Ours: has its keys, and waits for the responder's first packet under them.
    Confirming,
    /// The peer's: waits for our application.
    Offered { noise: Noise },
    /// The peer's: accepted, its Response kept; waits for the first packet under the new keys.
    Answered { response: Vec<u8> },
    /// Usable.
    Connected,
    /// Ours or the peer's: over, its last packet still to be sent.
    Closing,
}

/// Packets that a session has to send, as bits.
pub(crate) mod want {
    pub(crate) const HELLO: u8 = 1;
    pub(crate) const INIT: u8 = 2;
    pub(crate) const RESPONSE: u8 = 4;
    pub(crate) const PING: u8 = 8;
    pub(crate) const PONG: u8 = 16;
    pub(crate) const CLOSE: u8 = 32;
}

/// Pings under way: the peer must show itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doubt {
    /// When it has failed to.
    pub(crate) until: Time,
    /// What to call it then.
    pub(crate) reason: End,
    /// Pings sent.
    pub(crate) tries: u32,
}

/// One session.
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) peer: Peer,
    pub(crate) key: KeyId,
    /// What its initiator proposed, and a responder took.
    pub(crate) mode: Mode,
    pub(crate) stage: Stage,
    /// Somebody at the peer's address said, without proof, that it is in the other mode.
    pub(crate) other_mode: bool,
    /// Present from the Response on.
    pub(crate) guard: Option<Guard>,
    pub(crate) window: Accepted,
    /// The peer's number for the session, once known.
    pub(crate) remote: u32,
    /// The peer's process, once known.
    pub(crate) instance: [u8; 16],
    /// Our application's words while they are to be sent; then the peer's, until they are handed out.
    pub(crate) hello: Box<[u8]>,
    /// The initiator's number, and the cookie that it showed: tells an Init sent again.
    pub(crate) initiator: u32,
    pub(crate) shown: Option<Cookie>,
    pub(crate) since: Time,
    pub(crate) last_received: Time,
    pub(crate) doubt: Option<Doubt>,
    /// Times that the present packet of the handshake was sent.
    pub(crate) tries: u32,
    /// Packets to send, bits of [`want`].
    pub(crate) wants: u8,
    /// When the timer of this session is set.
    pub(crate) timer: Time,
}

impl Session {
    pub(crate) fn new(
        id: SessionId,
        peer: Peer,
        key: KeyId,
        mode: Mode,
        stage: Stage,
        now: Time,
    ) -> Self {
        Self {
            id,
            peer,
            key,
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
        }
    }

    /// Whether packets of the transport can go.
    #[inline]
    pub(crate) fn is_connected(&self) -> bool {
        matches!(self.stage, Stage::Connected)
    }
}
