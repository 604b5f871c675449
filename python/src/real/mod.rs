//! The transport over UDP: hosts, connections, ops and regions as Python classes.
//!
//! No call into the transport holds the interpreter's lock: an engine may hold its own lock while a Python algorithm
//! waits for the interpreter's. Handles are therefore [`Detached`], so that their destructors, which may wait for an
//! engine, do not hold the interpreter's lock either.

mod connection;
mod errors;
mod executor;
mod host;
mod memory;
mod op;
mod region;

use std::ops::Deref;
use std::time::{Duration, Instant};

use apus_udp::forks;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// Time between two checks for signals in a blocking call. Rationale: shorter than a person notices.
const TICK: Duration = Duration::from_millis(50);

/// Adds the classes to the module.
pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<connection::Connection>()?;
    module.add_class::<executor::Executor>()?;
    module.add_class::<host::Host>()?;
    module.add_class::<op::Op>()?;
    module.add_class::<region::Region>()?;
    module.add_function(wrap_pyfunction!(host::make_key, module)?)?;
    Ok(())
}

/// Returns the time at which a wait of `timeout` seconds ends; `None` if it has no limit.
///
/// # Errors
/// If the timeout is not a number.
fn deadline(timeout: Option<f64>) -> PyResult<Option<Instant>> {
    let Some(seconds) = timeout else { return Ok(None) };
    if seconds.is_nan() {
        let message = "timeout=nan: must be a number of seconds, or None for no limit";
        return Err(PyValueError::new_err(message));
    }
    // A time that the clock cannot represent means no limit.
    let after = Duration::try_from_secs_f64(seconds.max(0.0)).ok();
    Ok(after.and_then(|after| Instant::now().checked_add(after)))
}

/// Returns the exception for a thread that runs an engine of the host and would wait for it.
fn would_deadlock() -> PyErr {
    PyRuntimeError::new_err(
        "this thread runs the engine of this host (accept hook or algorithm); it cannot wait for it",
    )
}

/// Message for an access to an empty [`Detached`], which is empty only while it is dropped.
const HELD: &str = "a handle until it is dropped";

/// A transport handle that is dropped without the interpreter's lock. A forked process does not drop the handles of its
/// parent: it has none of their threads, and would end the parent's connections.
pub struct Detached<T: Send> {
    handle: Option<T>,
    /// Value of [`forks`] in the process that created the handle.
    forks: u32,
}

impl<T: Send> Detached<T> {
    pub fn new(handle: T) -> Self {
        Self { handle: Some(handle), forks: forks() }
    }

    /// Returns `true` if the handle belongs to another process, of which this one is a fork.
    pub fn is_of_parent(&self) -> bool {
        self.forks != forks()
    }

    /// Checks that this process created the handle.
    pub fn check_process(&self) -> PyResult<()> {
        if self.is_of_parent() {
            let message = "this host belongs to the process of which this one is a fork; make a host in this process";
            return Err(PyRuntimeError::new_err(message));
        }
        Ok(())
    }

    /// Calls `change` with the handle.
    pub fn with<R>(&mut self, change: impl FnOnce(&mut T) -> R) -> R {
        change(self.handle.as_mut().expect(HELD))
    }
}

impl<T: Send> Deref for Detached<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.handle.as_ref().expect(HELD)
    }
}

impl<T: Send> Drop for Detached<T> {
    fn drop(&mut self) {
        let handle = self.handle.take();
        if self.is_of_parent() {
            return std::mem::forget(handle);
        }
        // Without an interpreter there is no lock to release.
        let mut handle = Some(handle);
        Python::try_attach(|py| {
            let handle = handle.take();
            py.detach(|| drop(handle));
        });
    }
}
