//! The sending side of a flow: divides ops into segments, sends them, and records which
//! transmissions are acknowledged or lost.
//!
//! Every transmission has a fresh packet number, so an acknowledgement is never ambiguous. A range
//! of an op is carried by exactly one current transmission at a time: the latest. An
//! acknowledgement of an earlier transmission that was declared lost still gives an RTT sample. It
//! also settles the range if its retransmission has not left yet.

use alloc::boxed::Box;
use core::mem::size_of;

use apus_cc::{Backlog, Ev};
use apus_units::planted::{Bug, is_planted};
use apus_units::{OpId, PacketNumber, Ring, Time, prefetch};
use apus_wire::Segment;

use crate::config::EndpointConfig;
use crate::flow::FlowCounters;
use crate::op::Op;
use crate::received::AckedPackets;
use crate::streams::{Lane, Stream, Streams};

mod acked;
mod answers;
mod give_up;
mod parts;
mod spread;

pub(crate) use acked::{AckOutcome, Resend};
pub(crate) use parts::Range;
use parts::{Fate, Rare, Sent};

/// Maximum number of requests of a flow in flight, for reads and atomic ops. Requests are limited
/// neither by the window nor by pacing, like ACKs (Swift §3.6). This limit bounds the number of
/// requests that a flow can send, and retransmit at a timeout. deviation: the papers give none; 64
/// small packets are 1.3 packets of data.
const MAX_REQUESTS_IN_FLIGHT: u32 = 64;

/// The sending side of a flow. It is small because, among many flows, most are idle.
#[derive(Clone, Debug, Default)]
pub(crate) struct SendSide {
    /// Ops; the number of an op is that of its stream.
    ops: Streams,
    rare: Option<Box<Rare>>,
    /// Records of consecutive transmissions from `first_pn` upwards.
    sent: Ring<Sent>,
    first_pn: u64,
    acked: AckedPackets,
    /// Time at which the last data packet left, for pacing; meaningless before the first.
    last_sent_at: Time,
    /// Start of the retransmission timeout while packets are in flight.
    pub(crate) progress_at: Time,
    /// Time of the peer's last acknowledgement, NACK or answer, or the start of the wait for one.
    heard_at: Time,
    /// Payload bytes submitted and not yet handed to a packet.
    pub(crate) pending: u64,
    /// Number of transmissions, counted from `first_pn`, all of which are acknowledged or declared
    /// lost.
    settled: u32,
    /// Packets in flight, requests included.
    pub(crate) in_flight: u32,
    /// Wire bytes of the last data packet.
    pub(crate) last_sent_bytes: u32,
    answer_next: bool,
    /// How often the retransmission timeout has doubled, in addition to the back-off of the
    /// algorithm.
    doublings: u8,
    /// Whether packets that arrived trimmed wait for the timeout; no data leaves before it.
    waits_for_timeout: bool,
}

/// Bytes of memory that a packet in flight takes.
pub(crate) const BYTES_PER_PACKET: usize = size_of::<Sent>();

impl SendSide {
    /// Returns the number that the next transmission will carry.
    #[inline]
    pub(crate) fn next_seq(&self) -> PacketNumber {
        PacketNumber::new(self.first_pn + self.sent.len() as u64)
    }

    /// Frees the memory of empty queues, once nothing is outstanding.
    pub(crate) fn free_empty_queues(&mut self) {
        if self.in_flight == 0 && self.ops.queue.is_empty() {
            self.ops.queue.release();
            self.sent.release();
        }
    }

    /// Prefetches the data that an acknowledgement of `seq` needs: its transmission and the oldest
    /// op.
    #[inline]
    pub(crate) fn prefetch(&self, seq: PacketNumber) {
        let index = seq.get().saturating_sub(self.first_pn);
        if let Some(sent) = self.sent.get(index as usize) {
            prefetch(sent);
        }
        if let Some(op) = self.ops.queue.front() {
            prefetch(op);
        }
    }

    /// Prefetches the data that the next data packet needs: its op and the slot for its record.
    #[inline]
    pub(crate) fn prefetch_next(&self) {
        if let Some(op) = self.ops.get(self.ops.cursor) {
            prefetch(op);
        }
        self.sent.prefetch_free();
    }

    /// Returns the time at which the last data packet left, if there was one.
    #[inline]
    pub(crate) fn last_sent_at(&self) -> Option<Time> {
        (self.last_sent_bytes > 0).then_some(self.last_sent_at)
    }

