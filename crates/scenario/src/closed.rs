//! Closed loops: ops that follow each other between fixed pairs of hosts.

use apus_units::{Bytes, Span};

use super::declared::{Key, Keys, Kind, key};
use super::frame::{Frame, Times, check_times, stop_later};
use super::hosts::{read_host, read_host_list, read_host_or_last, read_hosts, read_senders};
use super::job::keys::ONLY_JOBS;
use super::reroute::REROUTE;
use super::reroute::RerouteSpec;
use super::section::{Section, list_of};
use super::tree::{Node, Value};

/// The keys of `[[workload.flow]]`.
pub(super) static FLOW: Keys = Keys::of(&[
    key("from", Kind::Count, "The host that submits ops"),
    key("to", Kind::Count, "The peer of this host"),
    key("start", Kind::Time, "Start of the flow, in place of that of the workload"),
    key(
        "stop",
        Kind::Time,
        "Time from which the flow submits no more ops, in place of that of the workload",
    ),
    key(
        "reroute",
        Kind::Table(&REROUTE),
        "One change of the path of the flow and of its acknowledgements",
    ),
]);

pub(super) const OUTSTANDING: Key =
    key("outstanding", Kind::Count, "Number of outstanding ops of each flow").at_least(1).or("1");

pub(super) const START_SPREAD: Key = key(
    "start_spread",
    Kind::Time,
    "Maximum of the random time by which the start of each flow is delayed",
)
.or("0s");

/// A closed loop of ops over each of its connections.
#[derive(Clone, Debug)]
pub(super) struct ClosedLoops {
    pub(super) pattern: Pattern,
    pub(super) flows_per_pair: u32,
    pub(super) size: Bytes,
    pub(super) outstanding: u32,
    /// Each flow starts later by a random time, uniform from zero to this span.
    pub(super) start_spread: Span,
}

/// The senders and receivers of flows.
#[derive(Clone, Debug)]
pub(super) enum Pattern {
    Incast { senders: Vec<u32>, receivers: Vec<u32> },
    Permutation { hosts: Vec<u32> },
    AllToAll { hosts: Vec<u32> },
    Flows(Vec<FlowSpec>),
}

/// A pair of hosts of a workload of the kind "flows".
#[derive(Clone, Debug)]
pub(super) struct FlowSpec {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) start: Span,
    pub(super) stop: Option<Span>,
    pub(super) reroute: Option<RerouteSpec>,
}

impl ClosedLoops {
    pub(super) fn read(
        section: &Section<'_>,
        frame: &Frame<'_>,
        kind: &str,
        times: &Times,
    ) -> Option<Self> {
        if kind == "all-to-all" {
            for key in ONLY_JOBS {
                section.no_effect(key, "without a `pattern`, which makes it a job");
            }
            section.node("pattern");
        }
        let pattern = Pattern::read(section, frame, kind, times);
        let size = section.require("size");
        let outstanding = section.get_or_default::<u32>("outstanding");
        let must = format_args!(
            "must be at most {}, which is `transport.max_ops`, but it is {outstanding}",
            frame.max_ops
        );
        section.check(outstanding <= frame.max_ops, "outstanding", must);
        let flows_per_pair = section.get_or_default("flows_per_pair");
        Some(Self {
            pattern: pattern?,
            flows_per_pair,
            size: size?,
            outstanding,
            start_spread: times.spread,
        })
    }

    /// Returns `true` if any of its flows takes another path in the course of the run.
    pub(super) fn reroutes(&self) -> bool {
        match &self.pattern {
            Pattern::Flows(flows) => flows.iter().any(|flow| flow.reroute.is_some()),
            Pattern::Incast { .. } | Pattern::Permutation { .. } | Pattern::AllToAll { .. } => {
                false
            }
        }
    }

    /// Delays the times of listed flows by `by`. A stop after the end of the run is removed.
    pub(super) fn delay(&mut self, by: Span, duration: Span) {
        if let Pattern::Flows(flows) = &mut self.pattern {
            for flow in flows {
                flow.start = flow.start.saturating_add(by);
                flow.stop = stop_later(flow.stop, by, duration);
            }
        }
    }

    /// Returns the number of connections that the workload opens.
    pub(super) fn connections(&self) -> u64 {
        let pairs = match &self.pattern {
            Pattern::Incast { senders, receivers } => senders.len() as u64 * receivers.len() as u64,
            Pattern::Permutation { hosts } => hosts.len() as u64,
            Pattern::AllToAll { hosts } => hosts.len() as u64 * (hosts.len() as u64 - 1),
            Pattern::Flows(flows) => flows.len() as u64,
        };
        pairs.saturating_mul(u64::from(self.flows_per_pair))
    }
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
            "flows" => read_flows(section, frame, times),
            other => unreachable!("{other} is not a closed loop"),
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
            let end = |key| read_host(&table, key, frame.hosts);
            let (from, to) = (end("from"), end("to"));
            if let (Some(from), Some(to)) = (from, to) {
                let message = format_args!("is host {to}, which is also where the flow comes from");
                table.check(from != to, "to", message);
            }
            let own_start = table.get_or("start", start);
            let own_stop =
                stop.map(|stop| table.get_or("stop", stop)).or_else(|| table.get("stop"));
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

fn read_incast(section: &Section<'_>, hosts: u32) -> Option<Pattern> {
    let receivers = match section.node("receiver") {
        Some(Node { value: Value::List(list), .. }) => {
            read_host_list(section, "receiver", list, hosts, 1)?
        }
        _ => vec![read_host_or_last(section, "receiver", hosts)?],
    };
    section.record("receiver", list_of(&receivers));
    let senders = read_senders(section, "senders", &receivers, hosts)?;
    Some(Pattern::Incast { senders, receivers })
}
