//! Breakdown of an op's latency along the packet that ended the op, from the submission to the acknowledgement.

use std::collections::{BTreeMap, BTreeSet};

use apus_sim::record::Passed;
use apus_units::{Span, Time};
use serde_json::{Value, json};

use super::causes::{Seen, Sent};
use super::second_run::Target;

/// Maximum number of named flows among those before a packet in a queue.
const MAX_NAMED: usize = 10;

/// Part of the time in which the flow waited after the loss of earlier packets.
const TIMEOUTS: &str = "waiting for timeouts, since packets of its flow were lost";

/// The packet whose acknowledgement ended an op.
#[derive(Default)]
pub(super) struct Chain<'r> {
    /// Number of the packet; `None` if no packet was acknowledged.
    pub(super) seq: Option<u64>,
    /// Parts of the latency in microseconds: `[kind, name, us]`. Their sum is the latency.
    pub(super) parts: Vec<Value>,
    /// Wait of the packet at each port, and the packets that left the port during that wait.
    pub(super) waits: Vec<Value>,
    /// Ports that the acknowledgement left.
    pub(super) back: Vec<&'r Passed>,
    /// Time of the packet's first transmission; for an unfinished op, that of its first packet.
    pub(super) first: Option<Time>,
}

/// Returns the chain of an op.
pub(super) fn of<'r>(
    target: &Target,
    sent: &[Sent<'_>],
    seen: &Seen<'r>,
    flows: &mut BTreeSet<u32>,
) -> Chain<'r> {
    if target.op.number.is_none() {
        return unfinished(target, sent, seen, flows);
    }
    let acked = sent.iter().filter(|packet| packet.acked.is_some_and(|at| at <= target.ended));
    // A read ends with its data, which is acknowledged later.
    let last = acked
        .max_by_key(|packet| (packet.acked, packet.at))
        .or_else(|| sent.iter().rfind(|packet| !packet.hops.is_empty()));
    let Some(last) = last else {
        let all = target.ended.since(target.submitted);
        let part = json!(["before", "before its first transmission", us(all)]);
        return Chain { parts: vec![part], ..Chain::default() };
    };
    let first = sent
        .iter()
        .filter(|one| one.offset == last.offset)
        .map(|one| one.at)
        .min()
        .unwrap_or(last.at);
    let mut parts =
        vec![json!(["before", "before its first transmission", us(first.since(target.submitted))])];
    if last.at > first {
        parts.push(json!(["again", "lost and sent again", us(last.at.since(first))]));
    }
    let (mut waits, waited, here) = queues(&last.hops, last.at, seen, flows);
    for (wait, hop) in waits.iter().zip(&last.hops) {
        let name = seen.recording.port_name(hop.port);
        parts.push(json!(["queue", format!("waiting at {name}"), wait["us"]]));
    }
    let travel = here.since(last.at).saturating_sub(waited);
    parts.push(json!(["travel", "transmission and propagation", us(travel)]));
    let back = match (last.ack, last.acked) {
        (Some(number), Some(at)) => seen.way_back(target.op.flow, number, here, at),
        _ => Vec::new(),
    };
    // The acknowledgement leaves after the receiver has processed the packet.
    let (remote, endpoint) = last.sample.unwrap_or_default();
    let total = target.ended.since(here);
    let (more, waited, _) = queues(&back, here + remote.min(total), seen, flows);
    for (wait, hop) in more.iter().zip(&back) {
        let name = seen.recording.port_name(hop.port);
        parts.push(json!(["queue", format!("acknowledgement waiting at {name}"), wait["us"]]));
    }
    waits.extend(more);
    let endpoint = endpoint.min(total.saturating_sub(waited));
    parts.push(json!(["host", "in the hosts (endpoint delay)", us(endpoint)]));
    let rest = total.saturating_sub(waited + endpoint);
    parts.push(json!(["back", "acknowledgement, way back", us(rest)]));
    Chain { seq: Some(last.seq), parts, waits, back, first: Some(first) }
}

impl Chain<'_> {
    /// Marks the part of the time before the first transmission in which the flow waited for timeouts.
    pub(super) fn stalled(&mut self, waited: Span) {
        let Some(before) = self.parts.first_mut().filter(|_| !waited.is_zero()) else { return };
        let rest = before[2].as_f64().map_or(0.0, |all| (all - us(waited)).max(0.0));
        before[2] = json!((rest * 1e3).round() / 1e3);
        self.parts.insert(0, json!(["again", TIMEOUTS, us(waited)]));
    }
}

