//! The sending side of a flow whose packets take several paths, and therefore arrive in any order.

use apus_cc::Ev;
use apus_units::{PacketNumber, Time};
use apus_wire::Ack;

use super::acked::AckOutcome;
use super::{Fate, SendSide};
use crate::spread::{LossRule, Reported};
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

    /// Returns the entropy value of packet `seq`, while it is recorded.
    #[inline]
    pub(crate) fn ev(&mut self, seq: PacketNumber) -> Option<Ev> {
        self.record(seq.get()).map(|record| record.ev)
    }

    /// Returns the number of packets from the oldest in flight to the next one.
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

    /// Processes an acknowledgement of packets that may have overtaken each other; appends the values of
    /// the packets that are declared lost to `lost`.
    pub(crate) fn on_spread_ack(
        &mut self,
        now: Time,
        ack: &Ack,
        (reported, rule, lost): (&mut Reported, LossRule, &mut alloc::vec::Vec<Ev>),
        finish: &mut impl FnMut(Finished),
    ) -> AckOutcome {
        let mut outcome = AckOutcome::default();
        if ack.largest >= self.next_seq() || ack.echo >= self.next_seq() {
            // The ACK acknowledges unsent packets: it is forged or corrupt and has no effect.
            return outcome;
        }
        let echoed = self.record(ack.echo.get()).map(|sent| (sent.sent_at, sent.fate));
        self.heard_at = now;
        // The packet that drew the acknowledgement may lie outside its bitmap.
        let newly = reported.newly((ack.largest, ack.bitmap)).chain([ack.echo.get()]);
        for seq in newly {
            let Some(record) = self.record(seq) else { continue };
            if record.fate == Fate::Acked {
                continue;
            }
            let (sent_at, ev) = (record.sent_at, record.ev);
            reported.latest_sent_at = reported.latest_sent_at.max(sent_at);
            reported.largest = reported.largest.max(seq);
            if let Some(bytes) = self.settle_packet(seq, finish) {
                outcome.newly_acked += 1;
                outcome.newly_acked_bytes += u64::from(bytes);
            }
            if rule == LossRule::EvOrder {
                for earlier in self.loss_floor()..seq {
                    if self.record(earlier).is_some_and(|record| record.ev == ev) {
                        self.declare_lost(earlier, &mut outcome, lost);
                    }
                }
            }
        }
        if outcome.newly_acked > 0 {
            self.progress_at = now;
        }
        self.find_losses(reported, rule, &mut outcome, lost);
        if outcome.lost > 0 {
            self.rare().fast_losses += u64::from(outcome.lost);
        }
        self.forget_old(reported.largest);
        let stale = |fate: &Fate| matches!(fate, Fate::Acked) && outcome.newly_acked == 0;
        outcome.echo_sent_at = echoed.filter(|(_, fate)| !stale(fate)).map(|(at, _)| at);
        outcome
    }

    /// Declares packets lost by a rule that looks at the oldest ones, and moves the floor up to the oldest
    /// packet in flight.
    fn find_losses(
        &mut self,
        reported: &Reported,
        rule: LossRule,
        outcome: &mut AckOutcome,
        lost: &mut alloc::vec::Vec<Ev>,
    ) {
        let end = self.next_seq().get();
        let mut floor = self.loss_floor();
        while floor < end {
            let Some(record) = self.record(floor) else { break };
            if record.fate == Fate::InFlight {
                let sent_at = record.sent_at;
                let is_lost = match rule {
                    LossRule::Count(threshold) => floor + threshold <= reported.largest,
                    LossRule::Time(delay) => {
                        sent_at.saturating_add(delay) <= reported.latest_sent_at
                    }
                    LossRule::EvOrder | LossRule::Timeout => false,
                };
                if !is_lost {
                    break;
                }
                self.declare_lost(floor, outcome, lost);
            }
            floor += 1;
        }
        self.set_loss_floor(floor);
    }

    fn declare_lost(&mut self, seq: u64, outcome: &mut AckOutcome, lost: &mut alloc::vec::Vec<Ev>) {
        let Some(ev) = self.record(seq).map(|record| record.ev) else { return };
        if self.lose(seq) {
            outcome.lost += 1;
            outcome.lost_seq = outcome.lost_seq.max(PacketNumber::new(seq));
            lost.push(ev);
        }
    }
}
