//! From workloads to connections; the only place where a scenario draws random numbers.

use std::sync::Arc;

use apus_transport::OpKind;
use apus_units::{Bytes, ClassId, HostId, Span, Time};
use apus_wire::RegionKey;

use super::closed::{ClosedLoops, FlowSpec, Pattern};
use super::poisson::{Pairs, Poisson};
use super::setup::Setup;
use super::workload::{Demand, Workload};
use crate::offered;
use crate::plan::{ConnectionPlan, Load, OpArrival};
use crate::random::{Purpose, Stream};

/// The connections of all workloads, in their order, and which belong to which.
pub(super) fn expand(setup: &Setup) -> (Vec<ConnectionPlan>, Vec<offered::Demand>) {
    let most: u64 = setup.workloads.iter().map(Workload::connections).sum();
    // There are at most a million, as the reader has checked.
    let mut connections = Vec::with_capacity(most as usize);
    let mut demands = Vec::new();
    let measured = setup.named_workloads();
    for (index, workload) in setup.workloads.iter().enumerate() {
        let first = connections.len();
        let random = Stream::new(setup.seed, Purpose::Workload, index as u64);
        let template = ConnectionPlan {
            from: HostId::new(0),
            to: HostId::new(0),
            start: instant(workload.start),
            stop: workload.stop.map_or(Time::MAX, instant),
            kind: op_kind(workload.op),
            load: Load::Closed { size: Bytes::ZERO, outstanding: 0 },
            algorithm: setup.algorithms[workload.algorithm].config.clone(),
            class: ClassId::new(workload.class),
            reroute: None,
            workload: workload.named.as_ref().and_then(|own| {
                measured.iter().position(|named| named.name == own.name).map(|at| at as u32)
            }),
            service: workload.service.map(|spec| Arc::new(spec.of_device(index as u32))),
        };
        match &workload.demand {
            Demand::Closed(loops) => closed(workload, loops, &template, random, &mut connections),
            Demand::Poisson(poisson) => {
                let arrivals = draw(setup, workload, poisson, index);
                open(poisson, arrivals, &template, &mut connections);
            }
            Demand::Rounds(rounds) => {
                connections.extend(rounds.workers.iter().map(|&worker| ConnectionPlan {
                    from: HostId::new(rounds.master),
                    to: HostId::new(worker),
                    load: Load::Round {
                        request: rounds.request,
                        answer: rounds.answer,
                        group: index as u32,
                    },
                    ..template.clone()
                }));
            }
            Demand::Trace(trace) => {
                connections.extend(trace.messages.iter().map(|message| {
                    let start = instant(message.start);
                    let arrival = OpArrival { at: start, size: Bytes::new(message.bytes) };
                    ConnectionPlan {
                        from: HostId::new(message.from),
                        to: HostId::new(message.to),
                        start,
                        load: Load::Open([arrival].into()),
                        ..template.clone()
                    }
                }));
            }
        }
        demands.push(offered::Demand {
            label: workload.label.clone(),
            connections: first..connections.len(),
            open: open_interval(workload, setup.duration),
        });
    }
    (connections, demands)
}

/// When the ops of an open loop arrive; `None` for a closed loop.
fn open_interval(workload: &Workload, duration: Span) -> Option<(Time, Time)> {
    match &workload.demand {
        Demand::Closed(_) | Demand::Rounds(_) => None,
        Demand::Poisson(_) => {
            let stop = workload.stop.map_or(duration, |stop| stop.min(duration));
            Some((instant(workload.start), instant(stop)))
        }
        Demand::Trace(trace) => {
            let starts = || trace.messages.iter().map(|message| message.start);
            let (first, last) = (starts().min()?, starts().max()?);
            Some((instant(first), instant(last)))
        }
    }
}

