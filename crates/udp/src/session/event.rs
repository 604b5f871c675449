//! Events and results of the session table.

use std::fmt;

use apus_wire::{EncodeError, Extension, Header};
use thiserror::Error;

use super::handshake::MAX_HELLO_BYTES;
use super::identity::PeerKey;
use super::key::KeyId;
use super::peer::Peer;
use super::told::Told;

/// The number of a session in its table. A number is reused after 4096 other sessions in the same slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub(crate) u32);

impl SessionId {
    /// Returns the number that peers put on their packets.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Returns its slot in the table, 0 to `max_sessions - 1`: an index for the caller's own state per session.
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
    /// A peer that has proven its key and its address requests a session: accept or refuse it.
    Incoming {
        /// The requested session.
        session: SessionId,
        /// The peer.
        from: Peer,
        /// The shared key that it proved.
        key: KeyId,
        /// The key of its own that it proved, if both sides have one.
        identity: Option<PeerKey>,
        /// Data of its application.
        hello: Box<[u8]>,
    },
    /// The session is usable in both directions.
    Connected {
        /// The session.
        session: SessionId,
        /// Data of the peer's application; for a session accepted here, the hello of [`Event::Incoming`] again.
        hello: Box<[u8]>,
    },
    /// The session has ended, whether it was connected or not. It causes no further event.
    Ended {
        /// The session.
        session: SessionId,
        /// The reason.
        reason: End,
    },
    /// The peer has refused the session that this side opened, and said why. It causes no further event.
    Refused {
        /// The session.
        session: SessionId,
        /// The reason, which only the peer can have sent.
        told: Told,
    },
    /// The peer takes no new ops: submit none, and call
    /// [`Sessions::announce_idle`](super::Sessions::announce_idle) if none is outstanding.
    PeerDraining {
        /// The session.
        session: SessionId,
    },
    /// The peer has no outstanding op, as of its answer to
    /// [`Sessions::announce_draining`](super::Sessions::announce_draining).
    PeerIdle {
        /// The session.
        session: SessionId,
    },
    /// Packets are sealed by a new key from now on.
    KeyChanged {
        /// The session.
        session: SessionId,
    },
}

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The peer closed it.
    Closed,
    /// The peer was silent for too long.
    Idle,
    /// The peer does not know the session: it was restarted, or gave it up.
    Forgotten,
    /// The same address has opened a new session, as a new process.
    Restarted,
    /// The same address has opened a new session, as the same process.
    Replaced,
    /// The handshake was not completed in time: no process at the address, or a different key.
    NoAnswer,
    /// As `NoAnswer`, and an unproven packet claimed that one side is insecure and the other has keys.
    OtherMode,
    /// The peer has no room for a session.
    PeerFull,
    /// The peer's application refused the session.
    Refused,
    /// The peer does not accept the proposed cipher ([`Config::cipher`](super::Config::cipher)).
    CipherRefused,
    /// The peer's host drains and takes no new sessions.
    PeerDraining,
    /// Its key, or that of this side, was removed from the ring.
    KeyWithdrawn,
    /// Both sides connected at the same time. The peer's session replaces this one.
    Crossed,
}

/// The content of a datagram.
#[derive(Debug, PartialEq, Eq)]
pub enum Received<'d> {
    /// An authentic packet of the transport, seen for the first time.
    Packet {
        /// Its session. The caller must check that the header's flow belongs to it.
        session: SessionId,
        /// Its header.
        header: Header,
        /// The number of the peer's port that it comes from; 0 is that of the handshake.
        path: u8,
        /// The fields of its flow's algorithm. Those that switches write are not authentic.
        extension: Extension<'d>,
        /// Its payload, within the datagram.
        payload: &'d [u8],
    },
    /// A switch's signal to the source of a packet, from the address of a connected peer. It is unauthenticated.
    Signal {
        /// The session with that peer.
        session: SessionId,
        /// Its header, which names a flow as the peer knows it.
        header: Header,
    },
    /// A probe of the path. Answer it with
    /// [`Sessions::seal_probe_answer`](super::Sessions::seal_probe_answer).
    Probe {
        /// Its session.
        session: SessionId,
        /// Where it came from, and where the answer goes.
        from: Peer,
        /// Its bytes.
        length: usize,
    },
    /// The peer accepts packets from a port of this side.
    Joined {
        /// The session.
        session: SessionId,
        /// The port's number.
        number: u8,
        /// Bytes of the request that it answers: packets of that length arrive.
        length: usize,
    },
    /// The answer to a probe of the path.
    ProbeAnswer {
        /// Its session.
        session: SessionId,
        /// The probe's bytes.
        length: usize,
    },
    /// A packet of the session layer. Events and packets to send may follow.
    Own,
    /// The datagram was dropped.
    Dropped(Dropped),
}

/// Why a datagram was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// Not a packet of this protocol.
    Malformed,
    /// A handshake of an insecure peer while this side has keys, or vice versa.
    OtherMode,
    /// For a session that is not known.
    UnknownSession,
    /// Not from the session's address.
    Address,
    /// A replay, or too old to exclude one.
    Replay,
    /// Not authentic, or damaged in transit.
    Forged,
    /// A handshake under a key that is not in the ring.
    UnknownKey,
    /// A handshake without proof of its key, or with an old cookie.
    Unproven,
    /// A handshake that needs an ephemeral key when the system gave no randomness.
    NoRandomness,
    /// A handshake packet that proves a known key and fits no handshake in progress.
    Stray,
    /// No room for another session.
    Full,
    /// A handshake beyond the rate of its address or key.
    Rate,
    /// A packet beyond its peer's share of an overloaded engine.
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

    /// Returns whether this also occurs without a fault: packets of a connection that has just ended, or that the network has
    /// repeated.
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

/// Why a session could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// The ring has no such key.
    #[error("unknown key {0}; choose one of the key file")]
    NoKey(KeyId),
    /// The hello is longer than [`MAX_HELLO_BYTES`].
    #[error("the hello is longer than {MAX_HELLO_BYTES} bytes")]
    HelloTooLong,
    /// The limit is reached: see [`Config::max_sessions`](super::Config::max_sessions).
    #[error("max_sessions are open or being opened; close one first")]
    Full,
    /// A session with this address exists already.
    #[error("{0} is open to this address; use it or close it first")]
    Exists(SessionId),
}

/// Why a session could not be accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AcceptError {
    /// The session does not wait for an answer: it was answered or given up before.
    #[error("the session does not wait for an answer")]
    NotWaiting,
    /// The hello is longer than [`MAX_HELLO_BYTES`].
    #[error("the hello is longer than {MAX_HELLO_BYTES} bytes")]
    HelloTooLong,
}

/// Why a packet could not be sealed. No packet number is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SealError {
    /// The session is not connected.
    #[error("the session is not connected")]
    NotConnected,
    /// The header is illegal, or the buffer too short for header, payload and guard.
    #[error("{0}")]
    Encode(#[from] EncodeError),
    /// The session has used up its packet numbers.
    #[error("the session's packet numbers are used up; open another")]
    Exhausted,
}
