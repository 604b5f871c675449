//! Swift §3.2-3.6 and §5.4, by section.

use crate::common::*;
use apus_algorithms::swift::{Config, HostSignal, Params, TargetRule, WhenToPace};
use apus_cc::{Allowance, CongestionHeader, Ecn, Pacing, SendInfo, Sender};
use apus_units::{PacketNumber, Span};

#[test]
fn swift_3_2_increase_over_one_rtt_is_ai() {
    // Ten ACKs of one window of ten: 10 + about 1 (a little less, since the window grows in the meantime).
    let mut flow = swift(plain());
    for i in 0..10 {
        flow.on_ack(&ack(1000.0 + f64::from(i), 20.0));
    }
    let grown = fabric_cwnd(&flow) - 10.0;
    assert!((0.95..1.0).contains(&grown), "{grown}");
}

#[test]
fn swift_3_3_effective_window_is_the_smaller_one() {
    let mut flow = swift(plain());
    let mut event = ack(1000.0, 40.0);
    flow.on_ack(&event);
    assert_close(flow.allowance().window, 7.0);
    for i in 0..100 {
        event = ack(2000.0 + 50.0 * f64::from(i), 20.0);
        event.endpoint_delay = us(200.0);
        event.rtt = us(220.0);
        flow.on_ack(&event);
    }
    assert!(endpoint_cwnd(&flow) < fabric_cwnd(&flow));
    assert_eq!(flow.allowance().window, endpoint_cwnd(&flow));
}

#[test]
fn swift_3_3_endpoint_delay_is_filtered_and_fabric_delay_is_not() {
    let mut flow = swift(plain());
    let mut event = ack(1000.0, 20.0);
    event.endpoint_delay = us(50.0);
    flow.on_ack(&event);
    assert_close(endpoint_cwnd(&flow), 10.1);
    // One spike of 120 us: the average is 50 + 0.5 * 70 = 85, still below the target of 100.
    event = ack(2000.0, 20.0);
    event.endpoint_delay = us(120.0);
    flow.on_ack(&event);
    assert_close(endpoint_cwnd(&flow), 10.1 + 1.0 / 10.1);
    // A second one: 85 + 0.5 * 35 = 102.5.
    event = ack(3000.0, 20.0);
    event.endpoint_delay = us(120.0);
    flow.on_ack(&event);
    let before = 10.1 + 1.0 / 10.1;
    assert_close(endpoint_cwnd(&flow), before * (1.0 - 0.8 * 2.5 / 102.5));
}

#[test]
fn swift_3_4_the_endpoint_window_may_have_a_separate_minimum() {
    let collapsed = |own_minimum: f64| {
        let mut config = plain();
        let HostSignal::EndpointDelay { min_cwnd, .. } = &mut config.host else { panic!() };
        *min_cwnd = own_minimum;
        let mut flow = swift(config);
        for i in 1..=40 {
            let mut event = ack(1e5 * f64::from(i), 40.0);
            event.endpoint_delay = us(10_000.0);
            event.rtt = us(10_040.0);
            flow.on_ack(&event);
        }
        flow
    };
    // Forty halvings at most, and at least by 0.8 * 15 / 40: both windows at their minimum.
    let flow = collapsed(1.0);
    assert_eq!((fabric_cwnd(&flow), endpoint_cwnd(&flow)), (0.001, 1.0));
    let flow = collapsed(0.0);
    assert_eq!((fabric_cwnd(&flow), endpoint_cwnd(&flow)), (0.001, 0.001));
}

#[test]
fn swift_3_3_each_window_has_its_own_guard() {
    let mut flow = swift(plain());
    flow.on_ack(&ack(1000.0, 40.0));
    // 5 us later the endpoint is congested: the fabric's decrease does not block its decrease.
    let mut event = ack(1005.0, 40.0);
    event.endpoint_delay = us(1000.0);
    flow.on_ack(&event);
    assert_close(fabric_cwnd(&flow), 7.0);
    // The average is 500: 1 - min(0.5, 0.8 * 400/500)
    assert_close(endpoint_cwnd(&flow), 10.1 * 0.5);
}

#[test]
fn swift_3_3_footnote_3_the_ceiling_guards_the_idle_window() {
    let mut config = plain();
    config.max_cwnd = 30.0;
    let mut flow = swift(config);
    for i in 0..5000 {
        flow.on_ack(&ack(1000.0 + 10.0 * f64::from(i), 40.0));
    }
    assert_eq!(endpoint_cwnd(&flow), 30.0);
}

