//! The files topology.txt, flow.txt and fct.txt of the HPCC simulator (alibaba-edu's
//! High-Precision-Congestion-Control and its forks), and the topologies of SimAI, one of the forks.
//!
//! topology.txt: `nodes switches links`, then the switches' node numbers, then per link
//! `a b rate delay error_rate`. SimAI's first line is `nodes gpus_per_server nvswitches switches links gpu_type`; the
//! NVSwitches come first among the switches' numbers. flow.txt: the number of flows, then per flow
//! `src dst priority_group dport bytes start_s`. Nodes have consecutive numbers, hosts and switches
//! alike. Text after the announced number of flows or links is a comment, as for the HPCC
//! simulator, whose own files end with one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use apus_transport::Outcome;
use apus_units::{HostId, Rate, Span, Time};

use super::graph::{End, Graph, GraphLink, MAX_LINKS};
use super::servers::{NvLink, servers};
use super::text::{ImportError, content, number, wrong};
use super::traffic::{Message, Traffic};
use apus_sim::record::Recording;
use apus_units::shorten;

/// Reads a flow.txt. Priority groups and ports have no meaning here: a workload has one class.
///
/// # Errors
/// An error with line and remedy.
pub fn parse_traffic(text: &str) -> Result<Traffic, ImportError> {
    let mut lines = content(text);
    let (first_line, first) = lines.next().unwrap_or((1, ""));
    let count: usize = number(first_line, first, "the number of flows, alone in the first line")?;
    let mut traffic = Traffic { hpcc: true, ..Traffic::default() };
    for (line, row) in lines.take(count) {
        let words: Vec<&str> = row.split_whitespace().collect();
        let [from, to, _group, _port, bytes, start] = words.as_slice() else {
            return wrong(
                line,
                format!(
                    "{} words; there must be six: src dst priority_group dport bytes start_s",
                    words.len()
                ),
            );
        };
        let start = seconds(line, start)?;
        let from = number(line, from, "a node")?;
        let to = number(line, to, "a node")?;
        let bytes = number(line, bytes, "a size in bytes")?;
        traffic.push(Message { line, start, from, to, bytes })?;
    }
    let found = traffic.messages.len();
    if found < count {
        let message =
            format!("the first line announces {count} flows, but there are {found}; correct it");
        return wrong(first_line, message);
    }
    if found == 0 {
        return wrong(first_line, "the file has no flows; add lines like `2 1 3 100 200000000 2`");
    }
    Ok(traffic)
}

/// Reads a time in seconds, exact to the picosecond.
fn seconds(line: usize, word: &str) -> Result<Span, ImportError> {
    format!("{word}s").parse().or_else(|_| {
        let word = shorten(word);
        let right = "write seconds as a decimal number with at most 12 digits behind the point";
        wrong(line, format!("`{word}` is not a start time; {right}"))
    })
}

