//! The sending side of a flow: ops to segments, segments to transmissions, transmissions to
//! acknowledged or lost.
//!
//! Every transmission has a fresh packet number, so an acknowledgement is never ambiguous. A range
//! of an op is carried by exactly one live transmission at a time: the latest. An acknowledgement
//! of an earlier one, taken for lost in the meantime, still gives an RTT sample, and settles the
//! range if its retransmission has not left yet.

use alloc::boxed::Box;

use apus_cc::Backlog;
use apus_units::{OpId, PacketNumber, Time, prefetch};
use apus_wire::{Ack, Segment, SegmentKind};

use crate::config::{EndpointConfig, Recovery};
use crate::flow::FlowCounters;
use crate::op::{Op, OpKind};
use crate::received::AckedPackets;
use crate::ring::Ring;
use crate::streams::{Finished, Lane, Stream, Streams};

mod answers;
mod give_up;
mod parts;

use parts::{Fate, Range, Rare, Sent};

/// Read requests that a flow may have in flight. They wait for neither window nor pace, as ACKs
/// do not (Swift §3.6), so this bounds what a flow can send unasked, and send again at a timeout.
/// deviation: the papers give none; 64 small packets are 1.3 packets of data.
const MAX_REQUESTS_IN_FLIGHT: u32 = 64;

/// What an acknowledgement said.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckOutcome {
    /// Packets acknowledged for the first time that were in flight.
    pub(crate) newly_acked: u32,
    /// Packets found lost through holes or a word of a gap, and the largest of them.
    pub(crate) lost: u32,
    pub(crate) lost_seq: PacketNumber,
    /// When the packet whose timing the acknowledgement echoes was sent (t1), if known.
    pub(crate) echo_sent_at: Option<Time>,
}

/// The sending side of a flow. Flows are many and most of them idle: what they hold is kept short.
#[derive(Clone, Debug, Default)]
pub(crate) struct SendSide {
    /// Ops, which are numbered as their streams are.
    ops: Streams,
    rare: Option<Box<Rare>>,
    /// Transmissions from `first_pn` on, consecutive.
    sent: Ring<Sent>,
    first_pn: u64,
    acked: AckedPackets,
    /// When the last data packet left, for pacing; meaningless before the first.
    last_sent_at: Time,
    /// The retransmission timeout runs from here while anything is in flight.
    pub(crate) progress_at: Time,
    /// When the peer last acknowledged anything, or the wait for it began.
    heard_at: Time,
    /// While the window has room for a part of a packet, nothing is sent before this; zero without
    /// such a rest.
    pub(crate) rests_until: Time,
    /// Payload bytes submitted and not yet handed to a packet.
    pub(crate) pending: u64,
    /// So many transmissions from `first_pn` on are acknowledged or were taken for lost.
    settled: u32,
    /// Packets in flight, read requests included.
    pub(crate) in_flight: u32,
    /// Wire bytes of the last data packet.
    pub(crate) last_sent_bytes: u32,
    answer_next: bool,
}

impl SendSide {
    /// The number that the next transmission will carry.
    pub(crate) fn next_seq(&self) -> PacketNumber {
        PacketNumber::new(self.first_pn + self.sent.len() as u64)
    }

    /// Gives back the memory of what is empty, once nothing is under way.
    pub(crate) fn rest(&mut self) {
        if self.in_flight == 0 && self.ops.queue.len() == 0 {
            self.ops.queue.release();
            self.sent.release();
        }
    }

    /// Brings near what an acknowledgement of `seq` needs: its transmission and the oldest op.
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

    /// When the last data packet left, if one did.
    #[inline]
    pub(crate) fn last_sent_at(&self) -> Option<Time> {
        (self.last_sent_bytes > 0).then_some(self.last_sent_at)
    }

