//! Refused and cancelled ops, ops during a change of the MTU, and reused flow indices.
#![allow(non_snake_case)] // `function__situation`

use crate::support::{Faults, Pair, Random, byte};
use apus_algorithms::registry::{AlgorithmConfig, build};
use apus_cc::{FlowInfo, PacketSizeEvent};
use apus_transport::{Endpoint, EndpointConfig, Op, OpKind, Outcome, Turn};
use apus_units::{Bytes, FlowId, OpId, Rate, Span, Time};
use apus_wire::{Body, Control, RegionKey, RejectReason, Segment, SegmentKind};

const REGION: RegionKey = RegionKey::new(7);
const OTHER: RegionKey = RegionKey::new(8);
const WRITE: OpKind = OpKind::Write { region: REGION, address: 0 };
const FAR: Time = Time::from_ps(10_000_000_000_000);

fn constant(window: &str) -> AlgorithmConfig {
    build("constant", None, &[("window", window)]).expect("constant")
}

fn pair(window: &str) -> Pair {
    Pair::new(&constant(window), EndpointConfig::default(), 1)
}

/// Refuses every op on the region OTHER.
fn no_such_region(segment: &Segment) -> Option<RejectReason> {
    match segment.kind {
        SegmentKind::Write { region, .. }
        | SegmentKind::ReadRequest { region, .. }
        | SegmentKind::CompareAndSwap { region, .. }
        | SegmentKind::FetchAdd { region, .. } => {
            (region == OTHER).then_some(RejectReason::NoRegion)
        }
        _ => None,
    }
}

#[test]
fn reject__ends_the_op_with_its_reason_and_nothing_is_applied() {
    for kind in
        [OpKind::Write { region: OTHER, address: 0 }, OpKind::Read { region: OTHER, address: 0 }]
    {
        let mut pair = pair("8");
        pair.sides[1].rejects = no_such_region;
        pair.submit(0, kind, 100_000);
        pair.submit(0, WRITE, 10_000);
        pair.run_until(FAR);
        let outcomes: Vec<_> =
            pair.sides[0].completions.iter().map(|c| (c.op.get(), c.outcome)).collect();
        let rejected = Outcome::Rejected(RejectReason::NoRegion);
        assert_eq!(outcomes, [(0, rejected), (1, Outcome::Done)]);
        assert!(!pair.sides[1].stored.contains_key(&(false, 0)), "no byte of it was stored");
        assert_eq!(pair.sides[1].stored[&(false, 1)].len(), 10_000);
        assert_eq!(pair.sides[0].endpoint.ops_under_way(pair.flow), Some(0));
    }
}

/// The access is allowed again while a refusal is lost. The op was already reported as not applied,
/// or will be, so its later packets must be refused too.
#[test]
fn reject__holds_for_later_packets_of_the_op_even_if_they_would_be_allowed() {
    let mut pair = pair("8");
    pair.sides[1].rejects = no_such_region;
    pair.submit(0, OpKind::Write { region: OTHER, address: 0 }, 100_000);
    let (at, to, datagram) = pair.take_from_wire().expect("its first packet");
    pair.now = at;
    pair.deliver(to, &datagram);
    let lost = pair.sides[1].endpoint.poll_transmit(at).map(|transmit| transmit.header.body);
    assert!(matches!(lost, Some(Body::Reject(_))), "{lost:?}");
    pair.sides[1].rejects = |_| None;
    pair.run_until(FAR);
    let outcome = pair.sides[0].completions[0].outcome;
    assert_eq!(outcome, Outcome::Rejected(RejectReason::NoRegion));
    assert!(pair.sides[1].stored.is_empty());
    pair.submit(0, WRITE, 10_000);
    pair.run_until(FAR + Span::from_ms(100));
    assert_eq!(pair.sides[0].completions[1].outcome, Outcome::Done, "the next op");
}

#[test]
fn reject__of_a_region_withdrawn_during_an_op_reports_partial_application() {
    let mut pair = pair("1");
    pair.submit(0, WRITE, 100_000);
    pair.run_until(Time::ZERO + Span::from_us(95));
    assert!(!pair.sides[1].stored.is_empty());
    pair.sides[1].rejects =
        |s| matches!(s.kind, SegmentKind::Write { .. }).then_some(RejectReason::NoRegion);
    pair.run_until(FAR);
    let outcome = pair.sides[0].completions[0].outcome;
    assert_eq!(outcome, Outcome::Rejected(RejectReason::Withdrawn));
}

