//! Planted bugs: each is found within 10,000 seeds, or by a kept scenario. Requires the feature `planted`.
//!
//! `APUS_PLANTED=NAME` plants one bug; `--nocapture` prints the rows of the table of `docs/trust.md`. The
//! rows of all bugs must equal that table. `APUS_WRITE_DOCS=1` rewrites them.

use std::fs;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use apus_sim::Watch;
use apus_units::planted::{Bug, plant};
use apus_worlds::fabric::{run_cases, run_text};
use apus_worlds::{Plan, run, run_seeds, shrink};

/// A process has one planted bug at a time, so one test at a time plants bugs.
static ONE: Mutex<()> = Mutex::new(());

/// Number of seeds within which a bug must be found.
const SEEDS: u64 = 10_000;
/// Page with the table.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/trust.md");
/// Number of seeds that run together.
const PART: u64 = 64;
const TWO: NonZeroUsize = NonZeroUsize::new(2).expect("not 0");

/// Runs seeds, and returns those that fail, each with the name of its check.
type Run = fn(Range<u64>) -> Vec<(u64, &'static str)>;

/// Returns the first seed that finds the planted bug, and the name of its check. A seed that also fails without
/// the bug does not count.
fn first_seed(bug: Bug, run: Run) -> Option<(u64, &'static str)> {
    (0..SEEDS / PART).find_map(|part| {
        let failures = run(part * PART..(part + 1) * PART);
        failures.into_iter().find(|&(seed, _)| {
            plant(None);
            let without = run(seed..seed + 1);
            plant(Some(bug));
            without.is_empty()
        })
    })
}

/// Runs worlds of the transport.
fn worlds(seeds: Range<u64>) -> Vec<(u64, &'static str)> {
    let failures = run_seeds(seeds, TWO, |_| true).failures;
    failures.into_iter().map(|(seed, violation)| (seed, violation.check)).collect()
}

/// Runs scenarios of the simulator.
fn scenarios(seeds: Range<u64>) -> Vec<(u64, &'static str)> {
    let failures = run_cases(seeds, TWO, &Watch::default()).failures;
    failures.into_iter().map(|(seed, violation)| (seed, violation.check)).collect()
}

#[test]
fn every_planted_bug_is_found_within_ten_thousand_seeds() {
    check_table("| planted bug |", Bug::TRANSPORT, worlds);
}

#[test]
fn every_planted_bug_of_the_simulator_is_found_within_ten_thousand_seeds() {
    check_table("| planted bug of the simulator |", Bug::SIMULATOR, scenarios);
}

/// Too few seeds find these bugs for a search. A kept scenario still finds each one.
#[test]
fn kept_scenarios_find_the_rare_bugs_for_which_they_are_kept() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let scenarios = [
        (164_370, include_str!("../kept/164370.toml"), "threads"),
        (290_050, include_str!("../kept/290050.toml"), "end"),
    ];
    assert_eq!(scenarios.len(), Bug::RARE.len());
    for (&bug, (seed, text, check)) in Bug::RARE.iter().zip(scenarios) {
        plant(Some(bug));
        let found = run_text(seed, text).err().map(|violation| violation.check);
        plant(None);
        assert_eq!(found, Some(check), "{bug:?}");
        assert_eq!(run_text(seed, text).err(), None, "{bug:?}: without the bug");
    }
}

/// Looks for the first seed that finds each bug, and compares the rows with those of the table with this head.
fn check_table(head: &str, bugs: &[Bug], run: Run) {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let wanted = std::env::var("APUS_PLANTED").ok();
    let is_wanted = |bug: &&Bug| wanted.as_deref().is_none_or(|name| name == bug.name());
    let mut missed = Vec::new();
    let mut rows = Vec::new();
    for &bug in bugs.iter().filter(is_wanted) {
        plant(Some(bug));
        let found = first_seed(bug, run);
        plant(None);
        match found {
            Some((seed, check)) => {
                let description = bug.description().trim();
                let name = bug.name();
                rows.push(format!("| `{name}` | {description} | {} | `{check}` |", seed + 1));
                println!("{}", rows[rows.len() - 1]);
            }
            None => missed.push(bug.name()),
        }
    }
    assert!(missed.is_empty(), "not found within {SEEDS} seeds: {missed:?}");
    if let Some(wanted) = wanted {
        let is_bug = Bug::TRANSPORT.iter().chain(Bug::SIMULATOR).any(|bug| bug.name() == wanted);
        assert!(is_bug, "APUS_PLANTED is {wanted:?}, which is in no table");
        return;
    }
    let page = fs::read_to_string(PAGE).expect("the page");
    if std::env::var_os("APUS_WRITE_DOCS").is_some() {
        let mut new = rows;
        let is_row = |line: &&str| line.starts_with("| `") && line.ends_with("` |");
        let mut lines: Vec<&str> = page.lines().collect();
        let at = lines.iter().position(|line| line.starts_with(head));
        let first = at.expect("the table") + 2;
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
