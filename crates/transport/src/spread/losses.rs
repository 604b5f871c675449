//! Loss detection of a sender whose packets may overtake each other.

use alloc::vec::Vec;

use apus_cc::Ev;
use apus_units::{PacketNumber, Span, Time};

use super::LossRule;

/// Silence in base RTTs after which a flow with data to send probes a path, and after which it
/// repeats the probe (uet-htsim 40ccb05, `probe_first_trial_time` and `probe_retry_time`).
const FIRST_PROBE: u64 = 3;
const NEXT_PROBE: u64 = 5;
/// Number of packets out of order that counts as a loss: as a multiple of the window, and at least
/// (uet-htsim 40ccb05, `loss_retx_factor` and `min_retx_config`).
const WINDOWS_OUT_OF_ORDER: f64 = 1.5;
const LEAST_OUT_OF_ORDER: f64 = 5.0;

/// Settings of [`LossRule::Sleek`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sleek {
    /// RTT without queues.
    pub base_rtt: Span,
    /// Queueing delay of a probe below which the queues count as empty.
    pub target: Span,
    /// Upper limit of the number of packets out of order that counts as a loss: the largest window.
    pub most: u32,
}

impl Sleek {
    /// Returns the number of packets out of order that counts as a loss with this window.
    fn threshold(&self, cwnd: f64) -> f64 {
        (WINDOWS_OUT_OF_ORDER * cwnd).min(f64::from(self.most)).max(LEAST_OUT_OF_ORDER)
    }
}

/// State of loss detection.
#[derive(Clone, Debug)]
pub(crate) struct Losses {
    pub(crate) rule: LossRule,
    pub(crate) reported: Reported,
    /// Acknowledged packets above the oldest one in flight.
    pub(crate) ahead: u32,
    /// Entropy values of packets that were just declared lost.
    pub(crate) lost: Vec<Ev>,
    /// Maximum number of records of packets below the oldest one in flight: twice the range of
    /// packet numbers.
    pub(crate) settled_records: u32,
    /// [`LossRule::Sleek`]: all packets in flight below this number are retransmitted.
    resend_below: Option<u64>,
    probes: Probes,
}

/// State of the probes of a path.
#[derive(Clone, Copy, Debug)]
struct Probes {
    /// Time at which the next probe is due.
    at: Time,
    /// The number of the last probe, and the time at which it left.
    number: u32,
    sent_at: Time,
    is_out: bool,
}

impl Losses {
    /// Returns the initial state for this range of packet numbers.
    pub(crate) fn new(rule: LossRule, range: u32) -> Self {
        let probes = Probes { at: Time::MAX, number: 0, sent_at: Time::ZERO, is_out: false };
        Self {
            rule,
            reported: Reported::default(),
            ahead: 0,
            lost: Vec::new(),
            settled_records: range.saturating_mul(2),
            resend_below: None,
            probes,
        }
    }

    /// Returns `true` if each packet has a timeout of its own.
    #[inline]
    pub(crate) fn times_packets(&self) -> bool {
        matches!(self.rule, LossRule::EvOrder | LossRule::Timeout | LossRule::Sleek(_))
    }

    /// Returns the time at which the next probe is due.
    #[inline]
    pub(crate) fn probe_at(&self) -> Time {
        self.probes.at
    }

    /// Restarts the wait for a probe after an acknowledgement. `has_data`: data waits to be sent;
    /// `waits`: the same, or packets are in flight.
    pub(crate) fn note_ack(&mut self, now: Time, waits: bool, has_data: bool) {
        let LossRule::Sleek(sleek) = self.rule else { return };
        let silence = match has_data {
            true => sleek.base_rtt * FIRST_PROBE,
            false => sleek.base_rtt + sleek.target,
        };
        self.probes.at = if waits { now.saturating_add(silence) } else { Time::MAX };
    }

    /// Returns the number of the probe that is due.
    pub(crate) fn take_probe(&mut self, now: Time, in_flight: bool) -> Option<u32> {
        let LossRule::Sleek(sleek) = self.rule else { return None };
        if self.probes.at > now {
            return None;
        }
        if !in_flight {
            self.probes.at = Time::MAX;
            return None;
        }
        let number = self.probes.number.wrapping_add(1);
        let at = now.saturating_add(sleek.base_rtt * NEXT_PROBE);
        self.probes = Probes { at, number, sent_at: now, is_out: true };
        Some(number)
    }

    /// Processes the answer to a probe. Returns the RTT if it answers the last probe. If that probe
    /// met no queue, all missing packets before `next` are lost.
    pub(crate) fn on_answer(&mut self, now: Time, number: u32, next: u64) -> Option<Span> {
        let LossRule::Sleek(sleek) = self.rule else { return None };
        if number != self.probes.number || !core::mem::take(&mut self.probes.is_out) {
            return None;
        }
        let rtt = now.since(self.probes.sent_at);
        if rtt < sleek.base_rtt + sleek.target {
            self.resend_below = Some(next);
        }
        Some(rtt)
    }

