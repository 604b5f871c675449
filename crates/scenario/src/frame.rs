//! Limits of workloads, and settings that all kinds of workload read.

use std::path::Path;

use apus_jobs::loggops::Parameters;
use apus_units::Span;

use super::algorithm::NamedAlgorithm;
use super::declared::{Key, Kind, key};
use super::routing::Routing;
use super::section::Section;
use super::topology::TopologySpec;

/// Keys of several kinds of workload.
pub(super) const SIZE: Key = key("size", Kind::Size, "Payload of an op").at_least(1);

pub(super) const FLOWS_PER_PAIR: Key =
    key("flows_per_pair", Kind::Count, "Number of flows of each pair of hosts").at_least(1).or("1");

pub(super) const HANDSHAKE: Key = key(
    "handshake",
    Kind::Flag,
    "Each flow sets up its connection before its first op: it sends an empty packet and waits for the \
     acknowledgement, like SYN and SYN-ACK of TCP. The latency of the op includes this time; the ideal time of the \
     slowdown does not",
)
.or("false");

/// Limits that a workload must observe.
pub(super) struct Frame<'a> {
    pub(super) hosts: u32,
    /// Folder of the files that are read during the run; `None` if their text is kept in memory.
    pub(super) folder: Option<&'a Path>,
    pub(super) duration: Span,
    pub(super) max_ops: u32,
    /// Labels of the algorithms.
    pub(super) algorithms: Vec<&'a str>,
    pub(super) topology: &'a TopologySpec,
    pub(super) routing: &'a Routing,
    /// Parameters of hosts of the LogGOPS model.
    pub(super) loggops: Option<Parameters>,
    pub(super) configs: &'a [NamedAlgorithm],
}

/// Start and stop of a workload.
pub(super) struct Times {
    pub(super) start: Span,
    pub(super) spread: Span,
    pub(super) stop: Option<Span>,
}

/// Returns a stop delayed by `by`; `None` if that is after the end of the run.
pub(super) fn stop_later(stop: Option<Span>, by: Span, duration: Span) -> Option<Span> {
    stop.map(|stop| stop.saturating_add(by)).filter(|stop| *stop < duration)
}

/// Reports times that are after the end of the run or contradict each other.
pub(super) fn check_times(
    section: &Section<'_>,
    start: Span,
    spread: Span,
    stop: Option<Span>,
    duration: Span,
) {
    let ends = format!("the run ends at {duration}");
    section.check(start < duration, "start", format_args!("is {start}, but {ends}"));
    let last = start.saturating_add(spread);
    if start < duration {
        let message = format_args!("lets flows start until {last}, but {ends}");
        section.check(last < duration || spread.is_zero(), "start_spread", message);
    }
    if let Some(stop) = stop {
        let message = format_args!("is {stop}, which has no effect: {ends}; remove it");
        section.check(stop < duration, "stop", message);
        let message = format_args!("is {stop}, but flows start until {last}; it must be later");
        section.check(stop > last, "stop", message);
    }
}
