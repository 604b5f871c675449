//! Flows with a path policy: the path of each packet, and the reports to the policy.

use alloc::boxed::Box;

use apus_cc::{
    AlgorithmFactory, Allowance, Ev, Pacing, PathEvent, PathFeedback, PathPolicy, Sender,
    TimeoutEvent,
};
use apus_units::planted::{Bug, is_planted};
use apus_units::{PacketNumber, Time};
use apus_wire::{Ack, Attached, Body, Control, Header, Nack, Order, Segment};

use super::{Extra, Flow, RttSample};
use crate::config::EndpointConfig;
use crate::receive::{Arrival, Observed};
use crate::received::Recorded;
use crate::spread::{EvCounters, NextEv, Path, Spread};
use crate::streams::Finished;

impl<F: AlgorithmFactory> Flow<F> {
    /// Sets the state of a flow that spreads its packets.
    pub(crate) fn set_spread(&mut self, spread: Spread<F::Path>) {
        let control = self.extra.take().and_then(|extra| extra.control);
        self.extra = Some(Box::new(Extra { control, spread: Some(Box::new(spread)) }));
    }

    #[inline]
    pub(crate) fn is_spread(&self) -> bool {
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

    /// Returns the path of the data packet or request that was polled last.
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

    /// Returns the path that the flow has without a path policy.
    pub(crate) fn first_path(&self) -> Path {
        Path::Label(self.path_label)
    }

    /// Assigns an entropy value to the packet that was just polled; a retransmission gets a new one
    /// too.
    #[inline(never)] // flows with one path do not need it
    pub(crate) fn choose_path(&mut self, now: Time) {
        let cwnd = self.algorithm.allowance().window;
        let Some(spread) = self.spread_mut() else { return };
        let ev = spread.chosen.take().unwrap_or_else(|| spread.policy.next(now, cwnd));
        spread.latest = ev;
        if let Some(counters) = spread.counters_of(ev) {
            counters.sent += 1;
        }
        self.send.note_ev(ev);
    }

    /// Replaces the entropy value that the policy chose for a packet that was just polled.
    pub(crate) fn replace_ev(&mut self, seq: PacketNumber, ev: Ev) {
        let Some(before) = self.send.replace_ev(seq, ev) else { return };
        let Some(spread) = self.spread_mut() else { return };
        spread.latest = ev;
        if let Some(counters) = spread.counters_of(before) {
            counters.sent -= 1;
        }
        if let Some(counters) = spread.counters_of(ev) {
            counters.sent += 1;
        }
    }

    /// Starts counting packets by their entropy value modulo `values`.
    pub(crate) fn count_evs(&mut self, values: usize) {
        if let Some(spread) = self.spread_mut() {
            spread.counters = alloc::vec![EvCounters::default(); values].into();
        }
    }

    /// Makes late packets count as marked.
    pub(crate) fn mark_late(&mut self) {
        if let Some(spread) = self.spread_mut() {
            spread.late_is_marked = true;
        }
    }

    /// Resets the count of failures of an entropy value.
    pub(crate) fn forgive(&mut self, ev: Ev) {
        if let Some(counters) = self.spread_mut().and_then(|spread| spread.counters_of(ev)) {
            counters.failures = 0;
        }
    }

    /// Returns the entropy value of a packet and the time at which it left, while it is recorded.
    pub(crate) fn sent_by(&mut self, seq: PacketNumber) -> Option<(Ev, Time)> {
        if self.is_spread() { self.send.sent_by(seq) } else { None }
    }

    /// Returns the counters by entropy value.
    pub(crate) fn ev_counters(&self) -> &[EvCounters] {
        self.spread().map_or(&[], |spread| &spread.counters)
    }

    /// Returns `true` if an acknowledgement must leave before packet `seq`, which arrived by
    /// `path`, is handled.
    #[inline]
    pub(crate) fn must_ack_before(&self, seq: PacketNumber, path: u32) -> bool {
        self.in_acks && self.spread().is_some_and(|spread| spread.exceeds_word(seq.get(), path))
    }

    /// Returns the entropy value of the next packet, which the policy chooses now; `None` if the flow has no policy.
    pub(crate) fn next_ev(&mut self, now: Time) -> Option<NextEv<'_>> {
        let cwnd = self.algorithm.allowance().window;
        let spread = self.spread_mut()?;
        let ev = *spread.chosen.get_or_insert_with(|| spread.policy.next(now, cwnd));
        Some(NextEv { ev, may_move: spread.policy.sprays(), failing: &spread.failing })
    }

