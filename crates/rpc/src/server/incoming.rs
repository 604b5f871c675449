//! A call as its handler sees it.

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::link::{CallKey, Reply};
use super::methods::Code;
use super::pool::SHORT;
use super::tasks::AsyncTask;
use crate::body::{BodyReader, BodyWriter, RING_BYTES, Receiving, Sending};
use crate::envelope::Status;
use crate::error::Failure;

/// A call that has arrived at a server.
///
/// A handler of [`Methods::with_answer`](crate::Methods::with_answer) owns the call, and may answer it later and from any thread.
/// If the handler drops the call without an answer, the caller gets [`CallError::NoAnswer`](crate::CallError::NoAnswer).
pub struct Incoming {
    key: CallKey,
    method: u16,
    payload: Bytes,
    receiving: Option<Arc<Receiving>>,
    /// Whether dropping the call sends no answer: it is answered elsewhere, or its handler has not begun.
    silent: bool,
    /// The body of an answer given by [`Incoming::stream`]. In that case the next call of the lane runs after the end of the
    /// handler.
    streamed: Option<Arc<Sending>>,
    /// The handler, if it is asynchronous.
    task: Weak<AsyncTask>,
}

impl Incoming {
    pub(super) fn new(
        key: CallKey,
        method: u16,
        payload: Bytes,
        receiving: Option<Arc<Receiving>>,
    ) -> Self {
        let task = Weak::new();
        Self { key, method, payload, receiving, silent: true, streamed: None, task }
    }

    /// Returns the bytes of the request, without its body.
    #[must_use]
    pub fn payload(&self) -> &Bytes {
        &self.payload
    }

    /// Returns the address of the client. The address does not identify the client: any holder of a shared key may have it.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.key.link.outgoing.connection.peer()
    }

    /// Returns the deadline of the call, if it has one.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.key.deadline
    }

    /// Returns the time until the deadline, for calls to other servers on behalf of this call. Returns `None` without a deadline.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        Some(self.key.deadline?.saturating_duration_since(Instant::now()))
    }

    /// Returns `true` if the client no longer waits for the answer: the call was cancelled, its deadline passed, or its
    /// connection ended. After [`Incoming::stream`], also returns `true` if the client stops reading the body before its end.
    ///
    /// A handler that runs for long should check this from time to time and return early. Waits for bodies end by themselves.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.key.link.slots.why(self.key.id).is_some()
            || self.streamed.as_ref().is_some_and(|body| body.has_failed())
            || self.key.deadline.is_some_and(|deadline| deadline <= Instant::now())
    }

    /// Takes the body of the request, if it has one. Only the first call of this function returns it.
    pub fn body(&mut self) -> Option<BodyReader> {
        let receiving = self.receiving.take()?;
        Some(BodyReader::new(receiving, self.key.body_link(), Box::new(|_| ())))
    }

    /// Answers the call, and returns the sending end of a body that is produced while it is sent, through a ring of 2 MiB.
    ///
    /// `length` is the length of the body in bytes, if it is known; the client can read this value. The handler then writes the
    /// body, finishes it and returns [`Reply::streamed`]. Until the client has read the body, the call counts towards the limits
    /// of the server.
    ///
    /// # Errors
    /// If the call was cancelled or answered.
    pub fn stream(
        &mut self,
        payload: impl AsRef<[u8]>,
        length: Option<u64>,
    ) -> Result<BodyWriter, Failure> {
        let (writer, answered) = self.key.stream(payload.as_ref(), RING_BYTES, length);
        if let Some(body) = answered {
            if let Some(task) = self.task.upgrade() {
                task.has_streamed(Arc::clone(&body));
            }
            self.streamed = Some(body);
        }
        writer
    }

    /// Answers the call.
    pub fn answer(mut self, answer: Result<impl Into<Reply>, Failure>) {
        self.silent = true;
        self.key.answer(answer.map(Into::into));
    }

    /// Ends the call before its handler begins.
    pub(super) fn refuse(self, status: Status) {
        self.key.refuse_waiting(status);
    }

    /// Returns `true` if the handler is expected to take little of a worker's time, because its last call did.
    pub(super) fn is_short(&self) -> bool {
        let handler = self.key.link.core.methods.get(usize::from(self.method));
        handler.is_some_and(|handler| handler.short.load(Ordering::Relaxed))
    }

    /// Runs the handler, unless the call has ended.
    pub(super) fn run(self) {
        let from = Instant::now();
        let (link, method) = (Arc::clone(&self.key.link), usize::from(self.method));
        self.run_at(from);
        let Some(handler) = link.core.methods.get(method) else { return };
        let short = from.elapsed() < SHORT;
        if handler.short.load(Ordering::Relaxed) != short {
            handler.short.store(short, Ordering::Relaxed);
        }
    }

    fn run_at(mut self, now: Instant) {
        let key = self.key.clone();
        if key.deadline.is_some_and(|deadline| deadline <= now) {
            return key.refuse_waiting(Status::Expired);
        }
        // The method was checked when the call arrived.
        let Some(handler) = key.link.core.methods.get(usize::from(self.method)) else { return };
        match &handler.code {
            Code::Blocking(run) => {
                if !key.link.slots.start(key.id) {
                    return key.forget();
                }
                match catch_unwind(AssertUnwindSafe(|| run(&mut self))) {
                    Ok(answer) => key.answer(answer),
                    // The panic hook has already reported the panic.
                    Err(_) => key.refuse(Status::Panicked),
                }
            }
            Code::Owning(run) => {
                if !key.link.slots.start(key.id) {
                    return key.forget();
                }
                self.silent = false;
                if catch_unwind(AssertUnwindSafe(|| run(self))).is_err() {
                    key.refuse(Status::Panicked);
                }
            }
            Code::Async(begin) => {
                if !key.link.slots.start(key.id) {
                    return key.forget();
                }
                let task = AsyncTask::new(key.clone());
                self.task = Arc::downgrade(&task);
                let begun = catch_unwind(AssertUnwindSafe(|| begin(self)));
                let Ok(future) = begun else { return key.refuse(Status::Panicked) };
                key.link.slots.set_waker(key.id, Waker::from(Arc::clone(&task)));
                task.poll(future);
            }
        }
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if !self.silent {
            let panics = std::thread::panicking();
            self.key.refuse(if panics { Status::Panicked } else { Status::Abandoned });
        }
        if self.streamed.is_some() {
            self.key.leave_lane();
        }
    }
}
