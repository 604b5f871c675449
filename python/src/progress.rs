//! Progress of runs, reported to a function of Python.

use std::num::NonZeroUsize;

use apus::api::Tracker;
use apus_scenario::experiment::Step;
use pyo3::prelude::*;

/// Progress of the runs of a call.
pub struct Progress {
    tracker: Tracker,
    /// Called with the share that is done, from 0 to 1, and a description.
    report: Option<Py<PyAny>>,
}

impl Progress {
    /// Returns the progress of `runs` runs of a scenario, `at_once` of them in parallel.
    pub fn new(name: &str, runs: usize, at_once: NonZeroUsize, report: Option<Py<PyAny>>) -> Self {
        Self { tracker: Tracker::new(&vec![name; runs], at_once), report }
    }

    /// Records the progress of a run; called from any thread.
    pub fn on_step(&self, step: Step) {
        self.tracker.on_step(step);
    }

    /// Records the end of a run; called from any thread.
    pub fn on_end(&self, run: usize) {
        self.tracker.on_end(run);
    }

    /// Calls the function of Python, if there is one.
    pub fn report(&self, py: Python<'_>) -> PyResult<()> {
        let Some(report) = &self.report else { return Ok(()) };
        report.call1(py, (self.tracker.share(), self.tracker.describe())).map(drop)
    }
}
