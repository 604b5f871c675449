//! `apus convert`: converts jobs between formats.

use std::path::PathBuf;

use apus_scenario::import::chakra::Changes;
use clap::{Args, ValueEnum};

use crate::failure::Failure;
use crate::output::print;
use crate::schedule::{self, Form, Job, Reading};

/// Convert a job from one format to another.
///
/// The format of the input is recognised by its content: GOAL, a connection matrix of htsim (.cm), a workload.txt of SimAI, or
/// Chakra traces. Binary GOAL files do not keep labels.
#[derive(Args)]
pub struct Convert {
    /// Job to read. Chakra traces are named by their folder, by one of the files PREFIX.RANK.et, or by PREFIX.
    from: PathBuf,
    /// File to write: `.goal` and `.gol` are GOAL as text, `.bin` is binary GOAL, `.et` is Chakra (one file PREFIX.RANK.et per
    /// rank).
    to: PathBuf,
    /// Format of the written file, if its name does not determine it.
    #[arg(long = "to", value_name = "FORM")]
    form: Option<Format>,
    /// Read the groups of ranks of Chakra traces from FILE: JSON such as {"1": [0, 2]}.
    #[arg(long, value_name = "FILE")]
    groups: Option<PathBuf>,
    /// Leave out the parts of Chakra traces that cannot be converted, and list them, instead of ending with an error.
    #[arg(long)]
    lenient: bool,
    /// Round the times of computations to whole microseconds in the written Chakra traces, and print how many were rounded.
    #[arg(long)]
    round: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// GOAL as text
    Goal,
    /// GOAL as binary, the input of LogGOPSim
    Bin,
    /// Chakra traces
    Et,
}

impl Convert {
    fn form(&self) -> Result<Form, Failure> {
        let extension = self.to.extension().and_then(|extension| extension.to_str());
        let told = match extension {
            Some("goal" | "gol") => Some(Format::Goal),
            Some("bin") => Some(Format::Bin),
            Some("et") => Some(Format::Et),
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
                let what =
                    "its name does not tell the form; use .goal, .bin or .et, or --to goal|bin|et";
                return Err(Failure::Input(format!("{name}: {what}")));
            }
        };
        if self.round && format != Format::Et {
            let what = "--round has no effect on GOAL; only Chakra traces have whole microseconds";
            return Err(Failure::Input(what.to_owned()));
        }
        Ok(match format {
            Format::Goal => Form::Text,
            Format::Bin => Form::Binary,
            Format::Et => Form::Chakra { rounds: self.round },
        })
    }

    /// Runs the command.
    pub fn execute(&self) -> Result<(), Failure> {
        let form = self.form()?;
        let reading = Reading::new(self.groups.as_deref(), self.lenient)?;
        let Job { graph, skipped } = schedule::read(&self.from, &reading)?;
        let Changes { rounded, freed } = schedule::write(&graph, form, &self.to)?;
        let (to, ranks, ops) = (self.to.display(), graph.ranks(), graph.ops());
        let mut text = format!("{to}: {ranks} ranks, {ops} ops\n");
        if rounded > 0 {
            text += &format!("rounded: the times of {rounded} computations\n");
        }
        if freed > 0 {
            text += &format!(
                "streams: {freed} sends were on one with computations or on another than other sends; messages of traces have one of their own\n"
            );
        }
        for skipped in skipped {
            text += &format!(
                "left out: {} {}, first: {}\n",
                skipped.count, skipped.what, skipped.first
            );
        }
        print(&text)
    }
}
