//! Limits of a broken, unresponsive or hostile peer, and correct treatment of a busy one.
#![allow(non_snake_case)] // `function__situation`

use crate::support::{Faults, Pair};
use apus_algorithms::balancers;
use apus_algorithms::registry::{AlgorithmConfig, build};
use apus_cc::FlowInfo;
use apus_transport::{
    Arrival, Endpoint, EndpointConfig, Handled, LossRule, MAX_OP_BYTES, Op, OpKind, Outcome,
    SpreadConfig, SubmitError,
};
use apus_units::{FlowId, OpId, PacketNumber, Span, Time};
use apus_wire::{Body, Header, RegionKey, RejectReason, Segment, SegmentKind};

const WRITE: OpKind = OpKind::Write { region: RegionKey::new(7), address: 0 };
const READ: OpKind = OpKind::Read { region: RegionKey::new(7), address: 0 };
const REQUEST: SegmentKind = SegmentKind::ReadRequest { region: RegionKey::new(7), address: 0 };
const FAR: Time = Time::from_ps(10_000_000_000_000);

fn constant(window: &str) -> AlgorithmConfig {
    build("constant", None, &[("window", window)]).expect("constant")
}

fn pair(window: &str, config: EndpointConfig) -> Pair {
    Pair::new(&constant(window), config, 1)
}

fn endpoint() -> Endpoint<AlgorithmConfig> {
    let mut endpoint = Endpoint::new(EndpointConfig::default());
    endpoint.open(FlowId::new(0), &constant("1"), &FlowInfo::default());
    endpoint
}

fn segment(kind: SegmentKind, op: u64, offset: u64, length: u32, op_length: u64) -> Segment {
    Segment { op: OpId::new(op), kind, offset, length, op_length, attached: None }
}

fn deliver(endpoint: &mut Endpoint<AlgorithmConfig>, seq: u64, segment: Segment) -> Handled {
    let arrival = Arrival {
        now: Time::ZERO,
        nic_received_at: Time::ZERO,
        hops: 1,
        marked: false,
        receiver_level: 0,
    };
    let header =
        Header { flow: FlowId::new(0), seq: PacketNumber::new(seq), body: Body::Data(segment) };
    endpoint.handle_packet(&arrival, &header)
}

/// Requests are not subject to the window, so they must not fill it either: a flow that keeps
/// reading can still write.
#[test]
fn reads_do_not_keep_a_write_from_leaving() {
    let mut pair = pair("1", EndpointConfig::default());
    for _ in 0..4 {
        pair.submit(0, READ, 64);
    }
    pair.submit(0, WRITE, 4096);
    for _ in 0..200 {
        pair.run_until(pair.now + Span::from_us(1));
        let done = pair.sides[0].completions.len();
        if pair.sides[0].completions.iter().any(|c| c.submitted.kind == WRITE) {
            return;
        }
        // Reads in a closed loop.
        for _ in done..4 {
            pair.submit(0, READ, 64);
        }
    }
    panic!("the write is still waiting after 200 us");
}

#[test]
fn read_requests_in_flight_are_bounded() {
    let mut pair = pair("1", EndpointConfig::default());
    for _ in 0..1000 {
        pair.submit(0, READ, 64);
    }
    assert_eq!(pair.sides[0].data_sent, 64);
    pair.run_until(FAR);
    assert_eq!(pair.sides[0].completions.len(), 1000);
}

