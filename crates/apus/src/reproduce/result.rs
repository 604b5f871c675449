//! Results of an experiment.

use apus_scenario::experiment::{CheckResult, Shown};
use serde::Serialize;

use super::picture::Curves;

/// One experiment with its checks.
#[derive(Serialize)]
pub(super) struct ExperimentResult {
    pub(super) id: String,
    /// "pass", "fail", "error", or "interrupted", of the finished runs.
    pub(super) status: &'static str,
    /// Real time of all its runs together, whatever ran beside them.
    #[serde(skip)]
    pub(super) wall_s: f64,
    pub(super) checks: Vec<CheckResult>,
    /// Numbers without a band.
    pub(super) shown: Vec<Shown>,
    /// Seeds of which every run was finished.
    pub(super) seeds: u64,
    /// Hash of the events of all runs, the same on every machine; `None` if a run is missing.
    pub(super) events: Option<String>,
    /// Curves of the figure.
    #[serde(skip)]
    pub(super) curves: Vec<Curves>,
    /// Changes and omissions of a quick run.
    pub(super) quick: Vec<String>,
    pub(super) title: Option<String>,
    /// Reason for the absence of checks if the status is "error".
    pub(super) error: Option<String>,
}
