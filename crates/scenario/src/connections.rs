//! Turns workloads into connections, and draws their random numbers. Only the random numbers of faults are
//! drawn elsewhere (`fault::draw`).

use crate::set::ConnectionPlan;
use apus_algorithms::AlgorithmConfig;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use apus_units::{Bytes, ClassId, HostId, Span, Time};

use super::closed::{ClosedLoops, FlowSpec, Pattern};
use super::poisson::{Pairs, Poisson};
use super::setup::Setup;
use super::stream::AllStreamed;
use super::trace::Messages;
use super::workload::{Demand, Workload};
use crate::import::Message;
use apus_sim::plan::{self, FurtherOps, JobPlan, Load, NextOps, OpArrival};
use apus_sim::random::{Purpose, Stream};

/// The connections of all workloads, in their order.
pub(super) struct Expanded {
    pub(super) connections: Vec<ConnectionPlan>,
    /// Ranges of connections, by workload.
    pub(super) demands: Vec<plan::Demand>,
    /// Jobs in their order, each with a template of its connections.
    pub(super) jobs: Vec<(JobPlan, ConnectionPlan)>,
    /// Traces that the run reads as it goes.
    pub(super) streamed: Option<Arc<dyn FurtherOps<AlgorithmConfig>>>,
    /// Ops that open loops submit during the drain.
    pub(super) further: Option<Arc<dyn FurtherOps<AlgorithmConfig>>>,
}