    /// Replaces the entropy value that the policy chose for the next packet.
    pub(crate) fn set_next_ev(&mut self, ev: Ev) {
        if let Some(spread) = self.spread_mut() {
            spread.chosen = Some(ev);
        }
    }

    /// Sets the number of ports and the number of pairs of ports.
    pub(crate) fn set_ports(&mut self, ports: u32, pairs: usize) {
        if let Some(spread) = self.spread_mut() {
            spread.ports = ports;
            spread.failing = alloc::vec![false; pairs].into();
        }
    }

    /// Attaches the credit to a data packet that was just polled, and chooses its path. Returns
    /// `true` if switches may mark it for the policy.
    #[inline(never)] // most flows have neither
    pub(super) fn attach(&mut self, now: Time, segment: &mut Segment) -> bool {
        segment.attached = self.take_credit().map(Attached::Credit);
        if self.is_spread() {
            self.choose_path(now);
        }
        self.spread().is_some_and(|spread| spread.markable)
    }

    /// Returns the order fields of data packet `seq`, once the algorithm has counted it. The packet
    /// requests an immediate acknowledgement if the window, the range of packet numbers or the data
    /// ends with it, or if it is a retransmission (uet-htsim 40ccb05, `sendNewPacket` and
    /// `sendRtxPacket`).
    #[inline(never)] // flows with one path do not need it
    pub(super) fn order_of_data(&self, seq: PacketNumber) -> Option<Attached> {
        let waits = self.send.is_resent(seq) || !self.send.has_data() || !self.may_go_on();
        self.order(seq, waits)
    }

    /// Returns `true` if the window and the range of packet numbers admit another packet.
    fn may_go_on(&self) -> bool {
        self.algorithm.allowance().admits(self.send.data_in_flight()) && self.is_within_range()
    }

    /// Returns `false` if the next packet would make the receiver forget the oldest packet in
    /// flight.
    #[inline]
    pub(super) fn is_within_range(&self) -> bool {
        self.spread()
            .is_none_or(|spread| self.send.range_in_flight() < u64::from(spread.config.range))
    }

    /// Limits the number of records of packets that are not in flight. If the range of packet
    /// numbers is full, its start moves to the oldest packet in flight. An acknowledgement also
    /// moves the start. But none arrives if all packets before that one arrived trimmed, are
    /// requests whose answers arrived, or never left.
    #[inline]
    pub(crate) fn free_settled(&mut self) {
        if !self.is_spread() {
            self.send.free_settled();
        } else if !self.is_within_range() && !is_planted(Bug::RangeStays) {
            self.pass_settled();
        }
    }

    #[cold]
    fn pass_settled(&mut self) {
        if let Some(spread) = self.extra.as_mut().and_then(|extra| extra.spread.as_mut()) {
            self.send.pass_settled(&mut spread.losses);
        }
    }

    /// Returns `true` if a request may leave. Requests are limited by the range of packet numbers,
    /// but not by window or pacing.
    #[inline]
    pub(crate) fn may_request(&self) -> bool {
        self.send.has_request() && self.is_within_range()
    }

    /// Returns the order fields of a data packet of a flow that spreads its packets; `waits`
    /// requests an immediate acknowledgement.
    pub(super) fn order(&self, seq: PacketNumber, waits: bool) -> Option<Attached> {
        let behind = seq.get() - self.send.loss_floor();
        let awaited_behind = u16::try_from(behind).unwrap_or(u16::MAX);
        Some(Attached::Order(Order { awaited_behind, ack_now: waits }))
    }

    /// Returns `true` if a recorded data packet requires an acknowledgement now.
    #[inline]
    pub(crate) fn acks_now(&mut self, segment: &Segment, arrival: &Arrival, is_new: bool) -> bool {
        let Some(spread) = self.spread_mut() else { return true };
        let Some(Attached::Order(order)) = segment.attached else { return true };
        let is_complete = || spread.received.is_complete();
        let seen = (is_new, arrival.marked);
        spread.acks.on_packet(segment.length, seen, order, is_complete)
    }

