//! Planted bugs: each is found within 10,000 seeds. Needs the feature `planted`.
//!
//! `APUS_PLANTED=NAME` plants one bug; `--nocapture` prints the table of `docs/trust.md`.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};

use apus_units::planted::{Bug, plant};
use apus_worlds::{Violation, run_seeds};

/// Seeds within which a bug must be found.
const SEEDS: u64 = 10_000;
/// Seeds that run at once.
const PART: u64 = 64;

/// Returns the first seed that finds the planted bug, and what it finds.
fn first_seed() -> Option<(u64, Violation)> {
    let threads = NonZeroUsize::new(2).expect("not 0");
    (0..SEEDS / PART).find_map(|part| {
        let seeds = part * PART..(part + 1) * PART;
        let failures = AtomicU64::new(0);
        let batch = run_seeds(seeds, threads, |_| failures.load(Ordering::Relaxed) == 0);
        batch.failures.into_iter().next()
    })
}

/// One test, since a process has one planted bug at a time.
#[test]
fn every_planted_bug_is_found_within_ten_thousand_seeds() {
    let wanted = std::env::var("APUS_PLANTED").ok();
    let bugs = Bug::ALL.iter().filter(|bug| wanted.as_deref().is_none_or(|w| w == bug.name()));
    let mut missed = Vec::new();
    let mut tried = 0;
    for &bug in bugs {
        plant(Some(bug));
        let found = first_seed();
        plant(None);
        tried += 1;
        match found {
            Some((seed, violation)) => {
                let description = bug.description().trim();
                println!(
                    "| `{}` | {description} | {} | {} |",
                    bug.name(),
                    seed + 1,
                    violation.check
                );
            }
            None => missed.push(bug.name()),
        }
    }
    assert!(missed.is_empty(), "not found within {SEEDS} seeds: {missed:?}");
    assert!(tried > 0, "APUS_PLANTED is {wanted:?}, which is no bug");
}
