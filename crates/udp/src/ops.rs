//! Ops on their way between application and engine.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use apus_transport::OpKind;
use apus_units::{Span, Time};
use bytes::Bytes;

use crate::connection::{Shared, Way};
use crate::containment::{ContainedWaker, contain};
use crate::error::{Cause, End, OpError};
use crate::region::Memory;
use crate::session::SessionId;

/// The bytes that an op moves, owned by the engine until the op ends.
pub(crate) enum Buffers {
    /// To be sent.
    Payload(Bytes),
    /// To be filled by a read.
    Vec(Vec<u8>),
    /// To be filled by a read, memory of a caller of its own kind.
    Foreign(Box<dyn Memory>),
}

impl Buffers {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Payload(bytes) => bytes.len(),
            Self::Vec(bytes) => bytes.len(),
            Self::Foreign(memory) => memory.bytes().len(),
        }
    }

    pub(crate) fn payload(&self) -> &[u8] {
        match self {
            Self::Payload(bytes) => bytes,
            Self::Vec(_) | Self::Foreign(_) => &[],
        }
    }

    pub(crate) fn target(&mut self) -> &mut [u8] {
        match self {
            Self::Payload(_) => &mut [],
            Self::Vec(bytes) => bytes,
            Self::Foreign(memory) => memory.bytes_mut(),
        }
    }
}

/// An op that is done.
#[derive(Debug)]
#[non_exhaustive]
pub struct Done {
    /// The bytes that a read fetched; empty for other ops.
    pub bytes: Vec<u8>,
    /// From the engine's taking it to its end.
    pub latency: Span,
}

/// How an op ended.
pub type OpResult = Result<Done, OpError>;

/// The end of an op, on a queue of completions.
#[derive(Debug)]
#[non_exhaustive]
pub struct Completion {
    /// The application's own mark, from the submission.
    pub user: u64,
    /// How it ended.
    pub result: OpResult,
}

/// Who hears of the end of an op.
pub(crate) enum Notify {
    One(oneshot::Sender<OpResult>),
    Queue(async_channel::Sender<Completion>, u64),
    /// The outcome cannot be heard by anyone.
    Nobody,
}

/// An op on its way to the engine, or under way there. One that is dropped before its end says that nothing
/// of it was sent, unless the transport had it or an engine failed.
pub(crate) struct Pending {
    pub(crate) shared: Arc<Shared>,
    /// Index of the flow within the connection.
    pub(crate) flow: usize,
    pub(crate) kind: OpKind,
    pub(crate) buffers: Buffers,
    pub(crate) ticket: u64,
    /// Whether the transport has it, so that the peer may have seen it.
    pub(crate) started: bool,
    /// From its taking on.
    pub(crate) deadline: Option<std::time::Duration>,
    /// When the engine took it.
    pub(crate) taken: Time,
    pub(crate) notify: Notify,
}

impl Pending {
    /// Its deadline while it waits for older ops.
    pub(crate) fn waiting_deadline(&self) -> Option<Deadline> {
        self.deadline_of(DeadlineOf::Waiting(self.shared.session, self.flow))
    }

    /// Its deadline while it is under way, at `place` among the engine's ops.
    pub(crate) fn deadline_at(&self, place: usize) -> Option<Deadline> {
        self.deadline_of(DeadlineOf::UnderWay(place))
    }

    fn deadline_of(&self, of: DeadlineOf) -> Option<Deadline> {
        let after = u64::try_from(self.deadline?.as_nanos()).unwrap_or(u64::MAX);
        let at = self.taken.saturating_add(Span::from_ns(after.min(u64::MAX / 1_000)));
        Some(Deadline { at, ticket: self.ticket, of })
    }

    /// Tells its end.
    pub(crate) fn end(mut self, result: Result<Span, OpError>) {
        self.finish(result);
    }

    fn finish(&mut self, result: Result<Span, OpError>) {
        let notify = std::mem::replace(&mut self.notify, Notify::Nobody);
        if matches!(notify, Notify::Nobody) {
            return;
        }
        self.shared.in_flight[self.flow].fetch_sub(1, Ordering::AcqRel);
        let buffers = std::mem::replace(&mut self.buffers, Buffers::Payload(Bytes::new()));
        let bytes = match buffers {
            Buffers::Vec(bytes) => bytes,
            // Dropping the application's memory gives it back before the completion is seen.
            given @ (Buffers::Payload(_) | Buffers::Foreign(_)) => {
                contain(|| drop(given));
                Vec::new()
            }
        };
        let result = result.map(|latency| Done { bytes, latency });
        match notify {
            // Nobody may be waiting any more; the op is done all the same.
            Notify::One(sender) => drop(sender.send(result)),
            // There is room for every op under way, unless the queue is gone. Its wakers are the application's.
            Notify::Queue(sender, user) => {
                contain(|| drop(sender.try_send(Completion { user, result })));
            }
            Notify::Nobody => {}
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // While a panic unwinds, the engine has not yet said that it failed.
        let failed = self.shared.engine.has_failed() || std::thread::panicking();
        let end = if failed { End::EngineFailed } else { self.shared.end() };
        let cause = Cause::Ended(end);
        let unknown = failed || self.started;
        self.finish(Err(if unknown { OpError::Unknown(cause) } else { OpError::NotSent(cause) }));
    }
}

/// An op that was submitted: a future of its end. Dropping it lets the op go on unobserved.
pub struct Op {
    pub(crate) receiver: oneshot::Receiver<OpResult>,
    pub(crate) way: Arc<Way>,
    pub(crate) ticket: u64,
    pub(crate) waker: ContainedWaker,
}

impl Op {
    /// Waits for its end. In inline mode this drives the engine.
    ///
    /// # Errors
    /// How it failed; [`OpError::Unknown`] if the peer may have applied it.
    pub fn wait(self) -> OpResult {
        let Self { receiver, way, .. } = self;
        way.driver.wait(receiver).unwrap_or_else(|| Err(stopped(&way.shared)))
    }

    /// Asks the engine to give it up; it then ends with [`Cause::Cancelled`], unless it has ended.
    pub fn cancel(&self) {
        self.way.shared.cancel(self.ticket);
    }
}

fn stopped(shared: &Shared) -> OpError {
    OpError::Unknown(Cause::Ended(shared.end()))
}

impl Future for Op {
    type Output = OpResult;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<OpResult> {
        self.way.driver.drive_for(context);
        let Self { receiver, way, waker, .. } = &mut *self;
        let mut context = Context::from_waker(waker.of(context.waker()));
        let end = Pin::new(receiver).poll(&mut context);
        end.map(|end| end.unwrap_or_else(|_| Err(stopped(&way.shared))))
    }
}

/// The deadline of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Deadline {
    pub(crate) at: Time,
    pub(crate) ticket: u64,
    pub(crate) of: DeadlineOf,
}

/// Where the op of a deadline is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DeadlineOf {
    /// Under way, at this place among the engine's ops.
    UnderWay(usize),
    /// Behind others of its flow, which has this index within the connection.
    Waiting(SessionId, usize),
}