    /// Returns the number below which all packets in flight are to be retransmitted. `floor` is the
    /// oldest packet in flight, `next` the next packet number, and `is_resending` is set if packets
    /// wait to be retransmitted.
    pub(crate) fn resends_below(
        &mut self,
        cwnd: f64,
        (floor, next): (u64, u64),
        is_resending: bool,
    ) -> Option<u64> {
        let LossRule::Sleek(sleek) = self.rule else { return None };
        self.resend_below = self.resend_below.filter(|&below| floor < below);
        if self.resend_below.is_none()
            && !is_resending
            && f64::from(self.ahead) >= sleek.threshold(cwnd)
        {
            self.resend_below = Some(next);
        }
        self.resend_below
    }
}

/// Packets that the peer has acknowledged, as far as loss detection needs them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reported {
    /// Largest packet number and bitmap of the last acknowledgement.
    last: (u64, u128),
    /// Largest packet number acknowledged.
    pub(crate) largest: u64,
    /// Latest departure of an acknowledged packet.
    pub(crate) latest_sent_at: Time,
}

impl Reported {
    /// Returns the packets in the bitmap of an acknowledgement that the previous bitmap did not
    /// contain, the largest first: bit i stands for `largest - i`.
    pub(crate) fn newly(
        &mut self,
        (largest, bitmap): (PacketNumber, u128),
    ) -> impl Iterator<Item = u64> + use<> {
        let largest = largest.get();
        let (last, known) = self.last;
        let shift = |by: u64| u32::try_from(by).unwrap_or(u32::MAX);
        let known = match largest.checked_sub(last) {
            Some(ahead) => known.checked_shl(shift(ahead)),
            None => known.checked_shr(shift(last - largest)),
        };
        let mut new = bitmap & !known.unwrap_or(0);
        self.last = (largest, bitmap);
        core::iter::from_fn(move || {
            let lowest = (new != 0).then(|| new.trailing_zeros())?;
            new &= new - 1;
            largest.checked_sub(u64::from(lowest))
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    fn losses() -> Losses {
        let (base_rtt, target) = (Span::from_us(14), Span::from_us(10));
        Losses::new(LossRule::Sleek(Sleek { base_rtt, target, most: 63 }), 1024)
    }

    /// The threshold is max(min(1.5 windows, the largest window), 5).
    #[test]
    fn sleek_resends_after_a_window_and_a_half_out_of_order() {
        for (cwnd, needed) in [(1.0, 5), (10.0, 15), (60.0, 63)] {
            let mut losses = losses();
            losses.ahead = needed - 1;
            assert_eq!(losses.resends_below(cwnd, (10, 100), false), None);
            losses.ahead = needed;
            assert_eq!(losses.resends_below(cwnd, (10, 100), true), None, "already resending");
            assert_eq!(losses.resends_below(cwnd, (10, 100), false), Some(100));
            // It stays until all of these packets are settled.
            losses.ahead = 0;
            assert_eq!(losses.resends_below(cwnd, (99, 120), true), Some(100));
            assert_eq!(losses.resends_below(cwnd, (100, 120), false), None);
        }
    }

    /// A probe is due after 3 base RTTs of silence, or after base RTT plus target if no data waits
    /// to be sent; the next one after 5 base RTTs.
    #[test]
    fn sleek_probes_after_silence() {
        let mut losses = losses();
        losses.note_ack(at(100), true, true);
        assert_eq!(losses.probe_at(), at(142));
        losses.note_ack(at(110), true, false);
        assert_eq!(losses.probe_at(), at(134));
        assert_eq!(losses.take_probe(at(133), true), None);
        assert_eq!(losses.take_probe(at(134), true), Some(1));
        assert_eq!(losses.probe_at(), at(204));
        // A late answer shows nothing; one without queueing shows that all missing packets are
        // lost.
        let mut slow = losses.clone();
        assert_eq!(slow.on_answer(at(158), 1, 50), Some(Span::from_us(24)));
        assert_eq!(slow.resends_below(10.0, (0, 50), false), None);
        assert_eq!(losses.on_answer(at(157), 2, 50), None, "another probe's");
        assert_eq!(losses.on_answer(at(157), 1, 50), Some(Span::from_us(23)));
        assert_eq!(losses.on_answer(at(157), 1, 50), None, "repeated");
        assert_eq!(losses.resends_below(10.0, (0, 50), false), Some(50));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Acknowledgements in any order, with bitmaps that may reach below packet number 0: the
        /// numbers in a bitmap that the previous one did not contain, the largest first.
        #[test]
        fn newly_reported_numbers_are_the_difference_of_two_bitmaps(
            start in prop_oneof![0u64..300, Just(1 << 32), Just(1 << 62), Just(u64::MAX)],
            acks in prop::collection::vec((
                prop_oneof![4 => -3i64..=3, 2 => -140i64..=140, 1 => any::<i64>()],
                prop_oneof![any::<u128>(), (0u32..128).prop_map(|bit| 1 << bit), Just(u128::MAX)],
            ), 1..20),
        ) {
            let mut reported = Reported::default();
            let (mut largest, mut known) = (start, BTreeSet::new());
            for (step, bitmap) in acks {
                largest = largest.saturating_add_signed(step);
                let bits = (0..128).filter(|bit| bitmap >> bit & 1 == 1);
                let named: BTreeSet<u64> = bits.filter_map(|bit| largest.checked_sub(bit)).collect();
                let newly: Vec<u64> =
                    reported.newly((PacketNumber::new(largest), bitmap)).collect();
                let expected: Vec<u64> = named.iter().rev().copied().filter(|n| !known.contains(n)).collect();
                prop_assert_eq!(newly, expected);
                known = named;
            }
        }
    }
}
