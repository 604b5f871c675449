//! CUBIC against RFC 9438: the curve in closed form, the average windows of its section 5.1.

use std::sync::Arc;

use crate::common;
use crate::common::{assert_close, at, us};
use apus_algorithms::cubic::{Cubic, Curve, Params};
use apus_cc::{Algorithm, CongestionHeader, Ecn, FlowInfo, SendInfo, Sender, Settings};
use apus_units::PacketNumber;

fn cubic(settings: &[(&str, &str)]) -> Cubic {
    static INFO: apus_cc::AlgorithmInfo = <Cubic as Algorithm>::INFO;
    let settings = Settings::read(&INFO, None, settings).unwrap();
    Cubic::new(Arc::new(Params::from_settings(&settings).unwrap()), &FlowInfo::default())
}

/// A sender that always fills its window: packets are acknowledged one by one, evenly over the RTT.
struct Path {
    flow: Cubic,
    /// Microseconds.
    now: f64,
    rtt: f64,
    /// The next packet to be acknowledged.
    seq: u64,
}

impl Path {
    fn new(flow: Cubic, rtt: f64) -> Self {
        Self { flow, now: 1_000.0, rtt, seq: 0 }
    }

    fn cwnd(&self) -> f64 {
        self.flow.allowance().window
    }

    fn next_seq(&self) -> PacketNumber {
        PacketNumber::new(self.seq + self.cwnd() as u64)
    }

    /// Acknowledges one packet, marked or not.
    fn ack(&mut self, marked: u32) {
        self.now += self.rtt / self.cwnd();
        let mut event = common::ack(self.now, self.rtt);
        (event.marked_packets, event.in_flight) = (marked, self.cwnd() as u32 - 1);
        (event.acked_seq, event.next_seq) = (PacketNumber::new(self.seq), self.next_seq());
        self.flow.on_ack(&event);
        self.seq += 1;
    }

    fn lose(&mut self) {
        let mut event = common::loss(self.now);
        (event.lost_seq, event.next_seq) = (PacketNumber::new(self.seq), self.next_seq());
        event.in_flight = self.cwnd() as u32 - 1;
        self.flow.on_loss(&event);
        self.seq += 1;
    }

    fn time_out(&mut self) {
        let mut event = common::timeout(self.now);
        event.next_seq = self.next_seq();
        self.seq = event.next_seq.get();
        self.flow.on_timeout(&event);
    }

    /// Acknowledges until recovery is over and congestion avoidance has begun.
    fn recover(&mut self) {
        for _ in 0..1_000_000 {
            if self.flow.curve().is_some() {
                return;
            }
            self.ack(0);
        }
        panic!("congestion avoidance never begins");
    }
}

/// Returns a flow after slow start, with a window of `cwnd` at the first loss.
fn after_loss_at(cwnd: &str, rtt: f64, settings: &[(&str, &str)]) -> Path {
    let mut all = vec![("initial_cwnd", cwnd)];
    all.extend_from_slice(settings);
    let mut path = Path::new(cubic(&all), rtt);
    path.lose();
    path
}

#[test]
fn rfc_9438_fig_1_and_2_the_curve() {
    // K = cbrt(W_max * (1 - 0.7) / C) = cbrt(1000 * 0.3 / 0.4) = cbrt(750) s.
    let curve = Curve::new(0.4, 1000.0, 700.0);
    assert_close(curve.k(), 9.085_602_964_160_698);
    assert_close(curve.window(0.0), 700.0);
    assert_close(curve.window(curve.k()), 1000.0);
    assert_close(curve.window(curve.k() + 5.0), 1050.0);
    // A stage that starts above W_max starts at its plateau.
    let curve = Curve::new(0.4, 10.0, 20.0);
    assert_eq!(curve.k(), 0.0);
    assert_close(curve.window(0.0), 20.0);
}

