//! The ops of an engine's applications: queued ops, ops that the transport runs, deadlines and completions.

use std::collections::{BTreeSet, VecDeque};
use std::mem::take;
use std::sync::Arc;

use apus_transport::{Arrival, Completion, Handled, Observed, Op, Outcome, SubmitError as Refused};
use apus_units::planted::{Bug, is_planted};
use apus_units::{FlowId, OpId, PacketNumber, Span, Time};
use apus_wire::{Header, RejectReason, Segment, SegmentKind};
use slab::Slab;

use super::endpoint::Endpoint;
use super::refusals::Refusals;
use crate::connection_state::flow_of;
use crate::containment::contain;
use crate::error::{Cause, End, OpError, Refusal};
use crate::pending::Pending;
use crate::session::SessionId;
use crate::stats::add;
use crate::status::EngineStatus;

/// Result of the ops of an engine that failed.
const UNKNOWN: OpError = OpError::Unknown(Cause::Ended(End::EngineFailed));

/// An op that the transport has accepted.
struct Outstanding {
    pending: Pending,
    flow: FlowId,
    op: OpId,
    /// Reason why this side ended the op, if it did.
    cause: Option<Cause>,
}

/// The ops of one flow.
#[derive(Default)]
struct FlowOps {
    /// Ops that are queued because the flow has as many outstanding ops as the peer accepts.
    waiting: VecDeque<Pending>,
    /// Number of ops that the transport has accepted.
    outstanding: u32,
    /// Whether [`OpTable::poll_idle`] must report the end of the last op.
    watched: bool,
}

impl FlowOps {
    fn is_idle(&self) -> bool {
        self.outstanding == 0 && self.waiting.is_empty()
    }
}

/// Time at which an op's deadline passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Deadline {
    at: Time,
    ticket: u64,
    op: Place,
}

/// Location of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// In the table, at this index.
    Table(usize),
    /// In the queue of this flow.
    Queue(FlowId),
}

/// All ops of an engine, and the transport that runs them.
pub(super) struct OpTable {
    pub(super) endpoint: Endpoint,
    status: Arc<EngineStatus>,
    /// Refusals of reads of peers.
    pub(super) refusals: Refusals,
    /// Ops that the transport has accepted. The transport identifies them by their index here.
    outstanding: Slab<Outstanding>,
    /// By flow number.
    flows: Vec<FlowOps>,
    /// Each deadline belongs to an op that has not ended.
    deadlines: BTreeSet<Deadline>,
    /// Sessions with a watched flow that has become idle.
    idle: VecDeque<SessionId>,
}

impl OpTable {
    /// Returns an empty table for flows of at most `max_ops` ops. Refusals of reads are first repeated after `retry`.
    pub(super) fn new(
        endpoint: Endpoint,
        status: Arc<EngineStatus>,
        retry: Span,
        max_ops: u32,
    ) -> Self {
        Self {
            endpoint,
            status,
            refusals: Refusals::new(retry, max_ops),
            outstanding: Slab::new(),
            flows: Vec::new(),
            deadlines: BTreeSet::new(),
            idle: VecDeque::new(),
        }
    }

    /// Returns the ops of a flow. Creates the entry with the flow's first op.
    fn flow(&mut self, flow: FlowId) -> &mut FlowOps {
        if self.flows.len() <= flow.index() {
            self.flows.resize_with(flow.index() + 1, FlowOps::default);
        }
        &mut self.flows[flow.index()]
    }

    /// Accepts an op for `flow` at `now`: hands it to the transport, or queues it behind older ops.
    pub(super) fn submit(&mut self, now: Time, flow: FlowId, mut pending: Pending) {
        pending.accepted_at = now;
        let first = self.flow(flow).waiting.is_empty();
        let waits = if first { self.start(now, flow, pending) } else { Some(pending) };
        if let Some(pending) = waits {
            self.deadlines.extend(deadline(&pending, Place::Queue(flow)));
            self.flows[flow.index()].waiting.push_back(pending);
        }
    }

