//! A recorded run as a timeline: ops, flow states, queues and faults.

use std::io::{self, Write};

use apus_sim::columns::gbps;
use apus_sim::record::{Quantity, Recording};
use apus_traces::perfetto::{Detail, Timeline, Track};
use apus_units::{Span, Time};

/// Writes the timeline.
pub(super) fn write(out: impl Write, recording: &Recording) -> io::Result<()> {
    let mut timeline = Timeline::new(out);
    flows(&mut timeline, recording)?;
    ports(&mut timeline, recording)?;
    faults(&mut timeline, recording)?;
    timeline.finish().map(drop)
}

/// An op of a flow, ended or not.
struct Op<'r> {
    flow: u32,
    begin: Time,
    end: Time,
    name: &'r str,
    outcome: &'r str,
    size: u64,
}

fn ops(recording: &Recording) -> Vec<Op<'_>> {
    let ended = recording.ops.iter().map(|op| Op {
        flow: op.flow,
        begin: op.submitted,
        end: op.completed,
        name: op.kind_name(),
        outcome: op.outcome_name(),
        size: op.size,
    });
    let open = recording.open_ops.iter().map(|op| Op {
        flow: op.flow,
        begin: op.submitted,
        end: op.submitted + op.age,
        name: recording.flows[op.flow as usize].kind_name(),
        outcome: "unfinished",
        size: op.size,
    });
    let mut ops: Vec<Op<'_>> = ended.chain(open).collect();
    ops.sort_by_key(|op| (op.flow, op.begin, op.end));
    ops
}

/// Writes a group for each flow with ops or samples: its ops, then its samples.
fn flows(timeline: &mut Timeline<impl Write>, recording: &Recording) -> io::Result<()> {
    let ops = ops(recording);
    for (number, flow) in (0u32..).zip(&recording.flows) {
        let first = ops.partition_point(|op| op.flow < number);
        let own = &ops[first..ops.partition_point(|op| op.flow <= number)];
        let sampled = recording.sampled_flows.iter().position(|&sampled| sampled == number);
        if own.is_empty() && sampled.is_none() {
            continue;
        }
        let (from, to, algorithm) = (flow.from, flow.to, flow.algorithm);
        let name = format!("flow {number}: {from} -> {to} ({algorithm})");
        let group = timeline.track(&name, None)?;
        op_slices(timeline, group, own)?;
        if let Some(place) = sampled {
            flow_values(timeline, recording, group, place)?;
        }
    }
    Ok(())
}

/// Writes the ops; overlapping ops are on several tracks with the same name.
fn op_slices(timeline: &mut Timeline<impl Write>, group: Track, ops: &[Op<'_>]) -> io::Result<()> {
    let mut lanes: Vec<(Time, Track)> = Vec::new();
    for op in ops {
        let lane = match lanes.iter().position(|(free, _)| *free <= op.begin) {
            Some(lane) => lane,
            None => {
                lanes.push((Time::ZERO, timeline.track("ops", Some(group))?));
                lanes.len() - 1
            }
        };
        let (free, track) = &mut lanes[lane];
        *free = op.end;
        let details =
            [("size_bytes", Detail::Count(op.size)), ("outcome", Detail::Text(op.outcome))];
        timeline.slice(*track, (op.begin, op.end), op.name, &details)?;
    }
    Ok(())
}

/// Writes the samples of a flow, as in samples.csv.
fn flow_values(
    timeline: &mut Timeline<impl Write>,
    recording: &Recording,
    group: Track,
    place: usize,
) -> io::Result<()> {
    for quantity in Quantity::ALL {
        let values = recording.times.iter().zip(&recording.samples);
        let values = values.map(|(&at, samples)| (at, samples[place].get(quantity)));
        let values: Vec<_> = values.filter(|(_, value)| value.is_finite()).collect();
        if values.is_empty() {
            continue;
        }
        let name = quantity.column();
        let unit = apus_sim::columns::unit_of(name);
        let counter = timeline.counter(name, unit, Some(group))?;
        // A value that belongs to an interval is drawn from the start of that interval.
        let (_, aggregation) = quantity.definition();
        let back = if aggregation == "instant" { Span::ZERO } else { recording.record.interval };
        for (at, value) in values {
            timeline.value(counter, at.saturating_sub(back), value)?;
        }
    }
    Ok(())
}

/// Writes a group for each sampled port.
fn ports(timeline: &mut Timeline<impl Write>, recording: &Recording) -> io::Result<()> {
    let interval = recording.record.interval;
    let seconds = interval.as_secs_f64();
    for (place, &port) in recording.sampled_ports.iter().enumerate() {
        let group = timeline.track(&format!("port {}", recording.port_name(port)), None)?;
        let group = Some(group);
        let queue = timeline.counter("queue_bytes", "B", group)?;
        let throughput = timeline.counter("throughput_gbps", "Gb/s", group)?;
        let drops = timeline.counter("drops", "", group)?;
        for (&at, samples) in recording.times.iter().zip(&recording.port_samples) {
            let sample = &samples[place];
            timeline.value(queue, at, sample.queue_bytes as f64)?;
            // A sample counts the bytes since the previous one.
            let begin = at.saturating_sub(interval);
            timeline.value(throughput, begin, gbps(sample.sent_bytes, seconds))?;
            timeline.value(drops, begin, sample.drops as f64)?;
        }
    }
    Ok(())
}

/// Writes the faults of links, and the path changes of flows.
fn faults(timeline: &mut Timeline<impl Write>, recording: &Recording) -> io::Result<()> {
    if recording.faults.is_empty() {
        return Ok(());
    }
    let group = timeline.track("faults", None)?;
    for fault in &recording.faults {
        // Faults may overlap, so each one has its own track.
        let track = timeline.track(&fault.subject, Some(group))?;
        match fault.until_us {
            Some(until) => timeline.slice(track, (at(fault.at_us), at(until)), fault.kind, &[])?,
            None => timeline.instant(track, at(fault.at_us), fault.kind, &[])?,
        }
    }
    Ok(())
}

fn at(us: f64) -> Time {
    Time::ZERO + Span::from_us(1).mul_f64(us)
}
