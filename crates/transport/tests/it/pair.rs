//! Two endpoints in virtual time: the guarantees of the transport, one situation per test.
#![allow(non_snake_case)] // `function__situation`

use crate::support::{Faults, Pair, byte};
use apus_algorithms::registry::{AlgorithmConfig, build};
use apus_cc::FlowInfo;
use apus_transport::{
    Arrival, Endpoint, EndpointConfig, Handled, LocalRx, Op, OpKind, Outcome, Recovery, SubmitError,
};
use apus_units::{FlowId, OpId, PacketNumber, Rate, Span, Time};
use apus_wire::{Ack, Body, Header, RegionKey, RejectReason, SegmentKind};

const WRITE: OpKind = OpKind::Write { region: RegionKey::new(7), address: 4096 };
const READ: OpKind = OpKind::Read { region: RegionKey::new(7), address: 0 };
const FAR: Time = Time::from_ps(10_000_000_000_000);

fn constant(window: &str) -> AlgorithmConfig {
    build("constant", None, &[("window", window)]).expect("constant")
}

fn swift(settings: &[(&str, &str)]) -> AlgorithmConfig {
    build("swift", Some("paper"), settings).expect("swift")
}

fn pair(window: &str) -> Pair {
    Pair::new(&constant(window), EndpointConfig::default(), 1)
}

/// Returns the data packets of `side` as (time in us, packet number, op, offset).
fn data_of(pair: &Pair, side: usize) -> Vec<(u64, u64, u64, u64)> {
    let data = pair.log.iter().filter_map(|(at, from, header)| match header.body {
        Body::Data(s) if *from == side => {
            Some((at.as_ps() / 1_000_000, header.seq.get(), s.op.get(), s.offset))
        }
        _ => None,
    });
    data.collect()
}

fn assert_stored(pair: &Pair, owner: usize, answer: bool, op: u64, length: u64) {
    let stored = &pair.sides[1 - owner].stored[&(answer, op)];
    let expected: Vec<u8> = (0..length).map(|i| byte(owner, answer, op, i)).collect();
    assert!(*stored == expected, "op {op} of side {owner}");
}

#[test]
fn write__arrives_and_completes_after_one_round_trip() {
    let mut pair = pair("8");
    pair.submit(0, WRITE, 10_000);
    pair.run_until(FAR);
    assert_stored(&pair, 0, false, 0, 10_000);
    let done = pair.sides[0].completions[0];
    assert_eq!((done.outcome, done.submitted.length), (Outcome::Done, 10_000));
    assert_eq!(done.completed_at.since(done.submitted_at), Span::from_us(10));
    assert_eq!(pair.sides[1].finished[&0], 1);
}

#[test]
fn read__brings_the_peers_bytes() {
    let mut pair = pair("8");
    pair.submit(0, READ, 9_000);
    pair.run_until(FAR);
    // The bytes of the answer come from the peer (side 1) and are numbered by our op.
    assert_stored(&pair, 1, true, 0, 9_000);
    assert_eq!(pair.sides[0].completions.len(), 1);
    assert_eq!(pair.sides[1].completions.len(), 0, "the peer submitted no op");
}

#[test]
fn ops_without_bytes_complete() {
    let mut pair = pair("1");
    pair.submit(0, OpKind::Message, 0);
    pair.submit(0, WRITE, 0);
    pair.submit(0, READ, 0);
    pair.submit(0, OpKind::Message, 1);
    pair.run_until(FAR);
    assert_eq!(pair.sides[0].completions.len(), 4);
    assert!(pair.sides[1].finished.values().all(|&times| times == 1));
}

#[test]
fn both_directions_share_a_flow() {
    let mut pair = pair("4");
    pair.submit(0, WRITE, 50_000);
    pair.submit(1, WRITE, 30_000);
    pair.submit(1, READ, 20_000);
    pair.run_until(FAR);
    assert_stored(&pair, 0, false, 0, 50_000);
    assert_stored(&pair, 1, false, 0, 30_000);
    assert_stored(&pair, 0, true, 1, 20_000);
}

