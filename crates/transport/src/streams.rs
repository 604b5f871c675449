//! Outgoing bytes of ops and of answers to reads and atomic ops.

use apus_units::{FlowId, OpId, Ring, Time};
use apus_wire::{Segment, SegmentKind};

use crate::op::{Completion, Op, OpKind, Outcome};
use crate::ranges::RangeSet;
use crate::send::Range;

/// The origin of a stream's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Ops of the local application.
    #[default]
    Ops,
    /// The peer, by a read or atomic op.
    Responses,
}

/// The outgoing bytes of one op, or of the answer to a peer's read or atomic op.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    /// The op as submitted; for an answer, the peer's op.
    pub(crate) op: Op,
    /// Number on the wire: that of this side for an op, that of the peer for an answer.
    pub(crate) id: OpId,
    pub(crate) submitted_at: Time,
    /// Bytes below this offset were put into a packet at least once.
    pub(crate) next_offset: u64,
    /// Bytes acknowledged.
    pub(crate) settled: u64,
    /// For a read or atomic op: the received ranges of the answer.
    pub(crate) answer: RangeSet,
    /// Whether a packet has left; `false` identifies a zero-length stream that must still be sent.
    pub(crate) started: bool,
    /// For a read or atomic op: whether its request has left at least once.
    pub(crate) requested: bool,
    pub(crate) done: bool,
    /// Cancelled before its end: no more of its bytes are sent, and its completion was reported.
    /// The stream keeps its number until the peer has acknowledged the cancellation.
    pub(crate) cancelled: bool,
}

impl Default for Stream {
    /// The content of an empty slot of a ring.
    fn default() -> Self {
        let op = Op { kind: OpKind::Message, length: 0, user: 0 };
        Self::new(Time::ZERO, op, OpId::default())
    }
}

impl Stream {
    pub(crate) fn new(now: Time, op: Op, id: OpId) -> Self {
        Self {
            op,
            id,
            submitted_at: now,
            next_offset: 0,
            settled: 0,
            answer: RangeSet::default(),
            started: false,
            requested: false,
            done: false,
            cancelled: false,
        }
    }

    /// Returns the stream of an op that has ended, to send its cancellation.
    pub(crate) fn of_ended(id: OpId) -> Self {
        Self { id, cancelled: true, ..Self::default() }
    }

    pub(crate) fn finished(&self) -> Finished {
        Finished { id: self.id, op: self.op, submitted_at: self.submitted_at }
    }

    /// Returns the segment that carries `range` of this stream.
    #[inline]
    pub(crate) fn segment(&self, range: &Range) -> Segment {
        let kind = match (range.lane, self.op.kind) {
            _ if range.cancel => SegmentKind::Cancel,
            (Lane::Responses, _) => SegmentKind::ReadResponse,
            (Lane::Ops, OpKind::Write { region, address }) => {
                SegmentKind::Write { region, address }
            }
            (Lane::Ops, OpKind::Read { region, address }) => {
                SegmentKind::ReadRequest { region, address }
            }
            (Lane::Ops, OpKind::Message) => SegmentKind::Message,
            (Lane::Ops, OpKind::CompareAndSwap { region, address }) => {
                SegmentKind::CompareAndSwap { region, address }
            }
            (Lane::Ops, OpKind::FetchAdd { region, address }) => {
                SegmentKind::FetchAdd { region, address }
            }
        };
        // The request of an atomic op carries its operands.
        let (length, op_length) = match kind.operand_bytes() {
            Some(operands) => (operands, u64::from(operands)),
            None => (range.length, self.op.length),
        };
        Segment { op: self.id, kind, offset: range.offset, length, op_length, attached: None }
    }

    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        !self.started || self.next_offset < self.op.length
    }

    /// Returns `true` if the stream's bytes are still needed.
    pub(crate) fn is_live(&self) -> bool {
        !self.done && !self.cancelled
    }

    /// Marks all bytes as sent; returns the number of bytes that were unsent.
    pub(crate) fn skip_unsent(&mut self) -> u64 {
        let unsent = self.op.length - self.next_offset;
        self.next_offset = self.op.length;
        self.started = true;
        unsent
    }
}

/// An op that ended through an acknowledgement or an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finished {
    pub(crate) id: OpId,
    pub(crate) op: Op,
    pub(crate) submitted_at: Time,
}

impl Finished {
    /// Returns the completion for the application.
    pub(crate) fn completion(self, flow: FlowId, now: Time) -> Completion {
        Completion {
            flow,
            op: self.id,
            submitted: self.op,
            submitted_at: self.submitted_at,
            completed_at: now,
            outcome: Outcome::Done,
        }
    }
}

/// Streams of one lane, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streams {
    pub(crate) queue: Ring<Stream>,
    /// Number of the stream at the front; streams of a lane are numbered from 0.
    pub(crate) first: u64,
    /// Number of the first stream with unsent bytes.
    pub(crate) cursor: u64,
}

impl Streams {
    #[inline]
    pub(crate) fn get(&self, number: u64) -> Option<&Stream> {
        self.queue.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut Stream> {
        let index = number.checked_sub(self.first)?;
        self.queue.get_mut(usize::try_from(index).ok()?)
    }

    pub(crate) fn push(&mut self, stream: Stream) {
        self.queue.push_back(stream);
    }

    /// Returns the number that the next stream gets.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.first + self.queue.len() as u64
    }

    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        self.cursor < self.next()
    }

    pub(crate) fn drop_done(&mut self) {
        while self.queue.front().is_some_and(|s| s.done) {
            self.queue.pop_front();
            self.first += 1;
        }
        self.cursor = self.cursor.max(self.first);
    }

    /// Moves the cursor to the next stream with unsent bytes.
    pub(crate) fn skip_sent(&mut self) {
        while self.get_mut(self.cursor).is_some_and(|s| !s.has_unsent()) {
            self.cursor += 1;
        }
    }
}
