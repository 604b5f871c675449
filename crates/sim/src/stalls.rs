//! Flows without progress, with the start of the stall and its reason. The plan alone determines when the run
//! looks for them, so that results do not depend on the caller.

use std::collections::BTreeMap;

use apus_cc::AlgorithmFactory;
use apus_fabric::RouteId;
use apus_transport::Silence;
use apus_units::{FlowId, HostId, PortId, Span, Time};

use crate::columns::{StallSummary, StalledFlow};
use crate::host::{Host, HostFlow};
use crate::part::Part;
use crate::plan::{FaultKind, Plan};

/// Number of timeouts after which a flow counts as stalled: its peer has acknowledged nothing for longer than
/// this many of the flow's current retransmission timeouts, each with a gap of its pace, or over this many
/// timeouts in a row. If a link on the flow's path is down, one timeout is enough. deviation: no source;
/// rationale: one more than RFC 9293 §3.8.3, which reports a connection after 3 retransmissions.
pub const STALLED_RTOS: u32 = 4;

/// Maximum and minimum number of checks for stalled flows in a run, and maximum number of checks of single
/// flows in total. deviation: no source; rationale: 20 million checks of a flow take about 1 s; 4 to 32
/// checks date a stall to a quarter of the run or better.
const MOST_LOOKS: u64 = 32;
const LEAST_LOOKS: u64 = 4;
const ALL_LOOKS: u64 = 20_000_000;

/// Maximum number of flows that results list.
const NAMED: usize = 64;
/// Maximum number of flows that are reported during the run.
const TOLD: usize = 5;

/// Search for stalled flows in the course of a run.
pub(crate) struct Stalls {
    every: Span,
    next: Time,
    known: BTreeMap<(HostId, FlowId), Known>,
    flows: Vec<StalledFlow>,
    told: usize,
}

/// A flow that was stalled at some time.
struct Known {
    /// Whether it is still stalled.
    stalled: bool,
    /// Time of the flow's last progress, on its host's clock. The flow is stalled until this time changes.
    since: Time,
    /// Index among the listed flows.
    place: Option<usize>,
}

impl Stalls {
    pub(crate) fn new<F: AlgorithmFactory>(plan: &Plan<F>) -> Self {
        let flows = (plan.connections.len() as u64).max(1);
        let looks = (ALL_LOOKS / flows).clamp(LEAST_LOOKS, MOST_LOOKS);
        let every = (plan.duration / looks).max(Span::from_ps(1));
        let next = Time::ZERO.saturating_add(every);
        Self { every, next, known: BTreeMap::new(), flows: Vec::new(), told: 0 }
    }

    /// Returns the time of the next check.
    pub(crate) fn next(&self) -> Time {
        self.next
    }

    /// Checks all flows. Reports each stalled flow to `tell` when it is first found, up to a limit.
    pub(crate) fn look<F: AlgorithmFactory>(
        &mut self,
        now: Time,
        parts: &[Part<F>],
        plan: &Plan<F>,
        tell: &dyn Fn(&str),
    ) {
        if now >= self.next {
            self.next = now.saturating_add(self.every);
        }
        self.known.values_mut().for_each(|known| known.stalled = false);
        let before = self.known.len();
        let broken = down(now, plan).next().is_some();
        for part in parts {
            for host in &part.hosts {
                let local = host.clocks.host.read(now);
                for index in 0..host.flows.len() {
                    let id = FlowId::new(index as u32);
                    let Some(silence) = host.endpoint.silence(id) else { continue };
                    let cut = || {
                        broken
                            && local.since(silence.since) > silence.rto
                            && broken_link(now, parts, plan, host, id).is_some()
                    };
                    if self.is_still(host.id, id, &silence) || is_stalled(&silence, local) || cut()
                    {
                        self.note((now, local), parts, plan, (host, id), &silence, tell);
                    }
                }
            }
        }
        for known in self.known.values() {
            let Some(flow) = known.place.map(|place| &mut self.flows[place]) else { continue };
            let ended = Some(now.since(Time::ZERO).as_us_f64());
            flow.until_us = if known.stalled { None } else { flow.until_us.or(ended) };
        }
        if before <= TOLD && self.known.len() > TOLD && self.told == TOLD {
            self.told += 1;
            tell("more flows make no progress; the results count them");
        }
    }

    /// Returns `true` if a flow was stalled at the last check and has made no progress since.
    fn is_still(&self, host: HostId, flow: FlowId, silence: &Silence) -> bool {
        let known = self.known.get(&(host, flow));
        known.is_some_and(|known| known.since == silence.since)
    }