    /// Hands an op to the transport. Returns the op if it must be queued behind older ops.
    fn start(&mut self, now: Time, flow: FlowId, mut pending: Pending) -> Option<Pending> {
        let spanned = self.endpoint.ops_under_way(flow).unwrap_or(0);
        if spanned >= pending.connection.limits.max_ops as usize {
            return Some(pending);
        }
        let index = self.outstanding.vacant_key();
        let length = pending.buffers.len() as u64;
        let op = Op { kind: pending.kind, length, user: index as u64 };
        let op = match self.endpoint.submit(now, flow, op) {
            Ok(op) => op,
            Err(Refused::NoFlow | Refused::TooManyOps) => return None,
            Err(
                Refused::TooLong
                | Refused::AddressOverflow
                | Refused::NotAWord
                | Refused::Unaligned,
            ) => {
                self.end_unsent(pending, Cause::Unsendable);
                return None;
            }
        };
        pending.started = true;
        self.flows[flow.index()].outstanding += 1;
        self.deadlines.extend(deadline(&pending, Place::Table(index)));
        self.outstanding.insert(Outstanding { pending, flow, op, cause: None });
        None
    }

    /// Hands queued ops of a flow to the transport until the transport accepts no more.
    fn start_waiting(&mut self, now: Time, flow: FlowId) {
        while let Some(next) = self.flows[flow.index()].waiting.pop_front() {
            let deadline = deadline(&next, Place::Queue(flow));
            if let Some(waits) = self.start(now, flow, next) {
                self.flows[flow.index()].waiting.push_front(waits);
                return;
            }
            if let Some(deadline) = deadline {
                self.deadlines.remove(&deadline);
            }
        }
    }

    /// Handles a packet without data, such as an acknowledgement or a refusal. An acknowledgement that confirms a
    /// cancellation makes room for a queued op, although no op completes.
    #[inline]
    pub(super) fn handle_control(
        &mut self,
        arrival: &Arrival,
        header: &Header,
        observed: &Observed<'_>,
    ) -> Handled {
        let flow = header.flow;
        let before = self.endpoint.ops_under_way(flow);
        let handled = self.endpoint.handle_observed(arrival, header, observed);
        if self.endpoint.ops_under_way(flow) < before && !is_planted(Bug::RoomUnnoticed) {
            self.fill_room(arrival.now, flow);
        }
        handled
    }

    /// Starts queued ops of a flow that has room for more.
    #[cold] // once per op
    fn fill_room(&mut self, now: Time, flow: FlowId) {
        let next = self.flows.get(flow.index()).and_then(|ops| ops.waiting.front());
        if let Some(session) = next.map(|next| next.connection.session) {
            self.start_waiting(now, flow);
            self.report_idle(session, flow);
        }
    }

    /// Records that a flow of a session is idle, if it is idle and watched.
    #[inline]
    fn report_idle(&mut self, session: SessionId, flow: FlowId) {
        let ops = &self.flows[flow.index()];
        if ops.watched && ops.is_idle() {
            self.idle.push_back(session);
        }
    }

    /// Cancels the op of a session with this ticket. `flows` are the flows of the session. Searches the ops of one flow
    /// only.
    pub(super) fn cancel(&mut self, now: Time, flows: &[FlowId], ticket: u64) {
        let Some(&flow) = flows.get(flow_of(ticket, flows.len())) else { return };
        if self.end_waiting(flow, ticket, Cause::Cancelled) {
            return;
        }
        let wanted = |&index: &usize| {
            self.outstanding.get(index).is_some_and(|o| o.pending.ticket == ticket)
        };
        let index = self.endpoint.ops(flow).map(|op| op.user as usize).find(wanted);
        if let Some(index) = index {
            self.end_outstanding(now, index, ticket, Cause::Cancelled);
        }
    }

    /// Ends ops whose deadline has passed.
    #[inline]
    pub(super) fn handle_deadlines(&mut self, now: Time) {
        while let Some(deadline) = self.deadlines.first().copied().filter(|d| d.at <= now) {
            self.deadlines.pop_first();
            match deadline.op {
                Place::Table(index) => {
                    self.end_outstanding(now, index, deadline.ticket, Cause::Deadline);
                }
                Place::Queue(flow) => {
                    self.end_waiting(flow, deadline.ticket, Cause::Deadline);
                }
            }
        }
    }

    /// Returns when the next timer is due: of the transport, of an op or of a refusal.
    pub(super) fn next_timeout(&self) -> Time {
        let transport = self.endpoint.next_timeout().unwrap_or(Time::MAX);
        let deadline = self.deadlines.first().map_or(Time::MAX, |deadline| deadline.at);
        transport.min(deadline).min(self.refusals.next_at)
    }

