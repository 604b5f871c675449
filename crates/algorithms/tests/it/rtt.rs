//! Properties of the smoothed RTT and the retransmission timeout (Swift §3.6: "computed using
//! exponentially weighted moving average over the end-to-end RTT").

use apus_cc::{RtoRule, RttEstimator};
use apus_units::Span;
use proptest::prelude::*;

fn rule(gain: f64, multiplier: f64) -> RtoRule {
    let (minimum, maximum) = (Span::from_us(250), Span::from_ms(15));
    RtoRule { gain, multiplier, minimum, maximum, initial: Span::from_ms(1) }
}

proptest! {
    #[test]
    fn smoothed_rtt_stays_between_the_samples_and_the_rto_follows(
        gain in 0.01f64..=1.0,
        multiplier in 1.0f64..4.0,
        samples in proptest::collection::vec(1u64..10_000_000_000, 1..100),
    ) {
        let rule = rule(gain, multiplier);
        let mut estimator = RttEstimator::default();
        prop_assert_eq!(estimator.rto(&rule, Span::ZERO), rule.initial);
        for &sample in &samples {
            estimator.update(&rule, Span::from_ps(sample));
        }
        let smoothed = estimator.smoothed().expect("sampled").as_ps();
        let (low, high) = (samples.iter().min().unwrap(), samples.iter().max().unwrap());
        // One picosecond for rounding.
        prop_assert!(smoothed + 1 >= *low && smoothed <= high + 1, "{smoothed}: {low}..{high}");
        let rto = estimator.rto(&rule, Span::ZERO);
        prop_assert!(rto >= rule.minimum && rto <= rule.maximum);
        let bounds = (rule.minimum.as_ps_f64(), rule.maximum.as_ps_f64());
        let expected = (smoothed as f64 * multiplier).clamp(bounds.0, bounds.1);
        prop_assert!((rto.as_ps_f64() / expected - 1.0).abs() < 1e-6);
        // The delay between paced packets is added even to the longest timeout.
        let gap = Span::from_secs(4);
        if rto == rule.maximum {
            prop_assert_eq!(estimator.rto(&rule, gap), gap + rule.maximum);
        }
    }

    /// After n equal samples the distance to a new level shrinks to (1 - gain)^n of the step.
    #[test]
    fn a_step_is_followed_geometrically(gain in 0.05f64..0.9, n in 1i32..30) {
        let rule = rule(gain, 2.0);
        let mut estimator = RttEstimator::default();
        estimator.update(&rule, Span::from_us(100));
        for _ in 0..n {
            estimator.update(&rule, Span::from_us(200));
        }
        let distance = 200e6 - estimator.smoothed().expect("sampled").as_ps_f64();
        let expected = 100e6 * (1.0 - gain).powi(n);
        // Each update rounds by at most a picosecond.
        prop_assert!((distance - expected).abs() < 40.0, "{distance} {expected}");
    }
}
