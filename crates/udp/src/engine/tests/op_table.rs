//! The op table alone: a transport without a peer, and time as an argument.

use apus_cc::FlowInfo;
use apus_transport::{Arrival, Observed};
use apus_units::{FlowId, PacketNumber};
use apus_wire::{Ack, Body, Header};

use super::*;

/// Time after which a refusal is repeated.
const RETRY: Span = Span::from_ms(100);

/// A table with one flow. Its connection allows two outstanding ops.
struct Fixture {
    table: OpTable,
    flow: FlowId,
    connection: Arc<ConnectionState>,
}

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_ms(ms)
}

impl Fixture {
    fn new() -> Self {
        Self::with_ops(4)
    }

    /// As [`Fixture::new`], with flows that accept `max_ops` ops of peers.
    fn with_ops(max_ops: u32) -> Self {
        let config = config();
        let mut endpoint = Endpoint::new(EndpointConfig::default());
        let flow = endpoint.open(FlowId::new(3), &config.algorithm, &FlowInfo::default());
        let address = ([10, 0, 0, 2], 1).into();
        let engine = Arc::new(EngineStatus::new(address, crate::sys::Families::V4, &[]));
        // The handle allows more ops than the transport accepts at a time.
        let limits = ConnectionLimits { max_ops: 2, max_message: 1 << 20 };
        let connection = Arc::new(ConnectionState::new(
            SessionId(1),
            address,
            PeerIdentity::default(),
            Arc::clone(&engine),
            limits,
            5,
            None,
        ));
        let table = OpTable::new(endpoint, engine, RETRY, max_ops);
        Self { table, flow, connection }
    }

    /// Opens further flows.
    fn open(&mut self, count: usize) -> Vec<FlowId> {
        let algorithm = config().algorithm;
        let endpoint = &mut self.table.endpoint;
        let open = |_| endpoint.open(FlowId::new(9), &algorithm, &FlowInfo::default());
        (0..count).map(open).collect()
    }

    /// Refuses a read of the peer of a flow at time 0.
    fn refuse(&mut self, flow: FlowId, op: u64) {
        let op = apus_units::OpId::new(op);
        self.table.refuse_read(at(0), flow, op, RejectReason::OutOfBounds);
    }

    /// Submits a message at `now`. Each op belongs to another flow of the handle, so that its limit does not interfere.
    fn submit(
        &mut self,
        now: Time,
        index: usize,
        deadline: Option<Duration>,
    ) -> (u64, oneshot::Receiver<OpResult>) {
        let payload = Buffers::Payload(Bytes::from_static(b"payload"));
        let (pending, receiver) =
            pending(&self.connection, index, OpKind::Message, payload, deadline);
        let ticket = pending.ticket;
        self.table.submit(now, self.flow, pending);
        (ticket, receiver)
    }
}

fn end(receiver: &oneshot::Receiver<OpResult>) -> Option<OpError> {
    receiver.try_recv().ok().map(|result| result.expect_err("no peer can complete it"))
}

#[test]
fn the_transport_gets_as_many_ops_as_the_peer_accepts_and_the_others_wait() {
    let mut fixture = Fixture::new();
    let ops: Vec<_> = (0..4).map(|i| fixture.submit(at(0), i, None)).collect();
    assert_eq!(fixture.table.outstanding(&[fixture.flow]), 2);
    fixture.table.cancel(at(1), &[fixture.flow], ops[0].0);
    assert!(fixture.table.complete());
    assert_eq!(end(&ops[0].1), Some(OpError::NotSent(Cause::Cancelled)), "no packet was sent");
    // The number of the cancelled op counts until the peer confirms that it skips the number.
    assert_eq!(fixture.table.outstanding(&[fixture.flow]), 1);
    fixture.table.cancel(at(1), &[fixture.flow], ops[3].0);
    assert_eq!(end(&ops[3].1), Some(OpError::NotSent(Cause::Cancelled)), "it still waited");
    assert_eq!((end(&ops[1].1), end(&ops[2].1)), (None, None));
}