#[test]
fn swift_3_4_the_window_falls_to_a_thousandth() {
    let mut flow = swift(plain());
    for i in 0..30 {
        flow.on_ack(&ack(1000.0 * f64::from(i + 1), 500.0));
    }
    assert_eq!(flow.allowance().window, 0.001);
    assert_eq!(flow.allowance().pacing, Pacing::Delay(us(500_000.0)));
}

/// The deviation of `max_pacing_delay`: one RTT of 4 s at the smallest window would be a pause of 4000 s.
#[test]
fn swift_3_4_the_pacing_delay_has_a_bound() {
    let mut config = plain();
    assert_eq!(config.max_pacing_delay, us(1e6));
    let mut flow = swift(config.clone());
    for i in 0..40 {
        flow.on_ack(&ack(1e7 * f64::from(i + 1), 4e6));
    }
    assert_eq!(flow.allowance().window, 0.001);
    assert_eq!(flow.allowance().pacing, Pacing::Delay(us(1e6)));
    config.max_pacing_delay = Span::ZERO;
    let error = Params::new(config).expect_err("no delay at all").to_string();
    assert!(error.contains("max_pacing_delay"), "{error}");
}

#[test]
fn swift_3_4_half_a_packet_waits_two_rtts() {
    let mut config = plain();
    config.initial_cwnd = 0.5;
    // Before any sample the base target of 25 us is used as the RTT.
    assert_eq!(swift(config).allowance().pacing, Pacing::Delay(us(50.0)));
}

#[test]
fn swift_3_4_always_on_pacing_spreads_a_window_over_an_rtt() {
    let mut config = plain();
    config.pacing = WhenToPace::Always;
    let mut flow = swift(config);
    flow.on_ack(&ack(1000.0, 25.0));
    assert_eq!(flow.allowance().pacing, Pacing::Delay(us(2.5)));
}

#[test]
fn swift_3_4_pacing_uses_the_end_to_end_rtt() {
    let mut config = plain();
    config.initial_cwnd = 0.5;
    let mut flow = swift(config);
    let mut event = ack(1000.0, 25.0);
    event.endpoint_delay = us(15.0);
    event.rtt = us(40.0);
    flow.on_ack(&event);
    // The fabric window stays at 0.5 (at the target), the RTT is 40 us.
    assert_eq!(flow.allowance().pacing, Pacing::Delay(us(80.0)));
}

#[test]
fn swift_3_5_target_grows_as_window_shrinks() {
    let rule = TargetRule::new(&Config::paper().target);
    let mut before = 0.0;
    for cwnd in [256.0, 100.0, 64.0, 16.0, 4.0, 1.0, 0.25, 0.01, 0.001] {
        let target = rule.delay_ps(cwnd, 0);
        assert!(target >= before, "{cwnd}: {target} after {before}");
        before = target;
    }
}

#[test]
fn swift_3_5_scaling_meets_its_ends_and_is_clamped_beyond_them() {
    let rule = TargetRule::new(&Config::paper().target);
    let target = |cwnd| rule.delay_ps(cwnd, 0) * 1e-6;
    assert_close(target(0.01), 125.0);
    assert_close(target(0.001), 125.0);
    assert_close(target(100.0), 25.0);
    assert_close(target(256.0), 25.0);
    // In between, at 1: alpha = 100 / (10 - 0.1), times (1 - 0.1).
    assert_close(target(1.0), 25.0 + 100.0 / 9.9 * 0.9);
}

#[test]
fn swift_3_5_hops_add_hop_scale_each() {
    let rule = TargetRule::new(&Config::paper().target);
    assert_close(rule.delay_ps(100.0, 5) * 1e-6, 30.0);
    let rule = TargetRule::new(&Config::falcon().target);
    assert_close(rule.delay_ps(256.0, 2) * 1e-6, 27.1);
}

