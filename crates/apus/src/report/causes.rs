//! The slowest ops of a run, followed to the queues in which they waited.
//!
//! A second run with the same seed records everything around them, so that a run of any size can be looked into.

use std::collections::{BTreeMap, BTreeSet};

use apus_scenario::Setup;
use apus_sim::record::{Around, FlowEvent, FlowEventKind, Passed, Recording};
use apus_sim::summary::Summary;
use apus_units::{PortId, Span, Time};
use apus_wire::Body;
use serde_json::{Map, Value, json};

use super::ops::{Op, measured};
use super::{chain, short};

/// Maximum number of ops of a run that are followed.
const MAX_OPS: usize = 60;
/// Of a longer op only the begin and the end are recorded.
const LONG: Span = Span::from_us(2000);
/// Recorded of a long op at its begin; the rest of [`LONG`] is at its end.
const BEGIN: Span = Span::from_us(500);
/// Time before and after an op that is recorded too, as a part of its duration: one of 20.
const MARGIN: u64 = 20;
/// Maximum number of packets, states of the flow and samples of a queue per op.
const MAX_PACKETS: usize = 120;
const MAX_STATES: usize = 160;
const MAX_QUEUE: usize = 128;

/// An op that is followed.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub(super) op: Op,
    pub(super) submitted: Time,
    pub(super) ended: Time,
}

/// Returns the slowest `worst` ops of each workload of a run.
pub(super) fn choose(recording: &Recording, worst: usize) -> Vec<Target> {
    let mut taken: BTreeMap<u32, usize> = BTreeMap::new();
    let mut chosen = Vec::new();
    let all = measured(recording);
    let groups = all.iter().map(|op| op.group).collect::<BTreeSet<_>>().len().max(1);
    let worst = worst.min((MAX_OPS / groups).max(1));
    for op in all {
        let count = taken.entry(op.group).or_default();
        if *count >= worst || chosen.len() >= MAX_OPS {
            continue;
        }
        *count += 1;
        chosen.push(Target { op, submitted: op.submitted, ended: op.submitted + Span::from_ps_f64(op.us * 1e6) });
    }
    chosen
}

/// Returns the spans of time around ops that a second run records.
fn around(targets: &[Target]) -> Vec<Around> {
    let mut all = Vec::new();
    for Target { op, submitted, ended } in targets {
        let margin = ended.since(*submitted).min(LONG) / MARGIN;
        let (from, until) = (submitted.saturating_sub(margin), *ended + margin);
        let mut add = |from, until| all.push(Around { connection: op.flow, from, until });
        if until.since(from) <= LONG {
            add(from, until);
        } else {
            add(from, from + BEGIN);
            add(until.saturating_sub(LONG - BEGIN), until);
        }
    }
    all
}

/// The setup of the second run, and what it is to look into.
pub struct SecondRun {
    /// Records what happens around the ops.
    pub setup: Setup,
    targets: Vec<Target>,
    name: String,
    hash: String,
}

impl SecondRun {
    /// Returns the second run for the slowest `worst` ops of each workload; `None` if there are no ops.
    pub fn of(setup: &Setup, summary: &Summary, worst: usize) -> Option<Self> {
        let targets = choose(summary.recording.as_deref()?, worst);
        if targets.is_empty() || summary.interrupted {
            return None;
        }
        Some(Self {
            setup: setup.clone().around(around(&targets)),
            targets,
            name: summary.name.clone(),
            hash: summary.work.event_hash.clone(),
        })
    }

