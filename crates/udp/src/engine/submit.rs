//! From applications: ops, cancellations, and how ops end.

use apus_transport::{Completion, Op, Outcome, SubmitError as Refused};
use apus_units::Time;
use apus_wire::RejectReason;

use super::{Command, Engine, OpEntry, SUBMISSIONS};
use crate::error::{Cause, End, OpError, Refusal};
use crate::ops::{DeadlineOf, Pending};
use crate::session::SessionId;
use crate::stats::add;

impl Engine {
    /// Takes what applications have asked for; returns the time then, if there was anything.
    pub(super) fn take_submissions(&mut self) -> Option<Time> {
        if !self.shared.has_commands() {
            return None;
        }
        let (rare, ring) = self.shared.waiting();
        let now = self.clock.now();
        // A connection closes after the ops that were submitted before.
        let most = if rare == 0 { ring.min(SUBMISSIONS) } else { ring };
        for _ in 0..most {
            let Some(command) = self.shared.take() else { break };
            self.on_command(now, command);
        }
        for _ in 0..rare {
            let Some(command) = self.shared.take_rare() else { break };
            self.on_command(now, command);
        }
        // A single op took no time to speak of.
        Some(if most > 1 || rare > 0 { self.clock.now() } else { now })
    }

    fn on_command(&mut self, now: Time, command: Command) {
        match command {
            Command::Op(pending) => self.on_op(now, pending),
            Command::Cancel { session, ticket } => self.on_cancel(now, session, ticket),
            Command::Connect { peer, classes, key, reply } => {
                self.on_connect(now, peer, classes, key, reply);
            }
            Command::Keys(keys) => self.on_keys(now, keys),
            Command::Elsewhere { peer, engine } => self.on_elsewhere(now, peer, engine),
            Command::Close { session, closed } => self.on_close(now, session, closed),
            Command::Inspect { session, flow, reply } => {
                let connection = self.connections.get(session.index());
                let flow = connection
                    .filter(|connection| connection.session == session)
                    .and_then(|connection| connection.flows.get(flow));
                let state = flow.and_then(|&flow| {
                    self.endpoint.snapshot(flow).zip(self.endpoint.counters(flow))
                });
                if let Some(state) = state {
                    // Nobody may be waiting any more.
                    let _ = reply.send(state);
                }
            }
        }
    }

    fn on_op(&mut self, now: Time, mut pending: Pending) {
        pending.taken = now;
        let session = pending.shared.session;
        let Some(connection) = self.connections.get_mut(session.index()) else {
            return; // it has ended; dropping the op says so
        };
        if connection.session != session {
            return;
        }
        let first = connection.waiting[pending.flow].is_empty();
        let waits = if first { self.start(now, pending) } else { Some(pending) };
        let Some(pending) = waits else { return };
        self.deadlines.extend(pending.waiting_deadline());
        if let Some(connection) = self.connections.get_mut(session.index()) {
            connection.waiting[pending.flow].push_back(pending);
        }
    }

    /// Hands an op to the transport; gives it back if it has to wait for older ones.
    fn start(&mut self, now: Time, mut pending: Pending) -> Option<Pending> {
        let connection = self.connections.get_mut(pending.shared.session.index())?;
        let flow = connection.flows[pending.flow];
        let spanned = self.endpoint.ops_under_way(flow).unwrap_or(0);
        if spanned >= pending.shared.max_ops as usize {
            return Some(pending);
        }
        let place = self.ops.vacant_key();
        let length = pending.buffers.len() as u64;
        let op = Op { kind: pending.kind, length, user: place as u64 };
        let op = match self.endpoint.submit(now, flow, op) {
            Ok(op) => op,
            Err(Refused::NoFlow | Refused::TooManyOps) => return None,
            Err(Refused::TooLong | Refused::AddressOverflow) => {
                pending.end(Err(OpError::NotSent(Cause::Unsendable)));
                return None;
            }
        };
        pending.started = true;
        connection.under_way += 1;
        // While ops are under way, their path is watched.
        self.next_probe = self.next_probe.min(now + self.config.session.retry);
        self.deadlines.extend(pending.deadline_at(place));
        self.ops.insert(OpEntry { pending, flow, op, cause: None });
        None
    }

