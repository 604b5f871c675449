//! Packets that cannot be built, and reads of peers that cannot be answered.

use apus_units::{FlowId, OpId, PacketNumber, Time};
use apus_wire::{RejectReason, Segment, SegmentKind};

use super::Engine;
use crate::error::Cause;

/// Refusals that are repeated at a time, at most. deviation: no source; a peer whose reads are refused can
/// ask for more, and each costs 32 bytes until the peer confirms it.
const MAX_REFUSALS: usize = 1024;

/// A read of the peer that was refused after its request was acknowledged.
pub(super) struct Refusal {
    flow: FlowId,
    op: OpId,
    reason: RejectReason,
}

/// Refusals that are repeated until the peer confirms them.
pub(super) struct Refusals {
    open: Vec<Refusal>,
    /// When they are repeated.
    pub(super) next: Time,
}

impl Refusals {
    pub(super) fn new() -> Self {
        Self { open: Vec::new(), next: Time::MAX }
    }

    /// The peer has given up the read, or the flow has ended.
    pub(super) fn forget(&mut self, over: impl Fn(FlowId, OpId) -> bool) {
        self.open.retain(|refusal| !over(refusal.flow, refusal.op));
    }
}

impl Engine {
    /// Ends the op of a data packet that could not be built. The packet never left: it is not lost.
    #[cold]
    pub(super) fn on_unsendable(
        &mut self,
        now: Time,
        flow: FlowId,
        seq: PacketNumber,
        segment: &Segment,
    ) {
        self.endpoint.take_back(now, flow, seq);
        match segment.kind {
            // The memory of the region is shorter than it was.
            SegmentKind::ReadResponse => {
                self.refuse_read(now, flow, segment.op, RejectReason::OutOfBounds);
            }
            SegmentKind::Write { .. }
            | SegmentKind::ReadRequest { .. }
            | SegmentKind::Message
            | SegmentKind::Cancel => {
                let op = self.endpoint.op(flow, segment.op).copied();
                if let Some(entry) = op.and_then(|op| self.ops.get_mut(op.user as usize)) {
                    entry.cause = Some(Cause::Unsendable);
                    self.endpoint.cancel(now, flow, segment.op);
                }
            }
        }
    }

    /// Refuses a read of the peer's that is being answered, until the peer confirms it.
    pub(super) fn refuse_read(&mut self, now: Time, flow: FlowId, op: OpId, reason: RejectReason) {
        self.endpoint.refuse_answer(now, flow, op, reason);
        if self.refusals.open.len() < MAX_REFUSALS {
            self.refusals.open.push(Refusal { flow, op, reason });
            self.refusals.next = self.refusals.next.min(now + self.config.session.retry);
        }
    }

    /// Repeats refusals that may have been lost.
    pub(super) fn repeat_refusals(&mut self, now: Time) {
        if now < self.refusals.next {
            return;
        }
        for &Refusal { flow, op, reason } in &self.refusals.open {
            self.endpoint.refuse_answer(now, flow, op, reason);
        }
        let again = now + self.config.session.retry;
        self.refusals.next = if self.refusals.open.is_empty() { Time::MAX } else { again };
    }

    /// Gives up answers to reads of regions that were revoked.
    pub(super) fn refuse_revoked(&mut self, now: Time) {
        for key in self.regions.revoked() {
            let answers: Vec<_> = self.endpoint.answers_of(key).collect();
            for (flow, op) in answers {
                self.refuse_read(now, flow, op, RejectReason::Withdrawn);
            }
        }
    }
}
