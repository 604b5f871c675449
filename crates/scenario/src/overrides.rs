//! `[[override]]`: differences from the testbed.

use super::assignment::{REASON, SET};
use super::assignment::{ReasonRule, assign, read_reason, read_settings};
use super::declared::Keys;
use super::section::Section;
use super::source::Problems;
use super::tree::Table;

/// Keys of `override`.
pub(super) static OVERRIDE: Keys = Keys::of(&[SET, REASON]);

/// A setting that differs from the testbed or from the algorithm's default, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The setting.
    pub key: String,
    /// The reason.
    pub reason: String,
    /// The variant to which the setting belongs; `None` for all variants.
    pub variant: Option<String>,
}

/// Reads `[[override]]` and applies them.
pub(super) fn apply_overrides(
    root: &Section<'_>,
    rule: &ReasonRule<'_>,
    table: &mut Table,
    problems: &Problems,
) -> Vec<Override> {
    let mut overrides = Vec::new();
    for section in root.sections("override") {
        let assignments = read_settings(&section, problems);
        let reason = read_reason(&section, true).unwrap_or_default();
        if rule.testbed.is_none() {
            let message = "`override` has no effect without a `testbed`; set the keys themselves";
            problems.add(section.place(), message);
        }
        for assignment in assignments {
            let key = assignment.key.clone();
            if table.at_path(&key).is_some_and(|old| old.value.same(&assignment.node.value)) {
                let message = format!("`{key}` has this value already; remove it");
                problems.add(assignment.place, message);
            }
            assign(table, &assignment, problems);
            overrides.push(Override { key, reason: reason.clone(), variant: None });
        }
        section.finish();
    }
    overrides
}
