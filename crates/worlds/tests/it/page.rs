//! The page of trust names every planted bug that a search finds, and the number of seeds that found it.

use std::fs;

use apus_units::planted::Bug;

#[test]
fn every_planted_bug_has_a_row_with_at_most_ten_thousand_seeds() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/trust.md");
    let page = fs::read_to_string(page).expect("the page");
    for bug in Bug::TRANSPORT.iter().chain(Bug::SIMULATOR) {
        let start = format!("| `{}` | {} | ", bug.name(), bug.description().trim());
        let row = page.lines().find_map(|line| line.strip_prefix(&start));
        let seeds = row.and_then(|row| row.split(' ').next()?.parse::<u64>().ok());
        assert!(seeds.is_some_and(|seeds| (1..=10_000).contains(&seeds)), "{start}: {seeds:?}");
    }
}
