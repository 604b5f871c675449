//! Reads of peers that were refused after their requests had been acknowledged.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;

use apus_units::{FlowId, OpId, Span, Time};
use apus_wire::RejectReason;

use super::endpoint::Endpoint;

/// Maximum number of refusals that are repeated at once: as many as the transport queues.
const AT_ONCE: usize = 64;
/// Time after which the next ones are repeated. deviation: no source; the queue of the transport is sent within it.
const BETWEEN: Span = Span::from_ms(1);

/// Refusals that are repeated in turn until the peer confirms them.
pub(super) struct Refusals {
    /// Open refusals by flow and op, so that the packets of one peer cost nothing for those of others.
    open: BTreeMap<(FlowId, OpId), RejectReason>,
    /// Maximum number of a flow. A peer has at most as many ops that have not ended, and an op that is refused ends with its
    /// confirmation. So refusals beyond it are those of a peer that does not confirm, and only its own ops wait.
    limit: u32,
    /// Number of open refusals of each flow that has any.
    counts: BTreeMap<FlowId, u32>,
    /// The refusal that was repeated last, and the last one of the round, which has not ended.
    round: Option<[(FlowId, OpId); 2]>,
    /// When the next ones are repeated.
    pub(super) next_at: Time,
    /// Time between two rounds.
    retry: Span,
}

impl Refusals {
    /// Returns no refusals; they are repeated every `retry`. A flow may have `max_ops` ops.
    pub(super) fn new(retry: Span, max_ops: u32) -> Self {
        Self {
            open: BTreeMap::new(),
            limit: max_ops,
            counts: BTreeMap::new(),
            round: None,
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
        let count = self.counts.get(&flow).copied().unwrap_or(0);
        if count < self.limit && self.open.insert((flow, op), reason).is_none() {
            self.counts.insert(flow, count + 1);
            self.next_at = self.next_at.min(now + self.retry);
        }
    }

    /// Repeats refusals that may have been lost, if that is due.
    #[inline]
    pub(super) fn repeat(&mut self, now: Time, endpoint: &mut Endpoint) {
        if now < self.next_at {
            return;
        }
        // Those that come meanwhile belong to the next round, which therefore comes.
        let end = self.open.last_key_value().map(|(key, _)| *key);
        let (after, until) = match (self.round.take(), end) {
            (Some([last, until]), _) => (Bound::Excluded(last), until),
            (None, Some(end)) => (Bound::Unbounded, end),
            (None, None) => return self.next_at = Time::MAX,
        };
        let mut next = self.open.range((after, Bound::Included(until)));
        for (&(flow, op), &reason) in next.by_ref().take(AT_ONCE) {
            endpoint.refuse_answer(now, flow, op, reason);
            self.round = Some([(flow, op), until]);
        }
        if next.next().is_some() {
            self.next_at = now + BETWEEN;
            return;
        }
        self.round = None;
        self.next_at = if self.open.is_empty() { Time::MAX } else { now + self.retry };
    }

    /// Forgets the refusal of a read that the peer has given up, which confirms it.
    pub(super) fn on_cancelled(&mut self, flow: FlowId, op: OpId) {
        if self.open.remove(&(flow, op)).is_some()
            && let Entry::Occupied(mut count) = self.counts.entry(flow)
        {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }

    /// Forgets the refusals of flows that have ended.
    pub(super) fn on_flows_ended(&mut self, flows: &[FlowId]) {
        for &flow in flows {
            if self.counts.remove(&flow).is_some() {
                let of_flow = self.open.range((flow, OpId::new(0))..=(flow, OpId::new(u64::MAX)));
                let ops: Vec<_> = of_flow.map(|(key, _)| *key).collect();
                for key in ops {
                    self.open.remove(&key);
                }
            }
        }
    }
}
