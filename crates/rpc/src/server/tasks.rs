//! Asynchronous handlers, run by the workers of the server.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use super::link::{CallKey, Reply};
use super::pool::Task;
use super::slots::Why;
use crate::body::Sending;
use crate::envelope::Status;
use crate::error::Failure;

/// The future of a handler.
pub(super) type HandlerFuture = Pin<Box<dyn Future<Output = Result<Reply, Failure>> + Send>>;

/// Drops a future of the application. Its destructors may panic; the panic hook reports this.
fn drop_contained(future: HandlerFuture) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(future)));
}

#[derive(Default)]
struct State {
    /// `None` while the future is polled, and after it has ended.
    future: Option<HandlerFuture>,
    /// Whether the handler was woken after its last poll began. If so, it is in the queue of the workers, or will be when the
    /// poll ends.
    woken: bool,
}

/// A handler that has begun. No lock is held while its future is polled, because the future may wake itself or drop the
/// server.
pub(super) struct AsyncTask {
    key: CallKey,
    state: Mutex<State>,
    /// The body of the handler's answer.
    streamed: OnceLock<Arc<Sending>>,
}

impl Wake for AsyncTask {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut state = self.state();
        let sleeps = !std::mem::replace(&mut state.woken, true) && state.future.is_some();
        drop(state);
        if sleeps {
            self.key.link.core.pool.push(Task::Poll(Arc::clone(self)));
        }
    }
}

impl AsyncTask {
    /// Returns a handler without its future. The caller must poll the future first.
    pub(super) fn new(key: CallKey) -> Arc<Self> {
        Arc::new(Self { key, state: Mutex::default(), streamed: OnceLock::new() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that the handler has answered with this body. If the body fails, the handler gives up.
    pub(super) fn has_streamed(&self, body: Arc<Sending>) {
        // A call is answered only once.
        let _ = self.streamed.set(body);
    }

    /// Polls a handler that was taken from the queue.
    pub(super) fn run(self: Arc<Self>) {
        let mut state = self.state();
        state.woken = false;
        let future = state.future.take();
        drop(state);
        if let Some(future) = future {
            self.poll(future);
        }
    }

    /// Polls the handler. Answers the call if the handler has ended or should give up.
    pub(super) fn poll(self: Arc<Self>, mut future: HandlerFuture) {
        let why = self.key.link.slots.why(self.key.id);
        if why.is_some() || self.streamed.get().is_some_and(|body| body.has_failed()) {
            return self.end(future, why);
        }
        let waker = Waker::from(Arc::clone(&self));
        let mut context = Context::from_waker(&waker);
        let result = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut context)));
        if let Ok(Poll::Pending) = result {
            let mut state = self.state();
            state.future = Some(future);
            let woken = state.woken;
            drop(state);
            if woken {
                let pool = &self.key.link.core.pool;
                pool.push(Task::Poll(Arc::clone(&self)));
            }
            return;
        }
        drop_contained(future);
        match result {
            Ok(Poll::Ready(answer)) => self.key.answer(answer),
            Ok(Poll::Pending) => {}
            // The panic hook has already reported the panic.
            Err(_) => self.key.refuse(Status::Panicked),
        }
    }

    /// Ends a handler that was taken from the queue, because the server is stopping.
    pub(super) fn give_up(self: Arc<Self>) {
        let future = self.state().future.take();
        if let Some(future) = future {
            let why = self.key.link.slots.why(self.key.id);
            self.end(future, why.or(Some(Why::Stopping)));
        }
    }

    /// Ends the handler early. Answers the call, unless the only reason is that the client stopped reading its answer.
    fn end(&self, future: HandlerFuture, why: Option<Why>) {
        drop_contained(future);
        if let Some(why) = why {
            self.key.refuse(why.status(true));
        }
    }
}
