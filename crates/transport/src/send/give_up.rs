//! Ops that end before their time: cancelled, refused by the peer, or with their flow.

use apus_units::{OpId, Time};
use apus_wire::RegionKey;

use super::{Range, SendSide};
use crate::op::{Op, OpKind};
use crate::streams::{Finished, Lane, Stream};

impl SendSide {
    /// Ends every op: calls `end` with each and whether anything of it was ever sent.
    pub(crate) fn abort(&mut self, mut end: impl FnMut(Finished, bool)) {
        for stream in self.ops.queue.iter().filter(|s| s.is_live()) {
            end(stream.finished(), self.was_sent(stream));
        }
        let first_pn = self.next_seq().get();
        *self = Self { next_op: self.next_op, first_pn, loss_floor: first_pn, ..Self::new() };
    }

    /// Whether anything of an op was ever handed to a packet.
    fn was_sent(&self, stream: &Stream) -> bool {
        match stream.op.kind {
            OpKind::Read { .. } => !self.requests.iter().any(|r| r.stream == stream.id.get()),
            _ => stream.started,
        }
    }

    /// Gives up op `id`: nothing of it is sent any more, and the peer is told. Returns it and whether
    /// anything of it was ever sent; `None` if it has ended.
    pub(crate) fn cancel(&mut self, now: Time, id: OpId) -> Option<(Finished, bool)> {
        let number = id.get(); // ops are numbered as their streams are
        let stream = self.ops.get(number).filter(|s| s.is_live())?;
        let ended = (stream.finished(), self.was_sent(stream));
        self.await_answer(now);
        let stream = self.ops.get_mut(number)?;
        stream.cancelled = true;
        self.pending -= stream.skip_unsent();
        if matches!(stream.op.kind, OpKind::Read { .. }) {
            self.reads_waiting -= 1;
            self.settle_request(number);
        }
        self.ops.skip_sent();
        self.forget_ranges(Lane::Ops, number);
        let (lane, stream) = (Lane::Ops, number);
        let cancel = Range { lane, request: true, cancel: true, length: 0, stream, offset: 0 };
        self.requests.push_back(cancel);
        Some(ended)
    }

    /// Gives up the answer to the peer's read `id`, if it is not yet acknowledged.
    pub(crate) fn drop_response(&mut self, id: OpId) {
        let queue = &mut self.responses.queue;
        let Some(index) = queue.iter().position(|s| s.id == id && !s.done) else { return };
        let stream = &mut queue[index];
        stream.done = true;
        self.pending -= stream.skip_unsent();
        let number = self.responses.first + index as u64;
        self.responses.skip_sent();
        self.responses.drop_done();
        self.forget_ranges(Lane::Responses, number);
    }

    /// Whether an answer to a read of `region` is under way.
    pub(crate) fn answers_from(&self, region: RegionKey) -> bool {
        self.responses.queue.iter().any(|stream| {
            matches!(stream.op.kind, OpKind::Read { region: other, .. } if other == region)
        })
    }

    /// Takes back what waits to be sent again.
    fn forget_ranges(&mut self, lane: Lane, number: u64) {
        self.retransmit.retain(|r| r.lane != lane || r.stream != number);
    }

    /// The op `id` as submitted here, while it is under way.
    pub(crate) fn op(&self, id: OpId) -> Option<&Op> {
        self.ops.get(id.get()).filter(|s| s.is_live()).map(|s| &s.op)
    }

    /// The peer's read `id`, while its answer is under way.
    pub(crate) fn response(&self, id: OpId) -> Option<&Op> {
        // What is sent is mostly at the cursor, or the stream just before it.
        let near = self.responses.cursor;
        let close = [near, near.wrapping_sub(1)]
            .into_iter()
            .find_map(|number| self.responses.get(number).filter(|s| s.id == id));
        close.or_else(|| self.responses.queue.iter().find(|s| s.id == id)).map(|s| &s.op)
    }

    /// When the packet `seq` really left, if that is known better than `sent_at` was.
    pub(crate) fn correct_sent_at(&mut self, seq: u64, at: Time) {
        if let Some(record) = self.record(seq) {
            record.sent_at = at;
        }
    }
}
