//! Flows whose packets take several paths, between two endpoints in virtual time with an RTT of 10 us.
#![allow(non_snake_case)] // `function__situation`

use crate::support::Pair;
use apus_algorithms::balancers;
use apus_algorithms::registry::build;
use apus_cc::FlowInfo;
use apus_transport::{
    Endpoint, EndpointConfig, LossRule, Op, OpKind, Outcome, Sleek, SpreadConfig,
};
use apus_units::{Bytes, FlowId, Rate, Span, Time};
use apus_wire::{Attached, Body, RegionKey, Segment};

const WRITE: OpKind = OpKind::Write { region: RegionKey::new(7), address: 4096 };
const READ: OpKind = OpKind::Read { region: RegionKey::new(7), address: 0 };
const FAR: Time = Time::from_ps(10_000_000_000_000);

/// A flow with a window of 64 packets at both ends.
fn pair(loss: LossRule, ack_bytes: u32) -> Pair {
    let algorithm = build("constant", None, &[("window", "64")]).expect("constant");
    let mut pair = Pair::new(&algorithm, EndpointConfig::default(), 1);
    let policy = balancers::build("oblivious", None, &[], None, &[]).expect("oblivious");
    let config = SpreadConfig { loss, range: 256, ack_bytes };
    let flow = pair.flow;
    for side in &mut pair.sides {
        side.endpoint.spread(flow, policy.policy().clone(), config, 3);
    }
    pair
}

fn completed_us(pair: &Pair) -> u64 {
    let done = pair.sides[0].completions[0];
    assert_eq!(done.outcome, Outcome::Done);
    done.completed_at.since(done.submitted_at).as_ps() / 1_000_000
}

fn acks(pair: &Pair) -> usize {
    pair.log
        .iter()
        .filter(|(_, from, header)| *from == 1 && matches!(header.body, Body::Ack(_)))
        .count()
}

/// Of 20 packets sent at once, the receiver acknowledges the first, every fourth after it, and the
/// last, after which the sender waits.
#[test]
fn ack_bytes__is_four_payloads() {
    for (ack_bytes, expected) in [(16_384, 6), (0, 20)] {
        let mut pair = pair(LossRule::Timeout, ack_bytes);
        pair.submit(0, WRITE, 4096 * 20);
        pair.run_until(FAR);
        assert_eq!((acks(&pair), completed_us(&pair)), (expected, 10), "{ack_bytes}");
    }
}

/// Two of 20 packets are lost: their own timeouts retransmit them, and nothing else.
#[test]
fn timeout__is_that_of_the_lost_packets() {
    let mut pair = pair(LossRule::Timeout, 16_384);
    pair.lose = vec![(0, 5), (0, 9)];
    pair.submit(0, WRITE, 4096 * 20);
    pair.run_until(FAR);
    assert_eq!(pair.sides[0].completions[0].outcome, Outcome::Done);
    let counters = pair.sides[0].endpoint.counters(pair.flow).expect("a flow");
    assert_eq!((counters.timeout_losses, counters.packets_sent), (2, 22));
    assert_eq!((counters.timeouts, counters.fast_losses), (1, 0));
}

/// Returns a flow of Swift with a window of 16 packets, each of which has its own timeout.
fn swift_with_packet_timeouts() -> Pair {
    let settings = [("initial_cwnd", "16"), ("max_cwnd", "64")];
    let algorithm = build("swift", None, &settings).expect("swift");
    let mut pair = Pair::new(&algorithm, EndpointConfig::default(), 1);
    let policy = balancers::build("oblivious", None, &[], None, &[]).expect("oblivious");
    let config = SpreadConfig { loss: LossRule::Timeout, range: 256, ack_bytes: 0 };
    let flow = pair.flow;
    for side in &mut pair.sides {
        side.endpoint.spread(flow, policy.policy().clone(), config, 3);
    }
    pair
}

