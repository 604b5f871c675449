//! Ends of transmissions: acknowledged, declared lost by the bitmap, or declared lost by a timeout.

use apus_units::planted::{Bug, is_planted};
use apus_units::{PacketNumber, Span, Time};
use apus_wire::Ack;

use super::SendSide;
use super::parts::{Fate, Range, Sent};
use crate::config::{EndpointConfig, Recovery};
use crate::streams::{Finished, Lane};

/// Number of timeouts of equal length in a row, without an acknowledgement of a packet in flight,
/// after which late acknowledgements of original transmissions also settle their retransmissions.
/// deviation: no source; a lost packet seldom causes as many. Timeouts that follow the round trip
/// or double are not of equal length: they eventually exceed the round trip.
pub(super) const LATE_AFTER: u32 = 8;

/// Maximum number of records of packets that are not in flight: two bitmaps of acknowledgements.
const SETTLED_RECORDS: usize = 2 * u128::BITS as usize;

/// Treatment of a packet that arrived trimmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resend {
    /// None: it is not in flight.
    NotInFlight,
    /// Its range is queued for retransmission.
    Now {
        /// Bytes of its payload.
        payload: u32,
    },
    /// It stays in flight until the timeout.
    AtTimeout,
}

/// The result of an acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckOutcome {
    /// Packets acknowledged for the first time that were in flight.
    pub(crate) newly_acked: u32,
    /// Payload bytes of these packets.
    pub(crate) newly_acked_bytes: u64,
    /// Packets declared lost because of holes or a reported gap, and the largest of their numbers.
    pub(crate) lost: u32,
    pub(crate) lost_seq: PacketNumber,
    /// Time at which the packet whose timing the acknowledgement echoes was sent (t1), if still
    /// recorded.
    pub(crate) echo_sent_at: Option<Time>,
}

impl SendSide {
    /// Processes an acknowledgement; calls `finish` for each op that ends with it.
    #[inline]
    pub(crate) fn on_ack(
        &mut self,
        now: Time,
        ack: &Ack,
        config: &EndpointConfig,
        finish: impl FnMut(Finished),
    ) -> AckOutcome {
        if ack.largest >= self.next_seq() || ack.echo >= self.next_seq() {
            // The ACK acknowledges unsent packets: it is forged or corrupt and has no effect.
            return AckOutcome::default();
        }
        let echoed = self.record(ack.echo.get()).map(|sent| (sent.sent_at, sent.fate));
        let shifted = u32::from(is_planted(Bug::AckShifted));
        let received = (ack.largest, ack.bitmap | ack.bitmap << shifted);
        let repeats = self.acked.largest() == Some(ack.largest);
        let mut outcome = self.on_received(now, received, config.reorder_threshold, finish);
        if config.recovery == Recovery::GoBackN && repeats && outcome.newly_acked == 0 {
            // Packets behind a gap are dropped, so an acknowledgement without news reports a gap.
            // The receiver may also report packets sent before the last go-back; those give no
            // information on packets sent since, so there is one go-back per round trip. The echoed
            // timing is that of a packet acknowledged before.
            let went_back_at = self.rare.as_ref().map_or(0, |rare| rare.went_back_at);
            if ack.largest.get() >= went_back_at {
                self.go_back(now, &mut outcome);
            }
            return outcome;
        }
        // An acknowledgement that is repeated without news, as for a message that the receiver has
        // no room for, echoes the timing of a packet acknowledged before. The measured delay would
        // grow with each repetition.
        let stale = |fate: &Fate| matches!(fate, Fate::Acked) && outcome.newly_acked == 0;
        let echo_sent_at = echoed.filter(|(_, fate)| !stale(fate)).map(|(sent_at, _)| sent_at);
        AckOutcome { echo_sent_at, ..outcome }
    }

