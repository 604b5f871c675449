//! Contradictions, and settings without effect, across the tables of a run.

use apus_cc::{AlgorithmFactory, FlowInfo, PathPolicy};
use apus_units::Span;

use super::algorithm::{NamedAlgorithm, changes_paths, needs_marks};
use super::fault::FaultSpec;
use super::memory::MemoryLimit;
use super::section::Section;
use super::topology::TopologySpec;
use super::workload::{Demand, Workload};
use super::{halves, memory};
use apus_sim::measure::NamedWorkload;
use apus_sim::plan::FaultKind;

/// The parts of a run that are checked together.
pub(super) struct Parts<'a> {
    pub(super) topology: &'a TopologySpec,
    pub(super) algorithms: &'a [NamedAlgorithm],
    pub(super) workloads: &'a [Workload],
    /// Hosts have the LogGOPS model.
    pub(super) loggops: bool,
    /// By class: wire bytes of its largest packet.
    pub(super) largest: &'a [u64],
    /// Rates are compared with fair shares.
    pub(super) fair_shares: bool,
    /// The faults of the scenario itself.
    pub(super) faults: &'a [FaultSpec],
    /// The memory limit of the run, if there is one.
    pub(super) memory: Option<&'a MemoryLimit>,
}

impl Parts<'_> {
    /// Reports all contradictions at the root of the run.
    pub(super) fn check(&self, root: &Section<'_>) {
        let &Self { topology, algorithms, workloads, .. } = self;
        check_names(root, workloads);
        check_classes(root, topology, workloads, self.largest);
        if self.fair_shares {
            self.check_fair_shares(root);
        }
        if topology.pfc.is_some() && algorithms.iter().any(|a| a.config.credit_limit().is_some()) {
            let message = "pauses ports that an algorithm of credits divides itself, and bounds the \
                           queues of; remove `pfc`";
            root.problem("topology", message);
        }
        if self.loggops && !workloads.is_empty() && !workloads.iter().any(Workload::is_job) {
            let message = "is \"loggops\", which has no effect without a job; remove it, or add a workload like `kind = \"job\"`";
            root.problem("host.model", message);
        }
        memory::check(root, topology, workloads, self.memory);
        if !workloads.is_empty() {
            check_algorithms(root, algorithms, workloads, topology);
            halves::check(root, topology, algorithms, workloads);
        }
    }

    /// Fair shares are defined only for closed loops with fixed paths over links of fixed rates.
    fn check_fair_shares(&self, root: &Section<'_>) {
        let problem = |why: &str| {
            root.problem("measure.interval", format_args!("compares rates with fair shares {why}"))
        };
        let workloads = self.workloads;
        if workloads.iter().any(|w| !matches!(w.demand, Demand::Closed(_))) {
            problem("of closed loops alone; remove it, or the workloads of other kinds");
        }
        if workloads.iter().any(Workload::reroutes) {
            problem(
                "of the paths that flows begin with, but one is rerouted; remove one of the two",
            );
        }
        if workloads.iter().any(|workload| workload.spread.is_some()) {
            problem("of one path per flow, but a balancer chooses several; remove one of the two");
        }
        if self.algorithms.iter().any(|named| changes_paths(&named.config)) {
            problem(
                "of the paths that flows begin with, but the profile `falcon` of `swift` changes them; remove one of the two",
            );
        }
        let changes =
            |fault: &FaultSpec| matches!(fault.kind, FaultKind::Down | FaultKind::Slow(_));
        if self.faults.iter().any(changes) {
            problem("of links without faults, but one is down or slow; remove one of the two");
        }
    }
}

/// Checks that a packet can arrive within the run.
pub(super) fn check_delays(root: &Section<'_>, topology: &TopologySpec, duration: Span) {
    for links in topology.links() {
        let delay = links.delay.saturating_add(topology.pipeline_latency);
        let message = format_args!("has links of {delay}, but the run ends at {duration}");
        root.check(delay < duration, "topology", message);
    }
}

/// Checks that workloads of one name have one deadline, since they are measured together.
fn check_names(root: &Section<'_>, workloads: &[Workload]) {
    let named: Vec<&NamedWorkload> = workloads.iter().filter_map(|w| w.named.as_ref()).collect();
    for (index, one) in named.iter().enumerate() {
        let differs = |other: &&&NamedWorkload| other.name == one.name && other != &one;
        let message = format_args!(
            "has several with the name `{}`, which are measured together, but with different \
             deadlines; rename one",
            one.name
        );
        root.check(!named[..index].iter().any(|other| differs(&other)), "workload", message);
    }
}

