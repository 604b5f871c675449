//! The keys at the root of a scenario.

use apus_units::suggestion;

use super::section::Section;
use super::source::Problems;
use super::tree::Table;

/// The keys of a run; a scenario has others besides, which say what is done with its runs.
pub(super) const KEYS: &[&str] = &[
    "duration",
    "warmup",
    "drain",
    "ends_with_ops",
    "seed",
    "topology",
    "packets",
    "host",
    "transport",
    "algorithm",
    "workload",
    "fault",
    "measure",
    "record",
];

/// Notes every key at the root of a scenario that is none.
pub(super) fn check_keys(
    root: &Section<'_>,
    others: &[&'static str],
    problems: &Problems,
    table: &Table,
) {
    let known = || KEYS.iter().chain(others).copied();
    for key in root.keys().filter(|key| !known().any(|known| known == *key)) {
        if let Some(entry) = table.entries.get(key) {
            let hint = suggestion(key, known());
            problems.add(entry.key, format!("unknown key `{key}`{hint}"));
        }
    }
}
