//! Waiting for a future on the caller's thread.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// `APUS_FOREVER`.
pub(crate) const FOREVER: u64 = u64::MAX;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Returns the output of the future, or `None` after this timeout.
pub(crate) fn wait<F: Future>(future: F, timeout_ns: u64) -> Option<F::Output> {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let deadline = match timeout_ns {
        FOREVER => None,
        ns => Instant::now().checked_add(Duration::from_nanos(ns)),
    };
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return Some(value);
        }
        match deadline.map(|at| at.saturating_duration_since(Instant::now())) {
            None => thread::park(),
            Some(Duration::ZERO) => return None,
            Some(left) => thread::park_timeout(left),
        }
    }
}
