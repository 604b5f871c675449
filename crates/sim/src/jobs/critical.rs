//! The critical path of a job that has ended: the chain of operations and messages without a gap that
//! determined its end.
//!
//! The path is found backwards. A receive ended when its message arrived, so the path continues with the
//! send. An operation started when another operation had ended or started, or when its stream was free.

use std::collections::BTreeMap;

use apus_jobs::{Action, OpTimes, Program};
use apus_units::{Span, Time};
use serde::Serialize;

use super::ideal::Costs;
use super::rank::HostRank;
use crate::plan::JobPlan;

/// A message on the critical path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CriticalMessage {
    /// The sending rank.
    pub from: u32,
    /// The receiving rank.
    pub to: u32,
    /// Number of the send within the sender's operations.
    pub op: u32,
    /// Size in bytes.
    pub bytes: u64,
    /// Start of the send, since the start of the job.
    pub start_us: f64,
    /// Arrival of the message.
    pub end_us: f64,
    /// Time that the message takes on the fabric without other traffic.
    pub ideal_us: f64,
    /// Time beyond that: waits for other messages of the rank and for the congestion window of the flow, and queues.
    pub delay_us: f64,
    /// Port of the path in which bytes spent most time on average over the run; `null` within a host, and if
    /// packets take several paths.
    pub link: Option<String>,
}

/// The critical path.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CriticalPath {
    /// Number of operations and messages on the path.
    pub(super) steps: u64,
    /// Time of computations.
    pub(super) computing: Span,
    /// Time of messages on the fabric without other traffic, at most their actual time.
    pub(super) wire: Span,
    /// Time of messages beyond that.
    pub(super) delayed: Span,
    /// Messages of the path, in order.
    pub(super) messages: Vec<CriticalMessage>,
}

/// By operation: the operations for which it waits.
struct Reverse {
    first: Vec<u32>,
    /// An operation, and whether its end (or its start) is awaited.
    awaited: Vec<(u32, bool)>,
    /// Computations by stream and end.
    computations: BTreeMap<(u8, Time), u32>,
}

impl Reverse {
    fn new(program: &Program, times: &[OpTimes]) -> Self {
        let ops = program.len() as u32;
        let mut first = vec![0u32; ops as usize + 1];
        for op in 0..ops {
            first[op as usize + 1] = first[op as usize] + program.dependencies(op);
        }
        let mut next = first.clone();
        let mut awaited = vec![(0, false); program.edges()];
        let mut computations = BTreeMap::new();
        for op in 0..ops {
            let ends = program.after_end(op).iter().map(|waits| (*waits, true));
            let starts = program.after_start(op).iter().map(|waits| (*waits, false));
            for (waits, is_end) in ends.chain(starts) {
                let slot = &mut next[waits as usize];
                awaited[*slot as usize] = (op, is_end);
                *slot += 1;
            }
            let of = program.op(op);
            if let Action::Compute { time } = of.action
                && !time.is_zero()
            {
                computations.insert((of.cpu, times[op as usize].end), op);
            }
        }
        Self { first, awaited, computations }
    }
}

/// The last event for which an operation waited.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Cause {
    op: u32,
    /// Whether the end of the operation was awaited; otherwise its start.
    is_end: bool,
    at: Time,
}

struct Walk<'a> {
    job: &'a JobPlan,
    ranks: &'a [&'a HostRank],
    reverse: BTreeMap<u32, Reverse>,
}

