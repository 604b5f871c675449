//! Ops: what has begun and can be waited for, by a blocking call or by asyncio.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use apus_udp::{Connection as Link, Done};
use pyo3::exceptions::{PyRuntimeError, PyTimeoutError, asyncio::CancelledError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::Detached;
use super::connection::Connection;
use super::errors::{Failure, caused_by};
use super::host::Engines;
use super::memory::release_unused;

/// Time between two looks at signals of a blocking call. Rationale: shorter than what a person notices.
const TICK: Duration = Duration::from_millis(50);
/// Pause before the next look at a wait that ended early: its host stops. deviation: no source.
const PAUSE: Duration = Duration::from_millis(1);

/// What a wait returns.
pub enum Value {
    None,
    Bytes(Vec<u8>),
    Message(apus_udp::Bytes),
    Word(u64),
    Connection(Link),
}

type Ended = Result<Value, Failure>;

/// The end of an op as Python sees it.
type End = PyResult<Py<PyAny>>;

/// Which part of the end of an op is its value.
#[derive(Clone, Copy)]
pub enum Part {
    None,
    Bytes,
    Word,
}

/// Something that ends.
pub enum Task {
    /// An op that was submitted.
    Op(apus_udp::Op, Part),
    /// Another wait. It begins when it is waited for.
    Wait(Pin<Box<dyn Future<Output = Ended> + Send>>),
}

impl Task {
    /// Asks the engine to give up an op.
    fn cancel(&mut self) {
        if let Self::Op(op, _) = self {
            op.cancel();
        }
    }
}

impl Future for Task {
    type Output = Ended;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Ended> {
        match self.get_mut() {
            Self::Op(op, part) => Pin::new(op).poll(context).map(|end| {
                let Done { bytes, old, .. } = end.map_err(Failure::Op)?;
                Ok(match part {
                    Part::None => Value::None,
                    Part::Bytes => Value::Bytes(bytes),
                    Part::Word => Value::Word(old.unwrap_or_default()),
                })
            }),
            Self::Wait(wait) => wait.as_mut().poll(context),
        }
    }
}

/// Who drives the engine while a blocking call waits.
pub enum Driver {
    Host,
    Connection(Link),
}

enum State {
    Waiting(Detached<Task>),
    /// A call waits for it.
    Taken,
    Ended(End),
}

/// See the module.
#[pyclass(frozen, module = "apus._native", generic)]
pub struct Op {
    state: Mutex<State>,
    cancelled: AtomicBool,
    driver: Detached<Driver>,
    engines: Detached<Arc<Engines>>,
}

impl Op {
    pub fn new(task: Task, driver: Driver, engines: &Arc<Engines>) -> Self {
        Self {
            state: Mutex::new(State::Waiting(Detached::new(task))),
            cancelled: AtomicBool::new(false),
            driver: Detached::new(driver),
            engines: Detached::new(Arc::clone(engines)),
        }
    }

    /// Polls it; returns its end, if it has ended.
    pub fn poll(&self, py: Python<'_>, waker: &Waker) -> PyResult<Option<End>> {
        let mut task = match self.take(py)? {
            Ok(task) => task,
            Err(ended) => return Ok(Some(ended)),
        };
        let poll =
            py.detach(|| task.with(|task| Pin::new(task).poll(&mut Context::from_waker(waker))));
        Ok(match poll {
            Poll::Ready(ended) => Some(self.end(py, ended)),
            Poll::Pending => {
                self.give_back(task);
                None
            }
        })
    }

    /// Takes the task, or returns its end.
    fn take(&self, py: Python<'_>) -> PyResult<Result<Detached<Task>, End>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *state, State::Taken) {
            State::Waiting(task) => Ok(Ok(task)),
            State::Taken => Err(PyRuntimeError::new_err("another thread waits for this op")),
            State::Ended(end) => {
                let copy = match &end {
                    Ok(value) => Ok(value.clone_ref(py)),
                    Err(error) => Err(error.clone_ref(py)),
                };
                *state = State::Ended(end);
                Ok(Err(copy))
            }
        }
    }

    fn give_back(&self, mut task: Detached<Task>) {
        if self.cancelled.load(Ordering::Relaxed) {
            task.with(Task::cancel);
        }
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = State::Waiting(task);
    }

    /// Keeps the end, and returns it.
    fn end(&self, py: Python<'_>, ended: Ended) -> End {
        release_unused(py);
        let end = match ended {
            Ok(value) => self.to_python(py, value),
            Err(failure) => {
                let of_engine = failure.is_of_engine();
                let cause = if of_engine { self.engines.raised(py) } else { None };
                Err(caused_by(py, failure.into(), cause))
            }
        };
        let copy = match &end {
            Ok(value) => Ok(value.clone_ref(py)),
            Err(error) => Err(error.clone_ref(py)),
        };
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = State::Ended(end);
        copy
    }

    fn to_python(&self, py: Python<'_>, value: Value) -> PyResult<Py<PyAny>> {
        Ok(match value {
            Value::None => py.None(),
            Value::Bytes(bytes) => PyBytes::new(py, &bytes).into_any().unbind(),
            Value::Message(bytes) => PyBytes::new(py, &bytes).into_any().unbind(),
            Value::Word(word) => word.into_pyobject(py)?.into_any().unbind(),
            Value::Connection(link) => {
                Py::new(py, Connection::new(link, &self.engines))?.into_any()
            }
        })
    }

    /// Waits for its end until `until`.
    fn drive(&self, task: &mut Task, until: Instant) -> Option<Ended> {
        match &*self.driver {
            Driver::Host => {
                let left = until.saturating_duration_since(Instant::now());
                self.engines.host.block_on(task, Some(left))
            }
            Driver::Connection(link) => link.block_on(task, Some(until)),
        }
    }
}

