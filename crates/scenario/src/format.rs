//! `format_version = 1`: the version of the format that a scenario or a testbed is written in.

use super::declared::{Key, Kind, key};
use super::source::Problems;
use super::tree::{Table, Value};

/// Version of the format of scenarios that this version of the reader reads. It increases when a scenario that
/// was valid becomes invalid or changes its meaning; new keys do not change it.
pub const FORMAT: u32 = 1;

/// The key, at the root of a file.
pub(super) const KEY: Key = key(
    "format_version",
    Kind::Count,
    "Version of the file format. A program rejects files whose format is newer than its own",
)
.at_least(1)
.or("1");

/// Checks the version of a file. Returns `false` if the rest of the file cannot be read because it has another
/// version. The version is then the only problem.
pub(super) fn check(table: &Table, problems: &Problems) -> bool {
    let Some(node) = table.get(KEY.name) else { return true };
    let message = match node.value {
        Value::Integer(n) if n == i64::from(FORMAT) => return true,
        Value::Integer(n) if n > i64::from(FORMAT) => format!(
            "`format_version` is {n}, but this version of apus ({}) reads formats up to {FORMAT}; use a newer one",
            env!("CARGO_PKG_VERSION")
        ),
        _ => format!(
            "`format_version` must be a whole number from 1 to {FORMAT}, not {}",
            node.value.describe()
        ),
    };
    problems.add(node.place, message);
    false
}
