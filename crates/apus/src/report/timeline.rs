//! Quantities of flows and ports over time, and distributions of packets.

use std::collections::{BTreeMap, BTreeSet};

use apus_sim::columns::{FaultRecord, gbps};
use apus_sim::record::{BAND, Cdf, PortSample, Quantity, Recording};
use serde_json::{Value, json};

use super::short;
use crate::text;

/// Maximum number of points of a line: more than a screen has columns.
const MAX_POINTS: usize = 500;
/// Maximum number of values of individual flows over all runs; the same limit applies to ports.
const MAX_VALUES: usize = 100_000;

/// Returns the values of single flows over time, by quantity, at the times of [`json`].
pub(super) fn lines(recording: &Recording, flows: impl Iterator<Item = u32>) -> Value {
    let stride = recording.times.len().div_ceil(MAX_POINTS).max(1);
    let place = |flow: u32| recording.sampled_flows.iter().position(|one| *one == flow);
    let places: Vec<usize> = flows.filter_map(place).collect();
    let of = |quantity: Quantity| {
        let all: Vec<Value> =
            places.iter().map(|&place| line(recording, quantity, place, stride)).collect();
        (quantity.column().to_owned(), Value::from(all))
    };
    Quantity::ALL.into_iter().map(of).collect::<serde_json::Map<_, _>>().into()
}

/// Returns the values of one sampled flow.
fn line(recording: &Recording, quantity: Quantity, place: usize, stride: usize) -> Value {
    let values: Vec<Value> = every(&recording.samples, stride)
        .map(|row| row.get(place).map_or(Value::Null, |sample| short(sample.get(quantity))))
        .collect();
    json!({ "flow": recording.sampled_flows[place], "values": values })
}

/// Returns the recorded values over time for one of `runs` runs of a page.
pub(super) fn json(recording: &Recording, runs: usize) -> Value {
    let stride = recording.times.len().div_ceil(MAX_POINTS).max(1);
    let points = recording.times.len().div_ceil(stride).max(1);
    let lines = MAX_VALUES / (runs * points * Quantity::ALL.len()).max(1);
    let times: Vec<Value> =
        every(&recording.times, stride).map(|time| short(time.as_ps() as f64 * 1e-6)).collect();
    json!({
        "warmup_us": recording.warmup.as_ps() as f64 * 1e-6,
        "duration_us": recording.duration.as_us_f64(),
        "times_us": times,
        "flow_count": recording.flows.len(),
        "hosts": recording.nodes.iter().filter(|node| node.tier == 0).count(),
        "every": stride,
        // Several runs are compared by their medians and their busiest ports, without single flows.
        "quantities": quantities(recording, stride, if runs > 1 { 0 } else { lines.max(2) }),
        "ports": ports(recording, stride, if runs > 1 { 1 } else { lines.max(2) }),
        "cdfs": {
            "fabric RTT": cdf(&recording.fabric_rtt),
            "end-to-end RTT": cdf(&recording.end_to_end_rtt),
            "op latency": cdf(&recording.op_latency),
        },
        "faults": recording.faults.iter().map(|one| fault(recording, one)).collect::<Vec<_>>(),
    })
}

/// Returns a fault or reroute: its times and its label. Pictures show it as a band or a mark.
fn fault(recording: &Recording, fault: &FaultRecord) -> Value {
    json!({
        "kind": fault.kind,
        "subject": fault.subject,
        "lost_packets": fault.lost_packets,
        "port": fault.port.map(|port| port.get()),
        "group": fault.port.and_then(|port| recording.network.group_of.get(port.index())),
        "at_us": fault.at_us,
        "until_us": fault.until_us,
        "slowed_until_us": fault.slowed_until_us,
        "slowed_flows": fault.slowed_flows,
        "slowed_before": fault.slowed_before,
        // Flow, its hosts, the slowdown of its slowest op (`null` if the op had not ended), and whether the flow was as
        // slow before.
        "slowed": fault.slowed.iter().map(|one| {
            let of = &recording.flows[one.flow as usize];
            json!([one.flow, of.from.get(), of.to.get(), short(one.slowdown), one.before])
        }).collect::<Vec<_>>(),
        "even_again_us": fault.even_again_us,
        "instant": fault.kind == "reroute",
        "text": text::losses::fault(fault),
    })
}

