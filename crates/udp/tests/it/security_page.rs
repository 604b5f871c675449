//! `docs/security.md` names a test in each row of its threat model, and each of these tests exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Adds the names of all test functions of the sources in a folder.
fn tests_in(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() && path.file_name().is_none_or(|name| name != "target") {
            tests_in(&path, names);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = fs::read_to_string(&path).expect("a source");
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            let is_test =
                |i: &usize| lines[..*i].iter().rev().take(4).any(|line| *line == "#[test]");
            let functions =
                (0..lines.len()).filter(|&i| lines[i].starts_with("fn ")).filter(is_test);
            let name = |i: usize| {
                let rest = &lines[i]["fn ".len()..];
                rest.split('(').next().unwrap_or_default().to_owned()
            };
            names.extend(functions.map(name));
        }
    }
}

#[test]
fn every_row_of_the_threat_model_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/security.md")).expect("the page");
    let model = page.split("## Threat model").nth(1).expect("a threat model");
    let model = model.split("\n## ").next().unwrap_or_default();
    let mut known = BTreeSet::new();
    tests_in(&root.join("crates/udp"), &mut known);
    let (mut in_table, mut rows) = (false, 0);
    for line in model.lines() {
        match line.strip_prefix("| ").and_then(|row| row.strip_suffix(" |")) {
            None if line.starts_with("|---") => {}
            None => in_table = false,
            Some(row) if row.ends_with("| test") => in_table = true,
            Some(row) if in_table => {
                rows += 1;
                let cell = row.rsplit("| ").next().unwrap_or_default();
                let names: Vec<&str> = cell.split(", ").collect();
                for name in names {
                    let test = name.strip_prefix('`').and_then(|name| name.strip_suffix('`'));
                    let test = test.unwrap_or_else(|| panic!("no test in the row: {line}"));
                    assert!(known.contains(test), "there is no test `{test}`: {line}");
                }
            }
            Some(_) => {}
        }
    }
    assert!(rows > 25, "{rows} rows");
}
