//! What the session table says to its caller.

use apus_wire::{EncodeError, Extension, Header};
use std::error::Error;
use std::fmt;

use super::key::KeyId;
use super::peer::Peer;

/// A session of one table. Not given again until 4096 others have taken its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub(crate) u32);

impl SessionId {
    /// Its number, as peers put it on their packets.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Its place in the table, 0 to `max_sessions - 1`: an index for what the caller keeps per session.
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

/// What happened to a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A peer that has proven its key and its address asks for a session: accept or refuse it.
    Incoming {
        /// The session that would be.
        session: SessionId,
        /// The peer.
        from: Peer,
        /// The key that it holds.
        key: KeyId,
        /// What its application says.
        hello: Box<[u8]>,
    },
    /// The session is usable, both ways.
    Connected {
        /// The session.
        session: SessionId,
        /// What the peer's application said; where the session was accepted here, it is the hello of
        /// [`Event::Incoming`] once more.
        hello: Box<[u8]>,
    },
    /// The session is over, whether it was connected or not; nothing more comes for it.
    Ended {
        /// The session.
        session: SessionId,
        /// Why.
        reason: End,
    },
}

/// Why a session is over.
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
    /// No handshake came about in time: nobody there, or another key.
    NoAnswer,
    /// As `NoAnswer`, and somebody said, without proof, that the peer is insecure and this side is not, or the
    /// other way round.
    OtherMode,
    /// The peer has no room for a session.
    PeerFull,
    /// The peer's application does not want the session.
    Refused,
    /// The peer does not take the cipher that was proposed ([`Config::cipher`](super::Config::cipher)).
    CipherRefused,
    /// Its key was taken from the ring.
    KeyWithdrawn,
    /// Both sides asked at the same time; the peer's session, which comes in, is the one to use.
    Crossed,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "the peer closed the session",
            Self::Idle => "the peer was silent for too long",
            Self::Forgotten => "the peer does not know the session any more: it was restarted",
            Self::Restarted => "the peer was restarted and has opened a new session",
            Self::Replaced => "the peer has opened a new session in place of this one",
            Self::NoAnswer => "no answer: nobody listens there, or its key is another",
            Self::OtherMode => "one side is in the insecure mode and the other has keys",
            Self::PeerFull => "the peer has no room for another session",
            Self::Refused => "the peer refuses the session",
            Self::CipherRefused => "the peer does not take the cipher that was proposed",
            Self::KeyWithdrawn => "its key is not in the ring any more",
            Self::Crossed => "both sides asked at once; the peer's session takes the place",
        })
    }
}

/// What a datagram was.
#[derive(Debug, PartialEq, Eq)]
pub enum Received<'d> {
    /// An authentic packet of the transport, seen for the first time.
    Packet {
        /// Its session. Whether the header's flow belongs to it is the caller's to check.
        session: SessionId,
        /// Its header.
        header: Header,
        /// The fields of its flow's algorithm, of which those that switches write are not authentic.
        extension: Extension<'d>,
        /// Its payload, in the datagram's own place.
        payload: &'d [u8],
    },
    /// A switch's word to the source of a packet, from the address of a connected peer. Nothing proves
    /// it.
    Signal {
        /// The session with that peer.
        session: SessionId,
        /// Its header, which names a flow as the peer knows it.
        header: Header,
    },
    /// A probe of the path, which has arrived: answer it with
    /// [`Sessions::seal_probe_answer`](super::Sessions::seal_probe_answer).
    Probe {
        /// Its session.
        session: SessionId,
        /// Its bytes.
        length: usize,
    },
    /// The answer to a probe of the path.
    ProbeAnswer {
        /// Its session.
        session: SessionId,
        /// The probe's bytes.
        length: usize,
    },
    /// The session's own affair; events and packets to send may follow.
    Own,
    /// Nothing to use.
    Dropped(Dropped),
}

/// Why a datagram was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// Not a packet of this protocol.
    Malformed,
    /// A handshake of a peer that is insecure, where this side has keys, or the other way round.
    OtherMode,
    /// For a session that is not known.
    UnknownSession,
    /// Not from the session's address.
    Address,
    /// Seen before, or too late to tell.
    Replay,
    /// Not authentic, or damaged on the way.
    Forged,
    /// A handshake under a key that is not in the ring.
    UnknownKey,
    /// A handshake that does not prove its key, or shows an old cookie.
    Unproven,
    /// A handshake that would need an ephemeral key, and the system gave no randomness.
    NoRandomness,
    /// A handshake packet that proves a known key and fits no handshake in progress.
    Stray,
    /// No room for another session.
    Full,
}

/// Why no session is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectError {
    /// The ring has no such key.
    NoKey(KeyId),
    /// The hello is longer than [`MAX_HELLO_BYTES`](super::MAX_HELLO_BYTES).
    HelloTooLong,
    /// There is no room: see [`Config::max_sessions`](super::Config::max_sessions).
    Full,
    /// There is a session with this address already.
    Exists(SessionId),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoKey(id) => write!(f, "there is no key {id} here; name one of the key file"),
            Self::HelloTooLong => {
                write!(f, "the hello is longer than {} bytes", super::MAX_HELLO_BYTES)
            }
            Self::Full => write!(f, "max_sessions are open or being opened; close one first"),
            Self::Exists(session) => {
                write!(f, "{session} is open to this address; use it or close it first")
            }
        }
    }
}

impl Error for ConnectError {}

/// Why a session is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcceptError {
    /// It is not waiting for an answer: answered before, or given up.
    NotWaiting,
    /// The hello is longer than [`MAX_HELLO_BYTES`](super::MAX_HELLO_BYTES).
    HelloTooLong,
}

impl fmt::Display for AcceptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotWaiting => f.write_str("the session does not wait for an answer"),
            Self::HelloTooLong => {
                write!(f, "the hello is longer than {} bytes", super::MAX_HELLO_BYTES)
            }
        }
    }
}

impl Error for AcceptError {}

/// Why a packet is not sealed; nothing is then used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealError {
    /// The session is not connected.
    NotConnected,
    /// The header is illegal, or the buffer too short for header, payload and guard.
    Encode(EncodeError),
    /// The session has used up its packet numbers.
    Exhausted,
}

impl fmt::Display for SealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotConnected => f.write_str("the session is not connected"),
            Self::Encode(error) => error.fmt(f),
            Self::Exhausted => {
                f.write_str("the session's packet numbers are used up; open another")
            }
        }
    }
}

impl Error for SealError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Encode(error) => Some(error),
            _ => None,
        }
    }
}

impl From<EncodeError> for SealError {
    fn from(error: EncodeError) -> Self {
        Self::Encode(error)
    }
}
