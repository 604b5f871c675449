//! Readers of other simulators' files, one format per file. None of them touches the file system:
//! they take a text and say at which line it is wrong.

pub mod csv;
pub mod hpcc;
pub mod htsim;

use std::fmt;

use apus_units::{Rate, Span};

/// What is wrong with a text: at which line, what, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportError {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong and what would be right.
    pub message: String,
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.message)
    }
}

impl std::error::Error for ImportError {}

pub(crate) fn wrong<T>(line: usize, message: impl Into<String>) -> Result<T, ImportError> {
    Err(ImportError { line, message: message.into() })
}

/// Messages from host to host at given times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// How many nodes the file says there are.
    pub nodes: Option<u32>,
    /// The messages, in the order of the file.
    pub messages: Vec<Message>,
    /// Whether nodes are numbered as in the HPCC simulator: switches count too.
    pub hpcc: bool,
}

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Where it stands in the file.
    pub line: usize,
    /// Since the start of the run.
    pub start: Span,
    /// Number of the node that sends it.
    pub from: u32,
    /// Number of the node that receives it.
    pub to: u32,
    /// Payload bytes, at least 1.
    pub bytes: u64,
}

/// Most messages of a file.
const MAX_MESSAGES: usize = 10_000_000;
/// Largest message: far above what a run can carry.
const MAX_BYTES: u64 = 1 << 40;

impl Traffic {
    /// Reads traffic in any of the formats, told apart by how it begins: `start_us,...` is
    /// [`csv`], `Nodes N` is [`htsim`], a number alone is [`hpcc`].
    ///
    /// # Errors
    /// With line and remedy.
    pub fn parse(text: &str) -> Result<Self, ImportError> {
        let first = text.lines().map(str::trim).find(|line| !is_blank(line)).unwrap_or_default();
        if first.starts_with("Nodes") || first.contains("->") {
            htsim::parse_traffic(text)
        } else if first.contains(',') {
            csv::parse_traffic(text)
        } else if !first.is_empty() && first.split_whitespace().all(|w| w.parse::<u64>().is_ok()) {
            hpcc::parse_traffic(text)
        } else {
            wrong(
                1,
                "this is no traffic that can be read: it begins with `start_us,from,to,bytes` (CSV), \
                 with `Nodes N` (a connection matrix of htsim), or with the number of flows alone (a \
                 flow.txt of the HPCC simulator)",
            )
        }
    }

    fn push(&mut self, message: Message) -> Result<(), ImportError> {
        let Message { line, from, to, bytes, .. } = message;
        if from == to {
            return wrong(line, format!("node {from} sends to itself; the two must differ"));
        }
        if !(1..=MAX_BYTES).contains(&bytes) {
            return wrong(line, format!("the size is {bytes}; it must be from 1 to 2^40 bytes"));
        }
        if self.messages.len() >= MAX_MESSAGES {
            return wrong(line, format!("more than {MAX_MESSAGES} messages; split the file"));
        }
        self.messages.push(message);
        Ok(())
    }
}

/// Nodes and links, in the numbering of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    /// For each host its node number in the file; hosts are numbered in this order.
    pub hosts: Vec<u32>,
    /// Names of the switches.
    pub switches: Vec<String>,
    /// The links.
    pub links: Vec<GraphLink>,
    /// Time that a packet takes in a switch.
    pub pipeline_latency: Span,
}

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// A host, by its place in [`Graph::hosts`].
    Host(u32),
    /// A switch, by its place in [`Graph::switches`].
    Switch(u32),
}

/// One link, alike in both directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GraphLink {
    /// One end: the lower one where there are tiers.
    pub a: End,
    /// The other end.
    pub b: End,
    /// Bits per time, each way.
    pub rate: Rate,
    /// Propagation delay, each way.
    pub delay: Span,
}

impl Graph {
    /// Reads a topology in either format, told apart by how it begins: a number is [`hpcc`], a word
    /// is [`htsim`].
    ///
    /// # Errors
    /// With line and remedy.
    pub fn parse(text: &str) -> Result<Self, ImportError> {
        let first = text.lines().map(str::trim).find(|line| !is_blank(line)).unwrap_or_default();
        if first.starts_with(|c: char| c.is_ascii_digit()) {
            hpcc::parse_topology(text)
        } else if first.starts_with(|c: char| c.is_ascii_alphabetic()) {
            htsim::parse_topology(text)
        } else {
            wrong(
                1,
                "this is no topology that can be read: it begins with `Nodes N` (a .topo of htsim) or \
                 with `nodes switches links` (a topology.txt of the HPCC simulator)",
            )
        }
    }
}

/// Most links of a topology.
pub(crate) const MAX_LINKS: u64 = 1_000_000;

fn is_blank(line: &str) -> bool {
    line.is_empty() || line.starts_with('#')
}

/// The lines that say something, with their numbers.
fn content(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines()).map(|(n, line)| (n, line.trim())).filter(|(_, line)| !is_blank(line))
}

/// Reads a number, or says what stands there instead.
fn number<T: std::str::FromStr>(line: usize, word: &str, what: &str) -> Result<T, ImportError> {
    word.parse().or_else(|_| {
        let word = crate::sizes::shorten(word);
        wrong(line, format!("`{word}` is not {what}; write a whole number"))
    })
}
