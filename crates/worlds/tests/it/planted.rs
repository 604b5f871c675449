//! Planted bugs: each is found within 10,000 seeds. Requires the feature `planted`.
//!
//! `APUS_PLANTED=NAME` plants one bug; `--nocapture` prints the rows of the table of `docs/trust.md`. The
//! rows of all bugs must equal that table. `APUS_WRITE_DOCS=1` rewrites them.

use std::fs;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use apus_units::planted::{Bug, plant};
use apus_worlds::{Plan, Violation, run, run_seeds, shrink};

/// A process has one planted bug at a time, so one test at a time plants bugs.
static ONE: Mutex<()> = Mutex::new(());

/// Number of seeds within which a bug must be found.
const SEEDS: u64 = 10_000;
/// Page with the table.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/trust.md");
/// Number of seeds that run together.
const PART: u64 = 64;

/// Returns the first seed that finds the planted bug, and the violation. A seed that also fails without the
/// bug does not count.
fn first_seed(bug: Bug) -> Option<(u64, Violation)> {
    let threads = NonZeroUsize::new(2).expect("not 0");
    (0..SEEDS / PART).find_map(|part| {
        let seeds = part * PART..(part + 1) * PART;
        let batch = run_seeds(seeds, threads, |_| true);
        let mut failures = batch.failures.into_iter();
        failures.find(|(seed, _)| {
            plant(None);
            let without = run(&Plan::draw(*seed), false);
            plant(Some(bug));
            without.violation.is_none()
        })
    })
}

#[test]
fn every_planted_bug_is_found_within_ten_thousand_seeds() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let wanted = std::env::var("APUS_PLANTED").ok();
    let bugs = Bug::ALL.iter().filter(|bug| wanted.as_deref().is_none_or(|w| w == bug.name()));
    let mut missed = Vec::new();
    let mut rows = Vec::new();
    for &bug in bugs {
        plant(Some(bug));
        let found = first_seed(bug);
        plant(None);
        match found {
            Some((seed, violation)) => {
                let description = bug.description().trim();
                let (name, check) = (bug.name(), violation.check);
                rows.push(format!("| `{name}` | {description} | {} | `{check}` |", seed + 1));
                println!("{}", rows[rows.len() - 1]);
            }
            None => missed.push(bug.name()),
        }
    }
    assert!(missed.is_empty(), "not found within {SEEDS} seeds: {missed:?}");
    assert!(!rows.is_empty(), "APUS_PLANTED is {wanted:?}, which is no bug");
    if wanted.is_some() {
        return;
    }
    let page = fs::read_to_string(PAGE).expect("the page");
    if std::env::var_os("APUS_WRITE_DOCS").is_some() {
        let mut new = rows;
        let is_row = |line: &&str| line.starts_with("| `") && line.ends_with("` |");
        let mut lines: Vec<&str> = page.lines().collect();
        let head = lines.iter().position(|line| line.starts_with("| planted bug |"));
        let first = head.expect("the table") + 2;
        let old = lines[first..].iter().take_while(|line| is_row(line)).count();
        let after = lines.split_off(first + old);
        lines.truncate(first);
        let mut all: Vec<String> = lines.into_iter().map(str::to_owned).collect();
        all.append(&mut new);
        all.extend(after.into_iter().map(str::to_owned));
        fs::write(PAGE, all.join("\n") + "\n").expect("the page");
        return;
    }
    for row in rows {
        assert!(page.contains(&row), "docs/trust.md lacks: {row}");
    }
}

/// A plan with a violation is shrunk to a smaller one with the same violation, which is a world of its own.
#[test]
fn a_plan_that_finds_a_planted_bug_shrinks_and_still_finds_it() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    for (bug, seed) in [(Bug::ReadOnlyWritten, 3), (Bug::ExecutedTwice, 0)] {
        plant(Some(bug));
        let plan = Plan::draw(seed);
        let found = run(&plan, false).violation.expect("a violation");
        let (smaller, outcome) = shrink(&plan);
        let again = run(&smaller, false).violation;
        plant(None);
        let size = |plan: &Plan| [plan.hosts.len(), plan.ops.len(), plan.faults.len()];
        let [before, after] = [&plan, &smaller].map(size);
        // Two hosts are the least; these bugs need one op or fault each, and what makes it reach them.
        assert!(after[0] == 2 && after[1] + after[2] <= 10, "{bug:?}: {before:?} to {after:?}");
        assert_eq!(outcome.violation.as_ref().map(|v| v.check), Some(found.check), "{bug:?}");
        assert_eq!(again, outcome.violation, "{bug:?}");
        assert_eq!(run(&smaller, false).violation, None, "{bug:?}: without the bug");
    }
}

/// Insiders know regions of their victims: worlds without any other op find bugs in the checks of regions.
#[test]
fn packets_of_insiders_alone_find_missing_checks_of_regions() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let without_ops = |seed| {
        let mut plan = Plan::draw(seed);
        plan.ops.clear();
        plan
    };
    for bug in [Bug::ReadOnlyWritten, Bug::TenantKey] {
        plant(Some(bug));
        let mut violations = (0..1000).filter_map(|seed| run(&without_ops(seed), false).violation);
        let found = violations.next().map(|violation| violation.check);
        plant(None);
        assert_eq!(found, Some("memory"), "{bug:?}");
    }
}