/// Reads a topology.txt.
///
/// # Errors
/// An error with line and remedy.
pub fn parse_topology(text: &str) -> Result<Graph, ImportError> {
    let mut lines = content(text).peekable();
    let (first_line, first) = lines.next().unwrap_or((1, ""));
    let words: Vec<&str> = first.split_whitespace().collect();
    let (nodes, per_server, nvswitches, switches, links) = match words.as_slice() {
        [nodes, switches, links] => (nodes, &"1", &"0", switches, links),
        [nodes, per_server, nvswitches, switches, links, _gpu] => {
            (nodes, per_server, nvswitches, switches, links)
        }
        _ => {
            let must = "the first line must be three numbers: nodes switches links; or SimAI's six words: nodes \
                        gpus_per_server nvswitches switches links gpu_type";
            return wrong(first_line, must);
        }
    };
    let nodes: u32 = number(first_line, nodes, "a number of nodes")?;
    let per_server: u32 = number(first_line, per_server, "a number of GPUs per server")?;
    if per_server == 0 {
        return wrong(first_line, "a server has 0 GPUs; it has at least one");
    }
    let nvswitches: usize = number(first_line, nvswitches, "a number of NVSwitches")?;
    let switches: usize = number(first_line, switches, "a number of switches")?;
    let switches = switches.saturating_add(nvswitches);
    let count: u64 = number(first_line, links, "a number of links")?;
    if count > MAX_LINKS || u64::from(nodes) > MAX_LINKS {
        return wrong(first_line, format!("a topology has at most {MAX_LINKS} nodes and links"));
    }
    let (mut is_switch, mut is_nvswitch) = (BTreeSet::new(), BTreeSet::new());
    let mut last = first_line;
    while is_switch.len() < switches {
        let Some((line, row)) = lines.next() else {
            return wrong(last, format!("the node numbers of {switches} switches must follow"));
        };
        last = line;
        for word in row.split_whitespace() {
            let node: u32 = number(line, word, "the node number of a switch")?;
            check_node(line, node, nodes)?;
            if !is_switch.insert(node) {
                return wrong(line, format!("switch {node} is listed twice"));
            }
            if is_nvswitch.len() < nvswitches {
                is_nvswitch.insert(node);
            }
        }
        if is_switch.len() > switches {
            let found = is_switch.len();
            return wrong(
                line,
                format!("{found} switches, but the first line announces {switches}"),
            );
        }
    }
    let hosts: Vec<u32> = (0..nodes).filter(|node| !is_switch.contains(node)).collect();
    let switch_numbers: Vec<u32> = is_switch.difference(&is_nvswitch).copied().collect();
    // No link of the network between servers ends at an NVSwitch; this search would return the switch after it.
    let end = |node: u32| match hosts.binary_search(&node) {
        Ok(place) => End::Host(place as u32),
        Err(_) => End::Switch(switch_numbers.binary_search(&node).unwrap_or_else(|at| at) as u32),
    };
    let mut graph = Graph {
        hosts: hosts.clone(),
        switches: switch_numbers.iter().map(|n| format!("node{n}")).collect(),
        ..Graph::default()
    };
    let mut found = 0;
    let mut nvlinks = Vec::new();
    for (line, row) in lines.take(count as usize) {
        found += 1;
        let (a, b, rate, delay) = parse_link(line, row, nodes)?;
        let ends = [a, b].map(|node| is_nvswitch.contains(&node));
        if ends != [false, false] {
            let (gpu, switch) = if ends[1] { (a, b) } else { (b, a) };
            let End::Host(gpu) = end(gpu) else {
                return wrong(
                    line,
                    format!("NVSwitch {switch} has a link to switch {gpu}; NVSwitches join GPUs"),
                );
            };
            nvlinks.push(NvLink { line, gpu, switch, rate, delay });
            continue;
        }
        graph.links.push(GraphLink { a: end(a), b: end(b), rate, delay });
    }
    if !is_nvswitch.is_empty() {
        graph.left_out = Some(format!(
            "the topology is the network between servers: {} NVSwitches and their {} links are left out, \
             because each GPU is a host; messages between GPUs of a server pass the network, unless the topology \
             has `servers = true`",
            is_nvswitch.len(),
            nvlinks.len()
        ));
        graph.servers = Some(servers(graph.hosts.len() as u32, per_server, &nvlinks));
    }
    if found < count {
        let message =
            format!("the first line announces {count} links, but there are {found}; correct it");
        return wrong(first_line, message);
    }
    Ok(graph)
}

