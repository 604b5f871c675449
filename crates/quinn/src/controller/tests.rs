//! The controller against closed forms of Swift Alg. 1. Code outside quinn cannot create its `RttEstimator`, so
//! the tests pass acknowledgements to the functions that do not take one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn_proto::congestion::{Controller, ControllerFactory};

use super::Swift;
use crate::SwiftConfig;

const MTU: u16 = 1200;
/// The target, without flow scaling.
const TARGET: Duration = Duration::from_micros(400);

struct Path {
    swift: Box<Swift>,
    start: Instant,
    /// Largest packet number acknowledged so far.
    largest: u64,
}

impl Path {
    /// A path with a target of 400 us and without flow scaling.
    fn new(settings: &[(&str, &str)]) -> Self {
        Self::with_mtu(MTU, settings)
    }

    fn with_mtu(mtu: u16, settings: &[(&str, &str)]) -> Self {
        let settings = [settings, &[("base_target", "400us"), ("fs_range", "0us")]].concat();
        let config = Arc::new(SwiftConfig::new(&settings).expect("valid settings"));
        let start = Instant::now();
        let swift = config.build(start, mtu).into_any().downcast().expect("Swift");
        Self { swift, start, largest: 0 }
    }

    fn at(&self, us: u64) -> Instant {
        self.start + Duration::from_micros(us)
    }

    /// Reports one acknowledgement at `us` of packets of these sizes, all sent `rtt` before.
    fn ack(&mut self, us: u64, rtt: Duration, sizes: &[u64]) {
        self.ack_of(us, rtt, sizes, false);
    }

    fn ack_of(&mut self, us: u64, rtt: Duration, sizes: &[u64], app_limited: bool) {
        self.largest += sizes.len() as u64;
        self.report(us, rtt, sizes, app_limited);
    }

    /// As [`Self::ack`], for packets with smaller numbers than packets that are already acknowledged.
    fn ack_late(&mut self, us: u64, rtt: Duration, sizes: &[u64]) {
        self.report(us, rtt, sizes, false);
    }

    fn report(&mut self, us: u64, rtt: Duration, sizes: &[u64], app_limited: bool) {
        let now = self.at(us);
        for size in sizes {
            self.swift.on_packet_acked(now - rtt, *size, app_limited);
        }
        self.swift.on_end_acks(now, 0, app_limited, Some(self.largest));
    }

    /// Reports the loss of these bytes, sent at `sent`, at `us`.
    fn lose(&mut self, (sent, us): (u64, u64), is_persistent: bool, bytes: u64) {
        self.swift.on_congestion_event(self.at(us), self.at(sent), is_persistent, bytes);
    }

    fn cwnd(&self) -> f64 {
        self.swift.snapshot().cwnd
    }

    #[track_caller]
    fn has(&self, packets: f64) {
        assert!((self.cwnd() - packets).abs() < 1e-9, "{} packets, not {packets}", self.cwnd());
    }
}

const SHORT: Duration = Duration::from_micros(100);
const LONG: Duration = Duration::from_micros(500);

/// Applies the test that quinn makes before it sends another packet (`Connection::poll_transmit`, 0.11).
fn admitted(window: u64, mtu: u64) -> u64 {
    (0..).find(|in_flight| in_flight * mtu + mtu >= window).expect("a finite window")
}

#[test]
fn quinn_admits_the_largest_whole_number_of_packets_in_the_window() {
    for (initial, packets) in [("2", 2), ("2.999", 2), ("3", 3), ("10", 10), ("77.5", 77)] {
        let path = Path::new(&[("initial_cwnd", initial)]);
        assert_eq!(admitted(path.swift.window(), MTU.into()), packets, "{initial}");
        assert_eq!(path.swift.initial_window(), path.swift.window());
    }
}

/// RFC 9002 §7.2 for the first window.
#[test]
fn a_window_in_bytes_has_one_byte_more() {
    for (mtu, bytes) in [(1200, 12_000), (1472, 14_720), (2048, 14_720), (9000, 18_000)] {
        let path = Path::with_mtu(mtu, &[]);
        assert_eq!(path.swift.window(), bytes + 1, "{mtu}");
        assert_eq!(path.swift.initial_window(), bytes + 1, "{mtu}");
    }
}

#[test]
fn an_rtt_below_the_target_adds_one_packet_per_window_of_acked_bytes() {
    let mut full = Path::new(&[]);
    full.ack(100, SHORT, &[1200; 10]);
    full.has(11.0);
    // Alg. 1 l. 10: ai * num_acked / cwnd, counted in bytes.
    let mut half = Path::new(&[]);
    half.ack(100, SHORT, &[600; 10]);
    half.has(10.5);
}

