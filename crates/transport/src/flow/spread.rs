//! A flow with a path policy: which path each packet takes, and what the policy learns.

use alloc::boxed::Box;

use apus_cc::{AlgorithmFactory, Ev, PathEvent, PathFeedback, PathPolicy, Sender};
use apus_units::{PacketNumber, Time};
use apus_wire::{Ack, Nack};

use super::{Extra, Flow, RttSample};
use crate::config::EndpointConfig;
use crate::receive::{Arrival, Observed};
use crate::received::Recorded;
use crate::spread::{Path, Spread};
use crate::streams::Finished;

impl<F: AlgorithmFactory> Flow<F> {
    /// Lets the flow spread its packets.
    pub(crate) fn set_spread(&mut self, spread: Spread<F::Path>) {
        let control = self.extra.take().and_then(|extra| extra.control);
        self.extra = Some(Box::new(Extra { control, spread: Some(Box::new(spread)) }));
    }

    #[inline]
    pub(super) fn is_spread(&self) -> bool {
        self.spread().is_some()
    }

    #[inline]
    pub(super) fn spread(&self) -> Option<&Spread<F::Path>> {
        self.extra.as_ref()?.spread.as_deref()
    }

    #[inline]
    fn spread_mut(&mut self) -> Option<&mut Spread<F::Path>> {
        self.extra.as_mut()?.spread.as_deref_mut()
    }

    /// Returns `true` if the algorithm sends control packets.
    #[inline]
    pub(crate) fn has_control(&self) -> bool {
        self.extra.as_ref().is_some_and(|extra| extra.control.is_some())
    }

    /// Returns the path of the data packet or request that was taken last.
    #[inline]
    pub(crate) fn path(&self) -> Path {
        match self.spread() {
            None => Path::Label(self.path_label),
            Some(spread) => Path::Spread(spread.latest),
        }
    }

    /// Returns the path of acknowledgements and other answers.
    #[inline]
    pub(crate) fn path_back(&self) -> Path {
        match self.spread() {
            None => Path::Label(self.path_label),
            Some(spread) => Path::Back(spread.came_by),
        }
    }

    /// Gives the packet that was just taken an entropy value; retransmissions get a new one too.
    #[inline(never)] // flows with one path do not need it
    pub(crate) fn choose_path(&mut self, now: Time) {
        let cwnd = self.algorithm.allowance().window;
        let Some(spread) = self.spread_mut() else { return };
        let ev = spread.policy.next(now, cwnd);
        spread.latest = ev;
        self.send.note_ev(ev);
    }

    /// Records a data packet of the peer; `false` if it is a duplicate.
    #[inline]
    pub(crate) fn record(
        &mut self,
        seq: PacketNumber,
        arrival: &Arrival,
        observed: &Observed<'_>,
    ) -> bool {
        let Some(spread) = self.spread_mut() else {
            return self.receive.record(seq, arrival, observed);
        };
        let recorded = spread.received.record(seq);
        if recorded == Recorded::New {
            spread.came_by = observed.path;
        }
        self.receive.record_known(recorded, seq, arrival, observed)
    }

    /// Returns the acknowledgement that is due.
    #[inline]
    pub(crate) fn ack(&mut self, now: Time) -> Option<(PacketNumber, Ack)> {
        let (seq, mut ack) = self.receive.ack(now)?;
        if let Some(spread) = self.spread() {
            (ack.largest, ack.bitmap) = spread.received.word(ack.echo);
        }
        Some((seq, ack))
    }

    /// Processes an acknowledgement like [`Flow::on_ack`], and passes it to the policy too.
    #[inline(never)] // flows with one path do not need it
    pub(super) fn on_spread_ack(
        &mut self,
        (arrival, observed): (&Arrival, &Observed<'_>),
        ack: &Ack,
        config: &EndpointConfig,
        mut finish: impl FnMut(Finished),
    ) -> Option<RttSample> {
        let mut spread = self.extra.as_mut()?.spread.take()?;
        let now = arrival.now;
        let ev = self.send.ev(ack.echo);
        let losses = (&mut spread.reported, spread.config.loss, &mut spread.lost);
        let outcome = self.send.on_spread_ack(now, ack, losses, &mut finish);
        let marked = self.newly_marked(ack.marked);
        let sample = outcome.echo_sent_at.map(|sent_at| {
            let arrival = (arrival, observed);
            self.on_sample(arrival, ack, sent_at, marked, &outcome, config)
        });
        self.on_lost(now, &outcome);
        self.connecting &= self.send.ops_under_way() > 0;
        if let (Some(ev), Some(sample)) = (ev, sample) {
            let kind = if ack.echo_marked { PathFeedback::Marked } else { PathFeedback::Good };
            let mut event = self.report(now, ev, kind);
            event.acked_packets = outcome.newly_acked;
            event.marked_packets = marked.min(outcome.newly_acked);
            (event.rtt, event.fabric_delay) = (sample.end_to_end_rtt, sample.fabric_rtt);
            spread.policy.feedback(&event);
        }
        for ev in spread.lost.drain(..) {
            spread.policy.feedback(&self.report(now, ev, PathFeedback::Lost));
        }
        if self.send.in_flight == 0 && !self.send.has_data() {
            spread.policy.on_idle(now);
        }
        if let Some(extra) = &mut self.extra {
            extra.spread = Some(spread);
        }
        sample
    }

    /// Reports the timeout of the oldest packet in flight to the policy.
    #[cold]
    pub(super) fn report_timeout(&mut self, now: Time) {
        let oldest = self.send.oldest_in_flight();
        let ev = oldest.and_then(|seq| self.send.ev(seq));
        if let Some(ev) = ev {
            let event = self.report(now, ev, PathFeedback::Timeout);
            if let Some(spread) = self.spread_mut() {
                spread.policy.feedback(&event);
            }
        }
    }

    /// Tells the path policy that a packet arrived trimmed.
    #[inline]
    pub(super) fn report_trim(&mut self, now: Time, nack: &Nack) {
        if !self.is_spread() {
            return;
        }
        let Some(ev) = self.send.ev(nack.packet) else { return };
        let kind =
            if nack.last_hop { PathFeedback::TrimmedAtLastHop } else { PathFeedback::Trimmed };
        let event = self.report(now, ev, kind);
        if let Some(spread) = self.spread_mut() {
            spread.policy.feedback(&event);
        }
    }

    /// A report on the path of one packet, with the state of the flow.
    fn report(&self, now: Time, ev: Ev, kind: PathFeedback) -> PathEvent {
        let mut event = PathEvent::new(now, ev, kind);
        event.cwnd = self.algorithm.allowance().window;
        event.rto = self.algorithm.rto();
        event
    }
}
