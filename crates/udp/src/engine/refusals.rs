//! Reads of peers that were refused after their requests had been acknowledged.

use apus_units::{FlowId, OpId, Span, Time};
use apus_wire::RejectReason;

use super::endpoint::Endpoint;

/// Maximum number of refusals that are repeated at a time. deviation: no source; a peer whose reads are refused can
/// request more reads, and each refusal costs 32 bytes until the peer confirms it.
const MAX_REFUSALS: usize = 1024;

struct Refusal {
    flow: FlowId,
    op: OpId,
    reason: RejectReason,
}

/// Refusals that are repeated until the peer confirms them.
pub(super) struct Refusals {
    open: Vec<Refusal>,
    /// When they are repeated.
    pub(super) next_at: Time,
    retry: Span,
}

impl Refusals {
    /// Returns no refusals; they are repeated every `retry`.
    pub(super) fn new(retry: Span) -> Self {
        Self { open: Vec::new(), next_at: Time::MAX, retry }
    }

    /// Refuses a read that is being answered.
    pub(super) fn refuse(
        &mut self,
        now: Time,
        flow: FlowId,
        op: OpId,
        reason: RejectReason,
        endpoint: &mut Endpoint,
    ) {
        endpoint.refuse_answer(now, flow, op, reason);
        if self.open.len() < MAX_REFUSALS {
            self.open.push(Refusal { flow, op, reason });
            self.next_at = self.next_at.min(now + self.retry);
        }
    }

    /// Repeats refusals that may have been lost, if that is due.
    #[inline]
    pub(super) fn repeat(&mut self, now: Time, endpoint: &mut Endpoint) {
        if now < self.next_at {
            return;
        }
        for &Refusal { flow, op, reason } in &self.open {
            endpoint.refuse_answer(now, flow, op, reason);
        }
        self.next_at = if self.open.is_empty() { Time::MAX } else { now + self.retry };
    }

    /// Forgets the refusal of a read that the peer has given up, which confirms it.
    pub(super) fn on_cancelled(&mut self, flow: FlowId, op: OpId) {
        self.open.retain(|refusal| (refusal.flow, refusal.op) != (flow, op));
    }

    /// Forgets the refusals of flows that have ended.
    pub(super) fn on_flows_ended(&mut self, flows: &[FlowId]) {
        self.open.retain(|refusal| !flows.contains(&refusal.flow));
    }
}
