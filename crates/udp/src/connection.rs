//! Connections and flows as applications see them.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use apus_cc::Snapshot;
use apus_transport::{FlowCounters, MAX_OP_BYTES, Op as Described, OpKind, SubmitError as Refused};
use apus_units::Time;
use apus_wire::RegionKey;
use bytes::Bytes;

use crate::containment::ContainedWaker;
use crate::driver::Driver;
use crate::engine::{Command, EngineShared};
use crate::error::{End, SubmitError};
use crate::ops::{Buffers, Completion, Notify, Op, Pending};
use crate::region::Memory;
use crate::session::SessionId;

/// A message from the peer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// The flow it came by, as an index within the connection.
    pub flow: usize,
    /// Its bytes.
    pub bytes: Bytes,
}

/// What application and engine share about a connection.
pub(crate) struct Shared {
    pub(crate) session: SessionId,
    pub(crate) peer: SocketAddr,
    pub(crate) engine: Arc<EngineShared>,
    /// Ops submitted and not ended, per flow.
    pub(crate) in_flight: Box<[AtomicU32]>,
    /// The most that both sides take of those.
    pub(crate) max_ops: u32,
    /// The longest message that the peer takes.
    pub(crate) max_message: u64,
    pub(crate) ended: OnceLock<End>,
    /// Messages that have arrived, in part or whole, and were not taken.
    pub(crate) queued_bytes: AtomicU64,
    pub(crate) queued_messages: AtomicU32,
    pub(crate) tickets: AtomicU64,
}

impl Shared {
    pub(crate) fn cancel(self: &Arc<Self>, ticket: u64) {
        // Also if the ring is full of ops: the one to be given up may be what keeps it so.
        self.engine.submit_surely(Command::Cancel { session: self.session, ticket });
    }

    /// How it ended; that its engine ended too if nobody says otherwise.
    pub(crate) fn end(&self) -> End {
        let engine = if self.engine.has_failed() { End::EngineFailed } else { End::Stopped };
        self.ended.get().copied().unwrap_or(engine)
    }

    /// Whether a packet can express an op, and both sides take it.
    fn check(&self, kind: OpKind, length: u64) -> Result<(), SubmitError> {
        let op = Described { kind, length, user: 0 };
        match op.check() {
            Err(Refused::AddressOverflow) => {
                let (OpKind::Write { address, .. } | OpKind::Read { address, .. }) = kind else {
                    return Ok(());
                };
                Err(SubmitError::AddressOverflow { address, length })
            }
            Err(_) => Err(SubmitError::TooLong { limit: MAX_OP_BYTES }),
            Ok(()) if kind == OpKind::Message && length > self.max_message => {
                Err(SubmitError::TooLong { limit: self.max_message.min(MAX_OP_BYTES) })
            }
            Ok(()) => Ok(()),
        }
    }

    fn take_room(&self, flow: usize) -> Result<(), SubmitError> {
        if self.in_flight[flow].fetch_add(1, Ordering::AcqRel) >= self.max_ops {
            self.in_flight[flow].fetch_sub(1, Ordering::AcqRel);
            return Err(SubmitError::Full);
        }
        Ok(())
    }
}

/// A connection to a peer: one or more flows. Clones are the same connection; it closes when the last
/// one is dropped, or by [`Connection::close`].
#[derive(Clone)]
pub struct Connection {
    inner: Arc<Inner>,
}

struct Inner {
    way: Arc<Way>,
    messages: async_channel::Receiver<Message>,
}

/// The way to the engine that serves a connection.
pub(crate) struct Way {
    pub(crate) shared: Arc<Shared>,
    pub(crate) driver: Driver,
}

impl Drop for Inner {
    fn drop(&mut self) {
        let command = Command::Close { session: self.way.shared.session, closed: None };
        self.way.shared.engine.submit_surely(command);
    }
}

/// What to submit: an op and how it is to be run.
pub struct Request {
    kind: OpKind,
    buffers: Buffers,
    deadline: Option<Duration>,
}

impl Request {
    /// Store `bytes` in the peer's region, from `address` on.
    #[must_use]
    pub fn write(region: RegionKey, address: u64, bytes: impl Into<Bytes>) -> Self {
        Self::new(OpKind::Write { region, address }, Buffers::Payload(bytes.into()))
    }

