//! The state of a connection that its engine and the application share.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use apus_transport::{MAX_OP_BYTES, Op, OpKind, SubmitError as Refused};
use apus_units::planted::{Bug, is_planted};
use bytes::Bytes;

use crate::error::{End, SubmitError};
use crate::key_use::{KeyLimit, KeyUse};
use crate::op_counters::OpCounters;
use crate::session::{PeerKey, SessionId};
use crate::status::EngineStatus;

/// A message from the peer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// Index, within the connection, of the flow that carried the message.
    pub flow: usize,
    /// Bytes of the message.
    pub bytes: Bytes,
}

/// Limits of a connection, agreed in its handshake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionLimits {
    /// Maximum number of outstanding ops per flow that both sides accept.
    pub(crate) max_ops: u32,
    /// Maximum length in bytes of a message that the peer accepts.
    pub(crate) max_message: u64,
}

/// Limits on received messages, as in [`Config`](crate::Config).
#[derive(Clone, Copy, Debug)]
pub(crate) struct InboxLimits {
    pub(crate) max_message: u64,
    pub(crate) max_queued_bytes: u64,
    pub(crate) max_queued_messages: u32,
    /// Maximum number of bytes of messages over all connections of a peer that has a key of its own.
    pub(crate) quota_queued_bytes: KeyLimit,
}

/// Identity of the peer of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct PeerIdentity {
    /// Number of the connection, unique within the host.
    pub(crate) connection: u64,
    /// The peer's own key, which it proved.
    pub(crate) key: Option<PeerKey>,
    /// Name of the peer in the key ring.
    pub(crate) name: Option<Box<str>>,
}

/// The shared state of a connection.
pub(crate) struct ConnectionState {
    pub(crate) session: SessionId,
    pub(crate) peer: SocketAddr,
    pub(crate) who: PeerIdentity,
    pub(crate) engine: Arc<EngineStatus>,
    pub(crate) limits: ConnectionLimits,
    /// Number of outstanding ops of each flow.
    outstanding: Box<[AtomicU32]>,
    ended: OnceLock<End>,
    /// Whether the peer accepts no new ops.
    peer_draining: AtomicBool,
    /// Whether the application closes the connection. It closes as soon as its ops have ended.
    closing: AtomicBool,
    /// Counters of the ops that have ended, by kind.
    pub(crate) ops: OpCounters,
    /// Bytes of the messages that have arrived in part or in full and that the application has not taken.
    queued_bytes: AtomicU64,
    queued_messages: AtomicU32,
    /// Resources that all connections of the peer occupy, if it has a key of its own.
    used: Option<Arc<KeyUse>>,
    next_ticket: AtomicU64,
}

/// Returns the flow of the op with this ticket, on a connection with `flows` flows.
pub(crate) fn flow_of(ticket: u64, flows: usize) -> usize {
    ticket.checked_rem(flows as u64).unwrap_or(0) as usize
}

impl ConnectionState {
    /// Returns the state of a new connection with this number of flows.
    pub(crate) fn new(
        session: SessionId,
        peer: SocketAddr,
        who: PeerIdentity,
        engine: Arc<EngineStatus>,
        limits: ConnectionLimits,
        flows: usize,
        used: Option<Arc<KeyUse>>,
    ) -> Self {
        Self {
            used,
            session,
            peer,
            who,
            engine,
            limits,
            outstanding: (0..flows).map(|_| AtomicU32::new(0)).collect(),
            ended: OnceLock::new(),
            peer_draining: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            ops: OpCounters::default(),
            queued_bytes: AtomicU64::new(0),
            queued_messages: AtomicU32::new(0),
            next_ticket: AtomicU64::new(0),
        }
    }

    /// Returns the number of flows.
    pub(crate) fn flows(&self) -> usize {
        self.outstanding.len()
    }

    /// Returns a ticket for an op of flow `flow`, unique within the connection.
    pub(crate) fn ticket(&self, flow: usize) -> u64 {
        let number = self.next_ticket.fetch_add(1, Ordering::Relaxed);
        number * self.flows() as u64 + flow as u64
    }

    /// Records how the connection ended. Only the first call has an effect.
    pub(crate) fn set_ended(&self, end: End) {
        let _ = self.ended.set(end);
    }

    /// Returns how the connection ended, or `None` if that is not recorded.
    pub(crate) fn ended(&self) -> Option<End> {
        self.ended.get().copied()
    }

    /// Returns how the connection ended. If no end is recorded, the engine of the connection has ended.
    pub(crate) fn end(&self) -> End {
        let engine = if self.engine.has_failed() { End::EngineFailed } else { End::Stopped };
        self.ended().unwrap_or(engine)
    }

