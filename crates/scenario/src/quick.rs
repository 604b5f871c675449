//! `[quick]` and `quick = false`: changes and omissions of a quick run.

use super::assignment::SET;
use super::assignment::{Assignment, ReasonRule, assign, read_settings};
use super::check::Check;
use super::declared::Keys;
use super::section::Section;
use super::source::Problems;
use super::tree::Table;
use super::variant::Variant;

/// Keys of `quick`.
pub(super) static QUICK: Keys = Keys::of(&[SET]);

/// Reads `[quick] set = { duration = "20ms" }`: settings of quick runs, which take precedence over
/// those of variants.
pub(super) fn read(
    root: &Section<'_>,
    rule: &ReasonRule<'_>,
    table: &Table,
    problems: &Problems,
) -> Vec<Assignment> {
    let Some(section) = root.section("quick") else { return Vec::new() };
    let settings = read_settings(&section, problems);
    let mut scratch = table.clone();
    for setting in &settings {
        let key = &setting.key;
        if rule.applies(key) {
            let message = format!(
                "`{key}` belongs to the testbed, the algorithm or the host, which a quick run shares \
                 with a full one; remove it"
            );
            problems.add(setting.place, message);
        }
        if table.at_path(key).is_some_and(|old| old.value.same(&setting.node.value)) {
            let message = format!("`{key}` has this value already; remove it");
            problems.add(setting.place, message);
        }
        // In a full run, no other check would detect a key that does not exist.
        assign(&mut scratch, setting, problems);
    }
    section.finish();
    settings
}

/// The variants of a quick run, and its differences from a full run in words.
pub(super) struct QuickRun {
    /// Indices of the variants that run.
    pub(super) variants: Vec<usize>,
    /// Differences from a full run.
    pub(super) notes: Vec<String>,
}

impl QuickRun {
    /// Selects the variants of a quick run.
    pub(super) fn new(
        settings: &[Assignment],
        variants: &[Variant],
        root: &Section<'_>,
        problems: &Problems,
    ) -> Self {
        let set = |s: &Assignment| format!("{} = {}", s.key, s.node.value.text());
        let mut notes: Vec<String> = settings.iter().map(set).collect();
        let left_out = |v: &&Variant| !v.quick;
        notes.extend(
            variants.iter().filter(left_out).map(|v| format!("without variant {}", v.name)),
        );
        let kept: Vec<usize> = (0..variants.len()).filter(|&index| variants[index].quick).collect();
        if kept.is_empty() && !variants.is_empty() {
            let message = "all variants have `quick = false`: a quick run would have none";
            problems.add(root.place(), message);
        }
        Self { variants: kept, notes }
    }

    /// Returns a full run of this number of variants.
    pub(super) fn none(variants: usize) -> Self {
        Self { variants: (0..variants).collect(), notes: Vec::new() }
    }

    /// Removes the checks that a quick run cannot evaluate.
    pub(super) fn narrow(&mut self, mut checks: Vec<Check>) -> Vec<Check> {
        if !self.variants.is_empty() {
            for check in &mut checks {
                check.quick &= check.keep_runs(&self.variants);
            }
        }
        let left_out = checks.iter().filter(|check| !check.quick);
        self.notes.extend(left_out.map(|check| format!("without check \"{}\"", check.name)));
        checks.retain(|check| check.quick);
        checks
    }
}
