//! Asynchronous handlers, run by the workers of the server.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use super::link::{CallKey, Reply};
use super::pool::Task;
use crate::body::Sending;
use crate::envelope::Status;
use crate::error::Failure;

/// The future of a handler.
pub(super) type HandlerFuture = Pin<Box<dyn Future<Output = Result<Reply, Failure>> + Send>>;

/// Drops a future of the application, whose destructors may panic. The panic hook reports it.
fn drop_contained(future: Option<HandlerFuture>) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(future)));
}

/// A handler that has begun.
pub(super) struct AsyncTask {
    key: CallKey,
    /// `None` before it is set, and once it has ended.
    future: Mutex<Option<HandlerFuture>>,
    /// The body of its answer.
    streamed: OnceLock<Arc<Sending>>,
    /// Whether it is in the queue of the workers.
    queued: AtomicBool,
}

impl Wake for AsyncTask {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::AcqRel) {
            self.key.link.core.pool.push(Task::Poll(Arc::clone(self)));
        }
    }
}

impl AsyncTask {
    /// Returns a handler without its future, which the caller sets and polls first.
    pub(super) fn new(key: CallKey) -> Arc<Self> {
        let (future, streamed) = (Mutex::default(), OnceLock::new());
        Arc::new(Self { key, future, streamed, queued: AtomicBool::new(true) })
    }

    pub(super) fn set(&self, future: HandlerFuture) {
        *self.future.lock().unwrap_or_else(PoisonError::into_inner) = Some(future);
    }

    /// Records that the handler has answered with this body. If the body fails, the handler gives up.
    pub(super) fn has_streamed(&self, body: Arc<Sending>) {
        // A call is answered once.
        let _ = self.streamed.set(body);
    }

    /// Polls the handler. Answers the call if the handler has ended or should give up.
    pub(super) fn run(self: Arc<Self>) {
        let mut future = self.future.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(polled) = &mut *future else { return };
        // A wake-up from here on queues the task again.
        self.queued.store(false, Ordering::Release);
        let why = self.key.link.slots.why(self.key.id);
        if why.is_some() || self.streamed.get().is_some_and(|body| body.has_failed()) {
            let ended = future.take();
            drop(future);
            drop_contained(ended);
            if let Some(why) = why {
                self.key.refuse(why.status(true));
            }
            return;
        }
        let waker = Waker::from(Arc::clone(&self));
        let mut context = Context::from_waker(&waker);
        let result = catch_unwind(AssertUnwindSafe(|| polled.as_mut().poll(&mut context)));
        if let Ok(Poll::Pending) = result {
            return;
        }
        let ended = future.take();
        drop(future);
        drop_contained(ended);
        match result {
            Ok(Poll::Ready(answer)) => self.key.answer(answer),
            Ok(Poll::Pending) => {}
            // The panic hook has reported it.
            Err(_) => self.key.refuse(Status::Panicked),
        }
    }

    /// Ends the handler, because the server is stopping.
    pub(super) fn give_up(self: Arc<Self>) {
        let ended = self.future.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop_contained(ended);
        self.key.refuse(Status::Abandoned);
    }
}
