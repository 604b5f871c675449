//! An algorithm of a comparison: its runs and their metrics.

use apus_scenario::{MarkingRule, Scenario, Setup};
use apus_sim::columns::unit_of;
use apus_sim::results::METRICS;
use apus_units::suggestion;
use serde_json::Value;

use super::tuning::Search;
use crate::paired::{Difference, known};
use crate::spread::Spread;

/// An algorithm and its runs.
pub(super) struct Contestant {
    /// Name of the algorithm in the command.
    pub(super) label: String,
    pub(super) setup: Setup,
    /// Differences from the scenario other than the algorithm.
    pub(super) notes: Vec<String>,
    /// The marking threshold that the comparison sets.
    pub(super) marking: Option<MarkingRule>,
    /// By seed; `None` if the run failed or was interrupted.
    pub(super) summaries: Vec<Option<Value>>,
    /// `true` if there are several seeds and all gave identical results.
    pub(super) same: bool,
    /// The search of `--tune-each`.
    pub(super) search: Option<Search>,
}

impl Contestant {
    /// Returns the difference of a metric from that of another algorithm, seed by seed.
    pub(super) fn difference(&self, reference: &Self, name: &str) -> Option<Difference> {
        let values = |one: &Self| -> Vec<Option<f64>> {
            one.summaries.iter().map(|summary| known(summary.as_ref()?, name)).collect()
        };
        Difference::new(&values(self), &values(reference))
    }

    /// Returns a metric over the seeds that measured it.
    pub(super) fn spread(&self, name: &str) -> Option<Spread> {
        Spread::of_metric(self.summaries.iter().map(Option::as_ref), name)
    }
}

/// Metrics that a comparison shows for every scenario.
const COMMON: [&str; 14] = [
    "goodput_gbps",
    "busiest_port.utilisation",
    "loss_rate",
    "busiest_port.mean_queue_bytes",
    "busiest_port.max_queue_bytes",
    "fabric_rtt_us.p50",
    "fabric_rtt_us.p99",
    "endpoint_delay_us.p99",
    "op_latency_us.p50",
    "op_latency_us.p99",
    "op_latency_us.p99_9",
    "op_latency_us.unfinished",
    "jain",
    "fair_share_deviation",
];

/// Metrics of a comparison, by their names in the summary.
pub(super) struct Metrics {
    pub(super) names: Vec<String>,
}

impl Metrics {
    /// Returns the times of jobs, the common metrics, the slowdowns of each workload by size, the metrics of the
    /// scenario's own checks (such as settling times), and the user's additional metrics.
    pub(super) fn of(setup: &Setup, scenario: &Scenario, more: &[String]) -> Result<Self, String> {
        let mut names = Vec::new();
        for job in 0..setup.job_names().count() {
            names.extend(["completion_us", "slowdown"].map(|what| format!("jobs.{job}.{what}")));
        }
        names.extend(COMMON.map(str::to_owned));
        let sizes = setup.sizes().count();
        for workload in setup.workload_names() {
            names.push(format!("workload.{workload}.slowdown.p99"));
            for size in 0..sizes {
                for stat in ["p50", "p99"] {
                    names.push(format!("workload.{workload}.size.{size}.slowdown.{stat}"));
                }
            }
        }
        let checks = scenario.checks.iter().chain(&scenario.shown);
        names.extend(checks.map(|check| check.metric.clone()));
        let parts = setup.part_metrics();
        for name in more {
            check("--metric", name, names.iter().chain(&parts))?;
            names.push(name.clone());
        }
        let mut unique: Vec<String> = Vec::new();
        for name in names {
            if !unique.contains(&name) {
                unique.push(name);
            }
        }
        Ok(Self { names: unique })
    }
}

/// Returns an error for a metric that is neither common nor in `more`. `option` is named in the error.
pub(super) fn check<'a>(
    option: &str,
    name: &str,
    more: impl Iterator<Item = &'a String>,
) -> Result<(), String> {
    let known: Vec<&str> = METRICS.iter().copied().chain(more.map(String::as_str)).collect();
    if known.contains(&name) {
        return Ok(());
    }
    let hint = suggestion(name, known.into_iter());
    Err(format!("{option}: unknown metric `{name}`{hint}"))
}

/// Returns the heading of a metric in a table: its name with the size range in words, and its unit.
pub(super) fn heading(setup: &Setup, name: &str) -> String {
    let mut words: Vec<String> = name.split('.').map(str::to_owned).collect();
    if let Some(at) = words.iter().position(|word| word == "size")
        && let Some(range) = words.get(at + 1).and_then(|n| setup.sizes().nth(n.parse().ok()?))
    {
        words[at + 1] = range;
    }
    if words[0] == "jobs"
        && let Some(job) = words.get(1).and_then(|n| setup.job_names().nth(n.parse().ok()?))
    {
        words[1] = job.to_owned();
        words[0] = "job".to_owned();
    }
    match unit_of(name) {
        "" => words.join(" "),
        unit => format!("{} [{unit}]", words.join(" ")),
    }
}