    fn note<F: AlgorithmFactory>(
        &mut self,
        (now, local): (Time, Time),
        parts: &[Part<F>],
        plan: &Plan<F>,
        (host, id): (&Host<F>, FlowId),
        silence: &Silence,
        tell: &dyn Fn(&str),
    ) {
        let key = (host.id, id);
        if let Some(known) = self.known.get_mut(&key) {
            (known.stalled, known.since) = (true, silence.since);
            return;
        }
        let place = self.flows.len();
        let named = place < NAMED;
        let place = named.then_some(place);
        self.known.insert(key, Known { stalled: true, since: silence.since, place });
        if !named {
            return;
        }
        let flow = &host.flows[id.index()];
        let since = now.saturating_sub(local.since(silence.since));
        let stalled = StalledFlow {
            flow: flow.connection,
            host: host.id.get(),
            peer: flow.peer.get(),
            since_us: since.since(Time::ZERO).as_us_f64(),
            until_us: None,
            ops: host.endpoint.ops_under_way(id).unwrap_or(0),
            reason: reason(now, parts, plan, host, id),
        };
        if self.told < TOLD {
            self.told += 1;
            tell(&stalled.to_string());
        }
        self.flows.push(stalled);
    }

    pub(crate) fn summary(&self) -> StallSummary {
        StallSummary {
            noticed: self.known.len() as u64,
            at_end: self.known.values().filter(|known| known.stalled).count() as u64,
            flows: self.flows.clone(),
        }
    }
}

fn is_stalled(silence: &Silence, local: Time) -> bool {
    let patience = silence.rto.saturating_add(silence.gap) * u64::from(STALLED_RTOS);
    silence.timeouts_in_a_row >= STALLED_RTOS || local.since(silence.since) > patience
}

/// Returns the reason why a flow with outstanding ops makes no progress, if it is known.
pub(crate) fn reason<F: AlgorithmFactory>(
    now: Time,
    parts: &[Part<F>],
    plan: &Plan<F>,
    host: &Host<F>,
    id: FlowId,
) -> String {
    if let Some((name, since)) = broken_link(now, parts, plan, host, id) {
        let since = since.since(Time::ZERO);
        return format!("the link {name} has been down since {since}");
    }
    let local = host.clocks.host.read(now);
    let timeouts = host.endpoint.silence(id).map_or(0, |silence| silence.timeouts_in_a_row);
    let Some(waiting) = host.endpoint.waiting(local, id) else { return "unknown".to_owned() };
    match (waiting.needs_credit, timeouts, waiting.next_packet) {
        (true, ..) => "it waits for credits".to_owned(),
        (_, 1.., Some(at)) if at > local => format!(
            "{timeouts} timeouts in a row, and the next packet waits {:.1} us for its pace",
            at.since(local).as_us_f64()
        ),
        (_, 1.., _) => format!("{timeouts} timeouts in a row without an acknowledgement"),
        (_, 0, Some(at)) if at > local => {
            format!("the next packet waits {:.1} us for its pace", at.since(local).as_us_f64())
        }
        (_, 0, Some(_)) => "its packets wait for the NIC".to_owned(),
        (_, 0, None) => "no packet in flight was acknowledged".to_owned(),
    }
}

/// Returns the ports whose links are down, each with the time of the failure.
fn down<F: AlgorithmFactory>(now: Time, plan: &Plan<F>) -> impl Iterator<Item = (PortId, Time)> {
    let faults = plan.faults.iter().filter(|fault| fault.kind == FaultKind::Down);
    let faults = faults.filter(move |fault| fault.at <= now && now < fault.until);
    faults.map(|fault| (fault.port, fault.at))
}

/// Returns the first link on a flow's path that is down, in either direction, and the time of its failure. If
/// the flow spreads its packets, returns `None` unless every path has such a link.
fn broken_link<F: AlgorithmFactory>(
    now: Time,
    parts: &[Part<F>],
    plan: &Plan<F>,
    host: &Host<F>,
    id: FlowId,
) -> Option<(String, Time)> {
    let part_of =
        |id: HostId| parts.iter().find(|part| part.hosts.iter().any(|host| host.id == id));
    let flow = &host.flows[id.index()];
    let near = part_of(host.id)?;
    let far = part_of(flow.peer)?;
    let peer = far.hosts.iter().find(|host| host.id == flow.peer)?;
    let back = peer.flows.iter().find(|other| other.connection == flow.connection)?;
    let broken = |part: &Part<F>, host: &Host<F>, flow: &HostFlow| {
        let is_down = |port: PortId| down(now, plan).find(|(other, _)| *other == port);
        let mut first = None;
        for route in routes(host, flow) {
            let link = part.world.network.route_ports(route).into_iter().find_map(is_down)?;
            first.get_or_insert(link);
        }
        first
    };
    let (port, since) = broken(near, host, flow).or_else(|| broken(far, peer, back))?;
    Some((far.world.network.port_name(port), since))
}

/// Returns the paths of a flow's packets from its host.
fn routes<F: AlgorithmFactory>(host: &Host<F>, flow: &HostFlow) -> Vec<RouteId> {
    if flow.is_spread {
        host.spreads[flow.path_label as usize].routes().collect()
    } else {
        vec![flow.route]
    }
}
