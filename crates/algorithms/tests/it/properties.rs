//! Properties that hold for any sequence of events.

use crate::common::fabric_cwnd;
use apus_algorithms::{BuiltInSender, build};
use apus_cc::{AckEvent, AlgorithmFactory, FlowInfo, LossEvent, Pacing, Sender, TimeoutEvent};
use apus_units::{PacketNumber, Span, Time};
use proptest::prelude::*;

/// An event of a flow, after a delay in nanoseconds.
#[derive(Clone, Debug)]
enum Step {
    Ack { fabric_ns: u64, endpoint_ns: u64, hops: u8, acked: u32, marked: u32, level: u8 },
    Loss,
    Timeout,
}

fn step() -> impl Strategy<Value = (u64, Step)> {
    let delay = prop_oneof![0..100_000_u64, 0..10_000_000_u64];
    let ack = (delay, 0..1_000_000_u64, any::<u8>(), 0..64_u32, 0..64_u32, 0..32_u8).prop_map(
        |(fabric_ns, endpoint_ns, hops, acked, marked, level)| {
            let marked = marked.min(acked);
            Step::Ack { fabric_ns, endpoint_ns, hops, acked, marked, level }
        },
    );
    let step = prop_oneof![8 => ack, 1 => Just(Step::Loss), 1 => Just(Step::Timeout)];
    (0..200_000_u64, step)
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    proptest::collection::vec(step(), 1..200)
}

/// Feeds `steps`; calls `check` with the flow before and after each step, the time and the RTT in force.
fn run(
    flow: &mut BuiltInSender,
    steps: &[(u64, Step)],
    mut check: impl FnMut(&BuiltInSender, &BuiltInSender, Time, &Step),
) {
    let mut now = Time::from_ps(1_000_000_000);
    for (seq, (pause, step)) in (0..).zip(steps) {
        now += Span::from_ns(*pause);
        let before = flow.clone();
        let (acked_seq, next_seq) = (PacketNumber::new(seq), PacketNumber::new(seq + 10));
        match *step {
            Step::Ack { fabric_ns, endpoint_ns, hops, acked, marked, level } => {
                flow.on_ack(&{
                    let mut event = AckEvent::new(now, Span::from_ns(fabric_ns + endpoint_ns));
                    event.fabric_delay = Span::from_ns(fabric_ns);
                    event.endpoint_delay = Span::from_ns(endpoint_ns);
                    event.hops = hops;
                    event.acked_packets = acked;
                    event.marked_packets = marked;
                    event.receiver_level = level;
                    event.acked_seq = acked_seq;
                    event.next_seq = next_seq;
                    event.in_flight = 3;
                    event.fields = apus_cc::Fields::NONE;
                    event
                });
            }
            Step::Loss => flow.on_loss(&{
                let mut event = LossEvent::new(now, 1);
                event.lost_seq = acked_seq;
                event.next_seq = next_seq;
                event.in_flight = 3;
                event
            }),
            Step::Timeout => flow.on_timeout(&{
                let mut event = TimeoutEvent::new(now);
                event.next_seq = next_seq;
                event
            }),
        }
        check(&before, flow, now, step);
    }
}

fn number(config: &apus_algorithms::registry::AlgorithmConfig, name: &str) -> f64 {
    let (_, text) = config.effective().into_iter().find(|(n, _)| *n == name).unwrap();
    text.parse().unwrap()
}

const PROFILES: [(&str, &str); 4] =
    [("swift", "paper"), ("swift", "falcon"), ("dctcp", "rfc8257"), ("dctcp", "gcn")];

