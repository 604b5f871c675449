//! Jobs from files: in one of the text formats, or as Chakra traces with their groups.

use apus_jobs::{Graph, goal};
use apus_sim::plan::JobPlan;

use super::super::import::{self, chakra};
use super::super::section::Section;
use super::super::tree::Value;

/// Reads the job, and adds a sentence for each kind of element that was left out.
pub(super) fn read(section: &Section<'_>, skipped: &mut Vec<String>) -> Option<Graph> {
    let (key, name, text) = section.text_or_file("operations", "GOAL, .cm, SimAI or Chakra")?;
    if let Some(traces) = chakra::of_text(&text) {
        let groups = groups(section)?;
        let lenient = section.node("lenient").is_some() && section.peek("lenient")?;
        let imported = traces.and_then(|traces| chakra::compose(&traces, &groups, lenient));
        let chakra::Imported { graph, skipped: left_out } = imported
            .map_err(|error| {
                let hint = if lenient { "" } else { " (`lenient = true` leaves such things out)" };
                section.problem(key, format_args!("{name} {error}{hint}"));
            })
            .ok()?;
        let sentence = |left: &chakra::Skipped| {
            format!("{name} left out {} {}, the first: {}", left.count, left.what, left.first)
        };
        skipped.extend(left_out.iter().map(sentence));
        // The effective configuration has the operations as GOAL, without groups and the lenient mode. GOAL has
        // no names of collectives, so the job is read back from the text: both must be the same.
        section.effective().remove("groups");
        let mut text = String::new();
        // Writing to a String cannot fail.
        if let Err(error) = goal::write_text(&graph, &mut text).ok()? {
            section.problem(key, error);
            return None;
        }
        return parse(section, key, &name, text);
    }
    for key in ["groups", "lenient"] {
        section.no_effect(key, "with a file that is not Chakra traces");
    }
    parse(section, key, &name, text)
}

fn parse(section: &Section<'_>, key: &'static str, name: &str, text: String) -> Option<Graph> {
    let parsed = import::parse_job(&text).and_then(|graph| {
        // Like an error of a file without lines.
        JobPlan::check_messages(&graph).map_err(|why| format!(" {why}")).map(|()| graph)
    });
    match parsed {
        Ok(graph) => {
            section.record("operations", Value::Text(text));
            Some(graph)
        }
        Err(why) => {
            section.problem(key, format_args!("{name}{why}"));
            None
        }
    }
}

/// Reads the groups; `None` if an error was reported.
fn groups(section: &Section<'_>) -> Option<chakra::Groups> {
    let Some(table) = section.section("groups") else {
        // Reports a value that is not a table.
        return section.node("groups").is_none().then(chakra::Groups::new);
    };
    let (key, name, text) = table.text_or_file("members", "groups and their ranks as JSON")?;
    let groups = chakra::groups_of_json(&text);
    if let Err(why) = &groups {
        table.problem(key, format_args!("{name} {why}"));
    }
    table.finish();
    groups.ok()
}
