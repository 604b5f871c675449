//! Connections and flows as applications see them.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Context;
use std::time::{Duration, Instant};

use apus_cc::Snapshot;
use apus_transport::{FlowCounters, MAX_OP_BYTES, OpKind};
use apus_units::Time;
use apus_wire::RegionKey;
use bytes::Bytes;

use crate::atomic::{AtomicBuffers, AtomicOp};
use crate::connection_state::Message;
use crate::containment::ContainedWaker;
use crate::driver::{Driver, HostId};
use crate::error::{End, SubmitError};
use crate::mailbox::{ConnectionCommand, Opened};
use crate::message_receiver::{Attach, MessageReceiver};
use crate::ops::{EngineLink, Op};
use crate::pending::{Buffers, Completion, Notify, OpResult, Pending};
use crate::qlog::Qlog;
use crate::region::Memory;
use crate::report::Paths;
use crate::session::PeerKey;

/// A connection to a peer, with one or more flows. Clones share the connection.
///
/// The connection closes when its last clone is dropped, or by [`Connection::close`] or [`Connection::begin_close`].
#[derive(Clone)]
pub struct Connection {
    link: Arc<EngineLink>,
    opened: Arc<Opened>,
}

/// An op to submit, with its options.
pub struct Request {
    kind: OpKind,
    buffers: Buffers,
    deadline: Option<Duration>,
    /// Whether the message answers a message of the peer.
    answers: bool,
}

impl Request {
    /// Maximum number of bytes that one op moves.
    pub const MAX_BYTES: u64 = MAX_OP_BYTES;

    /// Returns a write of `bytes` to the peer's region, from `address` upwards.
    #[must_use]
    pub fn write(region: RegionKey, address: u64, bytes: impl Into<Bytes>) -> Self {
        Self::new(OpKind::Write { region, address }, Buffers::Payload(bytes.into()))
    }

    /// Returns a read of `length` bytes of the peer's region, from `address` upwards. The completion carries the bytes.
    #[must_use]
    pub fn read(region: RegionKey, address: u64, length: usize) -> Self {
        Self::read_vec(region, address, vec![0; length])
    }

    /// Returns a read of the peer's region, from `address` upwards, that fills `target`. The completion carries `target`.
    #[must_use]
    pub fn read_vec(region: RegionKey, address: u64, target: Vec<u8>) -> Self {
        Self::new(OpKind::Read { region, address }, Buffers::Vec(target))
    }

    /// Returns a read of the peer's region, from `address` upwards, that fills memory of the application. `target` is dropped
    /// before the completion is reported.
    #[must_use]
    pub fn read_into(region: RegionKey, address: u64, target: Box<dyn Memory>) -> Self {
        Self::new(OpKind::Read { region, address }, Buffers::Foreign(target))
    }

    /// Returns a message to the peer's application.
    #[must_use]
    pub fn message(bytes: impl Into<Bytes>) -> Self {
        Self::new(OpKind::Message, Buffers::Payload(bytes.into()))
    }

    /// Returns an atomic op that sets the word at `address` of the peer's region to `new` if the word is `expected`. The
    /// completion contains the word before the op ([`Done::old`](crate::Done::old)), which is `expected` if the word was
    /// replaced.
    ///
    /// A word is 8 bytes, little-endian, at a multiple of 8. The peer executes the op exactly once, even if the network loses or
    /// repeats packets. The op is atomic with respect to all accesses to the region by peers and by its owner. The region must
    /// allow [`Access::ATOMIC`](crate::Access::ATOMIC).
    #[must_use]
    pub fn compare_and_swap(region: RegionKey, address: u64, expected: u64, new: u64) -> Self {
        let op = AtomicOp::CompareAndSwap { expected, new };
        let buffers = Buffers::Atomic(AtomicBuffers::new(op));
        Self::new(OpKind::CompareAndSwap { region, address }, buffers)
    }