#[test]
fn not_ready__for_more_still_acknowledges_received_packets() {
    let mut pair = pair("8");
    pair.sides[1].room = 1;
    pair.submit(0, OpKind::Message, 1);
    let (at, to, datagram) = pair.take_from_wire().expect("the message");
    pair.now = at;
    pair.deliver(to, &datagram);
    assert!(pair.sides[1].endpoint.poll_transmit(at).is_some(), "an acknowledgement that is lost");
    pair.run_until(FAR);
    let done = |pair: &Pair| -> Vec<_> {
        pair.sides[0].completions.iter().map(|c| (c.op.get(), c.outcome)).collect()
    };
    assert_eq!(done(&pair), [(0, Outcome::Done)], "sent again, it finds no room and is known");
    pair.submit(0, OpKind::Message, 1);
    pair.run_until(FAR + Span::from_ms(100));
    assert_eq!(done(&pair).len(), 1, "no room for a second message");
    pair.sides[1].room = 2;
    pair.run_until(FAR + Span::from_ms(10_000));
    assert_eq!(done(&pair)[1..], [(1, Outcome::Done)]);
    assert_eq!(pair.sides[1].finished, [(0, 1), (1, 1)].into());
}

#[test]
fn cancel__before_anything_was_sent_fails_the_op() {
    let mut pair = pair("1");
    pair.submit(0, WRITE, 4096);
    pair.submit(0, WRITE, 4096);
    assert!(pair.sides[0].endpoint.cancel(pair.now, pair.flow, OpId::new(1)));
    assert!(!pair.sides[0].endpoint.cancel(pair.now, pair.flow, OpId::new(1)), "only once");
    pair.flush(0);
    pair.submit(0, WRITE, 4096);
    pair.run_until(FAR);
    let outcomes: Vec<_> =
        pair.sides[0].completions.iter().map(|c| (c.op.get(), c.outcome)).collect();
    assert_eq!(outcomes, [(1, Outcome::Failed), (0, Outcome::Done), (2, Outcome::Done)]);
    assert_eq!(pair.sides[1].finished.keys().copied().collect::<Vec<_>>(), [0, 2]);
}

#[test]
fn cancel__of_an_op_in_flight_is_unknown_and_stops_the_bytes() {
    let mut pair = pair("4");
    pair.submit(0, OpKind::Message, 4_096_000);
    pair.run_until(Time::ZERO + Span::from_us(101));
    let sent = pair.sides[0].data_sent;
    assert!(pair.sides[0].endpoint.cancel(pair.now, pair.flow, OpId::new(0)));
    pair.flush(0);
    pair.run_until(FAR);
    assert_eq!(pair.sides[0].completions[0].outcome, Outcome::Unknown);
    assert_eq!(pair.sides[0].data_sent, sent + 1, "only the cancel followed");
    assert_eq!(pair.sides[1].cancelled[&0], 1);
    assert_eq!(pair.sides[0].endpoint.ops_under_way(pair.flow), Some(0));
}

#[test]
fn cancel__of_a_read_stops_the_answer() {
    let mut pair = pair("4");
    pair.submit(0, OpKind::Read { region: REGION, address: 0 }, 4_096_000);
    pair.run_until(Time::ZERO + Span::from_us(101));
    assert!(pair.sides[1].endpoint.answers().next().is_some());
    pair.sides[0].endpoint.cancel(pair.now, pair.flow, OpId::new(0));
    pair.flush(0);
    pair.run_until(FAR);
    assert!(pair.sides[1].endpoint.answers().next().is_none());
    assert!(
        pair.sides[1].data_sent < 100,
        "of 1000 packets, {} were sent",
        pair.sides[1].data_sent
    );
    assert_eq!(pair.sides[0].completions[0].outcome, Outcome::Unknown);
    assert_eq!(pair.sides[1].endpoint.in_flight(pair.flow), Some(0));
}

/// The request of an atomic op was executed, but its acknowledgement and its answer were lost. The
/// op is cancelled while the second copy of the request is queued: its outcome is unknown, although
/// no packet of it is in flight.
#[test]
fn cancel__of_an_op_whose_request_was_lost_and_waits_is_unknown() {
    let swap = OpKind::CompareAndSwap { region: REGION, address: 8 };
    for kind in [swap, OpKind::Read { region: REGION, address: 8 }] {
        let mut pair = pair("1");
        let flow = pair.flow;
        let side = &mut pair.sides[0];
        side.endpoint.submit(Time::ZERO, flow, Op { kind, length: 8, user: 0 }).expect("room");
        assert!(side.endpoint.poll_transmit(Time::ZERO).is_some(), "the request leaves");
        let timeout = side.endpoint.next_timeout().expect("in flight");
        side.endpoint.handle_timeout(timeout);
        assert_eq!(side.endpoint.in_flight(flow), Some(0), "declared lost");
        assert!(side.endpoint.cancel(timeout, flow, OpId::new(0)));
        let end = side.endpoint.poll_completion().expect("ended");
        assert_eq!(end.outcome, Outcome::Unknown, "{kind:?}");
    }
}

