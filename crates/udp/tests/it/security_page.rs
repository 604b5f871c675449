//! `docs/security.md` names a test in each row of its threat model, and `docs/trust.md` in the rows of its last table. Each
//! of these tests exists; so does each command of the repository that is named instead.

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

/// Asserts that the rows of all tables whose last column is "test" name tests that exist, or tools; returns their number.
fn check(page: &str, root: &Path, known: &BTreeSet<String>) -> usize {
    let (mut in_table, mut rows) = (false, 0);
    for line in page.lines() {
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
                    let tool = test.split(' ').next().unwrap_or_default();
                    let is_tool = tool == "cargo" || tool.starts_with("tools/");
                    let exists = match is_tool {
                        true => tool == "cargo" || root.join(tool).is_file(),
                        false => known.contains(test),
                    };
                    assert!(exists, "there is no test `{test}`: {line}");
                }
            }
            Some(_) => {}
        }
    }
    rows
}

#[test]
fn every_row_of_the_threat_model_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut known = BTreeSet::new();
    tests_in(&root.join("crates"), &mut known);
    for (page, section, least) in
        [("security", "## Threat model", 25), ("trust", "## Files, memory and releases", 3)]
    {
        let page = fs::read_to_string(root.join(format!("docs/{page}.md"))).expect("the page");
        let section = page.split(section).nth(1).expect("the section");
        let section = section.split("\n## ").next().unwrap_or_default();
        let rows = check(section, &root, &known);
        assert!(rows > least, "{rows} rows");
    }
}
