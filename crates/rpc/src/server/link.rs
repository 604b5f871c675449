//! A connection of a server, with its calls from request to answer.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use apus_udp::{Connection, End, Message, MessageReceiver, Request};
use bytes::{Buf, Bytes};

use super::incoming::Incoming;
use super::lanes::Lanes;
use super::pool::Task;
use super::slots::{Arrived, Effect, Slots, Why};
use super::{Core, ServerOptions};
use crate::body::{BodyLink, BodyWriter, Sending, whole};
use crate::envelope::{
    CallId, GRANT_BYTES, Grant, Header, LanePlace, RESPONSE_BYTES, Status, VERSION, decode, encode,
    encode_failure,
};
use crate::error::{BodyError, Failure};
use crate::metrics::add;
use crate::outgoing::Outgoing;

/// Number of messages per call that may wait until the connection has room: its answer, and the positions of two rings. A
/// client that reuses a slot only after the answer has at most one answer per slot among them.
const MESSAGES_PER_CALL: usize = 16;

/// Answer of a handler: bytes, and a body if there are many.
///
/// Byte vectors, [`Bytes`], strings and `()` convert to it.
#[derive(Debug, Default)]
pub struct Reply {
    payload: Bytes,
    body: Option<Bytes>,
}

impl Reply {
    /// Returns an answer with a body that is in memory. The client fetches the body from this memory by one-sided reads.
    #[must_use]
    pub fn with_body(payload: impl Into<Bytes>, body: impl Into<Bytes>) -> Self {
        Self { payload: payload.into(), body: Some(body.into()) }
    }

    /// Returns the result of a handler that has answered by [`Incoming::stream`].
    #[must_use]
    pub fn streamed() -> Self {
        Self::default()
    }
}

impl From<Bytes> for Reply {
    fn from(payload: Bytes) -> Self {
        Self { payload, body: None }
    }
}

impl From<Vec<u8>> for Reply {
    fn from(payload: Vec<u8>) -> Self {
        Bytes::from(payload).into()
    }
}

impl From<String> for Reply {
    fn from(payload: String) -> Self {
        Bytes::from(payload).into()
    }
}

impl From<&'static [u8]> for Reply {
    fn from(payload: &'static [u8]) -> Self {
        Bytes::from_static(payload).into()
    }
}

impl From<&'static str> for Reply {
    fn from(payload: &'static str) -> Self {
        payload.as_bytes().into()
    }
}

impl From<()> for Reply {
    fn from((): ()) -> Self {
        Self::default()
    }
}

/// A connection.
pub(super) struct Link {
    pub(super) core: Arc<Core>,
    pub(super) outgoing: Arc<Outgoing>,
    pub(super) slots: Slots,
    lanes: Mutex<Lanes<Incoming>>,
    /// Number of calls that wait, run, or have a body that is being read. It may exceed the number of slots in use, because a
    /// waiting call that is cancelled frees its slot at once.
    calls: AtomicUsize,
    /// Whether the client has sent its Hello.
    greeted: AtomicBool,
    /// Whether the calls of the connection were given up. Messages then have no effect.
    ended: AtomicBool,
}

/// Identifies a call of a connection; its holder can answer the call.
#[derive(Clone)]
pub(super) struct CallKey {
    pub(super) link: Arc<Link>,
    pub(super) id: CallId,
    pub(super) place: Option<LanePlace>,
    pub(super) deadline: Option<Instant>,
}

impl CallKey {
    /// Answers the call with the result of its handler, if it was not answered.
    pub(super) fn answer(&self, result: Result<Reply, Failure>) {
        match result {
            Ok(Reply { payload, body: None }) => _ = self.end(Status::Done, &payload),
            Ok(Reply { payload, body: Some(body) }) => {
                match whole(&self.link.core.host, &self.link.outgoing.connection, body) {
                    Ok((sending, grant)) => {
                        if self.end_with_body(&payload, &sending, grant).is_some() {
                            self.leave_lane();
                        }
                    }
                    Err(error) => self.answer(Err(Failure::new(0, error.to_string()))),
                }
            }
            Err(Failure { code, message }) => {
                _ = self.end(Status::Failed, &encode_failure(code, &message));
            }
        }
    }

