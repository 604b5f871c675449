//! `apus convert`: schedules from one form to another.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::failure::Failure;
use crate::output::print;
use crate::schedule::{self, Form};

/// Convert a GOAL schedule from text to binary or back.
///
/// The form of the input is told by its content. Labels are lost in the binary form.
#[derive(Args)]
pub struct Convert {
    /// Schedule to read.
    from: PathBuf,
    /// File to write; `.goal` and `.gol` are text, `.bin` is binary.
    to: PathBuf,
    /// Form of the written file, if its name does not tell it.
    #[arg(long = "to", value_name = "FORM")]
    form: Option<Format>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// GOAL as text
    Goal,
    /// GOAL as binary, LogGOPSim's input
    Bin,
}

impl Convert {
    fn form(&self) -> Result<Form, Failure> {
        let extension = self.to.extension().and_then(|extension| extension.to_str());
        let told = match extension {
            Some("goal" | "gol") => Some(Format::Goal),
            Some("bin") => Some(Format::Bin),
            _ => None,
        };
        let format = match (told, self.form) {
            (Some(told), Some(form)) if told == form => {
                let name = self.to.display();
                return Err(Failure::Input(format!("--to has no effect: the name {name} says it")));
            }
            (_, Some(form)) => form,
            (Some(told), None) => told,
            (None, None) => {
                let name = self.to.display();
                let what = "its name does not tell the form; use .goal or .bin, or --to goal|bin";
                return Err(Failure::Input(format!("{name}: {what}")));
            }
        };
        Ok(match format {
            Format::Goal => Form::Text,
            Format::Bin => Form::Binary,
        })
    }

    /// Runs the command.
    pub fn execute(&self) -> Result<(), Failure> {
        let form = self.form()?;
        let graph = schedule::read(&self.from)?;
        schedule::write(&graph, form, &self.to)?;
        let (to, ranks, ops) = (self.to.display(), graph.ranks(), graph.ops());
        print(&format!("{to}: {ranks} ranks, {ops} ops\n"))
    }
}
