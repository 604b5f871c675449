//! Results of runs.

use std::sync::Arc;

use apus::api;
use apus_scenario::Run as Planned;
use apus_scenario::experiment::{Experiment, NOT_STARTED};
use apus_sim::summary::Summary;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use serde_json::json;

use crate::options::Warnings;

/// A finished run, or the part of it before an interruption.
#[pyclass(frozen, module = "apus._native")]
pub struct Run {
    pub(crate) variant: Option<String>,
    value: Option<f64>,
    pub(crate) summary: Arc<Summary>,
}

#[pymethods]
impl Run {
    /// Name of the scenario, and of its variant.
    #[getter]
    fn name(&self) -> &str {
        &self.summary.name
    }

    /// Name of the variant; `None` if the scenario has none.
    #[getter]
    fn variant(&self) -> Option<&str> {
        self.variant.as_deref()
    }

    /// Value of the variant, in microseconds, Gb/s or bytes if it has a unit.
    #[getter]
    fn value(&self) -> Option<f64> {
        self.value
    }

    /// Seed of all random number streams.
    #[getter]
    fn seed(&self) -> u64 {
        self.summary.seed
    }

    /// Whether the run ended before its time.
    #[getter]
    fn interrupted(&self) -> bool {
        self.summary.interrupted
    }

    /// The summary as JSON, as in summary.json.
    fn summary_json(&self, py: Python<'_>) -> PyResult<String> {
        let json = py.detach(|| serde_json::to_string(&*self.summary));
        json.map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }

    /// The cost of the run on this machine as JSON, as in cost.json.
    fn cost_json(&self) -> PyResult<String> {
        let json = serde_json::to_string(&self.summary.cost);
        json.map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }

    /// The text that the command prints of the run.
    fn text(&self, py: Python<'_>) -> String {
        py.detach(|| api::describe(&self.summary))
    }
}

/// What became of the runs of a call.
#[pyclass(frozen, module = "apus._native")]
pub struct Outcome {
    /// The runs that have results, in order.
    #[pyo3(get)]
    runs: Vec<Py<Run>>,
    /// Why other runs have none. Of an interrupted call without the runs that had not begun.
    #[pyo3(get)]
    failures: Vec<String>,
    /// Reports of flows without progress.
    #[pyo3(get)]
    warnings: Vec<String>,
    /// The checks and numbers of the scenario as JSON, over the complete seeds; `None` if it has none.
    #[pyo3(get)]
    checks_json: Option<String>,
    /// The table of the checks that the command prints; empty if there are none.
    #[pyo3(get)]
    checks_text: String,
    raised: Option<PyErr>,
    cause: Option<PyErr>,
}

#[pymethods]
impl Outcome {
    /// The first exception of an algorithm in Python, which ended its run.
    #[getter]
    fn cause(&self, py: Python<'_>) -> Option<PyErr> {
        self.cause.as_ref().map(|error| error.clone_ref(py))
    }

    /// The exception that ended the runs early, such as `KeyboardInterrupt`.
    #[getter]
    fn raised(&self, py: Python<'_>) -> Option<PyErr> {
        self.raised.as_ref().map(|error| error.clone_ref(py))
    }
}

impl Outcome {
    /// Returns the outcome of the runs `planned`, once per seed.
    pub fn new(
        py: Python<'_>,
        planned: &[Planned],
        results: Vec<Option<Result<Summary, String>>>,
        judged: Option<Experiment>,
        raised: Option<PyErr>,
        cause: Option<PyErr>,
        warnings: &Warnings,
    ) -> PyResult<Self> {
        let (mut runs, mut failures) = (Vec::new(), Vec::new());
        for (result, planned) in results.into_iter().zip(planned.iter().cycle()) {
            match result {
                None => {}
                Some(Err(why)) if raised.is_some() && why.ends_with(NOT_STARTED) => {}
                Some(Ok(summary)) => {
                    // An interruption raises its own exception.
                    if let (Some(why), false) = (&summary.stop_reason, raised.is_some()) {
                        let (name, seed) = (&summary.name, summary.seed);
                        failures.push(format!("{name} (seed {seed}): {why}"));
                    }
                    let (variant, value) = (planned.variant.clone(), planned.value);
                    runs.push(Py::new(py, Run { variant, value, summary: Arc::new(summary) })?);
                }
                Some(Err(why)) => failures.push(why),
            }
        }
        let warnings = warnings.lock().map(|mut all| std::mem::take(&mut *all)).unwrap_or_default();
        let checks_text =
            judged.as_ref().map_or_else(String::new, |e| api::describe_checks(&e.checks, &e.shown));
        let checks_json = judged.map(|experiment| {
            let Experiment { checks, shown, .. } = experiment;
            json!({ "checks": checks, "shown": shown }).to_string()
        });
        Ok(Self { runs, failures, warnings, checks_json, checks_text, raised, cause })
    }
}
