//! htsim's connection matrices (.cm) and topologies (.topo) (Broadcom's csg-htsim).
//!
//! .cm: `Nodes N`, `Connections M`, then per connection `src->dst id K start T size BYTES`, T in
//! picoseconds. .topo: `Nodes N`, `Tiers 2` or `3`, `Podsize N`, then a block per tier of switches.

use std::collections::BTreeMap;

use apus_units::{Rate, Span};

use super::graph::{End, Graph, GraphLink, MAX_LINKS};
use super::text::{ImportError, content, number, wrong};
use super::traffic::{Message, Traffic};
use apus_units::shorten;

/// Error of a file that states the number of nodes twice: connections were compared with the first number.
pub(super) const TWICE: &str = "`Nodes` stands twice; write it once, in front of the connections";

/// Reads a connection matrix.
///
/// # Errors
/// An error with line and remedy.
pub fn parse_traffic(text: &str) -> Result<Traffic, ImportError> {
    let mut traffic = Traffic::default();
    let mut announced: Option<(usize, usize)> = None;
    for (line, row) in content(text) {
        let words: Vec<&str> = row.split_whitespace().collect();
        match words.as_slice() {
            ["Nodes", n] => {
                let nodes = number(line, n, "a number of nodes")?;
                if traffic.nodes.replace(nodes).is_some() {
                    return wrong(line, TWICE);
                }
            }
            ["Connections", n] => {
                let count = number(line, n, "a number of connections")?;
                if announced.replace((line, count)).is_some() {
                    return wrong(line, "`Connections` stands twice; write it once");
                }
            }
            ["Triggers" | "Failures", "0"] => {}
            ["Triggers" | "trigger", ..] => {
                let message = "triggers are not supported: give each connection a `start` time, or \
                               use a workload of the kind \"partition-aggregate\"";
                return wrong(line, message);
            }
            ["Failures" | "failure", ..] => {
                let message =
                    "failures are not read from this file; write them as `[[fault]]` in a scenario";
                return wrong(line, message);
            }
            [pair, rest @ ..] if pair.contains("->") => {
                let message = parse_connection(line, pair, rest)?;
                check_nodes(&message, traffic.nodes)?;
                traffic.push(message)?;
            }
            _ => {
                let message = format!(
                    "`{}` is unknown; a connection is `src->dst id K start PS size BYTES`",
                    shorten(row)
                );
                return wrong(line, message);
            }
        }
    }
    let found = traffic.messages.len();
    match announced {
        Some((line, count)) if count != found => wrong(
            line,
            format!("{count} connections are announced, but there are {found}; correct it"),
        ),
        _ if found == 0 => wrong(
            1,
            "the file has no connections; add lines like \
                                     `0->1 id 1 start 0 size 2000000`",
        ),
        _ => Ok(traffic),
    }
}

fn check_nodes(message: &Message, nodes: Option<u32>) -> Result<(), ImportError> {
    let Some(nodes) = nodes else {
        return wrong(message.line, "`Nodes N` must come before the connections");
    };
    let largest = message.from.max(message.to);
    if largest >= nodes {
        let why = format!("unknown node {largest}: the file has {nodes}, numbered from 0");
        return wrong(message.line, why);
    }
    Ok(())
}

fn parse_connection(line: usize, pair: &str, rest: &[&str]) -> Result<Message, ImportError> {
    let (from, to) = pair.split_once("->").unwrap_or((pair, ""));
    let from = number(line, from, "a node")?;
    let to = number(line, to, "a node")?;
    let (mut start, mut bytes) = (None, None);
    let mut words = rest.iter();
    while let Some(key) = words.next() {
        let Some(value) = words.next() else {
            return wrong(line, format!("`{}` has no value", shorten(key)));
        };
        match *key {
            "id" => {
                number::<u64>(line, value, "an id")?;
            }
            "start" => start = Some(number(line, value, "a start time in picoseconds")?),
            "size" => bytes = Some(number(line, value, "a size in bytes")?),
            "trigger" | "send_done_trigger" | "recv_done_trigger" => {
                let message = "triggers are not supported: give the connection a `start` time";
                return wrong(line, message);
            }
            "prio" => {
                let message =
                    "`prio` is not read from this file; use workloads with a `class` in a scenario";
                return wrong(line, message);
            }
            other => {
                let known = ["id", "start", "size"];
                let hint = apus_units::suggestion(other, known.into_iter());
                return wrong(line, format!("unknown word `{}`{hint}", shorten(other)));
            }
        }
    }
    let Some(bytes) = bytes else {
        return wrong(line, "the size is missing; write `size BYTES`");
    };
    let Some(start) = start else {
        return wrong(line, "the start time is missing; write `start PS`");
    };
    Ok(Message { line, start: Span::from_ps(start), from, to, bytes })
}

/// A block of a .topo: the switches of one tier, and the line of each value.
#[derive(Default)]
struct Tier {
    line: usize,
    values: BTreeMap<String, (usize, u64)>,
}

