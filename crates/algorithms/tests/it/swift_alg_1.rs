//! Algorithm 1 of the Swift paper, line by line, with targets fixed at 25 us.

use crate::common::*;
use apus_cc::{Pacing, Sender};

#[test]
fn swift_alg_1_l7_9_increase_is_ai_over_cwnd_per_acked_packet() {
    let mut flow = swift(plain());
    flow.on_ack(&ack(100.0, 20.0));
    // 10 + 1/10 * 1
    assert_close(fabric_cwnd(&flow), 10.1);
    let mut config = plain();
    config.ai = 0.5;
    let mut flow = swift(config);
    let mut event = ack(100.0, 20.0);
    event.acked_packets = 4;
    flow.on_ack(&event);
    // 10 + 0.5/10 * 4
    assert_close(fabric_cwnd(&flow), 10.2);
}

#[test]
fn swift_alg_1_l10_11_increase_below_one_packet_is_ai_per_acked_packet() {
    let mut config = plain();
    config.initial_cwnd = 0.25;
    config.ai = 0.125;
    let mut flow = swift(config);
    let mut event = ack(100.0, 20.0);
    event.acked_packets = 2;
    flow.on_ack(&event);
    // 0.25 + 0.125 * 2
    assert_close(fabric_cwnd(&flow), 0.5);
}

#[test]
fn swift_alg_1_l8_a_window_of_exactly_one_divides() {
    let mut config = plain();
    config.initial_cwnd = 1.0;
    config.ai = 0.5;
    let mut flow = swift(config);
    flow.on_ack(&ack(100.0, 20.0));
    assert_close(fabric_cwnd(&flow), 1.5);
    flow.on_ack(&ack(200.0, 20.0));
    // Now 0.5/1.5 per packet: not the branch below one.
    assert_close(fabric_cwnd(&flow), 1.5 + 0.5 / 1.5);
}

#[test]
fn swift_alg_1_l7_a_delay_equal_to_the_target_is_not_below_it() {
    let mut flow = swift(plain());
    flow.on_ack(&ack(100.0, 25.0));
    // The decrease branch with a factor of 1 - 0.8 * 0 = 1: unchanged.
    assert_close(fabric_cwnd(&flow), 10.0);
}

#[test]
fn swift_alg_1_l14_decrease_grows_with_the_distance_from_the_target() {
    let mut flow = swift(plain());
    flow.on_ack(&ack(100.0, 40.0));
    // 10 * (1 - 0.8 * (40 - 25) / 40)
    assert_close(fabric_cwnd(&flow), 7.0);
}

#[test]
fn swift_alg_1_l14_decrease_is_at_most_max_mdf() {
    let mut flow = swift(plain());
    flow.on_ack(&ack(100.0, 200.0));
    // 1 - 0.8 * 175/200 = 0.3, but at least 1 - 0.5
    assert_close(fabric_cwnd(&flow), 5.0);
}

#[test]
fn swift_alg_1_l3_decrease_at_most_once_per_rtt() {
    let mut flow = swift(plain());
    flow.on_ack(&ack(1000.0, 40.0));
    assert_close(fabric_cwnd(&flow), 7.0);
    flow.on_ack(&ack(1039.9, 40.0));
    assert_close(fabric_cwnd(&flow), 7.0);
    flow.on_ack(&ack(1040.0, 40.0));
    assert_close(fabric_cwnd(&flow), 4.9);
}

#[test]
fn swift_alg_1_l3_the_first_decrease_is_never_blocked() {
    // At 1 us on the clock, less than any RTT after its epoch.
    let mut flow = swift(plain());
    flow.on_ack(&ack(1.0, 40.0));
    assert_close(fabric_cwnd(&flow), 7.0);
    let mut flow = swift(plain());
    flow.on_timeout(&timeout(1.0));
    assert_close(fabric_cwnd(&flow), 5.0);
}

#[test]
fn swift_alg_1_l3_increases_are_not_guarded() {
    let mut flow = swift(plain());
    flow.on_ack(&ack(1000.0, 40.0));
    flow.on_ack(&ack(1001.0, 20.0));
    flow.on_ack(&ack(1002.0, 20.0));
    let once = 7.0 + 1.0 / 7.0;
    assert_close(fabric_cwnd(&flow), once + 1.0 / once);
}

#[test]
fn swift_alg_1_l3_the_guard_survives_a_clock_that_wraps() {
    let mut flow = swift(plain());
    let mut event = ack(0.0, 40.0);
    event.now = apus_units::Time::from_ps(u64::MAX - 10_000_000);
    flow.on_ack(&event);
    assert_close(fabric_cwnd(&flow), 7.0);
    // 30 us later, beyond the wrap: 10 us before it and 20 us after.
    flow.on_ack(&ack(20.0, 40.0));
    assert_close(fabric_cwnd(&flow), 7.0);
    flow.on_ack(&ack(31.0, 40.0));
    assert_close(fabric_cwnd(&flow), 4.9);
}