/// A caller that sleeps until the next timer wakes up at its time and not earlier, and not at all
/// after all ops have ended.
#[test]
fn settled_timers__are_exact_and_end_with_the_ops() {
    let mut pair = pair("1");
    let flow = pair.flow;
    let timeouts = |pair: &Pair| pair.sides[0].endpoint.counters(flow).expect("a flow").timeouts;
    pair.submit(0, OpKind::Message, 8);
    let endpoint = &mut pair.sides[0].endpoint;
    endpoint.settle_timers();
    let due = endpoint.next_timeout().expect("in flight");
    endpoint.handle_timeout(due - Span::from_ns(1));
    endpoint.settle_timers();
    assert_eq!((endpoint.next_timeout(), timeouts(&pair)), (Some(due), 0));
    pair.sides[0].endpoint.handle_timeout(due);
    assert_eq!(timeouts(&pair), 1);
    pair.run_until(FAR);
    let side = &mut pair.sides[0];
    assert_eq!(side.completions.len(), 1);
    side.endpoint.settle_timers();
    assert_eq!(side.endpoint.next_timeout(), None);
}

/// A cancellation that overtakes the request keeps the peer from executing it.
#[test]
fn cancel__that_arrives_before_the_request_of_an_atomic_op_prevents_it() {
    let mut pair = pair("1");
    pair.lose = vec![(0, 0)];
    pair.submit(0, OpKind::FetchAdd { region: REGION, address: 0 }, 8);
    pair.sides[0].endpoint.cancel(pair.now, pair.flow, OpId::new(0));
    pair.flush(0);
    pair.run_until(FAR);
    let [ours, peer] = &pair.sides;
    assert_eq!((peer.word, peer.cancelled.get(&0)), (0, Some(&1)));
    assert_eq!(ours.completions[0].outcome, Outcome::Unknown);
}

/// Runs random ops, cancellations and refusals over a network with faults.
fn run(seed: u64) {
    let mut choices = Random(seed ^ 0xca11);
    let mut pair = Pair::new(&constant("10"), EndpointConfig::default(), seed);
    pair.faults = Faults {
        loss: choices.below(150),
        duplication: choices.below(100),
        corruption: choices.below(100),
        trimming: Random(seed ^ 0x7213).below(200),
        reorder: Span::from_us(choices.below(60)),
    };
    pair.sides[1].rejects = no_such_region;
    let mut expected = Vec::new();
    for op in 0..20 {
        let region = if choices.chance(200) { OTHER } else { REGION };
        let length = choices.below(60_000);
        let (kind, length) = match choices.below(5) {
            0 => (OpKind::Write { region, address: 0 }, length),
            1 => (OpKind::Read { region, address: 0 }, length),
            2 => (OpKind::CompareAndSwap { region, address: 0 }, 8),
            3 => (OpKind::FetchAdd { region, address: 0 }, 8),
            _ => (OpKind::Message, length),
        };
        pair.submit(0, kind, length);
        pair.run_until(pair.now + Span::from_us(choices.below(100)));
        let cancel = choices.chance(300);
        if cancel {
            pair.sides[0].endpoint.cancel(pair.now, pair.flow, OpId::new(op));
            pair.flush(0);
        }
        expected.push((kind, cancel));
    }
    pair.run_until(FAR);
    let [ours, peer] = &pair.sides;
    assert_eq!(ours.completions.len(), expected.len(), "seed {seed}: each op completes once");
    for completion in &ours.completions {
        let op = completion.op.get();
        let (kind, cancel) = expected[op as usize];
        let read = matches!(kind, OpKind::Read { .. });
        let refused = matches!(
            kind,
            OpKind::Write { region: OTHER, .. }
                | OpKind::Read { region: OTHER, .. }
                | OpKind::CompareAndSwap { region: OTHER, .. }
                | OpKind::FetchAdd { region: OTHER, .. }
        );
        if kind.is_atomic() {
            let executed = peer.finished.get(&op).copied();
            match completion.outcome {
                Outcome::Done => assert!(!refused && executed == Some(1), "seed {seed}: op {op}"),
                Outcome::Rejected(_) => assert!(refused && executed.is_none(), "seed {seed}"),
                Outcome::Failed => assert!(cancel && executed.is_none(), "seed {seed}: op {op}"),
                Outcome::Unknown => assert!(cancel, "seed {seed}: op {op}"),
            }
            continue;
        }
        match completion.outcome {
            Outcome::Done => {
                assert!(!refused, "seed {seed}: op {op} is not allowed");
                let owner = usize::from(read);
                let holder = if read { ours } else { peer };
                let length = completion.submitted.length;
                let bytes: Vec<u8> = (0..length).map(|i| byte(owner, read, op, i)).collect();
                let stored = holder.stored.get(&(read, op)).map_or(&[][..], Vec::as_slice);
                assert!(stored == bytes, "seed {seed}: bytes of op {op}");
            }
            Outcome::Rejected(reason) => {
                assert!(refused && reason == RejectReason::NoRegion, "seed {seed}: op {op}");
            }
            Outcome::Failed => {
                assert!(cancel, "seed {seed}: op {op}");
                assert!(!peer.finished.contains_key(&op), "seed {seed}: op {op} was applied");
            }
            Outcome::Unknown => assert!(cancel, "seed {seed}: op {op}"),
        }
    }
    assert!(peer.finished.values().all(|&times| times == 1), "seed {seed}: applied once");
    assert!(peer.endpoint.answers().next().is_none(), "seed {seed}: no answer stays behind");
    for side in &pair.sides {
        assert_eq!(side.endpoint.in_flight(pair.flow), Some(0), "seed {seed}");
        assert_eq!(side.endpoint.ops_under_way(pair.flow), Some(0), "seed {seed}");
    }
}

