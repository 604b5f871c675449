//! Trimmed packets, and the negative acknowledgements that report them.

use apus_algorithms::registry::build;
use apus_transport::{Arrival, Endpoint, EndpointConfig, Handled, Op, OpKind};
use apus_units::{FlowId, OpId, PacketNumber, Span, Time};
use apus_wire::{Ack, Body, Header, Nack, RegionKey, Segment, SegmentKind, Trimmed};

const FLOW: FlowId = FlowId::new(0);
/// Bytes of the op of these tests: six packets of 100 B.
const OP_LENGTH: u64 = 600;

fn endpoint(window: &str) -> Endpoint<apus_algorithms::AlgorithmConfig> {
    let algorithm = build("constant", None, &[("window", window)]).expect("constant");
    let config = EndpointConfig { max_payload: 100, ..EndpointConfig::default() };
    let mut endpoint = Endpoint::new(config);
    endpoint.open(FLOW, &algorithm, &apus_cc::FlowInfo::default());
    endpoint
}

fn arrival(us: u64, marked: bool) -> Arrival {
    let now = Time::from_ps(us * 1_000_000);
    Arrival { now, nic_received_at: now, hops: 1, marked, receiver_level: 0 }
}

fn data(seq: u64, place: u64) -> Header {
    let segment = Segment {
        op: OpId::new(0),
        kind: SegmentKind::Message,
        offset: 100 * place,
        length: 100,
        op_length: OP_LENGTH,
        attached: None,
    };
    Header { flow: FLOW, seq: PacketNumber::new(seq), body: Body::Data(segment) }
}

fn trimmed(seq: u64, place: u64) -> Header {
    let Header { body: Body::Data(segment), .. } = data(seq, place) else { unreachable!() };
    let rest = Trimmed::of(&segment, true).expect("a message can be trimmed");
    Header { body: Body::Trimmed(rest), ..data(seq, place) }
}

fn bodies(endpoint: &mut Endpoint<apus_algorithms::AlgorithmConfig>, us: u64) -> Vec<Body> {
    let now = Time::from_ps(us * 1_000_000);
    core::iter::from_fn(|| endpoint.poll_ack(now)).map(|sent| sent.header.body).collect()
}

fn nack(packet: u64) -> Header {
    let nack = Nack { packet: PacketNumber::new(packet), last_hop: true, marked: false };
    Header { flow: FLOW, seq: PacketNumber::new(90 + packet), body: Body::Nack(nack) }
}

/// Returns an acknowledgement of one packet.
fn ack(packet: u64) -> Header {
    let packet = PacketNumber::new(packet);
    let ack = Ack {
        largest: packet,
        bitmap: 1,
        echo: packet,
        remote_queuing: Span::ZERO,
        hops: 1,
        marked: 0,
        receiver_level: 0,
        echo_marked: false,
        missing: None,
    };
    Header { flow: FLOW, seq: PacketNumber::new(50), body: Body::Ack(ack) }
}

/// Each trimmed packet is reported by one negative acknowledgement, at once, and by no other
/// report.
#[test]
fn trimmed_packets_are_reported_one_by_one_and_not_in_the_bitmap() {
    let mut receiver = endpoint("8");
    assert!(matches!(
        receiver.handle_packet(&arrival(1, false), &data(0, 0)),
        Handled::Data { .. }
    ));
    assert_eq!(receiver.handle_packet(&arrival(1, true), &trimmed(1, 1)), Handled::Trimmed);
    assert_eq!(receiver.handle_packet(&arrival(1, false), &trimmed(2, 2)), Handled::Trimmed);
    let nack = |packet, marked| {
        Body::Nack(Nack { packet: PacketNumber::new(packet), last_hop: true, marked })
    };
    let [first, second, third] = bodies(&mut receiver, 1)[..] else { panic!("three packets") };
    assert_eq!([first, second], [nack(1, true), nack(2, false)]);
    let Body::Ack(Ack { largest, bitmap, marked, .. }) = third else { panic!("{third:?}") };
    assert_eq!((largest.get(), bitmap, marked), (0, 1, 0));
    assert!(bodies(&mut receiver, 2).is_empty(), "a trimmed packet causes no acknowledgement");
}

/// The largest batch of a host, with every packet trimmed.
#[test]
fn a_batch_of_128_trimmed_packets_is_reported_whole() {
    let mut receiver = endpoint("8");
    for seq in 0..128 {
        assert_eq!(
            receiver.handle_packet(&arrival(1, false), &trimmed(seq, seq)),
            Handled::Trimmed
        );
    }
    let reports = bodies(&mut receiver, 1);
    let number = |body: &Body| match body {
        Body::Nack(nack) => nack.packet.get(),
        body => panic!("{body:?}"),
    };
    assert!(reports.iter().map(number).eq(0..128));
}