    /// Records that packet `seq` arrived without its payload, which will be sent under another
    /// number.
    pub(crate) fn note_trimmed(&mut self, seq: PacketNumber) {
        if let Some(spread) = self.spread_mut() {
            spread.received.note_trimmed(seq);
        }
    }

    /// Returns `true` if packet `seq` was received, as far as that is known.
    pub(crate) fn has_packet(&self, seq: PacketNumber) -> bool {
        match self.spread() {
            Some(spread) => spread.received.contains(seq),
            None => self.receive.has_packet(seq),
        }
    }

    /// Records a data packet of the peer; `false` if it is a duplicate.
    #[inline]
    pub(crate) fn record(
        &mut self,
        (seq, attached): (PacketNumber, Option<Attached>),
        arrival: &Arrival,
        observed: &Observed<'_>,
    ) -> bool {
        let Some(spread) = self.spread_mut() else {
            return self.receive.record(seq, arrival, observed);
        };
        let recorded = spread.received.record(seq);
        if let Some(Attached::Order(order)) = attached {
            let awaited = seq.get().saturating_sub(order.awaited_behind.into());
            spread.received.give_up_below(awaited);
        }
        if recorded == Recorded::New {
            spread.came_by = observed.path;
            spread.note_unacknowledged(seq.get());
        }
        self.receive.record_known(recorded, seq, arrival, observed)
    }

    /// Returns the acknowledgement that is due.
    #[inline]
    pub(crate) fn ack(&mut self, now: Time) -> Option<(PacketNumber, Ack)> {
        let (seq, mut ack) = self.receive.ack(now)?;
        if let Some(spread) = self.spread_mut() {
            spread.unacknowledged = None;
            (ack.largest, ack.bitmap) = spread.received.word(ack.echo);
            ack.missing = Some(spread.received.missing(ack.largest));
        }
        Some((seq, ack))
    }