/// Submits packets at intervals of 1 us.
fn submit_apart(pair: &mut Pair, packets: u64) {
    for us in 0..packets {
        pair.run_until(Time::from_ps(us * 1_000_000));
        pair.submit(0, WRITE, 4096);
        pair.flush(0);
    }
}

fn window(pair: &Pair) -> f64 {
    pair.sides[0].endpoint.snapshot(pair.flow).expect("a flow").cwnd
}

/// Twelve packets, each sent 1 us after the previous one, are lost, and each has its own timeout.
/// They are one flight, which halves Swift's window of 16 packets once. Three timeouts in a row
/// would reduce it to 0.001.
#[test]
fn timeout__of_one_flight_is_one_of_the_flow() {
    let mut pair = swift_with_packet_timeouts();
    pair.lose = (0..12).map(|packet| (0, packet)).collect();
    submit_apart(&mut pair, 12);
    let flow = pair.flow;
    let rto = pair.sides[0].endpoint.counters(flow).expect("a flow").timeouts;
    assert_eq!((rto, window(&pair)), (0, 16.0));
    pair.run_until(FAR);
    let counters = pair.sides[0].endpoint.counters(flow).expect("a flow");
    assert_eq!((counters.timeout_losses, counters.packets_sent), (12, 24));
    assert!(pair.sides[0].completions.iter().all(|done| done.outcome == Outcome::Done));
    assert!(window(&pair) >= 8.0, "{}", window(&pair));
}

/// Four packets, each sent 1 us after the previous one, are lost every time they are sent. The
/// retransmissions of a flight are the next flight: after three timeouts in a row Swift's window is
/// 0.001 (Swift Alg. 1 l. 15-18).
#[test]
fn timeout__of_what_was_sent_again_is_the_next_one_of_the_flow() {
    let mut pair = swift_with_packet_timeouts();
    pair.lose = (0..1000).map(|packet| (0, packet)).collect();
    submit_apart(&mut pair, 4);
    pair.run_until(Time::from_ps(5_000_000_000));
    assert_eq!(window(&pair), 0.001);
}

/// In a stream, a window of 64 packets uses each of 64 entropy values once. Packets 5 and 9 are
/// lost. Later packets with their values arrive within the next round, if there is one. Until then,
/// or if there is none, only their own timeouts detect the losses, and acknowledgements of other
/// packets do not postpone these timeouts.
#[test]
fn ev_order__has_a_timeout_for_values_that_are_not_used_again() {
    // First 20 packets with 20 values; then a stream of 100 windows in which one packet is lost
    // whose value is not drawn again.
    let mut few = pair(LossRule::EvOrder, 0);
    few.lose = vec![(0, 5), (0, 9)];
    few.submit(0, WRITE, 4096 * 20);
    few.run_until(FAR);
    let counters = few.sides[0].endpoint.counters(few.flow).expect("a flow");
    assert_eq!((counters.timeout_losses, counters.fast_losses, counters.packets_sent), (2, 0, 22));

    let algorithm =
        build("constant", None, &[("window", "64"), ("min_rto", "100us")]).expect("constant");
    let policy = balancers::build("oblivious", None, &[("evs", "65536")], None, &[]);
    let policy = policy.expect("oblivious");
    let mut many = Pair::new(&algorithm, EndpointConfig::default(), 1);
    let config = SpreadConfig { loss: LossRule::EvOrder, range: 16_384, ack_bytes: 0 };
    let flow = many.flow;
    for side in &mut many.sides {
        side.endpoint.spread(flow, policy.policy().clone(), config, 3);
    }
    many.lose = vec![(0, 5)];
    // 6400 packets in 100 round trips of 10 us; without the timeout, packet 5 would be
    // retransmitted after the last of them.
    many.submit(0, WRITE, 4096 * 6400);
    many.run_until(FAR);
    let counters = many.sides[0].endpoint.counters(flow).expect("a flow");
    assert_eq!((counters.timeout_losses, counters.packets_sent), (1, 6401));
    assert!((1000..1040).contains(&completed_us(&many)), "{}", completed_us(&many));
}