/// The answer proves that the request arrived, so a lost acknowledgement of the request is not
/// congestion.
#[test]
fn a_lost_ack_of_a_request_is_no_timeout_after_the_answer() {
    let mut pair = pair("1", EndpointConfig::default());
    pair.submit(0, READ, 64);
    let (at, to, request) = pair.take_from_wire().expect("request");
    pair.now = at;
    pair.deliver(to, &request);
    pair.faults = Faults { loss: 1000, ..Faults::default() };
    // The acknowledgement is sent first and is lost; the answer arrives unharmed.
    let ack = pair.sides[1].endpoint.poll_ack(pair.now);
    assert!(matches!(ack.map(|a| a.header.body), Some(Body::Ack(_))));
    pair.faults = Faults::default();
    pair.flush(1);
    pair.run_until(FAR);
    assert_eq!(pair.sides[0].completions.len(), 1);
    assert_eq!(pair.sides[0].endpoint.counters(pair.flow).map(|c| c.timeouts), Some(0));
}

/// A receiver without room for a message repeats its last acknowledgement. The echoed packet was
/// acknowledged before, so its age is not an RTT, although its record is still stored behind a
/// missing packet.
#[test]
fn an_acknowledgement_repeated_without_news_gives_no_rtt() {
    let mut endpoint = Endpoint::new(EndpointConfig::default());
    endpoint.open(FlowId::new(0), &constant("4"), &FlowInfo::default());
    let op = Op { kind: WRITE, length: 64, user: 0 };
    for _ in 0..2 {
        endpoint.submit(Time::ZERO, FlowId::new(0), op).expect("submit");
        endpoint.poll_data(Time::ZERO).expect("a packet");
    }
    let mut acknowledge = |us: u64| {
        let now = Time::ZERO + Span::from_us(us);
        let arrival =
            Arrival { now, nic_received_at: now, hops: 1, marked: false, receiver_level: 0 };
        let ack = apus_wire::Ack {
            largest: PacketNumber::new(1),
            bitmap: 1,
            echo: PacketNumber::new(1),
            remote_queuing: Span::ZERO,
            hops: 1,
            marked: 0,
            receiver_level: 0,
            echo_marked: false,
            missing: None,
        };
        let header =
            Header { flow: FlowId::new(0), seq: PacketNumber::new(0), body: Body::Ack(ack) };
        endpoint.handle_packet(&arrival, &header)
    };
    assert!(matches!(acknowledge(20), Handled::Ack(Some(_))), "the first gives an RTT sample");
    assert_eq!(acknowledge(900), Handled::Ack(None));
}

#[test]
fn unanswered_read_requests_are_refused_beyond_the_limit() {
    let mut endpoint = endpoint();
    let limit = u64::from(EndpointConfig::default().max_ops);
    for op in 0..limit {
        let handled = deliver(&mut endpoint, op, segment(REQUEST, op, 0, 0, 1 << 20));
        assert_eq!(handled, Handled::Data { bytes: 0, finished: true });
    }
    let refused = deliver(&mut endpoint, limit, segment(REQUEST, limit, 0, 0, 1 << 20));
    assert_eq!(refused, Handled::Refused);
}

/// If a peer never acknowledges answers, the number of words stored for it is bounded, and no op
/// beyond the bound is executed.
#[test]
fn atomic_ops_whose_answers_are_not_acknowledged_are_refused_beyond_the_limit() {
    let mut endpoint = endpoint();
    let add = SegmentKind::FetchAdd { region: RegionKey::new(7), address: 8 };
    let limit = u64::from(EndpointConfig::default().max_ops);
    for op in 0..limit {
        let request = segment(add, op, 0, 8, 8);
        assert_eq!(deliver(&mut endpoint, op, request), Handled::Atomic);
        assert!(endpoint.answer_atomic(Time::ZERO, FlowId::new(0), &request, op));
        while endpoint.poll_transmit(Time::ZERO).is_some() {}
    }
    let request = segment(add, limit, 0, 8, 8);
    assert_eq!(deliver(&mut endpoint, limit, request), Handled::Refused);
    let repeated = segment(add, limit - 1, 0, 8, 8);
    assert_eq!(deliver(&mut endpoint, limit + 1, repeated), Handled::Refused, "not executed again");
}