    /// Returns an atomic op that adds `delta` to the word at `address` of the peer's region, modulo 2^64. The completion contains
    /// the word before the op ([`Done::old`](crate::Done::old)). Otherwise as [`Request::compare_and_swap`].
    #[must_use]
    pub fn fetch_add(region: RegionKey, address: u64, delta: u64) -> Self {
        let buffers = Buffers::Atomic(AtomicBuffers::new(AtomicOp::FetchAdd { delta }));
        Self::new(OpKind::FetchAdd { region, address }, buffers)
    }

    fn new(kind: OpKind, buffers: Buffers) -> Self {
        Self { kind, buffers, deadline: None, answers: false }
    }

    /// Marks a message as one that the peer waits for. Such a message is sent even if the peer drains
    /// ([`Host::drain`](crate::Host::drain)). [`MessageReceiver::is_busy`] of the peer keeps the connection open until the
    /// message has arrived.
    #[must_use]
    pub fn answers(mut self) -> Self {
        self.answers = true;
        self
    }

    /// Sets the time after which the op is given up.
    #[must_use]
    pub fn deadline(mut self, after: Duration) -> Self {
        self.deadline = Some(after);
        self
    }
}

impl Connection {
    pub(crate) fn new(opened: Opened, driver: Driver) -> Self {
        let (state, mailbox) = (Arc::clone(&opened.state), Arc::clone(&opened.mailbox));
        let link = Arc::new(EngineLink { state, mailbox, driver });
        Self { link, opened: Arc::new(opened) }
    }

    /// Returns the session of the connection, and the mailbox of its engine.
    #[cfg(any(test, feature = "worlds"))]
    pub(crate) fn session(&self) -> (crate::session::SessionId, &Arc<crate::mailbox::Mailbox>) {
        (self.link.state.session, &self.link.mailbox)
    }