    /// Hands the ops to the transport that waited and need not any more.
    fn start_waiting(&mut self, now: Time, session: SessionId, flow: usize) {
        while let Some(connection) = self.connections.get_mut(session.index()) {
            let Some(next) = connection.waiting[flow].pop_front() else { return };
            let timed = next.waiting_deadline();
            match self.start(now, next) {
                None => {
                    if let Some(deadline) = timed {
                        self.deadlines.remove(&deadline);
                    }
                }
                Some(waits) => {
                    if let Some(connection) = self.connections.get_mut(session.index()) {
                        connection.waiting[flow].push_front(waits);
                    }
                    return;
                }
            }
        }
    }

    /// Gives up ops whose deadline has passed.
    pub(super) fn end_late_ops(&mut self, now: Time) {
        while let Some(deadline) = self.deadlines.first().copied().filter(|d| d.at <= now) {
            self.deadlines.pop_first();
            match deadline.of {
                DeadlineOf::UnderWay(place) => {
                    self.end_op(now, place, deadline.ticket, Cause::Deadline);
                }
                DeadlineOf::Waiting(session, flow) => {
                    self.end_waiting(session, flow, deadline.ticket, Cause::Deadline);
                }
            }
        }
    }

    /// Ends an op that waits in this queue; false if it does not.
    fn end_waiting(&mut self, session: SessionId, flow: usize, ticket: u64, why: Cause) -> bool {
        let connection = self.connections.get_mut(session.index());
        let Some(connection) = connection.filter(|c| c.session == session) else { return false };
        let queue = &mut connection.waiting[flow];
        let at = queue.iter().position(|pending| pending.ticket == ticket);
        let Some(pending) = at.and_then(|at| queue.remove(at)) else { return false };
        if let Some(deadline) = pending.waiting_deadline() {
            self.deadlines.remove(&deadline);
        }
        pending.end(Err(OpError::NotSent(why)));
        true
    }

    fn on_cancel(&mut self, now: Time, session: SessionId, ticket: u64) {
        let flows = self.connections.get(session.index()).map_or(0, |c| c.flows.len());
        if (0..flows).any(|flow| self.end_waiting(session, flow, ticket, Cause::Cancelled)) {
            return;
        }
        let mine = |entry: &OpEntry| {
            entry.pending.shared.session == session && entry.pending.ticket == ticket
        };
        let place = self.ops.iter().find_map(|(place, entry)| mine(entry).then_some(place));
        if let Some(place) = place {
            self.end_op(now, place, ticket, Cause::Cancelled);
        }
    }

    /// Ends the op at `place`, if it is still the one with that ticket.
    pub(super) fn end_op(&mut self, now: Time, place: usize, ticket: u64, cause: Cause) {
        let Some(entry) = self.ops.get_mut(place).filter(|e| e.pending.ticket == ticket) else {
            return;
        };
        entry.cause = Some(cause);
        self.endpoint.cancel(now, entry.flow, entry.op);
    }

    pub(super) fn on_completion(&mut self, completion: &Completion) {
        let Some(entry) = self.ops.try_remove(completion.submitted.user as usize) else { return };
        add(&self.shared.stats.ops, 1);
        let OpEntry { pending, cause, .. } = entry;
        if let Some(deadline) = pending.deadline_at(completion.submitted.user as usize) {
            self.deadlines.remove(&deadline);
        }
        let session = pending.shared.session;
        let (flow, taken) = (pending.flow, pending.taken);
        let cause = cause.unwrap_or_else(|| {
            Cause::Ended(pending.shared.ended.get().copied().unwrap_or(End::Stopped))
        });
        pending.end(match completion.outcome {
            Outcome::Done => Ok(completion.completed_at.since(taken)),
            Outcome::Failed => Err(OpError::NotSent(cause)),
            Outcome::Unknown => Err(OpError::Unknown(cause)),
            Outcome::Rejected(reason) => Err(refusal(reason)),
        });
        let now = completion.completed_at;
        if let Some(connection) = self.connections.get_mut(session.index())
            && connection.session == session
        {
            connection.under_way -= 1;
            self.start_waiting(now, session, flow);
            self.close_if_idle(now, session);
        }
    }
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
