//! Runs the world of a seed, and prints its log.
#![allow(clippy::print_stdout)] // an example prints its result

use apus_worlds::{Plan, run};

fn main() {
    let seed = std::env::args().nth(1).map_or(7, |seed| seed.parse().expect("a seed"));
    let plan = Plan::draw(seed);
    let outcome = run(&plan, true);
    outcome.log.iter().for_each(|line| println!("{line}"));
    assert_eq!(outcome.violation, None, "{}", plan.summary());
    assert!(outcome.counts.done > 0);
}
