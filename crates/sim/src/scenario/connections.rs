//! From workloads to connections; the only place where a scenario draws random numbers.

use apus_transport::OpKind;
use apus_units::{ClassId, HostId, Span, Time};
use apus_wire::RegionKey;

use super::algorithm::NamedAlgorithm;
use super::workload::{FlowSpec, Pattern, Workload};
use crate::plan::{ConnectionPlan, Load};
use crate::random::{Purpose, Stream};

/// The connections of all workloads, in their order.
pub(super) fn expand(
    workloads: &[Workload],
    algorithms: &[NamedAlgorithm],
    seed: u64,
) -> Vec<ConnectionPlan> {
    let mut connections = Vec::new();
    for (index, workload) in workloads.iter().enumerate() {
        let mut random = Stream::new(seed, Purpose::Workload, index as u64);
        let algorithm = &algorithms[workload.algorithm].config;
        for flow in pairs(workload, &mut random) {
            for _ in 0..workload.flows_per_pair {
                let spread = workload.start_spread.mul_f64(random.uniform());
                connections.push(ConnectionPlan {
                    from: HostId::new(flow.from),
                    to: HostId::new(flow.to),
                    start: instant(flow.start + spread),
                    stop: flow.stop.map_or(Time::MAX, instant),
                    kind: op_kind(workload.op),
                    load: Load::Closed { size: workload.size, outstanding: workload.outstanding },
                    algorithm: algorithm.clone(),
                    class: ClassId::new(0),
                });
            }
        }
    }
    connections
}

fn instant(since_start: Span) -> Time {
    Time::ZERO + since_start
}

fn op_kind(word: &str) -> OpKind {
    // In a simulation no byte is stored: one region stands for all.
    let (region, address) = (RegionKey::new(1), 0);
    match word {
        "write" => OpKind::Write { region, address },
        "read" => OpKind::Read { region, address },
        _ => OpKind::Message,
    }
}

fn pairs(workload: &Workload, random: &mut Stream) -> Vec<FlowSpec> {
    let pair = |from, to| FlowSpec { from, to, start: workload.start, stop: workload.stop };
    match &workload.pattern {
        Pattern::Incast { senders, receiver } => {
            senders.iter().map(|sender| pair(*sender, *receiver)).collect()
        }
        Pattern::Permutation { hosts } => {
            // A random order, each host to the next one: nobody sends to itself.
            let order = random.permutation(hosts.len() as u32);
            let host = |place: usize| hosts[order[place % order.len()] as usize];
            let mut pairs: Vec<_> =
                (0..order.len()).map(|place| pair(host(place), host(place + 1))).collect();
            pairs.sort_by_key(|flow| flow.from);
            pairs
        }
        Pattern::AllToAll { hosts } => hosts
            .iter()
            .flat_map(|from| hosts.iter().map(move |to| (*from, *to)))
            .filter(|(from, to)| from != to)
            .map(|(from, to)| pair(from, to))
            .collect(),
        Pattern::Flows(flows) => flows.clone(),
    }
}
