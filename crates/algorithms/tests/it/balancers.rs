//! The path policies. Expected values are calculated by hand from the rules of their sources.

use apus_algorithms::balancers::{self, BuiltInPath};
use apus_cc::{Ev, PathEvent, PathFeedback, PathPolicy};
use apus_units::{Span, Time};

fn at(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

fn policy(name: &str, settings: &[(&str, &str)]) -> BuiltInPath {
    let config = balancers::build(name, None, settings, None, &[]).expect("valid settings");
    let mut policy = config.policy().clone();
    policy.reseed(7);
    policy
}

fn report(policy: &mut BuiltInPath, us: u64, ev: Ev, kind: PathFeedback) {
    let mut event = PathEvent::new(at(us), ev, kind);
    event.acked_packets = 1;
    event.marked_packets = u32::from(kind == PathFeedback::Marked);
    event.rto = Span::from_us(100);
    policy.feedback(&event);
}

fn draw(policy: &mut BuiltInPath, count: usize) -> Vec<Ev> {
    (0..count).map(|_| policy.next(Time::ZERO, 1.0)).collect()
}

#[test]
fn every_profile_of_every_policy_is_sound() {
    for info in balancers::all() {
        for profile in info.profiles {
            balancers::build(info.name, Some(profile.name), &[], None, &[]).expect(info.name);
        }
    }
}

#[test]
fn permuted_spraying_uses_each_value_once_per_round() {
    let mut oblivious = policy("oblivious", &[("evs", "16")]);
    let mut orders = Vec::new();
    for _ in 0..4 {
        let round = draw(&mut oblivious, 16);
        let mut sorted = round.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), 16);
        orders.push(round);
    }
    orders.dedup();
    assert!(orders.len() > 1, "each round has another order");
}

/// A flow shorter than the number of values gets no feedback on a value before the value would be used again.
#[test]
fn the_bitmap_equals_oblivious_spraying_within_a_round() {
    let (mut oblivious, mut bitmap) = (policy("oblivious", &[]), policy("bitmap", &[]));
    for us in 0..64 {
        let ev = bitmap.next(at(us), 1.0);
        assert_eq!(ev, oblivious.next(at(us), 1.0));
        report(&mut bitmap, us, ev, PathFeedback::Trimmed);
    }
    // Every value has a penalty: the first value of the call loses one point, and E more steps are tried.
    oblivious.next(at(64), 1.0);
    let again = draw(&mut oblivious, 64);
    assert_eq!(bitmap.next(at(64), 1.0), again[63]);
}

/// A marked value is skipped once, a trimmed one four times, one with a timeout fifteen times.
#[test]
fn the_bitmap_passes_over_a_value_as_often_as_its_penalty() {
    for (kind, times) in
        [(PathFeedback::Marked, 1), (PathFeedback::Trimmed, 4), (PathFeedback::Timeout, 15)]
    {
        let mut bitmap = policy("bitmap", &[("evs", "2")]);
        let bad = bitmap.next(Time::ZERO, 1.0);
        report(&mut bitmap, 0, bad, kind);
        let draws = draw(&mut bitmap, 200);
        let first = draws.iter().position(|ev| *ev == bad).expect("the value heals");
        // Two values: a round offers the bad one once, and takes at most two packets of the other one.
        assert!((times..=2 * times + 1).contains(&first), "{kind:?}: again after {first} packets");
    }
}

#[test]
fn reps_uses_the_value_of_a_good_packet_once_and_the_oldest_first() {
    let mut reps = policy("reps", &[]);
    for (us, ev) in [(1, 11), (2, 12), (3, 13)] {
        report(&mut reps, us, Ev::new(ev), PathFeedback::Good);
    }
    report(&mut reps, 4, Ev::new(14), PathFeedback::Marked);
    assert_eq!(draw(&mut reps, 3), [11, 12, 13].map(Ev::new));
    let random = draw(&mut reps, 4);
    assert!(random.iter().all(|ev| !(11..=14).contains(&ev.get())), "{random:?}");
}

#[test]
fn reps_keeps_the_last_eight_values() {
    let mut reps = policy("reps", &[]);
    for ev in 1..=10 {
        report(&mut reps, 1, Ev::new(ev), PathFeedback::Good);
    }
    assert_eq!(draw(&mut reps, 8), [3, 4, 5, 6, 7, 8, 9, 10].map(Ev::new));
}

/// For 100 us from the timeout, the frozen policy uses the known values in turn. Then 8 packets explore, of
/// which the last takes a random value.
#[test]
fn reps_freezes_after_a_timeout_and_explores_afterwards() {
    let mut reps = policy("reps", &[("explore", "8")]);
    for ev in [1, 2, 3] {
        report(&mut reps, 1, Ev::new(ev), PathFeedback::Good);
    }
    report(&mut reps, 10, Ev::new(99), PathFeedback::Timeout);
    let frozen = draw(&mut reps, 30);
    assert!(frozen.iter().all(|ev| (1..=3).contains(&ev.get())), "{frozen:?}");
    // At 110 us the policy is still frozen.
    report(&mut reps, 110, Ev::new(4), PathFeedback::Good);
    assert_eq!(draw(&mut reps, 1), [Ev::new(4)]);
    assert!(draw(&mut reps, 8).iter().all(|ev| ev.get() <= 4));
    for ev in 21..=28 {
        report(&mut reps, 111, Ev::new(ev), PathFeedback::Good);
    }
    // A timeout during the exploration is not a failure.
    report(&mut reps, 112, Ev::new(99), PathFeedback::Timeout);
    let explored = draw(&mut reps, 9);
    assert_eq!(explored[..7], [21, 22, 23, 24, 25, 26, 27].map(Ev::new));
    assert!(!(21..=28).contains(&explored[7].get()));
    assert_eq!(explored[8], Ev::new(28));
}

