//! Mistakes of other implementations of Swift, one test for each.

use crate::common::*;
use apus_cc::Sender;
use apus_units::Span;

#[test]
fn trap_1_blocked_decrease_does_not_postpone_the_next() {
    // ACKs every 10 us, all above the target, RTT 40 us. Algorithm 1 l. 27 read literally would
    // move the marker at each of them, and the window would never shrink again.
    let mut flow = swift(plain());
    for i in 0..=8 {
        flow.on_ack(&ack(1000.0 + 10.0 * f64::from(i), 40.0));
    }
    // Decreases at 1000, 1040 and 1080.
    assert_close(fabric_cwnd(&flow), 10.0 * 0.7 * 0.7 * 0.7);
}

#[test]
fn trap_1_an_unchanged_window_does_not_move_the_marker() {
    let mut flow = swift(plain());
    // A delay equal to the target: the factor is 1, so the window does not shrink.
    flow.on_ack(&ack(1000.0, 25.0));
    flow.on_ack(&ack(1001.0, 40.0));
    assert_close(fabric_cwnd(&flow), 7.0);
}

#[test]
fn trap_2_flow_scaling_is_smooth_below_one_packet() {
    // With the paper's profile: alpha = 100 / (1/sqrt(0.01) - 1/sqrt(100)) = 100/9.9 us and
    // beta = -alpha/10, so a window of 0.04 gets alpha * (5 - 0.1) and one of 0.05 less.
    let alpha = 100.0 / 9.9;
    let mut before = f64::MAX;
    for cwnd in [0.02, 0.04, 0.05, 0.0625, 0.1, 0.25, 0.26, 0.5, 0.99] {
        let target = target_at(cwnd, 0);
        assert_close(target, 25.0 + alpha * (1.0 / f64::sqrt(cwnd) - 0.1));
        assert!(target < before);
        before = target;
    }
}

#[test]
fn trap_2_the_hop_term_has_an_effect() {
    assert_close(target_at(4.0, 5) - target_at(4.0, 0), 5.0);
    assert_close(target_at(4.0, 255) - target_at(4.0, 0), 255.0);
}

#[test]
fn trap_2_a_lossy_flow_recovers() {
    let mut flow = swift(plain());
    for i in 0..10 {
        flow.on_timeout(&timeout(1000.0 * f64::from(i)));
    }
    assert_close(fabric_cwnd(&flow), 0.001);
    // Below one packet the window grows by ai = 1 per acknowledged packet: one ACK raises it above 1.
    flow.on_ack(&ack(20_000.0, 20.0));
    assert_close(fabric_cwnd(&flow), 1.001);
}

#[test]
fn trap_3_beta_of_the_target_is_added_not_subtracted() {
    // At fs_max_cwnd the scaling is alpha/sqrt(100) + beta = 0. Subtracting the negative beta
    // would give 2 * alpha / 10 = 2.02 us too much.
    assert_close(target_at(100.0, 0), 25.0);
}

#[test]
fn trap_3_ecn_marks_do_not_move_the_window() {
    let (mut plain_flow, mut marked_flow) = (swift(plain()), swift(plain()));
    let mut event = ack(1000.0, 20.0);
    plain_flow.on_ack(&event);
    event.marked_packets = 1;
    marked_flow.on_ack(&event);
    assert_eq!(plain_flow.snapshot(), marked_flow.snapshot());
}

#[test]
fn trap_3_there_is_an_endpoint_window() {
    let mut flow = swift(plain());
    let mut event = ack(1000.0, 20.0);
    event.endpoint_delay = us(160.0);
    event.rtt = us(180.0);
    flow.on_ack(&event);
    // 10 * (1 - 0.8 * (160 - 100) / 160)
    assert_close(endpoint_cwnd(&flow), 7.0);
    assert_close(fabric_cwnd(&flow), 10.1);
    assert_close(flow.allowance().window, 7.0);
}

#[test]
fn trap_4_the_guard_is_not_inert() {
    let mut flow = swift(plain());
    for i in 0..10 {
        flow.on_ack(&ack(1000.0 + f64::from(i), 40.0));
    }
    assert_close(fabric_cwnd(&flow), 7.0);
}

