//! `apus job`: the completion time of a job in LogGOPSim's model, without a simulation of packets.

use std::fmt::Write;
use std::path::PathBuf;

use apus_jobs::ideal::{self, Cost, Limits};
use apus_jobs::loggops::{self, Outcome, Parameters};
use apus_jobs::{Done, Graph};
use apus_units::{Bytes, Span};
use clap::Args;
use serde::Serialize;

use crate::failure::Failure;
use crate::output::{print, to_json};
use crate::schedule::{self, Reading};

/// Print the completion time of a job in the LogGOPS model, as LogGOPSim computes it.
///
/// A rank ends when its last stream is free. If operations cannot end, they are listed, and the exit status is 1.
#[derive(Args)]
pub struct Job {
    /// Job in any format that `apus convert` reads, recognised by its content.
    file: PathBuf,
    /// L: network latency.
    #[arg(long, value_name = "TIME", default_value = "2500ns")]
    latency: Span,
    /// o: stream time per message, at each end.
    #[arg(long, value_name = "TIME", default_value = "1500ns")]
    overhead: Span,
    /// O: stream time per byte.
    #[arg(long, value_name = "TIME", default_value = "0ns")]
    overhead_per_byte: Span,
    /// g: NIC time per message.
    #[arg(long, value_name = "TIME", default_value = "1000ns")]
    gap: Span,
    /// G: NIC time per byte.
    #[arg(long, value_name = "TIME", default_value = "6ns")]
    gap_per_byte: Span,
    /// S: size of the largest message that is sent before its receiver is ready.
    #[arg(long, value_name = "SIZE", default_value = "65535B")]
    eager: Bytes,
    /// Print the results as JSON.
    #[arg(long)]
    json: bool,
}

/// Results in JSON.
#[derive(Serialize)]
struct Report {
    completion_ns: f64,
    critical_path_ns: f64,
    ranks: u32,
    ops: u64,
    bytes: u64,
    ends_ns: Vec<f64>,
    /// Unfinished operations, in words.
    stuck: Vec<String>,
    /// Messages that no receive operation accepted, in words.
    unexpected: Vec<String>,
}

/// Returns the length of the critical path, with messages that never delay each other.
fn critical_path(graph: &Graph, parameters: &Parameters) -> Span {
    let cost = |bytes: u64| Cost {
        occupies: Span::ZERO,
        latency: parameters.alone(bytes, (Span::ZERO, Span::ZERO)),
        acknowledgement: Span::ZERO,
    };
    ideal::run(graph, Done::Local, Limits::None, |message| cost(message.bytes)).completion
}

/// Returns picoseconds in nanoseconds.
fn ns(ps: u64) -> f64 {
    ps as f64 / 1e3
}

impl Job {
    /// Runs the command.
    pub fn execute(&self) -> Result<(), Failure> {
        let graph = schedule::read(&self.file, &Reading::default())?.graph;
        let parameters = Parameters {
            latency: self.latency,
            overhead: self.overhead,
            overhead_per_byte: self.overhead_per_byte,
            gap: self.gap,
            gap_per_byte: self.gap_per_byte,
            eager: self.eager.get(),
        };
        let outcome = loggops::run(&graph, &parameters)
            .map_err(|error| Failure::Input(format!("{}: {error}", self.file.display())))?;
        let report = Report::new(&graph, &parameters, &outcome);
        let text = if self.json { to_json(&report)? + "\n" } else { report.text() };
        print(&text)?;
        if outcome.is_complete() { Ok(()) } else { Err(Failure::Checks) }
    }
}

impl Report {
    fn new(graph: &Graph, parameters: &Parameters, outcome: &Outcome) -> Self {
        let stuck = outcome
            .stuck
            .iter()
            .map(|(rank, op)| format!("rank {rank}, {}", graph.program(*rank).describe(*op)));
        let unexpected = outcome.unexpected.iter().map(|(rank, message)| {
            let tag = message.tag;
            format!("rank {rank}: {} B from rank {}, tag {tag}", message.bytes, message.from)
        });
        Self {
            completion_ns: ns(outcome.completion().as_ps()),
            critical_path_ns: ns(critical_path(graph, parameters).as_ps()),
            ranks: graph.ranks(),
            ops: graph.ops(),
            bytes: graph.bytes(),
            ends_ns: outcome.ends.iter().map(|end| ns(end.as_ps())).collect(),
            stuck: stuck.collect(),
            unexpected: unexpected.collect(),
        }
    }

    fn text(&self) -> String {
        /// Maximum number of lines in a list.
        const LINES: usize = 20;
        let us = |ns: f64| ns / 1e3;
        let mut text = String::new();
        let mut line = |line: String| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{line}");
        };
        line(format!("{} ranks, {} ops, {} B sent", self.ranks, self.ops, self.bytes));
        let unfinished =
            if self.stuck.is_empty() { "" } else { " (no further operation can proceed)" };
        line(format!("completion     {} us{unfinished}", us(self.completion_ns)));
        line(format!("critical path  {} us", us(self.critical_path_ns)));
        for (rank, end) in self.ends_ns.iter().enumerate().take(LINES) {
            line(format!("  rank {rank} ends at {} us", us(*end)));
        }
        let more = self.ends_ns.len().saturating_sub(LINES);
        if more > 0 {
            line(format!("  and {more} more ranks (--json lists all)"));
        }
        for (title, list) in
            [("operations are stuck", &self.stuck), ("messages met no receive", &self.unexpected)]
        {
            if list.is_empty() {
                continue;
            }
            line(format!("{} {title}:", list.len()));
            list.iter().take(LINES).for_each(|item| line(format!("  {item}")));
            if list.len() > LINES {
                line(format!("  and {} more (--json lists all)", list.len() - LINES));
            }
        }
        text
    }
}