    /// Checks that a packet can express an op and that both sides accept it.
    pub(crate) fn check(&self, kind: OpKind, length: u64) -> Result<(), SubmitError> {
        let op = Op { kind, length, user: 0 };
        let max_message = self.limits.max_message;
        match op.check() {
            Err(Refused::AddressOverflow) => {
                Err(SubmitError::AddressOverflow { address: address_of(kind), length })
            }
            Err(Refused::Unaligned) => Err(SubmitError::Unaligned { address: address_of(kind) }),
            Err(_) => Err(SubmitError::TooLong { limit: MAX_OP_BYTES }),
            Ok(()) if kind == OpKind::Message && length > max_message => {
                Err(SubmitError::TooLong { limit: max_message.min(MAX_OP_BYTES) })
            }
            Ok(()) => Ok(()),
        }
    }

    /// Counts a further outstanding op of a flow.
    ///
    /// # Errors
    /// If the flow has reached its limit, or either side drains. A peer that drains still accepts messages that answer
    /// its own messages.
    pub(crate) fn begin_op(
        &self,
        flow: usize,
        kind: OpKind,
        answers: bool,
    ) -> Result<(), SubmitError> {
        let refused = if self.outstanding[flow].fetch_add(1, Ordering::SeqCst)
            >= self.limits.max_ops
            && !is_planted(Bug::OpsWithoutLimit)
        {
            SubmitError::Full
        } else if self.peer_draining.load(Ordering::SeqCst) && !(answers && kind == OpKind::Message)
        {
            // This check follows the counting of the op: either the engine counts the op as outstanding, or this call
            // sees that the peer drains.
            SubmitError::PeerDraining
        } else if self.engine.is_draining() && kind != OpKind::Message {
            SubmitError::Draining
        } else {
            return Ok(());
        };
        self.end_op(flow);
        Err(refused)
    }

    /// Records that the peer accepts no new ops.
    pub(crate) fn set_peer_draining(&self) {
        self.peer_draining.store(true, Ordering::SeqCst);
    }

    /// Returns `true` if the peer accepts no new ops.
    pub(crate) fn is_peer_draining(&self) -> bool {
        self.peer_draining.load(Ordering::SeqCst)
    }

    /// Records that the application closes the connection.
    pub(crate) fn set_closing(&self) {
        self.closing.store(true, Ordering::SeqCst);
    }

    /// Returns `true` if the application closes the connection.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// Returns `true` if no op of this side is outstanding.
    pub(crate) fn is_idle(&self) -> bool {
        (0..self.flows()).all(|flow| self.outstanding(flow) == 0)
    }

    /// Returns `true` if messages of the peer wait for the application.
    pub(crate) fn has_messages(&self) -> bool {
        self.queued_messages.load(Ordering::SeqCst) > 0
    }

    /// Returns the number of outstanding ops of a flow.
    pub(crate) fn outstanding(&self, flow: usize) -> u32 {
        self.outstanding[flow].load(Ordering::SeqCst)
    }

    /// Counts the end of an outstanding op.
    pub(crate) fn end_op(&self, flow: usize) {
        self.outstanding[flow].fetch_sub(1, Ordering::AcqRel);
    }

    /// Reserves room for a message until the application takes it. Returns `false` if there is no room.
    pub(crate) fn reserve_message(&self, bytes: u64, limits: &InboxLimits) -> bool {
        let messages = self.queued_messages.load(Ordering::Acquire);
        let queued = self.queued_bytes.load(Ordering::Acquire);
        // Only the engine adds to the counters, so room that is free now stays free.
        if messages >= limits.max_queued_messages || queued + bytes > limits.max_queued_bytes {
            return false;
        }
        if self.used.as_ref().is_some_and(|used| !used.queue(bytes, limits.quota_queued_bytes)) {
            return false;
        }
        self.queued_messages.fetch_add(1, Ordering::AcqRel);
        self.queued_bytes.fetch_add(bytes, Ordering::AcqRel);
        true
    }

    /// Releases the room of a message.
    pub(crate) fn release_message(&self, bytes: u64) {
        self.queued_messages.fetch_sub(1, Ordering::AcqRel);
        self.queued_bytes.fetch_sub(bytes, Ordering::AcqRel);
        if let Some(used) = &self.used {
            used.unqueue(bytes);
        }
    }

    /// Returns the number of bytes that are reserved for messages that the application has not taken.
    #[cfg(any(test, feature = "worlds"))]
    pub(crate) fn queued_bytes(&self) -> u64 {
        self.queued_bytes.load(Ordering::Acquire)
    }

    /// Returns the number of bytes of messages over all connections of the peer, if it has a key of its own.
    #[cfg(any(test, feature = "worlds"))]
    pub(crate) fn queued_by_key(&self) -> u64 {
        self.used.as_ref().map_or(0, |used| used.queued_bytes())
    }
}

impl Drop for ConnectionState {
    /// Releases the bytes of messages that the application can no longer take.
    fn drop(&mut self) {
        if let Some(used) = &self.used {
            used.unqueue(*self.queued_bytes.get_mut());
        }
    }
}

/// Returns the address of a one-sided op; 0 for a message.
fn address_of(kind: OpKind) -> u64 {
    match kind {
        OpKind::Write { address, .. }
        | OpKind::Read { address, .. }
        | OpKind::CompareAndSwap { address, .. }
        | OpKind::FetchAdd { address, .. } => address,
        OpKind::Message => 0,
    }
}
