//! A call from its beginning to its answer.

use std::future::{Future, IntoFuture, poll_fn};
use std::ops::Deref;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use apus_udp::{Done, End, Op, OpError, Request, SubmitError};
use bytes::Bytes;

use super::table::{Outcome, executed};
use super::{Lane, Method, Shared};
use crate::body::{BodyLink, BodyReader, BodyWriter, RING_BYTES, Sending, whole};
use crate::envelope::{CallId, GRANT_BYTES, Grant, Header, LanePlace, REQUEST_BYTES, encode};
use crate::error::{CallError, Executed};
use crate::metrics::add;

/// Maximum number of bytes of a request before its payload.
pub(super) const MAX_HEADER_BYTES: usize = REQUEST_BYTES + 6 + GRANT_BYTES;

enum Body {
    None,
    Whole(Bytes),
    Ring { capacity: usize, length: Option<u64> },
}

/// A call with its options, before it begins ([`Client::call`](crate::Client::call)).
#[must_use = "a call begins with `wait`, `start` or `.await`"]
pub struct CallBuilder<'a> {
    shared: &'a Arc<Shared>,
    method: Method,
    payload: &'a [u8],
    /// The reserved slot of the table, if the call has one.
    slot: Option<u16>,
    deadline: Option<Duration>,
    lane: Option<&'a Lane>,
    body: Body,
}

impl<'a> CallBuilder<'a> {
    pub(super) fn new(shared: &'a Arc<Shared>, method: Method, payload: &'a [u8]) -> Self {
        Self { shared, method, payload, slot: None, deadline: None, lane: None, body: Body::None }
    }

    /// Returns a call with a reserved slot.
    #[cfg(feature = "tower")]
    pub(crate) fn reserved(
        shared: &'a Arc<Shared>,
        method: Method,
        payload: &'a [u8],
        slot: Option<u16>,
    ) -> Self {
        Self { slot, ..Self::new(shared, method, payload) }
    }

    /// Sets the time after which the call is given up, counted from its beginning. Without a deadline, the call ends with its
    /// answer or with its connection.
    ///
    /// The server gets the remaining time, and does not begin the call after that time. The transit time of the request is not
    /// subtracted. If the deadline is more than 71 minutes, only this side enforces it.
    pub fn deadline(mut self, after: Duration) -> Self {
        self.deadline = Some(after);
        self
    }

    /// Puts the call into an ordered lane: the server runs it after all calls that were begun in this lane before it.
    pub fn lane(mut self, lane: &'a Lane) -> Self {
        self.lane = Some(lane);
        self
    }

    /// Adds a body that is in memory. The handler fetches it from this memory by one-sided reads.
    pub fn body(mut self, bytes: impl Into<Bytes>) -> Self {
        self.body = Body::Whole(bytes.into());
        self
    }

    /// Adds a body that is written while it is sent ([`Call::body`]), through a ring of 2 MiB. `length` is the length of the body
    /// in bytes, if it is known; the handler can read this value.
    pub fn stream(mut self, length: Option<u64>) -> Self {
        self.body = Body::Ring { capacity: RING_BYTES, length };
        self
    }

    /// Begins the call. The result is a future of the answer.
    ///
    /// # Errors
    /// If the call cannot begin. Its handler has then not run.
    pub fn start(self) -> Result<Call, CallError> {
        let shared = self.shared;
        let Some(slot) = self.slot.or_else(|| shared.table.reserve()) else {
            return Err(CallError::Busy { limit: shared.table.limit() });
        };
        self.start_in(slot).inspect_err(|_| shared.table.unreserve(slot))
    }

    /// Begins the call in a reserved slot, which stays reserved if the call cannot begin.
    fn start_in(self, slot: u16) -> Result<Call, CallError> {
        let shared = self.shared;
        let limit = shared.outgoing.max_message().saturating_sub(MAX_HEADER_BYTES);
        if self.payload.len() > limit {
            return Err(CallError::TooLong { length: self.payload.len(), limit });
        }
        let (sending, grant) = self.register()?;
        let now = Instant::now();
        let deadline = self.deadline.and_then(|after| now.checked_add(after));
        let writes = sending.clone().filter(|_| grant.is_some_and(|grant| !grant.whole));
        let id = shared.table.begin(slot, now, deadline, sending);
        // From here on, the end of the connection ends the call.
        if let Some(end) = shared.table.ended() {
            shared.table.revert(id);
            return Err(CallError::Ended(end, Executed::NotRun));
        }
        match self.submit(id, grant) {
            Ok(op) => shared.table.set_op(id, op),
            Err(error) => {
                shared.table.revert(id);
                return Err(match error {
                    SubmitError::Ended(end) => CallError::Ended(end, Executed::NotRun),
                    SubmitError::PeerDraining => CallError::Stopping,
                    _ => CallError::Busy { limit: shared.outgoing.connection.max_ops() as usize },
                });
            }
        }
        add(&shared.table.metrics.started);
        let link = BodyLink { outgoing: Arc::clone(&shared.outgoing), id, deadline };
        if grant.is_some()
            && let Some(deadline) = deadline
        {
            // The caller may wait for bodies by futures, for which the keeper must know the deadline.
            shared.keeper.0.wake_by(deadline);
        }
        Ok(Call {
            body: writes.map(|sending| BodyWriter::new(sending, link)),
            shared: Arc::clone(shared),
            id,
            deadline,
            kept: false,
            over: false,
            ended: None,
        })
    }