#[test]
fn swift_alg_1_l15_20_timeouts_cut_once_per_rtt_then_reset() {
    let mut flow = swift(plain());
    flow.on_timeout(&timeout(1000.0));
    assert_close(fabric_cwnd(&flow), 5.0);
    // Within one RTT (25 us, the base target, as there is no sample yet): blocked but counted.
    flow.on_timeout(&timeout(1010.0));
    assert_close(fabric_cwnd(&flow), 5.0);
    // The third in a row resets to min_cwnd, independent of the guard (l. 17-18).
    flow.on_timeout(&timeout(1011.0));
    assert_close(fabric_cwnd(&flow), 0.001);
    assert_close(endpoint_cwnd(&flow), 0.001);
}

/// §3.6: the timeout is that of the flow. If packets have their own timeouts, those that left before the first
/// timeout do not count as the second and third timeout in a row.
#[test]
fn swift_alg_1_l15_the_packets_of_a_flight_count_once() {
    let mut flow = swift(plain());
    flow.on_timeout(&timeout(1000.0));
    for us in 1..30 {
        let mut event = timeout(1000.0 + f64::from(us));
        event.is_same_flight = true;
        flow.on_timeout(&event);
    }
    assert_close(fabric_cwnd(&flow), 5.0);
    // The retransmission is lost too.
    flow.on_timeout(&timeout(2000.0));
    assert_close(fabric_cwnd(&flow), 2.5);
    flow.on_timeout(&timeout(2001.0));
    assert_close(fabric_cwnd(&flow), 0.001);
}

#[test]
fn swift_alg_1_l5_an_ack_resets_the_timeout_counter() {
    let mut flow = swift(plain());
    flow.on_timeout(&timeout(1000.0));
    flow.on_timeout(&timeout(2000.0));
    flow.on_ack(&ack(2500.0, 25.0));
    flow.on_timeout(&timeout(3000.0));
    // Three cuts by half, no reset.
    assert_close(fabric_cwnd(&flow), 1.25);
}

#[test]
fn swift_alg_1_l22_fast_recovery_resets_the_timeout_counter() {
    let mut flow = swift(plain());
    flow.on_timeout(&timeout(1000.0));
    flow.on_timeout(&timeout(2000.0));
    flow.on_loss(&loss(3000.0));
    flow.on_timeout(&timeout(4000.0));
    // Four cuts by half, no reset.
    assert_close(fabric_cwnd(&flow), 0.625);
}

#[test]
fn swift_alg_1_l21_24_fast_recovery_cuts_both_windows_once_per_rtt() {
    let mut flow = swift(plain());
    flow.on_loss(&loss(1000.0));
    flow.on_loss(&loss(1001.0));
    assert_close(fabric_cwnd(&flow), 5.0);
    assert_close(endpoint_cwnd(&flow), 5.0);
    flow.on_loss(&loss(1025.0));
    assert_close(fabric_cwnd(&flow), 2.5);
}

#[test]
fn swift_alg_1_l23_a_decrease_on_delay_blocks_one_on_loss() {
    let mut flow = swift(plain());
    flow.on_ack(&ack(1000.0, 40.0));
    flow.on_loss(&loss(1039.0));
    assert_close(fabric_cwnd(&flow), 7.0);
    // The endpoint window did not decrease (it grew by 1/10): its own guard lets the cut through.
    assert_close(endpoint_cwnd(&flow), 10.1 / 2.0);
    flow.on_loss(&loss(1040.0));
    assert_close(fabric_cwnd(&flow), 3.5);
}

#[test]
fn swift_alg_1_l25_windows_stay_within_their_bounds() {
    let mut config = plain();
    (config.min_cwnd, config.max_cwnd) = (0.5, 12.0);
    let mut flow = swift(config);
    for i in 0..100 {
        flow.on_ack(&ack(1000.0 + f64::from(i), 20.0));
    }
    assert_eq!(fabric_cwnd(&flow), 12.0);
    for i in 0..100 {
        flow.on_ack(&ack(10_000.0 + f64::from(i) * 1000.0, 500.0));
    }
    assert_eq!(fabric_cwnd(&flow), 0.5);
}

#[test]
fn swift_alg_1_l29_32_pacing_only_below_one_packet() {
    let mut config = plain();
    config.initial_cwnd = 1.0;
    let mut flow = swift(config);
    assert_eq!(flow.allowance().pacing, Pacing::AckClocked);
    // 1 * (1 - 0.5) at an RTT of 200 us: 200/0.5 us between packets.
    flow.on_ack(&ack(1000.0, 200.0));
    assert_eq!(flow.allowance().pacing, Pacing::Delay(us(400.0)));
    assert_eq!(flow.allowance().packets(), 1);
    assert_eq!(flow.snapshot().pacing_delay, Some(us(400.0)));
}
