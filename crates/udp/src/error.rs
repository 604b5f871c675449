//! Errors of hosts, connections and ops, and their remedies.

use std::io;
use std::net::SocketAddr;

use thiserror::Error;

use crate::session::{Cipher, PeerNameError};

/// Reason why a host could not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// A setting is impossible or contradicts another one.
    #[error("{0}")]
    Setting(String),
    /// The UDP socket could not be opened at this address.
    #[error("cannot open a UDP socket at {0}: {1}")]
    Bind(SocketAddr, io::Error),
    /// The operating system refused another service that the engine needs.
    #[error("cannot {0}: {1}")]
    System(&'static str, io::Error),
}

/// Reason why a connection could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// The engine has as many connections as its configuration allows.
    #[error("the engine has as many connections as `session.max_sessions` allows; close one first")]
    TooMany,
    /// The peer did not answer the handshake in time: it does not run, it has a different key, or packets are lost. A host does
    /// not tell an unauthenticated sender that its key is unknown, but reports it to its own application
    /// ([`Host::dropped_handshake`](crate::Host::dropped_handshake)).
    #[error(
        "no answer from the peer; check the address, that it is running, and that both sides use the same key \
         (a host logs attempts under another key, and does not answer them)"
    )]
    NoAnswer,
    /// As `NoAnswer`, and an ICMP message reported that the peer's port is closed. Anyone on the path can forge this message, so
    /// it does not end the attempt early.
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
    /// As `NoAnswer`, and an unauthenticated packet from this address reported that one side is insecure and the other has keys.
    #[error(
        "no session: one side is insecure and the other has keys (an unproven packet from the peer's address \
         said so); give both the same key file"
    )]
    OtherMode,
    /// The address families (IPv4, IPv6) of the peer and of this host differ.
    #[error(
        "the peer's address {peer} and the host's own {own} belong to different families; use IPv4 for both, \
         or IPv6 for both"
    )]
    Family {
        /// Address of the peer.
        peer: SocketAddr,
        /// Address of this host.
        own: SocketAddr,
    },
    /// The peer refused the connection: its application closed it, or its backlog is full.
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
    /// The key of this host has as many connections or handshakes at the peer as its quota allows.
    #[error(
        "this host has as many connections at the peer as its quota allows there; close one, or wait until the peer's \
         application has accepted them"
    )]
    Quota,
    /// The key ring does not determine which peer to connect to.
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
    /// The key ring does not contain the key.
    #[error("unknown key; choose one of the key file")]
    NoKey,
    /// A connection to this address is open or being opened.
    #[error("a connection to this address is open; use its flows, or close it first")]
    Exists,
    /// The peer connected at the same time. Accept and use the peer's connection.
    #[error("the peer connected at the same time; accept and use its connection")]
    Crossed,
    /// The peer is shutting down ([`Host::drain`](crate::Host::drain)) and accepts no new connections.
    #[error("the peer is shutting down and takes no new connections; connect to another host")]
    PeerDraining,
    /// This host is shutting down ([`Host::drain`](crate::Host::drain)) and opens no connections.
    #[error("this host is shutting down and opens no connections")]
    Draining,
    /// An argument is impossible: the number of flows, or a traffic class. The text states the allowed values.
    #[error("{0}")]
    Request(String),
    /// The protocols of the two sides do not match, or the handshake cannot express the settings. The text has the details.
    #[error("{0}")]
    Incompatible(String),
    /// The engine has stopped.
    #[error("the engine has stopped")]
    Stopped,
    /// The engine has failed: see [`End::EngineFailed`].
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
    /// Source address of the handshake, which may be forged.
    pub from: SocketAddr,
    /// Reason why the handshake was dropped.
    pub fault: HandshakeFault,
}

/// Reason why a handshake was dropped without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum HandshakeFault {
    /// The key ring does not contain the key of the handshake.
    #[error("its key is unknown to this host")]
    UnknownKey,
    /// The handshake does not prove its key, or it arrived too late.
    #[error("it does not prove its key, or arrived too late")]
    Unproven,
    /// The handshake is insecure, and this host has keys.
    #[error("it is insecure, and this host has keys")]
    Insecure,
    /// The handshake uses a key, and this host is insecure.
    #[error("it is under a key, and this host is insecure")]
    Sealed,
}