    /// Returns the name of the run and the content of its report.
    pub fn results(&self, again: &Result<Summary, String>) -> (String, Value) {
        let failed = |why: &str| (self.name.clone(), json!({ "failed": why, "ops": [] }));
        let again = match again {
            Ok(again) => again,
            Err(why) => return failed(why),
        };
        if again.work.event_hash != self.hash {
            return failed("the second run with the same seed had other events than the first; this is a bug of apus");
        }
        let Some(recording) = again.recording.as_deref() else { return failed("the second run was not recorded") };
        let seen = Seen::new(recording);
        let mut flows = BTreeSet::new();
        let ops: Vec<Value> = self.targets.iter().map(|target| op(target, &seen, &mut flows)).collect();
        let name = |flow: u32| {
            let record = &recording.flows[flow as usize];
            (flow.to_string(), json!([record.from.get(), record.to.get(), record.algorithm]))
        };
        let traced = &recording.traced;
        let kept = traced.passed.packets.len() as u64;
        let mut left_out = Vec::new();
        if kept < traced.passed.seen {
            left_out.push(format!("the first {kept} of {} packets at the ports were kept", traced.passed.seen));
        }
        if (traced.events.len() as u64) < traced.events_seen {
            left_out.push(format!("the first {} of {} events of flows were kept", traced.events.len(), traced.events_seen));
        }
        let value = json!({
            "run_events": again.work.events,
            "packets": kept,
            "events": traced.events.len(),
            "left_out": left_out,
            "flows": flows.into_iter().map(name).collect::<Map<_, _>>(),
            "ops": ops,
        });
        (self.name.clone(), value)
    }
}

/// What the second run saw, by flow and by port.
pub(super) struct Seen<'r> {
    pub(super) recording: &'r Recording,
    events: BTreeMap<u32, Vec<&'r FlowEvent>>,
    /// Packets of a port in the order in which they left it.
    pub(super) at_port: BTreeMap<PortId, Vec<&'r Passed>>,
    /// Data packets of a flow.
    of_flow: BTreeMap<u32, Vec<&'r Passed>>,
    queues: BTreeMap<PortId, Vec<(Time, u64)>>,
}

impl<'r> Seen<'r> {
    fn new(recording: &'r Recording) -> Self {
        let traced = &recording.traced;
        let mut seen = Self {
            recording,
            events: BTreeMap::new(),
            at_port: BTreeMap::new(),
            of_flow: BTreeMap::new(),
            queues: BTreeMap::new(),
        };
        for event in &traced.events {
            seen.events.entry(event.connection).or_default().push(event);
        }
        for passed in &traced.passed.packets {
            seen.at_port.entry(passed.port).or_default().push(passed);
            if let Some(flow) = passed.connection.filter(|_| passed.is_data) {
                seen.of_flow.entry(flow).or_default().push(passed);
            }
        }
        seen.at_port.values_mut().for_each(|all| all.sort_by_key(|packet| packet.left));
        for queue in &traced.passed.queues {
            seen.queues.entry(queue.port).or_default().push((queue.at, queue.bytes));
        }
        seen
    }

    /// Returns the time that a packet takes to leave a port.
    pub(super) fn transmission(&self, packet: &Passed) -> Span {
        let rate = self.recording.ports[packet.port.index()].rate;
        rate.serialization_time(apus_units::Bytes::new(u64::from(packet.wire_bytes)))
    }
}

/// A transmission of a range of an op.
pub(super) struct Sent<'r> {
    pub(super) seq: u64,
    pub(super) at: Time,
    pub(super) offset: u64,
    pub(super) length: u32,
    pub(super) acked: Option<Time>,
    /// RTT, endpoint delay of its acknowledgement.
    pub(super) sample: Option<(Span, Span)>,
    pub(super) trimmed: bool,
    /// Ports that it left, in order.
    pub(super) hops: Vec<&'r Passed>,
}

