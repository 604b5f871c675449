//! TIMELY against its Algorithm 1, Patched TIMELY against Algorithm 2 of "ECN or Delay"; expected
//! values are calculated by hand.

use std::sync::Arc;

use crate::common;
use crate::common::assert_close;
use apus_algorithms::timely::{Params, Timely, patched_weight};
use apus_cc::{Algorithm, FlowInfo, Pacing, Sender, Settings, TimeoutEvent};
use apus_units::{Bytes, PacketNumber, Rate};

/// Returns a flow with segments of one packet, and a first rate of half of 10 Gb/s.
fn timely(profile: &str, settings: &[(&str, &str)]) -> Timely {
    static INFO: apus_cc::AlgorithmInfo = <Timely as Algorithm>::INFO;
    let mut all = vec![("segment", "1000B"), ("initial_share", "0.5")];
    all.retain(|(name, _)| settings.iter().all(|(set, _)| set != name));
    all.extend_from_slice(settings);
    let settings = Settings::read(&INFO, Some(profile), &all).unwrap();
    let flow = FlowInfo {
        line_rate: Rate::from_gbps(10),
        payload: Bytes::new(1000),
        packet: Bytes::new(1000),
        ..FlowInfo::default()
    };
    Timely::new(Arc::new(Params::from_settings(&settings).unwrap()), &flow)
}

/// A sender and the time of its last completion event.
struct Run(Timely, f64);

impl Run {
    fn new(flow: Timely) -> Self {
        Self(flow, 1_000.0)
    }

    /// Feeds completion events 100 us apart with these RTTs in microseconds. Returns the rate afterwards, in
    /// Mb/s.
    fn rtts(&mut self, rtts: &[f64]) -> f64 {
        for rtt in rtts {
            self.1 += 100.0;
            self.0.on_ack(&common::ack(self.1, *rtt));
        }
        self.0.rate() / 1e6
    }
}

#[test]
fn alg_1_below_t_low_the_rate_grows_by_delta_at_any_gradient() {
    let mut run = Run::new(timely("paper", &[]));
    assert_eq!(run.0.allowance().pacing, Pacing::Rate(Rate::from_gbps(5)));
    assert_close(run.rtts(&[20.0]), 5_010.0);
    assert_close(run.rtts(&[49.0]), 5_020.0);
}

/// TIMELY §4.3: five completion events in a row without a positive gradient, at any RTT. After four events at
/// 100 us, 600 us is a steep rise, which restarts the count. With alpha = 0.875 the gradient at 450 us is that
/// of 0.125 * 0.875 * 500 - 0.875 * 150 = -77 us, and one step of 10 Mb/s follows.
#[test]
fn alg_1_a_rise_above_t_high_restarts_the_count_of_calm_events() {
    let mut run = Run::new(timely("paper", &[("alpha", "0.875")]));
    run.rtts(&[100.0; 4]);
    let after_cut = run.rtts(&[600.0]);
    assert_close(run.rtts(&[450.0]), after_cut + 10.0);
}

/// RFC 6298 §5.5: the timeout doubles while no acknowledgement arrives, and is reset by the next
/// one.
#[test]
fn timeouts_without_an_acknowledgement_double_the_next() {
    let mut flow = timely("paper", &[]);
    flow.on_ack(&common::ack(100.0, 50.0));
    let rto = flow.rto();
    let expire = |flow: &mut Timely, times: usize| {
        for _ in 0..times {
            flow.on_timeout(&{
                let mut event = TimeoutEvent::new(common::at(200.0));
                event.next_seq = PacketNumber::new(9);
                event
            });
        }
        flow.rto().as_ps_f64() / rto.as_ps_f64()
    };
    assert_close(expire(&mut flow, 1), 2.0);
    assert_close(expire(&mut flow, 1), 4.0);
    assert_close(expire(&mut flow, 100), 64.0);
    flow.on_ack(&common::ack(300.0, 50.0));
    assert_close(expire(&mut flow, 0), 1.0);
}

#[test]
fn alg_1_above_t_high_the_rate_falls_by_the_distance() {
    // 1 - 0.8 * (1 - 500 / 1000) = 0.6, though the gradient is 0.
    let mut run = Run::new(timely("paper", &[]));
    assert_close(run.rtts(&[1000.0]), 3_000.0);
    assert_close(run.rtts(&[1000.0]), 1_800.0);
}

