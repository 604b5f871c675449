//! Composes the traces of all ranks into one job.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use apus_jobs::collectives::{Algorithm, Composer, JOINS};
use apus_jobs::{Action, GraphError, Op};
use apus_units::Span;

use super::nodes::{MESSAGES, Members, Report, Step, step};
use super::{ChakraError, Groups, Imported, RankTrace};

/// Maximum number of operations of a job.
const MAX_OPS: u64 = 50_000_000;

struct Rank<'a> {
    trace: &'a RankTrace,
    steps: Vec<Step>,
    /// Number of parents without operations so far, by node.
    needs: Vec<u32>,
    followers: Vec<Vec<u32>>,
    parents: Vec<Vec<u32>>,
    ready: BTreeSet<u32>,
    /// The operations with which a node ends.
    ends: Vec<Vec<u32>>,
}

pub(super) fn compose(
    traces: &[RankTrace],
    groups: &Groups,
    is_lenient: bool,
) -> Result<Imported, ChakraError> {
    let mut report = Report { is_lenient, ..Report::default() };
    let members = Members::new(traces, groups);
    let mut ranks = Vec::new();
    for trace in traces {
        ranks.push(Rank::new(trace, &members, traces.len() as u32, &mut report)?);
    }
    let composer = Composer::new(traces.len() as u32).with_tags_from(first_tag(&ranks)?);
    let graph = Composition { composer, members: &members, waiting: BTreeMap::new(), ops: 0 };
    let graph = graph.run(&mut ranks)?;
    Ok(Imported { graph, skipped: report.skipped.into_values().collect() })
}

/// Largest tag of a trace with collectives: the largest one of MPI. Messages of collectives have larger tags
/// than the trace.
const MAX_TAG: u32 = i32::MAX as u32;