fn op(target: &Target, seen: &Seen<'_>, flows: &mut BTreeSet<u32>) -> Value {
    let flow = target.op.flow;
    flows.insert(flow);
    let none = Vec::new();
    let margin = target.ended.since(target.submitted).min(LONG) / MARGIN;
    let (from, until) = (target.submitted.saturating_sub(margin), target.ended + margin);
    let events = seen.events.get(&flow).unwrap_or(&none);
    let events: Vec<&FlowEvent> =
        events.iter().copied().filter(|event| event.at >= from && event.at <= until).collect();
    let sent = transmissions(target, seen, &events);
    let us = |at: Time| us_after(target.submitted, at);
    let chain = chain::of(target, &sent, seen, flows);
    let mut path: Vec<PortId> = Vec::new();
    for packet in sent.iter().flat_map(|sent| &sent.hops) {
        if !path.contains(&packet.port) {
            path.push(packet.port);
        }
    }
    let shown = thin(sent.len(), MAX_PACKETS, |place| Some(sent[place].seq) == chain.seq || sent[place].acked.is_none());
    let packets: Vec<Value> = shown.iter().map(|&place| {
        let packet = &sent[place];
        let again = sent.iter().any(|later| later.at > packet.at && later.offset == packet.offset);
        let fate = match (packet.acked, again, packet.trimmed) {
            (Some(_), ..) => "acknowledged",
            (None, _, true) => "trimmed",
            (None, true, _) => "lost",
            (None, false, _) => "open",
        };
        let hops: Vec<Value> = packet.hops.iter().map(|hop| {
            let place = path.iter().position(|port| *port == hop.port);
            json!([place, us(hop.left), us(hop.arrives)])
        }).collect();
        json!([packet.seq, packet.offset, packet.length, us(packet.at), packet.acked.map(us), fate, hops])
    }).collect();
    let states: Vec<Value> = thin(events.len(), MAX_STATES, |_| false).into_iter().map(|place| state(events[place], us(events[place].at))).collect();
    let ports: Vec<Value> = path.iter().map(|port| {
        let queue: Vec<(Time, u64)> = seen.queues.get(port).into_iter().flatten().copied().filter(|(at, _)| *at >= from && *at <= until).collect();
        let shown = thin(queue.len(), MAX_QUEUE, |_| false);
        json!({
            "port": port.get(),
            "name": seen.recording.port_name(*port),
            "rate_gbps": seen.recording.ports[port.index()].rate.as_gbps_f64(),
            "at_us": shown.iter().map(|&place| us(queue[place].0)).collect::<Vec<_>>(),
            "queue": shown.iter().map(|&place| queue[place].1).collect::<Vec<_>>(),
        })
    }).collect();
    json!({
        "flow": flow,
        "op": target.op.number,
        "size": target.op.size,
        "group": target.op.group,
        "submit_us": target.submitted.as_ps() as f64 * 1e-6,
        "latency_us": short(target.op.us),
        "slowdown": short(target.op.slowdown),
        "cut": until.since(from) > LONG,
        "parts": chain.parts,
        "chain": chain.seq,
        "sent": sent.len(),
        "retransmitted": sent.iter().filter(|one| sent.iter().any(|earlier| earlier.at < one.at && earlier.offset == one.offset)).count(),
        "packets": packets,
        "states": states,
        "losses": losses(&events, us),
        "ports": ports,
        "waits": chain.waits,
    })
}

/// Returns the time after the submission in microseconds, to a nanosecond.
fn us_after(submitted: Time, at: Time) -> f64 {
    let us = (at.as_ps() as f64 - submitted.as_ps() as f64) * 1e-6;
    (us * 1e3).round() / 1e3
}

