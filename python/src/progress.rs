//! Progress of runs, reported to a Python function.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use apus::api::Tracker;
use pyo3::prelude::*;

/// Progress of a call that executes batches of runs one after the other.
pub struct Progress {
    tracker: Mutex<Arc<Tracker>>,
    /// Called with the finished share of the batch, from 0 to 1, and a description.
    report: Option<Py<PyAny>>,
}

impl Progress {
    /// Returns the progress of a call before its first run.
    pub fn new(report: Option<Py<PyAny>>) -> Self {
        let tracker = Mutex::new(Arc::new(Tracker::new(&[], NonZeroUsize::MIN)));
        Self { tracker, report }
    }

    /// Begins a batch of `runs` runs of a scenario, `at_once` of them in parallel. Any thread may record progress in
    /// the returned tracker.
    pub fn begin(&self, name: &str, runs: usize, at_once: NonZeroUsize) -> Arc<Tracker> {
        let tracker = Arc::new(Tracker::new(&vec![name; runs], at_once));
        if let Ok(mut current) = self.tracker.lock() {
            *current = Arc::clone(&tracker);
        }
        tracker
    }

    /// Calls the Python function, if there is one.
    pub fn report(&self, py: Python<'_>) -> PyResult<()> {
        let (Some(report), Ok(tracker)) = (&self.report, self.tracker.lock()) else {
            return Ok(());
        };
        let (share, text) = (tracker.share(), tracker.describe());
        // The function may take long, so the lock is released first.
        drop(tracker);
        report.call1(py, (share, text)).map(drop)
    }
}
