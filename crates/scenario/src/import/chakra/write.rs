//! Writes the ranks of a job as Chakra traces.

use std::collections::BTreeSet;

use apus_jobs::collectives::JOINS;
use apus_jobs::{ANY, Action, Graph, Op, Program};
use apus_units::Span;
use prost::Message as _;

use super::ChakraError;
use super::nodes::{COMPUTE, CPU, RECEIVE, SEND};
use super::schema::{Attribute, GlobalMetadata, Node};

/// A trace.
#[derive(Debug)]
pub struct Written {
    /// The file.
    pub bytes: Vec<u8>,
    /// Differences from the job.
    pub changes: Changes,
}

/// Properties of a job that its trace expresses differently, because the format lacks them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Number of computations whose time was rounded.
    pub rounded: u64,
    /// Number of sends that may leave at another time than in the job, because all messages of a trace have a
    /// separate stream. In the job, the stream of the send had computations of its rank or of the receiver, or
    /// differed from that of other sends.
    pub freed: u64,
}

/// Maximum number of dependencies of a rank. Deviation: the format has no limit; this many take 1 GB here.
const MAX_DEPENDENCIES: usize = 50_000_000;

/// Traces of a job.
pub struct Traces<'a> {
    graph: &'a Graph,
    /// Streams with computations that take time, by rank.
    computing: Vec<BTreeSet<u8>>,
    /// The lowest stream of a send.
    sending: Option<u8>,
}

/// Returns `duration_micros` of a computation, where 0 means 1 ns, and whether the time was rounded.
fn duration(time: Span) -> (u64, bool) {
    const MICRO: u64 = 1_000_000;
    let ps = time.as_ps();
    let nearest = ps / MICRO + u64::from(ps % MICRO >= MICRO / 2);
    let is_exact = (ps > 0 && ps.is_multiple_of(MICRO)) || time == Span::from_ns(1);
    (nearest, !is_exact)
}

impl<'a> Traces<'a> {
    /// Returns the traces of a job.
    #[must_use]
    pub fn new(graph: &'a Graph) -> Self {
        let takes_time = |of: &Op| matches!(of.action, Action::Compute { time } if !time.is_zero());
        let streams = |ops: &mut dyn Iterator<Item = Op>| -> BTreeSet<u8> {
            ops.filter(takes_time).map(|of| of.cpu).collect()
        };
        let computing = graph.programs().map(|program| streams(&mut program.ops())).collect();
        let sends = graph.programs().flat_map(|program| program.ops());
        let sends = sends.filter(|of| matches!(of.action, Action::Send { .. }));
        let sending = sends.map(|of| of.cpu).min();
        Self { graph, computing, sending }
    }

    /// Returns `true` if a send has another stream in a trace, so that it may leave at another time.
    fn is_freed(&self, from: u32, to: u32, cpu: u8) -> bool {
        let computes = |rank: u32| self.computing[rank as usize].contains(&cpu);
        computes(from) || computes(to) || self.sending != Some(cpu)
    }

    /// Returns the trace of a rank. Ids of nodes are numbers of operations. Operations that only join others
    /// ([`JOINS`]) have no node. Operations that wait for a join depend directly on the operations for which
    /// the join waits, since ASTRA-sim starts a node behind one without time only at the rank's next event. The
    /// format has whole microseconds, and 1 ns: with `rounds`, the times of other computations are rounded to
    /// the nearest of these values.
    ///
    /// # Errors
    /// If the format cannot express an operation: dependencies on a start, receives from any rank, messages of
    /// 0 bytes or of a NIC other than the first one, computations on streams other than the first two, and,
    /// without `rounds`, computations of other times. If there are too many dependencies.
    pub fn write(&self, rank: u32, rounds: bool) -> Result<Written, ChakraError> {
        let program = self.graph.program(rank);
        let mut dependencies = dependencies(program).map_err(|op| {
            let what = format!("its rank has more than {MAX_DEPENDENCIES} dependencies");
            wrong(rank, program, op, &what)
        })?;
        let mut bytes =
            GlobalMetadata { version: "0.0.4".to_owned() }.encode_length_delimited_to_vec();
        let mut changes = Changes::default();
        for (op, of) in (0..).zip(program.ops()) {
            if !program.after_start(op).is_empty() {
                let what = "another operation waits for its start, which Chakra cannot express";
                return Err(wrong(rank, program, op, what));
            }
            if is_join(&of) {
                continue;
            }
            let mut node = self.node(rank, (op, &of), rounds, &mut changes)?;
            node.data_deps = std::mem::take(&mut dependencies[op as usize]);
            bytes.extend(node.encode_length_delimited_to_vec());
        }
        Ok(Written { bytes, changes })
    }

