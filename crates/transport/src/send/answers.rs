//! Answers to reads and atomic ops, at the side that submitted them.

use apus_units::{OpId, Time};
use apus_wire::Segment;

use super::{Fate, SendSide, Sent};
use crate::streams::Finished;

/// Highest position that limits the gaps of an answer. All ops at or behind it have room for 64
/// gaps each, which is 1 MiB for 1024 ops. deviation: no source; an answer may arrive before
/// answers to older ops, so the position of an op says little.
const MAX_PLACE: usize = 15;

impl SendSide {
    /// Returns `true` if `segment` is an answer that the peer may send: it answers a read or atomic
    /// op of this side, has the length of that op, and opens no more gaps than allowed. An answer
    /// to an op that is done is a duplicate.
    pub(crate) fn admits_answer(&self, segment: &Segment) -> bool {
        let number = segment.op.get();
        let Some(stream) = self.ops.get(number) else { return number < self.ops.first };
        // An answer does not wait for earlier ops, because writes and other reads may be slow.
        let place = ((number - self.ops.first) as usize).min(MAX_PLACE);
        stream.op.kind.is_answered()
            && segment.op_length == stream.op.length
            && (!stream.is_live() || stream.answer.has_room_for(segment.offset, place))
    }

    /// Returns `true` if bytes of an admitted answer before `segment` are missing.
    pub(crate) fn answer_is_ahead(&self, segment: &Segment) -> bool {
        let stream = self.ops.get(segment.op.get()).filter(|s| s.is_live());
        stream.is_some_and(|s| segment.offset > s.answer.contiguous())
    }

    /// Returns whether these bytes of the answer to op `id` of this side have arrived; `None` if
    /// the op has no answer of that length.
    pub(crate) fn has_answer(&self, id: OpId, offset: u64, length: u64) -> Option<bool> {
        let Some(stream) = self.ops.get(id.get()) else {
            return (id.get() < self.ops.first).then_some(true);
        };
        let end = offset.checked_add(length)?;
        let answered = stream.op.kind.is_answered() && end <= stream.op.length;
        answered.then(|| !stream.is_live() || stream.answer.contains(offset, length))
    }

    /// Processes bytes of an admitted answer. Returns the number of new bytes, and calls `finish`
    /// with the op if it is complete. `None` if the op has ended.
    pub(crate) fn on_answer(
        &mut self,
        now: Time,
        segment: &Segment,
        mut finish: impl FnMut(Finished),
    ) -> Option<u64> {
        self.heard_at = now;
        // The number of an op is that of its stream.
        let stream = self.ops.get_mut(segment.op.get()).filter(|s| s.is_live())?;
        let new = stream.answer.insert(segment.offset, u64::from(segment.length));
        if stream.answer.is_complete(stream.op.length) {
            stream.done = true;
            let finished = stream.finished();
            self.rare().answers_waiting -= 1;
            self.settle_request(finished.id.get());
            self.ops.drop_done();
            finish(finished);
        }
        Some(new)
    }

    /// Settles the request of op `number`: the answer has arrived, so the request needs no ACK.
    pub(super) fn settle_request(&mut self, number: u64) {
        if let Some(rare) = &mut self.rare {
            rare.requests.retain(|r| r.stream != number);
        }
        let request = |sent: &Sent| {
            let range = &sent.range;
            sent.fate == Fate::InFlight && range.request && !range.cancel && range.stream == number
        };
        if let Some(sent) = self.sent.find_mut(request) {
            sent.fate = Fate::Acked;
            let range = sent.range;
            self.leave_flight(range);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::EndpointConfig;
    use crate::op::{Op, OpKind};
    use apus_units::Span;
    use apus_wire::{RegionKey, SegmentKind};

    /// Submits a read of one byte and sends the next request; returns the answer to that request.
    fn ask(send: &mut SendSide, now: Time) -> Segment {
        let kind = OpKind::Read { region: RegionKey::new(1), address: 0 };
        send.submit(now, Op { kind, length: 1, user: 0 });
        let (_, request) = send.send_request(now).expect("a request");
        Segment { kind: SegmentKind::ReadResponse, length: 1, ..request }
    }

    #[test]
    fn requests_that_are_answered_and_never_acknowledged_do_not_cost_memory() {
        let mut send = SendSide::default();
        // The first request is lost.
        ask(&mut send, Time::ZERO);
        send.on_timeout(Time::ZERO, Span::from_ms(1), EndpointConfig::default().recovery);
        for us in 1..100_000 {
            let now = Time::ZERO + Span::from_us(us);
            let answer = ask(&mut send, now);
            assert_eq!(send.on_answer(now, &answer, |_| {}), Some(1));
            send.free_settled();
            assert!(send.sent.len() <= 256, "{} records after {us} reads", send.sent.len());
        }
        assert_eq!(send.in_flight, 0);
    }
}
