//! Answers to reads and atomic ops, on the side that asks.

use apus_units::{OpId, Time};
use apus_wire::Segment;

use super::{Fate, SendSide, Sent};
use crate::streams::Finished;

/// Ops behind this place have room for as many gaps in their answers as the op at it: 64, which is 1 MiB for 1024 ops.
/// deviation: no source; an answer may come before those to older ops, so that its place says little.
const MAX_PLACE: usize = 15;

impl SendSide {
    /// Returns `true` if `segment` is an answer that the peer may send: to a read or atomic op of
    /// this side, of its length, and opening no more gaps than allowed. An answer to an op that is
    /// done is a duplicate.
    pub(crate) fn admits_answer(&self, segment: &Segment) -> bool {
        let number = segment.op.get();
        let Some(stream) = self.ops.get(number) else { return number < self.ops.first };
        // An answer does not wait for the ops before: writes and other reads may be slow.
        let place = ((number - self.ops.first) as usize).min(MAX_PLACE);
        stream.op.kind.is_answered()
            && segment.op_length == stream.op.length
            && (!stream.is_live() || stream.answer.has_room_for(segment.offset, place))
    }

    /// Returns `true` if bytes of an admitted answer are missing before `segment`.
    pub(crate) fn answer_is_ahead(&self, segment: &Segment) -> bool {
        let stream = self.ops.get(segment.op.get()).filter(|s| s.is_live());
        stream.is_some_and(|s| segment.offset > s.answer.contiguous())
    }

    /// Returns whether these bytes of the answer to op `id` of this side are here; `None` if the op has
    /// no answer of that length.
    pub(crate) fn has_answer(&self, id: OpId, offset: u64, length: u64) -> Option<bool> {
        let Some(stream) = self.ops.get(id.get()) else {
            return (id.get() < self.ops.first).then_some(true);
        };
        let end = offset.checked_add(length)?;
        let answered = stream.op.kind.is_answered() && end <= stream.op.length;
        answered.then(|| !stream.is_live() || stream.answer.contains(offset, length))
    }

    /// Processes bytes of an admitted answer: returns how many were new, and passes the op to
    /// `finish` if it is complete. `None` if the op has ended.
    pub(crate) fn on_answer(
        &mut self,
        now: Time,
        segment: &Segment,
        mut finish: impl FnMut(Finished),
    ) -> Option<u64> {
        self.heard_at = now;
        // Ops are numbered as their streams are.
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

    /// Settles the request of op `number`: its answer has arrived, so the request needs no ACK.
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

    /// Submits a read of a byte and sends the next request; returns its answer.
    fn ask(send: &mut SendSide, now: Time) -> Segment {
        let kind = OpKind::Read { region: RegionKey::new(1), address: 0 };
        send.submit(now, Op { kind, length: 1, user: 0 });
        let (_, request) = send.send_request(now).expect("a request");
        Segment { kind: SegmentKind::ReadResponse, length: 1, ..request }
    }

    #[test]
    fn requests_that_are_answered_and_never_acknowledged_do_not_cost_memory() {
        let mut send = SendSide::default();
        // The first is lost.
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