/// Eight of 20 packets are lost. After a silence of base RTT plus target, a probe finds the path
/// free, so the lost packets are retransmitted: 10 + 20 + 10 + 10 us. If five packets out of order
/// are enough, they are retransmitted at 10 us, together with the two packets whose
/// acknowledgements have not arrived yet.
#[test]
fn sleek__probes_or_counts_packets_out_of_order() {
    for (most, expected, resent) in [(64, 50, 8), (5, 20, 10)] {
        let (base_rtt, target) = (Span::from_us(10), Span::from_us(10));
        let mut pair = pair(LossRule::Sleek(Sleek { base_rtt, target, most }), 0);
        pair.lose = (5..13).map(|seq| (0, seq)).collect();
        pair.submit(0, WRITE, 4096 * 20);
        pair.run_until(FAR);
        assert_eq!(completed_us(&pair), expected, "{most}");
        let counters = pair.sides[0].endpoint.counters(pair.flow).expect("a flow");
        assert_eq!((counters.timeouts, counters.fast_losses), (0, resent));
        assert_eq!(counters.packets_sent, 20 + resent);
    }
}

/// Requests are subject to neither window nor pacing, but a receiver records only 128 packet
/// numbers. If packet 0 of 120 is lost, 8 of 40 reads may leave before it is retransmitted. After
/// one more request, the receiver would give up packet 0, and its acknowledgements would report
/// that nothing is missing.
#[test]
fn requests__keep_to_the_range_of_packet_numbers() {
    let algorithm = build("constant", None, &[("window", "128")]).expect("constant");
    let mut pair = Pair::new(&algorithm, EndpointConfig::default(), 1);
    let policy = balancers::build("oblivious", None, &[], None, &[]).expect("oblivious");
    let config = SpreadConfig { loss: LossRule::Timeout, range: 128, ack_bytes: 0 };
    let flow = pair.flow;
    for side in &mut pair.sides {
        side.endpoint.spread(flow, policy.policy().clone(), config, 3);
    }
    pair.lose = vec![(0, 0)];
    pair.submit(0, WRITE, 4096 * 120);
    pair.run_until(Time::ZERO + Span::from_ns(1));
    for _ in 0..40 {
        pair.submit(0, READ, 8);
    }
    pair.run_until(Time::ZERO + Span::from_us(30));
    let from_0 = pair.log.iter().filter(|(_, from, _)| *from == 0);
    let largest = from_0.filter_map(|(_, _, header)| match &header.body {
        Body::Data(_) => Some(header.seq.get()),
        _ => None,
    });
    assert_eq!(largest.max(), Some(127));
    pair.run_until(FAR);
    let done = pair.sides[0].completions.iter().filter(|c| c.outcome == Outcome::Done).count();
    assert_eq!(done, 41);
    assert_eq!(pair.sides[1].stored[&(false, 0)].len(), 4096 * 120);
}

/// NSCC's timeout does not grow. With 4 us and an RTT of 10 us, each packet is declared lost before
/// its acknowledgement arrives: at 4, 8, ... and 32 us. After that, late acknowledgements count, as
/// for flows with one path.
#[test]
fn timeout__below_the_round_trip_does_not_keep_an_op_from_its_end() {
    let settings = [("network_rtt", "1us"), ("target_queueing", "1us"), ("rto", "4us")];
    let algorithm = build("nscc", Some("drop-tail"), &settings).expect("nscc");
    let policy = balancers::build("oblivious", None, &[], None, &[]).expect("oblivious");
    for loss in [LossRule::Timeout, LossRule::Count(3)] {
        let mut pair = Pair::new(&algorithm, EndpointConfig::default(), 1);
        let config = SpreadConfig { loss, range: 256, ack_bytes: 0 };
        let flow = pair.flow;
        for side in &mut pair.sides {
            side.endpoint.spread(flow, policy.policy().clone(), config, 3);
        }
        pair.submit(0, WRITE, 100);
        pair.run_until(Time::ZERO + Span::from_us(400));
        let at: Vec<_> = pair.sides[0].completions.iter().map(|c| c.completed_at).collect();
        // Each timeout is late by at most one slot of the timing wheel.
        let slots = Span::from_ps(8 << 17);
        let (first, last) =
            (Time::ZERO + Span::from_us(34), Time::ZERO + Span::from_us(34) + slots);
        assert!(at.len() == 1 && at[0] >= first && at[0] < last, "{loss:?}: {at:?}");
        assert_eq!(pair.sides[1].finished[&0], 1);
    }
}

