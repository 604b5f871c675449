//! Conversion of the nodes of a trace into steps of a job, and the elements that the lenient mode leaves out.

use std::collections::{BTreeMap, BTreeSet};

use apus_jobs::collectives::Algorithm;
use apus_jobs::{ANY, Op};
use apus_units::Span;

use super::schema::Node;
use super::{ChakraError, Groups, RankTrace, Skipped};

/// Types of nodes.
const METADATA: i32 = 1;
pub(super) const COMPUTE: i32 = 4;
pub(super) const SEND: i32 = 5;
pub(super) const RECEIVE: i32 = 6;
const COLLECTIVE: i32 = 7;

/// Stream of computations on the CPU; that of operations that only join others is [`JOINS`](apus_jobs::collectives::JOINS).
pub(super) const CPU: u8 = 1;
/// Stream of messages: sends, receives and messages of collectives.
pub(super) const MESSAGES: u8 = 3;

/// Lists of the elements that were left out.
#[derive(Default)]
pub(super) struct Report {
    pub(super) is_lenient: bool,
    pub(super) skipped: BTreeMap<&'static str, Skipped>,
}

impl Report {
    /// Leaves an element out, or returns the error.
    pub(super) fn skip(
        &mut self,
        trace: &RankTrace,
        node: &Node,
        class: &'static str,
        what: String,
    ) -> Result<(), ChakraError> {
        let error = trace.wrong(node, what);
        if !self.is_lenient {
            return Err(error);
        }
        let first = error.to_string();
        let new = || Skipped { what: class.to_owned(), count: 0, first };
        self.skipped.entry(class).or_insert_with(new).count += 1;
        Ok(())
    }
}

/// The step of a job into which a node is converted.
#[derive(Clone, Debug)]
pub(super) enum Step {
    One(Op),
    /// Only the dependencies of the node.
    Join,
    Collective {
        algorithm: Algorithm,
        bytes: u64,
        group: usize,
        /// Number of earlier collectives of the group on this rank.
        number: u64,
    },
}

/// Members of all groups.
#[derive(Default)]
pub(super) struct Members {
    ranks: u32,
    names: BTreeMap<String, usize>,
    pub(super) lists: Vec<Vec<u32>>,
}

impl Members {
    pub(super) fn new(traces: &[RankTrace], given: &Groups) -> Self {
        let mut groups = Self { ranks: traces.len() as u32, ..Self::default() };
        // "" and "0" name the same group, whose collectives are counted together.
        groups.add("", (0..groups.ranks).collect());
        groups.names.insert("0".to_owned(), 0);
        for node in traces.iter().flat_map(|trace| &trace.nodes) {
            if node.kind == METADATA && node.name.contains("process_group:init") {
                groups.add_of_pytorch(node);
            }
        }
        for (name, members) in given {
            groups.add(name, members.clone());
        }
        groups
    }

    fn add(&mut self, name: &str, members: Vec<u32>) {
        // A group with a rank that has no trace, or with a rank twice, has no members here.
        let distinct: BTreeSet<u32> = members.iter().copied().collect();
        let is_whole =
            distinct.len() == members.len() && members.iter().all(|rank| *rank < self.ranks);
        let members = if is_whole { members } else { Vec::new() };
        // Traces of PyTorch define every group on each rank.
        if self.names.get(name).is_none_or(|index| self.lists[*index] != members) {
            self.names.insert(name.to_owned(), self.lists.len());
            self.lists.push(members);
        }
    }

    /// Adds the groups of a list of objects with `pg_name` and `ranks`.
    fn add_of_pytorch(&mut self, node: &Node) {
        let Some(text) = node.inputs.as_ref().map(|inputs| inputs.values.as_str()) else { return };
        let Ok(list) = serde_json::from_str::<Vec<serde_json::Value>>(text) else { return };
        for entry in list {
            let name = entry.get("pg_name").and_then(|name| name.as_str()).map(str::to_owned);
            let ranks = entry.get("ranks").and_then(|ranks| ranks.as_array());
            if let (Some(name), Some(ranks)) = (name, ranks.filter(|ranks| !ranks.is_empty())) {
                let number = |rank: &serde_json::Value| u32::try_from(rank.as_u64()?).ok();
                // A group with an element that is not a rank has no members here.
                self.add(
                    &name,
                    ranks.iter().map(number).collect::<Option<_>>().unwrap_or_default(),
                );
            }
        }
    }
}