#[test]
fn window__bounds_packets_in_flight() {
    let mut pair = pair("3");
    pair.submit(0, WRITE, 4096 * 20);
    assert_eq!(pair.sides[0].endpoint.in_flight(pair.flow), Some(3));
    while pair.step(FAR) {
        assert!(pair.sides[0].endpoint.in_flight(pair.flow) <= Some(3));
    }
    // 20 packets at 3 per 10 us: the last one leaves in the seventh round.
    assert_eq!(data_of(&pair, 0).last().map(|d| d.0), Some(60));
}

#[test]
fn rtt_sample__is_the_round_trip() {
    let mut pair = pair("1");
    pair.submit(0, WRITE, 4096 * 5);
    pair.run_until(FAR);
    assert_eq!(pair.sides[0].samples.len(), 5);
    assert!(pair.sides[0].samples.iter().all(|s| s.end_to_end_rtt == Span::from_us(10)));
}

/// Swift §3.6: a hole in the bitmap is retransmitted; RFC 9002 §6.1.1: after three later packets.
#[test]
fn swift_3_6_hole_is_retransmitted_under_a_fresh_number() {
    let mut pair = pair("8");
    pair.lose = vec![(0, 2)];
    pair.submit(0, WRITE, 4096 * 8);
    pair.run_until(FAR);
    let data = data_of(&pair, 0);
    // Packets 3, 4 and 5 arrive at 5 us; the acknowledgement of 5 declares packet 2 lost at 10 us.
    assert_eq!(data[8], (10, 8, 0, 2 * 4096));
    assert_eq!(data.len(), 9, "nothing else is resent");
    let counters = pair.sides[0].endpoint.counters(pair.flow).expect("flow");
    assert_eq!((counters.fast_losses, counters.timeouts), (1, 0));
    assert_stored(&pair, 0, false, 0, 4096 * 8);
}

fn go_back_n(window: &str) -> Pair {
    let config = EndpointConfig { recovery: Recovery::GoBackN, ..EndpointConfig::default() };
    Pair::new(&constant(window), config, 1)
}

/// DCQCN §2: RDMA hardware retransmits everything from the lost packet on.
#[test]
fn go_back_n__a_loss_costs_all_packets_behind_it() {
    let mut pair = go_back_n("8");
    pair.lose = vec![(0, 2)];
    pair.submit(0, WRITE, 4096 * 8);
    pair.run_until(FAR);
    // Packets 3 to 7 arrive at 5 us and are dropped. The first of them makes the receiver report
    // the gap, and at 10 us packets 8 to 13 carry the ranges of 2 to 7.
    let data = data_of(&pair, 0);
    assert_eq!(data.len(), 14);
    let resent: Vec<_> = (2..8).map(|i| (10, 6 + i, 0, i * 4096)).collect();
    assert_eq!(data[8..], resent);
    assert_eq!(pair.sides[1].out_of_order, 5);
    // One acknowledgement for each accepted packet, and one report of the gap.
    assert_eq!(pair.sides[1].acks_sent, 8 + 1);
    let counters = pair.sides[0].endpoint.counters(pair.flow).expect("flow");
    assert_eq!((counters.fast_losses, counters.timeouts), (6, 0));
    assert_stored(&pair, 0, false, 0, 4096 * 8);
}

/// A gap is reported once; if packets behind it are lost again, the timeout detects the loss.
#[test]
fn go_back_n__a_gap_is_reported_once() {
    let mut pair = go_back_n("8");
    pair.lose = vec![(0, 2), (0, 8)];
    pair.submit(0, WRITE, 4096 * 8);
    pair.run_until(FAR);
    let counters = pair.sides[0].endpoint.counters(pair.flow).expect("flow");
    assert_eq!((counters.fast_losses, counters.timeouts), (6, 1));
    assert_stored(&pair, 0, false, 0, 4096 * 8);
}