/// Returns the first tag for messages of collectives, above those of all sends and receives.
fn first_tag(ranks: &[Rank<'_>]) -> Result<u32, ChakraError> {
    let steps = || {
        ranks.iter().flat_map(|rank| {
            rank.trace.nodes.iter().zip(&rank.steps).map(move |at| (rank.trace, at))
        })
    };
    let tagged = steps().filter_map(|(trace, (node, step))| match step {
        Step::One(Op {
            action: Action::Send { tag, .. } | Action::Receive { tag, .. }, ..
        }) => Some((*tag, trace, node)),
        _ => None,
    });
    let Some((largest, trace, node)) = tagged.max_by_key(|(tag, ..)| *tag) else { return Ok(0) };
    let has_collectives = steps().any(|(_, (_, step))| matches!(step, Step::Collective { .. }));
    if has_collectives && largest > MAX_TAG {
        let what = format!(
            "comm_tag is {largest}; with collectives it must be from 0 to {MAX_TAG}, since their messages have those above"
        );
        return Err(trace.wrong(node, what));
    }
    Ok(if has_collectives { largest + 1 } else { 0 })
}

impl<'a> Rank<'a> {
    fn new(
        trace: &'a RankTrace,
        members: &Members,
        ranks: u32,
        report: &mut Report,
    ) -> Result<Self, ChakraError> {
        let count = trace.nodes.len();
        let mut steps = Vec::with_capacity(count);
        let mut numbers: BTreeMap<usize, u64> = BTreeMap::new();
        let mut followers = vec![Vec::new(); count];
        let mut parents: Vec<Vec<(u32, bool)>> = vec![Vec::new(); count];
        for (place, node) in trace.nodes.iter().enumerate() {
            let mut all: BTreeMap<u32, bool> = BTreeMap::new();
            let lists = [("ctrl_deps", &node.ctrl_deps), ("data_deps", &node.data_deps)];
            for (list, id) in
                lists.into_iter().flat_map(|(n, ids)| ids.iter().map(move |id| (n, id)))
            {
                let is_data = list == "data_deps";
                match trace.nodes.binary_search_by_key(id, |node| node.id) {
                    Ok(parent) if parent == place => {
                        let what = format!("it is in its own {list}; remove the dependency");
                        let class = match is_data {
                            true => "data_deps on the node itself",
                            false => "ctrl_deps on the node itself",
                        };
                        report.skip(trace, node, class, what)?;
                    }
                    Ok(parent) => {
                        all.insert(parent as u32, is_data);
                    }
                    Err(_) => {
                        let class = match is_data {
                            true => "data_deps on absent nodes",
                            false => "ctrl_deps on absent nodes",
                        };
                        let what = format!("its {list} name node {id}, which the trace has not");
                        report.skip(trace, node, class, what)?;
                    }
                }
            }
            parents[place] = all.into_iter().collect::<Vec<(u32, bool)>>();
            steps.push(step(trace, node, members, ranks, &mut numbers, report)?);
        }
        if report.is_lenient {
            leave_out_cycles(trace, &mut parents, report)?;
        }
        let parents: Vec<Vec<u32>> = parents
            .into_iter()
            .map(|all| all.into_iter().map(|(parent, _)| parent).collect())
            .collect();
        for (place, all) in parents.iter().enumerate() {
            for parent in all {
                followers[*parent as usize].push(place as u32);
            }
        }
        let needs: Vec<u32> = parents.iter().map(|parents| parents.len() as u32).collect();
        let ready = (0..count as u32).filter(|node| needs[*node as usize] == 0).collect();
        Ok(Self { trace, steps, needs, followers, parents, ready, ends: vec![Vec::new(); count] })
    }

    /// Returns the operations for which an operation of the node waits.
    fn after(&self, node: u32) -> Vec<u32> {
        let parents = self.parents[node as usize].iter();
        let mut all: Vec<u32> =
            parents.flat_map(|parent| self.ends[*parent as usize].iter().copied()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Sets the operations with which a node ends. Nodes that waited only for this node become ready.
    fn end(&mut self, node: u32, ends: Vec<u32>) {
        self.ends[node as usize] = ends;
        for next in &self.followers[node as usize] {
            self.needs[*next as usize] -= 1;
            if self.needs[*next as usize] == 0 {
                self.ready.insert(*next);
            }
        }
    }
}

/// Leaves out the ctrl_deps of nodes that wait for each other. In PyTorch's traces these ctrl_deps name
/// callers, and mlcommons' feeder does not read ctrl_deps at all.
fn leave_out_cycles(
    trace: &RankTrace,
    parents: &mut [Vec<(u32, bool)>],
    report: &mut Report,
) -> Result<(), ChakraError> {
    let mut needs: Vec<usize> = parents.iter().map(Vec::len).collect();
    let mut followers = vec![Vec::new(); parents.len()];
    for (place, all) in parents.iter().enumerate() {
        all.iter().for_each(|(parent, _)| followers[*parent as usize].push(place));
    }
    let mut free: Vec<usize> = (0..needs.len()).filter(|place| needs[*place] == 0).collect();
    while let Some(place) = free.pop() {
        for next in &followers[place] {
            needs[*next] -= 1;
            if needs[*next] == 0 {
                free.push(*next);
            }
        }
    }
    for place in (0..needs.len()).filter(|place| needs[*place] > 0) {
        let node = &trace.nodes[place];
        for _ in parents[place].iter().filter(|(_, is_data)| !is_data) {
            let what = "its ctrl_deps are in a cycle, or behind one".to_owned();
            report.skip(trace, node, "ctrl_deps in cycles or behind them", what)?;
        }
        parents[place].retain(|(_, is_data)| *is_data);
    }
    Ok(())
}

/// A collective that waits for its ranks.
struct Pending {
    algorithm: Algorithm,
    bytes: u64,
    arrived: Vec<(u32, u32)>,
}

struct Composition<'a> {
    composer: Composer,
    members: &'a Members,
    waiting: BTreeMap<(usize, u64), Pending>,
    ops: u64,
}

impl Composition<'_> {
    fn run(mut self, ranks: &mut [Rank<'_>]) -> Result<apus_jobs::Graph, ChakraError> {
        let mut queue: VecDeque<u32> = (0..ranks.len() as u32).collect();
        let mut left: usize = ranks.iter().map(|rank| rank.steps.len()).sum();
        while let Some(number) = queue.pop_front() {
            while let Some(node) = ranks[number as usize].ready.pop_first() {
                left -= 1;
                let rank = &mut ranks[number as usize];
                let step = rank.steps[node as usize].clone();
                match step {
                    Step::One(op) => {
                        let after = rank.after(node);
                        let op = self.op(rank, number, node, op, &after)?;
                        rank.end(node, vec![op]);
                    }
                    Step::Join => {
                        let after = rank.after(node);
                        let ends = self.join(rank, number, node, after)?;
                        rank.end(node, ends);
                    }
                    Step::Collective { algorithm, bytes, group, number: k } => {
                        let new = Pending { algorithm, bytes, arrived: Vec::new() };
                        let pending = self.waiting.entry((group, k)).or_insert(new);
                        if (pending.algorithm, pending.bytes) != (algorithm, bytes) {
                            let (trace, k) = (rank.trace, k + 1);
                            let first = pending.arrived[0].0;
                            let what = format!(
                                "it is the collective {k} of its group, but differs in type or size from that of rank {first}"
                            );
                            return Err(trace.wrong(&trace.nodes[node as usize], what));
                        }
                        pending.arrived.push((number, node));
                        if pending.arrived.len() == self.members.lists[group].len() {
                            let pending = self.waiting.remove(&(group, k));
                            if let Some(pending) = pending {
                                self.collective(ranks, group, pending)?;
                                queue.extend(&self.members.lists[group]);
                            }
                        }
                    }
                }
            }
        }
        if left > 0 || !self.waiting.is_empty() {
            return Err(self.stuck(ranks));
        }
        self.composer.finish().map_err(|error| graph_error(ranks, 0, 0, error))
    }

    /// Returns the error for a collective or a node that never starts.
    fn stuck(&self, ranks: &[Rank<'_>]) -> ChakraError {
        if let Some(((group, k), pending)) = self.waiting.iter().next() {
            let (rank, node) = pending.arrived[0];
            let is_here = |member: &&u32| pending.arrived.iter().any(|(rank, _)| rank == *member);
            let absent = self.members.lists[*group].iter().find(|member| !is_here(member));
            let trace = ranks[rank as usize].trace;
            let k = k + 1;
            let what = match absent {
                Some(rank) => format!(
                    "it is the collective {k} of its group, which rank {rank} never reaches"
                ),
                None => format!("it is the collective {k} of its group, which never starts"),
            };
            return trace.wrong(&trace.nodes[node as usize], what);
        }
        for rank in ranks {
            if let Some(node) = rank.needs.iter().position(|needs| *needs > 0) {
                return rank.trace.wrong(
                    &rank.trace.nodes[node],
                    "it waits for itself, through its dependencies",
                );
            }
        }
        let what = "some nodes never start".to_owned();
        ChakraError { rank: 0, offset: None, node: None, what }
    }

    fn count(&mut self, rank: &Rank<'_>, node: u32, ops: u64) -> Result<(), ChakraError> {
        self.ops += ops;
        if self.ops <= MAX_OPS {
            return Ok(());
        }
        let what = format!("the job has more than {MAX_OPS} operations; use fewer ranks");
        Err(rank.trace.wrong(&rank.trace.nodes[node as usize], what))
    }

    fn op(
        &mut self,
        rank: &Rank<'_>,
        number: u32,
        node: u32,
        op: Op,
        after: &[u32],
    ) -> Result<u32, ChakraError> {
        self.count(rank, node, 1)?;
        let trace = rank.trace;
        let wrong =
            |error: GraphError| trace.wrong(&trace.nodes[node as usize], error.what.to_string());
        self.composer.op(number, op, after).map_err(wrong)
    }

    /// Returns an operation that ends when all given operations have ended, or the given ones if there is at
    /// most one.
    fn join(
        &mut self,
        rank: &Rank<'_>,
        number: u32,
        node: u32,
        after: Vec<u32>,
    ) -> Result<Vec<u32>, ChakraError> {
        if after.len() < 2 {
            return Ok(after);
        }
        Ok(vec![self.op(rank, number, node, Op::compute(Span::ZERO).on_cpu(JOINS), &after)?])
    }

    fn collective(
        &mut self,
        ranks: &mut [Rank<'_>],
        group: usize,
        pending: Pending,
    ) -> Result<(), ChakraError> {
        let Pending { algorithm, bytes, mut arrived } = pending;
        let members = &self.members.lists[group];
        arrived.sort_by_key(|(rank, _)| members.iter().position(|member| member == rank));
        let (first, node) = arrived[0];
        let size = members.len() as u64;
        // Sends and receives, and one operation with which a rank enters.
        let each = 2 * algorithm.messages(members.len() as u32) + 1;
        self.count(&ranks[first as usize], node, size * each)?;
        let mut after: Vec<Vec<u32>> =
            arrived.iter().map(|(rank, node)| ranks[*rank as usize].after(*node)).collect();
        let trace = ranks[first as usize].trace;
        let wrong = |error: String| trace.wrong(&trace.nodes[node as usize], error);
        self.composer
            .collective(members, algorithm, bytes, MESSAGES, &mut after)
            .map_err(|error| wrong(error.to_string()))?;
        for ((number, node), after) in arrived.into_iter().zip(after) {
            let ends = self.join(&ranks[number as usize], number, node, after)?;
            ranks[number as usize].end(node, ends);
        }
        Ok(())
    }
}

fn graph_error(ranks: &[Rank<'_>], rank: usize, node: usize, error: GraphError) -> ChakraError {
    let at = error.rank.map_or(rank, |rank| rank as usize);
    let trace = ranks[at.min(ranks.len() - 1)].trace;
    trace.wrong(&trace.nodes[node], error.what.to_string())
}