#[test]
fn trap_4_small_increments_are_not_truncated() {
    let mut config = plain();
    config.initial_cwnd = 200.0;
    config.ai = 0.001;
    let mut flow = swift(config);
    flow.on_ack(&ack(1000.0, 20.0));
    assert_close(fabric_cwnd(&flow), 200.000_005);
    assert!(fabric_cwnd(&flow) > 200.0);
}

#[test]
fn trap_5_the_target_uses_the_window_before_this_ack() {
    let mut config = plain();
    config.target.fs_range = us(100.0);
    (config.target.fs_min_cwnd, config.target.fs_max_cwnd) = (0.01, 100.0);
    config.initial_cwnd = 0.04;
    let mut flow = swift(config);
    flow.on_ack(&ack(1000.0, 20.0));
    // 25 + 100/9.9 * (1/sqrt(0.04) - 1/10); the new window of 1.04 would give 33.9 us.
    let target = flow.snapshot().target_delay.map(Span::as_us_f64);
    assert!((target.unwrap() - (25.0 + 100.0 / 9.9 * 4.9)).abs() < 1e-5, "{target:?}");
    assert_close(fabric_cwnd(&flow), 1.04);
}

#[test]
fn trap_6_a_coalesced_ack_counts_every_packet() {
    let mut config = plain();
    config.initial_cwnd = 1.25;
    let mut flow = swift(config);
    let mut event = ack(1000.0, 20.0);
    event.acked_packets = 10;
    flow.on_ack(&event);
    // 1.25 + 1/1.25 * 10: a jump of eight packets, as Algorithm 1 has it.
    assert_close(fabric_cwnd(&flow), 9.25);
}

#[test]
fn trap_7_the_guard_uses_the_latest_raw_rtt() {
    let mut flow = swift(plain());
    // Long RTTs come first, so that a smoothed RTT would still be far above 30 us at the end.
    for i in 0..20 {
        flow.on_ack(&ack(1000.0 + f64::from(i), 24.0));
    }
    let mut slow = ack(2000.0, 30.0);
    slow.rtt = us(1000.0);
    flow.on_ack(&slow);
    let before = fabric_cwnd(&flow);
    flow.on_ack(&ack(2029.0, 30.0));
    assert_close(fabric_cwnd(&flow), before);
    flow.on_ack(&ack(2030.0, 30.0));
    // 1 - 0.8 * 5/30
    assert_close(fabric_cwnd(&flow), before * (1.0 - 0.8 * 5.0 / 30.0));
}

#[test]
fn trap_7_the_guard_of_retransmissions_uses_the_latest_raw_rtt() {
    let mut flow = swift(plain());
    flow.on_ack(&ack(1000.0, 20.0));
    let mut slow = ack(2000.0, 40.0);
    slow.rtt = us(1000.0);
    flow.on_ack(&slow);
    let before = fabric_cwnd(&flow);
    flow.on_loss(&loss(2999.0));
    assert_close(fabric_cwnd(&flow), before);
    flow.on_loss(&loss(3000.0));
    assert_close(fabric_cwnd(&flow), before / 2.0);
}

#[test]
fn trap_8_the_pacing_period_is_rtt_over_cwnd() {
    let mut config = plain();
    config.initial_cwnd = 0.5;
    let mut flow = swift(config);
    // At the target: the window stays, the RTT is 25 us; the period between packets is 50 us.
    flow.on_ack(&ack(1000.0, 25.0));
    assert_eq!(flow.allowance().pacing, apus_cc::Pacing::Delay(us(50.0)));
}

/// The target in us of the paper's profile at a window, through the sender.
fn target_at(cwnd: f64, hops: u8) -> f64 {
    let mut config = apus_algorithms::swift::Config::paper();
    config.initial_cwnd = cwnd;
    let params = apus_algorithms::swift::Params::new(config).unwrap();
    apus_algorithms::swift::TargetRule::new(&params.config().target).delay_ps(cwnd, hops) * 1e-6
}