#[test]
fn the_rest_of_a_packet_counts_with_the_next_acknowledgement() {
    let mut path = Path::new(&[]);
    path.ack(100, SHORT, &[700]);
    path.has(10.0);
    path.ack(110, SHORT, &[700]);
    path.has(10.1);
    // 200 of the 1400 bytes are carried over.
    path.ack(120, SHORT, &[1000]);
    path.has(10.1 + 1.0 / 10.1);
}

#[test]
fn an_rtt_above_the_target_reduces_the_window_once_per_rtt() {
    let mut path = Path::new(&[]);
    // Alg. 1 l. 14: 1 - 0.8 * (500 - 400) / 500 = 0.84.
    path.ack(1000, LONG, &[1200]);
    path.has(8.4);
    path.ack(1499, LONG, &[1200]);
    path.has(8.4);
    path.ack(1500, LONG, &[1200]);
    path.has(8.4 * 0.84);
    // The window equals the target: no growth, and a factor of 1.
    path.ack(3000, TARGET, &[1200]);
    path.has(8.4 * 0.84);
}

/// Swift §3.5: alpha / sqrt(2) + beta with alpha = 100 us / (10 - 0.1), and all of `fs_range` at `fs_min_cwnd`.
#[test]
fn flow_scaling_adds_six_microseconds_at_two_packets_unless_fs_min_cwnd_is_two() {
    for (fs_min_cwnd, target) in [("0.01", 406.132), ("2", 500.0)] {
        let settings =
            [("base_target", "400us"), ("initial_cwnd", "2"), ("fs_min_cwnd", fs_min_cwnd)];
        let config = Arc::new(SwiftConfig::new(&settings).expect("valid settings"));
        let start = Instant::now();
        let mut swift = Swift::new(config, start, MTU);
        swift.on_packet_acked(start, 1200, false);
        swift.on_end_acks(start + SHORT, 0, false, Some(0));
        let found = swift.snapshot().target_delay.expect("a target").as_us_f64();
        assert!((found - target).abs() < 1e-3, "{fs_min_cwnd}: {found} us");
    }
}

#[test]
fn the_newest_packet_of_a_batch_gives_the_rtt() {
    let mut path = Path::new(&[]);
    let now = path.at(1000);
    path.swift.on_packet_acked(now - LONG, 1200, false);
    path.swift.on_packet_acked(now - SHORT, 1200, false);
    path.swift.on_end_acks(now, 0, false, Some(2));
    path.has(10.2);
}

/// RFC 9002 §5.1.
#[test]
fn reordered_packets_give_no_rtt_and_count_with_the_next_sample() {
    let mut path = Path::new(&[]);
    path.ack(1000, SHORT, &[1200]);
    path.has(10.1);
    // Sent before the packet above, and acknowledged later.
    path.ack_late(1010, LONG, &[1200; 3]);
    path.has(10.1);
    path.ack(1100, SHORT, &[1200]);
    path.has(10.1 + 4.0 / 10.1);
}

/// RFC 9002 §5.1: the packets of a burst have one send time, and their numbers decide.
#[test]
fn packets_of_a_burst_give_an_rtt_in_order_and_none_if_reordered() {
    let mut path = Path::new(&[]);
    path.ack(1000, SHORT, &[1200]);
    path.ack(1010, SHORT + Duration::from_micros(10), &[1200]);
    path.has(10.1 + 1.0 / 10.1);
    // A packet with a smaller number, 500 us after the burst: above the target.
    path.ack_late(1400, LONG, &[1200]);
    path.has(10.1 + 1.0 / 10.1);
    path.ack(1500, SHORT, &[]);
    path.ack(1500, SHORT, &[1200]);
    let before = 10.1 + 1.0 / 10.1;
    path.has(before + 2.0 / before);
}

/// `Connection::path_changed` of quinn creates a new controller while packets of the old path are in flight.
#[test]
fn packets_sent_before_the_controller_existed_are_ignored() {
    let mut path = Path::new(&[]);
    let earlier = path.start - Duration::from_micros(1);
    path.swift.on_packet_acked(earlier, 1200, false);
    path.swift.on_end_acks(path.at(1000), 0, false, Some(7));
    assert_eq!(path.swift.snapshot().smoothed_rtt, None);
    for is_persistent in [false, true] {
        path.swift.on_congestion_event(path.at(1000), earlier, is_persistent, 1200);
    }
    path.has(10.0);
    // Neither an RTT nor bytes remain, and a packet sent at the first instant counts.
    path.ack(100, SHORT, &[1200]);
    path.has(10.1);
}