/// An op is executed once, regardless of the content of its copies.
#[test]
fn copies_of_an_atomic_op_with_other_operands_numbers_or_targets_have_no_effect() {
    let mut endpoint = endpoint();
    let at = |address| SegmentKind::FetchAdd { region: RegionKey::new(7), address };
    let first = segment(at(8), 0, 0, 8, 8);
    let later = segment(at(8), 1, 0, 8, 8);
    assert_eq!(deliver(&mut endpoint, 0, later), Handled::Atomic, "a gap before it");
    for (seq, copy) in [(0, later), (1, later), (1, later)] {
        assert_eq!(deliver(&mut endpoint, seq, copy), Handled::Duplicate);
    }
    let swap = SegmentKind::CompareAndSwap { region: RegionKey::new(7), address: 8 };
    for other in [segment(at(16), 1, 0, 8, 8), segment(swap, 1, 0, 16, 16)] {
        assert_eq!(deliver(&mut endpoint, 2, other), Handled::Refused);
    }
    assert_eq!(deliver(&mut endpoint, 2, first), Handled::Atomic);
    assert_eq!(deliver(&mut endpoint, 3, first), Handled::Duplicate, "behind the first open op");
    assert!(!endpoint.answer_atomic(Time::ZERO, FlowId::new(9), &first, 0), "no such flow");
    let write = segment(SegmentKind::Message, 0, 0, 8, 8);
    assert!(!endpoint.answer_atomic(Time::ZERO, FlowId::new(0), &write, 0), "not atomic");
}

#[test]
fn endless_ops_are_refused() {
    let mut endpoint = endpoint();
    for (seq, kind) in [REQUEST, SegmentKind::Message].into_iter().enumerate() {
        let huge = segment(kind, 0, 0, 0, MAX_OP_BYTES + 1);
        assert_eq!(deliver(&mut endpoint, seq as u64, huge), Handled::Refused);
    }
    let op = Op { kind: WRITE, length: MAX_OP_BYTES + 1, user: 0 };
    assert_eq!(endpoint.submit(Time::ZERO, FlowId::new(0), op), Err(SubmitError::TooLong));
}

/// Segments from the end of an op backwards make one gap each. They are refused beyond a limit
/// until the gaps fill, and refused segments are not acknowledged.
#[test]
fn gaps_within_an_op_are_bounded() {
    let mut endpoint = endpoint();
    let part = |index: u64| segment(SegmentKind::Message, 0, 2 * index + 1, 1, 1 << 20);
    let taken = (0..10_000).filter(|&i| {
        deliver(&mut endpoint, i, part(10_000 - i)) == Handled::Data { bytes: 1, finished: false }
    });
    assert_eq!(taken.count(), 1024);
    let front = segment(SegmentKind::Message, 0, 0, 1, 1 << 20);
    assert_eq!(
        deliver(&mut endpoint, 10_001, front),
        Handled::Data { bytes: 1, finished: false },
        "the front still fits"
    );
}

/// The limit of an op halves with each doubling of its position among the unfinished ops of its
/// flow, down to 4. Many ops are therefore not as expensive as the first one. The limit of an op
/// rises as earlier ops end.
#[test]
fn gaps_within_all_ops_of_a_flow_are_bounded() {
    let mut endpoint = endpoint();
    let mut seq = 0;
    let mut take = |kind: SegmentKind, op: u64, offset: u64, length: u32| {
        seq += 1;
        let part = segment(kind, op, offset, length, 4096);
        matches!(deliver(&mut endpoint, seq, part), Handled::Data { .. })
    };
    // Every second byte, from the end.
    let mut gaps = |kind, op: u64| (0..1500).filter(|i| take(kind, op, 4095 - 2 * i, 1)).count();
    let places = [0, 1, 2, 3, 6, 7, 127, 255, 1023];
    let counts = places.map(|op| gaps(SegmentKind::Message, op));
    assert_eq!(counts, [1024, 512, 512, 256, 256, 128, 8, 4, 4]);
    assert!(take(SegmentKind::Message, 1, 0, 4095), "no gap is left");
    assert!(
        !take(SegmentKind::Message, 2, 1, 1),
        "an op that has ended keeps its place behind others"
    );
    assert!(take(SegmentKind::Message, 0, 0, 4095));
    assert!(take(SegmentKind::Message, 2, 1, 1), "the first now");
}