/// Reads the ends, the rate and the delay of a link.
fn parse_link(line: usize, row: &str, nodes: u32) -> Result<(u32, u32, Rate, Span), ImportError> {
    let words: Vec<&str> = row.split_whitespace().collect();
    let [a, b, rate, delay, errors] = words.as_slice() else {
        let found = words.len();
        return wrong(
            line,
            format!(
                "{found} words; there must be five: a b rate delay error_rate, like \
                     `0 1 100Gbps 0.001ms 0`"
            ),
        );
    };
    let node = |word| {
        let node = number(line, word, "a node")?;
        check_node(line, node, nodes).map(|()| node)
    };
    let (a, b) = (node(a)?, node(b)?);
    if a == b {
        return wrong(line, format!("a link of node {a} to itself; its ends must differ"));
    }
    let rate: Rate = rate.parse().or_else(|e| wrong(line, format!("{e}")))?;
    let delay: Span = delay.parse().or_else(|e| wrong(line, format!("{e}")))?;
    if rate.as_bps() < 1_000 {
        return wrong(line, format!("the rate is {rate}; it must be at least 1kbps"));
    }
    match errors.parse::<f64>() {
        Ok(0.0) => Ok((a, b, rate, delay)),
        Ok(rate) if (0.0..=1.0).contains(&rate) => wrong(
            line,
            format!(
                "the error rate is {rate}; write 0 here and the loss as `[[fault]]` with kind = \
                 \"loss\" in a scenario"
            ),
        ),
        _ => wrong(line, format!("`{}` is not an error rate; write 0", shorten(errors))),
    }
}

fn check_node(line: usize, node: u32, nodes: u32) -> Result<(), ImportError> {
    if node < nodes {
        return Ok(());
    }
    wrong(line, format!("unknown node {node}: the topology has {nodes}, numbered from 0"))
}

/// A completed flow, for [`render_fct`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowTime {
    /// Node number of the sender.
    pub from: u32,
    /// Node number of the receiver.
    pub to: u32,
    /// Index of the flow among those of this sender and receiver, from 0.
    pub index: u16,
    /// Payload.
    pub bytes: u64,
    /// Arrival time of the flow.
    pub start: Span,
    /// Time until the acknowledgement of the last byte.
    pub took: Span,
    /// Duration of the flow in an empty network.
    pub ideal: Span,
}

/// First source port of the HPCC simulator (`third.cc`), and the destination port of its flow.txt files, for
/// which its scripts search.
const PORTS: (u16, u16) = (10_000, 100);

/// Writes fct.txt: `sip dip sport dport bytes start_ns fct_ns ideal_ns` per flow. Addresses are those
/// that the HPCC simulator gives its nodes: 11.0.0.1 with the node number in the middle two bytes.
#[must_use]
pub fn render_fct(flows: &[FlowTime]) -> String {
    let address = |node: u32| 0x0b00_0001u32.wrapping_add((node / 256) << 16 | (node % 256) << 8);
    let ns = |span: Span| span.as_ps() / 1_000;
    let mut text = String::new();
    for flow in flows {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{:08x} {:08x} {} {} {} {} {} {}",
            address(flow.from),
            address(flow.to),
            PORTS.0.wrapping_add(flow.index),
            PORTS.1,
            flow.bytes,
            ns(flow.start),
            ns(flow.took),
            ns(flow.ideal),
        );
    }
    text
}

/// Returns the flows of a recorded run for [`render_fct`]: each completed op, in the order of completion. If a
/// run does not come from HPCC's files, the node numbers are the host numbers.
#[must_use]
pub fn flow_times(recording: &Recording, numbers: Option<&[u32]>) -> Vec<FlowTime> {
    let node = |host: HostId| match numbers {
        Some(numbers) => numbers.get(host.index()).copied().unwrap_or(host.get()),
        None => host.get(),
    };
    let mut seen: BTreeMap<(HostId, HostId), u16> = BTreeMap::new();
    let done = recording.ops.iter().filter(|op| op.outcome == Outcome::Done);
    let flows = done.map(|op| {
        let flow = &recording.flows[op.flow as usize];
        let index = seen.entry((flow.from, flow.to)).or_default();
        let time = FlowTime {
            from: node(flow.from),
            to: node(flow.to),
            index: *index,
            bytes: op.size,
            start: op.submitted.since(Time::ZERO),
            took: op.latency(),
            ideal: flow.ideal.completion_time(op.size, recording.sizes),
        };
        *index = index.wrapping_add(1);
        time
    });
    flows.collect()
}
