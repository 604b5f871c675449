//! `[[workload]]`: who sends how much to whom, and when.

use apus_units::{Bytes, Span};

use super::hosts::{read_host, read_hosts, read_incast};
use super::poisson::Poisson;
use super::repeat;
use super::reroute::RerouteSpec;
use super::rounds::Rounds;
use super::section::{Section, Setting};
use super::service::{self, ServiceSpec};
use super::topology::TopologySpec;
use super::trace::Trace;
use crate::measure::NamedWorkload;

/// The kinds of workload by name, with what they are.
pub const WORKLOADS: [(&str, &str); 7] = [
    ("incast", "`senders` hosts to one `receiver`, or to each of a list of them"),
    ("permutation", "every host to one other, every host from one other; drawn from the seed"),
    ("all-to-all", "every host to every other"),
    ("flows", "the pairs listed as `[[workload.flow]]` with `from` and `to`"),
    ("poisson", "an open loop: ops of random `sizes` at random times, at a `load` of the links"),
    (
        "partition-aggregate",
        "a `master` sends a `request` to all `workers`, each sends an `answer`",
    ),
    ("trace", "the messages of a `file`: CSV, flow.txt of the HPCC simulator, or .cm of htsim"),
];

/// The words for what an op does.
pub(super) const OPS: &[&str] = &["write", "read", "message"];

/// Largest op: far above what a run can carry.
const MAX_OP: Bytes = Bytes::new(1 << 40);

/// A workload as a scenario describes it.
#[derive(Clone, Debug)]
pub(super) struct Workload {
    pub(super) demand: Demand,
    /// One of [`OPS`].
    pub(super) op: &'static str,
    pub(super) start: Span,
    pub(super) stop: Option<Span>,
    /// Index of its algorithm.
    pub(super) algorithm: usize,
    /// Index of its class.
    pub(super) class: u8,
    /// Its name, if it is measured by itself.
    pub(super) named: Option<NamedWorkload>,
    /// What its reads take where they are answered.
    pub(super) service: Option<ServiceSpec>,
}

/// Which ops it submits.
#[derive(Clone, Debug)]
pub(super) enum Demand {
    Closed(ClosedLoops),
    Poisson(Poisson),
    Rounds(Rounds),
    Trace(Trace),
}

impl Demand {
    fn reroutes(&self) -> bool {
        match self {
            Self::Closed(ClosedLoops { pattern: Pattern::Flows(flows), .. }) => {
                flows.iter().any(|flow| flow.reroute.is_some())
            }
            _ => false,
        }
    }
}

/// A closed loop of ops over each of its connections.
#[derive(Clone, Debug)]
pub(super) struct ClosedLoops {
    pub(super) pattern: Pattern,
    pub(super) flows_per_pair: u32,
    pub(super) size: Bytes,
    pub(super) outstanding: u32,
    /// Each flow starts later by a random time, uniform from zero to this.
    pub(super) start_spread: Span,
}

#[derive(Clone, Debug)]
pub(super) enum Pattern {
    Incast { senders: Vec<u32>, receivers: Vec<u32> },
    Permutation { hosts: Vec<u32> },
    AllToAll { hosts: Vec<u32> },
    Flows(Vec<FlowSpec>),
}

/// One pair of hosts of a workload of the kind "flows".
#[derive(Clone, Debug)]
pub(super) struct FlowSpec {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) start: Span,
    pub(super) stop: Option<Span>,
    pub(super) reroute: Option<RerouteSpec>,
}

/// What a workload must fit.
pub(super) struct Frame<'a> {
    pub(super) hosts: u32,
    pub(super) duration: Span,
    pub(super) max_ops: u32,
    /// Labels of the algorithms.
    pub(super) algorithms: Vec<&'a str>,
    pub(super) topology: &'a TopologySpec,
}