/// Draws the connections of all workloads.
pub(super) fn expand(setup: &Setup) -> Expanded {
    let most: u64 = setup.workloads.iter().map(Workload::connections).sum();
    // The reader has checked that there is memory for them.
    let mut connections = Vec::with_capacity(most as usize);
    let mut demands = Vec::new();
    let mut jobs = Vec::new();
    let measured = setup.named_workloads();
    let (mut streamed, mut further) = (Vec::new(), Vec::new());
    for (index, workload) in setup.workloads.iter().enumerate() {
        let first = connections.len();
        let random = Stream::new(setup.seed, Purpose::Workload, index as u64);
        let template = ConnectionPlan {
            from: HostId::new(0),
            to: HostId::new(0),
            start: instant(workload.start),
            stop: workload.stop.map_or(Time::MAX, instant),
            kind: workload.op,
            load: Load::Closed { size: Bytes::ZERO, outstanding: 0 },
            handshake: workload.handshake,
            algorithm: setup.algorithms[workload.algorithm].config.clone(),
            class: ClassId::new(workload.class),
            reroute: None,
            spread: workload.spread.clone(),
            workload: workload.named.as_ref().and_then(|own| {
                measured.iter().position(|named| named.name == own.name).map(|at| at as u32)
            }),
            service: workload.service.map(|spec| Arc::new(spec.of_device(index as u32))),
        };
        match &workload.demand {
            Demand::Closed(loops) => closed(workload, loops, &template, random, &mut connections),
            Demand::Poisson(poisson) => {
                let mut senders = senders(setup, workload, poisson, index);
                let end = instant(workload.stop.unwrap_or(setup.duration).min(setup.duration));
                let arrivals = draw(poisson, &mut senders, end);
                let first = connections.len();
                open(poisson, arrivals, &template, &mut connections);
                let (poisson, connections) = (poisson.clone(), first..connections.len());
                further.push(Continued { poisson, senders, connections, stop: template.stop });
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
            Demand::Trace(trace) => match &trace.messages {
                Messages::Kept { messages, flows_per_pair } => {
                    open_messages(messages, *flows_per_pair, &template, &mut connections);
                }
                Messages::Streamed(trace) => {
                    // There are fewer than 2^32 connections.
                    streamed.push((connections.len() as u32, trace.clone()));
                    connections.extend(trace.connections(&template));
                }
            },
            Demand::Job(job) => {
                let mut random = random;
                jobs.push((job.plan(&workload.label, workload.start, &mut random), template));
            }
        }
        demands.push(plan::Demand {
            label: workload.label.clone(),
            algorithm: setup.algorithms[workload.algorithm].label.clone(),
            class: {
                let class = setup.topology.classes.get(usize::from(workload.class));
                class.map(|class| class.name.clone())
            },
            connections: first..connections.len(),
            open: open_interval(workload, setup.duration),
            is_trace: matches!(workload.demand, Demand::Trace(_)),
        });
    }
    let streamed = (!streamed.is_empty()).then(|| Arc::new(AllStreamed(streamed)) as _);
    let further = (!further.is_empty()).then(|| Arc::new(AllContinued(further)) as _);
    Expanded { connections, demands, jobs, streamed, further }
}

/// Returns the interval in which the ops of an open loop arrive; `None` for a closed loop.
fn open_interval(workload: &Workload, duration: Span) -> Option<(Time, Time)> {
    match &workload.demand {
        Demand::Closed(_) | Demand::Rounds(_) | Demand::Job(_) => None,
        Demand::Poisson(_) => {
            let stop = workload.stop.map_or(duration, |stop| stop.min(duration));
            Some((instant(workload.start), instant(stop)))
        }
        Demand::Trace(trace) => {
            let (first, last) = trace.messages.interval()?;
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

/// A sender of an open loop, and the state of drawing its ops.
#[derive(Clone, Debug)]
struct Sender {
    from: u32,
    random: Stream,
    mean: Span,
    /// Arrival of its next op.
    next: Time,
}

/// An open loop that continues after the end of the run, during the drain.
#[derive(Debug)]
struct Continued {
    poisson: Poisson,
    senders: Vec<Sender>,
    /// Indices of its connections.
    connections: Range<usize>,
    stop: Time,
}

/// All open loops of a run.
#[derive(Debug)]
struct AllContinued(Vec<Continued>);

impl FurtherOps<AlgorithmConfig> for AllContinued {
    fn begin(&self, connections: &[ConnectionPlan]) -> NextOps {
        let mut loops: Vec<_> = self.0.iter().map(|one| one.begin(connections)).collect();
        Box::new(move |until| {
            let ops = loops.iter_mut().map(|next| next(until));
            Ok(ops.collect::<Result<Vec<_>, _>>()?.concat())
        })
    }
}

impl Continued {
    /// Assigns ops to the connections of their pair in turn, or to those of their sender if the pair has none.
    /// No new connections are opened, even if each op had a separate connection during the run.
    fn begin(&self, connections: &[ConnectionPlan]) -> NextOps {
        let mut of_pair: BTreeMap<(u32, u32), (usize, Vec<u32>)> = BTreeMap::new();
        let mut of_sender: BTreeMap<u32, (usize, Vec<u32>)> = BTreeMap::new();
        for (index, connection) in connections[self.connections.clone()].iter().enumerate() {
            // There are fewer than 2^32.
            let index = (self.connections.start + index) as u32;
            let (from, to) = (connection.from.get(), connection.to.get());
            of_pair.entry((from, to)).or_default().1.push(index);
            of_sender.entry(from).or_default().1.push(index);
        }
        let (poisson, mut senders, stop) = (self.poisson.clone(), self.senders.clone(), self.stop);
        Box::new(move |until| {
            let mut drawn = draw(&poisson, &mut senders, until.min(stop));
            drawn.sort_unstable();
            let place = |(arrival, from, to): Drawn| {
                let own = of_pair.get_mut(&(from, to));
                let (turn, own) = own.or_else(|| of_sender.get_mut(&from))?;
                *turn += 1;
                Some((own[*turn % own.len()], arrival))
            };
            Ok(drawn.into_iter().filter_map(place).collect())
        })
    }
}

/// An op of an open loop, with its sender and its receiver.
type Drawn = (OpArrival, u32, u32);

/// The senders of an open loop, each with a separate stream of random numbers.
fn senders(setup: &Setup, workload: &Workload, poisson: &Poisson, index: usize) -> Vec<Sender> {
    let rates = setup.topology.host_rates();
    let sender = |&from: &u32| {
        let entity = (index as u64 + 1) << 32 | u64::from(from);
        let mut random = Stream::new(setup.seed, Purpose::Workload, entity);
        let mean = Span::from_ps_f64(poisson.gap_s(from, &rates) * 1e12);
        let next = instant(workload.start).saturating_add(mean.mul_f64(random.exponential()));
        Sender { from, random, mean, next }
    };
    poisson.senders().iter().map(sender).collect()
}

/// Draws the ops of an open loop that arrive before `end`, sender by sender.
fn draw(poisson: &Poisson, senders: &mut [Sender], end: Time) -> Vec<Drawn> {
    let mut drawn = Vec::new();
    for Sender { from, random, mean, next } in senders {
        while *next < end {
            let to = match &poisson.pairs {
                Pairs::To { receiver, .. } => *receiver,
                Pairs::Random(hosts) => {
                    // One of the other hosts: the last one replaces the sender itself.
                    let drawn = hosts[random.below(hosts.len() as u64 - 1) as usize];
                    if drawn == *from { hosts[hosts.len() - 1] } else { drawn }
                }
                Pairs::OtherRacks(hosts, racks) => loop {
                    // Such a host exists: the reader has checked that there are at least two racks.
                    let drawn = hosts[random.below(hosts.len() as u64) as usize];
                    if racks[drawn as usize] != racks[*from as usize] {
                        break drawn;
                    }
                },
            };
            let size = poisson.sizes.draw(random.uniform());
            drawn.push((OpArrival { at: *next, size }, *from, to));
            *next = next.saturating_add(mean.mul_f64(random.exponential()));
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
    let Some(flows) = poisson.flows_per_pair else {
        drawn.sort_unstable();
        connections.extend(drawn.into_iter().map(|op| own_connection(op, template)));
        return;
    };
    drawn.sort_unstable_by_key(|&(arrival, from, to)| (from, to, arrival));
    share(&drawn, flows, template, connections);
}

/// Gives the messages of a trace to connections.
fn open_messages(
    messages: &[Message],
    flows_per_pair: Option<u32>,
    template: &ConnectionPlan,
    connections: &mut Vec<ConnectionPlan>,
) {
    let op = |message: &Message| {
        let (at, size) = (instant(message.start), Bytes::new(message.bytes));
        (OpArrival { at, size }, message.from, message.to)
    };
    let ops = messages.iter().map(op);
    let Some(flows) = flows_per_pair else {
        connections.extend(ops.map(|op| own_connection(op, template)));
        return;
    };
    let mut ops: Vec<Drawn> = ops.collect();
    // Stable: messages of one time keep the order of the file.
    ops.sort_by_key(|&(arrival, from, to)| (from, to, arrival.at));
    share(&ops, flows, template, connections);
}

/// A connection for one op.
fn own_connection((arrival, from, to): Drawn, template: &ConnectionPlan) -> ConnectionPlan {
    open_connection(from, to, [arrival].into(), template)
}

/// Distributes ops, sorted by pair of hosts and then by time, over at most `flows` connections per
/// pair, round-robin.
fn share(
    ops: &[Drawn],
    flows: u32,
    template: &ConnectionPlan,
    connections: &mut Vec<ConnectionPlan>,
) {
    for pair in ops.chunk_by(|a, b| (a.1, a.2) == (b.1, b.2)) {
        let flows = (flows as usize).min(pair.len());
        for first in 0..flows {
            let own = pair[first..].iter().step_by(flows).map(|(arrival, ..)| *arrival).collect();
            connections.push(open_connection(pair[0].1, pair[0].2, own, template));
        }
    }
}

/// A connection with ops at given times.
fn open_connection(
    from: u32,
    to: u32,
    arrivals: Arc<[OpArrival]>,
    template: &ConnectionPlan,
) -> ConnectionPlan {
    ConnectionPlan {
        from: HostId::new(from),
        to: HostId::new(to),
        start: arrivals.first().map_or(template.start, |first| first.at),
        load: Load::Open(arrivals),
        ..template.clone()
    }
}

fn instant(since_start: Span) -> Time {
    Time::ZERO + since_start
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
            // A random order, each host to the next one: no host sends to itself.
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
