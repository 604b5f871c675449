//! Errors of hosts, connections and ops, and their remedies.

use std::io;
use std::net::SocketAddr;

use thiserror::Error;

use crate::session::{Cipher, PeerNameError};

/// An engine that could not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// A setting is impossible or contradicts another.
    #[error("{0}")]
    Setting(String),
    /// The socket could not be opened at this address.
    #[error("cannot open a UDP socket at {0}: {1}")]
    Bind(SocketAddr, io::Error),
    /// The operating system refused another service that the engine needs.
    #[error("cannot {0}: {1}")]
    System(&'static str, io::Error),
}

/// Why a connection could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// The engine has as many connections as its configuration allows.
    #[error("the engine has as many connections as `session.max_sessions` allows; close one first")]
    TooMany,
    /// The peer did not answer the handshake in time: it does not run, has a different key, or packets are lost. A host
    /// does not tell a stranger that its key is unknown, but its own application
    /// ([`Host::dropped_handshake`](crate::Host::dropped_handshake)).
    #[error(
        "no answer from the peer; check the address, that it is running, and that both sides use the same key \
         (a host logs attempts under another key, and does not answer them)"
    )]
    NoAnswer,
    /// As `NoAnswer`, and an ICMP message said that the peer's port is closed. Anyone on the path can forge that, so it
    /// does not end the attempt early.
    #[error(
        "no answer from the peer: its machine says that the port is closed; check the address, and that the \
         peer is running"
    )]
    PortClosed,
    /// As `NoAnswer`, and the network reported that it has no route to this address.
    #[error(
        "no answer from the peer: the network says that it cannot reach this address; check the address and \
         the routes"
    )]
    NoRoute,
    /// As `NoAnswer`, and an unproven packet from this address claimed that one side is insecure and the other has keys.
    #[error(
        "no session: one side is insecure and the other has keys (an unproven packet from the peer's address \
         said so); give both the same key file"
    )]
    OtherMode,
    /// The address family (IPv4, IPv6) differs from the host's own.
    #[error(
        "the peer's address {peer} and the host's own {own} belong to different families; use IPv4 for both, \
         or IPv6 for both"
    )]
    Family {
        /// The peer's address.
        peer: SocketAddr,
        /// The host's own.
        own: SocketAddr,
    },
    /// The peer refused the connection.
    #[error(
        "the peer refused the connection: its application closed it, or its backlog (`max_unaccepted`) is full"
    )]
    Refused,
    /// The peer's application refused the connection for this reason.
    #[error("the peer refused the connection: {0}")]
    RefusedBecause(String),
    /// The peer does not list the key of this host.
    #[error(
        "the peer does not know the key of this host; add this host's line `apus-peer-1` (`apus key --public`) to the \
         peer's key file"
    )]
    Unlisted,
    /// This host's key has as many connections or handshakes at the peer as its quota allows.
    #[error(
        "this host has as many connections at the peer as its quota allows there; close one, or wait until the peer's \
         application has accepted them"
    )]
    Quota,
    /// The ring of keys does not say which peer to connect to.
    #[error("{0}")]
    Name(#[from] PeerNameError),
    /// The peer has no room for another connection.
    #[error("the peer has no room for another connection")]
    PeerFull,
    /// The peer does not accept this cipher. Also reported if both sides connect at the same time (see `Crossed`).
    #[error(
        "the peer does not accept the cipher {0}; {others}accept {0} at the peer (`session.accept_ciphers`)",
        others = others(*.0)
    )]
    CipherRefused(Cipher),
    /// The ring has no such key.
    #[error("unknown key; choose one of the key file")]
    NoKey,
    /// A connection to this address is open or being opened.
    #[error("a connection to this address is open; use its flows, or close it first")]
    Exists,
    /// The peer connected at the same time. Accept and use its connection.
    #[error("the peer connected at the same time; accept and use its connection")]
    Crossed,
    /// The peer is shutting down ([`Host::drain`](crate::Host::drain)) and takes no new connections.
    #[error("the peer is shutting down and takes no new connections; connect to another host")]
    PeerDraining,
    /// This host drains ([`Host::drain`](crate::Host::drain)) and opens no connections.
    #[error("this host is shutting down and opens no connections")]
    Draining,
    /// An argument is impossible: the number of flows, or a traffic class. The text says what is possible.
    #[error("{0}")]
    Request(String),
    /// Protocol mismatch, or settings that the handshake cannot express; the text gives the detail.
    #[error("{0}")]
    Incompatible(String),
    /// The engine has stopped.
    #[error("the engine has stopped")]
    Stopped,
    /// The engine failed: see [`End::EngineFailed`].
    #[error("{}", End::EngineFailed)]
    EngineFailed,
    /// The call had no effect: see [`End::WouldDeadlock`].
    #[error("{}", End::WouldDeadlock)]
    WouldDeadlock,
}

/// A handshake that a host dropped without an answer, because its sender proved no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("handshake from {from} dropped: {fault}")]
#[non_exhaustive]
pub struct DroppedHandshake {
    /// Its source address, which may be forged.
    pub from: SocketAddr,
    /// Its fault.
    pub fault: HandshakeFault,
}