/// Returns the wire bytes of the largest packet of each class. For a class that no workload uses, these are the
/// bytes of a control packet. `packet` is the size of the largest packet of all classes.
pub(super) fn largest_packets(
    topology: &TopologySpec,
    workloads: &[Workload],
    packet: u64,
) -> Vec<u64> {
    let has_data = |class: usize| workloads.iter().any(|of| usize::from(of.class) == class);
    let control = u64::from(topology.header);
    // Without classes all traffic is in one class.
    let classes = 0..topology.classes.len().max(1);
    classes.map(|class| if has_data(class) { packet } else { control }).collect()
}

/// Reports classes without traffic, which are mistakes, and classes whose limit no packet can reach.
fn check_classes(
    root: &Section<'_>,
    topology: &TopologySpec,
    workloads: &[Workload],
    largest: &[u64],
) {
    for (class, packet) in topology.classes.iter().zip(largest) {
        let message = format_args!(
            "has a class `{}` whose `limit` of {} does not hold one packet of {packet}B",
            class.name, class.limit
        );
        root.check(class.limit.get() >= *packet, "topology", message);
    }
    if let Some(pfc) = &topology.pfc {
        let packets = pfc.classes.iter().filter_map(|class| largest.get(class.index()));
        let packet = packets.max().copied().unwrap_or_default();
        let most = pfc.pause.get().saturating_add(pfc.headroom.get());
        let message = format_args!(
            "of {} and `pause` of {} together do not hold one packet of {packet}B",
            pfc.headroom, pfc.pause
        );
        root.check(most >= packet, "topology.pfc.headroom", message);
    }
    for (index, class) in (0..).zip(&topology.classes) {
        let used = workloads.iter().any(|workload| workload.class == index)
            || topology.ack_class == Some(index)
            || topology
                .classes
                .iter()
                .any(|other| other.trims_to(&topology.classes) == Some(usize::from(index)));
        let message = format_args!("has a class `{}`, which nothing uses; remove it", class.name);
        root.check(used, "topology", message);
    }
}

/// Reports algorithms and marks without effect.
fn check_algorithms(
    root: &Section<'_>,
    algorithms: &[NamedAlgorithm],
    workloads: &[Workload],
    topology: &TopologySpec,
) {
    for (index, named) in algorithms.iter().enumerate() {
        let used = workloads.iter().any(|workload| workload.algorithm == index);
        let message =
            format!("has `{}`, which no workload uses; remove it or name it", named.label);
        root.check(used, "algorithm", message);
    }
    for workload in workloads.iter().filter(|workload| workload.handshake) {
        let named = &algorithms[workload.algorithm];
        if named.config.credit_limit().is_some() {
            let message = format!(
                "has `handshake` with `{}`, whose request and first credit set up the connection; \
                 remove it",
                named.label
            );
            root.problem("workload", message);
        }
    }
    let limits: Vec<_> = algorithms.iter().filter_map(|a| a.config.credit_limit()).collect();
    if limits.windows(2).any(|pair| pair[0] != pair[1]) {
        root.problem("algorithm", "has two limits of credits, but a port has one; make them equal");
    }
    let paces: Vec<_> =
        algorithms.iter().filter_map(|a| a.config.grant_pace(&FlowInfo::default())).collect();
    if paces.windows(2).any(|pair| pair[0] != pair[1]) {
        root.problem(
            "algorithm",
            "has two paces of grants, but a host grants to all its flows at one; make `pace`, `regulated` and `network_rtt` equal",
        );
    }
    if !limits.is_empty() && !topology.classes.is_empty() {
        let message = "has classes, but a credit-based algorithm divides every port into \
                       credits and data itself; remove them";
        root.problem("topology", message);
    }
    let name = |named: &NamedAlgorithm| named.config.info().name;
    let marked = algorithms.iter().find(|named| needs_marks(&named.config));
    let policies = workloads.iter().filter_map(|workload| workload.spread.as_ref());
    let reads = policies.map(|spread| &spread.policy).any(PathPolicy::reads_marks);
    match (marked, topology.marks()) {
        (Some(named), false) => root.problem(
            "topology",
            format_args!(
                "does not mark packets, but `{}` needs ECN marks; add ecn = {{ threshold = \"100kB\" }}",
                name(named)
            ),
        ),
        (None, true) if !reads => root.problem(
            "topology",
            format_args!(
                "has `ecn`, which has no effect: no algorithm or balancer here looks at its marks, as `dctcp` \
                 and `reps` do; remove it"
            ),
        ),
        (Some(_), true) | (None, _) => {}
    }
}