/// News and the report of a gap need separate acknowledgements.
#[test]
fn go_back_n__a_batch_with_a_gap_is_acknowledged_twice() {
    let mut pair = go_back_n("8");
    pair.lose = vec![(0, 2)];
    pair.submit(0, WRITE, 4096 * 8);
    for (at, to, datagram) in core::iter::from_fn(|| pair.take_from_wire()).collect::<Vec<_>>() {
        pair.now = at;
        pair.deliver(to, &datagram);
    }
    pair.flush(1);
    assert_eq!(pair.sides[1].acks_sent, 2);
    pair.run_until(FAR);
    let counters = pair.sides[0].endpoint.counters(pair.flow).expect("flow");
    assert_eq!((counters.fast_losses, counters.timeouts), (6, 0));
    assert_stored(&pair, 0, false, 0, 4096 * 8);
}

/// The bytes of successive ops, and of simultaneous answers, arrive in order.
#[test]
fn go_back_n__ops_and_answers_arrive_complete_despite_losses() {
    for lost in 0..24 {
        let mut pair = go_back_n("6");
        pair.lose = vec![(0, lost), (1, lost / 2)];
        pair.submit(0, WRITE, 4096 * 5);
        pair.submit(0, READ, 4096 * 6);
        pair.submit(0, OpKind::Message, 0);
        pair.submit(0, WRITE, 4096 * 7);
        pair.submit(1, WRITE, 4096 * 4);
        pair.run_until(FAR);
        assert_eq!(pair.sides[0].completions.len(), 4, "lost {lost}");
        assert_stored(&pair, 0, false, 0, 4096 * 5);
        assert_stored(&pair, 1, true, 1, 4096 * 6);
        assert_stored(&pair, 0, false, 3, 4096 * 7);
        assert_stored(&pair, 1, false, 0, 4096 * 4);
    }
}

#[test]
fn reordering_below_the_threshold_is_not_a_loss() {
    let mut pair = pair("4");
    pair.submit(0, WRITE, 4096 * 4);
    let mut datagrams: Vec<_> = core::iter::from_fn(|| pair.take_from_wire()).collect();
    datagrams.swap(0, 2); // 2, 1, 0, 3
    for (at, to, datagram) in datagrams {
        pair.now = at;
        pair.deliver(to, &datagram);
        pair.flush(to);
    }
    pair.run_until(FAR);
    let counters = pair.sides[0].endpoint.counters(pair.flow).expect("flow");
    assert_eq!((counters.packets_sent, counters.fast_losses), (4, 0));
}

/// Swift §3.6: the retransmission timer ensures delivery in the absence of acknowledgements.
#[test]
fn swift_3_6_lost_tail_is_resent_after_the_rto() {
    let config = build("constant", None, &[("window", "4"), ("initial_rto", "300us")]);
    let mut pair = Pair::new(&config.expect("constant"), EndpointConfig::default(), 1);
    pair.lose = vec![(0, 0)];
    pair.submit(0, WRITE, 100);
    pair.run_until(FAR);
    let data = data_of(&pair, 0);
    // 300 us, rounded up to the wheel's slot of 2^17 ps.
    assert_eq!(data, [(0, 0, 0, 0), (300, 1, 0, 0)]);
    assert_eq!(pair.sides[0].completions.len(), 1);
    assert_eq!(pair.sides[0].endpoint.counters(pair.flow).map(|c| c.timeouts), Some(1));
}

/// The timeout runs from the last progress, not from the departure of each packet.
#[test]
fn rto__restarts_with_every_acknowledgement() {
    let settings = [("window", "1"), ("initial_rto", "15us"), ("min_rto", "15us")];
    let config = build("constant", None, &settings).expect("constant");
    let mut pair = Pair::new(&config, EndpointConfig::default(), 1);
    pair.submit(0, WRITE, 4096 * 50);
    pair.run_until(FAR);
    assert_eq!(pair.sides[0].endpoint.counters(pair.flow).map(|c| c.timeouts), Some(0));
}