#[pymethods]
impl Op {
    /// Waits for its end.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Py<PyAny>> {
        let deadline = timeout.and_then(|s| Duration::try_from_secs_f64(s).ok());
        let deadline = deadline.and_then(|after| Instant::now().checked_add(after));
        let mut task = match self.take(py)? {
            Ok(task) => task,
            Err(ended) => return ended,
        };
        loop {
            let tick = Instant::now() + TICK;
            let until = deadline.map_or(tick, |at| at.min(tick));
            let ended = py.detach(|| {
                let ended = task.with(|task| self.drive(task, until));
                if ended.is_none() && Instant::now() + PAUSE < until {
                    std::thread::sleep(PAUSE);
                }
                ended
            });
            if let Some(ended) = ended {
                return self.end(py, ended);
            }
            let stopped = py.check_signals().err();
            let late = deadline.is_some_and(|at| at <= Instant::now());
            if stopped.is_some() || late {
                self.give_back(task);
                let message =
                    "the op has not ended in time; it goes on, and can be waited for again";
                return Err(stopped.unwrap_or_else(|| PyTimeoutError::new_err(message)));
            }
            if self.cancelled.load(Ordering::Relaxed) {
                if matches!(&*task, Task::Wait(_)) {
                    return self.abandon(py, task);
                }
                py.detach(|| task.with(Task::cancel));
            }
        }
    }

    /// Gives it up.
    pub fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        self.cancelled.store(true, Ordering::Relaxed);
        // A call that waits sees the mark.
        let Ok(Ok(task)) = self.take(py) else { return Ok(()) };
        match &*task {
            Task::Op(..) => py.detach(|| self.give_back(task)),
            Task::Wait(_) => drop(self.abandon(py, task)),
        }
        Ok(())
    }

    /// Whether it has ended. It is not looked at in the network.
    #[getter]
    fn done(&self) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(&*state, State::Ended(_))
    }

    fn __await__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let loops = slf.py().import("apus._loops")?;
        loops.call_method1("end_of", (slf,))?.call_method0("__await__")
    }
}

impl Op {
    /// Ends a wait that the application has given up.
    fn abandon(&self, py: Python<'_>, task: Detached<Task>) -> PyResult<Py<PyAny>> {
        drop(task);
        let error = CancelledError::new_err(());
        let end = State::Ended(Err(error.clone_ref(py)));
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = end;
        Err(error)
    }
}