#[test]
fn rfc_9438_4_2_the_window_follows_the_curve() {
    // RTT 100 ms, where Reno is far slower: W_cubic(t) from 700 over the plateau at 1000 to 1050.
    let mut path = after_loss_at("1000", 100_000.0, &[]);
    assert_close(path.cwnd(), 700.0);
    path.recover();
    let start = path.now;
    let expected = |t: f64| 0.4 * (t - 9.085_603_f64).powi(3) + 1000.0;
    for seconds in 1..=14 {
        let end = start + f64::from(seconds) * 1e6;
        while path.now < end {
            path.ack(0);
        }
        // Within an RTT the window reaches the value that the curve has one RTT later, so the window is between
        // the two values.
        let t = (path.now - start) / 1e6;
        let (early, late) = (expected(t - 0.1), expected(t + 0.1));
        let cwnd = path.cwnd();
        assert!((early - 1.0..=late + 1.0).contains(&cwnd), "{cwnd} at {t} s: {early}..{late}");
    }
}

#[test]
fn rfc_9438_4_6_one_reduction_per_window_of_losses() {
    let mut path = after_loss_at("100", 1_000.0, &[]);
    assert_close(path.cwnd(), 70.0);
    assert_close(path.flow.ssthresh(), 70.0);
    // Packets 1..100 left before the reduction: no event about them changes the window.
    for _ in 0..30 {
        path.lose();
        path.ack(0);
    }
    assert_close(path.cwnd(), 70.0);
    // Packet 100 was sent after it.
    while path.seq < 100 {
        path.ack(0);
    }
    path.lose();
    assert!(path.cwnd() < 50.0, "{}", path.cwnd());
}

#[test]
fn rfc_9438_4_6_a_window_after_a_loss_is_at_least_two_and_after_a_mark_one() {
    let path = after_loss_at("2", 100.0, &[]);
    assert_close(path.cwnd(), 2.0);
    assert_close(path.flow.ssthresh(), 2.0);
    let mut path = Path::new(cubic(&[("initial_cwnd", "1.2"), ("ecn", "true")]), 100.0);
    path.ack(1);
    assert_close(path.cwnd(), 1.0);
    assert_close(path.flow.ssthresh(), 2.0);
}

#[test]
fn rfc_9438_4_6_marks_reduce_once_per_window_and_only_if_enabled() {
    let mut path = Path::new(cubic(&[("initial_cwnd", "100"), ("ecn", "true")]), 100.0);
    path.ack(1);
    path.ack(1);
    path.ack(1);
    assert_close(path.cwnd(), 70.0);
    let stamped = |mut flow: Cubic| {
        let mut header = CongestionHeader::default();
        let info = SendInfo::new(at(0.0), PacketNumber::new(0));
        flow.on_transmit(&mut header, &info);
        header.ecn
    };
    assert_eq!(stamped(path.flow), Ecn::Capable);
    assert_eq!(stamped(cubic(&[])), Ecn::NotCapable);
}

#[test]
fn rfc_9438_4_7_fast_convergence_releases_more() {
    for (setting, expected) in [("true", 70.0 * 1.7 / 2.0), ("false", 70.0)] {
        let mut path = after_loss_at("100", 100.0, &[("fast_convergence", setting)]);
        assert_close(path.flow.w_max(), 100.0);
        while path.seq < 100 {
            path.ack(0);
        }
        path.lose();
        assert_close(path.flow.w_max(), expected);
        assert_close(path.cwnd(), 49.0);
    }
}

#[test]
fn rfc_9438_4_8_a_timeout_starts_over_and_the_next_stage_at_its_plateau() {
    let mut path = Path::new(cubic(&[("initial_cwnd", "100")]), 1_000.0);
    path.time_out();
    assert_close(path.cwnd(), 1.0);
    assert_close(path.flow.ssthresh(), 70.0);
    // RFC 5681 §3.1: the same data timing out again keeps ssthresh.
    path.time_out();
    assert_close(path.flow.ssthresh(), 70.0);
    path.recover();
    let curve = path.flow.curve().unwrap();
    assert_eq!(curve.k(), 0.0);
    assert_close(curve.window(0.0), 70.0);
}

