//! Follows an op to the queues in which it waited.

use std::collections::{BTreeMap, BTreeSet};

use apus_sim::record::{FlowEvent, FlowEventKind, Passed, Recording};
use apus_units::{PortId, Span, Time};
use apus_wire::Body;
use serde_json::{Value, json};

use super::second_run::{LONG, MARGIN, Target, gap};
use super::{chain, short};

/// Maximum number of packets, of states of the flow, and of samples of a queue, per op.
const MAX_PACKETS: usize = 120;
const MAX_STATES: usize = 160;
const MAX_QUEUE: usize = 128;

/// Observations of the second run, by flow and by port.
pub(super) struct Seen<'r> {
    pub(super) recording: &'r Recording,
    events: BTreeMap<u32, Vec<&'r FlowEvent>>,
    /// Packets of a port in the order in which they left the port.
    pub(super) at_port: BTreeMap<PortId, Vec<&'r Passed>>,
    /// Data packets of a flow.
    of_flow: BTreeMap<u32, Vec<&'r Passed>>,
    /// Other packets of a flow, including acknowledgements.
    others_of_flow: BTreeMap<u32, Vec<&'r Passed>>,
    queues: BTreeMap<PortId, Vec<(Time, u64)>>,
}

impl<'r> Seen<'r> {
    pub(super) fn new(recording: &'r Recording) -> Self {
        let traced = &recording.traced;
        let mut seen = Self {
            recording,
            events: BTreeMap::new(),
            at_port: BTreeMap::new(),
            of_flow: BTreeMap::new(),
            others_of_flow: BTreeMap::new(),
            queues: BTreeMap::new(),
        };
        for event in &traced.events {
            seen.events.entry(event.connection).or_default().push(event);
        }
        for passed in &traced.passed.packets {
            seen.at_port.entry(passed.port).or_default().push(passed);
            if let Some(flow) = passed.connection {
                let all = if passed.is_data { &mut seen.of_flow } else { &mut seen.others_of_flow };
                all.entry(flow).or_default().push(passed);
            }
        }
        seen.at_port.values_mut().for_each(|all| all.sort_by_key(|packet| packet.left));
        for queue in &traced.passed.queues {
            seen.queues.entry(queue.port).or_default().push((queue.at, queue.bytes));
        }
        seen
    }

    /// Returns the ports that an acknowledgement left, in order.
    pub(super) fn way_back(
        &self,
        flow: u32,
        number: u64,
        after: Time,
        before: Time,
    ) -> Vec<&'r Passed> {
        let all = self.others_of_flow.get(&flow).into_iter().flatten();
        let own =
            all.filter(|one| one.seq.get() == number && one.left >= after && one.arrives <= before);
        let mut own: Vec<&Passed> = own.copied().collect();
        own.sort_by_key(|one| one.left);
        own
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
    /// Number of the acknowledgement.
    pub(super) ack: Option<u64>,
    /// Time at the receiver and total endpoint delay, both from the acknowledgement.
    pub(super) sample: Option<(Span, Span)>,
    pub(super) trimmed: bool,
    /// Ports that the packet left, in order.
    pub(super) hops: Vec<&'r Passed>,
}

