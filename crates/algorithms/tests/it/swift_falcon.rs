//! The rules of the profile `falcon`, with targets fixed at 25 us.

use crate::common::*;
use apus_cc::Sender;
use apus_units::Span;

#[test]
fn falcon_increase_is_strictly_below_the_target_and_unguarded() {
    let mut flow = swift(plain_falcon());
    flow.on_ack(&ack(1000.0, 25.0));
    assert_close(fabric_cwnd(&flow), 10.0);
    // 40 us after the marker, which followed to 1000 - 25.
    flow.on_ack(&ack(1015.0, 40.0));
    assert_close(fabric_cwnd(&flow), 7.0);
    flow.on_ack(&ack(1016.0, 24.999));
    assert_close(fabric_cwnd(&flow), 7.0 + 1.0 / 7.0);
}

#[test]
fn falcon_decrease_is_guarded_by_the_rtt_of_this_ack() {
    let mut flow = swift(plain_falcon());
    flow.on_ack(&ack(1000.0, 40.0));
    flow.on_ack(&ack(1039.0, 40.0));
    assert_close(fabric_cwnd(&flow), 7.0);
    // 39 us after the decrease, but this ACK's RTT is 30 us: 1 - 0.8 * 5/30.
    flow.on_ack(&ack(1039.0, 30.0));
    assert_close(fabric_cwnd(&flow), 7.0 * (1.0 - 0.8 * 5.0 / 30.0));
}

#[test]
fn falcon_marker_moves_at_the_minimum() {
    let mut config = plain_falcon();
    (config.initial_cwnd, config.min_cwnd) = (1.0, 1.0);
    let mut falcon = swift(config.clone());
    config.rules = apus_algorithms::swift::Rules::Paper;
    let mut paper = swift(config);
    for flow in [&mut falcon, &mut paper] {
        flow.on_ack(&ack(1000.0, 40.0)); // at the minimum: cannot shrink
        flow.on_ack(&ack(1010.0, 20.0)); // 2.0
        // 35 us after the marker if it moved; 45 us after 990 if it did not.
        flow.on_ack(&ack(1035.0, 40.0));
    }
    assert_close(fabric_cwnd(&falcon), 2.0);
    assert_close(fabric_cwnd(&paper), 1.4);
}

#[test]
fn falcon_marker_follows_at_one_rtt() {
    let mut flow = swift(plain_falcon());
    flow.on_ack(&ack(1000.0, 40.0));
    // 500 us later an increase with an RTT of 20 us: the marker becomes 1480.
    flow.on_ack(&ack(1500.0, 20.0));
    // An ACK with an RTT of 40 us at 1515 is 35 us after that marker: blocked. At 1520 it is not.
    let before = fabric_cwnd(&flow);
    flow.on_ack(&ack(1515.0, 40.0));
    assert_close(fabric_cwnd(&flow), before);
    flow.on_ack(&ack(1520.0, 40.0));
    assert_close(fabric_cwnd(&flow), before * 0.7);
}

#[test]
fn falcon_first_timeout_cuts_third_collapses_others_leave() {
    let mut flow = swift(plain_falcon());
    flow.on_timeout(&timeout(1000.0));
    assert_close(fabric_cwnd(&flow), 5.0);
    flow.on_timeout(&timeout(2000.0));
    assert_close(fabric_cwnd(&flow), 5.0);
    flow.on_timeout(&timeout(3000.0));
    assert_close(fabric_cwnd(&flow), 0.01);
    // Timeouts do not affect the receiver-buffer window.
    assert_close(endpoint_cwnd(&flow), 10.0);
}

#[test]
fn falcon_timeouts_are_guarded_by_the_smoothed_rtt() {
    let mut config = plain_falcon();
    config.retx_reset_threshold = 2;
    let mut flow = swift(config);
    // Smoothed 20 + 0.25 * (60 - 20) = 30 us; the latest RTT is 60 us and its delay at the target.
    flow.on_ack(&ack(1000.0, 20.0));
    let mut event = ack(1100.0, 25.0);
    event.rtt = us(60.0);
    flow.on_ack(&event);
    let before = fabric_cwnd(&flow);
    // The marker followed to 1100 - 60 = 1040. A timeout at 1069 is 29 us after it, one at 1070 30.
    let mut blocked = flow.clone();
    blocked.on_timeout(&timeout(1069.0));
    assert_close(fabric_cwnd(&blocked), before);
    // The guard also blocks the collapse of the second one.
    blocked.on_timeout(&timeout(1069.5));
    assert_close(fabric_cwnd(&blocked), before);
    flow.on_timeout(&timeout(1070.0));
    assert_close(fabric_cwnd(&flow), before / 2.0);
}

#[test]
fn falcon_loss_leaves_the_window_unless_asked() {
    let mut flow = swift(plain_falcon());
    flow.on_loss(&loss(1000.0));
    assert_close(fabric_cwnd(&flow), 10.0);
    let mut config = plain_falcon();
    config.max_decrease_on_loss = true;
    let mut flow = swift(config);
    flow.on_loss(&loss(1000.0));
    assert_close(fabric_cwnd(&flow), 5.0);
    assert_close(endpoint_cwnd(&flow), 10.0);
}