#[test]
fn rfc_9438_4_10_slow_start_doubles_until_the_first_loss() {
    let mut path = Path::new(cubic(&[]), 1_000.0);
    for expected in [20.0, 40.0, 80.0] {
        for _ in 0..path.cwnd() as u32 {
            path.ack(0);
        }
        assert_close(path.cwnd(), expected);
    }
}

#[test]
fn rfc_9438_5_8_a_window_that_is_not_filled_does_not_grow() {
    let mut path = after_loss_at("100", 1_000.0, &[]);
    path.recover();
    let before = path.cwnd();
    for _ in 0..1000 {
        path.now += 1_000.0;
        let mut event = common::ack(path.now, 1_000.0);
        event.in_flight = 3;
        (event.acked_seq, event.next_seq) =
            (PacketNumber::new(path.seq), PacketNumber::new(path.seq + 4));
        path.flow.on_ack(&event);
        path.seq += 1;
    }
    assert_eq!(path.cwnd(), before);
    // An hour without traffic does not count on the curve either.
    path.now += 3_600e6;
    let info = SendInfo::new(at(path.now), PacketNumber::new(path.seq));
    path.flow.on_transmit(&mut CongestionHeader::default(), &info);
    path.ack(0);
    assert!(path.cwnd() < before + 1.0, "{}", path.cwnd());
}

/// Returns the average window with one loss in `1 / p` packets, over `losses` losses after ten losses to
/// settle. Fast convergence is off, since the formulae leave it out.
fn average_window(first: &str, rtt: f64, per_loss: u64, losses: u32) -> f64 {
    let mut path = after_loss_at(first, rtt, &[("fast_convergence", "false")]);
    let (mut weighted, mut time) = (0.0, 0.0);
    for loss in 0..10 + losses {
        for _ in 1..per_loss {
            let (before, cwnd) = (path.now, path.cwnd());
            path.ack(0);
            if loss >= 10 {
                weighted += cwnd * (path.now - before);
                time += path.now - before;
            }
        }
        path.lose();
    }
    weighted / time
}

#[track_caller]
fn within(actual: f64, expected: f64, share: f64) {
    assert!((actual / expected - 1.0).abs() <= share, "{actual}, expected {expected}");
}

#[test]
fn rfc_9438_4_3_the_friendly_region_has_the_average_window_of_reno() {
    // AVG_AIMD(1, 0.5) = sqrt(1.5 / p); at an RTT of 100 us the curve is far below it.
    within(average_window("20", 100.0, 1_000, 40), (1.5e3_f64).sqrt(), 0.05);
    within(average_window("20", 100.0, 10_000, 40), (1.5e4_f64).sqrt(), 0.05);
}

#[test]
fn rfc_9438_5_1_the_average_window_on_long_paths() {
    // Eq. 6: AVG_W_cubic = (C * 3.7 / 1.2)^(1/4) * RTT^0.75 / p^0.75; Table 1 (0.1 s) has 187 at p = 1e-4 and
    // 1054 at 1e-5. The curve is flat at its plateau, so other windows reach the equilibrium only over hundreds
    // of losses. These runs therefore start at W_max = AVG / (1 - 0.3 / 4).
    within(average_window("202", 100_000.0, 10_000, 20), 187.0, 0.05);
    within(average_window("1139", 100_000.0, 100_000, 10), 1054.0, 0.05);
}

#[test]
fn rfc_9438_4_5_a_window_grows_at_most_by_half_in_an_rtt() {
    // Far on the convex part: 100 s after the plateau, W_cubic is 400 000 above it.
    let mut path = after_loss_at("10", 1_000_000.0, &[]);
    path.recover();
    for _ in 0..200 {
        let (before, next) = (path.cwnd(), path.now + 1e6);
        while path.now < next {
            path.ack(0);
        }
        // Growth of (1.5 w - w) / w per packet; one RTT of a growing window has more than w packets.
        assert!(path.cwnd() <= 1.7 * before + 1.0, "{before} to {}", path.cwnd());
    }
    assert!(us(1.0) < path.flow.rto());
}
