//! `testbed = "t1"`: settings that several scenarios share.

use super::assignment::ReasonRule;
use super::format;
use super::keys::{RUN, check_keys};
use super::one_line;
use super::section::Section;
use super::source::{FindTestbed, Problems};
use super::tree::{self, Table, Value};

/// Reads the testbed that `table` names and puts its settings below the table's own.
pub(super) fn merge(
    table: &mut Table,
    find_testbed: FindTestbed<'_>,
    problems: &mut Problems,
) -> Option<Table> {
    let node = table.get("testbed")?.clone();
    let Value::Text(name) = &node.value else {
        let message =
            format!("`testbed` must be a name like \"t1\", not {}", node.value.describe());
        problems.add(node.place, message);
        return None;
    };
    let source = match find_testbed(name) {
        Ok(source) => source,
        Err(message) => {
            problems.add(node.place, message);
            return None;
        }
    };
    let start = problems.add_file(&source);
    let mut testbed = tree::parse(&source, start, problems);
    if !format::check(&testbed, problems) {
        return None;
    }
    testbed.entries.remove(format::KEY.name);
    one_line::expand(&mut testbed, problems);
    let root = Section::new(&testbed, &RUN, "", start, problems);
    check_keys(&root, &[&RUN], problems, &testbed);
    let rule = ReasonRule { testbed: Some(&testbed) };
    for (key, place, _) in table.leaves() {
        if rule.applies(&key) {
            let instead = "write it as `[[override]]` with `set` and `reason`";
            let message = match testbed.at_path(&key) {
                Some(theirs) => {
                    let at = problems.locate(theirs.place);
                    format!("`{key}` is set by the testbed `{name}` ({at}); to change it {instead}")
                }
                None => format!("scenarios of a testbed share `{key}`; to change it {instead}"),
            };
            problems.add(place, message);
        }
    }
    table.merge(testbed.clone(), "", &mut |key, place, _| {
        problems.add(place, format!("`{key}` contradicts the testbed `{name}`"));
    });
    Some(testbed)
}
