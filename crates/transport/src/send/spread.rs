//! The sending side of a flow whose packets take several paths, and therefore arrive in any order.

use apus_cc::Ev;
use apus_units::{PacketNumber, Span, Time};
use apus_wire::Ack;

use super::acked::{AckOutcome, LATE_AFTER};
use super::{Fate, SendSide};
use crate::spread::{LossRule, Losses};
use crate::streams::Finished;

impl SendSide {
    /// Stores the entropy value of the packet that has just left.
    #[inline]
    pub(crate) fn note_ev(&mut self, ev: Ev) {
        if let Some(index) = self.sent.len().checked_sub(1)
            && let Some(record) = self.sent.get_mut(index)
        {
            record.ev = ev;
        }
    }

    /// Replaces the entropy value of packet `seq`; returns the previous value.
    pub(crate) fn replace_ev(&mut self, seq: PacketNumber, ev: Ev) -> Option<Ev> {
        self.record(seq.get()).map(|record| core::mem::replace(&mut record.ev, ev))
    }

    /// Returns the entropy value of packet `seq`, while it is recorded.
    #[inline]
    pub(crate) fn ev(&mut self, seq: PacketNumber) -> Option<Ev> {
        self.record(seq.get()).map(|record| record.ev)
    }

    /// Returns the entropy value of packet `seq` and the time at which it left, while it is
    /// recorded.
    pub(crate) fn sent_by(&mut self, seq: PacketNumber) -> Option<(Ev, Time)> {
        self.record(seq.get()).map(|record| (record.ev, record.sent_at))
    }

    /// Returns the number of packet numbers from the oldest packet in flight up to the next one to
    /// be sent.
    #[inline]
    pub(crate) fn range_in_flight(&self) -> u64 {
        self.next_seq().get() - self.loss_floor()
    }

    /// Returns the oldest packet in flight.
    pub(crate) fn oldest_in_flight(&mut self) -> Option<PacketNumber> {
        let end = self.next_seq().get();
        (self.loss_floor()..end)
            .find(|&seq| self.record(seq).is_some_and(|record| record.fate == Fate::InFlight))
            .map(PacketNumber::new)
    }

    /// Restarts the timeout at the departure of the oldest packet in flight.
    pub(crate) fn time_oldest(&mut self, now: Time) {
        let oldest = self.oldest_in_flight().and_then(|seq| self.record(seq.get()));
        self.progress_at = oldest.map_or(now, |record| record.sent_at);
    }

    /// Processes an acknowledgement of packets that may have overtaken each other. Appends the
    /// entropy values of the packets that are declared lost to `losses`. The window is `cwnd`
    /// packets.
    pub(crate) fn on_spread_ack(
        &mut self,
        now: Time,
        ack: &Ack,
        (losses, cwnd): (&mut Losses, f64),
        finish: &mut impl FnMut(Finished),
    ) -> AckOutcome {
        let mut outcome = AckOutcome::default();
        if ack.largest >= self.next_seq() || ack.echo >= self.next_seq() {
            // The ACK acknowledges unsent packets: it is forged or corrupt and has no effect.
            return outcome;
        }
        let echoed = self.record(ack.echo.get()).map(|sent| (sent.sent_at, sent.fate));
        self.heard_at = now;
        // All packets before the first missing number have arrived, even if no bitmap reported
        // them.
        let missing =
            ack.missing.map(|missing| (ack.largest.get() + 1).saturating_sub(missing.into()));
        let before = self.loss_floor()..missing.unwrap_or(0);
        // The packet that caused the acknowledgement may lie outside its bitmap.
        let newly = losses.reported.newly((ack.largest, ack.bitmap));
        for seq in newly.chain([ack.echo.get()]).chain(before) {
            let floor = self.loss_floor();
            let Some(record) = self.record(seq) else { continue };
            if record.fate == Fate::Acked {
                continue;
            }
            let (sent_at, ev) = (record.sent_at, record.ev);
            losses.ahead += u32::from(seq >= floor);
            let reported = &mut losses.reported;
            reported.latest_sent_at = reported.latest_sent_at.max(sent_at);
            reported.largest = reported.largest.max(seq);
            if let Some(bytes) = self.settle_packet(seq, finish) {
                outcome.newly_acked += 1;
                outcome.newly_acked_bytes += u64::from(bytes);
            } else if self.fruitless_timeouts() >= LATE_AFTER {
                self.settle_late(seq, finish);
            }
            if losses.rule == LossRule::EvOrder {
                for earlier in floor..seq {
                    if self.record(earlier).is_some_and(|record| record.ev == ev) {
                        self.declare_lost(earlier, &mut outcome, losses);
                    }
                }
            }
        }
        self.note_progress(now, &outcome);
        self.find_losses(losses, &mut outcome);
        losses.note_ack(now, self.in_flight > 0 || self.has_data(), self.has_data());
        self.resend(losses, cwnd, &mut outcome);
        if losses.times_packets() {
            self.time_oldest(now);
        }
        if outcome.lost > 0 {
            self.rare().fast_losses += u64::from(outcome.lost);
        }
        self.forget_old(losses.reported.largest);
        let stale = |fate: &Fate| matches!(fate, Fate::Acked) && outcome.newly_acked == 0;
        outcome.echo_sent_at = echoed.filter(|(_, fate)| !stale(fate)).map(|(at, _)| at);
        outcome
    }

