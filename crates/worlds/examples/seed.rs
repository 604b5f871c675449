//! Runs the world of a seed.

use apus_worlds::{Plan, run};

fn main() {
    let plan = Plan::draw(7);
    let outcome = run(&plan, false);
    assert_eq!(outcome.violation, None, "{}", plan.summary());
    assert!(outcome.counts.done > 0);
}