/// RFC 9002 §7.8.
#[test]
fn an_application_without_data_does_not_grow_the_window_but_delay_reduces_it() {
    let mut path = Path::new(&[]);
    path.ack_of(100, SHORT, &[1200; 10], true);
    path.has(10.0);
    path.ack_of(1000, LONG, &[1200], true);
    path.has(8.4);
}

/// RFC 9002 §7.3.2 and Alg. 1 l. 22-24.
#[test]
fn a_loss_or_an_ecn_mark_halves_the_window_once_per_round_trip() {
    for bytes in [1200, 0] {
        let mut path = Path::new(&[]);
        path.ack(1000, SHORT, &[1200; 10]);
        // Alg. 1 l. 23: 1 - max_mdf.
        path.lose((900, 1000), false, bytes);
        path.has(5.5);
        // An RTT has passed, but these packets left before the reduction, or with it.
        path.lose((950, 1200), false, bytes);
        path.lose((1000, 1200), false, bytes);
        path.has(5.5);
        path.lose((1001, 1200), false, bytes);
        path.has(2.75);
        // Sent after the reduction, but reported within an RTT of it (Alg. 1 l. 3).
        path.lose((1201, 1299), false, bytes);
        path.has(2.75);
    }
}

/// A decrease by delay may be tiny, so it does not count as the reaction to the loss of an earlier packet.
#[test]
fn a_loss_of_a_packet_sent_before_a_decrease_by_delay_reduces_the_window() {
    let mut path = Path::new(&[]);
    path.ack(1000, LONG, &[1200]);
    path.has(8.4);
    path.lose((990, 1499), false, 1200);
    path.has(8.4);
    path.lose((990, 1500), false, 1200);
    path.has(4.2);
}

/// RFC 9002 §7.1 for the mark.
#[test]
fn without_max_decrease_on_loss_ecn_marks_still_reduce_the_window() {
    let mut path = Path::new(&[("max_decrease_on_loss", "false")]);
    path.lose((900, 1000), false, 1200);
    path.has(10.0);
    path.lose((900, 1000), false, 0);
    path.has(5.0);
    path.lose((1900, 2000), true, 1200);
    path.has(2.0);
}

#[test]
fn the_window_stays_at_two_packets() {
    let mut path = Path::new(&[]);
    for round in 1..10 {
        path.lose((1000 * round - 1, 1000 * round), false, 1200);
    }
    path.has(2.0);
    assert_eq!(path.swift.window(), 2 * 1200 + 1);
    assert_eq!(admitted(path.swift.window(), MTU.into()), 2);
}

/// RFC 9002 §7.6.2.
#[test]
fn persistent_congestion_sets_the_window_to_its_minimum_despite_a_recent_reduction() {
    let mut path = Path::new(&[]);
    path.ack(1000, LONG, &[1200]);
    path.lose((900, 1001), true, 1200);
    path.has(2.0);
    let mut path = Path::new(&[("min_cwnd", "4")]);
    path.lose((900, 1000), true, 1200);
    path.has(4.0);
}

#[test]
fn another_mtu_keeps_the_bytes_of_the_window_and_at_least_two_packets() {
    let mut path = Path::new(&[]);
    path.swift.on_mtu_update(1500);
    path.has(8.0);
    assert_eq!(path.swift.window(), 8 * 1500 + 1);
    // Packets of the new size count as one.
    path.ack(100, SHORT, &[1500; 8]);
    path.has(9.0);
    path.swift.on_mtu_update(9000);
    path.has(2.0);
}

#[test]
fn a_smaller_mtu_keeps_the_window_within_its_maximum() {
    let mut path = Path::with_mtu(1500, &[("initial_cwnd", "200"), ("max_cwnd", "200")]);
    path.swift.on_mtu_update(1200);
    // 250 packets of the new size have the same bytes.
    path.has(200.0);
    assert_eq!(path.swift.window(), 200 * 1200 + 1);
}

#[test]
fn a_clone_is_independent() {
    let mut path = Path::new(&[]);
    let clone = path.swift.clone_box();
    path.lose((900, 1000), false, 1200);
    path.has(5.0);
    assert_eq!(clone.window(), 10 * 1200 + 1);
}

/// Swift's clock wraps around after 2^64 ps, 213 days.
#[test]
fn a_connection_of_a_year_still_reduces_once_per_rtt() {
    let mut path = Path::new(&[]);
    let wrap = u64::MAX / 1_000_000;
    path.ack(wrap - 100, LONG, &[1200]);
    path.has(8.4);
    path.ack(wrap + 100, LONG, &[1200]);
    path.has(8.4);
    path.ack(wrap + 500, LONG, &[1200]);
    path.has(8.4 * 0.84);
}