/// The fault of a handshake that was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum HandshakeFault {
    /// The key of the handshake is not in the ring.
    #[error("its key is unknown to this host")]
    UnknownKey,
    /// The handshake does not prove its key, or arrived too late.
    #[error("it does not prove its key, or arrived too late")]
    Unproven,
    /// The handshake is insecure, and this host has keys.
    #[error("it is insecure, and this host has keys")]
    Insecure,
    /// The handshake is under a key, and this host is insecure.
    #[error("it is under a key, and this host is insecure")]
    Sealed,
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum End {
    /// This side closed it.
    #[error("the connection was closed here")]
    ClosedHere,
    /// The peer closed it.
    #[error("the peer closed the connection")]
    ClosedByPeer,
    /// The peer was silent for too long.
    #[error("the peer was silent for too long")]
    Silent,
    /// The peer was restarted and does not know this connection.
    #[error("the peer was restarted")]
    PeerRestarted,
    /// The peer opened another connection, which replaces this one.
    #[error("the peer opened another connection in its place")]
    Replaced,
    /// This side removed its key from the ring.
    #[error("its key was withdrawn here")]
    KeyWithdrawn,
    /// The engine has stopped.
    #[error("the engine has stopped")]
    Stopped,
    /// The engine panicked, in application code that it ran (the memory of a region or of a read) or by a bug.
    /// All its connections ended with it.
    #[error("an engine of this host panicked; its connections ended; start another host")]
    EngineFailed,
    /// Not an end: the call that returned it did not wait and had no effect. Its thread holds the memory of a region of this host
    /// ([`Region::read`](crate::Region::read), [`Region::write`](crate::Region::write),
    /// [`Region::lock`](crate::Region::lock)), for which an engine may wait, or is running an engine, which calls accept hooks,
    /// algorithms and wakers. So the thread would wait for itself.
    #[error(
        "the call would wait for its own thread, which holds the memory of a region of this host or runs its engine; give the \
         memory back first, or wait in another thread"
    )]
    WouldDeadlock,
}

/// Why an op was not accepted. It had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SubmitError {
    /// Back-pressure: the limit on outstanding ops or bytes is reached. Wait for a completion, then try again.
    #[error("the limit on outstanding ops or bytes is reached; wait for a completion")]
    Full,
    /// The peer is shutting down ([`Host::drain`](crate::Host::drain)) and takes no new ops. Outstanding ops go on.
    #[error("the peer is shutting down and takes no new ops; connect to another host")]
    PeerDraining,
    /// This host drains ([`Host::drain`](crate::Host::drain)). Only messages may be submitted, since they may answer.
    #[error("this host is shutting down and submits no reads and writes")]
    Draining,
    /// The op is longer than the configuration of either side allows.
    #[error("an op of this kind moves at most {limit} bytes; split it")]
    TooLong {
        /// Maximum number of bytes of an op of this kind.
        limit: u64,
    },
    /// A one-sided op whose address plus length is 2^64 or more.
    #[error("address {address} + {length} bytes reaches 2^64; address + length must be below that")]
    AddressOverflow {
        /// First byte within the region.
        address: u64,
        /// Number of bytes.
        length: u64,
    },
    /// An atomic op whose address is not a multiple of 8.
    #[error("address {address}: the address of an atomic op must be a multiple of 8")]
    Unaligned {
        /// First byte within the region.
        address: u64,
    },
    /// The connection has ended.
    #[error("{0}")]
    Ended(End),
}

/// How an accepted op failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OpError {
    /// No part of it was sent: the peer has not seen it.
    #[error("no part of the op was sent: {0}")]
    NotSent(Cause),
    /// The peer refused it and applied no part of it.
    #[error("the peer refused the op: {0}")]
    Refused(Refusal),
    /// Parts of it, or all, may have been applied at the peer.
    #[error("the op may have been applied in part or whole: {0}")]
    Unknown(Cause),
}

/// Why an op ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Cause {
    /// The application cancelled it.
    #[error("it was cancelled")]
    Cancelled,
    /// Its deadline passed.
    #[error("its deadline passed")]
    Deadline,
    /// The peer withdrew the region while the op was outstanding.
    #[error("the peer withdrew the region meanwhile")]
    Withdrawn,
    /// A packet of it could not be built because its memory changed its length after the submission.
    #[error("a packet of it could not be built: its memory changed its length")]
    Unsendable,
    /// Its connection ended.
    #[error("{0}")]
    Ended(End),
}

/// Why a peer refuses an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// No region has this key (any more).
    #[error("the peer has no region with this key")]
    NoRegion,
    /// The region does not allow this kind of access. Atomic ops are a right of their own ([`Access::ATOMIC`](crate::Access::ATOMIC)).
    #[error(
        "the region does not allow this kind of access (reads, writes and atomic ops are rights of their own)"
    )]
    NotAllowed,
    /// The op reaches beyond the region's end.
    #[error("the op reaches beyond the region's end")]
    OutOfBounds,
    /// The message is longer than the peer accepts.
    #[error("the message is longer than the peer accepts")]
    TooLong,
}

/// Returns the remedies for a refused cipher on this side.
fn others(refused: Cipher) -> String {
    let others = Cipher::available().filter(|&cipher| cipher != refused);
    others.map(|cipher| format!("use {cipher} here (`session.cipher`), or ")).collect()
}
