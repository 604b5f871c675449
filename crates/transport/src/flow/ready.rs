//! Readiness of a flow: whether and when it may send data, and when it must be evaluated again.

use apus_cc::{AlgorithmFactory, Allowance, Departure, Outlook, Pacing, Sender};
use apus_units::{Bytes, Rate, Span, Time};

use super::{Flow, Silence, Waiting};
use crate::config::EndpointConfig;

/// Whether and when a flow can send data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// The flow can send now.
    Ready,
    /// The flow can send at this time (pacing).
    At(Time),
    /// The flow has no data, or its window is full.
    Waiting,
}

impl Readiness {
    /// Returns the time at which a paced flow can send; [`Time::MAX`] if pacing does not delay it.
    #[inline]
    fn at(self) -> Time {
        match self {
            Self::At(at) => at,
            Self::Ready | Self::Waiting => Time::MAX,
        }
    }
}

impl<F: AlgorithmFactory> Flow<F> {
    /// Returns whether and when the flow may send data.
    #[inline(always)]
    pub(crate) fn readiness(&mut self, now: Time, config: &EndpointConfig) -> Readiness {
        if !self.send.has_data() {
            self.algorithm.on_idle(now);
            return Readiness::Waiting;
        }
        let readiness = match self.allowed(now, &self.algorithm.allowance()) {
            Some(readiness) => readiness,
            None => self.algorithm.departure(now, self.send.data_in_flight()).into(),
        };
        self.limited(now, readiness, config)
    }

    /// Returns whether and when the flow may send data, like [`Flow::readiness`], and the outlook of its
    /// algorithm.
    #[inline(always)]
    pub(crate) fn outlook(&mut self, now: Time, config: &EndpointConfig) -> (Readiness, Outlook) {
        if !self.send.has_data() {
            self.algorithm.on_idle(now);
            return (Readiness::Waiting, self.algorithm.outlook());
        }
        let outlook = self.algorithm.outlook();
        match self.allowed(now, &outlook.allowance) {
            Some(readiness) => (self.limited(now, readiness, config), outlook),
            None => {
                let readiness = self.algorithm.departure(now, self.send.data_in_flight()).into();
                (self.limited(now, readiness, config), self.algorithm.outlook())
            }
        }
    }

    /// Applies [`EndpointConfig::flow_rate`], the range of packet numbers and the wait for a
    /// timeout to a readiness.
    #[inline(always)]
    fn limited(&self, now: Time, readiness: Readiness, config: &EndpointConfig) -> Readiness {
        if self.send.waits_for_timeout() || !self.is_within_range() {
            return Readiness::Waiting;
        }
        let Some(rate) = config.flow_rate else { return readiness };
        let rate = self.spread().map_or(rate, |spread| rate.saturating_mul(spread.ports.into()));
        match (readiness, self.sent_behind(rate)) {
            (Readiness::Ready, Some(at)) if at > now => Readiness::At(at),
            _ => readiness,
        }
    }

    /// Returns the time at which `rate` permits another data packet.
    fn sent_behind(&self, rate: Rate) -> Option<Time> {
        let bytes = Bytes::new(u64::from(self.send.last_sent_bytes));
        Some(self.send.last_sent_at()?.saturating_add(rate.serialization_time(bytes)))
    }

    /// Returns the readiness of a flow with data according to the window and pace of the algorithm;
    /// `None` if the sender half decides ([`Pacing::Own`]).
    #[inline(always)]
    fn allowed(&self, now: Time, allowance: &Allowance) -> Option<Readiness> {
        if matches!(allowance.pacing, Pacing::Own { .. }) {
            return None;
        }
        if !allowance.admits(self.send.data_in_flight()) {
            return Some(Readiness::Waiting);
        }
        // The pace counts from the previous transmission, so that the period is rtt/cwnd (Swift
        // Alg. 1 l. 30).
        let paced_until = match allowance.pacing {
            Pacing::AckClocked | Pacing::Own { .. } => return Some(Readiness::Ready),
            Pacing::Credits if self.has_credit() => return Some(Readiness::Ready),
            Pacing::Credits => return Some(Readiness::Waiting),
            Pacing::Delay(gap) => self.send.last_sent_at().map(|last| last.saturating_add(gap)),
            Pacing::Rate(rate) => self.sent_behind(rate),
        };
        Some(match paced_until {
            Some(at) if at > now => Readiness::At(at),
            _ => Readiness::Ready,
        })
    }