/// Returns the step into which a node is converted.
pub(super) fn step(
    trace: &RankTrace,
    node: &Node,
    members: &Members,
    ranks: u32,
    numbers: &mut BTreeMap<usize, u64>,
    report: &mut Report,
) -> Result<Step, ChakraError> {
    match node.kind {
        METADATA => Ok(Step::Join),
        COMPUTE => {
            if node.duration_micros == 0 && node.integer("num_ops").is_some_and(|ops| ops > 0) {
                let what = "it has no duration_micros, and its num_ops have no meaning here: set the duration".to_owned();
                report.skip(trace, node, "times of computations given by num_ops", what)?;
            }
            let time = match node.duration_micros {
                0 => Span::from_ns(1),
                us => Span::from_ps(us.saturating_mul(1_000_000)),
            };
            let cpu = if node.flag("is_cpu_op") { CPU } else { 0 };
            Ok(Step::One(Op::compute(time).on_cpu(cpu)))
        }
        SEND | RECEIVE => {
            let is_send = node.kind == SEND;
            let number = |name: &str| match node.integer(name) {
                // The largest number means any rank or tag.
                Some(value) => {
                    u32::try_from(value).ok().filter(|value| *value != ANY).ok_or_else(|| {
                        let right = "it must be from 0 to 2^32 - 2";
                        trace.wrong(node, format!("{name} is {value}; {right}"))
                    })
                }
                None => Err(trace.wrong(node, format!("the attribute {name} is missing"))),
            };
            let peer = number(if is_send { "comm_dst" } else { "comm_src" })?;
            if peer >= ranks {
                return Err(trace.wrong(
                    node,
                    format!("its peer is rank {peer}, but there are {ranks} traces"),
                ));
            }
            let tag = if node.attribute("comm_tag").is_some() { number("comm_tag")? } else { 0 };
            let bytes = size(trace, node)?;
            let op = match is_send {
                true => Op::send(peer, bytes, tag),
                false => Op::receive(peer, bytes, tag),
            };
            Ok(Step::One(op.on_cpu(MESSAGES)))
        }
        COLLECTIVE => match collective(trace, node, members, numbers, report)? {
            Some(step) => Ok(step),
            None => Ok(Step::Join),
        },
        other => {
            let what =
                format!("nodes of type {other} have no meaning here; types 1 and 4 to 7 have");
            report.skip(trace, node, "nodes of other types than 1 and 4 to 7", what)?;
            Ok(Step::Join)
        }
    }
}

fn size(trace: &RankTrace, node: &Node) -> Result<u64, ChakraError> {
    match node.integer("comm_size").map(u64::try_from) {
        Some(Ok(bytes)) if bytes > 0 => Ok(bytes),
        Some(_) => Err(trace.wrong(node, "comm_size must be above 0")),
        None => Err(trace.wrong(node, "the attribute comm_size is missing")),
    }
}

fn collective(
    trace: &RankTrace,
    node: &Node,
    members: &Members,
    numbers: &mut BTreeMap<usize, u64>,
    report: &mut Report,
) -> Result<Option<Step>, ChakraError> {
    let name = node.text("pg_name").unwrap_or_default();
    let Some(group) = members.names.get(name).copied() else {
        let what = format!(
            "its group `{name}` is defined nowhere; name a file of groups (`groups` of a scenario, --groups of `apus convert`)"
        );
        report.skip(trace, node, "collectives of unknown groups", what)?;
        return Ok(None);
    };
    let list = &members.lists[group];
    if !list.contains(&trace.rank) {
        let rank = trace.rank;
        let what = format!(
            "its group `{name}` does not have rank {rank}, or has ranks without a trace; correct the groups"
        );
        report.skip(trace, node, "collectives of groups without the rank", what)?;
        return Ok(None);
    }
    if node.excludes("involved_dim") {
        let what = "involved_dim leaves out dimensions of the network, which have no meaning here; use a group".to_owned();
        report.skip(trace, node, "collectives in some dimensions only", what)?;
        return Ok(None);
    }
    let kind = node.integer("comm_type").unwrap_or(0);
    let ranks = list.len() as u64;
    let (algorithm, factor) = match kind {
        0 => (Algorithm::RingAllReduce, 1),
        2 => (Algorithm::RingAllGather, ranks),
        5 => (Algorithm::BroadcastBinomial, 1),
        6 => (Algorithm::AllToAllDirect, 1),
        7 | 8 => (Algorithm::RingReduceScatter, 1),
        9 => (Algorithm::RingAllReduce, 0),
        other => {
            let what = format!("comm_type {other} is not supported; 0, 2 and 5 to 9 are");
            report.skip(trace, node, "collectives of other types than 0, 2 and 5 to 9", what)?;
            return Ok(None);
        }
    };
    let number = numbers.entry(group).or_insert(0);
    *number += 1;
    if list.len() < 2 {
        return Ok(None);
    }
    // A barrier has no bytes; messages have at least one.
    let shard = if factor == 0 { 0 } else { size(trace, node)? };
    let bytes = shard.checked_mul(factor).map(|bytes| bytes.max(ranks)).ok_or_else(|| {
        let what = format!(
            "comm_size is {shard}, that of each of {ranks} ranks; all of them must be below 2^64 B"
        );
        trace.wrong(node, what)
    })?;
    Ok(Some(Step::Collective { algorithm, bytes, group, number: *number - 1 }))
}
