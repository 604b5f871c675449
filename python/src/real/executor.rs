//! Ops that wait in an event loop of asyncio. An engine that ends an op writes to an eventfd, which the loop watches,
//! so no engine thread waits for the interpreter.

use std::collections::HashMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

use pyo3::intern;
use pyo3::prelude::*;
use rustix::event::{EventfdFlags, eventfd};

use super::errors::of_system;
use super::op::Op;

/// Ops that can continue.
struct Ready {
    numbers: Mutex<Vec<usize>>,
    event: OwnedFd,
    /// `true` if the eventfd was written after the loop last read it.
    written: AtomicBool,
}

/// Waker of one op.
struct OpWaker {
    number: usize,
    ready: Arc<Ready>,
}

impl Wake for OpWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let ready = &self.ready;
        ready.numbers.lock().unwrap_or_else(PoisonError::into_inner).push(self.number);
        if !ready.written.swap(true, Ordering::SeqCst) {
            // The write fails only if the counter overflows, which a single unread write cannot cause.
            let _ = rustix::io::write(&ready.event, &1_u64.to_ne_bytes());
        }
    }
}

/// The ops of an event loop.
#[pyclass(frozen, module = "apus._native")]
pub struct Executor {
    ready: Arc<Ready>,
    /// Futures of asyncio whose tasks poll an op again. A future is identified by its address.
    waiting: Mutex<HashMap<usize, Py<PyAny>>>,
}

impl Executor {
    fn waiting(&self) -> MutexGuard<'_, HashMap<usize, Py<PyAny>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Executor {
    #[new]
    fn new() -> PyResult<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let event = event.map_err(|error| of_system(&error))?;
        let written = AtomicBool::new(false);
        let ready = Arc::new(Ready { numbers: Mutex::default(), event, written });
        Ok(Self { ready, waiting: Mutex::default() })
    }

    /// The descriptor that can be read when an op can go on.
    fn fileno(&self) -> i32 {
        self.ready.event.as_raw_fd()
    }

    /// Polls an op. Returns its value, if it has ended, or raises its exception. Otherwise `future` ends when the op is to be
    /// polled again; the value stays in the op until then.
    fn poll(
        &self,
        py: Python<'_>,
        op: &Bound<'_, Op>,
        future: Py<PyAny>,
    ) -> PyResult<Option<(Py<PyAny>,)>> {
        let number = future.as_ptr() as usize;
        let waker = Waker::from(Arc::new(OpWaker { number, ready: Arc::clone(&self.ready) }));
        match op.get().poll(py, &waker)? {
            Some(ended) => ended.map(|value| Some((value,))),
            None => {
                // The event loop, which calls `run`, is the caller.
                self.waiting().insert(number, future);
                Ok(None)
            }
        }
    }

    /// Forgets a future whose task waits no longer.
    #[allow(clippy::needless_pass_by_value, reason = "an argument of Python's")]
    fn forget(&self, future: Py<PyAny>) {
        let forgotten = self.waiting().remove(&(future.as_ptr() as usize));
        drop(forgotten);
    }

    /// Tells the tasks of ops that can go on.
    fn run(&self, py: Python<'_>) -> PyResult<()> {
        let _ = rustix::io::read(&self.ready.event, &mut [0; 8]);
        self.ready.written.store(false, Ordering::SeqCst);
        let mut ready = self.ready.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let numbers = std::mem::take(&mut *ready);
        drop(ready);
        for number in numbers {
            let Some(future) = self.waiting().remove(&number) else { continue };
            // The future may have been cancelled.
            if !future.call_method0(py, intern!(py, "done"))?.is_truthy(py)? {
                future.call_method1(py, intern!(py, "set_result"), (py.None(),))?;
            }
        }
        Ok(())
    }
}