/// Keys of a block.
const TIER_KEYS: [&str; 7] = [
    "Downlink_speed_Gbps",
    "Radix_Down",
    "Radix_Up",
    "Downlink_Latency_ns",
    "Switch_Latency_ns",
    "Oversubscribed",
    "Bundle",
];

impl Tier {
    fn need(&self, key: &str) -> Result<(usize, u64), ImportError> {
        match self.values.get(key) {
            Some((line, value @ 1..=1_000_000)) => Ok((*line, *value)),
            Some((line, value)) => {
                wrong(*line, format!("`{key}` is {value}; it must be from 1 to 1000000"))
            }
            None => wrong(self.line, format!("`{key}` of this tier is missing")),
        }
    }

    /// Returns the number of parallel links to each switch below.
    fn bundle(&self) -> Result<u64, ImportError> {
        match self.values.get("Bundle") {
            None | Some((_, 1..=64)) => Ok(self.or("Bundle", 1)),
            Some((line, other)) => {
                wrong(*line, format!("`Bundle` is {other}; it must be from 1 to 64"))
            }
        }
    }

    /// Reads a latency; 0 if the file does not give it.
    fn latency(&self, key: &str) -> Result<Span, ImportError> {
        match self.values.get(key) {
            None | Some((_, 0..=1_000_000_000)) => Ok(Span::from_ns(self.or(key, 0))),
            Some((line, ns)) => wrong(
                *line,
                format!("`{key}` is {ns}; it must be at most 1000000000, which is 1 s"),
            ),
        }
    }

    fn or(&self, key: &str, default: u64) -> u64 {
        self.values.get(key).map_or(default, |(_, value)| *value)
    }
}

/// Reads a topology.
///
/// # Errors
/// An error with line and remedy.
pub fn parse_topology(text: &str) -> Result<Graph, ImportError> {
    let mut head: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
    let mut tiers: Vec<Tier> = Vec::new();
    for (line, row) in content(text) {
        let words: Vec<&str> = row.split_whitespace().collect();
        let [key, value] = words.as_slice() else {
            let row = shorten(row);
            return wrong(line, format!("`{row}` is not a key and a value, like `Radix_Down 8`"));
        };
        let value: u64 = number(line, value, "a whole number")?;
        match (*key, tiers.last_mut()) {
            ("Tier", _) => {
                if value != tiers.len() as u64 {
                    let next = tiers.len();
                    return wrong(line, format!("tier {value}; the next one must be {next}"));
                }
                tiers.push(Tier { line, ..Tier::default() });
            }
            ("Nodes" | "Tiers" | "Podsize", None) => {
                if head.insert(*key, (line, value)).is_some() {
                    return wrong(line, format!("`{key}` is set twice; remove one"));
                }
            }
            (key, Some(tier)) if TIER_KEYS.contains(&key) => {
                if tier.values.insert(key.to_owned(), (line, value)).is_some() {
                    return wrong(line, format!("`{key}` is set twice in this tier; remove one"));
                }
            }
            (key, _) => {
                let known = ["Nodes", "Tiers", "Podsize", "Tier"].into_iter().chain(TIER_KEYS);
                let hint = apus_units::suggestion(key, known);
                return wrong(line, format!("unknown key `{}`{hint}", shorten(key)));
            }
        }
    }
    let need = |key: &str| match head.get(key) {
        Some((line, value @ 1..=1_000_000)) => Ok((*line, *value)),
        Some((line, value)) => wrong(*line, format!("`{key}` is {value}; it must be 1 to 10^6")),
        None => wrong(1, format!("`{key}` is missing")),
    };
    let (nodes_line, nodes) = need("Nodes")?;
    let (tiers_line, count) = need("Tiers")?;
    if !(2..=3).contains(&count) || tiers.len() as u64 != count {
        let found = tiers.len();
        let message = format!("{count} tiers and {found} blocks `Tier`; both must be 2, or both 3");
        return wrong(tiers_line, message);
    }
    let pod = match head.get("Podsize") {
        Some((_, size)) if count == 3 => *size,
        _ => nodes,
    };
    build(nodes_line, nodes, pod, &tiers)
}