    /// Registers the memory of the body.
    fn register(&self) -> Result<(Option<Arc<Sending>>, Option<Grant>), CallError> {
        let to = &self.shared.outgoing.connection;
        let registered = match &self.body {
            Body::None => return Ok((None, None)),
            Body::Whole(bytes) => whole(&self.shared.host, to, bytes.clone()),
            Body::Ring { capacity, length } => {
                Sending::ring(&self.shared.host, to, *capacity, *length)
            }
        };
        let (sending, grant) = registered.map_err(|_| CallError::NoRegion)?;
        Ok((Some(sending), Some(grant)))
    }

    fn submit(&self, id: CallId, grant: Option<Grant>) -> Result<Op, SubmitError> {
        let remaining_us = self.deadline.and_then(|after| {
            // Rounded up, because the server must not give up a call before this side does.
            let us = after.as_nanos().div_ceil(1000).max(1);
            u32::try_from(us).ok()
        });
        let request = |place| {
            let method = self.method.0;
            let header = Header::Request { id, method, remaining_us, place, grant };
            Request::message(encode(&header, self.payload))
        };
        let connection = &self.shared.outgoing.connection;
        let Some(lane) = self.lane else { return connection.submit(request(None)) };
        // If the request was not submitted, its number is used again. The engine runs after the lock is released, because it
        // may wait for a thread that begins a call of the lane, or may call a waker that does so.
        let mut next = lane.next.lock().unwrap_or_else(PoisonError::into_inner);
        let place = LanePlace { lane: lane.number, sequence: *next };
        let op = connection.submit_unsent(request(Some(place)))?;
        *next = next.wrapping_add(1);
        drop(next);
        connection.send();
        Ok(op)
    }

    /// Begins the call and waits for its answer.
    ///
    /// # Errors
    /// How the call failed; [`CallError::executed`] returns whether its handler may have run. If this thread would wait for
    /// itself ([`End::WouldDeadlock`]), the call does not begin.
    pub fn wait(self) -> Result<Response, CallError> {
        if self.shared.outgoing.connection.would_deadlock() {
            return Err(CallError::Ended(End::WouldDeadlock, Executed::NotRun));
        }
        self.start()?.wait()
    }
}

impl IntoFuture for CallBuilder<'_> {
    type Output = Result<Response, CallError>;
    type IntoFuture = CallFuture;

    fn into_future(self) -> CallFuture {
        CallFuture(self.start().map_err(Some))
    }
}

/// A future of a call's answer. It also reports if the call could not begin.
pub struct CallFuture(pub(super) Result<Call, Option<CallError>>);

impl Future for CallFuture {
    type Output = Result<Response, CallError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Ok(call) => Pin::new(call).poll(context),
            Err(error) => match error.take() {
                Some(error) => Poll::Ready(Err(error)),
                None => Poll::Pending,
            },
        }
    }
}

/// A call that has begun, which is a future of its answer. Dropping it cancels the call at the server.
#[must_use = "dropping a call cancels it"]
pub struct Call {
    shared: Arc<Shared>,
    id: CallId,
    deadline: Option<Instant>,
    /// Whether the keeper knows the deadline.
    kept: bool,
    /// Whether the caller has received the outcome.
    over: bool,
    /// The end of the connection, and the op of the request. The end of that op shows whether the server may have seen the
    /// request.
    ended: Option<(End, Op)>,
    body: Option<BodyWriter>,
}

impl Call {
    /// Takes the sending end of the request's body, if the call has one ([`CallBuilder::stream`]). Only the first call of this
    /// function returns it.
    pub fn body(&mut self) -> Option<BodyWriter> {
        self.body.take()
    }

    /// Asks the server to cancel the call. The call continues until its actual end: its answer if the handler was faster,
    /// otherwise [`CallError::Cancelled`], which states whether the handler has begun.
    pub fn cancel(&self) {
        if self.shared.table.cancel(self.id) {
            self.shared.post_cancel(self.id);
        }
    }

