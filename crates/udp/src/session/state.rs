//! One session, from the first Hello to its end.

use apus_units::Time;

use super::cipher::Mode;
use super::cookie::Cookie;
use super::event::{End, SessionId};
use super::guard::Guard;
use super::identity::PeerKey;
use super::key::KeyId;
use super::noise::Noise;
use super::peer::Peer;
use super::ports::Ports;
use super::quota::Principal;
use super::window::Accepted;

/// The progress of a session.
pub(crate) enum Stage {
    /// Opened here: requests a cookie.
    Asking,
    /// Opened here: has sent its Init, which is kept for repetition, and waits for the Response. If `asks` is set, it
    /// requests a cookie again, since the responder may have been restarted.
    Opening { noise: Noise, message: Vec<u8>, cookie: Cookie, asks: bool },
    /// Opened here: has its keys, and waits for the responder's first packet under them.
    Confirming,
    /// Opened by the peer: waits for the application.
    Offered { noise: Noise },
    /// Opened by the peer and accepted: keeps its Response, and waits for the first packet under the new keys.
    Answered { response: Vec<u8> },
    /// Usable in both directions.
    Connected,
    /// Ended: its last packet is still to be sent.
    Closing,
}

impl Stage {
    /// Returns `true` if the session waits for a cookie.
    pub(crate) fn asks(&self) -> bool {
        matches!(self, Self::Asking | Self::Opening { asks: true, .. })
    }

    /// Returns `true` if the peer has opened the session and not confirmed it.
    pub(crate) fn is_pending(&self) -> bool {
        matches!(self, Self::Offered { .. } | Self::Answered { .. })
    }
}

/// Packets that a session has to send, one bit each.
pub(crate) mod want {
    pub(crate) const HELLO: u16 = 1;
    pub(crate) const INIT: u16 = 2;
    pub(crate) const RESPONSE: u16 = 4;
    pub(crate) const PING: u16 = 8;
    pub(crate) const PONG: u16 = 16;
    pub(crate) const CLOSE: u16 = 32;
    pub(crate) const DRAINING: u16 = 64;
    pub(crate) const IDLE: u16 = 128;
    pub(crate) const PORTS: u16 = 256;
}

/// Doubt whether the peer still has the session. The peer is pinged meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doubt {
    /// Time at which the session is given up if no answer arrives.
    pub(crate) until: Time,
    /// Reason for the end of the session in that case.
    pub(crate) reason: End,
    /// Number of pings sent.
    pub(crate) tries: u32,
}

/// One session.
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) peer: Peer,
    /// Further ports in addition to the ports of the handshake, if the session uses any.
    pub(crate) ports: Option<Box<Ports>>,
    /// Local source and destination of the last ping.
    pub(crate) pinged_from: Peer,
    pub(crate) key: KeyId,
    /// Own key of the peer, and own key of this side, if both sides have one. The peer's key is proved once the session is
    /// connected, or is offered to this side.
    pub(crate) identity: Option<PeerKey>,
    pub(crate) own: Option<PeerKey>,
    /// Holder whose quota the session counts for, if the peer opened it.
    pub(crate) charged: Option<Principal>,
    /// The account of the session's peer, once the secrets are known ([`Shares`](super::share::Shares)).
    pub(crate) account: Option<usize>,
    /// The protection that its initiator proposed.
    pub(crate) mode: Mode,
    pub(crate) stage: Stage,
    /// Whether an unproven packet from the peer's address claimed that the peer is in the other mode.
    pub(crate) other_mode: bool,
    /// Present once the secrets are known.
    pub(crate) guard: Option<Guard>,
    pub(crate) window: Accepted,
    /// The peer's number for the session, once known.
    pub(crate) remote: u32,
    /// The peer's process, once known.
    pub(crate) instance: [u8; 16],
    /// The hello of this side's application until it is sent, then the peer's until the session is connected.
    pub(crate) hello: Box<[u8]>,
    /// The initiator's number and cookie, by which a repeated Init is recognised.
    pub(crate) initiator: u32,
    pub(crate) shown: Option<Cookie>,
    pub(crate) since: Time,
    pub(crate) last_received: Time,
    pub(crate) doubt: Option<Doubt>,
    /// Number of times that the current packet of the handshake was sent.
    pub(crate) tries: u32,
    /// Packets to send, bits of [`want`].
    pub(crate) wants: u16,
    /// Time at which the timer of this session is due.
    pub(crate) timer: Time,
}

impl Session {
    /// Returns `true` if the peer opened the session.
    pub(crate) fn is_opened_by_peer(&self) -> bool {
        self.shown.is_some()
    }

    /// Returns the quota holder that the peer is.
    pub(crate) fn holder(&self) -> Principal {
        // Sessions are opened here with listed peers only.
        let opened_here = self.identity.map_or(Principal::Key(self.key), Principal::Peer);
        self.charged.unwrap_or(opened_here)
    }

    /// Returns `true` if packets of the transport can be sent.
    #[inline]
    pub(crate) fn is_connected(&self) -> bool {
        matches!(self.stage, Stage::Connected)
    }
}
