//! Swift in connections of quinn.

use std::sync::Arc;
use std::time::Duration;

use apus_quinn::{Snapshot, Swift, SwiftConfig};
use quinn_proto::{AckFrequencyConfig, TransportConfig};

use crate::network::{Application, Link, Network, OVERHEAD, Traffic};

/// UDP payload of a full datagram; no MTU discovery.
const MTU: u16 = 1452;
/// 100 Mb/s, 20 ms, and a buffer of one bandwidth-delay product.
const LINK: Link =
    Link { bits_per_second: 100_000_000, delay: Duration::from_millis(10), buffer: 250_000 };

fn transport(settings: &[(&str, &str)]) -> TransportConfig {
    let mut transport = TransportConfig::default();
    let swift = SwiftConfig::new(settings).expect("valid settings");
    transport.congestion_controller_factory(Arc::new(swift));
    transport.initial_mtu(MTU).mtu_discovery_config(None);
    transport
}

fn snapshot(network: &Network) -> Snapshot {
    let controller = network.controller(0).clone_box().into_any();
    controller.downcast::<Swift>().expect("Swift").snapshot()
}

/// Four bulk flows that start one RTT apart: bytes received after 5 s by each flow, and all data packets.
fn four_flows() -> (Vec<u64>, Traffic) {
    let mut network = Network::new(LINK, transport(&[("base_target", "25ms")]));
    for flow in 0..4 {
        network.add(Duration::from_millis(20) * flow, Application::Bulk, 1);
    }
    network.run(Duration::from_secs(5));
    let before: Vec<_> = network.flows.iter().map(|flow| flow.received).collect();
    network.traffic = Traffic::default();
    network.run(Duration::from_secs(10));
    let received = network.flows.iter().zip(before).map(|(flow, before)| flow.received - before);
    (received.collect(), network.traffic)
}

#[test]
fn a_window_of_n_packets_admits_n_packets_per_rtt() {
    // An even number, so that no packet waits for a delayed acknowledgement.
    for packets in ["2", "8"] {
        let settings = ["initial_cwnd", "min_cwnd", "max_cwnd"].map(|name| (name, packets));
        let settings = [&settings[..], &[("base_target", "25ms")]].concat();
        let link = Link { bits_per_second: 10_000_000_000, ..LINK };
        let mut network = Network::new(link, transport(&settings));
        network.add(Duration::ZERO, Application::Bulk, 1);
        network.run(Duration::from_millis(200));
        let before = network.traffic.sent;
        network.run(Duration::from_millis(2200));
        // 100 RTTs of 20 ms, and packets that carry no data.
        let expected = 100 * packets.parse::<u64>().expect("a number");
        let sent = network.traffic.sent - before;
        assert!((expected - expected / 50..=expected + expected / 50).contains(&sent), "{sent}");
    }
}

#[test]
fn four_flows_fill_the_link_without_loss_at_the_target_delay() {
    let (received, mut traffic) = four_flows();
    assert_eq!(traffic.dropped, 0);
    // The payload's share of a full packet: 1-RTT header, frame header and tag take at most 50 bytes.
    let wire = f64::from(MTU) + OVERHEAD as f64;
    let capacity = 5.0 * LINK.bits_per_second as f64 / 8.0 * (f64::from(MTU) - 50.0) / wire;
    let total: u64 = received.iter().sum();
    assert!(total as f64 > 0.97 * capacity, "{received:?}");
    let squares: f64 = received.iter().map(|&bytes| (bytes as f64).powi(2)).sum();
    let jain = (total as f64).powi(2) / (4.0 * squares);
    assert!(jain > 0.9, "{received:?}: {jain}");
    // Swift §3.5: the target is 25 ms and at most 100 us of flow scaling. Each of four flows overshoots by a
    // packet per RTT for at most two RTTs until its reduction takes effect, and sends a burst of ten (quinn's pacer).
    traffic.waits.sort_unstable();
    let p99 = traffic.waits[traffic.waits.len() * 99 / 100];
    let packet = LINK.serialisation(u64::from(MTU) + OVERHEAD);
    assert!(p99 < 5_100_000 + 4 * (2 + 10) * packet, "{p99} ns");
}

#[test]
fn a_run_is_reproducible() {
    let (received, traffic) = four_flows();
    let (again, traffic_again) = four_flows();
    assert_eq!(received, again);
    assert_eq!(traffic.waits, traffic_again.waits);
}

/// The peer delays the acknowledgement of a single packet by 25 ms (RFC 9000 §18.2, `max_ack_delay`), and quinn
/// does not report this to controllers.
#[test]
fn a_delayed_acknowledgement_counts_as_delay_unless_the_peer_is_asked_for_immediate_ones() {
    let run = |acks: Option<AckFrequencyConfig>| {
        let mut transport = transport(&[("base_target", "30ms")]);
        transport.ack_frequency_config(acks);
        let mut network = Network::new(LINK, transport);
        let interval = Duration::from_millis(100);
        network.add(Duration::ZERO, Application::Periodic { bytes: 100, interval }, 1);
        network.run(Duration::from_secs(2));
        snapshot(&network)
    };
    // 20 ms of propagation and 25 ms of delay are above the target: halved down to two packets.
    let delayed = run(None);
    assert_eq!(delayed.cwnd, 2.0);
    let smoothed = delayed.smoothed_rtt.expect("samples").as_us_f64();
    // The average still has a trace of the handshake: 25 ms * 0.75^20.
    assert!((44_900.0..45_100.0).contains(&smoothed), "{smoothed}");
    let mut acks = AckFrequencyConfig::default();
    acks.ack_eliciting_threshold(0u32.into());
    let immediate = run(Some(acks));
    let smoothed = immediate.smoothed_rtt.expect("samples").as_us_f64();
    assert!((20_000.0..21_000.0).contains(&smoothed), "{smoothed}");
    assert!(immediate.cwnd >= 10.0, "{}", immediate.cwnd);
}
