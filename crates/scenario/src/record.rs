//! `[record]`: data recorded of a run when its results are written.

use apus_units::{PortId, Span};

use super::declared::{Keys, Kind, key};
use super::pattern::matches_pattern;
use super::section::Section;
use super::set::Topology;
use apus_sim::record::{Record, Trace};

/// Keys of `record`.
pub(super) static RECORD: Keys = Keys::of(&[
    key("interval", Kind::Time, "Time between two samples. Default: 1/200 of the run").at_least(1),
    key("flows", Kind::Count, "Number of flows, evenly spaced, whose samples are kept").or("64"),
    key(
        "ports",
        Kind::Count,
        "Number of ports whose samples are kept: those with the most traffic",
    )
    .or("32"),
    key("ops", Kind::Count, "Maximum number of ops that are kept: those that complete first")
        .at_most(MAX_OPS)
        .or("1000000"),
    key("nics", Kind::Flag, "`true`: the ports of the NICs of hosts are sampled too").or("false"),
    key(
        "packets",
        Kind::Texts,
        "Ports whose packets are written to packets.pcapng, such as \"leaf 0 -> host 1\"; `*` stands for any text",
    ),
    key("most_packets", Kind::Count, "Maximum number of packets that are kept")
        .within(1, MAX_TRACED)
        .or("100000"),
    key(
        "events",
        Kind::Count,
        "Number of flows, evenly spaced, whose packets and states are written as qlog",
    )
    .at_most(MAX_TRACED_FLOWS)
    .or("0"),
    key(
        "most_events",
        Kind::Count,
        "Maximum number of packets and states of these flows that are kept",
    )
    .within(1, MAX_TRACED)
    .or("100000"),
]);

// Rationale of defaults: a packet or an event takes about 250 bytes, so that both together stay below 50 MB.

/// Maximum number of packets, and of events: about 250 MB each.
const MAX_TRACED: u64 = 1_000_000;
/// Maximum number of flows with events: each has a file.
const MAX_TRACED_FLOWS: u64 = 1000;

/// Maximum number of samples over time, so that the tables fit into memory.
const MAX_SAMPLES: u64 = 100_000;
/// Maximum number of samples of flows, and of ports: number of times multiplied by flows or ports.
const MAX_KEPT: u64 = 4_000_000;
/// Maximum number of ops: about 600 MB.
const MAX_OPS: u64 = 10_000_000;

/// Reads the section, if there is one, and the ports and flows that it traces. `topology` is `None` if it is
/// invalid.
pub(super) fn read(
    root: &Section<'_>,
    duration: Span,
    topology: Option<&Topology>,
) -> (Option<Record>, Trace) {
    let Some(section) = root.section("record") else { return (None, Trace::default()) };
    let default = Record::of_duration(duration);
    let interval: Span = section.get_or("interval", default.interval);
    let samples = duration.as_ps() / interval.as_ps().max(1);
    section.check(
        samples <= MAX_SAMPLES,
        "interval",
        format_args!(
            "is {interval}, which is {samples} samples in a run of {duration}; it must leave at \
             most {MAX_SAMPLES}"
        ),
    );
    section.check(
        interval <= duration,
        "interval",
        format_args!("is {interval}, but the run ends at {duration}: nothing is sampled"),
    );
    let most = MAX_KEPT / samples.clamp(1, MAX_SAMPLES);
    let count = |key| {
        let value: u64 = section.get_or_default(key);
        let must = format_args!("must be at most {most} with this interval, but it is {value}");
        section.check(value <= most, key, must);
        value.min(most) as u32
    };
    let record = Record {
        interval,
        flows: count("flows"),
        ports: count("ports"),
        ops: section.get_or_default("ops"),
        nics: section.get_or_default("nics"),
    };
    let trace = read_trace(&section, topology);
    section.finish();
    (Some(record), trace)
}

/// Reads the ports and flows that are traced.
fn read_trace(section: &Section<'_>, topology: Option<&Topology>) -> Trace {
    let ports = read_ports(section, topology);
    if section.node("packets").is_none() {
        section.no_effect("most_packets", "without `packets`");
    }
    let flows: u64 = section.get_or_default("events");
    if flows == 0 {
        section.no_effect("most_events", "without `events`");
    }
    Trace {
        packets: if ports.is_empty() { 0 } else { section.get_or_default("most_packets") },
        ports,
        // At most `MAX_TRACED_FLOWS`.
        flows: flows as u32,
        events: if flows == 0 { 0 } else { section.get_or_default("most_events") },
        around: Vec::new(),
    }
}

/// Reads the names of ports, in ascending order of the ports.
fn read_ports(section: &Section<'_>, topology: Option<&Topology>) -> Vec<PortId> {
    let Some(patterns) = section.get::<Vec<String>>("packets") else { return Vec::new() };
    let Some(topology) = topology else { return Vec::new() };
    let mut names = Vec::new();
    for (index, link) in (0u32..).zip(&topology.links) {
        let (a, b) = (topology.node_name(link.a), topology.node_name(link.b));
        names.push((PortId::new(2 * index), format!("{a} -> {b}")));
        names.push((PortId::new(2 * index + 1), format!("{b} -> {a}")));
    }
    let mut ports = Vec::new();
    for pattern in patterns {
        let before = ports.len();
        let found = names.iter().filter(|(_, name)| matches_pattern(name, &pattern));
        ports.extend(found.map(|(port, _)| *port));
        if ports.len() == before {
            let known = names.iter().map(|(_, name)| name.as_str());
            let hint = apus_units::suggestion(&pattern, known);
            section.problem("packets", format_args!("names no port by \"{pattern}\"{hint}"));
        }
    }
    ports.sort_unstable();
    ports.dedup();
    ports
}
