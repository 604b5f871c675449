//! Results of an experiment.

use apus_scenario::experiment::{CheckResult, Shown};
use serde::Serialize;

use super::picture::Curves;

/// One experiment with its checks.
#[derive(Serialize)]
pub(super) struct ExperimentResult {
    pub(super) id: String,
    /// "pass", "fail", "error", or "interrupted"; based on the finished runs.
    pub(super) status: &'static str,
    /// Real time of all its runs together; other runs may have executed at the same time.
    #[serde(skip)]
    pub(super) wall_s: f64,
    pub(super) checks: Vec<CheckResult>,
    /// Numbers without a band.
    pub(super) shown: Vec<Shown>,
    /// Number of seeds of which every run has finished.
    pub(super) seeds: u64,
    /// Hash of the events of all runs, equal on every machine; `None` if a run is missing.
    pub(super) events: Option<String>,
    /// Curves of the figure.
    #[serde(skip)]
    pub(super) curves: Vec<Curves>,
    /// Changes and omissions of a quick run.
    pub(super) quick: Vec<String>,
    pub(super) title: Option<String>,
    /// Reason why there are no checks if the status is "error".
    pub(super) error: Option<String>,
}