impl Walk<'_> {
    fn times(&self, rank: u32, op: u32) -> Option<OpTimes> {
        self.ranks.get(rank as usize)?.state.times()?.get(op as usize).copied()
    }

    /// Returns the event that allowed an operation to start.
    fn cause(&mut self, rank: u32, op: u32) -> Option<Cause> {
        let state = &self.ranks.get(rank as usize)?.state;
        let (program, times) = (state.program(), state.times()?);
        let reverse = self.reverse.entry(rank).or_insert_with(|| Reverse::new(program, times));
        let start = times[op as usize].start;
        let range = reverse.first[op as usize] as usize..reverse.first[op as usize + 1] as usize;
        let at = |(op, is_end): (u32, bool)| {
            let OpTimes { start, end } = times[op as usize];
            if is_end { end } else { start }
        };
        let last = reverse.awaited[range].iter().copied().max_by_key(|awaited| at(*awaited));
        let cause = |(op, is_end): (u32, bool)| Cause { op, is_end, at: at((op, is_end)) };
        if last.is_some_and(|awaited| at(awaited) >= start)
            || matches!(program.op(op).action, Action::Receive { .. })
        {
            return last.map(cause);
        }
        // The stream of the operation was busy.
        let held = reverse.computations.get(&(program.op(op).cpu, start));
        let held = held.filter(|other| **other != op).map(|op| (*op, true));
        held.or(last).map(cause)
    }

    /// Returns the operation that ended last, among those whose end counts.
    fn last(&self) -> Option<(u32, u32)> {
        let mut found: Option<(Time, u32, u32)> = None;
        for rank in self.ranks {
            let program = rank.state.program();
            for (op, times) in (0..).zip(rank.state.times()?) {
                let is_send = matches!(program.op(op).action, Action::Send { .. });
                if is_send && !self.job.done.counts_sends() {
                    continue;
                }
                if found.is_none_or(|(end, ..)| times.end > end) {
                    found = Some((times.end, rank.number, op));
                }
            }
        }
        found.map(|(_, rank, op)| (rank, op))
    }
}

/// Returns the critical path of a job whose operations have all ended, without the ports of its messages.
/// Returns `None` if the times of operations were not kept.
pub(super) fn path(job: &JobPlan, ranks: &[&HostRank], costs: &Costs<'_>) -> Option<CriticalPath> {
    if ranks.iter().any(|rank| rank.state.times().is_none()) {
        return None;
    }
    let mut walk = Walk { job, ranks, reverse: BTreeMap::new() };
    let mut path = CriticalPath::default();
    // A job may have no operation whose end counts.
    let Some((mut rank, mut op)) = walk.last() else { return Some(path) };
    let mut is_end = true;
    // In the LogGOPS model a stream may be busy longer, with a message whose receive it handles later.
    let end = ranks.iter().map(|rank| rank.state.ended_at()).max().unwrap_or(job.start);
    path.delayed += end.since(walk.times(rank, op)?.end);
    let most = job.graph.ops().saturating_mul(2);
    while path.steps < most {
        path.steps += 1;
        let times = walk.times(rank, op)?;
        let action = walk.ranks[rank as usize].state.program().op(op).action;
        if let (true, Action::Compute { .. }) = (is_end, action) {
            path.computing += times.end.since(times.start);
        }
        // A message that arrived before its receive was posted delayed no operation.
        let source = walk.ranks[rank as usize].state.source(op);
        if let (true, Some((from, sent))) = (is_end && times.end > times.start, source) {
            let start = walk.times(from, sent)?.start;
            let bytes = match walk.ranks[from as usize].state.program().op(sent).action {
                Action::Send { bytes, .. } => bytes,
                Action::Receive { .. } | Action::Compute { .. } => 0,
            };
            let took = times.end.since(start);
            let ideal = costs.of(from, rank, bytes).alone();
            let delay = took.saturating_sub(ideal);
            path.wire += took - delay;
            path.delayed += delay;
            path.messages.push(CriticalMessage {
                from,
                to: rank,
                op: sent,
                bytes,
                start_us: start.since(job.start).as_us_f64(),
                end_us: times.end.since(job.start).as_us_f64(),
                ideal_us: ideal.as_us_f64(),
                delay_us: delay.as_us_f64(),
                link: None,
            });
            (rank, op, is_end) = (from, sent, false);
            continue;
        }
        if let (true, Action::Send { to, bytes, .. }) = (is_end, action) {
            let took = times.end.since(times.start);
            let cost = costs.of(rank, to, bytes);
            let delay = took.saturating_sub(cost.alone());
            path.wire += took - delay;
            path.delayed += delay;
        }
        let cause = walk.cause(rank, op);
        // In the LogGOPS model the stream or the NIC may have handled another message.
        path.delayed += times.start.since(cause.map_or(job.start, |cause| cause.at));
        let Some(cause) = cause else { break };
        (op, is_end) = (cause.op, cause.is_end);
    }
    path.messages.reverse();
    Some(path)
}
