//! Reports of acknowledgements, losses, signals and timeouts from a flow to its algorithm.

use apus_cc::{
    AckEvent, AlgorithmFactory, LossEvent, Sender, SignalEvent, TimeoutEvent, TrimEvent,
};
use apus_units::{Bytes, PacketNumber, Span, Time};
use apus_wire::{Ack, Nack, Signal, rate_of_code};

use super::{Flow, RttSample};
use crate::config::{EndpointConfig, LocalRx};
use crate::endpoint::Handled;
use crate::receive::{Arrival, Observed};
use crate::send::{AckOutcome, Resend};
use crate::streams::Finished;

/// Maximum nanoseconds between the timestamp in a packet's header and its recorded departure. The
/// UDP runtime records the departure of a burst separately; in the simulator both times are equal.
/// deviation: no source; 1 ms is far above the duration of a burst, and a forged signal that names
/// a packet in flight has one chance in 4000.
const MAX_STAMP_TO_DEPARTURE_NS: u32 = 1 << 20;

impl<F: AlgorithmFactory> Flow<F> {
    /// Processes an acknowledgement and passes it to the algorithm; calls `finish` for each op that
    /// ends.
    #[inline]
    pub(crate) fn on_ack(
        &mut self,
        (arrival, observed): (&Arrival, &Observed<'_>),
        ack: &Ack,
        config: &EndpointConfig,
        finish: impl FnMut(Finished),
    ) -> Option<RttSample> {
        if self.is_spread() {
            return self.on_spread_ack((arrival, observed), ack, config, finish);
        }
        let outcome = self.send.on_ack(arrival.now, ack, config, finish);
        let marked = self.newly_marked(ack.marked);
        let sample = outcome.echo_sent_at.map(|sent_at| {
            let arrival = (arrival, observed);
            self.on_sample(arrival, ack, sent_at, marked, &outcome, config)
        });
        self.on_lost(arrival.now, &outcome);
        self.connecting &= self.send.ops_under_way() > 0;
        sample
    }

    /// Reports lost packets to the algorithm, if there are any.
    #[inline]
    pub(crate) fn on_lost(&mut self, now: Time, outcome: &AckOutcome) {
        if outcome.lost > 0 {
            self.report_lost(now, outcome);
        }
    }

    #[cold]
    fn report_lost(&mut self, now: Time, outcome: &AckOutcome) {
        let mut event = LossEvent::new(now, outcome.lost);
        event.lost_seq = outcome.lost_seq;
        event.next_seq = self.send.next_seq();
        event.in_flight = self.send.data_in_flight();
        self.algorithm.on_loss(&event);
    }

    /// Passes an acknowledgement to the algorithm; its echoed packet was sent at `sent_at` (t1).
    #[inline]
    pub(crate) fn on_sample(
        &mut self,
        (arrival, observed): (&Arrival, &Observed<'_>),
        ack: &Ack,
        sent_at: Time,
        marked: u32,
        outcome: &AckOutcome,
        config: &EndpointConfig,
    ) -> RttSample {
        let rtt = arrival.now.since(sent_at);
        let local = arrival.now.since(arrival.nic_received_at);
        let (counted, ignored) = match config.local_rx_delay {
            LocalRx::Endpoint => (local, Span::ZERO),
            LocalRx::Fabric => (Span::ZERO, Span::ZERO),
            LocalRx::Ignored => (Span::ZERO, local),
        };
        // Swift §3.3. The clocks of two hosts differ, and converting between them has errors (App.
        // A), so the sum of the parts may slightly exceed the whole.
        let endpoint_delay = (ack.remote_queuing + counted).min(rtt);
        let fabric_delay = rtt - (endpoint_delay + ignored).min(rtt);
        let mut event = AckEvent::new(arrival.now, rtt);
        event.fabric_delay = fabric_delay;
        event.endpoint_delay = endpoint_delay;
        event.hops = ack.hops;
        event.acked_packets = outcome.newly_acked;
        event.acked_bytes = Bytes::new(outcome.newly_acked_bytes);
        event.marked_packets = marked.min(outcome.newly_acked);
        event.echo_marked = ack.echo_marked;
        event.receiver_level = ack.receiver_level;
        event.acked_seq = ack.largest;
        event.next_seq = self.send.next_seq();
        event.in_flight = self.send.data_in_flight();
        event.fields = observed.fields;
        event.telemetry = observed.telemetry;
        if !self.connecting {
            self.algorithm.on_ack(&event);
        }
        RttSample { end_to_end_rtt: rtt, fabric_rtt: fabric_delay, endpoint_delay }
    }

    /// Handles a switch's signal of the congestion on the path of packet `seq`. Returns `false`,
    /// without effect, if the packet is not in flight, left at another time, or has already been
    /// signalled.
    pub(crate) fn on_signal(
        &mut self,
        arrival: &Arrival,
        seq: PacketNumber,
        signal: &Signal,
    ) -> bool {
        let Some(sent_at) = self.send.take_signal(seq) else { return false };
        let left = (sent_at.since(Time::ZERO).as_ps() / 1_000) as u32; // modulo 2^32 by intent
        let Some(link_rate) = rate_of_code(signal.link_rate) else { return false };
        if left.wrapping_sub(signal.sent) > MAX_STAMP_TO_DEPARTURE_NS {
            return false; // a forged signal must also name the departure time
        }
        self.send.note_signal(seq);
        let mut event = SignalEvent::new(arrival.now, arrival.nic_received_at.since(sent_at), seq);
        event.queue = Bytes::new(u64::from(signal.queue));
        event.link_rate = link_rate;
        event.in_flight = self.send.data_in_flight();
        self.algorithm.on_signal(&event);
        true
    }

    /// Handles the peer's report that a packet arrived trimmed. Its payload is retransmitted before
    /// new data, as the window permits; after too many round trips with only trimmed packets, it is
    /// retransmitted after the timeout. Has no effect if the packet is not in flight.
    pub(crate) fn on_nack(&mut self, now: Time, nack: &Nack, config: &EndpointConfig) -> Handled {
        let payload = match self.send.on_trimmed(now, nack.packet, config) {
            Resend::NotInFlight => return Handled::Nack { outstanding: false },
            // The algorithm learns of it from the timeout.
            Resend::AtTimeout => {
                self.report_trim(now, nack);
                return Handled::Nack { outstanding: true };
            }
            Resend::Now { payload } => payload,
        };
        let mut event = TrimEvent::new(now, nack.packet);
        event.payload = Bytes::new(u64::from(payload));
        (event.last_hop, event.marked) = (nack.last_hop, nack.marked);
        event.next_seq = self.send.next_seq();
        event.in_flight = self.send.data_in_flight();
        self.algorithm.on_trim(&event);
        if self.is_spread() {
            self.report_trim(now, nack);
        }
        Handled::Nack { outstanding: true }
    }

    /// Returns the number of marks that the peer has counted since the newest acknowledgement
    /// before this one. The count only grows, so an overtaken acknowledgement has a smaller count,
    /// whose marks are already included.
    pub(crate) fn newly_marked(&mut self, marked: u32) -> u32 {
        let new = marked.wrapping_sub(self.marked);
        if new > u32::MAX / 2 {
            return 0;
        }
        self.marked = marked;
        new
    }

    /// Handles the expiry of the retransmission timeout.
    pub(crate) fn on_timeout(&mut self, now: Time, config: &EndpointConfig) {
        if self.is_spread() {
            return self.on_spread_timeout(now, config);
        }
        self.on_timeout_of_all(now, config);
    }

    /// Declares everything in flight lost.
    pub(super) fn on_timeout_of_all(&mut self, now: Time, config: &EndpointConfig) {
        let lost_packets = self.send.data_in_flight();
        self.send.on_timeout(now, self.algorithm.rto(), config.recovery);
        let mut event = TimeoutEvent::new(now);
        event.lost_packets = lost_packets;
        event.next_seq = self.send.next_seq();
        self.algorithm.on_timeout(&event);
        self.send.back_off(self.algorithm.allowance().window, config);
    }
}

#[cfg(test)]
mod tests {
    use apus_algorithms::{AlgorithmConfig, build};
    use apus_cc::FlowInfo;
    use apus_units::FlowId;
    use proptest::prelude::*;

    use super::*;

    /// The largest number of marks between two acknowledgements: serial numbers of 32 bits (RFC 1982).
    const MOST: u32 = u32::MAX / 2;

    /// Returns a flow whose peer has counted `marked` marks.
    fn flow(marked: u32) -> Flow<AlgorithmConfig> {
        let algorithm = build("constant", None, &[]).expect("constant");
        let info = FlowInfo::default();
        let (sender, receiver) = (algorithm.sender(&info), algorithm.receiver(&info));
        let mut flow = Flow::new(FlowId::new(0), sender, receiver, 1_000);
        flow.marked = marked;
        flow
    }

    /// Every number of marks, at and around its limits, from counts on both sides of 2^32.
    #[test]
    fn newly_marked_counts_up_to_half_of_the_range_across_2_to_the_32() {
        let counts = [0, 1, MOST - 1, MOST, MOST + 1, u32::MAX - 1, u32::MAX];
        for before in counts {
            for new in counts {
                let mut flow = flow(before);
                let after = before.wrapping_add(new);
                // Larger differences are those of an acknowledgement that was overtaken.
                let expected = if new <= MOST { new } else { 0 };
                assert_eq!(flow.newly_marked(after), expected, "{before} and {new} more");
                assert_eq!(flow.newly_marked(after), 0, "the same count again");
                assert_eq!(flow.marked, if new <= MOST { after } else { before });
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// The peer counts with 64 bits here. Acknowledgements contain the lower 32 bits, and some
        /// are overtaken by others. Each mark counts once, with the first acknowledgement after it.
        #[test]
        fn newly_marked_counts_each_mark_once(
            start in prop_oneof![
                any::<u32>().prop_map(u64::from),
                (1u64 << 32) - 1_000..1 << 32,
            ],
            steps in prop::collection::vec(prop_oneof![8 => -50i64..100, 1 => 0..i64::from(MOST)], 1..100),
        ) {
            let mut flow = flow(start as u32);
            let mut newest = start;
            for step in steps {
                let marked = newest.saturating_add_signed(step);
                let expected = marked.saturating_sub(newest);
                prop_assert_eq!(u64::from(flow.newly_marked(marked as u32)), expected);
                newest = newest.max(marked);
            }
        }
    }
}