    /// Ends an op that is queued for a flow. Returns `false` if it is not in this queue.
    fn end_waiting(&mut self, flow: FlowId, ticket: u64, cause: Cause) -> bool {
        let Some(ops) = self.flows.get_mut(flow.index()) else { return false };
        let at = ops.waiting.iter().position(|pending| pending.ticket == ticket);
        let Some(pending) = at.and_then(|at| ops.waiting.remove(at)) else { return false };
        if let Some(deadline) = deadline(&pending, Place::Queue(flow)) {
            self.deadlines.remove(&deadline);
        }
        let session = pending.connection.session;
        self.end_unsent(pending, cause);
        // The op may have been the last one that a close waits for.
        self.report_idle(session, flow);
        true
    }

    /// Ends an op that the transport has never accepted.
    fn end_unsent(&self, pending: Pending, cause: Cause) {
        add(&self.status.stats.ops, 1);
        pending.connection.ops.count(pending.kind, 0, false);
        pending.end(Err(OpError::NotSent(cause)));
    }

    /// Ends an op that was submitted after the end of its connection.
    #[cold]
    pub(super) fn end_ended(&self, pending: Pending) {
        if is_planted(Bug::WaitingDropped) {
            return drop(pending);
        }
        let end = pending.connection.end();
        self.end_unsent(pending, Cause::Ended(end));
    }

    /// Ends the op at `index`, if it has this ticket.
    fn end_outstanding(&mut self, now: Time, index: usize, ticket: u64, cause: Cause) {
        let op = self.outstanding.get_mut(index).filter(|op| op.pending.ticket == ticket);
        if let Some(op) = op {
            op.cause = Some(cause);
            self.endpoint.cancel(now, op.flow, op.op);
        }
    }

    /// Reports the completions of ops to their applications. Returns `true` if there were any.
    #[inline]
    pub(super) fn complete(&mut self) -> bool {
        let mut any = false;
        while let Some(completion) = self.endpoint.poll_completion() {
            any = true;
            self.on_completion(&completion);
        }
        any
    }

    fn on_completion(&mut self, completion: &Completion) {
        let index = completion.submitted.user as usize;
        let Some(op) = self.outstanding.try_remove(index) else { return };
        add(&self.status.stats.ops, 1);
        let Outstanding { pending, flow, cause, .. } = op;
        if let Some(deadline) = deadline(&pending, Place::Table(index)) {
            self.deadlines.remove(&deadline);
        }
        let connection = &pending.connection;
        let session = connection.session;
        let accepted_at = pending.accepted_at;
        let done = completion.outcome == Outcome::Done;
        connection.ops.count(pending.kind, completion.submitted.length, done);
        let cause =
            cause.unwrap_or_else(|| Cause::Ended(connection.ended().unwrap_or(End::Stopped)));
        pending.end(match completion.outcome {
            Outcome::Done => Ok(completion.completed_at.since(accepted_at)),
            Outcome::Failed => Err(OpError::NotSent(cause)),
            Outcome::Unknown => Err(OpError::Unknown(cause)),
            Outcome::Rejected(reason) => Err(refusal(reason)),
        });
        self.flows[flow.index()].outstanding -= 1;
        self.start_waiting(completion.completed_at, flow);
        self.report_idle(session, flow);
    }

    /// Returns the numbers of ops that the transport has accepted, of queued ops, of deadlines and of repeated
    /// refusals.
    #[cfg(any(test, feature = "worlds"))]
    pub(super) fn usage(&self) -> [usize; 4] {
        let waiting = self.flows.iter().map(|flow| flow.waiting.len()).sum();
        [self.outstanding.len(), waiting, self.deadlines.len(), self.refusals.len()]
    }

    /// Returns the number of ops of these flows that the transport has accepted.
    pub(super) fn outstanding(&self, flows: &[FlowId]) -> u32 {
        let ops = flows.iter().filter_map(|flow| self.flows.get(flow.index()));
        ops.map(|ops| ops.outstanding).sum()
    }

    /// Returns `true` if these flows have no op.
    pub(super) fn are_idle(&self, flows: &[FlowId]) -> bool {
        flows.iter().filter_map(|flow| self.flows.get(flow.index())).all(FlowOps::is_idle)
    }

    /// Makes [`OpTable::poll_idle`] report when these flows become idle.
    pub(super) fn watch(&mut self, flows: &[FlowId]) {
        for flow in flows {
            self.flow(*flow).watched = true;
        }
    }

    /// Returns a session with a watched flow that has become idle.
    #[inline]
    pub(super) fn poll_idle(&mut self) -> Option<SessionId> {
        self.idle.pop_front()
    }

