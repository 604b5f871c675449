//! Where the time of an op went: the packet that ended it, from its submission to the acknowledgement.

use std::collections::{BTreeMap, BTreeSet};

use apus_sim::record::Passed;
use apus_units::{Span, Time};
use serde_json::{Value, json};

use super::causes::{Seen, Sent, Target};

/// Flows that are named of those before a packet in a queue.
const MAX_NAMED: usize = 10;

/// The packet whose acknowledgement ended an op.
#[derive(Default)]
pub(super) struct Chain {
    /// Its number; `None` if none was acknowledged.
    pub(super) seq: Option<u64>,
    /// What took how long, in microseconds: `[kind, name, us]`. The sum is the latency.
    pub(super) parts: Vec<Value>,
    /// Its wait at each port, and the packets that left the port meanwhile.
    pub(super) waits: Vec<Value>,
}

/// Returns the chain of an op.
pub(super) fn of(target: &Target, sent: &[Sent<'_>], seen: &Seen<'_>, flows: &mut BTreeSet<u32>) -> Chain {
    let us = |span: Span| (span.as_us_f64() * 1e3).round() / 1e3;
    let ended = target.op.number.is_some();
    let acked = sent.iter().filter(|packet| packet.acked.is_some_and(|at| at <= target.ended || !ended));
    // A read ends with its data, which is acknowledged later.
    let last = acked.max_by_key(|packet| (packet.acked, packet.at)).or_else(|| sent.iter().rfind(|packet| !packet.hops.is_empty()));
    let Some(last) = last else {
        let part = json!(["before", "before its first transmission", us(target.ended.since(target.submitted))]);
        return Chain { parts: vec![part], ..Chain::default() };
    };
    let first = sent.iter().filter(|one| one.offset == last.offset).map(|one| one.at).min().unwrap_or(last.at);
    let mut parts = vec![json!(["before", "before its first transmission", us(first.since(target.submitted))])];
    if last.at > first {
        parts.push(json!(["again", "lost and sent again", us(last.at.since(first))]));
    }
    let mut waits = Vec::new();
    let mut waited = Span::ZERO;
    let mut here = last.at;
    for hop in &last.hops {
        let transmission = seen.transmission(hop);
        let wait = hop.left.since(here).saturating_sub(transmission);
        waited += wait;
        let name = seen.recording.port_name(hop.port);
        parts.push(json!(["queue", format!("waiting at {name}"), us(wait)]));
        waits.push(others(hop, here, wait, seen, flows));
        here = hop.arrives;
    }
    let travel = here.since(last.at).saturating_sub(waited);
    parts.push(json!(["travel", "transmission and propagation", us(travel)]));
    let back = target.ended.saturating_sub(Span::ZERO).since(here);
    match last.sample {
        Some((_, endpoint)) if endpoint < back => {
            parts.push(json!(["host", "in the hosts (endpoint delay)", us(endpoint)]));
            parts.push(json!(["back", "acknowledgement, way back", us(back - endpoint)]));
        }
        _ => parts.push(json!(["back", if ended { "acknowledgement, way back" } else { "not ended" }, us(back)])),
    }
    Chain { seq: Some(last.seq), parts, waits }
}

/// The packets that left a port while a packet waited in it: in a FIFO queue those before it.
fn others(hop: &Passed, arrived: Time, wait: Span, seen: &Seen<'_>, flows: &mut BTreeSet<u32>) -> Value {
    let all = seen.at_port.get(&hop.port).map(Vec::as_slice).unwrap_or_default();
    let first = all.partition_point(|packet| packet.left <= arrived);
    let end = all.partition_point(|packet| packet.left < hop.left);
    let mut by_flow: BTreeMap<Option<u32>, (u64, u64)> = BTreeMap::new();
    for packet in all.get(first..end).unwrap_or_default() {
        let entry = by_flow.entry(packet.connection).or_default();
        entry.0 += 1;
        entry.1 += u64::from(packet.wire_bytes);
    }
    let total: u64 = by_flow.values().map(|(_, bytes)| bytes).sum();
    let count = by_flow.len();
    let mut order: Vec<_> = by_flow.into_iter().collect();
    order.sort_by_key(|(flow, (_, bytes))| (core::cmp::Reverse(*bytes), *flow));
    order.truncate(MAX_NAMED);
    flows.extend(order.iter().filter_map(|(flow, _)| *flow));
    let named: Vec<Value> = order.into_iter().map(|(flow, (packets, bytes))| json!([flow, packets, bytes])).collect();
    json!({
        "port": hop.port.get(),
        "arrived_us": (arrived.as_ps() as f64 * 1e-6 * 1e3).round() / 1e3,
        "us": (wait.as_us_f64() * 1e3).round() / 1e3,
        "bytes": total,
        "flows": count,
        "named": named,
    })
}
