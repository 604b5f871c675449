//! Execution of work that may take long.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use apus_sim::{Fault, Watch};
use pyo3::{PyErr, PyResult, Python};

use crate::algorithm;

/// Real time between two checks for signals and progress. Rationale: shorter than a person notices, and a thousandth of
/// a core at 50 us per check.
const TICK: Duration = Duration::from_millis(50);

/// Executes `work`, which creates flows but runs none, without the interpreter's lock.
///
/// # Errors
/// If an algorithm in Python raises an exception.
pub fn call<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    py.detach(|| Fault::caught(work)).map_err(|fault| algorithm::failure(py, fault))
}

/// Executes `work` on another thread, without the interpreter's lock, until it ends. The calling thread calls `tick` at
/// intervals; if a signal handler or `tick` raises, `watch` ends the work early.
///
/// Returns the result of the work, and the exception that ended it early.
pub fn run<T: Send>(
    py: Python<'_>,
    watch: &Watch,
    work: impl FnOnce() -> T + Send,
    mut tick: impl FnMut(Python<'_>) -> PyResult<()> + Send,
) -> (T, Option<PyErr>) {
    py.detach(|| {
        thread::scope(|scope| {
            let (done, wait) = channel::<()>();
            let worker = scope.spawn(move || {
                // Dropped at the end, whether the work returns or panics.
                let _done = done;
                work()
            });
            let mut raised = None;
            while wait.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                if raised.is_some() {
                    continue;
                }
                raised = Python::attach(|py| py.check_signals().and_then(|()| tick(py)).err());
                if raised.is_some() {
                    watch.stop.store(true, Ordering::Relaxed);
                }
            }
            match worker.join() {
                Ok(result) => (result, raised),
                // The panic becomes Python's PanicException.
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    })
}
