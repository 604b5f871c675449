//! Readers of other simulators' files, one format per file. None of the readers accesses the file system: each
//! reads a text and reports errors with the line.

pub mod chakra;
pub mod cm_job;
pub mod csv;
mod graph;
pub mod hpcc;
pub mod htsim;
pub mod infragraph;
mod job;
mod servers;
pub mod simai;
mod text;
mod traffic;

pub(crate) use graph::MAX_LINKS;
pub use graph::{End, Graph, GraphLink, Servers};
pub use job::parse_job;
pub use text::ImportError;
use text::wrong;
pub(crate) use text::{MAX_RANKS, is_blank};
pub use traffic::{Message, Traffic};

impl Traffic {
    /// Reads traffic in any of the formats, identified by the beginning: `start_us,...` is [`csv`],
    /// `Nodes N` is [`htsim`], a number alone is [`hpcc`].
    ///
    /// # Errors
    /// An error with line and remedy.
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
                "unknown traffic format; the file must begin with `start_us,from,to,bytes` (CSV), \
                 with `Nodes N` (a connection matrix of htsim), or with the number of flows alone (a \
                 flow.txt of the HPCC simulator)",
            )
        }
    }
}

impl Graph {
    /// Reads a topology in any of the formats, identified by the beginning: a number is [`hpcc`], a word
    /// is [`htsim`], a key of YAML or `{` is [`infragraph`].
    ///
    /// # Errors
    /// An error with line and remedy.
    pub fn parse(text: &str) -> Result<Self, ImportError> {
        let first = text.lines().map(str::trim).find(|line| !is_blank(line)).unwrap_or_default();
        if first.starts_with(|c: char| c.is_ascii_digit()) {
            hpcc::parse_topology(text)
        } else if first.starts_with(['{', '-']) || first.contains(':') {
            infragraph::parse_topology(text)
        } else if first.starts_with(|c: char| c.is_ascii_alphabetic()) {
            htsim::parse_topology(text)
        } else {
            wrong(
                1,
                "unknown topology format; the file must begin with `Nodes N` (a .topo of htsim), with \
                 `nodes switches links` (a topology.txt of the HPCC simulator), or with a key of InfraGraph's YAML or \
                 JSON",
            )
        }
    }
}