proptest! {
    #[test]
    fn windows_stay_finite_and_within_their_bounds(steps in steps(), which in 0..PROFILES.len()) {
        let (name, profile) = PROFILES[which];
        let config = build(name, Some(profile), &[]).unwrap();
        let bounds = number(&config, "min_cwnd")..=number(&config, "max_cwnd");
        run(&mut config.sender(&FlowInfo::default()), &steps, |_, flow, _, step| {
            let state = flow.snapshot();
            let windows = [Some(state.cwnd), state.fabric_cwnd, state.endpoint_cwnd];
            for window in windows.into_iter().flatten() {
                assert!(bounds.contains(&window), "{window} after {step:?}");
            }
            assert_eq!(flow.allowance().window, state.cwnd);
            assert!(flow.rto() >= Span::from_us(250));
        });
    }

    #[test]
    fn a_window_decreases_at_most_once_per_rtt(steps in steps()) {
        // The third timeout in a row is exempt (Alg. 1 l. 17-18); with no timeouts all others obey.
        let config = build("swift", None, &[]).unwrap();
        let mut last_decrease = None::<Time>;
        let mut rtt = Span::from_us(25);
        let steps: Vec<_> =
            steps.into_iter().filter(|(_, step)| !matches!(step, Step::Timeout)).collect();
        run(&mut config.sender(&FlowInfo::default()), &steps, |before, flow, now, step| {
            if let Step::Ack { fabric_ns, endpoint_ns, .. } = step {
                rtt = Span::from_ns(fabric_ns + endpoint_ns);
            }
            if fabric_cwnd(flow) < fabric_cwnd(before) {
                if let Some(last) = last_decrease {
                    assert!(now.since(last) >= rtt, "{:?} after the last", now.since(last));
                }
                last_decrease = Some(now);
            }
        });
    }

    #[test]
    fn a_decrease_takes_at_most_max_mdf_unless_timeouts_pile_up(steps in steps()) {
        let config = build("swift", None, &[]).unwrap();
        let mut timeouts = 0;
        run(&mut config.sender(&FlowInfo::default()), &steps, |before, flow, _, step| {
            timeouts = if matches!(step, Step::Timeout) { timeouts + 1 } else { 0 };
            if timeouts < 3 {
                assert!(fabric_cwnd(flow) >= 0.5 * fabric_cwnd(before));
            } else {
                assert_eq!(fabric_cwnd(flow), 0.001);
            }
        });
    }

    #[test]
    fn the_target_stays_within_its_range(steps in steps()) {
        let config = build("swift", None, &[]).unwrap();
        run(&mut config.sender(&FlowInfo::default()), &steps, |_, flow, _, step| {
            if let Step::Ack { hops, .. } = step {
                let target = flow.snapshot().target_delay.unwrap();
                let least = Span::from_us(25 + u64::from(*hops));
                assert!(target >= least && target <= least + Span::from_us(100), "{target}");
            }
        });
    }

    #[test]
    fn delays_below_the_target_never_shrink_and_above_never_grow(steps in steps()) {
        let config = build("swift", None, &[]).unwrap();
        run(&mut config.sender(&FlowInfo::default()), &steps, |before, flow, _, step| {
            if let Step::Ack { fabric_ns, acked, .. } = step {
                let delay = Span::from_ns(*fabric_ns);
                let target = flow.snapshot().target_delay.unwrap();
                if delay + Span::from_ps(1) < target {
                    assert!(fabric_cwnd(flow) >= fabric_cwnd(before));
                } else if delay > target {
                    assert!(fabric_cwnd(flow) <= fabric_cwnd(before));
                }
                if *acked == 0 {
                    assert!(fabric_cwnd(flow) <= fabric_cwnd(before));
                }
            }
        });
    }

    #[test]
    fn packets_are_paced_exactly_below_one(steps in steps()) {
        let config = build("swift", None, &[]).unwrap();
        run(&mut config.sender(&FlowInfo::default()), &steps, |_, flow, _, _| {
            let allowance = flow.allowance();
            assert_eq!(allowance.window < 1.0, allowance.pacing != Pacing::AckClocked);
        });
    }

    #[test]
    fn the_same_events_give_the_same_answers(steps in steps(), which in 0..PROFILES.len()) {
        let (name, profile) = PROFILES[which];
        let config = build(name, Some(profile), &[]).unwrap();
        let trace = || {
            let mut states = Vec::new();
            run(&mut config.sender(&FlowInfo::default()), &steps, |_, flow, _, _| {
                states.push((flow.snapshot(), flow.allowance(), flow.rto(), flow.path_label()));
            });
            states
        };
        assert_eq!(trace(), trace());
    }
}
