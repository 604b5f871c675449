//! Errors of hosts, connections and ops, and their remedies.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::SocketAddr;

use crate::session::Cipher;

/// An engine that could not start.
#[derive(Debug)]
pub enum StartError {
    /// A setting is impossible or contradicts another.
    Setting(String),
    /// The socket could not be opened at this address.
    Bind(SocketAddr, io::Error),
    /// The operating system refused another service that the engine needs.
    System(&'static str, io::Error),
}

/// Why a connection could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectError {
    /// The engine has as many connections as its configuration allows.
    TooMany,
    /// The peer did not answer the handshake in time: it does not run, has a different key, or packets are lost. A host
    /// does not tell a stranger that its key is unknown, but its own application
    /// ([`Host::dropped_handshake`](crate::Host::dropped_handshake)).
    NoAnswer,
    /// As `NoAnswer`, and an ICMP message said that the peer's port is closed. Anyone on the path can forge that, so it
    /// does not end the attempt early.
    PortClosed,
    /// As `NoAnswer`, and the network reported that it has no route to this address.
    NoRoute,
    /// As `NoAnswer`, and an unproven packet from this address claimed that one side is insecure and the other has keys.
    OtherMode,
    /// The address family (IPv4, IPv6) differs from the host's own.
    Family {
        /// The peer's address.
        peer: SocketAddr,
        /// The host's own.
        own: SocketAddr,
    },
    /// The peer refused the connection.
    Refused,
    /// The peer has no room for another connection.
    PeerFull,
    /// The peer does not accept this cipher. Also reported if both sides connect at the same time (see `Crossed`).
    CipherRefused(Cipher),
    /// The ring has no such key.
    NoKey,
    /// A connection to this address is open or being opened.
    Exists,
    /// The peer connected at the same time. Accept and use its connection.
    Crossed,
    /// Protocol mismatch, or settings that the handshake cannot express; the text gives the detail.
    Incompatible(String),
    /// The engine has stopped.
    Stopped,
    /// The engine failed: see [`End::EngineFailed`].
    EngineFailed,
}

/// A handshake that a host dropped without an answer, because its sender proved no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DroppedHandshake {
    /// Its source address, which may be forged.
    pub from: SocketAddr,
    /// Its fault.
    pub fault: HandshakeFault,
}

/// The fault of a handshake that was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeFault {
    /// Its key is not in the ring.
    UnknownKey,
    /// It does not prove its key, or came too late.
    Unproven,
    /// The handshake is insecure, and this host has keys.
    Insecure,
    /// The handshake is under a key, and this host is insecure.
    Sealed,
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// This side closed it.
    ClosedHere,
    /// The peer closed it.
    ClosedByPeer,
    /// The peer was silent for too long.
    Silent,
    /// The peer was restarted and does not know this connection.
    PeerRestarted,
    /// The peer opened another connection, which replaces this one.
    Replaced,
    /// This side removed its key from the ring.
    KeyWithdrawn,
    /// The engine has stopped.
    Stopped,
    /// The engine panicked, in application code that it ran (the memory of a region or of a read) or by a bug.
    /// All its connections ended with it.
    EngineFailed,
}

/// Why an op was not accepted. It had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubmitError {
    /// Back-pressure: the limit on outstanding ops or bytes is reached. Wait for a completion, then try again.
    Full,
    /// The op is longer than the configuration of either side allows.
    TooLong {
        /// Maximum number of bytes of an op of this kind.
        limit: u64,
    },
    /// A read or write whose address plus length is 2^64 or more.
    AddressOverflow {
        /// First byte within the region.
        address: u64,
        /// Number of bytes.
        length: u64,
    },
    /// The connection has ended.
    Ended(End),
}

/// How an accepted op failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpError {
    /// No part of it was sent: the peer has not seen it.
    NotSent(Cause),
    /// The peer refused it and applied no part of it.
    Refused(Refusal),
    /// Parts of it, or all, may have been applied at the peer.
    Unknown(Cause),
}

/// Why an op ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The application cancelled it.
    Cancelled,
    /// Its deadline passed.
    Deadline,
    /// The peer withdrew the region while the op was outstanding.
    Withdrawn,
    /// A packet of it could not be built because its memory changed its length after the submission.
    Unsendable,
    /// Its connection ended.
    Ended(End),
}

/// Why a peer refuses an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No region has this key (any more).
    NoRegion,
    /// The region does not allow this kind of access.
    NotAllowed,
    /// The op reaches beyond the region's end.
    OutOfBounds,
    /// The message is longer than the peer accepts.
    TooLong,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting(what) => f.write_str(what),
            Self::Bind(address, error) => {
                write!(f, "cannot open a UDP socket at {address}: {error}")
            }
            Self::System(what, error) => write!(f, "cannot {what}: {error}"),
        }
    }
}

