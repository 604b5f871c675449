//! `runs_of = "swift/cluster"`: a scenario that has only checks, on the runs of another one.

use super::source::{FindTestbed, Problems};
use super::tree::{self, Table, Value};
use super::{format, one_line};

/// Keys that a scenario with `runs_of` may have.
const OWN_KEYS: &[&str] =
    &["format_version", "name", "title", "source", "runs_of", "check", "show"];
/// Keys that are not taken over.
const NOT_TAKEN: &[&str] = &["format_version", "name", "title", "source", "check", "show"];

/// Takes over the runs that `table` names: settings, variants, testbed, overrides and changes of a
/// quick run. Returns `true` if the table has `runs_of`.
pub(super) fn take_over(table: &mut Table, find: FindTestbed<'_>, problems: &mut Problems) -> bool {
    let Some(node) = table.get("runs_of").cloned() else { return false };
    let Value::Text(name) = &node.value else {
        let message = "`runs_of` must be the name of a scenario like \"swift/cluster\"";
        problems.add(node.place, message);
        return false;
    };
    for (key, entry) in &table.entries {
        if !OWN_KEYS.contains(&key.as_str()) {
            let message = format!(
                "`{key}` has no effect: the runs come from \"{name}\"; remove it, or `runs_of`"
            );
            problems.add(entry.key, message);
        }
    }
    let source = match find(name) {
        Ok(source) => source,
        Err(message) => {
            problems.add(node.place, message);
            return false;
        }
    };
    let start = problems.add_file(&source);
    let mut other = tree::parse(&source, start, problems);
    if !format::check(&other, problems) {
        return false;
    }
    one_line::expand(&mut other, problems);
    if let Some(chain) = other.get("runs_of") {
        problems.add(
            chain.place,
            format!("\"{name}\" takes its runs from another scenario; name that scenario"),
        );
    }
    other.entries.retain(|key, _| !NOT_TAKEN.contains(&key.as_str()));
    table.entries.retain(|key, _| OWN_KEYS.contains(&key.as_str()) && key != "runs_of");
    table.entries.extend(other.entries);
    true
}
