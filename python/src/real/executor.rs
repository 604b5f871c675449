//! Ops that wait in an event loop of asyncio: an engine that ends one writes to an eventfd, which the loop
//! watches. No thread of an engine waits for the interpreter.

use std::collections::HashMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

use pyo3::intern;
use pyo3::prelude::*;
use rustix::event::{EventfdFlags, eventfd};

use super::errors::of_system;
use super::op::Op;

/// The ops that can go on.
struct Ready {
    numbers: Mutex<Vec<u64>>,
    event: OwnedFd,
    /// Whether the event was written since the loop has read it.
    written: AtomicBool,
}

/// Wakes one op.
struct OpWaker {
    number: u64,
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
            // It fails only if the count overflows, which a single unread write cannot.
            let _ = rustix::io::write(&ready.event, &1_u64.to_ne_bytes());
        }
    }
}

/// An op, the waker of its task, and the future of asyncio that gets its end.
struct Waiting {
    op: Py<Op>,
    future: Py<PyAny>,
    waker: Waker,
}

/// The ops of an event loop.
#[pyclass(frozen, module = "apus._native")]
pub struct Executor {
    ready: Arc<Ready>,
    waiting: Mutex<(u64, HashMap<u64, Waiting>)>,
}

impl Executor {
    /// Polls an op. If it has ended, its future gets the end; otherwise it stays.
    fn poll(&self, py: Python<'_>, number: u64, waiting: Waiting) -> PyResult<()> {
        let Waiting { op, future, waker } = &waiting;
        if future.call_method0(py, intern!(py, "done"))?.is_truthy(py)? {
            // The application has given it up.
            return op.get().cancel(py);
        }
        let polled = op.get().poll(py, waker);
        match polled.unwrap_or_else(|error| Some(Err(error))) {
            None => {
                let mut all = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
                all.1.insert(number, waiting);
                drop(all);
            }
            Some(Ok(value)) => {
                drop(future.call_method1(py, intern!(py, "set_result"), (value,))?)
            }
            Some(Err(error)) => {
                future.call_method1(py, intern!(py, "set_exception"), (error,))?;
            }
        }
        Ok(())
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

    /// Waits for an op; the future of asyncio gets its end. Returns the number of the op if it goes on.
    fn start(&self, py: Python<'_>, op: Py<Op>, future: Py<PyAny>) -> PyResult<Option<u64>> {
        let mut all = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        all.0 += 1;
        let number = all.0;
        drop(all);
        let waker = Waker::from(Arc::new(OpWaker { number, ready: Arc::clone(&self.ready) }));
        self.poll(py, number, Waiting { op, future, waker })?;
        let all = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(all.1.contains_key(&number).then_some(number))
    }

    /// Gives up an op whose future was cancelled.
    fn cancel(&self, py: Python<'_>, number: u64) -> PyResult<()> {
        let mut all = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = all.1.remove(&number);
        drop(all);
        waiting.map_or(Ok(()), |waiting| waiting.op.get().cancel(py))
    }

    /// Polls the ops that can go on.
    fn run(&self, py: Python<'_>) -> PyResult<()> {
        let _ = rustix::io::read(&self.ready.event, &mut [0; 8]);
        self.ready.written.store(false, Ordering::SeqCst);
        let mut ready = self.ready.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let numbers = std::mem::take(&mut *ready);
        drop(ready);
        for number in numbers {
            let mut all = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let waiting = all.1.remove(&number);
            drop(all);
            if let Some(waiting) = waiting {
                self.poll(py, number, waiting)?;
            }
        }
        Ok(())
    }
}