/// Returns the history of an op, and adds the flows that it names to `flows`.
pub(super) fn op(target: &Target, seen: &Seen<'_>, flows: &mut BTreeSet<u32>) -> Value {
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
    let mut chain = chain::of(target, &sent, seen, flows);
    if let Some(first) = chain.first {
        chain.stalled(stalled(target, &events, first));
    }
    let ahead = ahead(target, &events, chain.first.unwrap_or(target.ended));
    let mut path: Vec<PortId> = Vec::new();
    for packet in sent.iter().flat_map(|sent| &sent.hops).chain(&chain.back) {
        if !path.contains(&packet.port) {
            path.push(packet.port);
        }
    }
    let shown = thin(sent.len(), MAX_PACKETS, |place| {
        Some(sent[place].seq) == chain.seq || sent[place].acked.is_none()
    });
    let packets: Vec<Value> = shown
        .iter()
        .map(|&place| {
            let packet = &sent[place];
            let again =
                sent.iter().any(|later| later.at > packet.at && later.offset == packet.offset);
            let fate = match (packet.acked, again, packet.trimmed) {
                (Some(_), ..) => "acknowledged",
                (None, _, true) => "trimmed",
                (None, true, _) => "lost",
                (None, false, _) => "open",
            };
            let hops: Vec<Value> = packet
                .hops
                .iter()
                .map(|hop| {
                    let place = path.iter().position(|port| *port == hop.port);
                    json!([place, us(hop.left), us(hop.arrives)])
                })
                .collect();
            json!([
                packet.seq,
                packet.offset,
                packet.length,
                us(packet.at),
                packet.acked.map(us),
                fate,
                hops
            ])
        })
        .collect();
    let states: Vec<Value> = thin(events.len(), MAX_STATES, |_| false)
        .into_iter()
        .map(|place| state(events[place], us(events[place].at)))
        .collect();
    let ports: Vec<Value> = path
        .iter()
        .map(|port| {
            let queue: Vec<(Time, u64)> = seen
                .queues
                .get(port)
                .into_iter()
                .flatten()
                .copied()
                .filter(|(at, _)| *at >= from && *at <= until)
                .collect();
            let longest = (0..queue.len()).max_by_key(|&place| queue[place].1);
            let shown = thin(queue.len(), MAX_QUEUE, |place| Some(place) == longest);
            json!({
                "port": port.get(),
                "name": seen.recording.port_name(*port),
                "rate_gbps": seen.recording.ports[port.index()].rate.as_gbps_f64(),
                "at_us": shown.iter().map(|&place| us(queue[place].0)).collect::<Vec<_>>(),
                "queue": shown.iter().map(|&place| queue[place].1).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({
        "flow": flow,
        "op": target.op.number,
        "size": target.op.size,
        "group": target.op.group,
        "submit_us": target.submitted.as_ps() as f64 * 1e-6,
        "latency_us": short(target.op.us),
        "slowdown": short(target.op.slowdown),
        "cut": until.since(from) > LONG,
        "gap": gap(target).map(|(from, until)| json!([us(from), us(until)])),
        "parts": chain.parts,
        "chain": chain.seq,
        "ahead": ahead,
        "sent": sent.len(),
        "retransmitted": sent.iter().filter(|one| sent.iter().any(|earlier| earlier.at < one.at && earlier.offset == one.offset)).count(),
        "packets": packets,
        "states": states,
        "losses": losses(&events, us),
        "ports": ports,
        "waits": chain.waits,
    })
}

/// Returns the transmissions of other ops by the same flow between the submission of the op and its own first packet:
/// number of the ops, their bytes in that time, and the size of the largest.
fn ahead(target: &Target, events: &[&FlowEvent], first: Time) -> Value {
    let mut ops: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for event in events.iter().filter(|event| event.at >= target.submitted && event.at < first) {
        let FlowEventKind::Sent(header, _) = event.what else { continue };
        let Body::Data(segment) = header.body else { continue };
        if Some(segment.op.get()) != target.op.number {
            let (bytes, size) = ops.entry(segment.op.get()).or_default();
            *bytes += u64::from(segment.length);
            *size = segment.op_length;
        }
    }
    let bytes: u64 = ops.values().map(|(bytes, _)| bytes).sum();
    let largest = ops.values().map(|(_, size)| *size).max();
    json!([ops.len(), bytes, largest])
}

/// Returns the time after the submission in microseconds, rounded to a nanosecond.
fn us_after(submitted: Time, at: Time) -> f64 {
    let us = (at.as_ps() as f64 - submitted.as_ps() as f64) * 1e-6;
    (us * 1e3).round() / 1e3
}

/// Returns all transmissions of an op with their outcomes.
fn transmissions<'r>(target: &Target, seen: &Seen<'r>, events: &[&FlowEvent]) -> Vec<Sent<'r>> {
    let mut sent: Vec<Sent<'r>> = Vec::new();
    // The results do not number unfinished ops, so this op is taken to be the first one of its size that was sent after
    // its submission.
    let mut number = target.op.number;
    for event in events {
        match event.what {
            FlowEventKind::Sent(header, _) => {
                let Body::Data(segment) = header.body else { continue };
                if number.is_none()
                    && segment.op_length == target.op.size
                    && event.at >= target.submitted
                {
                    number = Some(segment.op.get());
                }
                if number == Some(segment.op.get()) && event.at >= target.submitted {
                    sent.push(Sent {
                        seq: header.seq.get(),
                        at: event.at,
                        offset: segment.offset,
                        length: segment.length,
                        acked: None,
                        ack: None,
                        sample: None,
                        trimmed: false,
                        hops: Vec::new(),
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
                            packet.ack = Some(header.seq.get());
                        }
                    }
                    let echoed = sent.iter_mut().find(|packet| packet.seq == ack.echo.get());
                    if let Some((packet, sample)) = echoed.zip(sample) {
                        packet.sample = Some((ack.remote_queuing, sample.endpoint_delay));
                    }
                }
                Body::Nack(nack) => {
                    sent.iter_mut()
                        .filter(|packet| packet.seq == nack.packet.get())
                        .for_each(|packet| packet.trimmed = true);
                }
                _ => {}
            },
        }
    }
    let place: BTreeMap<u64, usize> =
        sent.iter().enumerate().map(|(place, one)| (one.seq, place)).collect();
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

/// Returns the state of the flow: time, windows, target, smoothed RTT, and the delays of the acknowledgement.
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

/// Returns how long the flow waited for timeouts of lost packets before `first`. A wait lasts from the last
/// acknowledgement or the previous timeout to the first packet after each timeout. Timeouts before the first recorded
/// event of the flow are unknown.
fn stalled(target: &Target, events: &[&FlowEvent], first: Time) -> Span {
    let (mut all, mut since) = (Span::ZERO, target.submitted);
    for (before, event) in events.iter().zip(events.iter().skip(1)) {
        if event.at > first {
            break;
        }
        if event.counters.since(&before.counters).timeout_losses > 0 {
            all += event.at.since(since);
            since = since.max(event.at);
        } else if matches!(event.what, FlowEventKind::Received(..)) {
            since = since.max(event.at);
        }
    }
    all
}

/// Returns the times at which the flow declared packets lost, and the reasons.
fn losses(events: &[&FlowEvent], us: impl Fn(Time) -> f64) -> Vec<Value> {
    let pairs = events.iter().zip(events.iter().skip(1));
    let mut all = Vec::new();
    for (before, after) in pairs {
        let new = after.counters.since(&before.counters);
        for (packets, what) in [
            (new.fast_losses, "SACK bitmap"),
            (new.timeout_losses, "timeout"),
            (new.trims, "trimmed"),
        ] {
            if packets > 0 {
                all.push(json!([us(after.at), packets, what]));
            }
        }
    }
    all.truncate(MAX_STATES);
    all
}

/// Returns about `most` of `count` indices, spread evenly, and in addition those that `keep` accepts. At most twice
/// `most` are returned.
fn thin(count: usize, most: usize, keep: impl Fn(usize) -> bool) -> Vec<usize> {
    let stride = count.div_ceil(most).max(1);
    let kept =
        (0..count).filter(|place| place % stride == 0 || *place + 1 == count || keep(*place));
    let mut kept: Vec<usize> = kept.collect();
    // The indices that `keep` accepts may be too many, so the result is thinned again.
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