impl Error for StartError {}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany => f.write_str(
                "the engine has as many connections as `session.max_sessions` allows; close one first",
            ),
            Self::NoAnswer => f.write_str(
                "no answer from the peer; check the address, that it is running, and that both sides use the \
                 same key (a host logs attempts under another key, and does not answer them)",
            ),
            Self::PortClosed => f.write_str(
                "no answer from the peer: its machine says that the port is closed; check the address, and \
                 that the peer is running",
            ),
            Self::NoRoute => f.write_str(
                "no answer from the peer: the network says that it cannot reach this address; check the \
                 address and the routes",
            ),
            Self::OtherMode => f.write_str(
                "no session: one side is insecure and the other has keys (an unproven packet from the peer's \
                 address said so); give both the same key file",
            ),
            Self::Family { peer, own } => write!(
                f,
                "the peer's address {peer} and the host's own {own} belong to different families; use IPv4 \
                 for both, or IPv6 for both"
            ),
            Self::Refused => f.write_str(
                "the peer refused the connection: its application closed it, or its backlog \
                 (`max_unaccepted`) is full",
            ),
            Self::PeerFull => f.write_str("the peer has no room for another connection"),
            Self::CipherRefused(cipher) => {
                write!(f, "the peer does not accept the cipher {cipher}; ")?;
                for other in Cipher::available().filter(|other| other != cipher) {
                    write!(f, "use {other} here (`session.cipher`), or ")?;
                }
                write!(f, "accept {cipher} at the peer (`session.accept_ciphers`)")
            }
            Self::NoKey => f.write_str("unknown key; choose one of the key file"),
            Self::Exists => f.write_str(
                "a connection to this address is open; use its flows, or close it first",
            ),
            Self::Crossed => f.write_str(
                "the peer connected at the same time; accept and use its connection",
            ),
            Self::Incompatible(what) => f.write_str(what),
            Self::Stopped => f.write_str("the engine has stopped"),
            Self::EngineFailed => End::EngineFailed.fmt(f),
        }
    }
}

impl Error for ConnectError {}

impl fmt::Display for HandshakeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownKey => "its key is unknown to this host",
            Self::Unproven => "it does not prove its key, or arrived too late",
            Self::Insecure => "it is insecure, and this host has keys",
            Self::Sealed => "it is under a key, and this host is insecure",
        })
    }
}

impl fmt::Display for DroppedHandshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "handshake from {} dropped: {}", self.from, self.fault)
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ClosedHere => "the connection was closed here",
            Self::ClosedByPeer => "the peer closed the connection",
            Self::Silent => "the peer was silent for too long",
            Self::PeerRestarted => "the peer was restarted",
            Self::Replaced => "the peer opened another connection in its place",
            Self::KeyWithdrawn => "its key was withdrawn here",
            Self::Stopped => "the engine has stopped",
            Self::EngineFailed => {
                "an engine of this host panicked; its connections ended; start another host"
            }
        })
    }
}

impl Error for End {}

impl fmt::Display for SubmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str(
                "the limit on outstanding ops or bytes is reached; wait for a completion",
            ),
            Self::TooLong { limit } => {
                write!(f, "an op of this kind moves at most {limit} bytes; split it")
            }
            Self::AddressOverflow { address, length } => write!(
                f,
                "address {address} + {length} bytes reaches 2^64; address + length must be below that"
            ),
            Self::Ended(end) => end.fmt(f),
        }
    }
}

impl Error for SubmitError {}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cancelled => f.write_str("it was cancelled"),
            Self::Deadline => f.write_str("its deadline passed"),
            Self::Withdrawn => f.write_str("the peer withdrew the region meanwhile"),
            Self::Unsendable => {
                f.write_str("a packet of it could not be built: its memory changed its length")
            }
            Self::Ended(end) => end.fmt(f),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoRegion => "the peer has no region with this key",
            Self::NotAllowed => "the region does not allow this kind of access",
            Self::OutOfBounds => "the op reaches beyond the region's end",
            Self::TooLong => "the message is longer than the peer accepts",
        })
    }
}

impl fmt::Display for OpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSent(cause) => write!(f, "no part of the op was sent: {cause}"),
            Self::Refused(refusal) => write!(f, "the peer refused the op: {refusal}"),
            Self::Unknown(cause) => {
                write!(f, "the op may have been applied in part or whole: {cause}")
            }
        }
    }
}

impl Error for OpError {}