    /// Waits for the answer.
    ///
    /// # Errors
    /// How the call failed. If this thread would wait for itself ([`End::WouldDeadlock`]), the call is cancelled.
    pub fn wait(mut self) -> Result<Response, CallError> {
        let (shared, deadline) = (Arc::clone(&self.shared), self.deadline);
        let connection = &shared.outgoing.connection;
        if let Some(result) = connection.block_on(poll_fn(|c| self.poll_answer(c)), deadline) {
            return result;
        }
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return self.give_up(CallError::Deadline(Executed::MayHaveRun));
        }
        self.give_up(CallError::Ended(shared.outgoing.end_of_wait(), Executed::MayHaveRun))
    }

    fn poll_answer(&mut self, context: &mut Context<'_>) -> Poll<Result<Response, CallError>> {
        if let Some((end, op)) = &mut self.ended {
            // The ops of a connection end together with it.
            let (end, request) = (*end, Pin::new(op).poll(context));
            return request.map(|request| {
                self.ended = None;
                Err(self.ended_with(end, Some(&request)))
            });
        }
        let Some(outcome) = self.shared.table.take(self.id, context.waker()) else {
            return Poll::Pending;
        };
        self.over = true;
        match outcome {
            Outcome::Ended(end, Some(op)) => {
                self.ended = Some((end, op));
                self.poll_answer(context)
            }
            outcome => Poll::Ready(self.finish(outcome)),
        }
    }

    /// Counts and returns a call's end with its connection. The end of its request shows whether the call may have run.
    fn ended_with(&self, end: End, request: Option<&Result<Done, OpError>>) -> CallError {
        let error = CallError::Ended(end, request.map_or(Executed::MayHaveRun, executed));
        self.shared.table.metrics.count(&Err(error.clone()));
        error
    }

    fn finish(&mut self, outcome: Outcome) -> Result<Response, CallError> {
        match outcome {
            Outcome::Answered(answer) => {
                let body = answer.body.map(|body| {
                    if let Some(deadline) = self.deadline {
                        // The caller may wait for the body by futures, although it blocked for the answer.
                        self.shared.keeper.0.wake_by(deadline);
                    }
                    let outgoing = Arc::clone(&self.shared.outgoing);
                    let link = BodyLink { outgoing, id: self.id, deadline: self.deadline };
                    let (shared, id) = (Arc::clone(&self.shared), self.id);
                    BodyReader::new(body, link, Box::new(move |_| shared.table.body_over(id)))
                });
                Ok(Response { payload: answer.payload, body })
            }
            Outcome::Failed(error) => Err(error),
            Outcome::Ended(end, op) => {
                let request = op.and_then(|op| op.try_take());
                Err(self.ended_with(end, request.as_ref()))
            }
        }
    }

    /// Ends the call for its caller.
    fn give_up(&mut self, error: CallError) -> Result<Response, CallError> {
        if std::mem::replace(&mut self.over, true) {
            return Err(error);
        }
        let Some((outcome, tell)) = self.shared.table.give_up(self.id, error.clone()) else {
            return Err(error);
        };
        if tell {
            self.shared.post_cancel(self.id);
        }
        self.finish(outcome)
    }
}

impl Future for Call {
    type Output = Result<Response, CallError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if !self.kept {
            self.kept = true;
            if let Some(deadline) = self.deadline {
                self.shared.keeper.0.wake_by(deadline);
            }
        }
        let answer = self.poll_answer(context);
        if answer.is_pending() {
            self.shared.outgoing.connection.drive_for(context);
        }
        answer
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.over {
            // Also drops a body that no caller has taken; dropping its reader ends the body.
            drop(self.give_up(CallError::Cancelled(Executed::MayHaveRun)));
        } else if let Some((end, op)) = self.ended.take() {
            drop(self.finish(Outcome::Ended(end, Some(op))));
        }
    }
}

/// Answer of a handler. Dereferences to the bytes of the answer.
pub struct Response {
    payload: Bytes,
    body: Option<BodyReader>,
}

impl Response {
    /// Returns the bytes of the answer, without its body.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.payload
    }

    /// Takes the body of the answer, if it has one. Only the first call of this function returns it.
    pub fn body(&mut self) -> Option<BodyReader> {
        self.body.take()
    }
}

impl Deref for Response {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.payload
    }
}

impl std::fmt::Debug for Response {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let body = if self.body.is_some() { " and a body" } else { "" };
        write!(f, "Response of {} B{body}", self.payload.len())
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        let next = *self.next.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut lanes = self.shared.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.push((self.number, next));
    }
}

impl Lane {
    pub(super) fn new(shared: &Arc<Shared>, number: u16, next: u32) -> Self {
        Self { shared: Arc::clone(shared), number, next: Mutex::new(next) }
    }
}