/// Reason why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum End {
    /// This side closed the connection.
    #[error("the connection was closed here")]
    ClosedHere,
    /// The peer closed the connection.
    #[error("the peer closed the connection")]
    ClosedByPeer,
    /// The peer was silent for too long ([`session::Config::idle_timeout`](crate::session::Config::idle_timeout)).
    #[error("the peer was silent for too long")]
    Silent,
    /// The peer was restarted and does not know this connection.
    #[error("the peer was restarted")]
    PeerRestarted,
    /// The peer opened another connection, which replaces this one.
    #[error("the peer opened another connection in its place")]
    Replaced,
    /// This side removed the connection's key from the key ring.
    #[error("its key was withdrawn here")]
    KeyWithdrawn,
    /// The engine has stopped.
    #[error("the engine has stopped")]
    Stopped,
    /// The engine panicked, because of a bug or in application code that it ran (the memory of a region or of a read). All
    /// connections of the engine ended.
    #[error("an engine of this host panicked; its connections ended; start another host")]
    EngineFailed,
    /// The call would have waited for its own thread. This is not an end: the call did not wait and had no effect.
    ///
    /// Either the thread holds the memory of a region of this host ([`Region::read`](crate::Region::read),
    /// [`Region::write`](crate::Region::write), [`Region::lock`](crate::Region::lock)), for which an engine may wait. Or the
    /// thread is running an engine, which calls accept hooks, algorithms and wakers.
    #[error(
        "the call would wait for its own thread, which holds the memory of a region of this host or runs its engine; give the \
         memory back first, or wait in another thread"
    )]
    WouldDeadlock,
}

/// Reason why an op was not accepted. The op had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SubmitError {
    /// The limit on outstanding ops or bytes is reached (back-pressure). Wait for a completion, then try again.
    #[error("the limit on outstanding ops or bytes is reached; wait for a completion")]
    Full,
    /// The peer is shutting down ([`Host::drain`](crate::Host::drain)) and accepts no new ops. Outstanding ops continue.
    #[error("the peer is shutting down and takes no new ops; connect to another host")]
    PeerDraining,
    /// This host is shutting down ([`Host::drain`](crate::Host::drain)). Only messages may be submitted, since they may answer
    /// requests.
    #[error("this host is shutting down and submits no reads and writes")]
    Draining,
    /// The op is longer than the configuration of either side allows.
    #[error("an op of this kind moves at most {limit} bytes; split it")]
    TooLong {
        /// Maximum number of bytes of an op of this kind.
        limit: u64,
    },
    /// Address plus length of the one-sided op is 2^64 or more.
    #[error("address {address} + {length} bytes reaches 2^64; address + length must be below that")]
    AddressOverflow {
        /// First byte within the region.
        address: u64,
        /// Number of bytes.
        length: u64,
    },
    /// The address of the atomic op is not a multiple of 8.
    #[error("address {address}: the address of an atomic op must be a multiple of 8")]
    Unaligned {
        /// First byte within the region.
        address: u64,
    },
    /// The connection has ended.
    #[error("{0}")]
    Ended(End),
}

/// Reason why an accepted op failed, and whether the peer may have applied it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OpError {
    /// No part of the op was sent: the peer has not seen it.
    #[error("no part of the op was sent: {0}")]
    NotSent(Cause),
    /// The peer refused the op and applied no part of it.
    #[error("the peer refused the op: {0}")]
    Refused(Refusal),
    /// The peer may have applied the op in part or in full.
    #[error("the op may have been applied in part or whole: {0}")]
    Unknown(Cause),
}

/// Reason why an op ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Cause {
    /// The application cancelled the op.
    #[error("it was cancelled")]
    Cancelled,
    /// The deadline of the op passed.
    #[error("its deadline passed")]
    Deadline,
    /// The peer withdrew the region while the op was outstanding.
    #[error("the peer withdrew the region meanwhile")]
    Withdrawn,
    /// A packet of the op could not be built, because the memory of the op changed its length after the submission.
    #[error("a packet of it could not be built: its memory changed its length")]
    Unsendable,
    /// The connection of the op ended.
    #[error("{0}")]
    Ended(End),
}

/// Reason why a peer refused an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The peer has no region with this key (any more), or the region's grant excludes this host.
    #[error("the peer has no region with this key")]
    NoRegion,
    /// The region does not allow this kind of access. Atomic ops are a separate right
    /// ([`Access::ATOMIC`](crate::Access::ATOMIC)).
    #[error(
        "the region does not allow this kind of access (reads, writes and atomic ops are rights of their own)"
    )]
    NotAllowed,
    /// The op reaches beyond the end of the region.
    #[error("the op reaches beyond the region's end")]
    OutOfBounds,
    /// The message is longer than the peer accepts.
    #[error("the message is longer than the peer accepts")]
    TooLong,
}

/// Returns the remedies on this side for a refused cipher.
fn others(refused: Cipher) -> String {
    let others = Cipher::available().filter(|&cipher| cipher != refused);
    others.map(|cipher| format!("use {cipher} here (`session.cipher`), or ")).collect()
}
