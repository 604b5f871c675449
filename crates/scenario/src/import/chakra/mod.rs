//! Chakra execution traces (mlcommons/chakra; `PREFIX.RANK.et`), one file per rank, as a job.
//!
//! * A node starts when all nodes of its `data_deps` and `ctrl_deps` are done.
//! * Computations take `duration_micros` (0 is 1 ns) on one stream, those with `is_cpu_op` on another one.
//!   Messages have a third stream, so that they wait only for computations on which they depend. ASTRA-sim has
//!   a slot for each of the three.
//! * A collective is the k-th of its group (`pg_name`; "" and "0": all ranks) in the order of ids, on all ranks
//!   of the group. All-reduce, all-gather, reduce-scatter and barrier are rings, all-to-all is direct,
//!   broadcast is a binomial tree from the first rank of the group. `comm_size` is the whole array of a rank,
//!   for an all-gather the shard of the rank.
//! * Groups come from [`groups_of_json`], or from nodes of PyTorch's traces that begin with `## process_group:init`.
//! * deviation: collectives and sends of a rank run in parallel if their dependencies allow it; in ASTRA-sim
//!   they share a slot.
//!
//! Real traces have dependencies on absent nodes and on themselves, and nodes without a meaning for a job.
//! These are errors; the lenient mode leaves them out and lists them.

mod compose;
mod nodes;
mod schema;
mod text;
mod write;

use std::collections::BTreeMap;
use std::fmt;

use apus_jobs::Graph;
use prost::Message as _;

use schema::{GlobalMetadata, Node};
pub use text::{of_text, text_of};
pub use write::{Changes, Traces, Written};

/// Members of each group by its name.
pub type Groups = BTreeMap<String, Vec<u32>>;

/// An error in a trace: the place, the mistake, and a valid form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChakraError {
    /// The rank of the file.
    pub rank: u32,
    /// Byte of the decompressed file, if the error has such a place.
    pub offset: Option<u64>,
    /// Id and name of the node, if the error belongs to a node.
    pub node: Option<(u64, String)>,
    /// The mistake and a valid form.
    pub what: String,
}

impl fmt::Display for ChakraError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}", self.rank)?;
        if let Some((id, name)) = &self.node {
            write!(f, ", node {id} ({})", apus_units::shorten(name))?;
        }
        if let Some(offset) = self.offset {
            write!(f, ", offset {offset}")?;
        }
        write!(f, ": {}", self.what)
    }
}

impl std::error::Error for ChakraError {}

/// The trace of a rank.
#[derive(Clone, Debug)]
pub struct RankTrace {
    rank: u32,
    /// The nodes, in the order of their ids.
    nodes: Vec<Node>,
}

/// A kind of element that the lenient mode left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Description of the elements.
    pub what: String,
    /// Number of elements left out.
    pub count: u64,
    /// The first element left out.
    pub first: String,
}

/// A job made of traces.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The job.
    pub graph: Graph,
    /// The elements that were left out; empty unless the mode is lenient.
    pub skipped: Vec<Skipped>,
}

/// Maximum number of nodes of a trace. Rationale: several GB of memory.
const MAX_NODES: usize = 10_000_000;

/// Returns `true` if the first bytes of a file may be those of a trace: the length of its metadata and field 1.
#[must_use]
pub fn is_trace(bytes: &[u8]) -> bool {
    match length(bytes) {
        Some((length, at)) => {
            let first = bytes.get(at..at + length.min(1));
            first.is_some_and(|first| first.iter().all(|byte| matches!(byte, 0x0a | 0x12)))
        }
        None => false,
    }
}

/// Reads a varint of at most 5 bytes. Returns its value and its length.
fn length(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = 0u64;
    for (place, byte) in bytes.iter().take(5).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return usize::try_from(value).ok().map(|value| (value, place + 1));
        }
    }
    None
}

impl RankTrace {
    /// Reads the trace of a rank from the bytes of a file that is not compressed.
    ///
    /// # Errors
    /// An error with rank, node and offset.
    pub fn parse(rank: u32, bytes: &[u8]) -> Result<Self, ChakraError> {
        let mut at = 0;
        let mut nodes: Vec<Node> = Vec::new();
        let mut has_metadata = false;
        while at < bytes.len() {
            let wrong = |node: usize, what: String| {
                let what = format!("message {node}: {what}");
                Err(ChakraError { rank, offset: Some(at as u64), node: None, what })
            };
            let number = nodes.len() + usize::from(has_metadata);
            let Some((length, own)) = length(&bytes[at..]) else {
                return wrong(number, "its length is no varint; the file is damaged".to_owned());
            };
            let Some(message) = bytes.get(at + own..).and_then(|rest| rest.get(..length)) else {
                let rest = bytes.len() - at - own;
                return wrong(
                    number,
                    format!("it has {length} bytes, but {rest} follow; the file is cut short"),
                );
            };
            if has_metadata {
                match Node::decode(message) {
                    Ok(node) => nodes.push(node),
                    Err(error) => return wrong(number, format!("it is no node: {error}")),
                }
            } else if let Err(error) = GlobalMetadata::decode(message) {
                return wrong(number, format!("it is no metadata of a trace: {error}"));
            }
            has_metadata = true;
            if nodes.len() > MAX_NODES {
                return wrong(number, format!("a trace has at most {MAX_NODES} nodes"));
            }
            at += own + length;
        }
        // A rank may have nothing to do; its trace then has only metadata.
        if !has_metadata {
            let what = "the file is empty; a trace begins with its metadata".to_owned();
            return Err(ChakraError { rank, offset: Some(at as u64), node: None, what });
        }
        nodes.sort_by_key(|node| node.id);
        let trace = Self { rank, nodes };
        match trace.nodes.windows(2).find(|pair| pair[0].id == pair[1].id) {
            Some(pair) => Err(trace.wrong(&pair[1], "another node has the same id")),
            None => Ok(trace),
        }
    }

    /// Returns the number of nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    fn wrong(&self, node: &Node, what: impl Into<String>) -> ChakraError {
        let node = Some((node.id, node.name.clone()));
        ChakraError { rank: self.rank, offset: None, node, what: what.into() }
    }
}

/// Reads groups from JSON: `{"1": [0, 2], "2": [1, 3]}`, ASTRA-sim's `--comm-group-configuration`.
///
/// # Errors
/// If the text has another form.
pub fn groups_of_json(text: &str) -> Result<Groups, String> {
    serde_json::from_str(text).map_err(|error| {
        format!("{error}; it must be names with lists of ranks, like {{\"1\": [0, 1]}}")
    })
}

/// Composes a job from the traces of ranks 0, 1 and so on.
///
/// # Errors
/// The first mistake; in the lenient mode, only mistakes that make a job impossible.
pub fn compose(
    traces: &[RankTrace],
    groups: &Groups,
    is_lenient: bool,
) -> Result<Imported, ChakraError> {
    compose::compose(traces, groups, is_lenient)
}
