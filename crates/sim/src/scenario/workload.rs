//! `[[workload]]`: who sends how much to whom, and when.

use apus_units::{Bytes, Span};

use super::section::{Section, Setting};
use super::tree::{Node, Value};

/// The kinds of workload by name, with what they are.
pub const WORKLOADS: &[(&str, &str)] = &[
    ("incast", "`senders` hosts to one `receiver`"),
    ("permutation", "every host to one other, every host from one other; drawn from the seed"),
    ("all-to-all", "every host to every other"),
    ("flows", "the pairs listed as `[[workload.flow]]` with `from` and `to`"),
];

/// The words for what an op does.
pub(super) const OPS: &[&str] = &["write", "read", "message"];

/// Largest op: far above what a run can carry.
const MAX_OP: Bytes = Bytes::new(1 << 40);

/// A workload as a scenario describes it: a closed loop of ops over each of its connections.
#[derive(Clone, Debug)]
pub(super) struct Workload {
    pub(super) pattern: Pattern,
    pub(super) flows_per_pair: u32,
    /// One of [`OPS`].
    pub(super) op: &'static str,
    pub(super) size: Bytes,
    pub(super) outstanding: u32,
    pub(super) start: Span,
    /// Each flow starts later by a random time, uniform from zero to this.
    pub(super) start_spread: Span,
    pub(super) stop: Option<Span>,
    /// Index of its algorithm.
    pub(super) algorithm: usize,
}

#[derive(Clone, Debug)]
pub(super) enum Pattern {
    Incast { senders: Vec<u32>, receiver: u32 },
    Permutation { hosts: Vec<u32> },
    AllToAll { hosts: Vec<u32> },
    Flows(Vec<FlowSpec>),
}

/// One pair of hosts of a workload of the kind "flows".
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowSpec {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) start: Span,
    pub(super) stop: Option<Span>,
}

/// What a workload must fit.
pub(super) struct Frame<'a> {
    pub(super) hosts: u32,
    pub(super) duration: Span,
    pub(super) max_ops: u32,
    /// Labels of the algorithms.
    pub(super) algorithms: Vec<&'a str>,
}

impl Workload {
    pub(super) fn read(section: Section<'_>, frame: &Frame<'_>) -> Option<Self> {
        let start = section.get("start").unwrap_or(Span::ZERO);
        let start_spread: Span = section.get("start_spread").unwrap_or(Span::ZERO);
        let stop: Option<Span> = section.get("stop");
        check_times(&section, start, start_spread, stop, frame.duration);
        let pattern = Pattern::read(&section, frame, start, start_spread, stop);
        let size: Option<Bytes> = section.require("size");
        if let Some(size) = size {
            let holds = size > Bytes::ZERO && size <= MAX_OP;
            section.check(holds, "size", format_args!("must be from 1B to {MAX_OP}, not {size}"));
        }
        let outstanding = section.get("outstanding").unwrap_or(1);
        let must = format_args!(
            "must be from 1 to {} ops, which is `transport.max_ops`, but it is {outstanding}",
            frame.max_ops
        );
        section.check((1..=frame.max_ops).contains(&outstanding), "outstanding", must);
        let flows_per_pair = section.get("flows_per_pair").unwrap_or(1);
        section.check(flows_per_pair > 0, "flows_per_pair", "must be at least 1");
        let op = section.word("op", OPS);
        let algorithm = read_algorithm(&section, frame);
        if pattern.is_some() {
            section.finish();
        }
        Some(Self {
            pattern: pattern?,
            flows_per_pair,
            op: op?,
            size: size?,
            outstanding,
            start,
            start_spread,
            stop,
            algorithm: algorithm?,
        })
    }