/// The payload has arrived in another packet, so the trimmed packet counts as received.
#[test]
fn a_trimmed_packet_whose_payload_is_here_is_acknowledged() {
    let mut receiver = endpoint("8");
    receiver.handle_packet(&arrival(1, false), &data(0, 3));
    bodies(&mut receiver, 1);
    assert_eq!(receiver.handle_packet(&arrival(2, false), &trimmed(4, 3)), Handled::Duplicate);
    let [Body::Ack(ack)] = bodies(&mut receiver, 2)[..] else { panic!("an acknowledgement") };
    assert_eq!((ack.largest.get(), ack.bitmap), (4, 0b10001));
    // A range beyond the op's 600 bytes comes from a broken peer.
    assert_eq!(receiver.handle_packet(&arrival(3, false), &trimmed(5, 6)), Handled::Refused);
    assert!(bodies(&mut receiver, 3).is_empty());
}

/// With a window of 2, the trimmed range leaves before new data, and only when the window has room.
#[test]
fn a_trimmed_range_is_sent_again_before_new_data_within_the_window() {
    let mut sender = endpoint("2");
    let now = Time::from_ps(1_000_000);
    sender.submit(now, FLOW, Op { kind: OpKind::Message, length: OP_LENGTH, user: 0 }).expect("op");
    let send = |sender: &mut Endpoint<_>| -> Vec<(u64, u64)> {
        core::iter::from_fn(|| sender.poll_data(now))
            .map(|sent| match sent.header.body {
                Body::Data(segment) => (sent.header.seq.get(), segment.offset),
                body => panic!("{body:?}"),
            })
            .collect()
    };
    assert_eq!(send(&mut sender), [(0, 0), (1, 100)]);
    let handled = sender.handle_packet(&arrival(5, false), &nack(0));
    assert_eq!(handled, Handled::Nack { outstanding: true });
    assert_eq!(send(&mut sender), [(2, 0)]);
    assert_eq!(sender.in_flight(FLOW), Some(2));
    // A repeated report, and a report of a packet that was never sent, have no effect.
    for packet in [0, 7] {
        let handled = sender.handle_packet(&arrival(6, false), &nack(packet));
        assert_eq!(handled, Handled::Nack { outstanding: false });
    }
    assert!(send(&mut sender).is_empty());
    let counters = sender.counters(FLOW).expect("counters");
    assert_eq!((counters.trims, counters.packets_sent, counters.fast_losses), (1, 3, 0));
}

/// Whole windows repeatedly arrive trimmed. The window does not shrink (here it is constant), so
/// the headers alone may fill a link. Such packets are then retransmitted only after their timeout,
/// until a packet arrives whole.
#[test]
fn packets_that_arrive_trimmed_in_many_rounds_wait_for_their_timeout() {
    const ROUNDS: u64 = 4;
    let algorithm = build("constant", None, &[("window", "2")]).expect("constant");
    let config = EndpointConfig {
        max_payload: 100,
        backs_off_after: ROUNDS as u32,
        ..EndpointConfig::default()
    };
    let mut sender = Endpoint::new(config);
    sender.open(FLOW, &algorithm, &apus_cc::FlowInfo::default());
    let send = |sender: &mut Endpoint<_>, us: u64| {
        let now = Time::from_ps(us * 1_000_000);
        core::iter::from_fn(|| sender.poll_data(now)).map(|sent| sent.header.seq.get()).collect()
    };
    let op = Op { kind: OpKind::Message, length: OP_LENGTH, user: 0 };
    sender.submit(Time::from_ps(1_000_000), FLOW, op).expect("op");
    let mut in_flight: Vec<u64> = send(&mut sender, 1);
    let mut us = 1;
    for round in 1..=ROUNDS {
        us += 5;
        assert_eq!(in_flight.len(), 2, "round {round}");
        for &packet in &in_flight {
            let handled = sender.handle_packet(&arrival(us, false), &nack(packet));
            assert_eq!(handled, Handled::Nack { outstanding: true }, "round {round}");
        }
        in_flight = send(&mut sender, us);
    }
    us += 5;
    for &packet in &in_flight {
        let handled = sender.handle_packet(&arrival(us, false), &nack(packet));
        assert_eq!(handled, Handled::Nack { outstanding: true });
    }
    assert_eq!(send(&mut sender, us), [0_u64; 0]);
    assert_eq!(sender.counters(FLOW).expect("counters").trims, 2 * (ROUNDS + 1));
    // Timers may be evaluated again before the timeout.
    let mut expires = Time::ZERO;
    for _ in 0..8 {
        if sender.counters(FLOW).expect("counters").timeouts == 0 {
            expires = sender.next_timeout().expect("a timer");
            sender.handle_timeout(expires);
        }
    }
    assert!(expires > Time::from_ps(us * 1_000_000));
    us = expires.since(Time::ZERO).as_ps().div_ceil(1_000_000);
    in_flight = send(&mut sender, us);
    assert_eq!((in_flight.len(), sender.counters(FLOW).expect("counters").timeouts), (2, 1));
    // A packet that arrives trimmed after that still waits for its timeout. After a packet has
    // arrived whole, the next trimmed one does not.
    sender.handle_packet(&arrival(us + 5, false), &nack(in_flight[0]));
    assert_eq!(send(&mut sender, us + 5), [0_u64; 0]);
    let body = Body::Ack(crate::extension::received(in_flight[1]));
    let ack = Header { flow: FLOW, seq: PacketNumber::new(500), body };
    sender.handle_packet(&arrival(us + 6, false), &ack);
    let next: Vec<u64> = send(&mut sender, us + 6);
    assert_eq!(next.len(), 1);
    sender.handle_packet(&arrival(us + 11, false), &nack(next[0]));
    assert_eq!(send(&mut sender, us + 11).len(), 1);
}