fn every<T>(values: &[T], stride: usize) -> impl Iterator<Item = &T> {
    values.iter().step_by(stride)
}

fn quantities(recording: &Recording, stride: usize, lines: usize) -> Value {
    let flows = recording.sampled_flows.len();
    let mut shown: Vec<usize> =
        (0..flows.min(lines)).map(|i| i * flows / flows.min(lines).max(1)).collect();
    // Flows with the slowest ops come first.
    let worst = worst_ops(recording);
    let slowness = |place: usize| worst.get(&recording.sampled_flows[place]).copied();
    shown.sort_by(|&a, &b| {
        slowness(b).unwrap_or(0.0).total_cmp(&slowness(a).unwrap_or(0.0)).then(a.cmp(&b))
    });
    let mut all = serde_json::Map::new();
    for quantity in Quantity::ALL {
        let index = quantity as usize;
        if recording.bands.iter().all(|bands| bands[index].flows == 0) {
            continue;
        }
        let band = |pick: &dyn Fn(&apus_sim::record::Band) -> f64| -> Vec<Value> {
            every(&recording.bands, stride).map(|bands| short(pick(&bands[index]))).collect()
        };
        let mut bands = serde_json::Map::new();
        bands.insert("mean".into(), band(&|band| band.mean).into());
        for (place, percent) in BAND.iter().enumerate() {
            bands.insert(format!("p{percent}"), band(&|b| b.percentiles[place]).into());
        }
        let flows: Vec<Value> =
            shown.iter().map(|&place| line(recording, quantity, place, stride)).collect();
        let (definition, aggregation) = quantity.definition();
        all.insert(
            quantity.column().to_owned(),
            json!({ "bands": bands, "flows": flows, "definition": definition.trim(), "over": aggregation }),
        );
    }
    all.into()
}

/// Returns the largest slowdown of each sampled flow; infinite if one of its ops had not ended.
fn worst_ops(recording: &Recording) -> BTreeMap<u32, f64> {
    let sampled: BTreeSet<u32> = recording.sampled_flows.iter().copied().collect();
    let mut worst: BTreeMap<u32, f64> = BTreeMap::new();
    let ended = recording.ops.iter().map(|op| (op.flow, op.submitted, recording.slowdown(op)));
    let open = recording.open_ops.iter().map(|op| (op.flow, op.submitted, f64::INFINITY));
    for (flow, submitted, slowdown) in ended.chain(open) {
        if submitted >= recording.warmup && sampled.contains(&flow) {
            let entry = worst.entry(flow).or_default();
            *entry = entry.max(slowdown);
        }
    }
    worst
}

fn ports(recording: &Recording, stride: usize, lines: usize) -> Value {
    let seconds = recording.record.interval.as_secs_f64();
    let shown = recording.sampled_ports.iter().take(lines).enumerate();
    let port = |(place, port): (usize, &apus_units::PortId)| -> Value {
        let values = |pick: &dyn Fn(&PortSample) -> f64| -> Vec<Value> {
            every(&recording.port_samples, stride).map(|row| short(pick(&row[place]))).collect()
        };
        json!({
            "port": port.get(),
            "name": recording.port_name(*port),
            "throughput_gbps": values(&|s| gbps(s.sent_bytes, seconds)),
            "queue_kb": values(&|s| s.mean_queue_bytes * 1e-3),
        })
    };
    shown.map(port).collect()
}

fn cdf(points: &Cdf) -> Value {
    let values: Vec<Value> = points.iter().map(|(value, _)| short(*value)).collect();
    let fractions: Vec<f64> = points.iter().map(|(_, f)| (f * 1e6).round() / 1e6).collect();
    json!([values, fractions])
}
