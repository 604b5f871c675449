//! Connections and flows as applications see them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use apus_cc::Snapshot;
use apus_transport::{FlowCounters, OpKind};
use apus_units::Time;
use apus_wire::RegionKey;
use bytes::Bytes;

use crate::connection_state::Message;
use crate::containment::ContainedWaker;
use crate::driver::Driver;
use crate::error::{End, SubmitError};
use crate::mailbox::{Command, Opened};
use crate::ops::{EngineLink, Op};
use crate::pending::{Buffers, Completion, Notify, Pending};
use crate::region::Memory;

/// A connection to a peer: one or more flows. Clones are the same connection; it closes when the last
/// one is dropped, or by [`Connection::close`].
#[derive(Clone)]
pub struct Connection {
    inner: Arc<Inner>,
}

struct Inner {
    link: Arc<EngineLink>,
    opened: Opened,
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
    pub(crate) fn new(opened: Opened, driver: Driver) -> Self {
        let (state, mailbox) = (Arc::clone(&opened.state), Arc::clone(&opened.mailbox));
        let link = Arc::new(EngineLink { state, mailbox, driver });
        Self { inner: Arc::new(Inner { link, opened }) }
    }

    fn link(&self) -> &EngineLink {
        &self.inner.link
    }

    /// The peer's address.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.link().state.peer
    }

    /// How many flows it has.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.link().state.flows()
    }

    /// How it ended, if it has.
    #[must_use]
    pub fn ended(&self) -> Option<End> {
        self.link().state.ended()
    }

    /// The longest message that the peer takes, in bytes.
    #[must_use]
    pub fn max_message(&self) -> u64 {
        self.link().state.limits.max_message
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
        let link = Arc::clone(&self.inner.link);
        Ok(Op { receiver, link, ticket, waker: ContainedWaker::default() })
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
        self.link().cancel(ticket);
    }

    fn hand_in(&self, flow: usize, request: Request, notify: Notify) -> Result<u64, SubmitError> {
        let EngineLink { state, mailbox, .. } = self.link();
        if let Some(end) = state.ended() {
            return Err(SubmitError::Ended(end));
        }
        state.check(request.kind, request.buffers.len() as u64)?;
        state.begin_op(flow)?;
        let ticket = state.ticket();
        let pending = Pending {
            connection: Arc::clone(state),
            flow,
            kind: request.kind,
            buffers: request.buffers,
            ticket,
            started: false,
            deadline: request.deadline,
            accepted_at: Time::ZERO,
            notify,
        };
        let Err(pending) = mailbox.submit(pending) else { return Ok(ticket) };
        pending.refuse();
        // An engine that has stopped ends its connections soon.
        let stopped = mailbox.status.is_stopped();
        Err(if stopped { SubmitError::Ended(state.end()) } else { SubmitError::Full })
    }

    /// Waits for the next message. In inline mode this drives the engine.
    ///
    /// # Errors
    /// How the connection ended, once every message that came before was taken.
    pub fn receive(&self) -> Result<Message, End> {
        let message = self.link().driver.wait_channel(&self.inner.opened.messages);
        Ok(self.take(message.ok_or_else(|| self.end())?))
    }

    /// The next message, if one is here.
    ///
    /// # Errors
    /// As [`Connection::receive`].
    pub fn try_receive(&self) -> Result<Option<Message>, End> {
        match self.inner.opened.messages.try_recv() {
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
        let message = self.link().driver.next(&self.inner.opened.messages).await;
        Ok(self.take(message.ok_or_else(|| self.end())?))
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
        self.link().driver.wait(receiver).ok_or_else(|| self.end())
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
        self.link().driver.answer(receiver).await.ok_or_else(|| self.end())
    }

    fn ask_state(&self, flow: usize) -> oneshot::Receiver<(Snapshot, FlowCounters)> {
        assert!(flow < self.flows(), "flow {flow} of {}", self.flows());
        let (reply, receiver) = oneshot::channel();
        let EngineLink { state, mailbox, .. } = self.link();
        mailbox.post(Command::Inspect { session: state.session, flow, reply });
        receiver
    }

    fn take(&self, message: Message) -> Message {
        self.link().state.release_message(message.bytes.len() as u64);
        message
    }

    fn end(&self) -> End {
        self.link().state.end()
    }

    /// Closes it once its ops have ended, and waits for that. The peer's ops on it end where they are.
    pub fn close(&self) {
        let receiver = self.ask_close();
        self.link().driver.wait(receiver);
    }

    /// As [`Connection::close`], for tasks of an async runtime.
    pub async fn close_async(&self) {
        let receiver = self.ask_close();
        self.link().driver.answer(receiver).await;
    }

    fn ask_close(&self) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let EngineLink { state, mailbox, .. } = self.link();
        mailbox.post(Command::Close { session: state.session, closed: Some(sender) });
        receiver
    }
}
