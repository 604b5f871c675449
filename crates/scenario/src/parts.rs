//! Parts of a run that can be measured separately.
use crate::set::Topology;
use apus_units::Span;

use super::classes::Class;
use super::job;
use super::series;
use super::tree::{Node, Table, Value};
use apus_sim::results::Names;

/// The parts that can be measured.
pub(super) struct Parts<'a> {
    /// Names of workloads.
    pub(super) named: Vec<String>,
    /// Maximum number of connections.
    pub(super) flows: u64,
    pub(super) duration: Span,
    pub(super) warmup: Span,
    /// `None` if the topology is invalid.
    pub(super) topology: Option<&'a Topology>,
    pub(super) classes: &'a [Class],
}

/// Returns the number of jobs among workloads.
fn jobs(workloads: &[Node]) -> usize {
    let is_job = |node: &&Node| match &node.value {
        Value::Table(table) => job::is_job(table),
        _ => false,
    };
    workloads.iter().filter(is_job).count()
}

/// Returns the names of the parts of a scenario's runs.
pub(super) fn names(table: &Table) -> Names {
    let list = |node: Option<&Node>| match node.map(|node| &node.value) {
        Some(Value::List(list)) => list.clone(),
        _ => Vec::new(),
    };
    let name = |node: &Node| match &node.value {
        Value::Table(table) => match table.get("name").map(|name| &name.value) {
            Some(Value::Text(name)) => Some(name.clone()),
            _ => None,
        },
        _ => None,
    };
    let names = |node: Option<&Node>| list(node).iter().filter_map(name).collect();
    let groups = match table.at_path("measure.ports").map(|node| &node.value) {
        Some(Value::Table(groups)) => groups.entries.keys().cloned().collect(),
        _ => Vec::new(),
    };
    let mut workloads: Vec<String> = names(table.get("workload"));
    workloads.sort_unstable();
    workloads.dedup();
    Names {
        workloads,
        jobs: jobs(&list(table.get("workload"))),
        sizes: list(table.at_path("measure.sizes")).len(),
        groups,
        classes: names(table.at_path("topology.class")),
        comparisons: names(table.at_path("measure.compare")),
        settles: names(table.at_path("measure.settle")),
        spans: series::span_names(&list(table.at_path("measure.span"))),
    }
}
