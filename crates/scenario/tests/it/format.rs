//! Versions of the format of scenarios and testbeds.

use apus_scenario::{FORMAT, Options, Scenario, ScenarioError, Source};

use crate::support::{FIRST, assert_reads_back, good, read};

/// A scenario with a testbed of this text.
fn with_testbed(testbed: &str) -> Result<Scenario, ScenarioError> {
    let first = FIRST.lines().filter(|line| !line.starts_with("topology"));
    let text = format!("testbed = \"./bed.toml\"\n{}", first.collect::<Vec<_>>().join("\n"));
    // Scenarios of a testbed share the target.
    let text = text.replace(", base_target = \"25us\"", "");
    let find = |_: &str| Ok(Source { name: "bed.toml".to_owned(), text: testbed.to_owned() });
    let source = Source { name: "mine.toml".to_owned(), text };
    Scenario::read(&source, &find, &Options::default())
}

#[test]
fn the_present_format_is_read_and_written() {
    let scenario = good(&format!("format_version = {FORMAT}\n{FIRST}"));
    assert_reads_back(&scenario);
    let effective = scenario.runs[0].setup.to_toml();
    assert!(effective.contains(&format!("\nformat_version = {FORMAT}\n")), "{effective}");
    assert_eq!(effective, good(FIRST).runs[0].setup.to_toml(), "it is the format without the key");
    let topology = FIRST.lines().find(|line| line.starts_with("topology")).expect("a topology");
    with_testbed(&format!("format_version = {FORMAT}\n{topology}\n")).expect("a scenario");
}

/// A newer format may have keys that are unknown here: the version is the only problem.
#[test]
fn a_newer_format_is_refused_before_anything_else() {
    let newer = FORMAT + 1;
    let error =
        read(&format!("format_version = {newer}\nunheard_of = 1\n{FIRST}")).expect_err("newer");
    let text = error.to_string();
    assert_eq!(text.lines().count(), 1, "{text}");
    let part =
        format!("first one.toml:1:18: `format_version` is {newer}, but this version of apus (");
    assert!(text.contains(&part) && text.contains("use a newer one"), "{text}");
    let error =
        with_testbed(&format!("format_version = {newer}\nunheard_of = 1\n")).expect_err("newer");
    assert!(error.to_string().contains("bed.toml:1:18: `format_version` is"), "{error}");
    assert!(!error.to_string().contains("unheard_of"), "{error}");
}

#[test]
fn a_format_that_never_was_is_refused() {
    for wrong in ["0", "-1", "\"1\"", "1.0"] {
        let error = read(&format!("format_version = {wrong}\n{FIRST}")).expect_err(wrong);
        assert!(error.to_string().contains("must be a whole number from 1 to"), "{error}");
    }
}