    /// What the flow has sent and lost.
    pub(crate) fn counters(&self) -> FlowCounters {
        let packets_sent = self.next_seq().get();
        let Some(rare) = &self.rare else {
            return FlowCounters { packets_sent, ..FlowCounters::default() };
        };
        let Rare { fast_losses, timeout_losses, timeouts, .. } = **rare;
        FlowCounters { packets_sent, fast_losses, timeout_losses, timeouts }
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    fn reads_waiting(&self) -> u32 {
        self.rare.as_ref().map_or(0, |rare| rare.reads_waiting)
    }

    fn retransmits(&self) -> usize {
        self.rare.as_ref().map_or(0, |rare| rare.retransmit.len())
    }

    pub(crate) fn ops_under_way(&self) -> usize {
        self.ops.queue.len()
    }

    pub(crate) fn submit(&mut self, now: Time, op: Op) -> OpId {
        let number = self.ops.next();
        let id = OpId::new(number);
        let mut stream = Stream::new(now, op, id);
        if matches!(op.kind, OpKind::Read { .. }) {
            // A read sends one request and no bytes; the request goes by its own queue.
            stream.started = true;
            stream.next_offset = op.length;
            self.await_answer(now);
            self.rare().reads_waiting += 1;
            self.rare().requests.push_back(Range {
                lane: Lane::Ops,
                request: true,
                cancel: false,
                length: 0,
                stream: number,
                offset: 0,
            });
        } else {
            self.pending += op.length;
        }
        self.ops.push(stream);
        self.ops.skip_sent();
        id
    }

    /// Queues the answer to the peer's read `id` of `kind`.
    pub(crate) fn respond(&mut self, now: Time, id: OpId, kind: OpKind, length: u64) {
        let op = Op { kind, length, user: 0 };
        self.rare().responses.push(Stream::new(now, op, id));
        self.pending += length;
    }

    /// A read of the peer's waits for the caller's answer.
    pub(crate) fn ask(&mut self) {
        self.rare().reads_asked += 1;
    }

    /// One of those will be answered now; false if there is none.
    pub(crate) fn take_asked(&mut self) -> bool {
        let Some(rare) = &mut self.rare else { return false };
        let asked = rare.reads_asked > 0;
        rare.reads_asked -= u32::from(asked);
        asked
    }

    /// The peer's reads whose answers are not yet acknowledged.
    pub(crate) fn responses_under_way(&self) -> usize {
        let under_way = |rare: &Rare| rare.responses.queue.len() + rare.reads_asked as usize;
        self.rare.as_deref().map_or(0, under_way)
    }

    /// Whether a read request may leave: few are in flight, or it waits for those.
    #[inline]
    pub(crate) fn has_request(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| {
            !rare.requests.is_empty() && rare.requests_in_flight < MAX_REQUESTS_IN_FLIGHT
        })
    }

    /// Packets in flight that the window counts.
    pub(crate) fn data_in_flight(&self) -> u32 {
        self.in_flight - self.rare.as_ref().map_or(0, |rare| rare.requests_in_flight)
    }