/// A peer that accepts two ops of a flow counts a cancelled op until it confirms the cancellation. The confirming
/// acknowledgement completes no op.
#[test]
fn a_confirmed_cancellation_starts_an_op_that_waits() {
    let mut fixture = Fixture::new();
    let ops: Vec<_> = (0..4).map(|i| fixture.submit(at(0), i, None)).collect();
    for (ticket, _) in &ops[..2] {
        fixture.table.cancel(at(1), &[fixture.flow], *ticket);
    }
    assert!(fixture.table.complete());
    assert_eq!(fixture.table.outstanding(&[fixture.flow]), 0, "the peer still counts both");
    let cancels = std::iter::from_fn(|| fixture.table.endpoint.poll_transmit(at(1))).count();
    assert_eq!(cancels, 2);
    for seq in 0..2 {
        let now = at(2 + seq);
        let ack = Ack {
            largest: PacketNumber::new(seq),
            bitmap: (1 << (seq + 1)) - 1,
            echo: PacketNumber::new(seq),
            remote_queuing: Span::ZERO,
            hops: 0,
            marked: 0,
            receiver_level: 0,
            echo_marked: false,
            missing: None,
        };
        let body = Body::Ack(ack);
        let header = Header { flow: fixture.flow, seq: PacketNumber::new(0), body };
        let arrival =
            Arrival { now, nic_received_at: now, hops: 0, marked: false, receiver_level: 0 };
        fixture.table.handle_control(&arrival, &header, &Observed::default());
        assert!(!fixture.table.complete());
        assert_eq!(u64::from(fixture.table.outstanding(&[fixture.flow])), seq + 1);
    }
    assert_eq!((end(&ops[2].1), end(&ops[3].1)), (None, None));
    assert!(fixture.table.endpoint.poll_data(at(4)).is_some(), "a packet of an op that waited");
}

/// A close waits for the last op, even if this op never left the queue.
#[test]
fn the_end_of_the_last_op_is_reported_even_if_it_still_waited() {
    for deadline in [None, Some(Duration::from_millis(50))] {
        let mut fixture = Fixture::new();
        let ops: Vec<_> = (0..2).map(|i| fixture.submit(at(0), i, None)).collect();
        for (ticket, _) in &ops {
            fixture.table.cancel(at(1), &[fixture.flow], *ticket);
        }
        assert!(fixture.table.complete());
        // The peer still counts both ops.
        let (last, end_of_last) = fixture.submit(at(2), 2, deadline);
        fixture.table.watch(&[fixture.flow]);
        assert_eq!(fixture.table.poll_idle(), None);
        match deadline {
            None => fixture.table.cancel(at(3), &[fixture.flow], last),
            Some(_) => fixture.table.handle_deadlines(at(52)),
        }
        let cause = if deadline.is_some() { Cause::Deadline } else { Cause::Cancelled };
        assert_eq!(end(&end_of_last), Some(OpError::NotSent(cause)));
        assert_eq!(fixture.table.poll_idle(), Some(SessionId(1)));
    }
}

/// A connection of five flows, of which three have ops.
#[test]
fn a_cancellation_looks_for_its_op_in_the_flow_that_the_ticket_names() {
    let mut fixture = Fixture::new();
    let mut flows = vec![fixture.flow];
    flows.extend(fixture.open(4));
    let mut submitted = Vec::new();
    for index in [4, 0, 2, 4, 0, 2] {
        let payload = Buffers::Payload(Bytes::from_static(b"payload"));
        let op = pending(&fixture.connection, index, OpKind::Message, payload, None);
        assert_eq!(crate::connection_state::flow_of(op.0.ticket, 5), index);
        submitted.push((op.0.ticket, op.1));
        fixture.table.submit(at(0), flows[index], op.0);
    }
    // An op with the same number in a flow of another connection is not cancelled.
    let others = fixture.open(5);
    fixture.table.cancel(at(1), &others, submitted[0].0);
    assert!(!fixture.table.complete());
    for place in [3, 1, 5, 0, 4, 2] {
        fixture.table.cancel(at(1), &flows, submitted[place].0);
        assert!(fixture.table.complete());
        assert_eq!(end(&submitted[place].1), Some(OpError::NotSent(Cause::Cancelled)));
    }
    assert_eq!(fixture.table.outstanding(&flows), 0);
}

#[test]
fn deadlines_pass_in_the_table_and_in_the_queue() {
    let mut fixture = Fixture::new();
    let [slow, soon, waiting] = [(0, None), (1, Some(20)), (2, Some(10))]
        .map(|(index, ms)| fixture.submit(at(100), index, ms.map(Duration::from_millis)).1);
    assert_eq!(fixture.table.next_timeout(), at(110), "the deadline of the op that waits");
    // Data is sent, so the peer may have seen the ops that the transport has accepted.
    while fixture.table.endpoint.poll_data(at(101)).is_some() {}
    fixture.table.handle_deadlines(at(109));
    assert_eq!(end(&waiting), None);
    fixture.table.handle_deadlines(at(110));
    assert_eq!(end(&waiting), Some(OpError::NotSent(Cause::Deadline)));
    fixture.table.handle_deadlines(at(120));
    assert!(fixture.table.complete());
    assert_eq!(end(&soon), Some(OpError::Unknown(Cause::Deadline)));
    assert_eq!(end(&slow), None);
}

