//! The links over time, grouped and individually, and the topology.

use apus_sim::columns::gbps;
use apus_sim::record::{Cell, Place, PortGroup, Recording};
use serde_json::{Value, json};

use super::{matrix, short};

/// Maximum number of nodes of a topology that is drawn node by node.
const MAX_NODES: usize = 150;
/// Maximum number of links of a group whose utilisation is shown individually; of a larger group, every n-th link is
/// shown.
const MAX_SPREAD: usize = 256;

pub(super) fn json(recording: &Recording) -> Value {
    let network = &recording.network;
    let by_group: Vec<Vec<Cell>> = (0..network.groups.len())
        .map(|group| network.group_cells.iter().map(|cells| cells[group]).collect())
        .collect();
    let links: Vec<Value> = network
        .links
        .iter()
        .map(|port| json!([port.get(), recording.port_name(*port), network.group_of[port.index()]]))
        .collect();
    json!({
        "times_us": network.times.iter().map(|time| short(time.as_ps() as f64 * 1e-6)).collect::<Vec<_>>(),
        "groups": network.groups.iter().map(group).collect::<Vec<_>>(),
        "group_cells": cells(&by_group, true),
        "links": links,
        "link_count": network.candidates,
        "port_count": recording.ports.len(),
        "link_cells": cells(&network.link_cells, false),
        "spread": spread(recording),
        "nodes": nodes(recording),
    })
}

fn group(group: &PortGroup) -> Value {
    let place = |place: &Place| json!([place.tier, place.pods.map(|(first, last)| [first, last])]);
    json!([place(&group.from), place(&group.to), group.ports, short(group.rate_gbps)])
}

/// Returns the cells of rows; only groups have a busiest link.
fn cells(rows: &[Vec<Cell>], grouped: bool) -> Value {
    let values = |of: fn(&Cell) -> f32| -> Vec<Vec<f64>> {
        rows.iter().map(|row| row.iter().map(|cell| f64::from(of(cell))).collect()).collect()
    };
    let counts = |of: fn(&Cell) -> u32| -> Vec<Vec<u32>> {
        rows.iter().map(|row| row.iter().map(of).collect()).collect()
    };
    json!({
        "utilisation": matrix::linear(&values(|cell| cell.utilisation)),
        "busiest": grouped.then(|| matrix::linear(&values(|cell| cell.busiest))),
        "queue": matrix::linear(&values(|cell| cell.queue_bytes)),
        "drops": matrix::sparse(&counts(|cell| cell.drops)),
        "marks": matrix::sparse(&counts(|cell| cell.marks)),
        "pauses": matrix::sparse(&counts(|cell| cell.pauses)),
    })
}

/// Returns the utilisation of each link between switches over the measured phase, by the tiers that it connects. The
/// values show how evenly the paths share the traffic.
fn spread(recording: &Recording) -> Value {
    let seconds = recording.measured_seconds();
    let mut by_tiers: std::collections::BTreeMap<(u32, u32), Vec<(f64, String)>> =
        Default::default();
    for port in &recording.ports {
        let tiers = (recording.nodes[port.from].tier, recording.nodes[port.to].tier);
        // Links between the tiers of the fabric have alternatives; the link of a host has none.
        if tiers.0 == 0 || tiers.1 == 0 || tiers.0 == tiers.1 {
            continue;
        }
        let used = gbps(port.sent_bytes, seconds) / port.rate.as_gbps_f64();
        by_tiers.entry(tiers).or_default().push((used, recording.port_name(port.port)));
    }
    let one = |((from, to), mut all): ((u32, u32), Vec<(f64, String)>)| {
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (count, sum) = (all.len(), all.iter().map(|(used, _)| used).sum::<f64>());
        let squares: f64 = all.iter().map(|(used, _)| used * used).sum();
        let jain = (squares > 0.0).then(|| sum * sum / (count as f64 * squares));
        let stride = count.div_ceil(MAX_SPREAD).max(1);
        // The selection always contains the busiest link.
        let shown: Vec<_> = all.iter().rev().step_by(stride).collect();
        json!({
            "from": from, "to": to, "links": count, "jain": jain.map(short), "mean": short(sum / count as f64),
            "utilisation": shown.iter().map(|(used, _)| short(*used)).collect::<Vec<_>>(),
            "names": shown.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>(),
        })
    };
    by_tiers.into_iter().map(one).collect()
}

/// Returns the nodes and links of a small network; `null` for a large one, which is drawn by groups.
fn nodes(recording: &Recording) -> Value {
    if recording.nodes.len() > MAX_NODES {
        return json!({ "count": recording.nodes.len() });
    }
    let nodes: Vec<Value> =
        recording.nodes.iter().map(|node| json!([node.name, node.tier])).collect();
    let links: Vec<Value> = recording
        .ports
        .chunks_exact(2)
        .map(|pair| json!([pair[0].from, pair[0].to, pair[0].rate.as_gbps_f64()]))
        .collect();
    json!({ "count": nodes.len(), "nodes": nodes, "links": links })
}