    /// Fetch `length` bytes of the peer's region, from `address` on; they come with the completion.
    #[must_use]
    pub fn read(region: RegionKey, address: u64, length: usize) -> Self {
        Self::new(OpKind::Read { region, address }, Buffers::Vec(vec![0; length]))
    }

    /// Fetch as many bytes of the peer's region as `target` has into `target`, which is dropped before
    /// the completion is seen.
    #[must_use]
    pub fn read_into(region: RegionKey, address: u64, target: Box<dyn Memory>) -> Self {
        Self::new(OpKind::Read { region, address }, Buffers::Foreign(target))
    }

    /// Deliver `bytes` to the peer's application.
    #[must_use]
    pub fn message(bytes: impl Into<Bytes>) -> Self {
        Self::new(OpKind::Message, Buffers::Payload(bytes.into()))
    }

    fn new(kind: OpKind, buffers: Buffers) -> Self {
        Self { kind, buffers, deadline: None }
    }

    /// Give the op up if it has not ended after this long.
    #[must_use]
    pub fn deadline(mut self, after: Duration) -> Self {
        self.deadline = Some(after);
        self
    }
}

impl Connection {
    pub(crate) fn new(
        shared: Arc<Shared>,
        messages: async_channel::Receiver<Message>,
        driver: Driver,
    ) -> Self {
        let way = Arc::new(Way { shared, driver });
        Self { inner: Arc::new(Inner { way, messages }) }
    }