#[test]
fn swift_3_5_the_target_follows_the_fabric_window_even_if_the_endpoint_binds() {
    let mut config = Config::paper();
    config.initial_cwnd = 4.0;
    let mut flow = swift(config);
    let mut event = ack(1000.0, 60.0);
    event.endpoint_delay = us(100_000.0);
    flow.on_ack(&event);
    let fabric = fabric_cwnd(&flow);
    assert!(endpoint_cwnd(&flow) < fabric);
    flow.on_ack(&event);
    let target = flow.snapshot().target_delay.unwrap().as_us_f64();
    let expected = 25.0 + 100.0 / 9.9 * (1.0 / fabric.sqrt() - 0.1);
    assert!((target - expected).abs() < 1e-5, "{target}, expected {expected}");
}

#[test]
fn swift_3_5_no_range_no_flow_scaling() {
    let rule = TargetRule::new(&plain().target);
    assert_eq!(rule.delay_ps(0.001, 0), 25e6);
    assert_eq!(rule.delay_ps(100.0, 0), 25e6);
}

#[test]
fn swift_3_6_rto_follows_the_smoothed_rtt() {
    let mut flow = swift(plain());
    assert_eq!(flow.rto(), Span::from_ms(1));
    flow.on_ack(&ack(1000.0, 2000.0));
    assert_eq!(flow.rto(), Span::from_ms(4));
    // 2000 + 0.25 * (400 - 2000) = 1600
    flow.on_ack(&ack(9000.0, 400.0));
    assert_eq!(flow.snapshot().smoothed_rtt, Some(us(1600.0)));
    assert_eq!(flow.rto(), us(3200.0));
    for i in 0..100 {
        flow.on_ack(&ack(10_000.0 + f64::from(i), 20.0));
    }
    assert_eq!(flow.rto(), Span::from_ms(1));
}

#[test]
fn swift_3_6_a_sample_of_a_packet_declared_lost_decreases_but_never_increases() {
    let mut flow = swift(plain());
    let mut event = ack(1000.0, 20.0);
    event.acked_packets = 0;
    flow.on_ack(&event);
    assert_eq!((fabric_cwnd(&flow), endpoint_cwnd(&flow)), (10.0, 10.0));
    assert_eq!(flow.snapshot().smoothed_rtt, Some(us(20.0)));
    event = ack(2000.0, 40.0);
    event.acked_packets = 0;
    flow.on_ack(&event);
    assert_close(fabric_cwnd(&flow), 7.0);
}

#[test]
fn swift_3_6_without_decrease_on_loss_a_loss_leaves_the_window() {
    let mut config = plain();
    config.max_decrease_on_loss = false;
    let mut flow = swift(config);
    flow.on_loss(&loss(1000.0));
    assert_eq!(fabric_cwnd(&flow), 10.0);
}

#[test]
fn swift_5_4_v0_compares_the_whole_rtt_with_one_target() {
    let mut config = plain();
    config.host = HostSignal::EndToEnd;
    config.target.base_target = us(100.0);
    let mut flow = swift(config);
    let mut event = ack(1000.0, 20.0);
    event.endpoint_delay = us(140.0);
    event.rtt = us(160.0);
    flow.on_ack(&event);
    // 10 * (1 - 0.8 * (160 - 100)/160)
    assert_close(flow.allowance().window, 7.0);
    assert_eq!(flow.snapshot().endpoint_cwnd, None);
    // The second window does not limit, and timeouts do not shrink it unseen.
    for i in 0..3 {
        flow.on_timeout(&timeout(2000.0 + 1000.0 * f64::from(i)));
    }
    event = ack(9000.0, 20.0);
    event.acked_packets = 50;
    flow.on_ack(&event);
    assert_close(flow.allowance().window, 50.001);
}

#[test]
fn allowance_packets_is_the_floor_and_at_least_one() {
    let packets = |window| Allowance { window, pacing: Pacing::AckClocked }.packets();
    assert_eq!(packets(0.001), 1);
    assert_eq!(packets(1.5), 1);
    assert_eq!(packets(2.0), 2);
    assert_eq!(packets(29.999), 29);
    assert_eq!(packets(f64::INFINITY), u32::MAX);
}

#[test]
fn swift_does_not_change_the_header() {
    let mut header = CongestionHeader::default();
    let info = SendInfo::new(at(1.0), PacketNumber::new(1));
    swift(plain()).on_transmit(&mut header, &info);
    assert_eq!(header.ecn, Ecn::NotCapable);
}

#[test]
fn a_flow_fits_into_128_bytes() {
    assert_eq!(size_of::<apus_algorithms::swift::Swift>(), 96);
    assert!(size_of::<apus_algorithms::BuiltInSender>() <= 128);
}