/// A spurious timeout: the late acknowledgement of the original gives an RTT sample, and the
/// receiver recognises the retransmission as a duplicate.
#[test]
fn spurious_timeout__delivers_once_and_counts_the_duplicate() {
    let settings = [("window", "1"), ("initial_rto", "8us"), ("min_rto", "8us")];
    let config = build("constant", None, &settings).expect("constant");
    let mut pair = Pair::new(&config, EndpointConfig::default(), 1);
    pair.submit(0, WRITE, 100);
    pair.run_until(FAR);
    assert_eq!(pair.sides[1].duplicates, 1);
    assert_eq!(pair.sides[1].finished[&0], 1);
    assert_eq!(pair.sides[0].completions.len(), 1);
    assert_eq!(pair.sides[0].samples[0].end_to_end_rtt, Span::from_us(10));
}

/// NSCC's timeout does not grow. With 4 us and an RTT of 10 us, each packet is declared lost before
/// its acknowledgement arrives: at 4, 8, ... and 32 us. After these 8 timeouts in a row, the
/// acknowledgement of the transmission that left at 24 us ends the op at 34 us.
#[test]
fn timeout__below_the_round_trip_does_not_keep_an_op_from_its_end() {
    let settings = [("network_rtt", "1us"), ("target_queueing", "1us"), ("rto", "4us")];
    let config = build("nscc", Some("drop-tail"), &settings).expect("nscc");
    let mut pair = Pair::new(&config, EndpointConfig::default(), 1);
    pair.submit(0, WRITE, 100);
    pair.run_until(Time::ZERO + Span::from_us(400));
    let completed: Vec<_> = pair.sides[0].completions.iter().map(|c| c.outcome).collect();
    assert_eq!(completed, [Outcome::Done]);
    let at = pair.sides[0].completions[0].completed_at.since(Time::ZERO);
    // Each timeout is late by at most one slot of the timing wheel.
    let slots = Span::from_ps(8 << 17);
    assert!(at >= Span::from_us(34) && at < Span::from_us(34) + slots, "{at}");
    assert_eq!(pair.sides[0].endpoint.in_flight(pair.flow), Some(0));
    assert_eq!(pair.sides[1].finished[&0], 1);
}

/// RFC 6298 §5.5 from the eighth timeout in a row on, up to 20 ms: timeouts at 0.3, 0.6, ... and
/// 2.4 ms, then after 0.6, 1.2, 2.4, 4.8, 9.6, 19.2, 20 and 20 ms. An acknowledgement ends the
/// doubling.
#[test]
fn rfc_6298_5_5_timeout__doubles_up_to_20_ms_while_the_peer_takes_nothing() {
    let settings = [("window", "1"), ("initial_rto", "300us"), ("min_rto", "300us")];
    let config = build("constant", None, &settings).expect("constant");
    let endpoint = EndpointConfig { backs_off_after: 8, ..EndpointConfig::default() };
    let mut pair = Pair::new(&config, endpoint, 1);
    pair.lose = (0..16).chain([17]).map(|number| (0, number)).collect();
    pair.submit(0, WRITE, 100);
    pair.run_until(Time::ZERO + Span::from_ms(100));
    assert_eq!(pair.sides[0].completions.len(), 1);
    pair.submit(0, WRITE, 100);
    pair.run_until(FAR);
    assert_eq!(pair.sides[0].completions.len(), 2);
    let at: Vec<u64> = data_of(&pair, 0).into_iter().map(|(us, ..)| us).collect();
    let waits: Vec<u64> = at.windows(2).map(|two| two[1] - two[0]).collect();
    let doubled = [600, 1200, 2400, 4800, 9600, 19_200, 20_000, 20_000];
    let expected = [&[300; 8][..], &doubled].concat();
    // Each timeout is late by at most one slot of the timing wheel, which is longer for a distant
    // timer.
    let is_due = |(&wait, &due): (&u64, &u64)| (due..=due + 1 + due / 64).contains(&wait);
    assert!(waits[..16].iter().zip(&expected).all(is_due), "{waits:?}");
    assert!((300..=305).contains(&waits[17]), "{waits:?}");
}

