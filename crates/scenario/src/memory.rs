//! Estimate of the memory of a run, and the limits that follow from it.

use std::cmp::Reverse;
use std::num::NonZeroUsize;

use apus_algorithms::AlgorithmConfig;
use apus_cc::PathPolicy;
use apus_sim::memory::idle_connection_bytes;
use apus_transport::memory::busy_flow_bytes;
use apus_units::Bytes;

use super::section::Section;
use super::topology::TopologySpec;
use super::workload::{Demand, Workload};

/// The memory that a run may take. A limit decides only whether a scenario is refused: no result depends
/// on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    /// The largest estimate that is accepted.
    pub bytes: Bytes,
    /// Origin of the limit, as a clause: "this machine has 16GB available".
    pub reason: String,
}

impl MemoryLimit {
    /// Returns how many runs can be in progress at once: the largest number n, at most `max`, such that
    /// any n of the runs with these estimates fit the limit together; at least 1.
    #[must_use]
    pub fn runs_at_once(
        &self,
        estimates: impl IntoIterator<Item = Bytes>,
        max: NonZeroUsize,
    ) -> NonZeroUsize {
        let mut estimates: Vec<u64> = estimates.into_iter().map(Bytes::get).collect();
        estimates.sort_unstable_by_key(|bytes| Reverse(*bytes));
        let sums = estimates.iter().scan(0_u64, |sum, bytes| {
            *sum = sum.saturating_add(*bytes);
            Some(*sum)
        });
        let fit = sums.take_while(|sum| *sum <= self.bytes.get()).count();
        NonZeroUsize::new(fit).unwrap_or(NonZeroUsize::MIN).min(max)
    }
}

/// Minimum bytes of a run of any size: mostly histograms.
const BASE: u64 = 1 << 20;
/// Bytes of a host without flows, with its ports and its timers.
const PER_HOST: u64 = 16 << 10;
/// Bytes of an algorithm's own memory and of measurements per connection. deviation: no source;
/// rationale: between algorithms without heap memory (Swift) and 500 B (HPCC, both ends).
const PER_CONNECTION: u64 = 256;
/// Bytes of an op that is drawn or read before the run: in the workload, during sorting, and in its connection.
const PER_OP: u64 = 64;
/// Factor for growing vectors: on average a quarter is empty, and the old vector is kept during the copy.
const GROWTH: u64 = 2;
/// Routes are found by 32-bit indices into one table of their egress ports.
const MAX_ROUTE_WORDS: u64 = u32::MAX as u64;
/// Maximum number of stored paths of a pair of hosts.
pub(super) const MAX_PATHS: u64 = 1 << 16;

/// Returns the words of the routes of a connection in both directions: the egress ports and their number.
fn route_words(topology: &TopologySpec) -> u64 {
    2 * (1 + topology.longest_path())
}

/// Returns the words of the sets of paths over which packets are spread. Each set is stored once for a pair of
/// hosts. Sets around failed links are not included.
fn set_words(topology: &TopologySpec, workloads: &[Workload]) -> u64 {
    let spread = workloads.iter().filter(|workload| workload.spread.is_some());
    let connections = spread.map(Workload::connections).fold(0, u64::saturating_add);
    if connections == 0 {
        return 0;
    }
    // A rank may use a single NIC of its host.
    let nics = topology.nics().map_or(1, |(nics, _)| u64::from(nics.count));
    let ends = u64::from(topology.hosts()) * nics;
    let pairs = connections.min(ends * ends.saturating_sub(1) / 2);
    pairs.saturating_mul(topology.paths().min(MAX_PATHS)).saturating_mul(route_words(topology))
}

/// Returns the words per word of a set of paths, with the words by which switches choose the rest of a path.
fn words_of_choices(workloads: &[Workload]) -> u64 {
    let policies = workloads.iter().filter_map(|workload| workload.spread.as_ref());
    if policies.map(|spread| spread.policy.at_switches()).any(|rule| rule.is_some()) {
        3
    } else {
        1
    }
}

/// Returns an upper bound of the ops of a workload that are in memory before their submission.
fn known_ops(workload: &Workload) -> u64 {
    match &workload.demand {
        Demand::Closed(_) | Demand::Rounds(_) => 0,
        Demand::Poisson(poisson) => poisson.most_ops(),
        Demand::Trace(trace) => trace.messages.held(),
        Demand::Job(job) => 2 * job.graph.ops(),
    }
}

/// Returns the number of outstanding ops of a connection of the workload; open loops may have more.
fn outstanding(workload: &Workload) -> u32 {
    match &workload.demand {
        Demand::Closed(loops) => loops.outstanding,
        Demand::Poisson(_) | Demand::Rounds(_) | Demand::Job(_) => 1,
        // At most `transport.max_ops`, which is a u32.
        Demand::Trace(trace) => trace.outstanding.div_ceil(trace.connections.max(1)) as u32,
    }
}