    /// What there is to send, in packets of up to `max_payload`.
    pub(crate) fn backlog(&self, max_payload: u32) -> Backlog {
        let new = self.pending.div_ceil(u64::from(max_payload));
        // An op without bytes takes a packet too.
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

    /// Takes the next read request and gives it a packet number.
    pub(crate) fn send_request(&mut self, now: Time) -> Option<(PacketNumber, Segment)> {
        if !self.has_request() {
            return None;
        }
        let range = self.rare().requests.pop_front()?;
        self.transmit(now, range)
    }

    /// Takes the next range, lost ones first, and gives it a packet number.
    pub(crate) fn send_data(
        &mut self,
        now: Time,
        max_payload: u32,
        config: &EndpointConfig,
    ) -> Option<(PacketNumber, Segment)> {
        let lost = self.rare.as_mut().and_then(|rare| rare.retransmit.pop_front());
        let range = match lost {
            Some(range) => self.cut(range, max_payload),
            None => {
                let range = self.next_range(max_payload)?;
                self.await_answer(now);
                range
            }
        };
        self.last_sent_at = now;
        self.last_sent_bytes = range.length + config.header_bytes;
        self.transmit(now, range)
    }

    /// The part of `range` that a packet carries now; the rest waits in front. A range is too long if
    /// the path's packets have become smaller since it was cut.
    fn cut(&mut self, range: Range, max_payload: u32) -> Range {
        if range.length <= max_payload {
            return range;
        }
        let offset = range.offset + u64::from(max_payload);
        let length = range.length - max_payload;
        self.rare().retransmit.push_front(Range { offset, length, ..range });
        Range { length: max_payload, ..range }
    }

    /// The next range of an op or an answer, the two lanes in turn.
    fn next_range(&mut self, max_payload: u32) -> Option<Range> {
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
        streams.skip_sent();
        self.pending -= u64::from(length);
        Some(Range { lane, request: false, cancel: false, length, stream: number, offset })
    }

    fn transmit(&mut self, now: Time, range: Range) -> Option<(PacketNumber, Segment)> {
        let seq = self.next_seq();
        let stream = self.streams(range.lane).get_mut(range.stream)?;
        let kind = match (range.lane, stream.op.kind) {
            _ if range.cancel => SegmentKind::Cancel,
            (Lane::Responses, _) => SegmentKind::ReadResponse,
            (Lane::Ops, OpKind::Write { region, address }) => {
                SegmentKind::Write { region, address }
            }
            (Lane::Ops, OpKind::Read { region, address }) => {
                SegmentKind::ReadRequest { region, address }
            }
            (Lane::Ops, OpKind::Message) => SegmentKind::Message,
        };
        let segment = Segment {
            op: stream.id,
            kind,
            offset: range.offset,
            length: range.length,
            op_length: stream.op.length,
            credit: None,
        };
        if self.in_flight == 0 {
            self.progress_at = now;
        }
        self.in_flight += 1;
        if range.request {
            self.rare().requests_in_flight += 1;
        }
        self.sent.push_back(Sent { sent_at: now, range, fate: Fate::InFlight, signalled: false });
        Some((seq, segment))
    }

    /// Something new leaves: the peer's silence counts from here, unless it is owed an answer.
    fn await_answer(&mut self, now: Time) {
        if self.in_flight == 0 && self.reads_waiting() == 0 && self.retransmits() == 0 {
            self.heard_at = now;
        }
    }

    fn streams(&mut self, lane: Lane) -> &mut Streams {
        match lane {
            Lane::Ops => &mut self.ops,
            Lane::Responses => &mut self.rare().responses,
        }
    }

    /// Takes in an acknowledgement; calls `finish` for each op that ends with it.
    pub(crate) fn on_ack(
        &mut self,
        now: Time,
        ack: &Ack,
        config: &EndpointConfig,
        finish: impl FnMut(Finished),
    ) -> AckOutcome {
        if ack.largest >= self.next_seq() || ack.echo >= self.next_seq() {
            // Acknowledges what was never sent: forged or corrupt, so nothing of it counts.
            return AckOutcome::default();
        }
        let echoed = self.record(ack.echo.get()).map(|sent| (sent.sent_at, sent.fate));
        let received = (ack.largest, ack.bitmap);
        let repeats = self.acked.largest() == Some(ack.largest);
        let mut outcome = self.on_received(now, received, config.reorder_threshold, finish);
        if config.recovery == Recovery::GoBackN && repeats && outcome.newly_acked == 0 {
            // What arrived behind a gap is dropped, so an acknowledgement without news tells of one.
            // What overtook a packet of before the last return says nothing of those sent since: one
            // return per round trip. Its timing is that of a packet acknowledged before.
            let went_back_at = self.rare.as_ref().map_or(0, |rare| rare.went_back_at);
            if ack.largest.get() >= went_back_at {
                self.go_back(now, &mut outcome);
            }
            return outcome;
        }
        // Repeated without news, as for a message that the receiver has no room for: its timing is that of
        // a packet acknowledged before, and grows with each repetition.
        let stale = |fate: &Fate| matches!(fate, Fate::Acked) && outcome.newly_acked == 0;
        let echo_sent_at = echoed.filter(|(_, fate)| !stale(fate)).map(|(sent_at, _)| sent_at);
        AckOutcome { echo_sent_at, ..outcome }
    }

    /// Takes in which packets the peer has received: the largest number, and in bit i of the bitmap
    /// whether `largest - i` was.
    pub(crate) fn on_received(
        &mut self,
        now: Time,
        (largest, bitmap): (PacketNumber, u128),
        reorder_threshold: u64,
        mut finish: impl FnMut(Finished),
    ) -> AckOutcome {
        let mut outcome = AckOutcome::default();
        if largest >= self.next_seq() {
            return outcome;
        }
        self.heard_at = now;
        for seq in self.acked.on_ack(largest, bitmap) {
            outcome.newly_acked += u32::from(self.settle_packet(seq.get(), &mut finish));
        }
        if outcome.newly_acked > 0 {
            self.progress_at = now;
        }
        let largest = self.acked.largest().map_or(0, PacketNumber::get);
        let lost_below = (largest + 1).saturating_sub(reorder_threshold);
        let mut next = self.loss_floor();
        while next < lost_below {
            if self.lose(next) {
                outcome.lost += 1;
                outcome.lost_seq = PacketNumber::new(next);
            }
            next += 1;
        }
        self.set_loss_floor(next);
        if outcome.lost > 0 {
            self.rare().fast_losses += u64::from(outcome.lost);
        }
        self.forget_old(largest);
        outcome
    }

    /// Everything in flight is sent again, in its order and before anything else.
    fn go_back(&mut self, now: Time, outcome: &mut AckOutcome) {
        let end = self.next_seq().get();
        let before = outcome.lost;
        for seq in self.loss_floor()..end {
            if self.lose(seq) {
                outcome.lost += 1;
                outcome.lost_seq = PacketNumber::new(seq);
            }
        }
        self.set_loss_floor(end);
        self.rare().fast_losses += u64::from(outcome.lost - before);
        self.begin_again();
        self.progress_at = now;
    }

    /// Go-back-N: each lane's bytes leave in their order, whenever they were found lost.
    fn begin_again(&mut self) {
        let order = |range: &Range| (range.lane == Lane::Responses, range.stream, range.offset);
        let next = self.next_seq().get();
        let rare = self.rare();
        rare.retransmit.make_contiguous().sort_unstable_by_key(order);
        rare.went_back_at = next;
    }

    /// When packet `seq` left, if it is in flight and no switch has signalled about it yet: a
    /// forged signal must name such a packet, and each counts once.
    pub(crate) fn take_signal(&mut self, seq: PacketNumber) -> Option<Time> {
        let record = self.record(seq.get())?;
        if record.fate != Fate::InFlight || record.signalled {
            return None;
        }
        Some(record.sent_at)
    }

    /// Packet `seq` will not be signalled about again.
    pub(crate) fn note_signal(&mut self, seq: PacketNumber) {
        if let Some(record) = self.record(seq.get()) {
            record.signalled = true;
        }
    }

    fn record(&mut self, seq: u64) -> Option<&mut Sent> {
        let index = seq.checked_sub(self.first_pn)?;
        self.sent.get_mut(usize::try_from(index).ok()?)
    }

    /// Notes that `seq` was acknowledged; true if it was in flight.
    fn settle_packet(&mut self, seq: u64, finish: &mut impl FnMut(Finished)) -> bool {
        let Some(record) = self.record(seq) else { return false };
        let (was, range) = (record.fate, record.range);
        record.fate = Fate::Acked;
        match was {
            Fate::InFlight => self.leave_flight(range),
            // The range was queued again: take it back unless it has already left.
            Fate::Lost => {
                let rare = self.rare();
                let queue = if range.request { &mut rare.requests } else { &mut rare.retransmit };
                match queue.iter().position(|r| *r == range) {
                    Some(at) => _ = queue.remove(at),
                    None => return false,
                }
            }
            Fate::Acked => return false,
        }
        self.settle_range(range, finish);
        was == Fate::InFlight
    }

    fn settle_range(&mut self, range: Range, finish: &mut impl FnMut(Finished)) {
        let streams = self.streams(range.lane);
        let Some(stream) = streams.get_mut(range.stream) else { return };
        if range.cancel {
            stream.done = true;
            streams.drop_done();
            return;
        }
        if range.request || stream.cancelled {
            // The answer ends a read, not the request's acknowledgement; and the completion of an op
            // that was given up is reported.
            return;
        }
        stream.settled += u64::from(range.length);
        if stream.settled == stream.op.length && !stream.has_unsent() && !stream.done {
            stream.done = true;
            let finished = stream.finished();
            streams.drop_done();
            if range.lane == Lane::Ops {
                finish(finished);
            }
        }
    }

    /// Takes a transmission for lost if it is still in flight: its range is queued again.
    fn lose(&mut self, seq: u64) -> bool {
        let Some(record) = self.record(seq) else { return false };
        if record.fate != Fate::InFlight {
            return false;
        }
        record.fate = Fate::Lost;
        let range = record.range;
        self.leave_flight(range);
        // A read whose answer is here already needs no second request, nor a cancelled op its bytes.
        let stream = self.streams(range.lane).get(range.stream);
        if stream.is_some_and(|s| s.is_live() || (range.cancel && !s.done)) {
            if range.request {
                self.rare().requests.push_back(range);
            } else {
                self.rare().retransmit.push_back(range);
            }
        }
        true
    }

    /// Drops records that no acknowledgement can tell us more about.
    fn forget_old(&mut self, largest: u64) {
        while let Some(front) = self.sent.front() {
            let out_of_bitmap = self.first_pn + u64::from(u128::BITS) <= largest;
            let forgotten = match front.fate {
                Fate::Acked => true,
                Fate::Lost => out_of_bitmap,
                Fate::InFlight => false,
            };
            if !forgotten {
                break;
            }
            self.forget_front();
        }
    }

    /// Transmissions below this are acknowledged or were taken for lost.
    #[inline]
    fn loss_floor(&self) -> u64 {
        self.first_pn + u64::from(self.settled)
    }

    /// `floor` is at most one beyond what was sent, of which fewer than 2^32 are remembered.
    fn set_loss_floor(&mut self, floor: u64) {
        self.settled = floor.saturating_sub(self.first_pn) as u32;
    }

    /// Forgets the oldest transmission.
    fn forget_front(&mut self) {
        self.sent.pop_front();
        self.first_pn += 1;
        self.settled = self.settled.saturating_sub(1);
    }

    /// The timeout: everything in flight is taken for lost.
    pub(crate) fn on_timeout(&mut self, now: Time, recovery: Recovery) {
        let before = self.in_flight;
        let end = self.next_seq().get();
        for seq in self.loss_floor()..end {
            self.lose(seq);
        }
        self.set_loss_floor(end);
        self.progress_at = now;
        let rare = self.rare();
        rare.timeouts += 1;
        rare.timeout_losses += u64::from(before);
        if recovery == Recovery::GoBackN {
            self.begin_again();
        }
        // A silent peer must not cost memory: no record is kept further back than two bitmaps.
        while self.sent.len() > 2 * u128::BITS as usize {
            self.forget_front();
        }
    }

    fn leave_flight(&mut self, range: Range) {
        self.in_flight -= 1;
        if range.request {
            self.rare().requests_in_flight -= 1;
        }
    }

    /// Since when the peer has been silent, if it owes us anything.
    pub(crate) fn waiting_since(&self) -> Option<Time> {
        (self.in_flight > 0 || self.reads_waiting() > 0).then_some(self.heard_at)
    }
}
