//! Events and results of the session table.

use std::fmt;

use apus_wire::{EncodeError, Extension, Header};
use thiserror::Error;

use super::handshake::MAX_HELLO_BYTES;
use super::identity::PeerKey;
use super::key::KeyId;
use super::peer::Peer;
use super::told::Told;

/// Number of a session in its table. A slot uses each of its 4096 numbers before it repeats one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub(crate) u32);

impl SessionId {
    /// Returns the number, which peers put into their packets.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Returns the slot of the session in its table, 0 to `max_sessions - 1`. Callers can use it as an index of their own state
    /// per session.
    #[must_use]
    pub const fn index(self) -> usize {
        (self.0 & (super::config::MAX_SESSIONS - 1)) as usize
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "session {:08x}", self.0)
    }
}

/// An event of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A peer that has proved its key and its address requests a session. Accept or refuse the session.
    Incoming {
        /// The requested session.
        session: SessionId,
        /// The peer that requests the session.
        from: Peer,
        /// Public name of the credential that the peer proved.
        key: KeyId,
        /// Key of its own that the peer proved, if both sides have one.
        identity: Option<PeerKey>,
        /// Data of the peer's application.
        hello: Box<[u8]>,
    },
    /// The session is usable in both directions.
    Connected {
        /// The session.
        session: SessionId,
        /// Data of the peer's application. For a session accepted here, the hello of [`Event::Incoming`] again.
        hello: Box<[u8]>,
    },
    /// The session has ended, whether it was connected or not. No further event of the session follows.
    Ended {
        /// The session.
        session: SessionId,
        /// The reason.
        reason: End,
    },
    /// The peer has refused the session that this side opened, and stated the reason. No further event of the session follows.
    Refused {
        /// The session.
        session: SessionId,
        /// The reason, which only the peer can have sent.
        told: Told,
    },
    /// The peer accepts no new ops. Submit none, and call [`Sessions::announce_idle`](super::Sessions::announce_idle) if none is
    /// outstanding.
    PeerDraining {
        /// The session.
        session: SessionId,
    },
    /// The peer has no outstanding op, according to its answer to
    /// [`Sessions::announce_draining`](super::Sessions::announce_draining).
    PeerIdle {
        /// The session.
        session: SessionId,
    },
    /// From now on, packets are sealed by a new key.
    KeyChanged {
        /// The session.
        session: SessionId,
    },
}

/// Reason why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The peer closed the session.
    Closed,
    /// The peer was silent for too long.
    Idle,
    /// The peer does not know the session: the peer was restarted, or it gave up the session.
    Forgotten,
    /// A new process at the peer's address has opened a new session.
    Restarted,
    /// The peer's process, which has not restarted, has opened a new session.
    Replaced,
    /// The handshake was not completed in time: no process runs at the address, or the peer has a different key.
    NoAnswer,
    /// As `NoAnswer`, and an unproven packet claimed that one side is insecure and the other has keys.
    OtherMode,
    /// The peer has no room for a session.
    PeerFull,
    /// The peer's application refused the session.
    Refused,
    /// The peer does not accept the proposed cipher ([`Config::cipher`](super::Config::cipher)).
    CipherRefused,
    /// The peer's host drains and accepts no new sessions.
    PeerDraining,
    /// The key of the peer, or that of this side, was removed from the key ring.
    KeyWithdrawn,
    /// Both sides connected at the same time. The peer's session replaces this one.
    Crossed,
}

