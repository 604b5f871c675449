//! `apus explain`: describes an algorithm's or a path policy's parameters, a column of the results, a built-in
//! scenario, or a scenario key.

use std::fmt::Write;
use std::path::Path;

use crate::registry;
use apus_cc::{AlgorithmInfo, ParamInfo, ParamKind};
use apus_scenario::{Options, Scenario};
use apus_sim::results;
use apus_units::similar;
use clap::Args;

use crate::failure::Failure;
use crate::output::print;
use crate::{library, text};

/// Explain an algorithm or path policy (parameters, defaults and sources), a column of the results, a scenario, or a scenario
/// key.
#[derive(Args)]
pub struct Explain {
    /// Algorithm (see `apus list algorithms`), path policy (`apus list policies`), column (docs/outputs.md), scenario (`apus list
    /// scenarios`), or scenario key (docs/scenario-reference.md) such as topology.buffer.
    name: String,
}

impl Explain {
    /// Runs the command.
    pub fn execute(&self) -> Result<(), Failure> {
        print(&text_of(&self.name).map_err(Failure::Input)?)
    }
}

/// Returns the description of an algorithm, a path policy, a column of the results, a scenario or a scenario key.
///
/// # Errors
/// If the name is unknown.
pub fn text_of(name: &str) -> Result<String, String> {
    let described = || registry().algorithms().chain(registry().balancers());
    if let Some(info) = described().find(|info| info.name == name) {
        return Ok(algorithm(info));
    }
    // A column and a key can have the same name.
    let column = results::explain(name);
    let key = apus_scenario::explain(name);
    let texts: Vec<String> = column.into_iter().chain(key).collect();
    if !texts.is_empty() {
        return Ok(texts.join("\n"));
    }
    if let Some(source) = library::find(name) {
        let read = library::read(&source, Path::new(""), &Options::default());
        return Ok(explain_scenario(&read.map_err(|error| error.to_string())?));
    }
    let described = described().map(|info| info.name);
    let mut names: Vec<String> = apus_scenario::key_names();
    let others = results::names().into_iter().chain(described).chain(library::names());
    names.extend(others.map(str::to_owned));
    let hint = match similar(name, names.iter().map(String::as_str)) {
        Some(meant) => format!("; did you mean {meant}?"),
        // A list of all columns would be too long, so the message names the commands that print the names.
        None => REMEDY.to_owned(),
    };
    Err(format!("unknown algorithm, path policy, column, scenario or key `{name}`{hint}"))
}

const REMEDY: &str = "; see `apus list algorithms`, `apus list policies`, `apus list scenarios` and docs/outputs.md, and for keys of scenarios docs/scenario-reference.md";

/// Describes a built-in scenario: its source, its checks with the numbers of the publication, and the command that runs
/// it.
fn explain_scenario(scenario: &Scenario) -> String {
    let name = &scenario.name;
    let mut text = format!("{name}: {}\n", scenario.title.as_deref().unwrap_or("a scenario"));
    if let Some(source) = &scenario.source {
        text += &format!("{source}\n");
    }
    if !scenario.checks.is_empty() {
        text += "\nchecks, with the publication's values\n";
        let row = |check: &apus_scenario::Check| {
            let value = |paper| format!("{} {}", text::number(paper), check.unit);
            let value = check.paper.map_or_else(String::new, value);
            vec![check.name.clone(), value.trim_end().to_owned()]
        };
        let rows: Vec<_> = scenario.checks.iter().map(row).collect();
        text += &text::columns(&rows, "  ");
    }
    let verb = if library::experiments().any(|known| known == name) { "reproduce" } else { "run" };
    text + &format!("\nrun it with `apus {verb} {name}`\n")
}

/// Returns the profiles and parameters of an algorithm or a path policy.
fn algorithm(info: &AlgorithmInfo) -> String {
    let mut text = format!("{}: {}\n{}\n\nprofiles\n", info.name, info.summary, info.source);
    let profiles: Vec<Vec<String>> = info
        .profiles
        .iter()
        .enumerate()
        .map(|(index, profile)| {
            let first = if index == 0 { " (the default)" } else { "" };
            vec![profile.name.to_owned(), format!("{}{first}", profile.doc)]
        })
        .collect();
    text += &text::columns(&profiles, "  ");
    text += "\nparameters\n";
    for parameter in info.parameters {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {} ({}): {}", parameter.name, kind(parameter), parameter.doc);
        let defaults = parameter.defaults().map(|default| {
            let profiles = info.profiles_with(default).collect::<Vec<_>>().join(", ");
            vec![format!("{profiles}:"), default.value.to_owned(), default.source.to_owned()]
        });
        let defaults: Vec<Vec<String>> = defaults.collect();
        text += &text::columns(&defaults, "    ");
        let rules = registry()
            .derivations(info.name)
            .iter()
            .filter(|rule| rule.parameter == parameter.name);
        for rule in rules {
            let (profiles, source) = (rule.profiles.join(", "), rule.source);
            let _ = writeln!(text, "    in a scenario ({profiles}): {} ({source})", rule.rule);
        }
    }
    text
}

/// Returns the form and the limits of a parameter value.
fn kind(parameter: &ParamInfo) -> String {
    let form = match parameter.kind {
        ParamKind::Number => "number".to_owned(),
        ParamKind::Count => "whole number".to_owned(),
        ParamKind::Time => "time with its unit: ps, ns, us, ms, s".to_owned(),
        ParamKind::Size => "size with its unit: B, kB, KiB, ...".to_owned(),
        ParamKind::Rate => "rate with its unit: bps, Mbps, Gbps, ...".to_owned(),
        ParamKind::Flag => "true or false".to_owned(),
        ParamKind::Choice(words) => words.join(" or "),
    };
    if parameter.limits.must.is_empty() {
        form
    } else {
        format!("{form}; {}", parameter.limits.must)
    }
}
