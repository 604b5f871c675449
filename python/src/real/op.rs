//! Ops: operations in progress that a blocking call or asyncio can wait for.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use apus_udp::{Connection as Link, Done};
use pyo3::exceptions::{PyRuntimeError, PyTimeoutError, asyncio::CancelledError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::connection::Connection;
use super::errors::{Failure, caused_by};
use super::host::Engines;
use super::memory::release_unused;
use super::{Detached, TICK, deadline, would_deadlock};

/// Pause before the next attempt after a wait ended early because its host stops. deviation: no source.
const PAUSE: Duration = Duration::from_millis(1);

/// Value that a wait returns.
pub enum Value {
    None,
    Bytes(Vec<u8>),
    Message(apus_udp::Bytes),
    Word(u64),
    Connection(Link),
}

type Ended = Result<Value, Failure>;

/// Result of an op for Python.
type End = PyResult<Py<PyAny>>;

/// Selects the part of a completion that is the op's value.
#[derive(Clone, Copy)]
pub enum Part {
    None,
    Bytes,
    Word,
}

/// An operation that ends.
pub enum Task {
    /// An op that was submitted.
    Op(apus_udp::Op, Part),
    /// Another kind of wait. It begins when a call waits for it.
    Wait(Pin<Box<dyn Future<Output = Ended> + Send>>),
}

impl Task {
    /// Requests the engine to cancel an op.
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

/// Thread that runs the engine during a blocking call.
pub enum Driver {
    Host,
    Connection(Link),
}

/// Tasks of event loops that wait for an op. After each wake-up a task registers again.
#[derive(Default)]
struct Waiters(Mutex<Vec<Waker>>);

impl Waiters {
    fn add(&self, waker: &Waker) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(waker.clone());
    }

    fn wake_all(&self) {
        let all = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        all.into_iter().for_each(Waker::wake);
    }
}

impl Wake for Waiters {
    fn wake(self: Arc<Self>) {
        self.wake_all();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wake_all();
    }
}

enum State {
    Waiting(Detached<Task>),
    /// A call currently holds the task and waits for it.
    Taken,
    Ended(End),
}

/// See the module.
#[pyclass(frozen, module = "apus._native", generic)]
pub struct Op {
    state: Mutex<State>,
    cancelled: AtomicBool,
    waiters: Arc<Waiters>,
    driver: Detached<Driver>,
    engines: Detached<Arc<Engines>>,
}

impl Op {
    /// Begins a task of a host.
    ///
    /// # Errors
    /// If the host belongs to another process, of which this one is a fork.
    pub fn new(task: Task, driver: Driver, engines: &Detached<Arc<Engines>>) -> PyResult<Self> {
        engines.check_process()?;
        Ok(Self {
            state: Mutex::new(State::Waiting(Detached::new(task))),
            cancelled: AtomicBool::new(false),
            waiters: Arc::default(),
            driver: Detached::new(driver),
            engines: Detached::new(Arc::clone(engines)),
        })
    }

    /// Polls the op; returns its result if it has ended. Otherwise `waker` is woken when the op is to be polled again.
    pub fn poll(&self, py: Python<'_>, waker: &Waker) -> PyResult<Option<End>> {
        self.engines.check_process()?;
        self.waiters.add(waker);
        let mut task = match self.take(py) {
            Some(Ok(task)) => task,
            Some(Err(ended)) => return Ok(Some(ended)),
            // A blocking call of another thread wakes this task when it ends.
            None => return Ok(None),
        };
        let all = Waker::from(Arc::clone(&self.waiters));
        let poll =
            py.detach(|| task.with(|task| Pin::new(task).poll(&mut Context::from_waker(&all))));
        Ok(match poll {
            Poll::Ready(ended) => Some(self.end(py, ended)),
            Poll::Pending => self.give_back(py, task),
        })
    }

    /// Takes the task, or returns its result; `None` if a call already waits for it.
    fn take(&self, py: Python<'_>) -> Option<Result<Detached<Task>, End>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *state, State::Taken) {
            State::Waiting(task) => Some(Ok(task)),
            State::Taken => None,
            State::Ended(end) => {
                let copy = match &end {
                    Ok(value) => Ok(value.clone_ref(py)),
                    Err(error) => Err(error.clone_ref(py)),
                };
                *state = State::Ended(end);
                Some(Err(copy))
            }
        }
    }

    /// Returns the task to the op. If it was cancelled meanwhile, an op is cancelled and another kind of wait ends; the
    /// result is then returned.
    fn give_back(&self, py: Python<'_>, mut task: Detached<Task>) -> Option<End> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if self.cancelled.load(Ordering::Relaxed) {
            if matches!(&*task, Task::Wait(_)) {
                drop(state);
                return Some(self.abandon(py, task));
            }
            task.with(Task::cancel);
        }
        *state = State::Waiting(task);
        None
    }

    /// Returns the task of a blocking call that ends with `error`. Tasks of event loops poll it again.
    fn give_up_waiting(&self, py: Python<'_>, task: Detached<Task>, error: PyErr) -> End {
        let ended = self.give_back(py, task);
        self.waiters.wake_all();
        ended.unwrap_or(Err(error))
    }

    /// Stores the result, and returns it.
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
        self.waiters.wake_all();
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

    /// Returns `true` if this thread runs the engine and would wait for itself.
    fn would_deadlock(&self) -> bool {
        match &*self.driver {
            Driver::Host => self.engines.host.would_deadlock(),
            Driver::Connection(link) => link.would_deadlock(),
        }
    }

    /// Runs the engine until the task ends, at most until `until`.
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
        let deadline = deadline(timeout)?;
        self.engines.check_process()?;
        let mut task = match self.take(py) {
            Some(Ok(task)) => task,
            Some(Err(ended)) => return ended,
            None => return Err(PyRuntimeError::new_err("another thread waits for this op")),
        };
        if self.would_deadlock() {
            return self.give_up_waiting(py, task, would_deadlock());
        }
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
                let message =
                    "the op has not ended in time; it goes on, and can be waited for again";
                let error = stopped.unwrap_or_else(|| PyTimeoutError::new_err(message));
                return self.give_up_waiting(py, task, error);
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
    pub fn cancel(&self, py: Python<'_>) {
        if self.engines.is_of_parent() {
            return;
        }
        self.cancelled.store(true, Ordering::Relaxed);
        // The call that waits for the task sees the mark.
        let Some(Ok(task)) = self.take(py) else { return };
        match &*task {
            Task::Op(..) => drop(self.give_back(py, task)),
            Task::Wait(_) => drop(self.abandon(py, task)),
        }
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
    /// Ends a wait that the application has cancelled.
    fn abandon(&self, py: Python<'_>, task: Detached<Task>) -> PyResult<Py<PyAny>> {
        drop(task);
        let error = CancelledError::new_err(());
        let end = State::Ended(Err(error.clone_ref(py)));
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = end;
        self.waiters.wake_all();
        Err(error)
    }
}