    /// Processes the packets that the peer has received: the largest number, and a bitmap whose bit
    /// i is set if `largest - i` was received.
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
            if let Some(bytes) = self.settle_packet(seq.get(), &mut finish) {
                outcome.newly_acked += 1;
                outcome.newly_acked_bytes += u64::from(bytes);
            } else if self.fruitless_timeouts() >= LATE_AFTER {
                self.settle_late(seq.get(), &mut finish);
            }
        }
        self.note_progress(now, &outcome);
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

    /// Handles a report that packet `seq` arrived trimmed. If it is in flight, its range is queued
    /// for retransmission. After [`EndpointConfig::backs_off_after`] round trips in which packets
    /// arrived trimmed and none arrived whole, it stays in flight instead, and no data leaves
    /// before the timeout.
    pub(crate) fn on_trimmed(
        &mut self,
        now: Time,
        seq: PacketNumber,
        config: &EndpointConfig,
    ) -> Resend {
        let Some(record) = self.record(seq.get()) else { return Resend::NotInFlight };
        if record.fate != Fate::InFlight {
            return Resend::NotInFlight;
        }
        let payload = record.range.length;
        self.heard_at = now;
        let next = self.next_seq().get();
        let rare = self.rare();
        rare.trims += 1;
        if seq.get() >= rare.trimmed_round_end {
            rare.trimmed_round_end = next;
            rare.trimmed_rounds = rare.trimmed_rounds.saturating_add(1);
        }
        if rare.trimmed_rounds > config.backs_off_after {
            self.waits_for_timeout = true;
            return Resend::AtTimeout;
        }
        self.lose(seq.get());
        // The path and the peer are alive: packets that are still in flight get a full timeout.
        self.progress_at = now;
        Resend::Now { payload }
    }

    /// Returns `true` if no data may leave before the timeout, because packets arrived trimmed too
    /// often.
    #[inline]
    pub(crate) fn waits_for_timeout(&self) -> bool {
        // Without data in flight no timeout would end the wait. Requests do not count, since they
        // are never trimmed.
        self.waits_for_timeout && self.data_in_flight() > 0
    }

    /// Records that a packet with payload has arrived whole.
    #[inline]
    pub(super) fn end_trimmed_rounds(&mut self) {
        self.waits_for_timeout = false;
        if let Some(rare) = &mut self.rare {
            rare.trimmed_rounds = 0;
        }
    }

    /// Retransmits everything in flight, in its order and before new data.
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

    /// Go-back-N: restores the order of the bytes of each lane, independent of when they were
    /// declared lost.
    fn begin_again(&mut self) {
        let order = |range: &Range| (range.lane == Lane::Responses, range.stream, range.offset);
        let next = self.next_seq().get();
        let rare = self.rare();
        rare.retransmit.make_contiguous().sort_unstable_by_key(order);
        rare.went_back_at = next;
    }

    /// Returns the time at which packet `seq` left, if it is in flight and no switch has signalled
    /// about it yet. A forged signal must therefore name such a packet, and each packet counts
    /// once.
    pub(crate) fn take_signal(&mut self, seq: PacketNumber) -> Option<Time> {
        let record = self.record(seq.get())?;
        if record.fate != Fate::InFlight || record.signalled {
            return None;
        }
        Some(record.sent_at)
    }

    /// Records that a switch has signalled about packet `seq`, which must not count again.
    pub(crate) fn note_signal(&mut self, seq: PacketNumber) {
        if let Some(record) = self.record(seq.get()) {
            record.signalled = true;
        }
    }

    #[inline]
    pub(super) fn record(&mut self, seq: u64) -> Option<&mut Sent> {
        let index = seq.checked_sub(self.first_pn)?;
        self.sent.get_mut(usize::try_from(index).ok()?)
    }

    /// Records that `seq` was acknowledged; returns its payload bytes if it was in flight.
    #[inline]
    pub(super) fn settle_packet(
        &mut self,
        seq: u64,
        finish: &mut impl FnMut(Finished),
    ) -> Option<u32> {
        let record = self.record(seq)?;
        let (was, range) = (record.fate, record.range);
        record.fate = Fate::Acked;
        match was {
            Fate::InFlight => self.leave_flight(range),
            Fate::Lost => {
                self.end_trimmed_rounds();
                if !self.unqueue(range) && !is_planted(Bug::AckedTwice) {
                    return None;
                }
            }
            Fate::Acked => return None,
        }
        self.settle_range(range, finish);
        (was == Fate::InFlight).then_some(range.length)
    }

    pub(super) fn fruitless_timeouts(&self) -> u32 {
        self.rare.as_ref().map_or(0, |rare| rare.fruitless_timeouts)
    }

    /// Counts a timeout; the count restarts if `rto` differs from that of the previous timeout. If
    /// packets have timeouts of their own, it counts one per `rto`.
    pub(super) fn note_fruitless_timeout(&mut self, now: Time, rto: Span) {
        let rare = self.rare();
        if rare.fruitless_rto != rto {
            (rare.fruitless_rto, rare.fruitless_timeouts) = (rto, 0);
        } else if rare.fruitless_timeouts > 0 && now < rare.fruitless_at.saturating_add(rto) {
            return;
        }
        rare.fruitless_at = now;
        rare.fruitless_timeouts = rare.fruitless_timeouts.saturating_add(1);
    }

    /// Doubles the timeout after many timeouts of equal length in a row
    /// ([`EndpointConfig::max_backed_off`]). After every second timeout in a row, new data is sent
    /// first ([`EndpointConfig::new_after_timeouts`]).
    pub(crate) fn back_off(&mut self, window: f64, config: &EndpointConfig) {
        let longest = config.max_backed_off.filter(|_| window >= 1.0);
        let doublings = match longest {
            None => 0,
            Some(_) => {
                self.fruitless_timeouts().saturating_sub(config.backs_off_after.saturating_sub(1))
            }
        };
        self.doublings = doublings.min(63) as u8;
        let rare = self.rare();
        rare.longest_rto = longest.unwrap_or(Span::ZERO);
        // A peer may have room for the rest of a newer message, and for an older message only after
        // the newer one is complete. With a window of one packet, only the older message would be
        // retransmitted, without end.
        rare.new_first = config.new_after_timeouts && rare.new_after_next;
        rare.new_after_next = !rare.new_after_next;
    }

    /// Returns the retransmission timeout with doublings; the algorithm's timeout is `rto`.
    #[inline]
    pub(crate) fn backed_off(&self, rto: Span) -> Span {
        if self.doublings == 0 {
            return rto;
        }
        let longest = self.rare.as_ref().map_or(Span::ZERO, |rare| rare.longest_rto);
        let doubled = (0..self.doublings).fold(rto, |rto, _| rto.saturating_add(rto));
        doubled.min(longest).max(rto)
    }

    /// Ends rows of timeouts or trimmed packets if packets in flight were acknowledged by
    /// `outcome`. The timeout is then not shorter than the round trip. If these packets had
    /// payload, the path has room for payload; requests do not show that, because they are never
    /// trimmed.
    #[inline]
    pub(super) fn note_progress(&mut self, now: Time, outcome: &AckOutcome) {
        if outcome.newly_acked > 0 {
            self.progress_at = now;
            self.end_fruitless_timeouts();
        }
        if outcome.newly_acked_bytes > 0 {
            self.end_trimmed_rounds();
        }
    }

    #[inline]
    fn end_fruitless_timeouts(&mut self) {
        if let Some(rare) = &mut self.rare {
            rare.fruitless_timeouts = 0;
            rare.new_after_next = false;
            self.doublings = 0;
        }
    }

    /// Counts the retransmission of packet `seq`'s range as acknowledged, because the peer has the
    /// original. Without this, a fixed timeout that is shorter than the RTT would declare every
    /// packet lost before its acknowledgement arrives.
    #[cold]
    pub(super) fn settle_late(&mut self, seq: u64, finish: &mut impl FnMut(Finished)) {
        let Some(range) = self.record(seq).map(|record| record.range) else { return };
        for again in (seq + 1)..self.next_seq().get() {
            let Some(record) = self.record(again) else { return };
            if record.fate == Fate::InFlight && record.range == range {
                record.fate = Fate::Acked;
                self.leave_flight(range);
                return self.settle_range(range, finish);
            }
        }
    }

    /// Removes a range from the queue of retransmissions; returns `false` if it has already left.
    #[cold]
    fn unqueue(&mut self, range: Range) -> bool {
        let rare = self.rare();
        let queue = if range.request { &mut rare.requests } else { &mut rare.retransmit };
        let place = queue.iter().position(|other| *other == range);
        place.is_some_and(|at| queue.remove(at).is_some())
    }

    #[inline]
    fn settle_range(&mut self, range: Range, finish: &mut impl FnMut(Finished)) {
        if range.cancel {
            self.end_confirming(range.stream);
        }
        let streams = self.streams(range.lane);
        let Some(stream) = streams.get_mut(range.stream) else { return };
        if range.cancel {
            stream.done = true;
            streams.drop_done();
            return;
        }
        if range.request || stream.cancelled {
            // A read ends with its answer, not with the acknowledgement of its request. The
            // completion of a cancelled op has already been reported.
            return;
        }
        stream.settled += u64::from(range.length);
        if stream.settled == stream.op.length && !stream.has_unsent() && !stream.done {
            self.end_stream(range, finish);
        }
    }

    /// Ends a stream whose bytes are all acknowledged.
    #[cold] // once per op
    fn end_stream(&mut self, range: Range, finish: &mut impl FnMut(Finished)) {
        let streams = self.streams(range.lane);
        let Some(stream) = streams.get_mut(range.stream) else { return };
        stream.done = true;
        let finished = stream.finished();
        streams.drop_done();
        if range.lane == Lane::Ops {
            finish(finished);
        }
    }

    /// Declares a transmission lost if it is still in flight, and queues its range for
    /// retransmission.
    pub(super) fn lose(&mut self, seq: u64) -> bool {
        let Some(record) = self.record(seq) else { return false };
        if record.fate != Fate::InFlight {
            return false;
        }
        record.fate = Fate::Lost;
        let range = record.range;
        self.leave_flight(range);
        if range.cancel {
            self.end_confirming(range.stream); // the peer will refuse the ended op again
        }
        // A read whose answer has arrived needs no second request, and a cancelled op needs no
        // bytes.
        let stream = self.streams(range.lane).get(range.stream);
        if stream.is_some_and(|s| s.is_live() || (range.cancel && !s.done)) {
            if range.request && is_planted(Bug::LostForGood) {
                return true;
            }
            if range.request {
                self.rare().requests.push_back(range);
            } else {
                self.rare().retransmit.push_back(range);
            }
        }
        true
    }

    /// Drops records about which no acknowledgement can report anything new.
    #[inline]
    pub(super) fn forget_old(&mut self, largest: u64) {
        while let Some(front) = self.sent.front() {
            let forgotten = match front.fate {
                Fate::Acked => true,
                Fate::Lost => self.first_pn + u64::from(u128::BITS) <= largest,
                Fate::InFlight => false,
            };
            if !forgotten {
                break;
            }
            self.forget_front();
        }
    }

    /// Drops the oldest records of a flow with one path if more than [`SETTLED_RECORDS`] are not in
    /// flight. A peer that answers without acknowledging, or reports every packet as trimmed, must
    /// not cost memory: no acknowledgement and no timeout drops these records.
    #[inline]
    pub(crate) fn free_settled(&mut self) {
        while self.sent.len() > SETTLED_RECORDS + self.in_flight as usize
            && self.sent.front().is_some_and(|sent| sent.fate != Fate::InFlight)
        {
            self.forget_front();
        }
    }

    /// Returns the packet number below which all transmissions are acknowledged or declared lost.
    #[inline]
    pub(crate) fn loss_floor(&self) -> u64 {
        self.first_pn + u64::from(self.settled)
    }

    /// Sets the loss floor. `floor` is at most one beyond the last sent number; fewer than 2^32
    /// transmissions are stored.
    pub(super) fn set_loss_floor(&mut self, floor: u64) {
        self.settled = floor.saturating_sub(self.first_pn) as u32;
    }

    /// Forgets the oldest transmission.
    #[inline]
    pub(super) fn forget_front(&mut self) {
        self.sent.discard(1);
        self.first_pn += 1;
        self.settled = self.settled.saturating_sub(1);
    }

    /// Handles a timeout: everything in flight is declared lost. The algorithm's timeout is `rto`.
    pub(crate) fn on_timeout(&mut self, now: Time, rto: Span, recovery: Recovery) {
        let before = self.in_flight;
        let end = self.next_seq().get();
        for seq in self.loss_floor()..end {
            self.lose(seq);
        }
        self.set_loss_floor(end);
        self.progress_at = now;
        self.note_timeout(before);
        self.note_fruitless_timeout(now, rto);
        if recovery == Recovery::GoBackN {
            self.begin_again();
        }
        // Records must not accumulate while the peer is silent.
        while self.sent.len() > SETTLED_RECORDS {
            self.forget_front();
        }
    }

    /// Counts a timeout that declared this many packets lost.
    pub(super) fn note_timeout(&mut self, packets: u32) {
        self.waits_for_timeout = false;
        let heard_at = self.heard_at;
        let rare = self.rare();
        rare.timeouts += 1;
        if rare.silent_since != heard_at {
            (rare.silent_since, rare.silent_timeouts) = (heard_at, 0);
        }
        rare.silent_timeouts = rare.silent_timeouts.saturating_add(1);
        rare.timeout_losses += u64::from(packets);
    }

    #[inline]
    pub(super) fn leave_flight(&mut self, range: Range) {
        self.in_flight -= 1;
        if range.request {
            self.rare().requests_in_flight -= 1;
        }
    }

    /// Returns the time of the last report from the peer while ops are outstanding, and the number
    /// of timeouts since then; `None` without outstanding ops.
    pub(crate) fn silence(&self) -> Option<(Time, u32)> {
        let (oldest, submitted_at) = self.open_ops().next()?;
        let is_due = self.in_flight > 0 || self.answers_waiting() > 0 || self.retransmits() > 0;
        if !is_due {
            // No packet is outstanding: the silence starts when the data could first be sent.
            let started = oldest.length > 0 && self.last_sent_bytes > 0;
            let sent_at = if started { self.last_sent_at } else { submitted_at };
            return Some((self.heard_at.max(sent_at).max(submitted_at), 0));
        }
        let rare = self.rare.as_deref().filter(|rare| rare.silent_since == self.heard_at);
        Some((self.heard_at, rare.map_or(0, |rare| rare.silent_timeouts)))
    }

    /// Returns the time of the last report from the peer, if packets from the peer are due.
    pub(crate) fn waiting_since(&self) -> Option<Time> {
        (self.in_flight > 0 || self.answers_waiting() > 0).then_some(self.heard_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{Op, OpKind};
    use crate::spread::{LossRule, Losses};

    /// The peer reports each packet as trimmed, and sometimes acknowledges an old one, so that the
    /// flow does not back off.
    #[test]
    fn packets_that_arrive_trimmed_without_end_do_not_cost_memory() {
        for spreads in [false, true] {
            let config = EndpointConfig::default();
            let mut losses = Losses::new(LossRule::Timeout, 128);
            let mut send = SendSide::default();
            send.submit(Time::ZERO, Op { kind: OpKind::Message, length: 1 << 40, user: 0 });
            for round in 0..100_000 {
                let now = Time::ZERO + Span::from_us(round);
                while send.data_in_flight() < 8 {
                    send.send_data(now, 1000, &config).expect("data");
                }
                let newest = send.next_seq().get();
                for packet in newest - 8..newest {
                    send.on_trimmed(now, PacketNumber::new(packet), &config);
                }
                let oldest = send.first_pn;
                send.settle_packet(oldest, &mut |_| {});
                match spreads {
                    false => send.free_settled(),
                    true => send.pass_settled(&mut losses),
                }
                assert!(send.sent.len() <= 256 + 8, "{} records, {spreads}", send.sent.len());
            }
        }
    }
}
