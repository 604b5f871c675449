//! Progress of runs, reported to a function of Python.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use apus::api::Tracker;
use pyo3::prelude::*;

/// Progress of a call, which executes one batch of runs after another.
pub struct Progress {
    tracker: Mutex<Arc<Tracker>>,
    /// Called with the share of the batch that is done, from 0 to 1, and a description.
    report: Option<Py<PyAny>>,
}

impl Progress {
    /// Returns the progress of a call that has not begun a run.
    pub fn new(report: Option<Py<PyAny>>) -> Self {
        let tracker = Mutex::new(Arc::new(Tracker::new(&[], NonZeroUsize::MIN)));
        Self { tracker, report }
    }

    /// Begins a batch of `runs` runs of a scenario, `at_once` of them in parallel. Its progress is recorded
    /// in the tracker that is returned, from any thread.
    pub fn begin(&self, name: &str, runs: usize, at_once: NonZeroUsize) -> Arc<Tracker> {
        let tracker = Arc::new(Tracker::new(&vec![name; runs], at_once));
        if let Ok(mut current) = self.tracker.lock() {
            *current = Arc::clone(&tracker);
        }
        tracker
    }

    /// Calls the function of Python, if there is one.
    pub fn report(&self, py: Python<'_>) -> PyResult<()> {
        let (Some(report), Ok(tracker)) = (&self.report, self.tracker.lock()) else {
            return Ok(());
        };
        let (share, text) = (tracker.share(), tracker.describe());
        // The function may take its time.
        drop(tracker);
        report.call1(py, (share, text)).map(drop)
    }
}