    /// Ends the call without an answer of its handler, unless it was answered before.
    pub(super) fn refuse(&self, status: Status) {
        self.end(status, &[]);
    }

    /// Ends the call before its handler begins.
    pub(super) fn refuse_waiting(&self, status: Status) {
        if !self.end(status, &[]) {
            self.forget();
        }
    }

    /// Removes a call from the count, after it has ended in the queue.
    pub(super) fn forget(&self) {
        self.link.call_over();
        self.leave_lane();
    }

    /// Ends the call with this status. Returns `false` if the call was answered before.
    fn end(&self, mut status: Status, mut payload: &[u8]) -> bool {
        let link = &self.link;
        if payload.len() + RESPONSE_BYTES > link.outgoing.max_message() {
            (status, payload) = (Status::TooLong, &[]);
        }
        let Some(why) = link.slots.finish(self.id, None) else { return false };
        // A handler that fails after it was told to give up counts as having given up.
        if let (Some(why), Status::Failed | Status::Abandoned) = (why, status) {
            (status, payload) = (why.status(true), &[]);
        }
        link.core.count(status);
        link.call_over();
        link.outgoing.post(&Header::Response { id: self.id, status, grant: None }, payload);
        self.leave_lane();
        true
    }

    /// Answers the call with a body, which the client then reads. Returns `None` if the call was answered before. Otherwise
    /// returns `true` if the call was not given up. The caller lets the next call of the lane run.
    fn end_with_body(&self, payload: &[u8], sending: &Arc<Sending>, grant: Grant) -> Option<bool> {
        let link = &self.link;
        if payload.len() + RESPONSE_BYTES + GRANT_BYTES > link.outgoing.max_message() {
            self.refuse(Status::TooLong);
            return None;
        }
        let why = link.slots.finish(self.id, Some(sending))?;
        let (status, grant, payload) = match why {
            None => (Status::Done, Some(grant), payload),
            Some(why) => (why.status(true), None, &[][..]),
        };
        link.core.count(status);
        if why.is_some() {
            link.call_over();
        }
        link.outgoing.post(&Header::Response { id: self.id, status, grant }, payload);
        Some(why.is_none())
    }

    /// Answers the call, and returns the sending end of the answer's body. If this function has answered the call, the result
    /// also contains the body. The handler then lets the next call of the lane run when it ends.
    pub(super) fn stream(
        &self,
        payload: &[u8],
        capacity: usize,
        length: Option<u64>,
    ) -> (Result<BodyWriter, Failure>, Option<Arc<Sending>>) {
        let to = &self.link.outgoing.connection;
        let (sending, grant) = match Sending::ring(&self.link.core.host, to, capacity, length) {
            Ok(ring) => ring,
            Err(error) => return (Err(error.into()), None),
        };
        let answered = self.end_with_body(payload, &sending, grant);
        let writer = if answered == Some(true) {
            Ok(BodyWriter::new(Arc::clone(&sending), self.body_link()))
        } else {
            // The handler has been told to give up, or the call was answered in another way.
            sending.fail(BodyError::GivenUp);
            Err(Failure::new(0, "the call was answered, cancelled or too long"))
        };
        (writer, answered.map(|_| sending))
    }

    pub(super) fn body_link(&self) -> BodyLink {
        let outgoing = Arc::clone(&self.link.outgoing);
        BodyLink { outgoing, id: self.id, deadline: self.deadline }
    }

    /// Lets the next call of the lane run.
    pub(super) fn leave_lane(&self) {
        let Some(place) = self.place else { return };
        let next = self.link.lanes().ended(place.lane);
        if let Some(next) = next {
            self.link.core.pool.push(Task::Call(next));
        }
    }
}

