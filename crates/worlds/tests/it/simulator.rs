//! Scenarios of many seeds satisfy the checks of all simulator runs.

use std::num::NonZeroUsize;
use std::sync::atomic::Ordering;

use apus_algorithms::{Registry, balancers};
use apus_sim::Watch;
use apus_worlds::fabric::{
    Case, Violation, pairs, run_case, run_cases, run_drawn, run_text, shrink_case,
};
use apus_worlds::quantile;

/// Number of scenarios. It fits the time limit of `make test`; `APUS_WORLDS` changes it.
fn cases() -> u64 {
    let number = std::env::var("APUS_WORLDS").ok();
    number.map_or(60, |number| number.parse().expect("APUS_WORLDS is a number of worlds"))
}

#[test]
fn no_scenario_violates_a_guarantee_and_all_parts_are_drawn() {
    let batch = run_cases(0..cases(), NonZeroUsize::new(2).expect("not 0"), &Watch::default());
    assert!(batch.failures.is_empty(), "{:#?}", batch.failures);
    assert_eq!(batch.cases, cases());
    // Without these, most checks would check nothing.
    assert!(quantile(&batch.hosts, 50) >= 3 && quantile(&batch.faults, 50) >= 1, "{batch:?}");
    assert!(batch.algorithms.len() >= 10 && batch.balancers.len() >= 5, "{batch:?}");
    let counts = batch.counts;
    for number in [counts.ops, counts.packets, counts.dropped, counts.trimmed, counts.jobs] {
        assert!(number > 0, "{counts:?}");
    }
}

/// Only scenarios without cycles of links and without faults that slow links have such bounds.
#[test]
fn queues_have_bounds_in_scenarios_with_expresspass() {
    let with_credits = (0..).map(Case::draw).filter(|case| case.algorithm == "expresspass");
    let counts = with_credits.take(9).map(|case| run_case(&case).expect("no violation"));
    assert!(counts.filter(|counts| counts.bounded == 1).count() >= 1);
}

/// Scenarios of seeds that have found a bug. The files do not change with the draw. Some seeds drew other
/// scenarios when they found their bug; for those of `planted.rs` a test shows that they still find it.
const KEPT: &[(u64, &str, &str)] = &[
    (
        289,
        include_str!("../kept/289.toml"),
        "the timer of a flow that waited for the NIC was due again at once: time stood still",
    ),
    (392, include_str!("../kept/392.toml"), "as 289"),
    (
        133,
        include_str!("../kept/133.toml"),
        "a flow whose timeout was shorter than its RTT took each packet for lost",
    ),
    (105_635, include_str!("../kept/105635.toml"), "the ideal time of a job was too long"),
    (110_308, include_str!("../kept/110308.toml"), "the ideal time of a job was too long"),
    (
        103_885,
        include_str!("../kept/103885.toml"),
        "a flow whose packets in flight had all arrived trimmed sent nothing more: no acknowledgement moved its full range of packet numbers",
    ),
    (
        116_125,
        include_str!("../kept/116125.toml"),
        "flows whose timeouts do not grow kept a link busy for ever, so that acknowledgements of a lower priority never passed",
    ),
    (
        164_370,
        include_str!("../kept/164370.toml"),
        "events shortly before a fault ran after it if the event of another entity was due at the time of the fault",
    ),
    (
        136_847,
        include_str!("../kept/136847.toml"),
        "headers of packets that were trimmed again and again filled the links: their flows did not slow down, and no payload passed",
    ),
    (
        103_891,
        include_str!("../kept/103891.toml"),
        "the ideal time of a broadcast was too long: the short last packet of a message may follow one of another message",
    ),
    (
        101_751,
        include_str!("../kept/101751.toml"),
        "the ideal time of a message was too long: its short last packet does not wait on a fast link behind a slow one",
    ),
    (
        290_050,
        include_str!("../kept/290050.toml"),
        "a reader sent no request any more once its range of packet numbers was full of requests whose answers had arrived without their acknowledgements",
    ),
];

#[test]
fn kept_scenarios_violate_no_guarantee() {
    for &(seed, text, found) in KEPT {
        let result = run_text(seed, text);
        assert!(result.is_ok(), "{seed}, {found}: {result:?}");
    }
}

/// Faults with every algorithm and path policy: all flows end after faults have stopped. `APUS_PAIR_WORLDS`
/// changes the number of worlds.
#[test]
fn flows_end_after_faults_with_every_algorithm_and_policy() {
    let number = std::env::var("APUS_PAIR_WORLDS").ok();
    let worlds = number.map_or(40, |number| number.parse().expect("a number of worlds"));
    let two = NonZeroUsize::new(2).expect("not 0");
    let batch = run_drawn(Case::draw_pair, 0..worlds, two, &Watch::default());
    let texts = batch.failures.iter().map(|(seed, _)| Case::draw_pair(*seed).text());
    assert!(batch.failures.is_empty(), "{:#?}\n{}", batch.failures, texts.collect::<String>());
    assert_eq!(batch.cases, worlds);
    assert!(batch.counts.dropped > 0);
}

/// The pairs cover all existing algorithms and policies, so that a new one cannot be left out.
#[test]
fn pairs_have_every_algorithm_and_policy() {
    let cases: Vec<Case> = (0..pairs()).map(Case::draw_pair).collect();
    for algorithm in Registry::BUILT_IN.algorithms().map(|info| info.name) {
        for policy in balancers::all().map(|info| info.name) {
            // Credits need one path.
            let policy = if algorithm == "expresspass" { "none" } else { policy };
            let is_pair = |case: &&Case| case.algorithm == algorithm && case.balancer == policy;
            let case = cases.iter().find(is_pair);
            assert!(case.is_some_and(|case| case.faults() > 0), "{algorithm} with {policy}");
        }
    }
}

#[test]
fn a_case_that_the_watch_stops_is_no_result() {
    let watch = Watch::default();
    watch.stop.store(true, Ordering::Relaxed);
    let batch = run_cases(0..100, NonZeroUsize::MIN, &watch);
    assert_eq!((batch.cases, batch.failures.len()), (0, 0));
}

#[test]
fn a_seed_determines_its_scenario() {
    assert_eq!(Case::draw(7).text(), Case::draw(7).text());
    assert_ne!(Case::draw(7).text(), Case::draw(8).text());
}

#[test]
fn a_case_of_which_no_part_has_the_violation_stays_whole() {
    let large = |case: &Case| case.text().matches("[[workload]]").count() > 1 && case.faults() > 1;
    let case = (0..100).map(Case::draw).find(large).expect("a large one");
    let violation = Violation { check: "none", what: String::new() };
    let (same, _) = shrink_case(&case, &violation);
    assert_eq!(same, case, "nothing smaller has this violation");
    assert!(run_case(&case).is_ok(), "{:?}", run_case(&case));
}