#[test]
fn the_end_of_a_connection_ends_its_ops_and_leaves_no_deadline() {
    let mut fixture = Fixture::new();
    let hour = Some(Duration::from_secs(3600));
    let ops: Vec<_> = (0..3).map(|i| fixture.submit(at(0), i, hour).1).collect();
    assert!(fixture.table.endpoint.poll_data(at(1)).is_some(), "a packet of the first op");
    fixture.connection.set_ended(End::Silent);
    fixture.table.end_flows(at(2), &[fixture.flow]);
    let cause = Cause::Ended(End::Silent);
    let ends: Vec<_> = ops.iter().map(end).collect();
    let expected = [OpError::Unknown(cause), OpError::NotSent(cause), OpError::NotSent(cause)];
    assert_eq!(ends, expected.map(Some));
    fixture.table.release_flows(at(2), &[fixture.flow]);
    fixture.table.handle_deadlines(at(4_000_000));
    assert!(!fixture.table.complete());
    let transport = fixture.table.endpoint.next_timeout().unwrap_or(Time::MAX);
    assert_eq!(fixture.table.next_timeout(), transport, "no deadline is left");
}

#[test]
fn a_watched_flow_is_reported_when_its_last_op_ends() {
    let mut fixture = Fixture::new();
    let flows = [fixture.flow];
    let tickets: Vec<_> = (0..2).map(|i| fixture.submit(at(0), i, None).0).collect();
    fixture.table.watch(&flows);
    for (ticket, idle) in tickets.into_iter().zip([None, Some(SessionId(1))]) {
        fixture.table.cancel(at(1), &flows, ticket);
        fixture.table.complete();
        assert_eq!(fixture.table.poll_idle(), idle);
        assert_eq!(fixture.table.are_idle(&flows), idle.is_some());
    }
}

/// A close may begin before the first op of a flow.
#[test]
fn a_flow_is_watched_before_its_first_op() {
    let mut fixture = Fixture::new();
    let flows = [fixture.flow];
    fixture.table.watch(&flows);
    let (ticket, _) = fixture.submit(at(0), 0, None);
    fixture.table.cancel(at(1), &flows, ticket);
    fixture.table.complete();
    assert_eq!(fixture.table.poll_idle(), Some(SessionId(1)));
}

#[test]
fn a_refused_read_is_refused_again_until_the_peer_confirms() {
    let mut fixture = Fixture::new();
    let op = apus_units::OpId::new(7);
    let refusals = |fixture: &mut Fixture, now| {
        std::iter::from_fn(|| fixture.table.endpoint.poll_ack(now)).count()
    };
    fixture.table.refuse_read(at(0), fixture.flow, op, RejectReason::Withdrawn);
    assert_eq!(refusals(&mut fixture, at(0)), 1);
    fixture.table.repeat_refusals(at(99));
    assert_eq!(refusals(&mut fixture, at(99)), 0, "not due yet");
    assert_eq!(fixture.table.next_timeout(), at(100));
    fixture.table.repeat_refusals(at(100));
    assert_eq!(refusals(&mut fixture, at(100)), 1);
    fixture.table.refusals.on_cancelled(fixture.flow, op);
    fixture.table.repeat_refusals(at(300));
    assert_eq!(refusals(&mut fixture, at(300)), 0);
    assert_eq!(fixture.table.refusals.next_at, Time::MAX);
}

/// The waits double from 100 ms to 1600 ms.
#[test]
fn a_refusal_that_stays_unconfirmed_is_repeated_ever_more_seldom() {
    let mut fixture = Fixture::new();
    let op = apus_units::OpId::new(7);
    fixture.table.refuse_read(at(0), fixture.flow, op, RejectReason::Withdrawn);
    let mut sent = Vec::new();
    for ms in 0..7_000 {
        fixture.table.repeat_refusals(at(ms));
        if fixture.table.endpoint.poll_ack(at(ms)).is_some() {
            sent.push(ms);
        }
    }
    assert_eq!(sent, [0, 100, 300, 700, 1_500, 3_100, 4_700, 6_300]);
}