/// As for the ops of the peer, but down to 64: an answer may arrive long before the answers to
/// older ops.
#[test]
fn gaps_within_all_answers_to_a_flow_are_bounded() {
    let mut endpoint = endpoint();
    let op = Op { kind: READ, length: 4096, user: 0 };
    for _ in 0..256 {
        endpoint.submit(Time::ZERO, FlowId::new(0), op).expect("submit");
    }
    let mut seq = 0;
    let mut gaps = |op: u64| {
        let mut taken = 0;
        for index in 0..1500 {
            seq += 1;
            let part = segment(SegmentKind::ReadResponse, op, 4095 - 2 * index, 1, 4096);
            taken += u32::from(deliver(&mut endpoint, seq, part) != Handled::Refused);
        }
        taken
    };
    assert_eq!([0, 1, 7, 255].map(&mut gaps), [1024, 512, 128, 64]);
}

#[test]
fn ops_beyond_the_window_are_refused() {
    let mut endpoint = endpoint();
    let far = segment(SegmentKind::Message, 1 << 40, 0, 1, 1);
    assert_eq!(deliver(&mut endpoint, 0, far), Handled::Refused);
}

/// A request that was acknowledged but never answered ends as unknown.
#[test]
fn give_up_after__ends_a_read_whose_answer_never_arrives() {
    let config =
        EndpointConfig { give_up_after: Some(Span::from_ms(50)), ..EndpointConfig::default() };
    let mut pair = pair("1", config);
    pair.submit(0, READ, 64);
    let (at, to, request) = pair.take_from_wire().expect("request");
    pair.now = at;
    pair.deliver(to, &request);
    let ack = pair.sides[1].endpoint.poll_ack(pair.now).expect("ack");
    let arrival = Arrival {
        now: pair.now,
        nic_received_at: pair.now,
        hops: 1,
        marked: false,
        receiver_level: 0,
    };
    // The acknowledgement arrives; then the peer stops, so its answer is never sent.
    pair.sides[0].endpoint.handle_packet(&arrival, &ack.header);
    while let Some(at) = pair.sides[0].endpoint.next_timeout() {
        pair.now = pair.now.max(at);
        pair.sides[0].endpoint.handle_timeout(pair.now);
    }
    let completion = pair.sides[0].endpoint.poll_completion().expect("an end");
    assert_eq!(completion.outcome, Outcome::Unknown);
    assert!(completion.completed_at < Time::ZERO + Span::from_ms(52));
}

/// An unlimited number of timeouts costs neither memory nor an increasing time per timeout.
#[test]
fn a_silent_peer_costs_the_same_at_every_timeout() {
    let config = EndpointConfig { max_backed_off: None, ..EndpointConfig::default() };
    let mut pair = pair("4", config);
    pair.faults = Faults { loss: 1000, ..Faults::default() };
    pair.submit(0, WRITE, 4096 * 4);
    pair.run_until(Time::ZERO + Span::from_secs(100));
    let counters = pair.sides[0].endpoint.counters(pair.flow).expect("flow");
    // An RTO of 1 ms: 100,000 timeouts, which would take minutes if each one walked all earlier
    // packets.
    assert!(counters.timeouts > 90_000, "{}", counters.timeouts);
    pair.faults = Faults::default();
    pair.run_until(Time::ZERO + Span::from_secs(101));
    assert_eq!(pair.sides[0].completions.len(), 1, "and it recovers when the peer is back");
}