/// Builds htsim's tree. The hosts of a pod are consecutive, with `Radix_Down` hosts per switch of tier 0. Each
/// tier-0 switch of a pod is linked to all tier-1 switches of the pod. With three tiers, switch j of a pod's
/// tier 1 is linked to the cores j, j + n, and so on, with n switches of tier 1 in a pod.
fn build(line: usize, nodes: u64, pod: u64, tiers: &[Tier]) -> Result<Graph, ImportError> {
    let per_tor = tiers[0].need("Radix_Down")?.1;
    let up = tiers[0].need("Radix_Up")?.1;
    if pod == 0 || !nodes.is_multiple_of(pod) || !pod.is_multiple_of(per_tor) {
        let message = format!(
            "{nodes} nodes cannot be divided into pods of {pod} and switches of {per_tor} hosts"
        );
        return wrong(line, message);
    }
    let (pods, tors) = (nodes / pod, pod / per_tor);
    let links = |tier: &Tier| -> Result<(Rate, Span, u64), ImportError> {
        let gbps = tier.need("Downlink_speed_Gbps")?.1;
        Ok((Rate::from_gbps(gbps), tier.latency("Downlink_Latency_ns")?, tier.bundle()?))
    };
    if tiers[0].bundle()? != 1 {
        return wrong(
            tiers[0].line,
            "`Bundle` must be 1 in tier 0: this reader gives a host one link",
        );
    }
    check_oversubscription(&tiers[0], &tiers[1])?;
    let bundle = tiers[1].bundle()?;
    let (down_line, aggs_down) = tiers[1].need("Radix_Down")?;
    if !up.is_multiple_of(bundle) || aggs_down != tors * bundle {
        let message = format!(
            "`Radix_Down` is {aggs_down}, but a switch of tier 1 has {bundle} link(s) to each of the \
             {tors} switches of tier 0 of its pod"
        );
        return wrong(down_line, message);
    }
    let aggs = up / bundle;
    // Switches of tier 2, and the links of each to a pod.
    let (cores, to_pod) = if let [_, middle, top] = tiers {
        check_oversubscription(middle, top)?;
        let (up_line, aggs_up) = middle.need("Radix_Up")?;
        let bundle = top.bundle()?;
        let (_, core_down) = top.need("Radix_Down")?;
        let cores = aggs * pods * aggs_up / core_down;
        let per_agg = cores / aggs;
        if cores * core_down != aggs * pods * aggs_up
            || per_agg * bundle != aggs_up
            || per_agg * aggs != cores
        {
            let message = format!(
                "{} switches of tier 1 with {aggs_up} uplinks do not fit cores with {core_down} \
                 downlinks in bundles of {bundle}",
                aggs * pods
            );
            return wrong(up_line, message);
        }
        (cores, bundle)
    } else {
        (0, 0)
    };
    let upper = pods.saturating_mul(cores).saturating_mul(to_pod);
    let total = (pods * tors).saturating_mul(up).saturating_add(upper).saturating_add(nodes);
    if total > MAX_LINKS {
        return wrong(line, format!("{total} links; a topology has at most {MAX_LINKS}"));
    }
    let tier_switches = [("tor", pods * tors), ("agg", pods * aggs), ("core", cores)];
    let mut graph = Graph {
        hosts: (0..nodes as u32).collect(),
        switches: tier_switches
            .iter()
            .flat_map(|(name, count)| (0..*count).map(move |n| format!("{name}{n}")))
            .collect(),
        links: Vec::new(),
        left_out: None,
        servers: None,
        pipeline_latency: tiers[0].latency("Switch_Latency_ns")?,
    };
    if let Some(other) =
        tiers.iter().find(|t| t.or("Switch_Latency_ns", 0) != tiers[0].or("Switch_Latency_ns", 0))
    {
        return wrong(other.line, "`Switch_Latency_ns` must be the same in all tiers");
    }
    let mut add = |a, b, (rate, delay, bundle): (Rate, Span, u64)| {
        for _ in 0..bundle {
            graph.links.push(GraphLink { a, b, rate, delay });
        }
    };
    let switch = |first: u64, n: u64| End::Switch((first + n) as u32);
    let edge = links(&tiers[0])?;
    for host in 0..nodes {
        add(End::Host(host as u32), switch(0, host / per_tor), (edge.0, edge.1, 1));
    }
    let middle = links(&tiers[1])?;
    let (first_agg, first_core) = (pods * tors, pods * tors + pods * aggs);
    for tor in 0..pods * tors {
        for agg in 0..aggs {
            add(switch(0, tor), switch(first_agg, tor / tors * aggs + agg), middle);
        }
    }
    if let [_, _, top] = tiers {
        let upper = links(top)?;
        for agg in 0..pods * aggs {
            for core in (agg % aggs..cores).step_by(aggs as usize) {
                add(switch(first_agg, agg), switch(first_core, core), upper);
            }
        }
    }
    Ok(graph)
}

/// Refuses a value of `Oversubscribed` that does not follow from the radixes and speeds. htsim instead takes
/// the value as given, and refuses radixes and speeds that do not fit it.
fn check_oversubscription(tier: &Tier, above: &Tier) -> Result<(), ImportError> {
    let Some((line, factor)) = tier.values.get("Oversubscribed") else { return Ok(()) };
    let [down, up] = [tier.need("Radix_Down")?.1, tier.need("Radix_Up")?.1];
    let key = "Downlink_speed_Gbps";
    let [down_gbps, up_gbps] = [tier.need(key)?.1, above.need(key)?.1];
    if u128::from(down * down_gbps) == u128::from(up * up_gbps) * u128::from(*factor) {
        return Ok(());
    }
    let why = format!(
        "`Oversubscribed` is {factor}, but a switch of this tier has {down} links of {down_gbps} Gb/s down and {up} of \
         {up_gbps} Gb/s up; leave it out, or write their ratio"
    );
    wrong(*line, why)
}