impl Workload {
    /// Reads one: several if it comes again and again.
    pub(super) fn read(section: Section<'_>, frame: &Frame<'_>) -> Option<Vec<Self>> {
        let kind = match section.node("kind") {
            Some(_) => section.word("kind", &WORKLOADS.map(|(name, _)| name)),
            None => {
                let names: Vec<_> =
                    WORKLOADS.iter().map(|(name, _)| format!("\"{name}\"")).collect();
                section.missing("kind", &format!("one of {}", names.join(", ")));
                None
            }
        };
        let start = section.get("start").unwrap_or(Span::ZERO);
        let stop: Option<Span> = section.get("stop");
        let spread = match kind {
            Some("poisson" | "trace" | "partition-aggregate") => Span::ZERO,
            _ => section.get("start_spread").unwrap_or(Span::ZERO),
        };
        check_times(&section, start, spread, stop, frame.duration);
        let times = Times { start, spread, stop };
        let every = repeat::read(&section, kind, &times, frame);
        let demand = match kind {
            None => None,
            Some("poisson") => Poisson::read(&section, frame, &times).map(Demand::Poisson),
            Some("partition-aggregate") => Rounds::read(&section, frame).map(Demand::Rounds),
            Some("trace") => {
                for key in ["start", "stop"] {
                    section.no_effect(key, "on a trace, whose messages have their own times");
                }
                Trace::read(&section, frame).map(Demand::Trace)
            }
            Some(kind) => ClosedLoops::read(&section, frame, kind, &times).map(Demand::Closed),
        };
        let op = match kind {
            Some("partition-aggregate") => Some("message"),
            _ => section.word("op", OPS),
        };
        let service = service::read(&section, op);
        let algorithm = read_algorithm(&section, frame);
        let class = read_class(&section, frame.topology);
        let named = read_name(&section);
        let reroutes = demand.as_ref().is_some_and(Demand::reroutes);
        let message = "does not go with `reroute`, which happens once";
        section.check(every.is_none() || !reroutes, "every", message);
        if demand.is_some() {
            section.finish();
        }
        let (algorithm, class) = (algorithm?, class?);
        let (demand, op, named, service) = (demand?, op?, named?, service?);
        let first = Self { demand, op, start, stop, algorithm, class, named, service };
        Some(repeat::bursts(first, every, frame.duration))
    }

    /// Whether any of its flows takes another path in the course of the run.
    pub(super) fn reroutes(&self) -> bool {
        self.demand.reroutes()
    }

    /// How many connections it opens, at most.
    pub(super) fn connections(&self) -> u64 {
        match &self.demand {
            Demand::Closed(loops) => loops.connections(),
            Demand::Poisson(poisson) => poisson.connections(),
            Demand::Rounds(rounds) => rounds.workers.len() as u64,
            Demand::Trace(trace) => trace.messages.len() as u64,
        }
    }
}

impl ClosedLoops {
    fn read(section: &Section<'_>, frame: &Frame<'_>, kind: &str, times: &Times) -> Option<Self> {
        let pattern = Pattern::read(section, frame, kind, times);
        let size = read_op_size(section, "size");
        let outstanding = section.get("outstanding").unwrap_or(1);
        let must = format_args!(
            "must be from 1 to {} ops, which is `transport.max_ops`, but it is {outstanding}",
            frame.max_ops
        );
        section.check((1..=frame.max_ops).contains(&outstanding), "outstanding", must);
        let flows_per_pair = read_flows_per_pair(section);
        Some(Self {
            pattern: pattern?,
            flows_per_pair,
            size: size?,
            outstanding,
            start_spread: times.spread,
        })
    }

    fn connections(&self) -> u64 {
        let pairs = match &self.pattern {
            Pattern::Incast { senders, receivers } => senders.len() as u64 * receivers.len() as u64,
            Pattern::Permutation { hosts } => hosts.len() as u64,
            Pattern::AllToAll { hosts } => hosts.len() as u64 * (hosts.len() as u64 - 1),
            Pattern::Flows(flows) => flows.len() as u64,
        };
        pairs * u64::from(self.flows_per_pair)
    }
}

/// When a workload starts and stops.
pub(super) struct Times {
    pub(super) start: Span,
    pub(super) spread: Span,
    pub(super) stop: Option<Span>,
}

/// The size of an op.
pub(super) fn read_op_size(section: &Section<'_>, key: &'static str) -> Option<Bytes> {
    let size: Bytes = section.require(key)?;
    let holds = size > Bytes::ZERO && size <= MAX_OP;
    section.check(holds, key, format_args!("must be from 1B to {MAX_OP}, not {size}"));
    holds.then_some(size)
}

