//! Many seeds run without a violation, and a seed determines its world.

use std::num::NonZeroUsize;

use apus_worlds::{Plan, quantile, run, run_seeds};

/// Number of worlds. It fits the time limit of `make test`; `APUS_WORLDS` changes it.
fn worlds() -> u64 {
    let number = std::env::var("APUS_WORLDS").ok();
    number.map_or(64, |number| number.parse().expect("APUS_WORLDS is a number of worlds"))
}

/// First seed; `APUS_WORLDS_FROM` changes it.
fn first() -> u64 {
    let number = std::env::var("APUS_WORLDS_FROM").ok();
    number.map_or(0, |number| number.parse().expect("APUS_WORLDS_FROM is a seed"))
}

#[test]
fn no_seed_violates_a_guarantee_and_worlds_are_large_enough() {
    let threads = NonZeroUsize::new(2).expect("not 0");
    let batch = run_seeds(first()..first() + worlds(), threads, |_| true);
    assert!(batch.failures.is_empty(), "{:#?}", batch.failures);
    assert_eq!(batch.worlds, worlds());
    let medians = [&batch.hosts, &batch.ops, &batch.faults].map(|counts| quantile(counts, 50));
    assert!(medians[0] >= 3 && medians[1] >= 50 && medians[2] >= 10, "{medians:?}");
    // Without these outcomes, the checks of ends would check nothing.
    let counts = batch.counts;
    let ends = [counts.done, counts.not_sent, counts.refused, counts.unknown, counts.messages];
    for number in ends.into_iter().chain([counts.by_ports]) {
        assert!(number > batch.worlds, "{counts:?}");
    }
    // Insiders name regions that exist, so that the rights and bounds of regions are tried.
    assert!(counts.by_insiders > 0 && counts.informed > 0, "{counts:?}");
}

#[test]
fn a_plan_determines_its_world() {
    for seed in [3, 4] {
        let plan = Plan::draw(seed);
        let (one, other) = (run(&plan, true), run(&plan, true));
        assert!(one.log.len() > 50, "{}", one.log.len());
        assert_eq!(one.log, other.log, "seed {seed}");
        assert_eq!(one.counts, other.counts, "seed {seed}");
        assert_ne!(one.log, run(&Plan::draw(seed + 100), true).log);
    }
}
