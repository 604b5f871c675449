//! Refusals of reads of peers whose requests had been acknowledged before.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use apus_units::{FlowId, OpId, Span, Time};
use apus_wire::RejectReason;

use super::endpoint::Endpoint;

/// Maximum number of refusals that are repeated at once, and of flows that become due at once. deviation: no source; a
/// quarter of the transport's queue.
const AT_ONCE: usize = 64;
/// Time before further refusals are repeated. deviation: no source; the transport sends its queue within this time.
const BETWEEN: Span = Span::from_ms(1);
/// Number of times that the interval between repetitions of a refusal doubles. deviation: no source; a peer that was
/// unreachable for long receives its refusals after at most 1.6 s with the default `retry`, and a peer that never
/// confirms costs little.
const MAX_DOUBLINGS: u32 = 4;

/// Refusals that are repeated until the peer confirms them. Flows take turns with one refusal each, so that the
/// refusals of one flow delay another flow by one turn only.
pub(super) struct Refusals {
    /// Flows with open refusals.
    flows: BTreeMap<FlowId, OfFlow>,
    /// Maximum number of open refusals of a flow. A peer has at most this number of ops that have not ended, and a
    /// refused op ends with the confirmation of its refusal. Only a peer that does not confirm reaches the limit, and
    /// it delays only its own ops.
    limit: usize,
    /// Time at which the first refusal of a flow is due, for flows that are not in `turns`. The flow may have no
    /// refusal any more by then.
    due: BTreeSet<(Time, FlowId)>,
    /// Flows with due refusals, in the order of their turns.
    turns: VecDeque<FlowId>,
    /// When the next refusals are repeated.
    pub(super) next_at: Time,
    /// Time between a refusal and its first repetition.
    retry: Span,
}

/// The open refusals of a flow. They may be empty until the entry is visited next.
#[derive(Default)]
struct OfFlow {
    open: BTreeMap<OpId, Refusal>,
    /// Time at which each refusal is repeated.
    due: BTreeSet<(Time, OpId)>,
    /// Time under which the flow is listed in [`Refusals::due`]; `None` if the flow is in [`Refusals::turns`].
    waits_until: Option<Time>,
}

/// A refusal that the peer has not confirmed.
struct Refusal {
    reason: RejectReason,
    at: Time,
    /// Number of times that the refusal was sent. Counts only up to [`MAX_DOUBLINGS`], because the interval depends on
    /// no more.
    sent: u32,
}

impl Refusals {
    /// Returns an empty set of refusals. Each refusal is first repeated after `retry`, then at growing intervals. A
    /// flow may have `max_ops` ops.
    pub(super) fn new(retry: Span, max_ops: u32) -> Self {
        Self {
            flows: BTreeMap::new(),
            limit: max_ops as usize,
            due: BTreeSet::new(),
            turns: VecDeque::new(),
            next_at: Time::MAX,
            retry,
        }
    }

    /// Returns the number of open refusals.
    #[cfg(any(test, feature = "worlds"))]
    pub(super) fn len(&self) -> usize {
        self.flows.values().map(|of_flow| of_flow.open.len()).sum()
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
        let queued = endpoint.refuse_answer(now, flow, op, reason);
        let is_new = !self.flows.contains_key(&flow);
        let of_flow = self.flows.entry(flow).or_default();
        if of_flow.open.contains_key(&op) || of_flow.open.len() >= self.limit {
            return;
        }
        let at = now + if queued { self.retry } else { BETWEEN };
        of_flow.open.insert(op, Refusal { reason, at, sent: u32::from(queued) });
        of_flow.due.insert((at, op));
        let before = of_flow.waits_until;
        if is_new || before.is_some_and(|before| at < before) {
            of_flow.waits_until = Some(at);
            self.due.extend([(at, flow)]);
            if let Some(before) = before {
                self.due.remove(&(before, flow));
            }
        }
        self.next_at = self.next_at.min(at);
    }

    /// Repeats the due refusals, which may have been lost.
    #[inline]
    pub(super) fn repeat(&mut self, now: Time, endpoint: &mut Endpoint) {
        if now >= self.next_at {
            self.repeat_due(now, endpoint);
        }
    }

    #[cold]
    fn repeat_due(&mut self, now: Time, endpoint: &mut Endpoint) {
        for _ in 0..AT_ONCE {
            let Some(&(_, flow)) = self.due.first().filter(|(at, _)| *at <= now) else { break };
            self.due.pop_first();
            if let Some(of_flow) = self.flows.get_mut(&flow) {
                of_flow.waits_until = None;
                self.turns.push_back(flow);
            }
        }
        for _ in 0..AT_ONCE {
            let Some(flow) = self.turns.pop_front() else { break };
            let Some(of_flow) = self.flows.get_mut(&flow) else { continue };
            match of_flow.repeat_first(now, self.retry, |op, reason| {
                endpoint.refuse_answer(now, flow, op, reason)
            }) {
                Some(at) if at <= now => self.turns.push_back(flow),
                Some(at) => {
                    of_flow.waits_until = Some(at);
                    self.due.insert((at, flow));
                }
                None => {
                    self.flows.remove(&flow);
                }
            }
        }
        let first = self.due.first().map_or(Time::MAX, |&(at, _)| at);
        let soon = now + BETWEEN;
        self.next_at = if self.turns.is_empty() { first.max(soon) } else { soon };
    }

    /// Removes the refusal of a read that the peer has cancelled: the cancellation confirms the refusal.
    pub(super) fn on_cancelled(&mut self, flow: FlowId, op: OpId) {
        let Some(of_flow) = self.flows.get_mut(&flow) else { return };
        if let Some(refusal) = of_flow.open.remove(&op) {
            of_flow.due.remove(&(refusal.at, op));
        }
    }

    /// Removes the refusals of flows that have ended.
    pub(super) fn on_flows_ended(&mut self, flows: &[FlowId]) {
        let mut had_turn = false;
        for flow in flows {
            match self.flows.remove(flow).map(|of_flow| of_flow.waits_until) {
                Some(Some(at)) => {
                    self.due.remove(&(at, *flow));
                }
                Some(None) => had_turn = true,
                None => {}
            }
        }
        if had_turn {
            self.turns.retain(|flow| self.flows.contains_key(flow));
        }
    }
}

impl OfFlow {
    /// Repeats the earliest refusal if it is due at `now`. `refuse` returns `false` if it has no room. Returns when the
    /// next refusal is due; `None` if there is none.
    fn repeat_first(
        &mut self,
        now: Time,
        retry: Span,
        refuse: impl FnOnce(OpId, RejectReason) -> bool,
    ) -> Option<Time> {
        let &(at, op) = self.due.first()?;
        if at <= now
            && let Some(refusal) = self.open.get_mut(&op)
            && refuse(op, refusal.reason)
        {
            self.due.remove(&(at, op));
            let wait = retry.as_ps().saturating_mul(1 << refusal.sent);
            refusal.sent = MAX_DOUBLINGS.min(refusal.sent + 1);
            refusal.at = now + Span::from_ps(wait);
            self.due.insert((refusal.at, op));
        }
        self.due.first().map(|&(at, _)| at)
    }
}