/// Estimates the memory of a run on one thread: network, hosts, connections and their ops, and sets of paths.
/// Not included are packets in switches, which their buffers bound, paths around failed links, and recorded
/// tables.
pub(super) fn estimate(topology: &TopologySpec, workloads: &[Workload]) -> Bytes {
    let routes = GROWTH * route_words(topology) * size_of::<u32>() as u64;
    let per_connection =
        idle_connection_bytes::<AlgorithmConfig>() as u64 + routes + PER_CONNECTION;
    let sets = set_words(topology, workloads).saturating_mul(words_of_choices(workloads));
    let sets = sets.saturating_mul(GROWTH * size_of::<u32>() as u64);
    let hosts = PER_HOST.saturating_mul(u64::from(topology.hosts()));
    let network = sets.saturating_add(BASE + hosts);
    let workload = |workload: &Workload| {
        let each = per_connection + busy_flow_bytes(outstanding(workload));
        let connections = workload.connections().saturating_mul(each);
        connections.saturating_add(PER_OP.saturating_mul(known_ops(workload)))
    };
    Bytes::new(workloads.iter().map(workload).fold(network, u64::saturating_add))
}

/// Refuses connections that exceed the range of their numbers or the memory limit.
pub(super) fn check(
    root: &Section<'_>,
    topology: &TopologySpec,
    workloads: &[Workload],
    limit: Option<&MemoryLimit>,
) {
    let opened = workloads.iter().map(Workload::connections);
    let connections = opened.fold(0, u64::saturating_add);
    let most = MAX_ROUTE_WORDS / route_words(topology);
    if connections > most {
        let message = format_args!(
            "opens {connections} connections, but at most {most} are possible here, since all routes \
             together have at most 2^32 egress ports; use fewer hosts or flows"
        );
        root.problem("workload", message);
        return;
    }
    let of_sets = set_words(topology, workloads);
    if of_sets.saturating_add(connections * route_words(topology)) > MAX_ROUTE_WORDS {
        let message = format_args!(
            "spreads packets over about {} paths between two hosts, but all routes together have at most 2^32 egress \
             ports; use fewer hosts or flows, or `balancer = \"ecmp\"`",
            topology.paths()
        );
        root.problem("workload", message);
        return;
    }
    let Some(limit) = limit else { return };
    let needed = estimate(topology, workloads);
    if needed > limit.bytes {
        let ops: u64 = workloads.iter().map(known_ops).sum();
        let ops = if ops == 0 { String::new() } else { format!(" for {ops} ops") };
        let paths = if of_sets == 0 {
            String::new()
        } else {
            format!(", over {} paths between two hosts", topology.paths())
        };
        let message = format_args!(
            "opens {connections} connections{ops}{paths}, which take about {} of memory, but {}; use fewer \
             hosts or flows, let ops share flows, or raise --max-memory",
            rounded(needed),
            limit.reason
        );
        root.problem("workload", message);
    }
}

/// Returns a size with at most three digits before its unit.
fn rounded(size: Bytes) -> String {
    let scales = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    let (scale, unit) =
        scales.into_iter().find(|(scale, _)| size.get() >= *scale).unwrap_or((1, "B"));
    format!("{:.1}{unit}", size.get() as f64 / scale as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_runs_at_once_fit_the_limit() {
        let runs_at_once = |limit: u64, max: usize| {
            let limit = MemoryLimit { bytes: Bytes::new(limit), reason: String::new() };
            let max = NonZeroUsize::new(max).expect("above 0");
            limit.runs_at_once([2, 5, 1, 3].map(Bytes::new), max).get()
        };
        // Sums from the largest estimate: 5, 8, 10, 11.
        let expected = [(1, 1), (5, 1), (7, 1), (8, 2), (9, 2), (10, 3), (11, 4), (u64::MAX, 4)];
        for (limit, runs) in expected {
            assert_eq!(runs_at_once(limit, 4), runs, "limit {limit}");
        }
        assert_eq!(runs_at_once(11, 3), 3);
        assert_eq!(runs_at_once(9, 1), 1);
    }

    #[test]
    fn runs_at_once_do_not_overflow_and_are_at_least_one() {
        let limit = MemoryLimit { bytes: Bytes::new(u64::MAX), reason: String::new() };
        let max = NonZeroUsize::new(8).expect("above 0");
        assert_eq!(limit.runs_at_once([], max), NonZeroUsize::MIN);
        assert_eq!(limit.runs_at_once([Bytes::MAX; 3], max).get(), 3);
    }
}
