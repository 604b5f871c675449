//! Reads of peers that were refused after their requests had been acknowledged.

use std::collections::{BTreeMap, VecDeque};

use apus_units::{FlowId, OpId, Span, Time};
use apus_wire::RejectReason;

use super::endpoint::Endpoint;

/// Maximum number of refusals that are repeated at once: as many as the transport queues.
const AT_ONCE: usize = 64;
/// Time after which the next ones are repeated. deviation: no source; the queue of the transport is sent within it.
const BETWEEN: Span = Span::from_ms(1);

struct Refusal {
    flow: FlowId,
    op: OpId,
    reason: RejectReason,
}

/// Refusals that are repeated in turn until the peer confirms them.
pub(super) struct Refusals {
    open: VecDeque<Refusal>,
    /// Number of open refusals of each flow that has any.
    counts: BTreeMap<FlowId, u32>,
    /// Maximum number of a flow. A peer has at most as many ops that have not ended, and an op that is refused ends with its
    /// confirmation. So refusals beyond it are those of a peer that does not confirm, and only its own ops wait.
    limit: u32,
    /// Number of refusals that are still to be repeated in this round.
    left: usize,
    /// When the next ones are repeated.
    pub(super) next_at: Time,
    /// Time between two rounds.
    retry: Span,
}

impl Refusals {
    /// Returns no refusals; they are repeated every `retry`. A flow may have `max_ops` ops.
    pub(super) fn new(retry: Span, max_ops: u32) -> Self {
        Self {
            open: VecDeque::new(),
            counts: BTreeMap::new(),
            limit: max_ops,
            left: 0,
            next_at: Time::MAX,
            retry,
        }
    }

    /// Returns the number of open refusals.
    #[cfg(any(test, feature = "worlds"))]
    pub(super) fn len(&self) -> usize {
        self.open.len()
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
        let count = self.counts.entry(flow).or_default();
        if *count < self.limit {
            *count += 1;
            self.open.push_back(Refusal { flow, op, reason });
            self.next_at = self.next_at.min(now + self.retry);
        }
    }

    /// Repeats refusals that may have been lost, if that is due.
    #[inline]
    pub(super) fn repeat(&mut self, now: Time, endpoint: &mut Endpoint) {
        if now < self.next_at {
            return;
        }
        if self.left == 0 {
            self.left = self.open.len();
        }
        for _ in 0..self.left.min(AT_ONCE) {
            let Some(refusal) = self.open.pop_front() else { break };
            let Refusal { flow, op, reason } = refusal;
            endpoint.refuse_answer(now, flow, op, reason);
            self.open.push_back(refusal);
        }
        self.left = self.left.saturating_sub(AT_ONCE);
        self.next_at = match self.left {
            _ if self.open.is_empty() => Time::MAX,
            0 => now + self.retry,
            _ => now + BETWEEN,
        };
    }

    /// Forgets the refusal of a read that the peer has given up, which confirms it.
    pub(super) fn on_cancelled(&mut self, flow: FlowId, op: OpId) {
        if self.counts.contains_key(&flow) {
            self.retain(|refusal| (refusal.flow, refusal.op) != (flow, op));
        }
    }

    /// Forgets the refusals of flows that have ended.
    pub(super) fn on_flows_ended(&mut self, flows: &[FlowId]) {
        self.retain(|refusal| !flows.contains(&refusal.flow));
    }

    fn retain(&mut self, keep: impl Fn(&Refusal) -> bool) {
        let counts = &mut self.counts;
        self.open.retain(|refusal| {
            let keeps = keep(refusal);
            if !keeps && let Some(count) = counts.get_mut(&refusal.flow) {
                *count -= 1;
            }
            keeps
        });
        self.counts.retain(|_, count| *count > 0);
        self.left = self.left.min(self.open.len());
    }
}