/// Returns all transmissions of an op with their fates.
fn transmissions<'r>(target: &Target, seen: &Seen<'r>, events: &[&FlowEvent]) -> Vec<Sent<'r>> {
    let mut sent: Vec<Sent<'r>> = Vec::new();
    // An unfinished op has no number in the results: it is the first of its size that was sent after its submission.
    let mut number = target.op.number;
    for event in events {
        match event.what {
            FlowEventKind::Sent(header, _) => {
                let Body::Data(segment) = header.body else { continue };
                if number.is_none() && segment.op_length == target.op.size && event.at >= target.submitted {
                    number = Some(segment.op.get());
                }
                if number == Some(segment.op.get()) && event.at >= target.submitted {
                    sent.push(Sent {
                        seq: header.seq.get(), at: event.at, offset: segment.offset, length: segment.length,
                        acked: None, sample: None, trimmed: false, hops: Vec::new(),
                    });
                }
            }
            FlowEventKind::Received(header, _, sample) => match header.body {
                Body::Ack(ack) => {
                    let largest = ack.largest.get();
                    for packet in sent.iter_mut().filter(|packet| packet.acked.is_none()) {
                        let back = largest.checked_sub(packet.seq);
                        if back.is_some_and(|back| back < 128 && ack.bitmap >> back & 1 == 1) {
                            packet.acked = Some(event.at);
                        }
                    }
                    let echoed = sent.iter_mut().find(|packet| packet.seq == ack.echo.get());
                    if let Some((packet, sample)) = echoed.zip(sample) {
                        packet.sample = Some((sample.end_to_end_rtt, sample.endpoint_delay));
                    }
                }
                Body::Nack(nack) => {
                    sent.iter_mut().filter(|packet| packet.seq == nack.packet.get()).for_each(|packet| packet.trimmed = true);
                }
                _ => {}
            },
        }
    }
    let place: BTreeMap<u64, usize> = sent.iter().enumerate().map(|(place, one)| (one.seq, place)).collect();
    for passed in seen.of_flow.get(&target.op.flow).into_iter().flatten() {
        if let Some(&place) = place.get(&passed.seq.get())
            && passed.left >= sent[place].at
        {
            sent[place].hops.push(passed);
        }
    }
    sent.iter_mut().for_each(|one| one.hops.sort_by_key(|hop| hop.left));
    sent
}

/// State of the flow: time, windows, target, smoothed RTT, and the delays of the acknowledgement.
fn state(event: &FlowEvent, at: f64) -> Value {
    let us = |span: Option<Span>| span.map(|span| short(span.as_us_f64()));
    let sample = match event.what {
        FlowEventKind::Received(_, _, sample) => sample,
        FlowEventKind::Sent(..) => None,
    };
    let state = &event.state;
    json!([
        at,
        short(state.cwnd),
        state.fabric_cwnd.map(short),
        state.endpoint_cwnd.map(short),
        us(state.target_delay),
        us(state.smoothed_rtt),
        us(sample.map(|sample| sample.fabric_rtt)),
        us(sample.map(|sample| sample.endpoint_delay)),
    ])
}

/// Times at which the flow declared packets lost, and by what.
fn losses(events: &[&FlowEvent], us: impl Fn(Time) -> f64) -> Vec<Value> {
    let pairs = events.iter().zip(events.iter().skip(1));
    let mut all = Vec::new();
    for (before, after) in pairs {
        let new = after.counters.since(&before.counters);
        for (packets, what) in [(new.fast_losses, "SACK bitmap"), (new.timeout_losses, "timeout"), (new.trims, "trimmed")] {
            if packets > 0 {
                all.push(json!([us(after.at), packets, what]));
            }
        }
    }
    all.truncate(MAX_STATES);
    all
}

/// Returns at most about `most` of `count` places, spread evenly, and all that `keep` names.
fn thin(count: usize, most: usize, keep: impl Fn(usize) -> bool) -> Vec<usize> {
    let stride = count.div_ceil(most).max(1);
    let kept = (0..count).filter(|place| place % stride == 0 || *place + 1 == count || keep(*place));
    let mut kept: Vec<usize> = kept.collect();
    // Those that are kept in any case may be too many as well.
    if kept.len() > 2 * most {
        kept = kept.iter().copied().step_by(kept.len().div_ceil(2 * most)).collect();
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::thin;

    #[test]
    fn what_is_thinned_keeps_its_ends_and_what_is_named() {
        assert_eq!(thin(3, 10, |_| false), [0, 1, 2]);
        assert_eq!(thin(100, 4, |place| place == 33), [0, 25, 33, 50, 75, 99]);
        assert!(thin(1000, 10, |_| true).len() <= 20);
    }
}