/// A peer with a later flow continuously causes new refusals of reads, faster than they are repeated, and confirms the old
/// ones.
#[test]
fn a_refusal_is_repeated_although_new_ones_come_without_end() {
    let mut fixture = Fixture::new();
    let algorithm = config().algorithm;
    let other = fixture.table.endpoint.open(FlowId::new(9), &algorithm, &FlowInfo::default());
    let (first, op) = (fixture.flow, apus_units::OpId::new);
    fixture.table.refuse_read(at(0), first, op(7), RejectReason::Withdrawn);
    let mut repeated = 0;
    for ms in 0..400 {
        for n in 0..80 {
            let number = ms * 80 + n;
            fixture.table.refuse_read(at(ms), other, op(number), RejectReason::Withdrawn);
            if number >= 160 {
                fixture.table.refusals.on_cancelled(other, op(number - 160));
            }
        }
        while fixture.table.endpoint.poll_ack(at(ms)).is_some() {}
        fixture.table.repeat_refusals(at(ms));
        while let Some(sent) = fixture.table.endpoint.poll_ack(at(ms)) {
            repeated += u32::from(sent.flow == first);
        }
    }
    assert_eq!(repeated, 2, "after 100 and 300 ms");
}

/// There are more refusals than the transport queues: of flows within their limit, and of one flow that never confirms.
#[test]
fn refusals_of_a_flow_are_repeated_whatever_the_peers_of_other_flows_do() {
    let mut fixture = Fixture::new();
    let others = fixture.open(600);
    // Returns the number of refusals that are sent in a span of time.
    let sent = |fixture: &mut Fixture, from: u64, to: u64| -> usize {
        let mut sent = 0;
        for ms in from..to {
            fixture.table.repeat_refusals(at(ms));
            sent += std::iter::from_fn(|| fixture.table.endpoint.poll_ack(at(ms))).count();
        }
        sent
    };
    let silent = fixture.flow;
    (0..10).for_each(|op| fixture.refuse(silent, op));
    for &flow in &others {
        (0..2).for_each(|op| fixture.refuse(flow, op));
    }
    // Six refusals of the flow that does not confirm are beyond its limit: they are sent once.
    assert_eq!(sent(&mut fixture, 0, 100), 10 + 2 * others.len());
    // Each of the others is repeated once before 300 ms.
    assert_eq!(sent(&mut fixture, 100, 300), 4 + 2 * others.len());
    fixture.table.release_flows(at(300), &others);
    assert_eq!(sent(&mut fixture, 300, 700), 4);
}

/// A peer of 1024 flows has 64 reads of each flow refused, and confirms no refusal. The refusal of another flow is among the
/// last ones.
#[test]
fn the_refusal_of_a_flow_leaves_soon_beside_65536_of_others() {
    let mut fixture = Fixture::with_ops(1024);
    let mut flows = fixture.open(1024);
    let last = flows.pop().expect("1024");
    for op in 0..64 {
        fixture.refuse(fixture.flow, op);
        flows.iter().for_each(|&flow| fixture.refuse(flow, op));
    }
    fixture.refuse(last, 0);
    let mut left = Vec::new();
    for ms in 0..1_500 {
        fixture.table.repeat_refusals(at(ms));
        while let Some(sent) = fixture.table.endpoint.poll_ack(at(ms)) {
            if sent.flow == last {
                left.push(ms);
            }
        }
    }
    assert!(left.first().is_some_and(|&ms| ms < 200), "within two intervals: {left:?}");
    // Repeated after 100, 200 and 400 ms. A turn of 1024 flows, 64 of them per ms, takes 16 ms.
    let waits: Vec<u64> = left.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let expected = [100, 200, 400];
    assert!(waits.len() >= expected.len(), "{left:?}");
    for (wait, expected) in waits.into_iter().zip(expected) {
        assert!((expected..=expected + 20).contains(&wait), "{left:?}");
    }
}

#[test]
fn a_failure_ends_all_ops_as_unknown() {
    let mut fixture = Fixture::new();
    let ops: Vec<_> = (0..3).map(|i| fixture.submit(at(0), i, None).1).collect();
    fixture.table.fail();
    for op in &ops {
        assert_eq!(end(op), Some(OpError::Unknown(Cause::Ended(End::EngineFailed))));
    }
}