    /// Returns the peer's address.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.link.state.peer
    }

    /// Returns the number of the connection, unique within the host.
    pub(crate) fn number(&self) -> u64 {
        self.link.state.who.connection
    }

    pub(crate) fn host(&self) -> HostId {
        self.link.driver.host()
    }

    /// Returns `true` if a call of this thread that waits for the connection would deadlock.
    ///
    /// Either the thread holds the memory of a region of the host, or it is running the engine of this connection. Calls that
    /// wait for the connection are then refused ([`End::WouldDeadlock`]).
    #[must_use]
    pub fn would_deadlock(&self) -> bool {
        self.link.driver.would_deadlock()
    }

    /// Refuses a wait if this thread would wait for itself.
    fn check_wait(&self) -> Result<(), End> {
        if self.would_deadlock() { Err(End::WouldDeadlock) } else { Ok(()) }
    }

    /// Returns the peer's own key, which the peer has proved. Returns `None` in the insecure mode, and under a shared key alone,
    /// whose holders cannot be distinguished.
    #[must_use]
    pub fn peer_key(&self) -> Option<PeerKey> {
        self.link.state.who.key
    }

    /// Returns the name that the key ring had for the peer's key at the time of the handshake.
    #[must_use]
    pub fn peer_name(&self) -> Option<&str> {
        self.link.state.who.name.as_deref()
    }

    /// Returns the number of flows.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.link.state.flows()
    }

    /// Returns how the connection ended, or `None` if it has not ended.
    #[must_use]
    pub fn ended(&self) -> Option<End> {
        self.link.state.ended()
    }

    /// Returns `true` if the peer accepts no new ops because it is shutting down ([`Host::drain`](crate::Host::drain)).
    /// Outstanding ops continue; then the peer closes the connection.
    #[must_use]
    pub fn is_peer_draining(&self) -> bool {
        self.link.state.is_peer_draining()
    }

    /// Returns `true` if this side has begun to close the connection.
    pub(crate) fn is_closing(&self) -> bool {
        self.link.state.is_closing()
    }

    /// Returns the maximum length in bytes of a message that the peer accepts.
    #[must_use]
    pub fn max_message(&self) -> u64 {
        self.link.state.limits.max_message
    }

    /// Returns the maximum number of outstanding ops per flow that both sides accept.
    #[must_use]
    pub fn max_ops(&self) -> u32 {
        self.link.state.limits.max_ops
    }

    /// Submits a request to the first flow.
    ///
    /// # Errors
    /// As [`Connection::submit_to`].
    pub fn submit(&self, request: Request) -> Result<Op, SubmitError> {
        self.submit_to(0, request)
    }

    /// Submits a request to flow `flow`. The result is a future of the completion.
    ///
    /// # Errors
    /// If too many ops are outstanding, the op is longer than either side allows, address plus length reach 2^64, the address of
    /// an atomic op is not a multiple of 8, one of the hosts drains, or the connection has ended. The op then has no effect.
    ///
    /// # Panics
    /// If the connection has no such flow.
    pub fn submit_to(&self, flow: usize, request: Request) -> Result<Op, SubmitError> {
        let (sender, receiver) = oneshot::channel();
        let ticket = self.hand_in(flow, request, Notify::One(sender))?;
        Ok(self.op(receiver, ticket))
    }

    fn op(&self, receiver: oneshot::Receiver<OpResult>, ticket: u64) -> Op {
        Op { receiver, link: Arc::clone(&self.link), ticket, waker: ContainedWaker::default() }
    }

    /// Submits a request to flow `flow` and reports its completion to `queue` with the application's mark `user`. Returns a
    /// ticket for [`Connection::cancel`].
    ///
    /// The queue must have room for the completion of every outstanding op; a completion without room is lost. If a waker of the
    /// queue panics, the engine continues, but the application's channel may miss a wake-up.
    ///
    /// # Errors
    /// As [`Connection::submit_to`].
    ///
    /// # Panics
    /// If the connection has no such flow.
    pub fn submit_queued(
        &self,
        flow: usize,
        request: Request,
        queue: &async_channel::Sender<Completion>,
        user: u64,
    ) -> Result<u64, SubmitError> {
        self.hand_in(flow, request, Notify::Queue(queue.clone(), user))
    }

    /// Submits a request to flow `flow` without a report of its completion, for example a message that the peer's application
    /// answers. This takes less time than [`Connection::submit_to`]. Returns a ticket for [`Connection::cancel`].
    ///
    /// # Errors
    /// As [`Connection::submit_to`].
    ///
    /// # Panics
    /// If the connection has no such flow.
    pub fn submit_unreported(&self, flow: usize, request: Request) -> Result<u64, SubmitError> {
        self.hand_in(flow, request, Notify::Nobody)
    }

    /// Submits a request to the first flow as [`Connection::submit`] does, but does not trigger its transmission. Call
    /// [`Connection::send`] next.
    ///
    /// This call runs no engine, and therefore no application code that an engine calls. The caller may thus hold a lock that
    /// such code waits for, or that a thread that holds the memory of a region waits for. An example is a lock that keeps the
    /// order of ops.
    ///
    /// # Errors
    /// As [`Connection::submit_to`].
    pub fn submit_unsent(&self, request: Request) -> Result<Op, SubmitError> {
        let (sender, receiver) = oneshot::channel();
        let ticket = self.enqueue(0, request, Notify::One(sender))?;
        Ok(self.op(receiver, ticket))
    }

    /// Triggers the transmission of ops of [`Connection::submit_unsent`].
    pub fn send(&self) {
        let EngineLink { state, mailbox, driver } = &*self.link;
        driver.submitted(state, 0, mailbox);
    }

    /// Asks the engine to cancel the op with this ticket. If the op has ended, the call has no effect.
    pub fn cancel(&self, ticket: u64) {
        self.link.cancel(ticket);
    }

    fn hand_in(&self, flow: usize, request: Request, notify: Notify) -> Result<u64, SubmitError> {
        let ticket = self.enqueue(flow, request, notify)?;
        let EngineLink { state, mailbox, driver } = &*self.link;
        driver.submitted(state, flow, mailbox);
        Ok(ticket)
    }

    /// Puts a request into the mailbox of the engine.
    fn enqueue(&self, flow: usize, request: Request, notify: Notify) -> Result<u64, SubmitError> {
        let EngineLink { state, mailbox, .. } = &*self.link;
        if let Some(end) = state.ended() {
            return Err(SubmitError::Ended(end));
        }
        state.check(request.kind, request.buffers.len() as u64)?;
        state.begin_op(flow, request.kind, request.answers)?;
        let ticket = state.ticket(flow);
        let pending = Pending {
            connection: Arc::clone(state),
            flow,
            kind: request.kind,
            buffers: request.buffers,
            ticket,
            started: false,
            deadline: request.deadline,
            accepted_at: Time::ZERO,
            notify: Some(notify),
        };
        let Err(pending) = mailbox.submit(pending) else { return Ok(ticket) };
        pending.refuse();
        // The ring is full, or the engine has stopped. A stopped engine soon ends its connections.
        let stopped = mailbox.status.is_stopped();
        Err(if stopped { SubmitError::Ended(state.end()) } else { SubmitError::Full })
    }

    /// Waits for the next message and takes it.
    ///
    /// # Errors
    /// How the connection ended, after its last message was taken; [`End::WouldDeadlock`] if this thread would wait for itself.
    pub fn receive(&self) -> Result<Message, End> {
        self.check_wait()?;
        let message = self.link.driver.wait_next(&self.opened.messages);
        Ok(self.take(message.ok_or_else(|| self.end())?))
    }

    /// Takes the next message, without waiting. Returns `None` if no message has arrived.
    ///
    /// # Errors
    /// How the connection ended, after its last message was taken.
    pub fn try_receive(&self) -> Result<Option<Message>, End> {
        match self.opened.messages.try_recv() {
            Ok(message) => Ok(Some(self.take(message))),
            Err(async_channel::TryRecvError::Empty) => Ok(None),
            Err(async_channel::TryRecvError::Closed) => Err(self.end()),
        }
    }

    /// Async form of [`Connection::receive`].
    ///
    /// # Errors
    /// As [`Connection::receive`], except [`End::WouldDeadlock`].
    pub async fn receive_async(&self) -> Result<Message, End> {
        let message = self.link.driver.next(&self.opened.messages).await;
        Ok(self.take(message.ok_or_else(|| self.end())?))
    }

    /// Makes the engine deliver messages to `receiver`, beginning with those that were not taken. [`Connection::receive`] and its
    /// other forms then return no more messages. A later call replaces the receiver; the replaced receiver gets no further call.
    pub fn receive_with(&self, receiver: impl MessageReceiver + 'static) {
        let queued = self.opened.messages.clone();
        let attach = Attach::new(Box::new(receiver), Arc::clone(&self.link.state), queued);
        self.link.ask(ConnectionCommand::Attach(attach));
    }

    /// Waits for a future and drives the engine of this connection meanwhile, as [`Connection::receive`] does.
    ///
    /// Returns `None` at the deadline, or if this thread would wait for itself ([`End::WouldDeadlock`]). A future that waits for
    /// the host ends when the engine stops. If the future waits for something else, the call continues to wait after the engine
    /// has stopped. [`Host::block_on`](crate::Host::block_on) states the limits of such a future.
    pub fn block_on<F: Future>(&self, future: F, deadline: Option<Instant>) -> Option<F::Output> {
        self.check_wait().ok()?;
        self.link.driver.wait_future(pin!(future), deadline)
    }

    /// Triggers the transmission of submitted ops. If a future of the application waits for a call of its [`MessageReceiver`],
    /// its `poll` must call this. In inline mode the engine runs a step, and the future is polled again.
    pub fn drive_for(&self, context: &Context<'_>) {
        self.link.driver.drive_for(context);
    }

    /// Returns the state of the algorithm of flow `flow` (windows, target and pace) and the counters of the flow's sending side.
    /// Waits for the engine's next step.
    ///
    /// # Errors
    /// How the connection ended; [`End::WouldDeadlock`] if this thread would wait for itself.
    ///
    /// # Panics
    /// If the connection has no such flow.
    pub fn flow_state(&self, flow: usize) -> Result<(Snapshot, FlowCounters), End> {
        self.check_wait()?;
        let receiver = self.ask_state(flow);
        self.link.driver.wait(receiver).ok_or_else(|| self.end())
    }

    /// Async form of [`Connection::flow_state`].
    ///
    /// # Errors
    /// As [`Connection::flow_state`], except [`End::WouldDeadlock`].
    ///
    /// # Panics
    /// If the connection has no such flow.
    pub async fn flow_state_async(&self, flow: usize) -> Result<(Snapshot, FlowCounters), End> {
        let receiver = self.ask_state(flow);
        self.link.driver.answer(receiver).await.ok_or_else(|| self.end())
    }

    fn ask_state(&self, flow: usize) -> oneshot::Receiver<(Snapshot, FlowCounters)> {
        assert!(flow < self.flows(), "flow {flow} of {}", self.flows());
        let (reply, receiver) = oneshot::channel();
        self.link.ask(ConnectionCommand::Inspect { flow, reply });
        receiver
    }

    /// Returns the source ports by which this side sends, and the counters of their packets
    /// ([`Config::spreading`](crate::Config::spreading)). Waits for the engine's next step.
    ///
    /// # Errors
    /// How the connection ended; [`End::WouldDeadlock`] if this thread would wait for itself.
    pub fn paths(&self) -> Result<Paths, End> {
        self.check_wait()?;
        self.link.driver.wait(self.ask_paths()).ok_or_else(|| self.end())
    }

    /// Async form of [`Connection::paths`].
    ///
    /// # Errors
    /// How the connection ended.
    pub async fn paths_async(&self) -> Result<Paths, End> {
        self.link.driver.answer(self.ask_paths()).await.ok_or_else(|| self.end())
    }

    fn ask_paths(&self) -> oneshot::Receiver<Paths> {
        let (reply, receiver) = oneshot::channel();
        self.link.ask(ConnectionCommand::Paths { reply });
        receiver
    }

    /// Begins to record this connection in a file of `qlog`, from now to its end, unless it is recorded already. If recording
    /// fails, the host's log has a warning.
    pub fn record(&self, qlog: &Qlog) {
        self.link.ask(ConnectionCommand::Record(qlog.clone()));
    }

    fn take(&self, message: Message) -> Message {
        self.link.state.release_message(message.bytes.len() as u64);
        message
    }

    fn end(&self) -> End {
        self.link.state.end()
    }

    /// Closes the connection after its last op, and waits for that. Outstanding ops of the peer fail.
    ///
    /// If the peer lives but takes no messages, it can delay the last op without limit. To limit the wait, use
    /// [`Connection::block_on`] with [`Connection::close_async`] and a deadline. After the deadline, the connection still closes
    /// after its last op. If this thread would wait for itself ([`End::WouldDeadlock`]), the call begins to close the connection
    /// but does not wait.
    pub fn close(&self) {
        let receiver = self.ask_close();
        if self.check_wait().is_ok() {
            self.link.driver.wait(receiver);
        }
    }

    /// Begins to close the connection, as dropping its last clone does, without waiting. The connection closes after its last op.
    pub fn begin_close(&self) {
        self.post_close(None);
    }

    /// Async form of [`Connection::close`].
    pub async fn close_async(&self) {
        let receiver = self.ask_close();
        self.link.driver.answer(receiver).await;
    }

    fn ask_close(&self) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        self.post_close(Some(sender));
        receiver
    }

    fn post_close(&self, closed: Option<oneshot::Sender<()>>) {
        self.link.state.set_closing();
        self.link.ask(ConnectionCommand::Close { closed });
    }
}