/// A duplicate that the network made must hide neither the timing of new packets from the sender
/// nor losses from its algorithm.
#[test]
fn a_duplicate_in_a_batch_does_not_hide_losses() {
    let mut pair = pair("8", EndpointConfig::default());
    pair.submit(0, WRITE, 4096 * 8);
    let flights: Vec<_> = core::iter::from_fn(|| pair.take_from_wire()).collect();
    let deliver = |pair: &mut Pair, index: usize| {
        let (at, to, datagram) = &flights[index];
        pair.now = *at;
        pair.deliver(*to, datagram);
    };
    deliver(&mut pair, 0);
    pair.flush(1);
    pair.run_until(pair.now + Span::from_us(6));
    for index in [2, 3, 4, 5, 0] {
        deliver(&mut pair, index);
    }
    pair.flush(1);
    pair.run_until(pair.now + Span::from_us(100));
    let counters = pair.sides[0].endpoint.counters(pair.flow).expect("flow");
    assert!(counters.fast_losses >= 1);
    assert!(pair.sides[0].samples.len() >= 2, "the batch gave an RTT sample");
}

/// Gaps in the answer to a read are bounded like those in a message. Refused ranges are not
/// acknowledged, so they are retransmitted.
#[test]
fn gaps_within_an_answer_are_bounded_and_refused_ranges_are_not_acknowledged() {
    let mut endpoint = endpoint();
    let op = Op { kind: READ, length: 1 << 20, user: 0 };
    endpoint.submit(Time::ZERO, FlowId::new(0), op).expect("submit");
    let part = |index: u64| segment(SegmentKind::ReadResponse, 0, 2 * index + 1, 1, 1 << 20);
    for index in 0..1024 {
        let handled = deliver(&mut endpoint, index, part(index));
        assert_eq!(handled, Handled::Data { bytes: 1, finished: false });
    }
    assert_eq!(deliver(&mut endpoint, 1024, part(5000)), Handled::Refused);
    let acknowledged =
        core::iter::from_fn(|| endpoint.poll_ack(Time::ZERO)).find_map(|t| match t.header.body {
            Body::Ack(ack) => Some(ack.largest),
            _ => None,
        });
    assert_eq!(acknowledged, Some(PacketNumber::new(1023)));
}

/// No timer makes an aborted flow send a packet.
#[test]
fn an_aborted_flow_stays_silent() {
    let mut pair = pair("1", EndpointConfig::default());
    pair.submit(0, WRITE, 4096 * 3);
    pair.submit(0, READ, 64);
    pair.sides[0].endpoint.abort(pair.now, FlowId::new(0));
    assert!(pair.sides[0].endpoint.poll_transmit(pair.now).is_none());
    while let Some(at) = pair.sides[0].endpoint.next_timeout() {
        pair.sides[0].endpoint.handle_timeout(at);
        assert!(pair.sides[0].endpoint.poll_transmit(at).is_none());
    }
}

/// Packet numbers up to 2^64 - 1. With the largest numbers, sums of number and range would
/// overflow. With every one of the last 128 numbers, the search for the first missing number would
/// not end.
#[test]
fn packet_numbers_near_the_end_of_their_range_are_refused() {
    let range = 128;
    let spread = SpreadConfig { loss: LossRule::Timeout, range, ack_bytes: 0 };
    let policy = balancers::build("oblivious", None, &[], None, &[]).expect("oblivious");
    for spreads in [false, true] {
        let mut endpoint = endpoint();
        if spreads {
            endpoint.spread(FlowId::new(0), policy.policy().clone(), spread, 1);
        }
        let cancel = || segment(SegmentKind::Cancel, 0, 0, 0, 0);
        for seq in u64::MAX - u64::from(range) + 1..=u64::MAX {
            assert_eq!(deliver(&mut endpoint, seq, cancel()), Handled::Refused);
        }
        for seq in (1 << 62) - u64::from(range)..=1 << 62 {
            assert_ne!(deliver(&mut endpoint, seq, cancel()), Handled::Refused);
        }
    }
}

