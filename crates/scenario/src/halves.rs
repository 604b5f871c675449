//! The switch halves of a run: each class of a switch's ports takes part in the algorithm of the
//! workloads that travel in it, if that algorithm has a switch half.

use apus_cc::registry::AlgorithmConfig;
use apus_cc::{SwitchAlgorithm, SwitchInfo};
use apus_fabric::{Node, Topology};
use apus_units::{Bytes, suggestion};

use super::algorithm::{NamedAlgorithm, speaks};
use super::section::Section;
use super::setup::Setup;
use super::topology::TopologySpec;
use super::workload::Workload;
use apus_sim::PacketSizes;
use apus_sim::host_model::Nic;
use apus_sim::random::{Purpose, Stream};

/// Most classes of a port, for the keys of random streams.
const CLASSES: u64 = 256;

/// Puts the halves into the ports of every switch that takes part.
pub(super) fn place(setup: &Setup, topology: &mut Topology) {
    let classes = setup.topology.classes.len().max(1);
    let halves: Vec<Option<&AlgorithmConfig>> = (0..classes)
        .map(|class| speaking(class as u8, &setup.algorithms, &setup.workloads))
        .collect();
    let ramp = setup.topology.ramps();
    if halves.iter().all(Option::is_none) && !ramp {
        return;
    }
    let plain = |node: Node| match node {
        Node::Host(_) => setup.host.model.nic == Nic::Pull,
        Node::Switch(switch) => {
            setup.topology.plain.contains(&topology.switches[switch.index()].name)
        }
    };
    let skipped: Vec<(bool, bool)> =
        topology.links.iter().map(|link| (plain(link.a), plain(link.b))).collect();
    for (index, (link, skipped)) in (0u64..).zip(topology.links.iter_mut().zip(skipped)) {
        let is_nic = |node| matches!(node, Node::Host(_));
        let sides = [
            (2 * index, &mut link.ab, skipped.0, is_nic(link.a)),
            (2 * index + 1, &mut link.ba, skipped.1, is_nic(link.b)),
        ];
        for (port, config, skipped, nic) in sides {
            for (class, (config, half)) in (0u64..).zip(config.classes.iter_mut().zip(&halves)) {
                let key = port * CLASSES + class;
                let seed = || Stream::new(setup.seed, Purpose::Switch, key).bits();
                if let Some(algorithm) = half.filter(|_| !skipped) {
                    config.algorithm = algorithm.switch(&info(&setup.sizes, seed(), nic));
                } else if let SwitchAlgorithm::Ramp(marker) = &config.algorithm {
                    config.algorithm = SwitchAlgorithm::Ramp(marker.with_seed(seed()));
                }
            }
        }
    }
}

fn info(sizes: &PacketSizes, seed: u64, nic: bool) -> SwitchInfo {
    SwitchInfo { packet: Bytes::new(u64::from(sizes.payload + sizes.header)), seed, nic }
}

/// What its switch half is, to be compared.
fn half_of(algorithm: &AlgorithmConfig) -> String {
    format!("{:?}", algorithm.switch(&SwitchInfo { packet: Bytes::new(1500), seed: 0, nic: false }))
}

/// The algorithm whose half a class's ports have, if any does.
fn speaking<'a>(
    class: u8,
    algorithms: &'a [NamedAlgorithm],
    workloads: &[Workload],
) -> Option<&'a AlgorithmConfig> {
    workloads
        .iter()
        .filter(|workload| workload.class == class)
        .map(|workload| &algorithms[workload.algorithm].config)
        .find(|algorithm| speaks(algorithm))
}

/// Halves that contradict each other, and `plain` without effect.
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
        labels.retain(|&index| speaks(&algorithms[index].config));
        // Two may differ in what their hosts do.
        labels.dedup_by_key(|&mut index| half_of(&algorithms[index].config));
        any |= !labels.is_empty();
        if let [first, second, ..] = labels[..] {
            let (first, second) = (&algorithms[first].label, &algorithms[second].label);
            let message = format_args!(
                "has `{first}` and `{second}` in one class, but a class's ports take part in one \
                 algorithm, and these differ in what switches do; give each a `[[topology.class]]` of \
                 its own"
            );
            root.problem("workload", message);
        }
        let marked =
            topology.ecn.is_some() || topology.classes.get(class).is_some_and(|c| c.ecn.is_some());
        if let [first, ..] = labels[..]
            && marked
        {
            let message = format_args!(
                "marks a class whose ports take part in `{}`; give it a class of its own",
                algorithms[first].label
            );
            root.problem("topology", message);
        }
    }
    if let Ok(built) = topology.build() {
        let known = || built.switches.iter().map(|switch| switch.name.as_str());
        for name in &topology.plain {
            let hint = || suggestion(name, known());
            let message = format_args!("`plain` names `{name}`, which is no switch{}", hint());
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