    /// The peer's address.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.inner.way.shared.peer
    }

    /// How many flows it has.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.inner.way.shared.in_flight.len()
    }

    /// How it ended, if it has.
    #[must_use]
    pub fn ended(&self) -> Option<End> {
        self.inner.way.shared.ended.get().copied()
    }

    /// The longest message that the peer takes, in bytes.
    #[must_use]
    pub fn max_message(&self) -> u64 {
        self.inner.way.shared.max_message
    }

    /// Submits a request to the first flow.
    ///
    /// # Errors
    /// As [`Connection::submit_to`].
    pub fn submit(&self, request: Request) -> Result<Op, SubmitError> {
        self.submit_to(0, request)
    }

    /// Submits a request to flow `flow`; the result is a future of its end.
    ///
    /// # Errors
    /// If too much is under way, the message is longer than the peer takes, address plus length reach 2^64,
    /// or the connection has ended. Nothing has happened then.
    ///
    /// # Panics
    /// If there is no such flow.
    pub fn submit_to(&self, flow: usize, request: Request) -> Result<Op, SubmitError> {
        let (sender, receiver) = oneshot::channel();
        let ticket = self.hand_in(flow, request, Notify::One(sender))?;
        let way = Arc::clone(&self.inner.way);
        Ok(Op { receiver, way, ticket, waker: ContainedWaker::default() })
    }

    /// Submits a request to flow `flow`; its end goes to `queue`, marked with `user`. The queue must
    /// have room for every op that is under way with it; an end that finds no room is lost. A waker of the
    /// queue that panics does the engine no harm; the channel, which is the application's, may then miss a wake.
    /// Returns a ticket for [`Connection::cancel`].
    ///
    /// # Errors
    /// As [`Connection::submit_to`].
    ///
    /// # Panics
    /// If there is no such flow.
    pub fn submit_queued(
        &self,
        flow: usize,
        request: Request,
        queue: &async_channel::Sender<Completion>,
        user: u64,
    ) -> Result<u64, SubmitError> {
        self.hand_in(flow, request, Notify::Queue(queue.clone(), user))
    }

    /// Asks the engine to give up an op by its ticket.
    pub fn cancel(&self, ticket: u64) {
        self.inner.way.shared.cancel(ticket);
    }

    fn hand_in(&self, flow: usize, request: Request, notify: Notify) -> Result<u64, SubmitError> {
        let shared = &self.inner.way.shared;
        if let Some(&end) = shared.ended.get() {
            return Err(SubmitError::Ended(end));
        }
        shared.check(request.kind, request.buffers.len() as u64)?;
        shared.take_room(flow)?;
        let ticket = shared.tickets.fetch_add(1, Ordering::Relaxed);
        let pending = Pending {
            shared: Arc::clone(shared),
            flow,
            kind: request.kind,
            buffers: request.buffers,
            ticket,
            started: false,
            deadline: request.deadline,
            taken: Time::ZERO,
            notify,
        };
        match shared.engine.submit(Command::Op(pending)) {
            Ok(()) => Ok(ticket),
            Err(Command::Op(mut pending)) => {
                // Nobody is to hear of an op that was not taken.
                pending.notify = Notify::Nobody;
                shared.in_flight[flow].fetch_sub(1, Ordering::AcqRel);
                // An engine that has stopped is about to say so of its connections.
                let stopped = shared.engine.is_stopped();
                Err(if stopped { SubmitError::Ended(shared.end()) } else { SubmitError::Full })
            }
            Err(_) => Err(SubmitError::Full),
        }
    }

    /// Waits for the next message. In inline mode this drives the engine.
    ///
    /// # Errors
    /// How the connection ended, once every message that came before was taken.
    pub fn receive(&self) -> Result<Message, End> {
        let inner = &self.inner;
        let message = inner.way.driver.wait_channel(&inner.messages).ok_or_else(|| self.end())?;
        Ok(self.take(message))
    }

    /// The next message, if one is here.
    ///
    /// # Errors
    /// As [`Connection::receive`].
    pub fn try_receive(&self) -> Result<Option<Message>, End> {
        match self.inner.messages.try_recv() {
            Ok(message) => Ok(Some(self.take(message))),
            Err(async_channel::TryRecvError::Empty) => Ok(None),
            Err(async_channel::TryRecvError::Closed) => Err(self.end()),
        }
    }

    /// The next message, for tasks of an async runtime.
    ///
    /// # Errors
    /// As [`Connection::receive`].
    pub async fn receive_async(&self) -> Result<Message, End> {
        let inner = &self.inner;
        let message = inner.way.driver.next(&inner.messages).await.ok_or_else(|| self.end())?;
        Ok(self.take(message))
    }

    /// The state of the algorithm of flow `flow` now (its windows, target and pace), and what its
    /// sending side has counted. Waits for the engine's next turn.
    ///
    /// # Errors
    /// How the connection ended.
    ///
    /// # Panics
    /// If there is no such flow.
    pub fn flow_state(&self, flow: usize) -> Result<(Snapshot, FlowCounters), End> {
        let receiver = self.ask_state(flow);
        self.inner.way.driver.wait(receiver).ok_or_else(|| self.end())
    }

    /// As [`Connection::flow_state`], for tasks of an async runtime.
    ///
    /// # Errors
    /// As [`Connection::flow_state`].
    ///
    /// # Panics
    /// If there is no such flow.
    pub async fn flow_state_async(&self, flow: usize) -> Result<(Snapshot, FlowCounters), End> {
        let receiver = self.ask_state(flow);
        self.inner.way.driver.answer(receiver).await.ok_or_else(|| self.end())
    }

    fn ask_state(&self, flow: usize) -> oneshot::Receiver<(Snapshot, FlowCounters)> {
        assert!(flow < self.flows(), "flow {flow} of {}", self.flows());
        let (reply, receiver) = oneshot::channel();
        let session = self.inner.way.shared.session;
        self.inner.way.shared.engine.submit_surely(Command::Inspect { session, flow, reply });
        receiver
    }

    fn take(&self, message: Message) -> Message {
        let shared = &self.inner.way.shared;
        shared.queued_bytes.fetch_sub(message.bytes.len() as u64, Ordering::AcqRel);
        shared.queued_messages.fetch_sub(1, Ordering::AcqRel);
        message
    }

    fn end(&self) -> End {
        self.inner.way.shared.end()
    }

    /// Closes it once its ops have ended, and waits for that. The peer's ops on it end where they are.
    pub fn close(&self) {
        let receiver = self.ask_close();
        self.inner.way.driver.wait(receiver);
    }

    /// As [`Connection::close`], for tasks of an async runtime.
    pub async fn close_async(&self) {
        let receiver = self.ask_close();
        self.inner.way.driver.answer(receiver).await;
    }

    fn ask_close(&self) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let shared = &self.inner.way.shared;
        let command = Command::Close { session: shared.session, closed: Some(sender) };
        shared.engine.submit_surely(command);
        receiver
    }
}
