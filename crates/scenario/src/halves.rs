//! The switch halves of a run. Each class of a switch's ports has the switch half of the algorithm whose
//! workloads use the class, if that algorithm has one.

use crate::set::Topology;
use apus_algorithms::registry::AlgorithmConfig;
use apus_fabric::Node;
use apus_units::suggestion;

use super::algorithm::NamedAlgorithm;
use super::section::Section;
use super::setup::Setup;
use super::topology::TopologySpec;
use super::workload::Workload;
use apus_sim::host_model::Nic;
use apus_sim::switch_halves::{
    gives_marks, has_switch_half, have_same_switch_half, place_switch_halves,
};

/// Puts the halves into the ports of every switch that has switch halves.
pub(super) fn place(setup: &Setup, topology: &mut Topology) {
    let classes = setup.topology.classes.len().max(1);
    let halves: Vec<Option<&AlgorithmConfig>> = (0..classes)
        .map(|class| switch_algorithm(class as u8, &setup.algorithms, &setup.workloads))
        .collect();
    let takes_part = |topology: &Topology, node: Node| match node {
        Node::Host(_) => setup.host.nic == Nic::Queue,
        Node::Switch(switch) => {
            !setup.topology.plain.contains(&topology.switches[switch.index()].name)
        }
    };
    place_switch_halves(topology, &halves, &setup.sizes, setup.seed, &takes_part);
}

/// Returns the algorithm whose switch half the ports of a class have, if any.
fn switch_algorithm<'a>(
    class: u8,
    algorithms: &'a [NamedAlgorithm],
    workloads: &[Workload],
) -> Option<&'a AlgorithmConfig> {
    workloads
        .iter()
        .filter(|workload| workload.class == class)
        .map(|workload| &algorithms[workload.algorithm].config)
        .find(|algorithm| has_switch_half(*algorithm))
}

/// Reports halves that contradict each other, and `plain` without effect.
pub(super) fn check(
    root: &Section<'_>,
    topology: &TopologySpec,
    algorithms: &[NamedAlgorithm],
    workloads: &[Workload],
) {
    let mut any = false;
    for class in 0..topology.classes.len().max(1) {
        let here = |workload: &&Workload| usize::from(workload.class) == class;
        let mut labels: Vec<usize> = workloads.iter().filter(here).map(|w| w.algorithm).collect();
        labels.sort_unstable();
        labels.dedup();
        labels.retain(|&index| has_switch_half(&algorithms[index].config));
        // Two labels may differ in the hosts' settings only.
        labels
            .dedup_by(|a, b| have_same_switch_half(&algorithms[*a].config, &algorithms[*b].config));
        any |= !labels.is_empty();
        if let [first, second, ..] = labels[..] {
            let (first, second) = (&algorithms[first].label, &algorithms[second].label);
            let message = format_args!(
                "has `{first}` and `{second}` in one class, but a class's ports take part in one \
                 algorithm, and these have different switch halves; give each a separate \
                 `[[topology.class]]`"
            );
            root.problem("workload", message);
        }
        let marked =
            topology.ecn.is_some() || topology.classes.get(class).is_some_and(|c| c.ecn.is_some());
        if let [first, ..] = labels[..]
            && marked
            && gives_marks(&algorithms[first].config)
        {
            let message = format_args!(
                "marks a class whose ports mark packets as `{}` needs it; remove `ecn`, or give the workload a separate class",
                algorithms[first].label
            );
            root.problem("topology", message);
        }
    }
    if let Ok(built) = topology.build() {
        let known = || built.switches.iter().map(|switch| switch.name.as_str());
        for name in &topology.plain {
            let hint = || suggestion(name, known());
            let message = format_args!("`plain` names `{name}`, which is not a switch{}", hint());
            root.check(known().any(|switch| switch == name), "topology", message);
        }
    }
    if !any && !topology.plain.is_empty() {
        let message = "has `plain` without effect: no algorithm here has a switch half; remove it";
        root.problem("topology", message);
    }
    if !any && topology.instant_signals {
        let message =
            "has `signals` without effect: no algorithm here has a switch half; remove it";
        root.problem("topology", message);
    }
}
