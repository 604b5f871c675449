//! Reaction of algorithms to a change of the size of full packets.

use apus_algorithms::{BuiltInSender, Registry, build};
use apus_cc::{AckEvent, AlgorithmFactory, FlowInfo, PacketSizeEvent, Sender};
use apus_units::{Bytes, PacketNumber, Span, Time};

const SHORT: Bytes = Bytes::new(1200);
const LONG: Bytes = Bytes::new(8400);

fn packets_of(payload: Bytes) -> FlowInfo {
    FlowInfo { payload, packet: payload, ..FlowInfo::default() }
}

fn change(algorithm: &mut BuiltInSender, before: Bytes, payload: Bytes) {
    let packet = packets_of(payload).packet;
    algorithm.on_packet_size(&PacketSizeEvent { payload_before: before, payload, packet });
}

fn acknowledge(algorithm: &mut BuiltInSender, round: u64, packets: u32) {
    algorithm.on_ack(&{
        let mut event = AckEvent::new(Time::ZERO + Span::from_us(10) * round, Span::from_us(10));
        event.fabric_delay = Span::from_us(9);
        event.endpoint_delay = Span::from_us(1);
        event.hops = 1;
        event.acked_packets = packets;
        event.acked_seq = PacketNumber::new(100 * round);
        event.next_seq = PacketNumber::new(100 * round + 1);
        event.in_flight = packets;
        event
    });
}

/// Returns an algorithm after a hundred round trips on a path without queues: every window is far above its
/// minimum.
fn grown(name: &str) -> BuiltInSender {
    let mut algorithm = build(name, None, &[]).expect("its defaults").sender(&packets_of(SHORT));
    for round in 1..=100 {
        let window = algorithm.allowance().packets().min(100);
        acknowledge(&mut algorithm, round, window);
    }
    algorithm
}

#[test]
fn rfc_8899_3_a_window_keeps_its_bytes_at_any_packet_size() {
    let mut windows = 0;
    for info in Registry::BUILT_IN.algorithms() {
        let mut algorithm = grown(info.name);
        let before = algorithm.allowance().window;
        // A window in packets that the user set stays, as does the packet by which RCP requests its rate.
        // Others have a rate instead of a window, or credit in bytes (RCCC).
        if ["constant", "rcp", "rccc"].contains(&info.name) || !before.is_finite() {
            continue;
        }
        windows += 1;
        assert!(before > 14.0, "{}: {before}", info.name);
        change(&mut algorithm, SHORT, LONG);
        let long = algorithm.allowance().window;
        assert!((long * 7.0 / before - 1.0).abs() < 1e-9, "{}: {before}, {long}", info.name);
        change(&mut algorithm, LONG, SHORT);
        let again = algorithm.allowance().window;
        assert!((again / before - 1.0).abs() < 1e-9, "{}: {before}, {again}", info.name);
    }
    assert!(windows >= 4, "{windows} algorithms have a window");
}

#[test]
fn a_flow_that_begins_with_one_packet_does_not_begin_with_a_pause() {
    for info in Registry::BUILT_IN.algorithms() {
        let mut new = build(info.name, None, &[]).expect("its defaults").sender(&packets_of(SHORT));
        let admitted = new.allowance().window >= 1.0;
        change(&mut new, SHORT, LONG);
        assert_eq!(new.allowance().window >= 1.0, admitted, "{}", info.name);
    }
    let event = PacketSizeEvent { payload_before: SHORT, payload: LONG, packet: LONG };
    assert_eq!(event.scaled(1.0), 1.0);
    // The pace in bytes stays: a seventh of the packets, each seven times as long.
    assert!((event.scaled(0.7) - 0.1).abs() < 1e-12);
}

/// RFC 5681 §3.1: "the initial value of ssthresh SHOULD be set arbitrarily high".
#[test]
fn rfc_5681_3_1_slow_start_keeps_its_threshold() {
    for name in ["dctcp", "cubic"] {
        let config = build(name, None, &[("max_cwnd", "256")]).expect(name);
        let mut new = config.sender(&packets_of(SHORT));
        let threshold = |algorithm: &BuiltInSender| match algorithm {
            BuiltInSender::Dctcp(dctcp) => dctcp.ssthresh(),
            BuiltInSender::Cubic(cubic) => cubic.ssthresh(),
            _ => panic!("{name} has a threshold"),
        };
        assert_eq!(threshold(&new), 256.0, "{name}");
        change(&mut new, SHORT, LONG);
        assert_eq!(threshold(&new), 256.0, "{name}");
    }
}

/// TIMELY §4.3 uses segments, here of 16 KiB: 14 short packets, or two long ones.
#[test]
fn timely_4_3_a_segment_takes_fewer_packets_if_they_are_longer() {
    for (payload, changes) in [(SHORT, false), (LONG, true)] {
        let settings = [("segment", "16KiB"), ("initial_share", "0.1")];
        let config = build("timely", None, &settings).expect("timely");
        let mut algorithm = config.sender(&packets_of(SHORT));
        change(&mut algorithm, SHORT, payload);
        let before = algorithm.allowance();
        acknowledge(&mut algorithm, 1000, 2);
        assert_eq!(algorithm.allowance() != before, changes, "{payload}");
    }
}
