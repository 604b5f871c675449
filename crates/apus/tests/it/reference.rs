//! Checks that `docs/scenario-reference.md` agrees with the code.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use apus_algorithms::Registry;
use apus_cc::TunedSetting;
use apus_sim::columns::{STATS, unit_of};
use apus_sim::results::{METRICS, SCOPED};
use apus_sim::sizes::BUILT_IN;

/// Module documentation of the scenario reader.
const READER: &str = include_str!("../../../scenario/src/lib.rs");

const INTRODUCTION: &str = "\
# Scenario reference

This page is generated from the code; `APUS_WRITE_DOCS=1 cargo test -p apus --test it reference` rewrites it. The
[tutorial](tutorial.md) introduces scenarios. `apus explain NAME` prints parts of this page.

";

fn document() -> String {
    let mut text = INTRODUCTION.to_owned();
    text += &reader();
    text += "\n";
    text += &apus_scenario::reference();
    text += "\n## Named clusters\n\nA name selects a kind of topology with these settings. Settings after the name replace \
             them: `topology = \"hpn-7 nodes=32\"`.\n\n| name | `kind` | settings | meaning and source |\n|---|---|---|---|\n";
    for preset in &apus_scenario::PRESETS {
        let (name, kind, settings) = (preset.name, preset.kind, preset.settings);
        let _ = writeln!(text, "| `{name}` | `{kind}` | `{settings}` | {} |", cell(preset.doc));
    }
    text += "\n## Size distributions\n\n| `sizes` | source |\n|---|---|\n";
    for (name, file) in BUILT_IN {
        let source = file.lines().next().unwrap_or_default().trim_start_matches(['#', ' ']);
        let _ = writeln!(text, "| `{name}` | {} |", cell(source));
    }
    text += "\n## Algorithms\n";
    for info in Registry::BUILT_IN.algorithms() {
        let (name, summary, source) = (info.name, info.summary, info.source);
        let _ = writeln!(text, "\n### `{name}`\n{summary}. Source: {source}.\n");
        for profile in info.profiles {
            let _ = writeln!(text, "* profile `{}`: {}", profile.name, profile.doc);
        }
        text += "\n| parameter | meaning | profile | default | source |\n|---|---|---|---|---|\n";
        for parameter in info.parameters {
            for default in parameter.defaults() {
                let _ = writeln!(
                    text,
                    "| `{}` | {} | {} | `{}` | {} |",
                    parameter.name,
                    cell(parameter.doc),
                    info.profiles_with(default).collect::<Vec<_>>().join(", "),
                    default.value,
                    cell(default.source)
                );
            }
        }
        if !Registry::BUILT_IN.derivations(name).is_empty() {
            text += "\nIn a scenario, these parameters are derived from the network unless they are set:\n\n\
                     | parameter | profile | rule | source |\n|---|---|---|---|\n";
        }
        for rule in Registry::BUILT_IN.derivations(name) {
            let profiles = rule.profiles.join(", ");
            let (words, source) = (cell(rule.rule), cell(rule.source));
            let _ = writeln!(text, "| `{}` | {profiles} | {words} | {source} |", rule.parameter);
        }
        for tunable in Registry::BUILT_IN.tunables(name) {
            let setting = match tunable.setting {
                TunedSetting::Parameter(parameter) => parameter,
                TunedSetting::MarkingThreshold => "topology.ecn.threshold",
            };
            let (profiles, range) = (tunable.profiles.join(", "), tunable.range);
            let source = tunable.source;
            let _ = writeln!(
                text,
                "\n`apus compare --tune-each` varies `{setting}` ({profiles}): {range}. Source: {source}."
            );
        }
    }
    text += "\n## Metrics that checks can name\n\n`<name>` stands for a name in the scenario, \
             `<stat>` for one of `";
    text += &STATS.join("`, `");
    text += "`, and `<n>` for a whole number from 0.\n\n| metric | unit |\n|---|---|\n";
    for name in METRICS.iter().chain(SCOPED.iter()) {
        let _ = writeln!(text, "| `{name}` | {} |", unit_of(name));
    }
    text
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// Returns the module documentation of the reader as plain Markdown, with headings one level lower and without links to
/// the code. The last section is omitted; it is an example for users of the crate.
fn reader() -> String {
    let lines = READER.lines().map_while(|line| line.strip_prefix("//!"));
    let lines = lines.take_while(|line| *line != " # Example");
    let mut text = String::new();
    for line in lines {
        let line = line.strip_prefix(' ').unwrap_or(line);
        let line = if line.starts_with("# ") { format!("#{line}") } else { line.to_owned() };
        text += &(without_links(&line) + "\n");
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

/// Replaces `[`name`](target)` and `[`name`]` by `name` formatted as code.
fn without_links(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some(start) = rest.find("[`") {
        let Some(end) = rest[start..].find("`]").map(|end| start + end) else { break };
        text += &rest[..start];
        text += &rest[start + 1..=end];
        rest = &rest[end + 2..];
        if let Some(after) = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
            rest = after.1;
        }
    }
    text + rest
}

#[test]
fn the_scenario_reference_is_what_the_code_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenario-reference.md");
    let expected = document();
    if std::env::var_os("APUS_WRITE_DOCS").is_some() {
        fs::write(&path, &expected).expect("written");
    }
    let found = fs::read_to_string(&path).expect("docs/scenario-reference.md");
    assert!(
        found == expected,
        "docs/scenario-reference.md differs from the code; rewrite it with \
         APUS_WRITE_DOCS=1 cargo test -p apus --test it reference"
    );
}