/// Without trimming a timeout after a large RTT is congestion: the limit is 1.65 x 10 us.
#[test]
fn reps_takes_a_timeout_at_a_high_rtt_for_congestion() {
    for (rtt, frozen) in [(16, true), (17, false)] {
        let mut reps = policy("reps", &[("failure", "timeout-at-low-rtt")]);
        let mut good = PathEvent::new(at(1), Ev::new(5), PathFeedback::Good);
        good.rtt = Span::from_us(rtt);
        reps.feedback(&good);
        report(&mut reps, 2, Ev::new(9), PathFeedback::Timeout);
        assert_eq!(draw(&mut reps, 5).iter().all(|ev| *ev == Ev::new(5)), frozen, "{rtt} us");
    }
}

#[test]
fn mixed_uses_good_values_first_and_then_the_bitmap() {
    let (mut mixed, mut bitmap) = (policy("mixed", &[]), policy("bitmap", &[]));
    report(&mut mixed, 1, Ev::new(5), PathFeedback::Good);
    report(&mut mixed, 1, Ev::new(6), PathFeedback::Marked);
    report(&mut bitmap, 1, Ev::new(6), PathFeedback::Marked);
    assert_eq!(mixed.next(at(2), 1.0), Ev::new(5));
    assert_eq!(draw(&mut mixed, 64), draw(&mut bitmap, 64));
}

/// Two rounds of one packet each; a round is congested if half of its packets are marked.
#[test]
fn plb_changes_the_path_after_congested_rounds_in_a_row() {
    let settings = [("rounds", "2"), ("pause", "1")];
    let mut plb = policy("plb", &settings);
    let first = plb.next(at(0), 1.0);
    report(&mut plb, 1, first, PathFeedback::Marked);
    report(&mut plb, 2, first, PathFeedback::Good);
    report(&mut plb, 3, first, PathFeedback::Marked);
    assert_eq!(plb.next(at(3), 1.0), first);
    report(&mut plb, 4, first, PathFeedback::Marked);
    let second = plb.next(at(4), 1.0);
    assert_ne!(second, first);
    // A timeout changes the path at once; the path then stays for 1 to 2 timeouts of 100 us.
    report(&mut plb, 5, second, PathFeedback::Timeout);
    let third = plb.next(at(5), 1.0);
    assert_ne!(third, second);
    for us in 6..100 {
        report(&mut plb, us, third, PathFeedback::Marked);
    }
    assert_eq!(plb.next(at(100), 1.0), third);
    report(&mut plb, 206, third, PathFeedback::Marked);
    assert_ne!(plb.next(at(206), 1.0), third);
}

/// Acknowledgements arrive every microsecond with an RTT of 10 us. The fifth congested RTT in a row changes the
/// path of a flow that has a rate but no window.
#[test]
fn a_round_of_plb_is_an_rtt_for_flows_with_a_rate_alone() {
    let mut plb = policy("plb", &[("rounds", "5")]);
    let first = plb.next(at(0), f64::INFINITY);
    let changed = (1..1000).find(|us| {
        let mut event = PathEvent::new(at(*us), first, PathFeedback::Marked);
        (event.acked_packets, event.marked_packets) = (1, 1);
        (event.cwnd, event.rtt) = (f64::INFINITY, Span::from_us(10));
        plb.feedback(&event);
        plb.next(at(*us), f64::INFINITY) != first
    });
    assert_eq!(changed, Some(50));
}

#[test]
fn a_flowlet_begins_after_a_gap_and_once_per_timeout() {
    let mut flowlet = policy("flowlet", &[("gap", "10us")]);
    let first = flowlet.next(at(1), 1.0);
    report(&mut flowlet, 200, first, PathFeedback::Good);
    assert_eq!(flowlet.next(at(210), 1.0), first);
    let second = flowlet.next(at(211), 1.0);
    assert_ne!(second, first);
    assert_eq!(flowlet.next(at(300), 1.0), second);
    assert_ne!(flowlet.next(at(311), 1.0), second);
}

#[test]
fn ecmp_keeps_its_path_unless_timeouts_change_it() {
    for (relabel, changes) in [("false", false), ("true", true)] {
        let mut ecmp = policy("ecmp", &[("relabel_on_timeout", relabel)]);
        let first = ecmp.next(at(0), 1.0);
        report(&mut ecmp, 1, first, PathFeedback::Marked);
        assert_eq!(ecmp.next(at(1), 1.0), first);
        report(&mut ecmp, 2, first, PathFeedback::Timeout);
        assert_eq!(ecmp.next(at(2), 1.0) != first, changes);
    }
}

#[test]
fn mistakes_in_settings_name_the_setting_and_the_remedy() {
    let error = |name: &str, settings: &[(&str, &str)]| {
        balancers::build(name, None, settings, None, &[]).expect_err("a mistake").message
    };
    assert_eq!(error("rep", &[]), "unknown balancer `rep`; did you mean `reps`?");
    assert_eq!(
        error("bitmap", &[("evs", "48")]),
        "`evs` must be a power of two from 1 to 65536, but it is 48"
    );
    assert!(error("reps", &[("low_rtt", "2")]).contains("has no effect"));
}