#[test]
fn cancelled_and_refused_ops_end_once_despite_network_faults() {
    (0..500).for_each(run);
}

#[test]
fn set_packet_size__divides_lost_ranges_again() {
    let mut pair = pair("8");
    pair.lose = (0..8).map(|seq| (0, seq)).collect();
    pair.submit(0, WRITE, 32_768);
    let size = PacketSizeEvent {
        payload_before: Bytes::new(4096),
        payload: Bytes::new(1000),
        packet: Bytes::new(1064),
    };
    pair.sides[0].endpoint.set_packet_size(pair.flow, &size);
    pair.run_until(FAR);
    assert_eq!(pair.sides[0].completions[0].outcome, Outcome::Done);
    let expected: Vec<u8> = (0..32_768).map(|i| byte(0, false, 0, i)).collect();
    assert!(pair.sides[1].stored[&(false, 0)] == expected);
    let lengths = pair.log.iter().filter_map(|(_, side, header)| match header.body {
        Body::Data(segment) if *side == 0 && header.seq.get() >= 8 => Some(segment.length),
        _ => None,
    });
    let longest = lengths.max();
    assert_eq!(longest, Some(1000));
}

/// A window in packets immediately keeps its size in bytes. With packets nine times as long, a
/// window of 9 packets admits 1; with packets a ninth as long, a window of 9 admits 81.
#[test]
fn set_packet_size__counts_for_the_next_poll() {
    let swift = build("swift", Some("paper"), &[("initial_cwnd", "9")]).expect("swift");
    let size = |before: u64, now: u64| PacketSizeEvent {
        payload_before: Bytes::new(before),
        payload: Bytes::new(now),
        packet: Bytes::new(now + 64),
    };
    for (before, now, sent_before, sent_after) in [(1000, 9000, 2, 0), (9000, 1000, 9, 72)] {
        let config = EndpointConfig { max_payload: before, ..EndpointConfig::default() };
        let mut endpoint = Endpoint::new(config);
        let flow = endpoint.open(FlowId::new(0), &swift, &FlowInfo::default());
        let op = Op { kind: WRITE, length: 1 << 20, user: 0 };
        endpoint.submit(Time::ZERO, flow, op).expect("room");
        for _ in 0..sent_before {
            assert!(endpoint.poll_data(Time::ZERO).is_some());
        }
        endpoint.set_packet_size(flow, &size(before.into(), now));
        let sent = core::iter::from_fn(|| endpoint.poll_data(Time::ZERO)).count();
        assert_eq!(sent, sent_after, "{before} to {now} bytes");
    }
}

