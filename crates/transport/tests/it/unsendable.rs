//! Ops that no packet can express, and packets that could not be built.
#![allow(non_snake_case)] // `function__situation`

use crate::support::Pair;
use apus_algorithms::registry::build;
use apus_transport::{EndpointConfig, Op, OpKind, Outcome, SubmitError};
use apus_units::{FlowId, OpId, Time};
use apus_wire::{Body, RegionKey, RejectReason, SegmentKind};

const REGION: RegionKey = RegionKey::new(7);
const WRITE: OpKind = OpKind::Write { region: REGION, address: 0 };
const READ: OpKind = OpKind::Read { region: REGION, address: 0 };
const FAR: Time = Time::from_ps(10_000_000_000_000);

fn pair() -> Pair {
    let algorithm = build("swift", None, &[]).expect("swift");
    Pair::new(&algorithm, EndpointConfig::default(), 1)
}

#[test]
fn submit__of_an_op_that_reaches_2_to_the_64_is_refused_and_below_it_is_accepted() {
    let mut pair = pair();
    for address in [u64::MAX, u64::MAX - 9, 1 << 63] {
        let fits = address.checked_add(10).is_some();
        for kind in
            [OpKind::Write { region: REGION, address }, OpKind::Read { region: REGION, address }]
        {
            let op = Op { kind, length: 10, user: 0 };
            let taken = pair.sides[0].endpoint.submit(pair.now, pair.flow, op);
            assert_eq!(taken.err(), (!fits).then_some(SubmitError::AddressOverflow), "{kind:?}");
        }
    }
    assert_eq!(pair.sides[0].endpoint.ops_under_way(pair.flow), Some(2), "those at 2^63");
}

#[test]
fn submit__of_an_atomic_op_needs_8_bytes_at_a_multiple_of_8() {
    let mut pair = pair();
    let mut submit = |address, length| {
        for kind in [
            OpKind::CompareAndSwap { region: REGION, address },
            OpKind::FetchAdd { region: REGION, address },
        ] {
            let op = Op { kind, length, user: 0 };
            let taken = pair.sides[0].endpoint.submit(pair.now, pair.flow, op);
            let expected = match (address, length) {
                (_, 0 | 7 | 9 | 16) => Err(SubmitError::NotAWord),
                (0 | 8 | 0xffff_ffff_ffff_fff0, 8) => Ok(()),
                (0xffff_ffff_ffff_fff8, 8) => Err(SubmitError::AddressOverflow),
                _ => Err(SubmitError::Unaligned),
            };
            assert_eq!(taken.map(|_| ()), expected, "{kind:?}, {length}");
        }
    };
    for address in [0, 1, 4, 7, 8, u64::MAX, u64::MAX - 7, u64::MAX - 15] {
        for length in [0, 7, 8, 9, 16] {
            submit(address, length);
        }
    }
}

#[test]
fn take_back__leaves_the_packet_neither_in_flight_nor_lost_and_the_flow_continues() {
    let mut pair = pair();
    let flow = pair.flow;
    let endpoint = &mut pair.sides[0].endpoint;
    let cwnd = endpoint.cwnd(flow);
    let op = |length| Op { kind: WRITE, length, user: 0 };
    let bad = endpoint.submit(Time::ZERO, flow, op(5_000)).expect("room");
    let polled = endpoint.poll_transmit(Time::ZERO).expect("a packet");
    assert_eq!(endpoint.in_flight(flow), Some(1));
    endpoint.take_back(Time::ZERO, flow, polled.header.seq);
    assert_eq!(endpoint.in_flight(flow), Some(0));
    assert!(endpoint.cancel(Time::ZERO, flow, bad));
    endpoint.submit(Time::ZERO, flow, op(3_000)).expect("room");
    pair.flush(0);
    pair.run_until(FAR);
    let side = &pair.sides[0];
    let ends: Vec<_> = side.completions.iter().map(|c| (c.op.get(), c.outcome)).collect();
    assert_eq!(ends, [(0, Outcome::Unknown), (1, Outcome::Done)]);
    let counters = side.endpoint.counters(flow).expect("open");
    assert_eq!((counters.fast_losses, counters.timeout_losses, counters.timeouts), (0, 0, 0));
    assert!(side.endpoint.cwnd(flow) >= cwnd, "no event decreased the window");
    assert_eq!(
        side.endpoint.ops_under_way(flow),
        Some(0),
        "the peer has acknowledged the cancellation of op 0"
    );
    let sent_of_op = |log: &[(Time, usize, apus_wire::Header)], op| {
        let carries = |body: &Body| matches!(body, Body::Data(s) if s.op == OpId::new(op) && s.kind != SegmentKind::Cancel);
        log.iter().filter(|(_, from, header)| *from == 0 && carries(&header.body)).count()
    };
    assert_eq!(sent_of_op(&pair.log, 0), 0);
}

#[test]
fn refuse_answer__ends_the_peers_read_also_if_the_first_refusal_is_lost() {
    for lost in [false, true] {
        let mut pair = pair();
        let flow = pair.flow;
        pair.submit(0, READ, 10_000);
        // The request arrives; the answer's first packet cannot be built.
        let (at, to, request) = pair.take_from_wire().expect("a request");
        pair.now = at;
        pair.deliver(to, &request);
        let endpoint = &mut pair.sides[1].endpoint;
        assert_eq!(endpoint.answers().collect::<Vec<_>>(), [(flow, OpId::new(0), REGION)]);
        assert_eq!(endpoint.answers_of(flow).collect::<Vec<_>>(), [REGION]);
        let data = loop {
            let polled = endpoint.poll_transmit(at).expect("an answer");
            if matches!(polled.header.body, Body::Data(_)) {
                break polled;
            }
        };
        let refuse = |pair: &mut Pair| {
            let now = pair.now;
            let reason = RejectReason::OutOfBounds;
            pair.sides[1].endpoint.refuse_answer(now, flow, OpId::new(0), reason);
        };
        endpoint.take_back(at, flow, data.header.seq);
        refuse(&mut pair);
        assert_eq!(pair.sides[1].endpoint.answers().count(), 0);
        if lost {
            while pair.sides[1].endpoint.poll_transmit(at).is_some() {}
            refuse(&mut pair);
        }
        pair.flush(1);
        pair.run_until(FAR);
        let ends: Vec<_> = pair.sides[0].completions.iter().map(|c| c.outcome).collect();
        assert_eq!(ends, [Outcome::Rejected(RejectReason::OutOfBounds)]);
        let counters = pair.sides[1].endpoint.counters(flow).expect("open");
        assert_eq!((counters.timeouts, counters.timeout_losses), (0, 0));
        let cancelled =
            |body: &Body| matches!(body, Body::Data(s) if s.kind == SegmentKind::Cancel);
        let cancels = pair.log.iter().filter(|(_, from, h)| *from == 0 && cancelled(&h.body));
        assert_eq!(cancels.count(), 1, "it acknowledges the refusal");
        assert_eq!(pair.sides[0].endpoint.in_flight(FlowId::new(0)), Some(0));
    }
}