    /// Returns the current retransmission timeout.
    fn rto(&self) -> Span {
        self.send.backed_off(self.algorithm.rto())
    }

    /// Returns when the retransmission timeout expires, if any packet is in flight.
    #[inline]
    pub(crate) fn timeout_at(&self) -> Option<Time> {
        (self.send.in_flight > 0).then(|| self.send.progress_at.saturating_add(self.rto()))
    }

    /// Returns the state of the flow, if it has outstanding ops.
    pub(crate) fn waiting(&self, now: Time) -> Option<Waiting> {
        let ops = self.send.ops_under_way();
        let readiness = match self.allowed(now, &self.algorithm.allowance()) {
            _ if !self.send.has_data() || self.send.waits_for_timeout() => Readiness::Waiting,
            Some(readiness) => readiness,
            None => self.algorithm.clone().departure(now, self.send.data_in_flight()).into(),
        };
        let next_packet = match readiness {
            Readiness::Ready => Some(now),
            Readiness::At(at) => Some(at),
            Readiness::Waiting => None,
        };
        (ops > 0).then(|| Waiting {
            ops,
            cwnd: self.algorithm.allowance().window,
            in_flight: self.send.in_flight,
            next_packet,
            timeout: self.timeout_at(),
            needs_credit: self.algorithm.allowance().pacing == Pacing::Credits
                && self.send.has_data()
                && !self.has_credit(),
        })
    }

    /// Returns how long the flow has received nothing from its peer, if it has outstanding ops.
    pub(crate) fn silence(&self) -> Option<Silence> {
        let (since, timeouts_in_a_row) = self.send.silence()?;
        let gap = self.algorithm.snapshot().pacing_delay.unwrap_or(Span::ZERO);
        Some(Silence { since, timeouts_in_a_row, rto: self.rto(), gap })
    }

    /// Returns the earliest time at which the flow, in this state of readiness, needs an update.
    #[inline]
    pub(crate) fn next_timer(
        &self,
        readiness: Readiness,
        outlook: &Outlook,
        config: &EndpointConfig,
    ) -> Time {
        let timeout = match self.send.in_flight {
            0 => Time::MAX,
            _ => self.send.progress_at.saturating_add(self.send.backed_off(outlook.rto)),
        };
        let give_up = self.give_up_at(config).unwrap_or(Time::MAX);
        let (control, algorithm) = match self.in_controls {
            false => (self.next_control(), outlook.next_timer),
            // A due control packet is already queued for a poll, and the algorithm is not asked for
            // another one before that poll. Its timer may be due, but cannot move.
            true if self.has_pending_control() => (Time::MAX, Time::MAX),
            true => (Time::MAX, outlook.next_timer),
        };
        readiness.at().min(algorithm).min(timeout).min(give_up).min(control)
    }

    /// Returns the part of [`Flow::next_timer`] that the departure of a data packet may change: the
    /// time of the next packet and the algorithm's timer.
    #[inline]
    pub(crate) fn next_timer_of_pace(&self, readiness: Readiness) -> Time {
        readiness.at().min(self.algorithm.next_timer().unwrap_or(Time::MAX))
    }

    /// Returns the time at which the flow is given up if none of the packets due from the peer
    /// arrives.
    #[inline]
    pub(crate) fn give_up_at(&self, config: &EndpointConfig) -> Option<Time> {
        let after = config.give_up_after?;
        Some(self.send.waiting_since()?.saturating_add(after))
    }
}

impl From<Departure> for Readiness {
    #[inline]
    fn from(departure: Departure) -> Self {
        match departure {
            Departure::Now => Self::Ready,
            Departure::At(at) => Self::At(at),
            Departure::Blocked => Self::Waiting,
        }
    }
}
