//! The controller against closed forms of Swift Alg. 1. quinn's `RttEstimator` cannot be made outside of it, so
//! acknowledgements enter where it has been dropped.

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
}

impl Path {
    /// A path with a target of 400 us and without flow scaling.
    fn new(settings: &[(&str, &str)]) -> Self {
        let settings = [settings, &[("base_target", "400us"), ("fs_range", "0us")]].concat();
        let config = Arc::new(SwiftConfig::new(&settings).expect("valid settings"));
        let start = Instant::now();
        let swift = config.build(start, MTU).into_any().downcast().expect("Swift");
        Self { swift, start }
    }

    fn at(&self, us: u64) -> Instant {
        self.start + Duration::from_micros(us)
    }

    /// One acknowledgement at `us` of packets of these sizes, all sent `rtt` before.
    fn ack(&mut self, us: u64, rtt: Duration, sizes: &[u64]) {
        self.ack_of(us, rtt, sizes, false);
    }

    fn ack_of(&mut self, us: u64, rtt: Duration, sizes: &[u64], app_limited: bool) {
        let now = self.at(us);
        for size in sizes {
            self.swift.on_packet_acked(now - rtt, *size, app_limited);
        }
        self.swift.on_end_acks(now, 0, app_limited, None);
    }

    /// Loss of these bytes, reported at `us`.
    fn lose(&mut self, us: u64, is_persistent: bool, bytes: u64) {
        let now = self.at(us);
        self.swift.on_congestion_event(now, now, is_persistent, bytes);
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

/// quinn's test before it sends another packet (`Connection::poll_transmit`, 0.11).
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

#[test]
fn a_window_of_whole_packets_has_one_byte_more() {
    assert_eq!(Path::new(&[]).swift.window(), 10 * 1200 + 1);
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
    // 200 of the 1400 bytes are left over.
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

#[test]
fn the_newest_packet_of_a_batch_gives_the_rtt() {
    let mut path = Path::new(&[]);
    let now = path.at(1000);
    path.swift.on_packet_acked(now - LONG, 1200, false);
    path.swift.on_packet_acked(now - SHORT, 1200, false);
    path.swift.on_end_acks(now, 0, false, None);
    path.has(10.2);
}

/// RFC 9002 §5.1.
#[test]
fn reordered_packets_give_no_rtt_and_count_with_the_next_sample() {
    let mut path = Path::new(&[]);
    path.ack(1000, SHORT, &[]);
    path.ack(1000, SHORT, &[1200]);
    path.has(10.1);
    // Sent before the packet above, and acknowledged later.
    path.ack(1010, LONG, &[1200; 3]);
    path.has(10.1);
    path.ack(1100, SHORT, &[1200]);
    path.has(10.1 + 4.0 / 10.1);
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

#[test]
fn a_loss_or_an_ecn_mark_halves_the_window_once_per_rtt() {
    for bytes in [1200, 0] {
        let mut path = Path::new(&[]);
        path.ack(1000, SHORT, &[]);
        path.ack(1000, SHORT, &[1200; 10]);
        // Alg. 1 l. 23: 1 - max_mdf.
        path.lose(1000, false, bytes);
        path.has(5.5);
        path.lose(1099, false, bytes);
        path.has(5.5);
        path.lose(1100, false, bytes);
        path.has(2.75);
    }
}

#[test]
fn losses_do_not_reduce_the_window_if_the_setting_is_off() {
    let mut path = Path::new(&[("max_decrease_on_loss", "false")]);
    path.lose(1000, false, 1200);
    path.has(10.0);
}

#[test]
fn the_window_stays_at_two_packets() {
    let mut path = Path::new(&[]);
    for round in 1..10 {
        path.lose(1000 * round, false, 1200);
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
    path.lose(1001, true, 1200);
    path.has(2.0);
    let mut path = Path::new(&[("min_cwnd", "4")]);
    path.lose(1000, true, 1200);
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
fn a_clone_is_independent() {
    let mut path = Path::new(&[]);
    let clone = path.swift.clone_box();
    path.lose(1000, false, 1200);
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
