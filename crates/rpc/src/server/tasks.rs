//! Asynchronous handlers, run by the workers of the server.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use super::link::{CallKey, Reply};
use super::pool::Task;
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
    /// `None` once it has ended.
    future: Mutex<Option<HandlerFuture>>,
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
    pub(super) fn new(key: CallKey, future: HandlerFuture) -> Arc<Self> {
        // The caller polls it first.
        Arc::new(Self { key, future: Mutex::new(Some(future)), queued: AtomicBool::new(true) })
    }

    /// Polls the handler. Answers the call if the handler has ended or should give up.
    pub(super) fn run(self: Arc<Self>) {
        let mut future = self.future.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(polled) = &mut *future else { return };
        // A wake-up from here on queues the task again.
        self.queued.store(false, Ordering::Release);
        if let Some(why) = self.key.link.slots.why(self.key.id) {
            let ended = future.take();
            drop(future);
            drop_contained(ended);
            self.key.refuse(why.status(true));
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