fn closed(
    workload: &Workload,
    loops: &ClosedLoops,
    template: &ConnectionPlan,
    mut random: Stream,
    connections: &mut Vec<ConnectionPlan>,
) {
    for flow in pairs(workload, loops, &mut random) {
        for _ in 0..loops.flows_per_pair {
            let spread = loops.start_spread.mul_f64(random.uniform());
            connections.push(ConnectionPlan {
                from: HostId::new(flow.from),
                to: HostId::new(flow.to),
                start: instant(flow.start + spread),
                stop: flow.stop.map_or(Time::MAX, instant),
                load: Load::Closed { size: loops.size, outstanding: loops.outstanding },
                reroute: flow.reroute.as_ref().map(|reroute| Box::new(reroute.plan())),
                ..template.clone()
            });
        }
    }
}

/// One op of an open loop.
type Drawn = (OpArrival, u32, u32);

/// Draws the ops of an open loop, sender by sender: each has a stream of its own.
fn draw(setup: &Setup, workload: &Workload, poisson: &Poisson, index: usize) -> Vec<Drawn> {
    let rates = setup.topology.host_rates();
    let end = instant(workload.stop.unwrap_or(setup.duration).min(setup.duration));
    let mut drawn = Vec::new();
    for &from in poisson.senders() {
        let entity = (index as u64 + 1) << 32 | u64::from(from);
        let mut random = Stream::new(setup.seed, Purpose::Workload, entity);
        let mean = Span::from_ps_f64(poisson.gap_s(from, &rates) * 1e12);
        let mut at = instant(workload.start);
        loop {
            at = at.saturating_add(mean.mul_f64(random.exponential()));
            if at >= end {
                break;
            }
            let to = match &poisson.pairs {
                Pairs::To { receiver, .. } => *receiver,
                Pairs::Random(hosts) => {
                    // One of the others: the last takes the place of the sender itself.
                    let drawn = hosts[random.below(hosts.len() as u64 - 1) as usize];
                    if drawn == from { hosts[hosts.len() - 1] } else { drawn }
                }
                Pairs::OtherRacks(hosts, racks) => loop {
                    // There is one: the reader made sure of two racks.
                    let drawn = hosts[random.below(hosts.len() as u64) as usize];
                    if racks[drawn as usize] != racks[from as usize] {
                        break drawn;
                    }
                },
            };
            let size = poisson.sizes.draw(random.uniform());
            drawn.push((OpArrival { at, size }, from, to));
        }
    }
    drawn
}

/// Gives the ops of an open loop to connections.
fn open(
    poisson: &Poisson,
    mut drawn: Vec<Drawn>,
    template: &ConnectionPlan,
    connections: &mut Vec<ConnectionPlan>,
) {
    let connection = |from, to, arrivals: Vec<OpArrival>| ConnectionPlan {
        from: HostId::new(from),
        to: HostId::new(to),
        start: arrivals.first().map_or(template.start, |first| first.at),
        load: Load::Open(arrivals.into()),
        ..template.clone()
    };
    let Some(flows) = poisson.flows_per_pair else {
        drawn.sort_unstable();
        let ops = drawn.into_iter().map(|(arrival, from, to)| connection(from, to, vec![arrival]));
        connections.extend(ops);
        return;
    };
    drawn.sort_unstable_by_key(|&(arrival, from, to)| (from, to, arrival));
    for pair in drawn.chunk_by(|a, b| (a.1, a.2) == (b.1, b.2)) {
        let flows = (flows as usize).min(pair.len());
        for first in 0..flows {
            // In turns.
            let own = pair[first..].iter().step_by(flows).map(|(arrival, ..)| *arrival).collect();
            connections.push(connection(pair[0].1, pair[0].2, own));
        }
    }
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

fn pairs(workload: &Workload, loops: &ClosedLoops, random: &mut Stream) -> Vec<FlowSpec> {
    let pair =
        |from, to| FlowSpec { from, to, start: workload.start, stop: workload.stop, reroute: None };
    match &loops.pattern {
        Pattern::Incast { senders, receivers } => receivers
            .iter()
            .flat_map(|receiver| senders.iter().map(move |sender| (*sender, *receiver)))
            .map(|(sender, receiver)| pair(sender, receiver))
            .collect(),
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