/// The peer has room for everything except the message, which the only packet of the window would
/// carry every time.
#[test]
fn timeout__every_second_one_sends_what_is_behind_an_op_without_room() {
    let settings = [("window", "1"), ("initial_rto", "300us"), ("min_rto", "300us")];
    let config = build("constant", None, &settings).expect("constant");
    let endpoint = EndpointConfig { new_after_timeouts: true, ..EndpointConfig::default() };
    let without_room = || {
        let mut pair = Pair::new(&config, endpoint, 1);
        pair.refuses =
            |_, header| matches!(header.body, Body::Data(s) if s.kind == SegmentKind::Message);
        pair.submit(0, OpKind::Message, 100);
        pair
    };
    let mut pair = without_room();
    pair.submit(0, WRITE, 5000);
    pair.run_until(Time::ZERO + Span::from_ms(100));
    assert_eq!(pair.sides[0].completions.len(), 1, "the write");
    // The first timeout retransmits the message, which may have been lost.
    let ops: Vec<u64> = data_of(&pair, 0).into_iter().take(3).map(|(_, _, op, _)| op).collect();
    assert_eq!(ops, [0, 0, 1]);

    // The same holds for the answer to a read of the peer.
    let mut pair = without_room();
    pair.submit(1, READ, 5000);
    pair.run_until(Time::ZERO + Span::from_ms(100));
    assert_eq!(pair.sides[1].completions.len(), 1, "the read");
}

/// Swift §3.4: below one packet the window becomes a delay of rtt / cwnd between packets. A window
/// of 0.5 sends one packet every two RTTs.
#[test]
fn swift_3_4_window_of_a_half_sends_every_two_rtts() {
    // No increase and no decrease: the window keeps its initial value.
    let algorithm = swift(&[
        ("ai", "0.000001"),
        ("initial_cwnd", "0.5"),
        ("base_target", "1ms"),
        ("endpoint_target", "1ms"),
    ]);
    let mut pair = Pair::new(&algorithm, EndpointConfig::default(), 1);
    pair.submit(0, WRITE, 4096 * 6);
    pair.run_until(FAR);
    let sent: Vec<u64> = pair
        .log
        .iter()
        .filter(|(_, side, header)| *side == 0 && matches!(header.body, Body::Data(_)))
        .map(|(at, ..)| at.as_ps())
        .collect();
    assert_eq!(sent.len(), 6);
    for gap in sent.windows(2).skip(1).map(|w| w[1] - w[0]) {
        // 2 x 10 us, late by less than one slot of the wheel.
        assert!((20_000_000..20_000_000 + (1 << 17)).contains(&gap), "{gap} ps");
    }
}

/// Swift §3.6: an incoming data packet generates a pure ACK, which is sent immediately, while
/// reverse data respects the pacing delay. Small read requests do not wait either (design:
/// transport).
#[test]
fn swift_3_6_acks_and_read_requests_do_not_wait_behind_paced_data() {
    let algorithm = swift(&[
        ("ai", "0.000001"),
        ("initial_cwnd", "0.01"),
        ("base_target", "1ms"),
        ("endpoint_target", "1ms"),
    ]);
    let mut pair = Pair::new(&algorithm, EndpointConfig::default(), 1);
    pair.submit(0, WRITE, 4096 * 3); // the second packet waits for milliseconds
    pair.run_until(Time::from_ps(20_000_000));
    assert_eq!(data_of(&pair, 0).len(), 1);
    pair.submit(1, WRITE, 100);
    pair.submit(0, READ, 100);
    pair.run_until(Time::from_ps(40_000_000));
    let acks = pair.log.iter().filter(|(_, s, h)| *s == 0 && matches!(h.body, Body::Ack(_)));
    let at: Vec<u64> = acks.map(|(at, ..)| at.as_ps() / 1_000_000).collect();
    assert_eq!(at, [25], "side 0 acknowledges the write on arrival");
    let request = pair.log.iter().find(|(_, _, h)| match h.body {
        Body::Data(s) => matches!(s.kind, SegmentKind::ReadRequest { .. }),
        _ => false,
    });
    assert_eq!(request.map(|(at, ..)| at.as_ps()), Some(20_000_000));
}