    /// Returns the counters of sent and lost packets.
    pub(crate) fn counters(&self) -> FlowCounters {
        let packets_sent = self.next_seq().get();
        let Some(rare) = &self.rare else {
            return FlowCounters { packets_sent, ..FlowCounters::default() };
        };
        let Rare { fast_losses, timeout_losses, timeouts, trims, .. } = **rare;
        FlowCounters { packets_sent, fast_losses, timeout_losses, timeouts, trims }
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    fn answers_waiting(&self) -> u32 {
        self.rare.as_ref().map_or(0, |rare| rare.answers_waiting)
    }

    pub(crate) fn retransmits(&self) -> usize {
        self.rare.as_ref().map_or(0, |rare| rare.retransmit.len())
    }

    pub(crate) fn ops_under_way(&self) -> usize {
        self.ops.queue.len()
    }

    /// Returns the ops that have not ended, the oldest first, each with the time of its submission.
    pub(crate) fn open_ops(&self) -> impl Iterator<Item = (&Op, Time)> {
        self.ops.queue.iter().filter(|op| op.is_live()).map(|op| (&op.op, op.submitted_at))
    }

    pub(crate) fn submit(&mut self, now: Time, op: Op) -> OpId {
        let number = self.ops.next();
        let id = OpId::new(number);
        let mut stream = Stream::new(now, op, id);
        if op.kind.is_answered() {
            // Such an op sends one request, which uses a separate queue, and no payload.
            stream.started = true;
            stream.next_offset = op.length;
            self.await_answer(now);
            self.rare().answers_waiting += 1;
            let request = Range { request: true, stream: number, ..Range::default() };
            self.rare().requests.push_back(request);
        } else {
            self.pending += op.length;
        }
        self.ops.push(stream);
        self.ops.skip_sent();
        id
    }

    /// Queues the answer to the peer's op `id`, a read or an atomic op.
    pub(crate) fn respond(&mut self, now: Time, id: OpId, op: Op) {
        self.rare().responses.push(Stream::new(now, op, id));
        self.pending += op.length;
    }

    /// Records a read of the peer that awaits the caller's answer.
    pub(crate) fn add_unanswered_read(&mut self, id: OpId) {
        self.rare().unanswered_reads.push_back(id);
    }

    /// Removes a read that awaits the caller's answer; returns `false` if op `id` is not such a
    /// read. Callers mostly answer the oldest one.
    pub(crate) fn take_unanswered_read(&mut self, id: OpId) -> bool {
        let Some(rare) = &mut self.rare else { return false };
        let place = rare.unanswered_reads.iter().position(|&other| other == id);
        place.is_some_and(|at| rare.unanswered_reads.remove(at).is_some())
    }

    /// Returns the number of the peer's reads and atomic ops whose answers are not yet acknowledged.
    pub(crate) fn responses_under_way(&self) -> usize {
        let under_way = |rare: &Rare| rare.responses.queue.len() + rare.unanswered_reads.len();
        self.rare.as_deref().map_or(0, under_way)
    }

    /// Returns `true` if a request may leave: one is queued, and fewer than the maximum are in
    /// flight.
    #[inline]
    pub(crate) fn has_request(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| {
            !rare.requests.is_empty() && rare.requests_in_flight < MAX_REQUESTS_IN_FLIGHT
        })
    }

    /// Returns the number of packets in flight that count towards the window.
    #[inline]
    pub(crate) fn data_in_flight(&self) -> u32 {
        self.in_flight - self.rare.as_ref().map_or(0, |rare| rare.requests_in_flight)
    }

    /// Returns the data to send, in packets of up to `max_payload`.
    pub(crate) fn backlog(&self, max_payload: u32) -> Backlog {
        let new = self.pending.div_ceil(u64::from(max_payload));
        // An op without bytes also takes a packet.
        let least = u64::from(self.has_data());
        let packets = (new + self.retransmits() as u64).max(least);
        Backlog { packets, in_flight: self.in_flight }
    }

    #[inline]
    pub(crate) fn has_data(&self) -> bool {
        self.ops.has_unsent()
            || self
                .rare
                .as_ref()
                .is_some_and(|rare| !rare.retransmit.is_empty() || rare.responses.has_unsent())
    }

