//! `docs/security.md` names a test in each row of its tables of keys, of quotas and of the threat model, and `docs/trust.md` in
//! the rows of its last table. Each of these tests exists and runs without being asked for; so does each test that the text of
//! `docs/security.md` names. A row may name a tool of the repository or a command of cargo instead.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Adds the names of the test functions of a source in Rust, except those that are ignored.
fn tests_of(text: &str, names: &mut BTreeSet<String>) {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    for (i, line) in lines.iter().enumerate() {
        let Some(rest) = line.strip_prefix("fn ") else { continue };
        let before = lines[..i].iter().rev();
        let attributes: Vec<&str> =
            before.copied().take_while(|l| l.starts_with('#') || l.starts_with("//")).collect();
        if attributes.contains(&"#[test]") && !attributes.iter().any(|l| l.starts_with("#[ignore"))
        {
            names.insert(rest.split(['(', '<']).next().unwrap_or_default().to_owned());
        }
    }
}

/// Adds the names of all tests of the sources in a folder: in Rust, or in Python.
fn tests_in(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() && path.file_name().is_none_or(|name| name != "target") {
            tests_in(&path, names);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            tests_of(&fs::read_to_string(&path).expect("a source"), names);
        } else if path.extension().is_some_and(|ending| ending == "py") {
            let text = fs::read_to_string(&path).expect("a source");
            let named = text.lines().filter_map(|line| line.strip_prefix("def test_"));
            names
                .extend(named.map(|rest| format!("test_{}", rest.split('(').next().unwrap_or(""))));
        }
    }
}

/// Returns the folders of the packages of the repository, by name.
fn package(root: &Path, name: &str) -> Option<PathBuf> {
    let folders = fs::read_dir(root.join("crates")).expect("a folder").flatten();
    folders.map(|entry| entry.path()).find(|folder| {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        manifest.lines().any(|line| line == format!("name = \"{name}\""))
    })
}

/// Checks a command of cargo: `test` or `bench` of a package with a target that exists, and a test of the repository; or
/// `deny check`.
fn check_cargo(command: &str, root: &Path, known: &BTreeSet<String>) -> Result<(), String> {
    let mut words = command.split(' ').skip(1);
    let what = words.next().unwrap_or_default();
    if command.starts_with("cargo deny check") && root.join("deny.toml").is_file() {
        return Ok(());
    }
    if !["test", "bench"].contains(&what) {
        return Err(format!("`cargo {what}` is not checked"));
    }
    let (mut folder, mut tests) = (None, 0);
    while let Some(word) = words.next() {
        match word {
            "-p" => {
                let name = words.next().unwrap_or_default();
                folder = Some(package(root, name).ok_or(format!("no package {name}"))?);
            }
            "--test" | "--bench" => {
                let name = words.next().unwrap_or_default();
                let folder = folder.as_ref().ok_or("a target without -p")?;
                let folder = folder.join(if word == "--test" { "tests" } else { "benches" });
                let files = [folder.join(format!("{name}.rs")), folder.join(name).join("main.rs")];
                if !files.iter().any(|file| file.is_file()) {
                    return Err(format!("no {word} {name}"));
                }
                tests += usize::from(word == "--bench");
            }
            "--lib" | "--release" => {}
            test if known.contains(test) => tests += 1,
            other => return Err(format!("no test {other}")),
        }
    }
    if folder.is_none() || tests == 0 {
        return Err("no package, or no test".to_owned());
    }
    Ok(())
}

/// Returns the parts of a text in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Checks what a row names: a test, a tool or a command.
fn check_name(name: &str, root: &Path, known: &BTreeSet<String>) -> Result<(), String> {
    let tool = name.split(' ').next().unwrap_or_default();
    match tool {
        "cargo" => check_cargo(name, root, known),
        _ if tool.starts_with("tools/") && root.join(tool).is_file() => Ok(()),
        _ if known.contains(name) => Ok(()),
        _ => Err("no such test, or it is ignored".to_owned()),
    }
}

/// Asserts that the rows of all tables whose last column is "test" name tests that exist; returns the number of rows.
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
                assert!(quoted(cell).next().is_some(), "no test in the row: {line}");
                for name in quoted(cell) {
                    let checked = check_name(name, root, known);
                    assert_eq!(checked, Ok(()), "`{name}`: {line}");
                }
            }
            Some(_) => {}
        }
    }
    rows
}

#[test]
fn the_tables_of_both_pages_and_the_text_on_security_name_tests_that_exist() {
    let root = root();
    let mut known = BTreeSet::new();
    tests_in(&root.join("crates"), &mut known);
    tests_in(&root.join("python/tests"), &mut known);
    for (page, section, least) in [
        ("security", "## Keys", 2),
        ("security", "## Quotas", 10),
        ("security", "## Threat model", 25),
        ("trust", "## Files, memory and releases", 3),
    ] {
        let page = fs::read_to_string(root.join(format!("docs/{page}.md"))).expect("the page");
        let section = page.split(section).nth(1).expect("the section");
        let section = section.split("\n## ").next().unwrap_or_default();
        let rows = check(section, &root, &known);
        assert!(rows > least, "{rows} rows");
    }
    // Names of tests are longer than those of settings and functions.
    let page = fs::read_to_string(root.join("docs/security.md")).expect("the page");
    let is_name = |name: &&str| {
        name.matches('_').count() >= 4
            && name.bytes().all(|b| b == b'_' || b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    let prose = page.lines().filter(|line| !line.starts_with('|') && !line.starts_with("```"));
    let names: Vec<&str> = prose.flat_map(quoted).filter(is_name).collect();
    for name in &names {
        assert!(known.contains(*name), "there is no test `{name}`, or it is ignored");
    }
    assert!(names.len() > 40, "{names:?}");
}

#[test]
fn an_ignored_test_and_a_command_without_package_or_test_are_refused() {
    let mut known = BTreeSet::new();
    tests_of(
        "#[test]\nfn it_runs() {\n#[test]\n#[ignore = \"slow\"]\nfn it_is_ignored() {\n#[ignore]\n#[test]\nfn so_is_it() {\nfn helper() {",
        &mut known,
    );
    assert_eq!(known.iter().collect::<Vec<_>>(), ["it_runs"]);
    let root = root();
    let sound = |name: &str| check_name(name, &root, &known).is_ok();
    for name in [
        "it_runs",
        "tools/check-memory",
        "cargo deny check licenses",
        "cargo test -p apus-udp --test it it_runs",
        "cargo test -p apus-udp --lib it_runs",
        "cargo bench -p apus-udp --bench hostile",
    ] {
        assert!(sound(name), "{name}");
    }
    for name in [
        "it_is_ignored",
        "tools/no-such-tool",
        "cargo",
        "cargo frobnicate",
        "cargo test -p no-such-package it_runs",
        "cargo test -p apus-udp --test no_such_target it_runs",
        "cargo test -p apus-udp --test it",
        "cargo test -p apus-udp no_such_test",
        "cargo test it_runs",
        "cargo bench -p apus-udp --bench no_such_bench",
    ] {
        assert!(!sound(name), "{name}");
    }
    let page = "| a | test |\n|---|---|\n| row | `it_is_ignored` |\n";
    assert!(std::panic::catch_unwind(|| check(page, &root, &known)).is_err());
}