impl Link {
    pub(super) fn new(core: Arc<Core>, connection: Connection) -> Arc<Self> {
        let outgoing = Arc::new(Outgoing::new(connection, Arc::clone(&core.keeper.0)));
        let ServerOptions { calls_per_connection, lanes, .. } = core.options;
        let lanes = Mutex::new(Lanes::new(lanes, calls_per_connection));
        let slots = Slots::new(calls_per_connection);
        let [greeted, ended] = [(); 2].map(|()| AtomicBool::new(false));
        let calls = AtomicUsize::new(0);
        Arc::new(Self { core, outgoing, slots, lanes, calls, greeted, ended })
    }

    /// Counts another call. Returns `false` if the connection or the server has as many calls as allowed.
    fn admit(&self) -> bool {
        // Only the engine of the connection adds calls.
        if self.calls.load(Ordering::Relaxed) >= self.slots.count() || !self.core.admit() {
            return false;
        }
        self.calls.fetch_add(1, Ordering::Relaxed);
        true
    }

    fn call_over(&self) {
        self.calls.fetch_sub(1, Ordering::Relaxed);
        self.core.call_over();
    }

    fn lanes(&self) -> MutexGuard<'_, Lanes<Incoming>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to receive messages.
    pub(super) fn listen(self: &Arc<Self>) {
        self.outgoing.connection.receive_with(Receiver(Arc::downgrade(self)));
    }

    /// Gives up the calls whose deadline has passed, and sends messages that found no room before. Returns the time of the
    /// next call.
    pub(super) fn expire(self: &Arc<Self>, now: Instant) -> Option<Instant> {
        let next = self.slots.expire(now, |id, effect| self.apply(id, effect));
        next.into_iter().chain(self.outgoing.retry(now)).min()
    }

    fn apply(&self, id: CallId, effect: Effect) {
        match effect {
            Effect::None => {}
            Effect::Freed => self.call_over(),
            // The worker or the lane that later reaches the call drops it. Until then the call counts.
            Effect::Answer(why) => {
                let status = why.status(false);
                self.core.count(status);
                self.outgoing.post(&Header::Response { id, status, grant: None }, &[]);
            }
        }
    }

    /// Handles a message. Returns `false` if the client breaks the protocol.
    fn handle(self: &Arc<Self>, mut bytes: Bytes) -> bool {
        if self.ended.load(Ordering::Acquire) {
            return true;
        }
        // The client does not read its answers, but continues to call.
        let calls = self.slots.count();
        if self.outgoing.waits_for_more_than(calls, calls * MESSAGES_PER_CALL) {
            return false;
        }
        let Ok((header, payload)) = decode(&bytes) else { return false };
        if let Header::Hello { min, max } = header {
            return self.greet(min, max);
        }
        if !self.greeted.load(Ordering::Relaxed) {
            return false;
        }
        match header {
            Header::Request { id, method, remaining_us, place, grant } => {
                bytes.advance(payload);
                self.on_request(id, method, remaining_us, place, grant, bytes)
            }
            Header::Cancel { id } => {
                self.apply(id, self.slots.cancel(id));
                true
            }
            Header::Advance { id, position, progress } => {
                self.slots.on_advance(id, position, progress);
                true
            }
            Header::Consumed { id, position, end } => {
                self.apply(id, self.slots.on_consumed(id, position, end));
                true
            }
            _ => false,
        }
    }

    fn greet(&self, min: u8, max: u8) -> bool {
        if self.greeted.swap(true, Ordering::Relaxed) {
            return false;
        }
        let post = |bytes| drop(self.outgoing.connection.submit(Request::message(bytes)));
        if !(min..=max).contains(&VERSION) {
            post(encode(&Header::Refusal { min: VERSION, max: VERSION }, &[]));
            return true;
        }
        let ServerOptions { calls_per_connection: calls, lanes, .. } = self.core.options;
        post(encode(&Header::Welcome { version: VERSION, calls, lanes }, &self.core.table));
        true
    }