    /// Processes an acknowledgement like [`Flow::on_ack`], and also reports it to the policy.
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
        let cwnd = self.algorithm.allowance().window;
        let losses = (&mut spread.losses, cwnd);
        let outcome = self.send.on_spread_ack(now, ack, losses, &mut finish);
        let marked = self.newly_marked(ack.marked);
        let sample = outcome.echo_sent_at.map(|sent_at| {
            let arrival = (arrival, observed);
            self.on_sample(arrival, ack, sent_at, marked, &outcome, config)
        });
        self.on_lost(now, &outcome);
        self.connecting &= self.send.ops_under_way() > 0;
        if let (Some(ev), Some(sample)) = (ev, sample) {
            let late = spread.late_is_marked
                && self
                    .algorithm
                    .snapshot()
                    .target_delay
                    .is_some_and(|target| sample.fabric_rtt > target);
            let kind = match ack.echo_marked || late {
                true => PathFeedback::Marked,
                false => PathFeedback::Good,
            };
            let mut event = self.report(now, ev, kind);
            event.acked_packets = outcome.newly_acked;
            event.marked_packets = if late { u32::MAX } else { marked }.min(outcome.newly_acked);
            (event.rtt, event.fabric_delay) = (sample.end_to_end_rtt, sample.fabric_rtt);
            spread.report(&event);
        }
        let mut lost = core::mem::take(&mut spread.losses.lost);
        for ev in lost.drain(..) {
            spread.report(&self.report(now, ev, PathFeedback::Lost));
        }
        spread.losses.lost = lost; // keeps its memory for reuse
        if self.send.in_flight == 0 && !self.send.has_data() {
            spread.policy.on_idle(now);
        }
        if let Some(extra) = &mut self.extra {
            extra.spread = Some(spread);
        }
        sample
    }

    /// Returns the probe that is due.
    pub(crate) fn poll_probe(&mut self, now: Time) -> Option<Header> {
        let in_flight = self.send.in_flight > 0;
        let number = self.spread_mut()?.losses.take_probe(now, in_flight)?;
        let cwnd = self.algorithm.allowance().window;
        let spread = self.spread_mut()?;
        spread.latest = spread.policy.next(now, cwnd);
        let seq = self.receive.next_control();
        Some(Header { flow: self.peer, seq, body: Body::Control(Control::Probe { number }) })
    }

    /// Handles the answer to a probe; `false` if the flow sends none.
    pub(crate) fn on_probe_answer(&mut self, now: Time, number: u32) -> bool {
        let cwnd = self.algorithm.allowance().window;
        let Some(spread) = self.extra.as_mut().and_then(|extra| extra.spread.as_mut()) else {
            return false;
        };
        let outcome = self.send.on_probe_answer(now, number, (&mut spread.losses, cwnd));
        self.on_lost(now, &outcome);
        self.report_lost_paths(now, PathFeedback::Lost);
        true
    }

    /// Reports the packets that were just declared lost to the policy.
    fn report_lost_paths(&mut self, now: Time, kind: PathFeedback) {
        let Some(spread) = self.spread_mut() else { return };
        let mut lost = core::mem::take(&mut spread.losses.lost);
        for ev in lost.drain(..) {
            let event = self.report(now, ev, kind);
            if let Some(spread) = self.spread_mut() {
                spread.report(&event);
            }
        }
        if let Some(spread) = self.spread_mut() {
            spread.losses.lost = lost; // keeps its memory for reuse
        }
    }

    /// Handles the expiry of a timeout.
    #[cold]
    pub(super) fn on_spread_timeout(&mut self, now: Time, config: &EndpointConfig) {
        let rto = self.algorithm.rto();
        let Some(spread) = self.extra.as_mut().and_then(|extra| extra.spread.as_mut()) else {
            return;
        };
        if !spread.losses.times_packets() {
            self.report_timeout(now);
            return self.on_timeout_of_all(now, config);
        }
        let (lost, largest) = self.send.on_packet_timeouts(now, rto, &mut spread.losses);
        if lost == 0 {
            return; // the timeout has become longer since it was armed
        }
        let mut event = TimeoutEvent::new(now);
        (event.lost_packets, event.next_seq) = (lost, self.send.next_seq());
        event.is_same_flight = largest < spread.timed_out_below;
        if !event.is_same_flight {
            // Not after a timeout of the same flight: the retransmissions of that timeout are a
            // flight of their own.
            spread.timed_out_below = event.next_seq;
        }
        self.report_lost_paths(now, PathFeedback::Timeout);
        self.algorithm.on_timeout(&event);
        self.send.back_off(self.algorithm.allowance().window, config);
    }

    /// Reports the timeout of the oldest packet in flight to the policy.
    #[cold]
    fn report_timeout(&mut self, now: Time) {
        let oldest = self.send.oldest_in_flight();
        let ev = oldest.and_then(|seq| self.send.ev(seq));
        if let Some(ev) = ev {
            let event = self.report(now, ev, PathFeedback::Timeout);
            if let Some(spread) = self.spread_mut() {
                spread.report(&event);
            }
        }
    }

    /// Reports to the path policy that a packet arrived trimmed.
    pub(super) fn report_trim(&mut self, now: Time, nack: &Nack) {
        if self.spread().is_some_and(|spread| spread.losses.times_packets()) {
            // The floor may be far below the oldest packet in flight if no acknowledgement has
            // moved it for long.
            self.pass_settled();
            self.send.time_oldest(now);
        }
        let Some(ev) = self.send.ev(nack.packet) else { return };
        let kind =
            if nack.last_hop { PathFeedback::TrimmedAtLastHop } else { PathFeedback::Trimmed };
        let event = self.report(now, ev, kind);
        if let Some(spread) = self.spread_mut() {
            spread.report(&event);
        }
    }

    /// Returns a report on the path of one packet, with the state of the flow.
    fn report(&self, now: Time, ev: Ev, kind: PathFeedback) -> PathEvent {
        let mut event = PathEvent::new(now, ev, kind);
        event.cwnd = self.window_of_round();
        event.rto = self.algorithm.rto();
        event
    }

    /// Returns the window that one round of the policy acknowledges. Algorithms that decide on each
    /// packet or have a rate report their own window; what they allow is the next packet, or any
    /// number of packets.
    fn window_of_round(&self) -> f64 {
        let Allowance { window, pacing } = self.algorithm.allowance();
        match pacing {
            Pacing::AckClocked | Pacing::Delay(_) => window,
            Pacing::Rate(_) if window.is_finite() => window,
            _ => self.algorithm.snapshot().cwnd,
        }
    }
}