#[test]
fn falcon_buffer_window_follows_the_receivers_level() {
    let mut flow = swift(plain_falcon());
    let level = |now, level| {
        let mut event = ack(now, 20.0);
        event.receiver_level = level;
        event
    };
    // Below 15: one packet more per ACK, regardless of the number of acknowledged packets.
    let mut event = level(1000.0, 14);
    event.acked_packets = 7;
    flow.on_ack(&event);
    assert_close(endpoint_cwnd(&flow), 11.0);
    // At 15: a decrease with the factor 1.
    flow.on_ack(&level(1001.0, 15));
    assert_close(endpoint_cwnd(&flow), 11.0);
    // 1 - 0.8 * (20 - 15)/20 = 0.8, once per RTT of 20 us.
    flow.on_ack(&level(1050.0, 20));
    assert_close(endpoint_cwnd(&flow), 8.8);
    flow.on_ack(&level(1069.0, 20));
    assert_close(endpoint_cwnd(&flow), 8.8);
    // 1 - 0.8 * 16/31 = 0.587, more than 1 - 0.5.
    flow.on_ack(&level(1070.0, 31));
    assert_close(endpoint_cwnd(&flow), 8.8 * (1.0 - 0.8 * 16.0 / 31.0));
    // The endpoint delay does not matter.
    let mut event = level(2000.0, 14);
    event.endpoint_delay = us(10_000.0);
    let before = endpoint_cwnd(&flow);
    flow.on_ack(&event);
    assert_close(endpoint_cwnd(&flow), before + 1.0);
}

#[test]
fn falcon_buffer_window_does_not_grow_on_a_sample_without_a_new_packet() {
    let mut flow = swift(plain_falcon());
    let mut event = ack(1000.0, 20.0);
    event.acked_packets = 0;
    flow.on_ack(&event);
    assert_close(endpoint_cwnd(&flow), 10.0);
}

/// One window-round at a window of one packet: one ACK with this delay.
fn round(flow: &mut apus_algorithms::swift::Swift, now: f64, delay: f64) {
    flow.on_ack(&ack(now, delay));
}

#[test]
fn falcon_five_delayed_rounds_in_a_row_change_the_path_and_keep_the_window() {
    let mut config = plain_falcon();
    (config.initial_cwnd, config.min_cwnd, config.max_cwnd) = (1.0, 1.0, 1.0);
    let mut flow = swift(config);
    for i in 0..4 {
        round(&mut flow, 1000.0 * f64::from(i), 25.3);
    }
    // The fifth is at 1.008 times the target, below 1.01: the sequence is interrupted.
    round(&mut flow, 5000.0, 25.2);
    for i in 0..4 {
        round(&mut flow, 6000.0 + 1000.0 * f64::from(i), 25.3);
    }
    assert_eq!(flow.path_label(), 0);
    round(&mut flow, 10_000.0, 25.3);
    assert_eq!(flow.path_label(), 1);
    assert_close(fabric_cwnd(&flow), 1.0);
    // The count restarts.
    for i in 0..5 {
        assert_eq!(flow.path_label(), 1);
        round(&mut flow, 11_000.0 + 1000.0 * f64::from(i), 25.3);
    }
    assert_eq!(flow.path_label(), 2);
}

#[test]
fn falcon_a_round_is_a_window_of_packets_and_delayed_from_half_of_them() {
    let rounds = |delayed: u32| {
        let mut config = plain_falcon();
        (config.initial_cwnd, config.min_cwnd, config.max_cwnd) = (4.0, 4.0, 4.0);
        let mut flow = swift(config);
        for round in 0..5 {
            for i in 0..4 {
                assert_eq!(flow.path_label(), 0);
                let now = 1000.0 * f64::from(round) + f64::from(i);
                flow.on_ack(&ack(now, if i < delayed { 30.0 } else { 20.0 }));
            }
        }
        flow.path_label()
    };
    assert_eq!(rounds(1), 0);
    assert_eq!(rounds(2), 1);
}

#[test]
fn falcon_paper_profile_never_changes_the_path() {
    let mut flow = swift(plain());
    for i in 0..1000 {
        flow.on_ack(&ack(1000.0 * f64::from(i), 100.0));
    }
    assert_eq!(flow.path_label(), 0);
}

#[test]
fn falcon_rto_is_twice_the_smoothed_rtt_plus_the_pacing_gap() {
    let mut config = plain_falcon();
    config.initial_cwnd = 0.5;
    let mut flow = swift(config);
    // At the target: the window stays at 0.5 and the gap is 25/0.5 = 50 us; 2 * 25 + 50 < 250.
    flow.on_ack(&ack(1000.0, 25.0));
    assert_eq!(flow.rto(), us(250.0));
    // 25 + 0.25 * (425 - 25) = 125 us smoothed; gap 425/0.5 = 850 us.
    let mut event = ack(2000.0, 25.0);
    event.rtt = us(425.0);
    flow.on_ack(&event);
    assert_eq!(flow.rto(), us(2.0 * 125.0 + 850.0));
    // No gap at a window of 10.
    let mut flow = swift(plain_falcon());
    let mut event = ack(1000.0, 25.0);
    event.rtt = us(400.0);
    flow.on_ack(&event);
    assert_eq!(flow.rto(), Span::from_us(800));
}