pub(super) fn read_flows_per_pair(section: &Section<'_>) -> u32 {
    let flows_per_pair = section.get("flows_per_pair").unwrap_or(1);
    section.check(flows_per_pair > 0, "flows_per_pair", "must be at least 1");
    flows_per_pair
}

/// `name` and `deadline`; the outer `None` means that something is wrong.
fn read_name(section: &Section<'_>) -> Option<Option<NamedWorkload>> {
    if section.node("name").is_none() {
        section.no_effect(
            "deadline",
            "on a workload without a `name`, which has no numbers of its own",
        );
        return Some(None);
    }
    let name: String = section.get("name")?;
    let holds = super::is_part_name(&name);
    section.check(holds, "name", format_args!("must be {}", super::PART_RULE));
    let deadline = section.get("deadline");
    Some(Some(NamedWorkload { name, deadline }))
}

/// The class that a workload's packets travel in.
fn read_class(section: &Section<'_>, topology: &TopologySpec) -> Option<u8> {
    if section.node("class").is_none() {
        return Some(0);
    }
    let name: String = section.get("class")?;
    let names = || topology.classes.iter().map(|class| class.name.as_str());
    let found = names().position(|known| known == name);
    if found.is_none() {
        let why = if topology.classes.is_empty() {
            "names a class, but the topology has none; add `[[topology.class]]`".to_owned()
        } else {
            format!("names no class of the topology{}", apus_cc::suggestion(&name, names()))
        };
        section.problem("class", why);
    }
    // At most 8 classes.
    found.map(|index| index as u8)
}

fn check_times(
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

fn read_algorithm(section: &Section<'_>, frame: &Frame<'_>) -> Option<usize> {
    let known = || frame.algorithms.iter().copied();
    if section.node("algorithm").is_none() {
        if frame.algorithms.len() > 1 {
            let labels = known().collect::<Vec<_>>().join(", ");
            section.missing("algorithm", &format!("one of {labels}"));
            return None;
        }
        return Some(0);
    }
    let label: String = section.get("algorithm")?;
    let found = known().position(|known| known == label);
    if found.is_none() {
        let hint = apus_cc::suggestion(&label, known());
        section.problem("algorithm", format_args!("names no algorithm of this scenario{hint}"));
    }
    found
}

impl Pattern {
    fn read(section: &Section<'_>, frame: &Frame<'_>, kind: &str, times: &Times) -> Option<Self> {
        match kind {
            "incast" => read_incast(section, frame.hosts),
            "permutation" => {
                Some(Self::Permutation { hosts: read_hosts(section, "hosts", frame.hosts, 2)? })
            }
            "all-to-all" => {
                Some(Self::AllToAll { hosts: read_hosts(section, "hosts", frame.hosts, 2)? })
            }
            _ => read_flows(section, frame, times),
        }
    }
}

fn read_flows(section: &Section<'_>, frame: &Frame<'_>, times: &Times) -> Option<Pattern> {
    let &Times { start, spread: start_spread, stop } = times;
    let tables = section.sections("flow");
    if tables.is_empty() {
        section.missing("flow", "one table `[[workload.flow]]` per flow with `from` and `to`");
        return None;
    }
    let flows: Vec<Option<FlowSpec>> = tables
        .into_iter()
        .map(|table| {
            let end = |key| {
                let Some(node) = table.node(key) else {
                    table.missing(key, u32::KIND);
                    return None;
                };
                read_host(&table, key, node, frame.hosts)
            };
            let (from, to) = (end("from"), end("to"));
            if let (Some(from), Some(to)) = (from, to) {
                let message = format_args!("is host {to}, which is also where the flow comes from");
                table.check(from != to, "to", message);
            }
            let own_start = table.get("start").unwrap_or(start);
            let own_stop = table.get("stop").or(stop);
            if table.node("start").is_some() || table.node("stop").is_some() {
                check_times(&table, own_start, start_spread, own_stop, frame.duration);
            }
            let reroute = match (from, to) {
                (Some(from), Some(to)) => RerouteSpec::read(&table, (from, to), frame),
                _ => None,
            };
            table.finish();
            let (from, to, reroute) = (from?, to?, reroute?);
            Some(FlowSpec { from, to, start: own_start, stop: own_stop, reroute })
        })
        .collect();
    Some(Pattern::Flows(flows.into_iter().collect::<Option<_>>()?))
}