/// The rate limit of a flow applies to each port: four ports send four packets in the time of one.
/// 4160 B at 1 Gb/s take 33.28 us.
#[test]
fn flow_rate__is_that_of_each_port() {
    for (ports, expected) in [(1, 4), (4, 13)] {
        let algorithm = build("constant", None, &[("window", "64")]).expect("constant");
        let rate = EndpointConfig {
            flow_rate: Some(Rate::from_gbps(1)),
            header_bytes: 64,
            ..EndpointConfig::default()
        };
        let mut pair = Pair::new(&algorithm, rate, 1);
        let policy = balancers::build("oblivious", None, &[], None, &[]).expect("oblivious");
        let config = SpreadConfig { loss: LossRule::Timeout, range: 256, ack_bytes: 0 };
        let flow = pair.flow;
        for side in &mut pair.sides {
            side.endpoint.spread(flow, policy.policy().clone(), config, 3);
            side.endpoint.set_ports(flow, ports, 0);
        }
        pair.submit(0, WRITE, 4096 * 64);
        pair.run_until(Time::ZERO + Span::from_us(101)); // after 0, 33.28, 66.56 and 99.84 us
        assert_eq!(pair.sides[0].data_sent, expected);
    }
}

/// Requests count towards the range of packet numbers until their answers arrive, acknowledged or
/// not. Even if no request is acknowledged, the reader continues beyond its range of 256.
#[test]
fn range__is_free_again_where_answers_arrived() {
    let mut pair = pair(LossRule::Timeout, 0);
    pair.refuses = |from, header| from == 1 && matches!(header.body, Body::Ack(_));
    for read in 1..=600 {
        pair.submit(0, READ, 1);
        pair.run_until(pair.now + Span::from_ms(10));
        assert_eq!(pair.sides[0].completions.len(), read);
    }
}

/// uet-htsim 40ccb05: credit is spent before it is checked, so the packet that spends the last
/// credit requests an acknowledgement.
#[test]
fn order__asks_for_an_acknowledgement_with_the_last_credit() {
    let algorithm = build("rccc", None, &[]).expect("rccc");
    let info = FlowInfo {
        line_rate: Rate::from_gbps(100),
        payload: Bytes::new(4096),
        packet: Bytes::new(4160),
        ..FlowInfo::default()
    };
    let mut endpoint = Endpoint::new(EndpointConfig::default());
    let flow = endpoint.open(FlowId::new(0), &algorithm, &info);
    let policy = balancers::build("oblivious", None, &[], None, &[]).expect("oblivious");
    let config = SpreadConfig { loss: LossRule::Timeout, range: 1024, ack_bytes: 16_384 };
    endpoint.spread(flow, policy.policy().clone(), config, 3);
    let op = Op { kind: WRITE, length: 1 << 30, user: 0 };
    endpoint.submit(Time::ZERO, flow, op).expect("submit");
    let asks: Vec<bool> = core::iter::from_fn(|| endpoint.poll_data(Time::ZERO))
        .map(|sent| match sent.header.body {
            Body::Data(Segment { attached: Some(Attached::Order(order)), .. }) => order.ack_now,
            body => panic!("{body:?}"),
        })
        .collect();
    // The last packet but one uses up the last whole packet of credit.
    let first = asks.iter().position(|&asks| asks).expect("one that asks");
    assert!(asks[first..].len() <= 2 && asks[first..].iter().all(|&asks| asks), "{asks:?}");
}