#[test]
fn alg_1_a_positive_gradient_cuts_in_proportion() {
    // rtt_diff = 0.875 * 4 us = 3.5 us, over 20 us: 0.175; 1 - 0.8 * 0.175 = 0.86. The first event has
    // no RTT before it, so no gradient, and adds 10 Mb/s.
    let mut run = Run::new(timely("paper", &[]));
    assert_close(run.rtts(&[100.0]), 5_010.0);
    assert_close(run.rtts(&[104.0]), 5_010.0 * 0.86);
    // Then 0.125 * 3.5 us - 0.875 * 4 us < 0.
    assert_close(run.rtts(&[100.0]), 5_010.0 * 0.86 + 10.0);
}

#[test]
fn alg_1_five_completions_without_a_positive_gradient_make_the_increase_hyperactive() {
    let mut run = Run::new(timely("paper", &[]));
    assert_close(run.rtts(&[100.0; 4]), 5_040.0);
    assert_close(run.rtts(&[100.0]), 5_090.0);
    assert_close(run.rtts(&[100.0]), 5_140.0);
    // A positive gradient ends the hyperactive increase.
    run.rtts(&[101.0]);
    let before = run.rtts(&[90.0]);
    assert_close(run.rtts(&[90.0]), before + 10.0);
}

#[test]
fn ecn_or_delay_fig_7_the_weight_function() {
    for (gradient, weight) in [
        (-1.0, 0.0),
        (-0.25, 0.0),
        (-0.125, 0.25),
        (0.0, 0.5),
        (0.125, 0.75),
        (0.25, 1.0),
        (2.0, 1.0),
    ] {
        assert_close(patched_weight(gradient), weight);
    }
}

#[test]
fn ecn_or_delay_alg_2_the_decrease_depends_on_the_distance_from_the_target() {
    // No gradient: weight 1/2; error = (100 - 50) / 50 = 1.
    // rate = 10 * 0.5 + 5000 * (1 - 0.008 * 0.5 * 1) = 5 + 4980.
    let mut run = Run::new(timely("patched", &[]));
    assert_close(run.rtts(&[100.0]), 4_985.0);
    // Below T_low and above T_high, the rate changes as in TIMELY.
    assert_close(run.rtts(&[40.0]), 4_995.0);
    assert_close(run.rtts(&[1000.0]), 4_995.0 * (1.0 - 0.008 * 0.5));
}

#[test]
fn ecn_or_delay_alg_2_has_one_fixed_point() {
    // The rate is constant if delta / 2 = rate * beta / 2 * error: at 5 Gb/s error is 0.25, the RTT
    // 62.5 us, from above as from below.
    for share in ["0.3", "0.7"] {
        let mut run = Run::new(timely("patched", &[("initial_share", share)]));
        let rate = run.rtts(&[62.5; 20_000]);
        assert!((rate - 5_000.0).abs() < 1.0, "{rate}");
    }
    // TIMELY itself does not converge there: with a constant RTT it increases at every rate.
    for share in ["0.3", "0.7"] {
        let mut run = Run::new(timely("paper", &[("initial_share", share)]));
        let before = run.0.rate() / 1e6;
        assert_close(run.rtts(&[62.5; 4]), before + 40.0);
    }
}

#[test]
fn ecn_or_delay_4_a_segment_is_one_event_and_min_rtt_the_least_time_between_two() {
    let mut run = Run::new(timely("paper", &[("segment", "3000B")]));
    assert_close(run.rtts(&[20.0, 20.0]), 5_000.0);
    assert_close(run.rtts(&[20.0]), 5_010.0);
    let mut flow = timely("paper", &[]);
    for at in [1_000.0, 1_010.0, 1_019.0, 1_020.0] {
        flow.on_ack(&common::ack(at, 20.0));
    }
    assert_close(flow.rate() / 1e6, 5_020.0);
}

#[test]
fn the_rate_stays_between_its_floor_and_the_line() {
    let mut run = Run::new(timely("paper", &[]));
    assert_close(run.rtts(&[100_000.0; 100]), 10.0);
    assert_close(run.rtts(&[10.0; 2_000]), 10_000.0);
}
