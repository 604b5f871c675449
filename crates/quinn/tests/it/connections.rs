//! Swift in connections of quinn.

use std::sync::Arc;
use std::time::Duration;

use apus_quinn::{Snapshot, Swift, SwiftConfig};
use apus_units::random::SplitMix64;
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
    let controller = network.controller(0).expect("a started flow").clone_box().into_any();
    controller.downcast::<Swift>().expect("Swift").snapshot()
}

#[test]
fn a_window_of_n_packets_admits_n_packets_per_rtt() {
    // An even number, so that no packet waits for a delayed acknowledgement.
    for packets in ["2", "8"] {
        let settings = ["initial_cwnd", "min_cwnd", "max_cwnd"].map(|name| (name, packets));
        let settings = [&settings[..], &[("base_target", "25ms")]].concat();
        let link = Link { bits_per_second: 10_000_000_000, ..LINK };
        let mut network = Network::new(link, transport(&settings));
        network.add(Duration::ZERO, Application::Bulk, &mut SplitMix64::new(1));
        network.run(Duration::from_millis(200));
        let before = network.traffic.sent;
        network.run(Duration::from_millis(2200));
        let sent = network.traffic.sent - before;
        // The RTT is 20 ms and at most 10 us of serialisation, so 99 or 100 rounds begin in 2 s. Packets
        // without data acknowledge the server's updates of flow control: one per eighth of its window of
        // 1.25 MB (quinn's default).
        let packets: u64 = packets.parse().expect("a number");
        let updates = 100 * packets * u64::from(MTU) / (1_250_000 / 8) + 1;
        assert!((99 * packets..=100 * packets + updates).contains(&sent), "{packets}: {sent}");
    }
}

#[test]
fn four_flows_fill_the_link_without_loss_at_the_target_delay() {
    let mut network = Network::new(LINK, transport(&[("base_target", "25ms")]));
    let mut random = SplitMix64::new(1);
    for flow in 0..4 {
        network.add(Duration::from_millis(20) * flow, Application::Bulk, &mut random);
    }
    network.run(Duration::from_secs(5));
    let before: Vec<_> = network.flows.iter().map(|flow| flow.received).collect();
    network.traffic = Traffic::default();
    network.run(Duration::from_secs(10));
    let flows = network.flows.iter().zip(before);
    let received: Vec<_> = flows.map(|(flow, before)| flow.received - before).collect();
    let mut traffic = network.traffic;
    assert_eq!(traffic.dropped, 0);
    // The link is never idle. Headers and the tag take at most 50 bytes of a full packet.
    let wire = f64::from(MTU) + OVERHEAD as f64;
    let capacity = 5.0 * LINK.bits_per_second as f64 / 8.0 * (f64::from(MTU) - 50.0) / wire;
    let total: u64 = received.iter().sum();
    assert!(total as f64 > capacity, "{received:?}");
    // A coefficient of variation of 0.1 of the flows' goodput.
    let squares: f64 = received.iter().map(|&bytes| (bytes as f64).powi(2)).sum();
    let jain = (total as f64).powi(2) / (4.0 * squares);
    assert!(jain > 0.99, "{received:?}: {jain}");
    // The target of 25 ms leaves 4.9 ms for the queue in addition to propagation and serialisation. Flow
    // scaling adds less than 1 us at these windows (Swift §3.5). Each of four flows adds a packet per RTT for
    // at most two RTTs until its reduction takes effect: 8 packets, 1 ms. At most two reductions follow, each
    // by the factor 1 - 0.8 * 1 ms / 26 ms (Alg. 1 l. 14): down to 24.4 ms.
    traffic.waits.sort_unstable();
    let percentile = |percent| traffic.waits[traffic.waits.len() * percent / 100];
    let packet = LINK.serialisation(u64::from(MTU) + OVERHEAD);
    let waits = [1, 50, 99].map(percentile);
    assert!(waits[0] > 4_300_000, "{waits:?} ns");
    assert!(waits[2] < 4_900_000 + 8 * packet, "{waits:?} ns");
    assert!(waits[1].abs_diff(4_900_000) < 4 * packet, "{waits:?} ns");
}

/// Returns the RTT samples in milliseconds of a flow that sends a message every 100 ms, 20 times, and its
/// window afterwards.
fn samples(message: usize, acks: Option<AckFrequencyConfig>) -> (Vec<f64>, f64) {
    let mut transport = transport(&[("base_target", "30ms")]);
    transport.ack_frequency_config(acks);
    let mut network = Network::new(LINK, transport);
    let interval = Duration::from_millis(100);
    let application = Application::Periodic { bytes: message, interval };
    network.add(Duration::ZERO, application, &mut SplitMix64::new(1));
    // The handshake and the first message.
    network.run(Duration::from_millis(100));
    let smoothed = |network: &Network| snapshot(network).smoothed_rtt.expect("samples").as_us_f64();
    let mut average = smoothed(&network);
    let mut samples = Vec::new();
    // A packet occupies the link for more than 50 us, so that a step has at most one acknowledgement.
    for step in 2000..42_000 {
        network.run(Duration::from_micros(50) * step);
        let next = smoothed(&network);
        if next != average {
            // A sample has the weight 1/4 (`rto_gain`).
            samples.push((4.0 * next - 3.0 * average) * 1e-3);
        }
        average = next;
    }
    (samples, snapshot(&network).cwnd)
}

/// The peer acknowledges every second packet at once, and delays other acknowledgements by 25 ms (RFC 9000 §13.2,
/// `max_ack_delay`). quinn does not report this delay to controllers.
#[test]
fn the_delayed_acknowledgement_of_the_last_packet_of_a_message_counts_as_delay() {
    // 20 ms of propagation, and at most 0.4 ms to serialise three packets and an acknowledgement.
    let is_immediate = |sample: &f64| (20.0..20.4).contains(sample);
    let is_delayed = |sample: &f64| (45.0..45.4).contains(sample);
    for (message, packets) in [(100, 1_usize), (4200, 3)] {
        let (delayed, window) = samples(message, None);
        // quinn skips a few packet numbers, and a gap is acknowledged at once (RFC 9000 §13.2.1).
        let count = delayed.iter().filter(|sample| is_delayed(sample)).count();
        assert!((17..=20).contains(&count), "{packets}: {delayed:?}");
        assert!(delayed.iter().all(|x| is_delayed(x) || is_immediate(x)), "{packets}: {delayed:?}");
        // Of three packets, the first two are acknowledged at once.
        assert!(delayed.len() >= 20 * packets.div_ceil(2), "{packets}: {delayed:?}");
        assert!((2.0..3.0).contains(&window), "{packets}: {window}");
        let mut acks = AckFrequencyConfig::default();
        acks.ack_eliciting_threshold(0u32.into());
        let (immediate, window) = samples(message, Some(acks));
        assert!(immediate.iter().all(is_immediate), "{packets}: {immediate:?}");
        assert_eq!(immediate.len(), 20 * packets, "{packets}: {immediate:?}");
        // The application limits the window (RFC 9002 §7.8).
        assert_eq!(window, 10.0, "{packets}");
    }
}