/// Returns the parts of an unfinished op: until its first packet, until its last acknowledgement, and since then.
fn unfinished<'r>(
    target: &Target,
    sent: &[Sent<'_>],
    seen: &Seen<'r>,
    flows: &mut BTreeSet<u32>,
) -> Chain<'r> {
    let first = sent.iter().map(|packet| packet.at).min().unwrap_or(target.ended);
    let acked = sent.iter().filter_map(|packet| packet.acked).max().unwrap_or(first);
    let part = |kind: &str, name: &str, from: Time, until: Time| {
        json!([kind, name, us(until.since(from))])
    };
    let parts = vec![
        part("before", "before its first transmission", target.submitted, first),
        part("travel", "until its last acknowledgement so far", first, acked),
        part("again", "since then without an acknowledgement", acked, target.ended),
    ];
    // No packet has ended the op, so the packet with the longest wait is followed.
    let most = sent.iter().filter(|one| !one.hops.is_empty()).max_by_key(|one| waited(one, seen));
    let waits = most.map_or_else(Vec::new, |packet| queues(&packet.hops, packet.at, seen, flows).0);
    Chain { seq: None, parts, waits, back: Vec::new(), first: Some(first) }
}

/// Returns the waits at the ports of the path of a packet that starts at `from`, their sum, and the time at which the
/// packet reached the end of its last link.
fn queues(
    hops: &[&Passed],
    from: Time,
    seen: &Seen<'_>,
    flows: &mut BTreeSet<u32>,
) -> (Vec<Value>, Span, Time) {
    let (mut waits, mut waited, mut here) = (Vec::new(), Span::ZERO, from);
    for hop in hops {
        let wait = hop.left.since(here).saturating_sub(seen.transmission(hop));
        waited += wait;
        waits.push(others(hop, here, wait, seen, flows));
        here = hop.arrives;
    }
    (waits, waited, here)
}

/// Returns the total time that a packet waited at the ports that it left.
fn waited(packet: &Sent<'_>, seen: &Seen<'_>) -> Span {
    let (mut waited, mut here) = (Span::ZERO, packet.at);
    for hop in &packet.hops {
        waited += hop.left.since(here).saturating_sub(seen.transmission(hop));
        here = hop.arrives;
    }
    waited
}

/// Returns a span in microseconds, rounded to a nanosecond.
fn us(span: Span) -> f64 {
    (span.as_us_f64() * 1e3).round() / 1e3
}

/// Returns the packets that left a port while a packet waited there; in a FIFO queue, those before it.
fn others(
    hop: &Passed,
    arrived: Time,
    wait: Span,
    seen: &Seen<'_>,
    flows: &mut BTreeSet<u32>,
) -> Value {
    let all = seen.at_port.get(&hop.port).map(Vec::as_slice).unwrap_or_default();
    let first = all.partition_point(|packet| packet.left <= arrived);
    let end = all.partition_point(|packet| packet.left < hop.left);
    let mut by_flow: BTreeMap<Option<u32>, (u64, u64)> = BTreeMap::new();
    // Flows and their bytes, by workload.
    let mut by_group: BTreeMap<u32, (BTreeSet<u32>, u64)> = BTreeMap::new();
    for packet in all.get(first..end).unwrap_or_default() {
        let entry = by_flow.entry(packet.connection).or_default();
        entry.0 += 1;
        entry.1 += u64::from(packet.wire_bytes);
        if let Some(flow) = packet.connection {
            let group = seen.recording.flows[flow as usize].group;
            let (flows, bytes) = by_group.entry(group).or_default();
            flows.insert(flow);
            *bytes += u64::from(packet.wire_bytes);
        }
    }
    let mut groups: Vec<_> = by_group.into_iter().collect();
    groups.sort_by_key(|(group, (_, bytes))| (core::cmp::Reverse(*bytes), *group));
    let groups: Vec<Value> = groups
        .into_iter()
        .take(MAX_NAMED)
        .map(|(group, (flows, bytes))| json!([group, flows.len(), bytes]))
        .collect();
    let total: u64 = by_flow.values().map(|(_, bytes)| bytes).sum();
    let count = by_flow.len();
    let mut order: Vec<_> = by_flow.into_iter().collect();
    order.sort_by_key(|(flow, (_, bytes))| (core::cmp::Reverse(*bytes), *flow));
    order.truncate(MAX_NAMED);
    flows.extend(order.iter().filter_map(|(flow, _)| *flow));
    let named: Vec<Value> =
        order.into_iter().map(|(flow, (packets, bytes))| json!([flow, packets, bytes])).collect();
    json!({
        "port": hop.port.get(),
        "arrived_us": (arrived.as_ps() as f64 * 1e-6 * 1e3).round() / 1e3,
        "us": us(wait),
        "bytes": total,
        "flows": count,
        "named": named,
        "groups": groups,
    })
}