/// A read ends here with its answer. Its peer withdraws the region before the acknowledgement of
/// the answer arrives, refuses the read, and repeats the refusal until it is confirmed.
#[test]
fn the_refusal_of_a_read_that_has_ended_is_confirmed_once() {
    let mut pair = pair("8", EndpointConfig::default());
    pair.refuses = |from, header| from == 0 && matches!(header.body, Body::Ack(_));
    pair.submit(0, READ, 64);
    pair.run_until(Time::ZERO + Span::from_us(20));
    assert_eq!(pair.sides[0].completions.len(), 1);
    pair.refuses = |_, _| false;
    let cancellations = |pair: &Pair| {
        let cancels = |header: &Header| matches!(header.body, Body::Data(s) if s.kind == SegmentKind::Cancel && s.op == OpId::new(0));
        pair.log.iter().filter(|(_, from, header)| *from == 0 && cancels(header)).count()
    };
    for confirmed in 1..=2 {
        // Repeated before the first refusal is confirmed, and again long afterwards.
        for _ in 0..3 {
            let refused = RejectReason::Withdrawn;
            pair.sides[1].endpoint.refuse_answer(pair.now, pair.flow, OpId::new(0), refused);
            pair.flush(1);
            pair.run_until(pair.now + Span::from_us(2));
        }
        pair.run_until(pair.now + Span::from_ms(20));
        assert_eq!(cancellations(&pair), confirmed);
        assert_eq!(pair.sides[0].endpoint.in_flight(pair.flow), Some(0));
    }
    // Refusals of ops that were never submitted are not confirmed.
    let unknown = OpId::new(7);
    pair.sides[1].endpoint.refuse_answer(pair.now, pair.flow, unknown, RejectReason::Withdrawn);
    pair.flush(1);
    pair.run_until(pair.now + Span::from_ms(20));
    assert_eq!(cancellations(&pair), 2);
    pair.submit(0, READ, 64);
    pair.run_until(pair.now + Span::from_ms(20));
    assert_eq!(pair.sides[0].completions.len(), 2, "the flow goes on");
}

/// A peer causes more refusals of reads on its flow than the endpoint queues.
#[test]
fn refusals_of_one_flow_leave_room_for_those_of_another() {
    let mut endpoint = endpoint();
    let other = endpoint.open(FlowId::new(1), &constant("1"), &FlowInfo::default());
    let refuse = |endpoint: &mut Endpoint<_>, flow, op| {
        endpoint.refuse_answer(Time::ZERO, flow, OpId::new(op), RejectReason::Withdrawn)
    };
    let queued = (0..1000).filter(|&op| refuse(&mut endpoint, FlowId::new(0), op)).count();
    assert!(refuse(&mut endpoint, other, 0));
    assert!(refuse(&mut endpoint, other, 0), "it is queued already");
    let mut sent = Vec::new();
    while let Some(transmit) = endpoint.poll_ack(Time::ZERO) {
        sent.push(transmit.flow);
    }
    assert_eq!(sent.len(), queued + 1);
    assert_eq!((queued, sent.last()), (64, Some(&other)), "a quarter of 256");
}

/// The index of a flow becomes free once, even if the flow is released several times.
#[test]
fn a_flow_is_released_once() {
    let mut endpoint = endpoint();
    for _ in 0..3 {
        endpoint.release(Time::ZERO, FlowId::new(0));
        assert_eq!(endpoint.flows(), 0);
    }
    let open = |endpoint: &mut Endpoint<_>| {
        endpoint.open(FlowId::new(0), &constant("1"), &FlowInfo::default())
    };
    assert_eq!([open(&mut endpoint), open(&mut endpoint)], [FlowId::new(0), FlowId::new(1)]);
    endpoint.release(Time::ZERO, FlowId::new(0));
    assert_eq!(endpoint.flows(), 1);
}