    /// Ends all ops of flows whose connection has ended.
    pub(super) fn end_flows(&mut self, now: Time, flows: &[FlowId]) {
        for flow in flows {
            let waiting = self.flows.get_mut(flow.index()).map(|ops| take(&mut ops.waiting));
            for waits in waiting.into_iter().flatten() {
                if let Some(deadline) = deadline(&waits, Place::Queue(*flow)) {
                    self.deadlines.remove(&deadline);
                }
                self.end_ended(waits);
            }
            self.endpoint.abort(now, *flow);
        }
        self.complete();
    }

    /// Frees the numbers of flows whose ops have ended.
    pub(super) fn release_flows(&mut self, now: Time, flows: &[FlowId]) {
        if !is_planted(Bug::RefusalsStay) {
            self.refusals.on_flows_ended(flows);
        }
        for flow in flows {
            if let Some(ops) = self.flows.get_mut(flow.index()) {
                *ops = FlowOps::default();
            }
            self.endpoint.release(now, *flow);
        }
    }

    /// Ends the op of a data packet that could not be sealed. The packet was never sent, so it is not lost.
    #[cold]
    pub(super) fn on_unsealed(
        &mut self,
        now: Time,
        flow: FlowId,
        seq: PacketNumber,
        segment: &Segment,
    ) {
        self.endpoint.take_back(now, flow, seq);
        match segment.kind {
            SegmentKind::ReadResponse => {
                let source = self.endpoint.source(flow, segment);
                let reason = match source.is_some_and(|op| op.kind.is_atomic()) {
                    // The atomic op has been executed, so the peer must treat its outcome as unknown.
                    true => RejectReason::Withdrawn,
                    // The memory of the region has shrunk.
                    false => RejectReason::OutOfBounds,
                };
                self.refuse_read(now, flow, segment.op, reason)
            }
            SegmentKind::Write { .. }
            | SegmentKind::ReadRequest { .. }
            | SegmentKind::CompareAndSwap { .. }
            | SegmentKind::FetchAdd { .. }
            | SegmentKind::Message
            | SegmentKind::Cancel => {
                let index = self.index(flow, segment.op);
                if let Some(op) = index.and_then(|index| self.outstanding.get_mut(index)) {
                    op.cause = Some(Cause::Unsendable);
                    self.endpoint.cancel(now, flow, segment.op);
                }
            }
        }
    }

    /// Refuses a read of the peer that is being answered, or an atomic op that could not be executed. Repeats the
    /// refusal until the peer confirms it.
    pub(super) fn refuse_read(&mut self, now: Time, flow: FlowId, op: OpId, reason: RejectReason) {
        self.refusals.refuse(now, flow, op, reason, &mut self.endpoint);
    }

    /// Repeats refusals that may have been lost.
    #[inline]
    pub(super) fn repeat_refusals(&mut self, now: Time) {
        self.refusals.repeat(now, &mut self.endpoint);
    }

    /// Returns the index of an outstanding op.
    #[inline]
    pub(super) fn index(&self, flow: FlowId, op: OpId) -> Option<usize> {
        self.endpoint.op(flow, op).map(|op| op.user as usize)
    }

    /// Returns the target of the outstanding read or atomic op at `index`.
    #[inline]
    pub(super) fn target(&mut self, index: usize) -> Option<&mut [u8]> {
        self.outstanding.get_mut(index).map(|op| op.pending.buffers.target())
    }

    /// Returns the bytes that an outstanding op sends.
    #[inline]
    pub(super) fn payload(&self, op: &Op) -> Option<&[u8]> {
        self.outstanding.get(op.user as usize).map(|op| op.pending.buffers.payload())
    }

    /// Ends all ops as unknown after a panic. Does not use the transport, whose state may be inconsistent.
    #[cold]
    pub(super) fn fail(&mut self) {
        for (_, op) in std::mem::replace(&mut self.outstanding, Slab::new()) {
            contain(|| op.pending.end(Err(UNKNOWN)));
        }
        for pending in take(&mut self.flows).into_iter().flat_map(|ops| ops.waiting) {
            contain(|| pending.end(Err(UNKNOWN)));
        }
        self.deadlines.clear();
    }
}

fn deadline(pending: &Pending, op: Place) -> Option<Deadline> {
    Some(Deadline { at: pending.expires_at()?, ticket: pending.ticket, op })
}

fn refusal(reason: RejectReason) -> OpError {
    OpError::Refused(match reason {
        RejectReason::NoRegion => Refusal::NoRegion,
        RejectReason::NotAllowed => Refusal::NotAllowed,
        RejectReason::OutOfBounds => Refusal::OutOfBounds,
        RejectReason::TooLong => Refusal::TooLong,
        RejectReason::Withdrawn => return OpError::Unknown(Cause::Withdrawn),
    })
}
