//! Ops that end early: cancelled, refused by the peer, or ended with their flow.

use alloc::boxed::Box;

use apus_units::planted::{Bug, is_planted};
use apus_units::{OpId, Time};
use apus_wire::RegionKey;

use super::{Fate, Range, Rare, SendSide};
use crate::op::{Op, OpKind};
use crate::streams::{Finished, Lane, Stream, Streams};

/// Maximum number of refusals of ended ops that are being confirmed at the same time. deviation: no
/// source; as many as the peer repeats at once over UDP.
const MAX_CONFIRMING: usize = 64;

impl SendSide {
    /// Ends every op. Calls `end` with each op and whether any of its packets was ever sent.
    pub(crate) fn abort(&mut self, mut end: impl FnMut(Finished, bool)) {
        for stream in self.ops.queue.iter().filter(|s| s.is_live()) {
            end(stream.finished(), was_sent(stream));
        }
        let first_pn = self.next_seq().get();
        let next_op = self.ops.next();
        let ops = Streams { first: next_op, cursor: next_op, ..Streams::default() };
        let counts = |rare: Box<Rare>| {
            let Rare { fast_losses, timeout_losses, timeouts, trims, .. } = *rare;
            Box::new(Rare { fast_losses, timeout_losses, timeouts, trims, ..Rare::default() })
        };
        let rare = self.rare.take().map(counts);
        *self = Self { ops, rare, first_pn, ..Self::default() };
    }

    /// Cancels op `id`: no more of its bytes are sent, and the peer is informed. Returns the op and
    /// whether any of its packets was ever sent; `None` if it has ended.
    pub(crate) fn cancel(&mut self, now: Time, id: OpId) -> Option<(Finished, bool)> {
        let number = id.get(); // the number of an op is that of its stream
        let stream = self.ops.get(number).filter(|s| s.is_live())?;
        let ended = (stream.finished(), was_sent(stream));
        self.await_answer(now);
        let stream = self.ops.get_mut(number)?;
        stream.cancelled = true;
        self.pending -= stream.skip_unsent();
        if stream.op.kind.is_answered() {
            self.rare().answers_waiting -= 1;
            self.settle_request(number);
        }
        self.ops.skip_sent();
        self.forget_ranges(Lane::Ops, number);
        let cancel = Range { request: true, cancel: true, stream: number, ..Range::default() };
        self.rare().requests.push_back(cancel);
        Some(ended)
    }

    /// Queues the cancellation of op `id`, which has ended here and which the peer refuses. Returns
    /// `false` if the cancellation is already queued or in flight, or if too many are: the peer
    /// will then refuse the op again.
    pub(crate) fn confirm_refusal(&mut self, id: OpId) -> bool {
        let number = id.get();
        let is_cancelled = self.ops.get(number).is_some_and(|stream| stream.cancelled);
        if number >= self.ops.next() || is_cancelled {
            return false;
        }
        let rare = self.rare();
        if rare.confirming.len() >= MAX_CONFIRMING || rare.confirming.contains(&number) {
            return false;
        }
        rare.confirming.push_back(number);
        let cancel = Range { request: true, cancel: true, stream: number, ..Range::default() };
        rare.requests.push_back(cancel);
        true
    }

    /// Records that the cancellation of op `number` was acknowledged or lost.
    #[cold]
    pub(super) fn end_confirming(&mut self, number: u64) {
        if let Some(rare) = &mut self.rare {
            rare.confirming.retain(|&other| other != number);
        }
    }

    /// Drops the answer to the peer's op `id`, even one that the caller has not given yet. Returns
    /// `false` if no unacknowledged answer to that op exists.
    pub(crate) fn drop_response(&mut self, id: OpId) -> bool {
        if self.take_unanswered_read(id) {
            return true;
        }
        let Some(responses) = self.rare.as_mut().map(|rare| &mut rare.responses) else {
            return false;
        };
        let under_way = |s: &Stream| s.id == id && !s.done;
        let Some(index) = responses.queue.iter().position(under_way) else { return false };
        let number = responses.first + index as u64;
        let Some(stream) = responses.get_mut(number) else { return false };
        stream.done = true;
        self.pending -= stream.skip_unsent();
        responses.skip_sent();
        responses.drop_done();
        self.forget_ranges(Lane::Responses, number);
        true
    }

    /// Returns the peer's reads whose answers are not yet acknowledged, with their regions.
    pub(crate) fn answers(&self) -> impl Iterator<Item = (OpId, RegionKey)> + '_ {
        let responses = self.rare.iter().flat_map(|rare| rare.responses.queue.iter());
        responses.filter(|stream| !stream.done).filter_map(|stream| match stream.op.kind {
            OpKind::Read { region, .. } => Some((stream.id, region)),
            _ => None,
        })
    }

    /// Withdraws transmission `seq`, which never left; it counts as settled.
    pub(crate) fn take_back(&mut self, seq: u64) {
        let Some(record) = self.record(seq).filter(|r| r.fate == Fate::InFlight) else { return };
        record.fate = Fate::Acked;
        let range = record.range;
        self.leave_flight(range);
    }

    /// Removes the ranges of a stream that are queued for retransmission.
    fn forget_ranges(&mut self, lane: Lane, number: u64) {
        if let Some(rare) = &mut self.rare {
            rare.retransmit.retain(|r| r.lane != lane || r.stream != number);
        }
    }

    /// Returns the op `id` as submitted here, while it is outstanding.
    pub(crate) fn op(&self, id: OpId) -> Option<&Op> {
        self.ops.get(id.get()).filter(|s| s.is_live()).map(|s| &s.op)
    }

    /// Returns the outstanding ops that were submitted here.
    pub(crate) fn ops(&self) -> impl Iterator<Item = &Op> + '_ {
        self.ops.queue.iter().filter(|stream| stream.is_live()).map(|stream| &stream.op)
    }

    /// Returns the peer's op `id`, while its answer is outstanding.
    pub(crate) fn response(&self, id: OpId) -> Option<&Op> {
        // The stream is mostly the one at the cursor, or the one before it.
        let responses = &self.rare.as_ref()?.responses;
        let near = responses.cursor;
        let close = [near, near.wrapping_sub(1)]
            .into_iter()
            .find_map(|number| responses.get(number).filter(|s| s.id == id));
        let wanted = |s: &&Stream| s.id == id || is_planted(Bug::OldestAnswer);
        close.or_else(|| responses.queue.iter().find(wanted)).map(|s| &s.op)
    }

    /// Corrects the departure time of packet `seq`, if a better time is known.
    pub(crate) fn correct_sent_at(&mut self, seq: u64, at: Time) {
        if let Some(record) = self.record(seq) {
            record.sent_at = at;
        }
    }
}

/// Returns `true` if any part of an op was ever put into a packet, even one that was declared lost.
fn was_sent(stream: &Stream) -> bool {
    if is_planted(Bug::FalseNotSent) && stream.op.kind.is_atomic() {
        return false;
    }
    if is_planted(Bug::FalseNotSentWrite) && matches!(stream.op.kind, OpKind::Write { .. }) {
        return stream.settled > 0;
    }
    if stream.op.kind.is_answered() { stream.requested } else { stream.started }
}
