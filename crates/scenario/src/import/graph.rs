//! Nodes and links as a file describes them.

use apus_units::{Rate, Span};

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
    /// What the file has and the topology has not, as a sentence.
    pub left_out: Option<String>,
}

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// A host, by its place in [`Graph::hosts`].
    Host(u32),
    /// A switch, by its place in [`Graph::switches`].
    Switch(u32),
}

/// A link, equal in both directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GraphLink {
    /// One end: the lower one if the topology has tiers.
    pub a: End,
    /// The other end.
    pub b: End,
    /// Bits per time, each way.
    pub rate: Rate,
    /// Propagation delay, each way.
    pub delay: Span,
}

/// Most links of a topology.
pub(crate) const MAX_LINKS: u64 = 1_000_000;
