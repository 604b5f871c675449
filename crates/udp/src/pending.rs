//! Ops between submission by the application and completion by the engine.

use std::sync::Arc;
use std::time::Duration;

use apus_transport::OpKind;
use apus_units::planted::{Bug, is_planted};
use apus_units::{Span, Time};
use apus_wire::WORD_BYTES;
use bytes::Bytes;

use crate::atomic::AtomicBuffers;
use crate::connection_state::ConnectionState;
use crate::containment::contain;
use crate::error::{Cause, End, OpError};
use crate::region::Memory;

/// The bytes that an op moves, owned by the engine until the op ends.
pub(crate) enum Buffers {
    /// Bytes to send.
    Payload(Bytes),
    /// Target of a read.
    Vec(Vec<u8>),
    /// Target of a read in memory of a type that the application provides.
    Foreign(Box<dyn Memory>),
    /// Operands of an atomic op, and the target of its answer.
    Atomic(AtomicBuffers),
}

impl Buffers {
    /// Returns the number of bytes that the op moves; for an atomic op, that of the answer.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Payload(bytes) => bytes.len(),
            Self::Vec(bytes) => bytes.len(),
            Self::Foreign(memory) => memory.bytes().len(),
            Self::Atomic(_) => WORD_BYTES as usize,
        }
    }

    /// Returns the bytes to send; empty for a read.
    pub(crate) fn payload(&self) -> &[u8] {
        match self {
            Self::Payload(bytes) => bytes,
            Self::Vec(_) | Self::Foreign(_) => &[],
            Self::Atomic(buffers) => buffers.operands(),
        }
    }

    /// Returns the target of the answer to a read or atomic op; empty for other ops.
    pub(crate) fn target(&mut self) -> &mut [u8] {
        match self {
            Self::Payload(_) => &mut [],
            Self::Vec(bytes) => bytes,
            Self::Foreign(memory) => memory.bytes_mut(),
            Self::Atomic(buffers) => buffers.target(),
        }
    }
}

/// Result of an op that was completed.
#[derive(Debug)]
#[non_exhaustive]
pub struct Done {
    /// Bytes that a read fetched; empty for other ops.
    pub bytes: Vec<u8>,
    /// Word before an atomic op; `None` for other ops. A compare-and-swap has replaced the word if this is the expected value.
    pub old: Option<u64>,
    /// Time from the engine's acceptance of the op to its end.
    pub latency: Span,
}

/// How an op ended: its result, or the reason why it failed.
pub type OpResult = Result<Done, OpError>;

/// Completion of an op, on a queue of completions.
#[derive(Debug)]
#[non_exhaustive]
pub struct Completion {
    /// The application's own mark, from the submission.
    pub user: u64,
    /// How the op ended.
    pub result: OpResult,
}

/// Receiver of the completion of an op.
pub(crate) enum Notify {
    One(oneshot::Sender<OpResult>),
    Queue(async_channel::Sender<Completion>, u64),
    Nobody,
}

/// An op from its submission to its end. If it is dropped before its end, it ends as unknown if the transport has
/// accepted it or the engine has failed, and as not sent otherwise.
pub(crate) struct Pending {
    pub(crate) connection: Arc<ConnectionState>,
    /// Index of the flow within the connection.
    pub(crate) flow: usize,
    pub(crate) kind: OpKind,
    pub(crate) buffers: Buffers,
    pub(crate) ticket: u64,
    /// Whether the transport has accepted the op, so that the peer may have seen it.
    pub(crate) started: bool,
    /// Time limit, from `accepted_at`.
    pub(crate) deadline: Option<Duration>,
    /// When the engine took the op from its mailbox.
    pub(crate) accepted_at: Time,
    /// Receiver of the completion. `None` after the end was reported, or if the op was never accepted.
    pub(crate) notify: Option<Notify>,
}

impl Pending {
    /// Returns when the op's deadline passes.
    pub(crate) fn expires_at(&self) -> Option<Time> {
        let after = u64::try_from(self.deadline?.as_nanos()).unwrap_or(u64::MAX);
        Some(self.accepted_at.saturating_add(Span::from_ns(after.min(u64::MAX / 1_000))))
    }

    /// Reports the end of the op.
    pub(crate) fn end(mut self, result: Result<Span, OpError>) {
        self.finish(result);
    }

    /// Discards an op that no engine has accepted, without a report.
    pub(crate) fn refuse(mut self) {
        self.notify = None;
        self.connection.end_op(self.flow);
    }

    fn finish(&mut self, result: Result<Span, OpError>) {
        let Some(notify) = self.notify.take() else { return };
        self.connection.end_op(self.flow);
        let buffers = std::mem::replace(&mut self.buffers, Buffers::Payload(Bytes::new()));
        let (bytes, old) = match buffers {
            Buffers::Vec(bytes) => (bytes, None),
            Buffers::Atomic(buffers) => (Vec::new(), Some(buffers.old())),
            // Drop the application's memory before the completion is reported, so that the application then has it
            // back.
            given @ (Buffers::Payload(_) | Buffers::Foreign(_)) => {
                contain(|| drop(given));
                (Vec::new(), None)
            }
        };
        let result = result.map(|latency| Done { bytes, old, latency });
        match notify {
            // The op is done even if the application has dropped the receiver.
            Notify::One(sender) => drop(sender.send(result)),
            // The queue has room for every outstanding op, unless the application has closed it. Its wakers are
            // application code.
            Notify::Queue(sender, user) => {
                contain(|| drop(sender.try_send(Completion { user, result })));
            }
            Notify::Nobody => {}
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if is_planted(Bug::WaitingDropped)
            && let Some(Notify::One(sender)) = self.notify.take()
        {
            return std::mem::forget(sender);
        }
        // While a panic unwinds, the engine is not yet marked as failed.
        let failed = self.connection.engine.has_failed() || std::thread::panicking();
        let end = if failed { End::EngineFailed } else { self.connection.end() };
        let cause = Cause::Ended(end);
        let unknown = failed || self.started;
        self.finish(Err(if unknown { OpError::Unknown(cause) } else { OpError::NotSent(cause) }));
    }
}