/// An algorithm with a rate and no window: packets in flight do not stop new data.
#[test]
fn a_rate_based_flow_whose_packets_all_arrive_trimmed_sends_nothing_before_its_timeout() {
    const ROUNDS: u32 = 4;
    let settings = [("rate", "1Gbps"), ("min_rto", "1s"), ("initial_rto", "1s")];
    let algorithm = build("constant", Some("rate"), &settings).expect("constant");
    let config =
        EndpointConfig { max_payload: 100, backs_off_after: ROUNDS, ..EndpointConfig::default() };
    let mut sender = Endpoint::new(config);
    sender.open(FLOW, &algorithm, &apus_cc::FlowInfo::default());
    let op = Op { kind: OpKind::Message, length: 100_000, user: 0 };
    sender.submit(Time::ZERO, FLOW, op).expect("op");
    let mut rounds = Vec::new();
    // A packet of 164 bytes takes 1.3 us. Each packet is reported before the next one leaves.
    for us in 0..10_000 {
        let now = Time::from_ps(us * 1_000_000);
        sender.handle_timeout(now);
        if let Some(sent) = sender.poll_data(now) {
            rounds.push(us);
            sender.handle_packet(&arrival(us, false), &nack(sent.header.seq.get()));
        }
    }
    assert_eq!(rounds.len() as u32, ROUNDS + 1, "{rounds:?}");
    let now = Time::ZERO + Span::from_secs(2);
    sender.handle_timeout(now);
    assert_eq!(sender.counters(FLOW).expect("counters").timeouts, 1);
    assert!(sender.poll_data(now).is_some());
}

/// Acknowledgements of requests postpone the timeout. Once they declare the packet that waited for
/// it lost, data leaves at once.
#[test]
fn requests_in_flight_do_not_hold_back_data_that_arrived_trimmed() {
    let algorithm = build("constant", None, &[("window", "1")]).expect("constant");
    let config =
        EndpointConfig { max_payload: 100, backs_off_after: 1, ..EndpointConfig::default() };
    let mut sender = Endpoint::new(config);
    sender.open(FLOW, &algorithm, &apus_cc::FlowInfo::default());
    let mut us = 1;
    let write = Op { kind: OpKind::Message, length: 50, user: 0 };
    let read = OpKind::Read { region: RegionKey::new(1), address: 0 };
    let read = Op { kind: read, length: 50, user: 0 };
    sender.submit(Time::from_ps(us * 1_000_000), FLOW, write).expect("op");
    let mut sent = Vec::new();
    let poll = |sender: &mut Endpoint<_>, us: u64, sent: &mut Vec<(u64, bool)>| {
        while let Some(transmit) = sender.poll_transmit(Time::from_ps(us * 1_000_000)) {
            if let Body::Data(segment) = transmit.header.body {
                sent.push((transmit.header.seq.get(), segment.kind == SegmentKind::Message));
            }
        }
    };
    poll(&mut sender, us, &mut sent);
    for round in 0..2 {
        us += 5;
        sender.handle_packet(&arrival(us, false), &nack(round));
        poll(&mut sender, us, &mut sent);
    }
    assert_eq!(sent, [(0, true), (1, true)], "packet 1 waits for its timeout");
    // One read after another, so that one is always in flight.
    for number in 0..200 {
        us += 5;
        sender.submit(Time::from_ps(us * 1_000_000), FLOW, read).expect("op");
        poll(&mut sender, us, &mut sent);
        if number > 0 {
            let requests: Vec<u64> = sent.iter().filter(|s| !s.1).map(|s| s.0).collect();
            sender.handle_packet(&arrival(us, false), &ack(requests[number - 1]));
            poll(&mut sender, us, &mut sent);
        }
        if sent.iter().filter(|sent| sent.1).count() == 3 {
            assert_eq!(sender.counters(FLOW).expect("counters").timeouts, 0);
            return;
        }
    }
    panic!("the message did not leave again: {sent:?}");
}