/// Swift §3.6: packets processed in a batch are acknowledged together, without delay.
#[test]
fn swift_3_6_a_batch_gets_one_coalesced_ack() {
    let mut pair = pair("8");
    pair.submit(0, WRITE, 4096 * 8);
    let datagrams: Vec<_> = core::iter::from_fn(|| pair.take_from_wire()).collect();
    for (at, to, datagram) in datagrams {
        pair.now = at;
        pair.deliver(to, &datagram);
    }
    pair.flush(1);
    assert_eq!(pair.sides[1].acks_sent, 1);
    pair.run_until(FAR);
    assert_eq!(pair.sides[0].completions.len(), 1, "one acknowledgement covered all eight");
}

/// Swift §3.3: a packet with an RTT of 30 us that waited 8 us at the peer and 4 us in the local
/// NIC. App. C's delay t6 - t5 counts as one of the two parts, or as neither.
#[test]
fn swift_3_3_the_local_nic_delay_counts_once_at_most() {
    let us = Span::from_us;
    for (counts, fabric, endpoint) in [
        (LocalRx::Endpoint, us(18), us(12)),
        (LocalRx::Fabric, us(22), us(8)),
        (LocalRx::Ignored, us(18), us(8)),
    ] {
        let config = EndpointConfig { local_rx_delay: counts, ..EndpointConfig::default() };
        let mut sender = Endpoint::new(config);
        let flow = sender.open(FlowId::new(0), &constant("1"), &FlowInfo::default());
        let op = Op { kind: WRITE, length: 64, user: 0 };
        sender.submit(Time::ZERO, flow, op).expect("room");
        let sent = sender.poll_data(Time::ZERO).expect("a packet");
        let ack = Ack {
            largest: sent.header.seq,
            bitmap: 1,
            echo: sent.header.seq,
            remote_queuing: us(8),
            hops: 1,
            marked: 0,
            receiver_level: 0,
            echo_marked: false,
            missing: None,
        };
        let arrival = Arrival {
            now: Time::ZERO + us(30),
            nic_received_at: Time::ZERO + us(26),
            hops: 1,
            marked: false,
            receiver_level: 0,
        };
        let header = Header { flow, seq: PacketNumber::new(0), body: Body::Ack(ack) };
        let Handled::Ack(Some(sample)) = sender.handle_packet(&arrival, &header) else {
            panic!("an acknowledgement with a sample")
        };
        assert_eq!(sample.end_to_end_rtt, us(30));
        assert_eq!((sample.fabric_rtt, sample.endpoint_delay), (fabric, endpoint), "{counts:?}");
    }
}

/// A rate counts wire bytes: packets of 4096 + 64 B at 10 Gb/s leave 3.328 us apart, for any number
/// of packets in flight (the wheel of this test has slots of 1.024 ns).
#[test]
fn a_rate_paces_wire_bytes_at_any_number_in_flight() {
    let rate = build("constant", Some("rate"), &[("rate", "10Gbps")]).expect("constant");
    let config = EndpointConfig { timer_granularity_log2_ps: 10, ..EndpointConfig::default() };
    let mut pair = Pair::new(&rate, config, 1);
    pair.submit(0, WRITE, 4096 * 20);
    pair.run_until(FAR);
    let sent: Vec<_> = pair.log.iter().filter(|(_, side, _)| *side == 0).collect();
    assert_eq!(sent.len(), 20);
    for (number, (at, ..)) in sent.iter().enumerate() {
        let late = at.as_ps() - 3_328_000 * number as u64;
        assert!(late <= 1024 * number as u64, "packet {number} is {late} ps late");
    }
}