    fn on_request(
        self: &Arc<Self>,
        id: CallId,
        method: u16,
        remaining_us: Option<u32>,
        place: Option<LanePlace>,
        grant: Option<Grant>,
        payload: Bytes,
    ) -> bool {
        if place.is_some_and(|place| !self.lanes().has(place.lane)) {
            return false;
        }
        let core = &self.core;
        let deadline = remaining_us.map(|us| Instant::now() + Duration::from_micros(u64::from(us)));
        let (mut accepted, mut receiving) = (false, None);
        let refused = match self.slots.arrive(id, deadline, grant) {
            Arrived::Violation => return false,
            Arrived::Cancelled => Some(Status::CancelledBefore),
            Arrived::Accepted { freed, body } => {
                (accepted, receiving) = (true, body);
                if freed {
                    self.call_over();
                }
                if !self.admit() {
                    Some(Status::Overloaded)
                } else if core.is_draining() {
                    self.call_over();
                    Some(Status::Stopping)
                } else if usize::from(method) >= core.methods.len() {
                    self.call_over();
                    Some(Status::UnknownMethod)
                } else {
                    None
                }
            }
        };
        add(&core.metrics.received);
        if let Some(status) = refused {
            // An accepted call that has expired since then was answered at that time.
            if !accepted || self.slots.finish(id, None).is_some() {
                core.count(status);
                self.outgoing.post(&Header::Response { id, status, grant: None }, &[]);
            }
            return self.enter_lane(place, None);
        }
        if let Some(deadline) = deadline {
            core.keeper.0.wake_by(deadline);
        }
        let key = CallKey { link: Arc::clone(self), id, place, deadline };
        self.enter_lane(place, Some(Incoming::new(key, method, payload, receiving)))
    }

    /// Runs a call, either now or when it is its turn. `None` stands for a call of a lane that will not run. Returns `false`
    /// if no client of this protocol has a call at this position of the lane.
    fn enter_lane(&self, place: Option<LanePlace>, call: Option<Incoming>) -> bool {
        let next = match place {
            None => Ok(call),
            Some(place) => self.lanes().add(place, call),
        };
        match next {
            Ok(None) => true,
            Ok(Some(next)) => {
                self.core.pool.push(Task::Call(next));
                true
            }
            Err(refused) => {
                // The refused call is in no lane.
                refused.iter().for_each(|_| self.call_over());
                false
            }
        }
    }

    /// Gives up all calls, because the connection has ended or is about to end. Further messages have no effect.
    pub(super) fn end(&self, end: End) {
        self.ended.store(true, Ordering::Release);
        self.give_up_calls(Why::Ended(end));
        self.outgoing.end_waits();
    }

    /// Gives up all calls, because the server is being dropped. Waiting calls are answered, and so are calls that arrive
    /// later.
    pub(super) fn stop(&self) {
        self.give_up_calls(Why::Stopping);
    }

    fn give_up_calls(&self, why: Why) {
        self.slots.end(why, |id, effect| match effect {
            // The connection has ended, so no answer is sent.
            Effect::Answer(Why::Ended(_)) => {}
            effect => self.apply(id, effect),
        });
        let held = self.lanes().clear();
        // These calls have ended.
        held.iter().for_each(|_| self.call_over());
    }
}

/// The server's end of a connection. The engine of the connection calls it.
struct Receiver(Weak<Link>);

impl MessageReceiver for Receiver {
    fn receive(&mut self, message: Message) {
        let Some(link) = self.0.upgrade() else { return };
        if !link.handle(message.bytes) {
            add(&link.core.metrics.malformed);
            link.end(End::ClosedHere);
            // Running calls keep the connection object, so the connection must be closed explicitly.
            link.outgoing.connection.begin_close();
            link.core.remove(&link);
        }
    }

    fn ended(&mut self, end: End) {
        let Some(link) = self.0.upgrade() else { return };
        link.end(end);
        link.core.remove(&link);
    }

    fn is_busy(&self) -> bool {
        self.0.upgrade().is_some_and(|link| link.slots.is_busy())
    }
}