/// A flow keeps its pace if it is evaluated at a later time than that of the next poll: 4160 B at 1
/// Gb/s take 33.28 us.
#[test]
fn poll_data__goes_by_its_own_time() {
    let config =
        EndpointConfig { flow_rate: Some(Rate::from_gbps(1)), ..EndpointConfig::default() };
    let mut endpoint = Endpoint::new(config);
    let flow = endpoint.open(FlowId::new(0), &constant("8"), &FlowInfo::default());
    let at = |ns| Time::ZERO + Span::from_ns(ns);
    let op = Op { kind: WRITE, length: 4096, user: 0 };
    endpoint.submit(at(0), flow, op).expect("room");
    assert!(endpoint.poll_data(at(0)).is_some());
    endpoint.submit(at(40_000), flow, op).expect("room");
    assert!(endpoint.poll_data(at(10_000)).is_none(), "before its time");
    endpoint.handle_timeout(at(34_000));
    assert!(endpoint.poll_data(at(34_000)).is_some());
}

/// ExpressPass repeats a request after 10 ms. While no packet can leave, simulated time must not
/// stop at that time.
#[test]
fn handle_timeout__of_a_flow_whose_request_has_not_left_waits_for_the_poll() {
    let expresspass =
        build("expresspass", None, &[("request_timeout", "10ms")]).expect("expresspass");
    let mut endpoint = Endpoint::new(EndpointConfig::default());
    let flow = endpoint.open(FlowId::new(0), &expresspass, &FlowInfo::default());
    let op = Op { kind: WRITE, length: 4096, user: 0 };
    endpoint.submit(Time::ZERO, flow, op).expect("room");
    assert_eq!(endpoint.next_timeout(), None, "a control packet waits, and nothing is in flight");
    let later = Time::ZERO + Span::from_ms(20);
    endpoint.handle_timeout(later);
    // The first request has been due since 0 ms, the second since 10 ms.
    for number in 0..2 {
        let sent = endpoint.poll_transmit(later).map(|transmit| transmit.header.body);
        let request = Body::Control(Control::CreditRequest { packets: 1 });
        assert_eq!(sent, Some(request), "{number}");
    }
    assert!(endpoint.poll_transmit(later).is_none());
    let next = endpoint.next_timeout().expect("the next request");
    assert!(next >= Time::ZERO + Span::from_ms(30), "{next}");
}

#[test]
fn release__uses_the_place_again_with_a_clean_flow() {
    let mut pair = pair("4");
    pair.submit(0, WRITE, 100_000);
    for side in 0..2 {
        pair.sides[side].endpoint.release(pair.now, pair.flow);
        pair.flush(side);
    }
    assert_eq!(pair.sides[0].completions[0].outcome, Outcome::Unknown);
    while pair.take_from_wire().is_some() {}
    for side in &mut pair.sides {
        assert_eq!(
            side.endpoint.open(FlowId::new(0), &constant("4"), &FlowInfo::default()),
            pair.flow
        );
        assert_eq!(side.endpoint.in_flight(pair.flow), Some(0));
    }
    pair.sides[0].completions.clear();
    pair.submit(0, WRITE, 100_000);
    pair.run_until(FAR);
    let done = pair.sides[0].completions[0];
    assert_eq!((done.op.get(), done.outcome), (0, Outcome::Done));
    assert_eq!(pair.sides[1].finished[&0], 1);
}

/// Flows 0 and 2 leave by port 0, flow 1 by port 1, and the ports are free in turn. Flows that wait
/// for their port keep their position in the queue, so that 0 and 2 share their port equally.
#[test]
fn poll_data_of__flows_that_wait_for_a_port_keep_their_place() {
    let mut endpoint = Endpoint::new(EndpointConfig::default());
    for flow in [0, 1, 2].map(FlowId::new) {
        endpoint.open(flow, &constant("64"), &FlowInfo::default());
        let op = Op { kind: WRITE, length: 1_000_000, user: 0 };
        endpoint.submit(Time::ZERO, flow, op).expect("submit");
    }
    let mut sent = [0; 3];
    for step in 0..40 {
        let free = step % 2;
        let transmit = endpoint.poll_data_of(
            Time::ZERO,
            |ports| ports & 1 << free != 0,
            |flow, _| {
                let port = flow.get() % 2;
                if port == free { Turn::Send } else { Turn::Wait(1 << port) }
            },
        );
        sent[transmit.expect("a packet").flow.index()] += 1;
    }
    assert_eq!(sent, [10, 20, 10]);
}