#[test]
fn submit__refuses_ops_beyond_the_limit_and_accepts_them_later() {
    let config = EndpointConfig { max_ops: 2, ..EndpointConfig::default() };
    let mut pair = Pair::new(&constant("1"), config, 1);
    pair.submit(0, WRITE, 1);
    pair.submit(0, WRITE, 1);
    let op = Op { kind: WRITE, length: 1, user: 0 };
    let endpoint = &mut pair.sides[0].endpoint;
    assert_eq!(endpoint.submit(Time::ZERO, FlowId::new(0), op), Err(SubmitError::TooManyOps));
    assert_eq!(endpoint.submit(Time::ZERO, FlowId::new(9), op), Err(SubmitError::NoFlow));
    pair.run_until(Time::from_ps(100_000_000));
    pair.submit(0, WRITE, 1);
    pair.run_until(FAR);
    assert_eq!(pair.sides[0].completions.len(), 3);
}

#[test]
fn abort__distinguishes_unsent_ops_from_possibly_applied_ones() {
    let mut pair = pair("1");
    pair.submit(0, WRITE, 4096);
    pair.submit(0, WRITE, 4096);
    pair.sides[0].endpoint.abort(Time::from_ps(5), FlowId::new(0));
    pair.flush(0);
    let outcomes: Vec<_> = pair.sides[0].completions.iter().map(|c| c.outcome).collect();
    assert_eq!(outcomes, [Outcome::Unknown, Outcome::Failed]);
}

#[test]
fn give_up_after__ends_a_flow_whose_peer_does_not_respond() {
    let config =
        EndpointConfig { give_up_after: Some(Span::from_ms(50)), ..EndpointConfig::default() };
    let mut pair = Pair::new(&constant("1"), config, 1);
    pair.faults = Faults { loss: 1000, ..Faults::default() };
    pair.submit(0, WRITE, 1);
    pair.run_until(FAR);
    let completion = pair.sides[0].completions[0];
    assert_eq!(completion.outcome, Outcome::Unknown);
    let took = completion.completed_at.since(Time::ZERO);
    assert!(took >= Span::from_ms(50) && took < Span::from_ms(53), "{took}");
}

#[test]
fn forged_packets_have_no_effect() {
    let mut pair = pair("1");
    pair.submit(0, WRITE, 4096 * 4);
    pair.run_until(Time::from_ps(12_000_000));
    let arrival = Arrival {
        now: pair.now,
        nic_received_at: pair.now,
        hops: 1,
        marked: false,
        receiver_level: 0,
    };
    let ack = Ack {
        largest: PacketNumber::new(1 << 40),
        bitmap: u128::MAX,
        echo: PacketNumber::new(1 << 40),
        remote_queuing: Span::ZERO,
        hops: 1,
        marked: 0,
        receiver_level: 0,
        echo_marked: false,
        missing: None,
    };
    let header = Header { flow: FlowId::new(0), seq: PacketNumber::new(99), body: Body::Ack(ack) };
    let endpoint = &mut pair.sides[0].endpoint;
    assert_eq!(endpoint.handle_packet(&arrival, &header), Handled::Ack(None));
    let stranger = Header { flow: FlowId::new(5), ..header };
    assert_eq!(endpoint.handle_packet(&arrival, &stranger), Handled::Refused);
    pair.run_until(FAR);
    assert_stored(&pair, 0, false, 0, 4096 * 4);
}