/// Content of a datagram.
#[derive(Debug, PartialEq, Eq)]
pub enum Received<'d> {
    /// An authentic packet of the transport, seen for the first time.
    Packet {
        /// Session of the packet. The caller must check that the header's flow belongs to the session.
        session: SessionId,
        /// Header of the packet.
        header: Header,
        /// Number of the peer's port from which the packet came; 0 is the port of the handshake.
        path: u8,
        /// Congestion fields of the flow's algorithm. Fields that switches write are not authentic.
        extension: Extension<'d>,
        /// Payload of the packet, within the datagram.
        payload: &'d [u8],
    },
    /// An unauthenticated signal of a switch to the source of a packet, from the address of a connected peer.
    Signal {
        /// Session with the peer.
        session: SessionId,
        /// Header of the signal, which names a flow as the peer knows it.
        header: Header,
    },
    /// A probe of the path. Answer it with [`Sessions::seal_probe_answer`](super::Sessions::seal_probe_answer).
    Probe {
        /// Session of the probe.
        session: SessionId,
        /// Source of the probe and destination of the answer.
        from: Peer,
        /// Length of the probe in bytes.
        length: usize,
    },
    /// The peer accepts packets from a port of this side.
    Joined {
        /// Session of the port.
        session: SessionId,
        /// Number of the port.
        number: u8,
        /// Length in bytes of the request that the peer answers: packets of that length arrive.
        length: usize,
    },
    /// The answer to a probe of the path.
    ProbeAnswer {
        /// Session of the probe.
        session: SessionId,
        /// Length of the probe in bytes.
        length: usize,
    },
    /// A packet of the session layer. Events and packets to send may follow.
    Own,
    /// The datagram was dropped.
    Dropped(Dropped),
}

/// Reason why a datagram was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// The datagram is not a packet of this protocol.
    Malformed,
    /// The datagram is a handshake of an insecure peer while this side has keys, or vice versa.
    OtherMode,
    /// The session of the packet is unknown.
    UnknownSession,
    /// The packet does not come from the address of its session.
    Address,
    /// The packet is a replay, or too old to exclude a replay.
    Replay,
    /// The packet is not authentic, or was damaged in transit.
    Forged,
    /// The key of the handshake is not in the key ring.
    UnknownKey,
    /// The handshake does not prove its key, or has an old cookie.
    Unproven,
    /// The handshake needs an ephemeral key, and the system provided no random bytes.
    NoRandomness,
    /// The handshake packet proves a known key but belongs to no handshake in progress.
    Stray,
    /// The table has no room for another session.
    Full,
    /// The handshake exceeds the rate limit of its address or key.
    Rate,
    /// The packet exceeds its peer's share of an overloaded engine.
    Share,
}

impl Dropped {
    /// All reasons, in the order of their declaration.
    pub(crate) const ALL: [Self; 13] = [
        Self::Malformed,
        Self::OtherMode,
        Self::UnknownSession,
        Self::Address,
        Self::Replay,
        Self::Forged,
        Self::UnknownKey,
        Self::Unproven,
        Self::NoRandomness,
        Self::Stray,
        Self::Full,
        Self::Rate,
        Self::Share,
    ];

    /// Returns `true` if this reason also occurs without a fault: for packets of a connection that has just ended, and for
    /// packets that the network has duplicated.
    pub(crate) const fn is_harmless(self) -> bool {
        match self {
            Self::UnknownSession | Self::Replay | Self::Stray => true,
            Self::Malformed
            | Self::OtherMode
            | Self::Address
            | Self::Forged
            | Self::UnknownKey
            | Self::Unproven
            | Self::NoRandomness
            | Self::Full
            | Self::Rate
            | Self::Share => false,
        }
    }
}

/// Reason why a session could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// The key ring does not contain this key.
    #[error("unknown key {0}; choose one of the key file")]
    NoKey(KeyId),
    /// The hello is longer than [`MAX_HELLO_BYTES`].
    #[error("the hello is longer than {MAX_HELLO_BYTES} bytes")]
    HelloTooLong,
    /// The table is full: see [`Config::max_sessions`](super::Config::max_sessions).
    #[error("max_sessions are open or being opened; close one first")]
    Full,
    /// A session with this address exists already.
    #[error("{0} is open to this address; use it or close it first")]
    Exists(SessionId),
}

/// Reason why a session could not be accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AcceptError {
    /// The session does not wait for an answer: it was answered or given up before.
    #[error("the session does not wait for an answer")]
    NotWaiting,
    /// The hello is longer than [`MAX_HELLO_BYTES`].
    #[error("the hello is longer than {MAX_HELLO_BYTES} bytes")]
    HelloTooLong,
}

/// Reason why a packet could not be sealed. No packet number was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SealError {
    /// The session is not connected.
    #[error("the session is not connected")]
    NotConnected,
    /// The header is illegal, the payload has another length than the header states, or the buffer is too short.
    #[error("{0}")]
    Encode(#[from] EncodeError),
    /// The session has used up its packet numbers.
    #[error("the session's packet numbers are used up; open another")]
    Exhausted,
}