    /// Takes the next request and gives it a packet number.
    pub(crate) fn send_request(&mut self, now: Time) -> Option<(PacketNumber, Segment)> {
        if !self.has_request() {
            return None;
        }
        let range = self.rare().requests.pop_front()?;
        let segment = match self.streams(range.lane).get_mut(range.stream) {
            Some(stream) => {
                stream.requested |= !range.cancel;
                stream.segment(&range)
            }
            None => Stream::of_ended(OpId::new(range.stream)).segment(&range),
        };
        self.rare().requests_in_flight += 1;
        Some((self.transmit(now, range), segment))
    }

    /// Takes the next range and gives it a packet number. Lost ranges come first, unless
    /// `new_first` is set.
    #[inline]
    pub(crate) fn send_data(
        &mut self,
        now: Time,
        max_payload: u32,
        config: &EndpointConfig,
    ) -> Option<(PacketNumber, Segment)> {
        let ops = &self.ops;
        let lost = self.rare.as_mut().and_then(|rare| {
            let is_new_first = core::mem::take(&mut rare.new_first);
            let new_first = is_new_first && (ops.has_unsent() || rare.responses.has_unsent());
            if new_first { None } else { rare.retransmit.pop_front() }
        });
        let (range, segment) = match lost {
            Some(range) => {
                let range = self.cut(range, max_payload);
                let seq = self.next_seq().get();
                self.rare().resent = seq;
                (range, self.streams(range.lane).get_mut(range.stream)?.segment(&range))
            }
            None => {
                let next = self.next_range(max_payload)?;
                self.await_answer(now);
                next
            }
        };
        self.last_sent_at = now;
        self.last_sent_bytes = range.length + config.header_bytes;
        Some((self.transmit(now, range), segment))
    }

    /// Returns the part of `range` that one packet carries now, and puts the rest back at the
    /// front. A range is too long if the packet size of the path has decreased since the range was
    /// formed.
    fn cut(&mut self, range: Range, max_payload: u32) -> Range {
        if range.length <= max_payload {
            return range;
        }
        let sent = if is_planted(Bug::CutOffset) { 0 } else { max_payload };
        let offset = range.offset + u64::from(sent);
        let length = range.length - max_payload;
        self.rare().retransmit.push_front(Range { offset, length, ..range });
        Range { length: max_payload, ..range }
    }

    /// Returns the next range of an op or an answer and its segment, alternating between the two lanes.
    #[inline]
    fn next_range(&mut self, max_payload: u32) -> Option<(Range, Segment)> {
        let answers = self.rare.as_ref().is_some_and(|rare| rare.responses.has_unsent());
        let answer = answers && (self.answer_next || !self.ops.has_unsent());
        self.answer_next = !answer;
        let lane = if answer { Lane::Responses } else { Lane::Ops };
        let streams = self.streams(lane);
        let number = streams.cursor;
        let stream = streams.get_mut(number)?;
        let offset = stream.next_offset;
        let left = stream.op.length - offset;
        let length = max_payload.min(u32::try_from(left).unwrap_or(u32::MAX));
        stream.next_offset += u64::from(length);
        stream.started = true;
        let range = Range { lane, length, stream: number, offset, ..Range::default() };
        let segment = stream.segment(&range);
        if !stream.has_unsent() {
            streams.skip_sent();
        }
        self.pending -= u64::from(length);
        Some((range, segment))
    }

    /// Returns `true` if packet `seq`, which must be the last one sent, is a retransmission.
    pub(crate) fn is_resent(&self, seq: PacketNumber) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.resent == seq.get() && rare.resent > 0)
    }

    /// Records the departure of a range and returns its packet number.
    #[inline]
    fn transmit(&mut self, now: Time, range: Range) -> PacketNumber {
        let seq = self.next_seq();
        if self.in_flight == 0 {
            self.progress_at = now;
        }
        self.in_flight += 1;
        self.sent.push_back(Sent {
            sent_at: now,
            range,
            fate: Fate::InFlight,
            signalled: false,
            ev: Ev::default(),
        });
        seq
    }

    /// Restarts the wait for the peer when a packet leaves, unless the peer already has to answer
    /// another one.
    #[inline]
    fn await_answer(&mut self, now: Time) {
        if self.in_flight == 0 && self.answers_waiting() == 0 && self.retransmits() == 0 {
            self.heard_at = now;
        }
    }

    #[inline]
    fn streams(&mut self, lane: Lane) -> &mut Streams {
        match lane {
            Lane::Ops => &mut self.ops,
            Lane::Responses => &mut self.rare().responses,
        }
    }
}