/// The caller answers reads when the bytes are available, in any order; until then no answer is
/// sent.
#[test]
fn reads_wait__for_the_callers_answer() {
    let config = EndpointConfig { reads_wait: true, max_ops: 2, ..EndpointConfig::default() };
    let mut pair = Pair::new(&constant("8"), config, 1);
    pair.submit(0, READ, 9_000);
    pair.submit(0, READ, 5_000);
    let asked = pair.log.iter().filter_map(|(_, from, header)| match header.body {
        Body::Data(segment) if *from == 0 => Some(segment),
        _ => None,
    });
    let asked: Vec<_> = asked.collect();
    let flow = pair.flow;
    assert!(
        !pair.sides[1].endpoint.answer_read(Time::ZERO, flow, &asked[0]),
        "no read has arrived yet"
    );
    pair.run_until(Time::from_ps(50_000_000));
    assert_eq!(pair.sides[0].completions.len(), 0);
    assert_eq!(pair.sides[1].data_sent, 0);
    for (number, later) in [(1, 10), (0, 20)] {
        let now = pair.now + Span::from_us(later);
        pair.now = now;
        assert!(pair.sides[1].endpoint.answer_read(now, flow, &asked[number]));
        pair.flush(1);
        pair.run_until(now + Span::from_us(100));
        assert_stored(&pair, 1, true, number as u64, asked[number].op_length);
    }
    let done: Vec<_> = pair.sides[0].completions.iter().map(|c| c.op.get()).collect();
    assert_eq!(done, [1, 0]);
    assert!(!pair.sides[1].endpoint.answer_read(pair.now, flow, &asked[0]), "both are answered");
}

/// Reads that the caller refuses, or that the peer cancels, no longer count as pending.
#[test]
fn reads_wait__ends_with_refusals_and_cancellations() {
    let config = EndpointConfig { reads_wait: true, max_ops: 2, ..EndpointConfig::default() };
    let mut pair = Pair::new(&constant("8"), config, 1);
    let flow = pair.flow;
    for op in 0..10 {
        pair.submit(0, READ, 64);
        pair.run_until(pair.now + Span::from_us(50));
        let (_, _, request) = *pair.log.iter().rfind(|(_, from, _)| *from == 0).expect("a request");
        let Body::Data(request) = request.body else { panic!("{request:?}") };
        if op % 2 == 0 {
            let refused = RejectReason::Withdrawn;
            pair.sides[1].endpoint.refuse_answer(pair.now, flow, OpId::new(op), refused);
            pair.flush(1);
        } else {
            assert!(pair.sides[0].endpoint.cancel(pair.now, flow, OpId::new(op)));
            pair.flush(0);
        }
        pair.run_until(pair.now + Span::from_us(50));
        assert_eq!(pair.sides[0].completions.len() as u64, op + 1);
        assert!(!pair.sides[1].endpoint.answer_read(pair.now, flow, &request));
    }
}

/// Packets of 4160 B at 33.28 Gb/s take 1 us each.
#[test]
fn flow_rate__spreads_the_packets_of_a_window() {
    let config = EndpointConfig {
        flow_rate: Some(Rate::from_bps(33_280_000_000)),
        timer_granularity_log2_ps: 10,
        ..EndpointConfig::default()
    };
    let mut pair = Pair::new(&constant("8"), config, 1);
    pair.submit(0, WRITE, 4 * 4096);
    pair.run_until(FAR);
    let times: Vec<_> = data_of(&pair, 0).into_iter().map(|(at, ..)| at).collect();
    assert_eq!(times, [0, 1, 2, 3]);
    assert_stored(&pair, 0, false, 0, 4 * 4096);
}

/// A window of 2.5 packets and an RTT of 10 us. The first window leaves at once, including its half
/// packet. The first acknowledgement then makes room for half a packet, so the flow pauses for 10 /
/// 2.5 = 4 us, independent of the other two acknowledgements. Two whole packets may leave at 14 us,
/// and after another pause one at 18 us.
#[test]
fn pacing_rest__waits_for_a_part_of_a_window_and_then_sends_one_packet() {
    let settings = [("initial_cwnd", "2.5"), ("max_cwnd", "2.5"), ("ai", "0")];
    let bolt = build("bolt", Some("code"), &settings).expect("bolt");
    let config = EndpointConfig { timer_granularity_log2_ps: 10, ..EndpointConfig::default() };
    let mut pair = Pair::new(&bolt, config, 1);
    pair.submit(0, WRITE, 6 * 4096);
    pair.run_until(FAR);
    let times: Vec<_> = data_of(&pair, 0).into_iter().map(|(at, ..)| at).collect();
    assert_eq!(times, [0, 0, 0, 14, 14, 18]);
    assert_stored(&pair, 0, false, 0, 6 * 4096);
}
