//! `apus explain`: what an algorithm's parameters or a column of the results mean.

use std::fmt::Write;

use apus_cc::registry::algorithms;
use apus_cc::{AlgorithmInfo, ParamInfo, ParamKind};
use apus_sim::columns;
use apus_units::suggestion;
use clap::Args;

use crate::failure::Failure;
use crate::output::print;
use crate::text;

/// Explains an algorithm (its parameters, their defaults and sources) or a column of the results.
#[derive(Args)]
pub struct Explain {
    /// An algorithm, as `apus list algorithms` names it, or a column, as `docs/outputs.md` does.
    name: String,
}

impl Explain {
    /// Does it.
    pub fn execute(&self) -> Result<(), Failure> {
        if let Some(info) = algorithms().iter().find(|info| info.name == self.name) {
            return print(&algorithm(info));
        }
        if let Some(text) = columns::explain(&self.name) {
            return print(&text);
        }
        let names: Vec<&str> =
            algorithms().iter().map(|info| info.name).chain(columns::names()).collect();
        let hint = suggestion(&self.name, names.iter().copied());
        // The list of all columns is no help; the commands that print it are.
        let hint = if hint.contains("did you mean") { hint.as_str() } else { REMEDY };
        let name = &self.name;
        Err(Failure::Input(format!("there is no algorithm and no column `{name}`{hint}")))
    }
}

const REMEDY: &str = "; see `apus list algorithms` and docs/outputs.md";

/// Everything about an algorithm.
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
        let defaults: Vec<Vec<String>> = parameter
            .defaults
            .iter()
            .map(|default| {
                let profiles = default.profiles.join(", ");
                vec![format!("{profiles}:"), default.value.to_owned(), default.source.to_owned()]
            })
            .collect();
        text += &text::columns(&defaults, "    ");
    }
    text
}

fn kind(parameter: &ParamInfo) -> String {
    match parameter.kind {
        ParamKind::Number => "number".to_owned(),
        ParamKind::Count => "whole number".to_owned(),
        ParamKind::Time => "time with its unit: ps, ns, us, ms, s".to_owned(),
        ParamKind::Size => "size with its unit: B, kB, KiB, ...".to_owned(),
        ParamKind::Rate => "rate with its unit: bps, Mbps, Gbps, ...".to_owned(),
        ParamKind::Flag => "true or false".to_owned(),
        ParamKind::Choice(words) => words.join(" or "),
    }
}
