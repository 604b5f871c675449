//! Settings by dotted key, as variants, overrides and quick runs have them, and the reasons that they
//! need.

use apus_units::suggestion;

use super::declared::{Key, Kind, key};
use super::keys::RUN;
use super::one_line;
use super::section::Section;
use super::source::{Place, Problems};
use super::tree::{Node, Table, Value};

pub(super) const SET: Key = key(
    "set",
    Kind::Settings,
    "Settings by dotted key, such as { \"algorithm.base_target\" = \"50us\" }. An item of a list is named by its number, such as `workload.0.size`; a list of one item does not need the number",
);

pub(super) const REASON: Key = key(
    "reason",
    Kind::Text,
    "Why the settings differ from those that all scenarios of the testbed share",
);

/// A setting by dotted key.
#[derive(Clone, Debug)]
pub(super) struct Assignment {
    pub(super) key: String,
    pub(super) place: Place,
    pub(super) node: Node,
}

/// The settings that need a reason: those of the testbed, of the algorithm and of the host.
pub(super) struct ReasonRule<'a> {
    /// `None`: the scenario has no testbed, and needs no reasons.
    pub(super) testbed: Option<&'a Table>,
}

impl ReasonRule<'_> {
    /// Returns `true` if a setting may differ only with a reason.
    pub(super) fn applies(&self, key: &str) -> bool {
        let Some(testbed) = self.testbed else { return false };
        let last = key.rsplit('.').next().unwrap_or(key);
        let parameter = key.starts_with("algorithm.") && last != "name" && last != "profile";
        parameter || key.starts_with("host.") || testbed.at_path(key).is_some()
    }
}

/// Puts a setting into the tree. Returns `false` if a problem was reported instead.
pub(super) fn assign(table: &mut Table, assignment: &Assignment, problems: &Problems) -> bool {
    let Assignment { key, place, node } = assignment;
    let first = key.split('.').next().unwrap_or(key);
    if RUN.own.iter().all(|key| key.name != first) {
        let hint = suggestion(first, RUN.own.iter().map(|key| key.name));
        problems.add(*place, format!("`{key}` is not a setting of a run{hint}"));
        return false;
    }
    table.set(key, *place, node.clone()).map_err(|message| problems.add(*place, message)).is_ok()
}

/// Adds settings of equal rank to the tree. Records settings that a later one replaces.
pub(super) fn assign_all(table: &mut Table, assignments: &[Assignment], problems: &Problems) {
    let mut assigned: Vec<&Assignment> = Vec::new();
    for assignment in assignments {
        if !assign(table, assignment, problems) {
            continue;
        }
        one_line::expand(table, problems);
        assigned.retain(|earlier| {
            let kept = table.has_value_of(earlier.node.place);
            if !kept {
                let message = format!(
                    "`{}` has no effect: `{}` replaces it; remove one of them",
                    earlier.key, assignment.key
                );
                problems.add(earlier.place, message);
            }
            kept
        });
        assigned.push(assignment);
    }
}

/// Reads `set = { "algorithm.base_target" = "25us" }`, with quotes or without.
pub(super) fn read_settings(section: &Section<'_>, problems: &Problems) -> Vec<Assignment> {
    let kind = "a table of settings, like { \"algorithm.base_target\" = \"25us\" }";
    let Some(node) = section.node("set") else {
        section.missing("set", kind);
        return Vec::new();
    };
    let Value::Table(table) = &node.value else {
        section.problem("set", format_args!("must be {kind}"));
        return Vec::new();
    };
    let leaves = table.leaves();
    if leaves.is_empty() {
        problems.add(node.place, "`set` is empty; remove it or set something");
    }
    let assignments =
        leaves.into_iter().map(|(key, place, node)| Assignment { key, place, node: node.clone() });
    assignments.collect()
}

/// Reads `reason`.
pub(super) fn read_reason(section: &Section<'_>, needed: bool) -> Option<String> {
    let reason: Option<String> = if needed && section.node("reason").is_none() {
        let why = "a sentence that says why this differs from the testbed's settings";
        section.missing("reason", why);
        None
    } else {
        section.get("reason")
    };
    if let Some(reason) = &reason {
        section.check(!reason.trim().is_empty(), "reason", "is empty; say why");
    }
    reason
}