    /// How many connections it opens.
    pub(super) fn connections(&self) -> u64 {
        let pairs = match &self.pattern {
            Pattern::Incast { senders, .. } => senders.len() as u64,
            Pattern::Permutation { hosts } => hosts.len() as u64,
            Pattern::AllToAll { hosts } => hosts.len() as u64 * (hosts.len() as u64 - 1),
            Pattern::Flows(flows) => flows.len() as u64,
        };
        pairs * u64::from(self.flows_per_pair)
    }
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
    fn read(
        section: &Section<'_>,
        frame: &Frame<'_>,
        start: Span,
        start_spread: Span,
        stop: Option<Span>,
    ) -> Option<Self> {
        if section.node("kind").is_none() {
            section.missing("kind", "\"incast\", \"permutation\", \"all-to-all\" or \"flows\"");
            return None;
        }
        match section.word("kind", &["incast", "permutation", "all-to-all", "flows"])? {
            "incast" => read_incast(section, frame.hosts),
            "permutation" => {
                Some(Self::Permutation { hosts: read_hosts(section, "hosts", frame.hosts, 2)? })
            }
            "all-to-all" => {
                Some(Self::AllToAll { hosts: read_hosts(section, "hosts", frame.hosts, 2)? })
            }
            _ => read_flows(section, frame, start, start_spread, stop),
        }
    }
}

fn read_incast(section: &Section<'_>, hosts: u32) -> Option<Pattern> {
    let receiver = match section.node("receiver") {
        Some(node) => read_host(section, "receiver", node, hosts)?,
        None => hosts - 1,
    };
    let others = || (0..hosts).filter(|host| *host != receiver);
    let senders = match section.node("senders") {
        None => others().collect(),
        Some(Node { value: Value::List(list), .. }) => {
            let senders = read_host_list(section, "senders", list, hosts, 1)?;
            if senders.contains(&receiver) {
                let message = format!("holds host {receiver}, which is the receiver");
                section.problem("senders", message);
                return None;
            }
            senders
        }
        Some(_) => {
            let count: u32 = section.get("senders")?;
            let holds = (1..hosts).contains(&count);
            let message = format!(
                "must be from 1 to {}: there are {hosts} hosts, one of which receives; it is {count}",
                hosts - 1
            );
            section.check(holds, "senders", message);
            if !holds {
                return None;
            }
            others().take(count as usize).collect()
        }
    };
    Some(Pattern::Incast { senders, receiver })
}

/// A number of hosts (the first ones) or a list of them; all by default.
fn read_hosts(
    section: &Section<'_>,
    key: &'static str,
    hosts: u32,
    least: u32,
) -> Option<Vec<u32>> {
    match section.node(key) {
        None => Some((0..hosts).collect()),
        Some(Node { value: Value::List(list), .. }) => {
            read_host_list(section, key, list, hosts, least)
        }
        Some(_) => {
            let count: u32 = section.get(key)?;
            let holds = (least..=hosts).contains(&count);
            let message = format!("must be from {least} to {hosts} hosts, but it is {count}");
            section.check(holds, key, message);
            holds.then(|| (0..count).collect())
        }
    }
}

fn read_host_list(
    section: &Section<'_>,
    key: &'static str,
    list: &[Node],
    hosts: u32,
    least: u32,
) -> Option<Vec<u32>> {
    let numbers: Option<Vec<u32>> =
        list.iter().map(|node| read_host(section, key, node, hosts)).collect();
    let numbers = numbers?;
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        section.problem(key, format_args!("holds host {} twice", twice[0]));
        return None;
    }
    let holds = numbers.len() >= least as usize;
    let message = format_args!("must hold at least {least} hosts, but holds {}", numbers.len());
    section.check(holds, key, message);
    holds.then_some(numbers)
}

fn read_host(section: &Section<'_>, key: &'static str, node: &Node, hosts: u32) -> Option<u32> {
    let host: u32 = section.read_node(key, node)?;
    if host >= hosts {
        let message =
            format!("names host {host}, but the hosts are numbered from 0 to {}", hosts - 1);
        section.problem(key, message);
        return None;
    }
    Some(host)
}

fn read_flows(
    section: &Section<'_>,
    frame: &Frame<'_>,
    start: Span,
    start_spread: Span,
    stop: Option<Span>,
) -> Option<Pattern> {
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
            table.finish();
            Some(FlowSpec { from: from?, to: to?, start: own_start, stop: own_stop })
        })
        .collect();
    Some(Pattern::Flows(flows.into_iter().collect::<Option<_>>()?))
}