    /// Handles the answer to a probe.
    pub(crate) fn on_probe_answer(
        &mut self,
        now: Time,
        number: u32,
        (losses, cwnd): (&mut Losses, f64),
    ) -> AckOutcome {
        let mut outcome = AckOutcome::default();
        self.heard_at = now;
        let next = self.next_seq().get();
        if losses.on_answer(now, number, next).is_some() {
            losses.note_ack(now, self.in_flight > 0 || self.has_data(), self.has_data());
            self.resend(losses, cwnd, &mut outcome);
            self.time_oldest(now);
            self.rare().fast_losses += u64::from(outcome.lost);
        }
        outcome
    }

    /// Declares packets lost by a rule that examines the oldest ones, and moves the floor up to the
    /// oldest packet in flight.
    fn find_losses(&mut self, losses: &mut Losses, outcome: &mut AckOutcome) {
        let (largest, latest) = (losses.reported.largest, losses.reported.latest_sent_at);
        let rule = losses.rule;
        self.pass_oldest(losses, outcome, |seq, sent_at| match rule {
            LossRule::Count(threshold) => seq + threshold <= largest,
            LossRule::Time(delay) => sent_at.saturating_add(delay) <= latest,
            LossRule::EvOrder | LossRule::Timeout | LossRule::Sleek(_) => false,
        });
    }

    /// Moves the floor up to the oldest packet in flight.
    pub(crate) fn pass_settled(&mut self, losses: &mut Losses) {
        self.pass_oldest(losses, &mut AckOutcome::default(), |_, _| false);
    }

    /// Declares the oldest packets in flight lost as long as `is_lost` is true for their number and
    /// departure. Moves the floor up to the first other packet in flight.
    fn pass_oldest(
        &mut self,
        losses: &mut Losses,
        outcome: &mut AckOutcome,
        is_lost: impl Fn(u64, Time) -> bool,
    ) {
        let end = self.next_seq().get();
        let mut floor = self.loss_floor();
        while floor < end {
            let Some(record) = self.record(floor) else { break };
            match record.fate {
                Fate::InFlight if is_lost(floor, record.sent_at) => {
                    self.declare_lost(floor, outcome, losses);
                }
                Fate::InFlight => break,
                Fate::Acked => losses.ahead = losses.ahead.saturating_sub(1),
                Fate::Lost => {}
            }
            floor += 1;
        }
        self.set_loss_floor(floor);
        // A peer must not cost memory. The records that remain let late acknowledgements of lost
        // packets count.
        while self.settled > losses.settled_records {
            self.forget_front();
        }
    }

    /// SLEEK: declares the packets in flight below a limit lost, so that they are retransmitted as
    /// the window permits.
    fn resend(&mut self, losses: &mut Losses, cwnd: f64, outcome: &mut AckOutcome) {
        let ends = (self.loss_floor(), self.next_seq().get());
        let is_resending = self.retransmits() > 0;
        let Some(below) = losses.resends_below(cwnd, ends, is_resending) else { return };
        self.pass_oldest(losses, outcome, |seq, _| seq < below);
    }

    /// Handles a timeout if each packet has its own: packets that left at least the
    /// [backed-off](SendSide::backed_off) `rto` ago are declared lost. Returns their count and the
    /// largest of their numbers.
    pub(crate) fn on_packet_timeouts(
        &mut self,
        now: Time,
        rto: Span,
        losses: &mut Losses,
    ) -> (u32, PacketNumber) {
        let mut outcome = AckOutcome::default();
        let timeout = self.backed_off(rto);
        self.pass_oldest(losses, &mut outcome, |_, sent_at| sent_at.saturating_add(timeout) <= now);
        self.time_oldest(now);
        if outcome.lost > 0 {
            self.note_timeout(outcome.lost);
            self.note_fruitless_timeout(now, rto);
        }
        (outcome.lost, outcome.lost_seq)
    }

    fn declare_lost(&mut self, seq: u64, outcome: &mut AckOutcome, losses: &mut Losses) {
        let Some(ev) = self.record(seq).map(|record| record.ev) else { return };
        if self.lose(seq) {
            outcome.lost += 1;
            outcome.lost_seq = outcome.lost_seq.max(PacketNumber::new(seq));
            losses.lost.push(ev);
        }
    }
}
