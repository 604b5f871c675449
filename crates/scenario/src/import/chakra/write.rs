//! A rank of a job as a Chakra trace.

use std::collections::BTreeSet;

use apus_jobs::collectives::JOINS;
use apus_jobs::{ANY, Action, Graph, Op};
use apus_units::Span;
use prost::Message as _;

use super::ChakraError;
use super::nodes::{COMPUTE, CPU, METADATA, RECEIVE, SEND};
use super::schema::{Attribute, GlobalMetadata, Node};

/// A trace.
#[derive(Debug)]
pub struct Written {
    /// The file.
    pub bytes: Vec<u8>,
    /// What differs from the job.
    pub changes: Changes,
}

/// What a trace cannot have and has otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Number of computations whose time was rounded.
    pub rounded: u64,
    /// Number of sends that had a stream with computations. Messages of a trace have a stream of their own, so that computations
    /// on which they do not depend no longer delay them.
    pub freed: u64,
}

/// Returns `duration_micros` of a computation, in which 0 is 1 ns, and whether it is rounded.
fn duration(time: Span) -> (u64, bool) {
    const MICRO: u64 = 1_000_000;
    let ps = time.as_ps();
    let nearest = ps / MICRO + u64::from(ps % MICRO >= MICRO / 2);
    let is_exact = (ps > 0 && ps.is_multiple_of(MICRO)) || time == Span::from_ns(1);
    (nearest, !is_exact)
}

/// Returns the trace of a rank. Ids of nodes are numbers of operations. Operations that only join others
/// ([`JOINS`]) become nodes of metadata, which take no time. The format has whole microseconds, and 1 ns: `rounds` rounds the
/// times of other computations to the nearest of them.
///
/// # Errors
/// If the format cannot express an operation: dependencies on a start, receives from any rank, messages of 0 bytes or of another NIC
/// than the first one, computations on other streams than the first two, and, without `rounds`, computations of other times.
pub fn write_trace(graph: &Graph, rank: u32, rounds: bool) -> Result<Written, ChakraError> {
    let program = graph.program(rank);
    let wrong = |op: u32, what: &str| {
        let node = Some((u64::from(op), program.describe(op)));
        Err(ChakraError { rank, offset: None, node, what: what.to_owned() })
    };
    let mut nodes = Vec::with_capacity(program.len());
    let mut changes = Changes::default();
    let takes_time = |of: &Op| matches!(of.action, Action::Compute { time } if !time.is_zero());
    let computing: BTreeSet<u8> = program.ops().filter(takes_time).map(|of| of.cpu).collect();
    for (op, of) in (0..).zip(program.ops()) {
        if !program.after_start(op).is_empty() {
            return wrong(op, "another operation waits for its start, which Chakra cannot express");
        }
        let mut node = Node { id: u64::from(op), ..Node::default() };
        let number = |value: u32| i32::try_from(value).ok();
        match of.action {
            Action::Compute { time: Span::ZERO } if of.cpu == JOINS => node.kind = METADATA,
            Action::Compute { time } => {
                node.kind = COMPUTE;
                let (micros, is_rounded) = duration(time);
                node.duration_micros = micros;
                changes.rounded += u64::from(is_rounded);
                if is_rounded && !rounds {
                    return wrong(
                        op,
                        "a Chakra trace has times of whole microseconds above 0, or of 1 ns (`apus convert --round` rounds others)",
                    );
                }
                if of.cpu > CPU {
                    return wrong(op, "Chakra has two streams of computations only");
                }
                node.attributes.push(Attribute::of_flag("is_cpu_op", of.cpu == CPU));
            }
            Action::Send { to: peer, bytes, tag } | Action::Receive { from: peer, bytes, tag } => {
                let is_send = matches!(of.action, Action::Send { .. });
                let (Some(own), Some(other), Some(tag)) = (number(rank), number(peer), number(tag))
                else {
                    return wrong(
                        op,
                        "Chakra has ranks and tags below 2^31, and no receive from any rank",
                    );
                };
                let Some(size) = i64::try_from(bytes).ok().filter(|size| *size > 0) else {
                    return wrong(op, "messages of a Chakra trace have from 1 to 2^63 - 1 bytes");
                };
                if of.nic != 0 {
                    return wrong(op, "messages of a Chakra trace have no NIC; leave out `nic`");
                }
                debug_assert!(peer != ANY);
                node.kind = if is_send { SEND } else { RECEIVE };
                changes.freed += u64::from(is_send && computing.contains(&of.cpu));
                let (source, target) = if is_send { (own, other) } else { (other, own) };
                node.attributes.extend([
                    Attribute::of_int64("comm_size", size),
                    Attribute::of_int32("comm_src", source),
                    Attribute::of_int32("comm_dst", target),
                    Attribute::of_int32("comm_tag", tag),
                    Attribute::of_flag("is_cpu_op", false),
                ]);
            }
        }
        node.name = match program.label(op) {
            Some(label) => label.to_owned(),
            None => format!("op{op}"),
        };
        nodes.push(node);
    }
    for op in 0..program.len() as u32 {
        for waits in program.after_end(op) {
            nodes[*waits as usize].data_deps.push(u64::from(op));
        }
    }
    let mut bytes = GlobalMetadata { version: "0.0.4".to_owned() }.encode_length_delimited_to_vec();
    for node in nodes {
        bytes.extend(node.encode_length_delimited_to_vec());
    }
    Ok(Written { bytes, changes })
}