    /// Returns an operation without its dependencies.
    fn node(
        &self,
        rank: u32,
        (op, of): (u32, &Op),
        rounds: bool,
        changes: &mut Changes,
    ) -> Result<Node, ChakraError> {
        let program = self.graph.program(rank);
        let wrong = |what: &str| Err(wrong(rank, program, op, what));
        let mut node = Node { id: u64::from(op), ..Node::default() };
        node.name = program.label(op).map_or_else(|| format!("op{op}"), str::to_owned);
        let number = |value: u32| i32::try_from(value).ok();
        match of.action {
            Action::Compute { time } => {
                node.kind = COMPUTE;
                let (micros, is_rounded) = duration(time);
                node.duration_micros = micros;
                changes.rounded += u64::from(is_rounded);
                if is_rounded && !rounds {
                    return wrong(
                        "a Chakra trace has times of whole microseconds above 0, or of 1 ns (`apus convert --round` rounds others)",
                    );
                }
                if of.cpu > CPU {
                    return wrong("Chakra has two streams of computations only");
                }
                node.attributes.push(Attribute::of_flag("is_cpu_op", of.cpu == CPU));
            }
            Action::Send { to: peer, bytes, tag } | Action::Receive { from: peer, bytes, tag } => {
                let is_send = matches!(of.action, Action::Send { .. });
                let (Some(own), Some(other), Some(tag)) = (number(rank), number(peer), number(tag))
                else {
                    return wrong(
                        "Chakra has ranks and tags below 2^31, and no receive from any rank",
                    );
                };
                let Some(size) = i64::try_from(bytes).ok().filter(|size| *size > 0) else {
                    return wrong("messages of a Chakra trace have from 1 to 2^63 - 1 bytes");
                };
                if of.nic != 0 {
                    return wrong("messages of a Chakra trace have no NIC; leave out `nic`");
                }
                debug_assert!(peer != ANY);
                node.kind = if is_send { SEND } else { RECEIVE };
                changes.freed += u64::from(is_send && self.is_freed(rank, peer, of.cpu));
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
        Ok(node)
    }
}

/// Returns `true` if an operation only joins others.
fn is_join(of: &Op) -> bool {
    of.cpu == JOINS && matches!(of.action, Action::Compute { time: Span::ZERO })
}

/// Returns the operations for whose ends each operation waits, directly or through joins, in ascending order
/// without joins.
///
/// # Errors
/// The first operation at which there are more than [`MAX_DEPENDENCIES`].
fn dependencies(program: &Program) -> Result<Vec<Vec<u64>>, u32> {
    let ops = program.len();
    let mut waits = vec![0u32; ops];
    for op in 0..ops as u32 {
        program.after_end(op).iter().for_each(|next| waits[*next as usize] += 1);
    }
    let mut free: Vec<u32> = (0..ops as u32).filter(|op| waits[*op as usize] == 0).collect();
    let (mut of, mut total) = (vec![Vec::new(); ops], 0);
    while let Some(op) = free.pop() {
        let list: &mut Vec<u64> = &mut of[op as usize];
        list.sort_unstable();
        list.dedup();
        let passed = if is_join(&program.op(op)) { list.clone() } else { vec![u64::from(op)] };
        for next in program.after_end(op) {
            total += passed.len();
            if total > MAX_DEPENDENCIES {
                return Err(*next);
            }
            of[*next as usize].extend(&passed);
            waits[*next as usize] -= 1;
            if waits[*next as usize] == 0 {
                free.push(*next);
            }
        }
    }
    Ok(of)
}

fn wrong(rank: u32, program: &Program, op: u32, what: &str) -> ChakraError {
    let node = Some((u64::from(op), program.describe(op)));
    ChakraError { rank, offset: None, node, what: what.to_owned() }
}
