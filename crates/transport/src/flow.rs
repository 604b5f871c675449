//! A flow: both directions between two endpoints, with one algorithm.

use alloc::boxed::Box;
use core::mem::offset_of;

use apus_cc::{
    AckEvent, AlgorithmFactory, Allowance, CongestionHeader, Departure, Ecn, LossEvent, Outlook,
    Pacing, Receiver, SendInfo, Sender, SignalEvent, TimeoutEvent, TrimEvent,
};
use apus_units::{Bytes, FlowId, PacketNumber, Rate, Span, Time, prefetch_range};
use apus_wire::{Ack, Body, Header, Nack, Segment, Signal, rate_of_code};

use crate::config::{EndpointConfig, LocalRx, Recovery};
use crate::control::ControlState;
use crate::endpoint::Handled;
use crate::receive::{Arrival, Observed, ReceiveSide};
use crate::send::{AckOutcome, SendSide};
use crate::spread::Spread;
use crate::streams::Finished;

mod spread;

/// Maximum nanoseconds between the timestamp in a packet's header and its recorded departure. The
/// UDP runtime records the departure of a burst separately; in the simulator both times are equal.
/// deviation: no source; 1 ms is far above the duration of a burst, and a forged signal that names
/// a packet in flight has one chance in 4000.
const MAX_STAMP_TO_DEPARTURE_NS: u32 = 1 << 20;

/// When a flow can send data.
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
    /// Returns the time for which a paced packet waits; [`Time::MAX`] without one.
    #[inline]
    fn at(self) -> Time {
        match self {
            Self::At(at) => at,
            Self::Ready | Self::Waiting => Time::MAX,
        }
    }
}

/// Delays of one acknowledged packet (Swift Fig. 2), for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttSample {
    /// t6 - t1.
    pub end_to_end_rtt: Span,
    /// End-to-end RTT minus endpoint delay: NIC to NIC.
    pub fabric_rtt: Span,
    /// `remote_queuing` + (t6 - t5).
    pub endpoint_delay: Span,
}

/// Counts of a flow since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounters {
    /// Data packets sent, retransmissions included.
    pub packets_sent: u64,
    /// Data packets declared lost from the SACK bitmap.
    pub fast_losses: u64,
    /// Data packets declared lost by a timeout.
    pub timeout_losses: u64,
    /// Retransmission timeouts that expired.
    pub timeouts: u64,
    /// Data packets that switches trimmed, by the peer's negative acknowledgements.
    pub trims: u64,
}

impl FlowCounters {
    /// Returns what was counted since `earlier` counters of the same flow.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            packets_sent: self.packets_sent - earlier.packets_sent,
            fast_losses: self.fast_losses - earlier.fast_losses,
            timeout_losses: self.timeout_losses - earlier.timeout_losses,
            timeouts: self.timeouts - earlier.timeouts,
            trims: self.trims - earlier.trims,
        }
    }
}

/// State of a flow with outstanding ops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waiting {
    /// Ops that the flow has not finished.
    pub ops: usize,
    /// Its window in packets.
    pub cwnd: f64,
    /// Packets in flight.
    pub in_flight: u32,
    /// Earliest time of the next data packet, if only pacing delays it.
    pub next_packet: Option<Time>,
    /// Expiry of the retransmission timeout.
    pub timeout: Option<Time>,
    /// The flow has data to send and no credit for it.
    pub needs_credit: bool,
}

/// Time during which a flow with outstanding ops has received nothing from its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// Since when: the last acknowledgement, or the first packet or op after it that waits for one.
    pub since: Time,
    /// Retransmission timeouts since then.
    pub timeouts_in_a_row: u32,
    /// The current retransmission timeout.
    pub rto: Span,
    /// Time between packets while the window is paced.
    pub gap: Span,
}

/// State that few flows have.
#[derive(Clone, Debug)]
pub(crate) struct Extra<P> {
    /// Present if the algorithm sends control packets; without it every data packet is acknowledged.
    pub(crate) control: Option<ControlState>,
    /// Present if the flow spreads its packets over several paths.
    pub(crate) spread: Option<Box<Spread<P>>>,
}

/// A flow of an endpoint: seven cache lines, in the order in which packets need the fields: data
/// packets the first half, acknowledgements the second.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Flow<F: AlgorithmFactory> {
    pub(crate) receive: ReceiveSide,
    /// State that few flows have.
    pub(crate) extra: Option<Box<Extra<F::Path>>>,
    /// The flow's index at the peer.
    pub(crate) peer: FlowId,
    /// The path that the algorithm chose last.
    pub(crate) path_label: u32,
    /// Payload bytes of a full packet.
    pub(crate) max_payload: u32,
    pub(crate) open: bool,
    /// Memberships of the endpoint's queues.
    pub(crate) in_ready: bool,
    pub(crate) in_requests: bool,
    pub(crate) in_acks: bool,
    pub(crate) in_controls: bool,
    /// Data could be sent when the flow was last evaluated. Time does not change this to `false`,
    /// and every other change evaluates the flow again.
    pub(crate) can_send: bool,
    /// The connection is being set up: the algorithm hears no acknowledgement.
    pub(crate) connecting: bool,
    /// The receiver half need not hear of data ([`Receiver::is_plain`]).
    pub(crate) plain: bool,
    /// The peer's count of marked packets at the newest acknowledgement.
    marked: u32,
    /// When the wheel will update this flow, if the flow is in the wheel.
    pub(crate) timer: Time,
    pub(crate) send: SendSide,
    pub(crate) algorithm: F::Sender,
    pub(crate) receiver: F::Receiver,
}

impl<F: AlgorithmFactory> Flow<F> {
    pub(crate) fn new(
        peer: FlowId,
        algorithm: F::Sender,
        receiver: F::Receiver,
        max_payload: u32,
    ) -> Self {
        Self {
            peer,
            path_label: algorithm.path_label(),
            algorithm,
            extra: receiver
                .sends_control()
                .then(|| Box::new(Extra { control: Some(ControlState::default()), spread: None })),
            plain: receiver.is_plain(),
            receiver,
            send: SendSide::default(),
            receive: ReceiveSide::default(),
            max_payload,
            open: true,
            in_ready: false,
            in_requests: false,
            in_acks: false,
            in_controls: false,
            can_send: false,
            connecting: false,
            timer: Time::MAX,
            marked: 0,
        }
    }

    /// Prefetches the fields that a data packet needs, or an acknowledgement, a credit or a signal.
    #[inline]
    pub(crate) fn prefetch(&self, data: bool) {
        let (own, send) = (offset_of!(Self, extra), offset_of!(Self, send));
        if data {
            // To the queue of ops to send, which shows whether there is anything to send.
            prefetch_range(self, 0, send + 1);
        } else {
            let algorithm = offset_of!(Self, algorithm) + size_of::<F::Sender>();
            prefetch_range(self, own, algorithm);
        }
    }

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

    /// Returns the readiness with the limit of [`EndpointConfig::flow_rate`].
    #[inline(always)]
    fn limited(&self, now: Time, readiness: Readiness, config: &EndpointConfig) -> Readiness {
        if !self.is_within_range() {
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

    /// Returns the readiness of a flow with data by the window and pace of the algorithm; `None` if the sender
    /// half decides ([`Pacing::Own`]).
    #[inline(always)]
    fn allowed(&self, now: Time, allowance: &Allowance) -> Option<Readiness> {
        if matches!(allowance.pacing, Pacing::Own { .. }) {
            return None;
        }
        if !allowance.admits(self.send.data_in_flight()) {
            return Some(Readiness::Waiting);
        }
        // The pace counts from the previous transmission, so that the period is rtt/cwnd (Swift Alg. 1
        // l. 30).
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

    /// Returns when the retransmission timeout expires, if any packet is in flight.
    #[inline]
    pub(crate) fn timeout_at(&self) -> Option<Time> {
        (self.send.in_flight > 0)
            .then(|| self.send.progress_at.saturating_add(self.algorithm.rto()))
    }

    /// Returns the state of the flow, if it has outstanding ops.
    pub(crate) fn waiting(&self, now: Time) -> Option<Waiting> {
        let ops = self.send.ops_under_way();
        let readiness = match self.allowed(now, &self.algorithm.allowance()) {
            _ if !self.send.has_data() => Readiness::Waiting,
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
        Some(Silence { since, timeouts_in_a_row, rto: self.algorithm.rto(), gap })
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
            _ => self.send.progress_at.saturating_add(outlook.rto),
        };
        let give_up = self.give_up_at(config).unwrap_or(Time::MAX);
        let (control, algorithm) = match self.in_controls {
            false => (self.next_control(), outlook.next_timer),
            // A due control packet is already queued for a poll, and the algorithm is not asked for another before: its timer
            // may be due, but cannot move.
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

    /// Returns the time at which the flow is given up if the peer sends none of the packets due.
    #[inline]
    pub(crate) fn give_up_at(&self, config: &EndpointConfig) -> Option<Time> {
        let after = config.give_up_after?;
        Some(self.send.waiting_since()?.saturating_add(after))
    }

    /// Processes an acknowledgement and passes it to the algorithm; `finish` gets each op that
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
        // Swift §3.3. The clocks of two hosts differ and their conversion has errors (App. A), so
        // the sum of the parts may slightly exceed the whole.
        let endpoint_delay = (ack.remote_queuing + counted).min(rtt);
        let fabric_delay = rtt - (endpoint_delay + ignored).min(rtt);
        let mut event = AckEvent::new(arrival.now, rtt);
        event.fabric_delay = fabric_delay;
        event.endpoint_delay = endpoint_delay;
        event.hops = ack.hops;
        event.acked_packets = outcome.newly_acked;
        event.acked_bytes = Bytes::new(outcome.newly_acked_bytes);
        event.marked_packets = marked.min(outcome.newly_acked);
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

    /// Handles a switch's signal of the congestion that packet `seq` met. Returns `false`, without
    /// effect, if the packet is not in flight, left at another time, or has already been signalled.
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
            return false; // a forged signal has to name the departure time
        }
        self.send.note_signal(seq);
        let mut event = SignalEvent::new(arrival.now, arrival.nic_received_at.since(sent_at), seq);
        event.queue = Bytes::new(u64::from(signal.queue));
        event.link_rate = link_rate;
        event.in_flight = self.send.data_in_flight();
        self.algorithm.on_signal(&event);
        true
    }

    /// Handles the peer's report that a packet arrived trimmed: its payload will be retransmitted before
    /// new data, as the window permits. Has no effect if the packet is not in flight.
    pub(crate) fn on_nack(&mut self, now: Time, nack: &Nack) -> Handled {
        let Some(payload) = self.send.on_trimmed(now, nack.packet) else {
            return Handled::Nack { outstanding: false };
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

    /// Returns the number of marks that the peer counted since the newest acknowledgement before this one. The count only
    /// grows, so an acknowledgement that was overtaken has a smaller one: its marks were counted.
    pub(crate) fn newly_marked(&mut self, marked: u32) -> u32 {
        let new = marked.wrapping_sub(self.marked);
        if new > u32::MAX / 2 {
            return 0;
        }
        self.marked = marked;
        new
    }

    /// Handles the expiry of the retransmission timeout.
    pub(crate) fn on_timeout(&mut self, now: Time, recovery: Recovery) {
        if self.is_spread() {
            return self.on_spread_timeout(now, recovery);
        }
        self.on_timeout_of_all(now, recovery);
    }

    /// Everything in flight is lost.
    pub(super) fn on_timeout_of_all(&mut self, now: Time, recovery: Recovery) {
        let lost_packets = self.send.data_in_flight();
        self.send.on_timeout(now, self.algorithm.rto(), recovery);
        let mut event = TimeoutEvent::new(now);
        event.lost_packets = lost_packets;
        event.next_seq = self.send.next_seq();
        self.algorithm.on_timeout(&event);
    }

    /// Returns the next data packet, if the flow is ready.
    #[inline]
    pub(crate) fn send_data(
        &mut self,
        now: Time,
        config: &EndpointConfig,
    ) -> Option<(Header, CongestionHeader)> {
        let in_flight = self.send.data_in_flight();
        let (seq, mut segment) = self.send.send_data(now, self.max_payload, config)?;
        let mut markable = false;
        if self.extra.is_some() {
            markable = self.attach(now, seq, &mut segment);
        }
        let mut info = SendInfo::new(now, seq);
        (info.in_flight, info.is_windowed) = (in_flight, true);
        let (header, mut congestion) = self.stamp(info, segment);
        if markable && congestion.ecn == Ecn::NotCapable {
            congestion.ecn = Ecn::Capable;
        }
        Some((header, congestion))
    }

    /// Returns the congestion fields of the next acknowledgement.
    #[inline]
    pub(crate) fn echo(&self) -> CongestionHeader {
        if self.plain {
            return CongestionHeader::default();
        }
        CongestionHeader { fields: self.receiver.echo(), ..CongestionHeader::default() }
    }

    /// Returns the next read request.
    pub(crate) fn send_request(&mut self, now: Time) -> Option<(Header, CongestionHeader)> {
        if !self.may_request() {
            return None;
        }
        let in_flight = self.send.data_in_flight();
        let (seq, mut segment) = self.send.send_request(now)?;
        if self.is_spread() {
            self.choose_path(now);
            segment.attached = self.order(seq, true);
        }
        let mut info = SendInfo::new(now, seq);
        (info.in_flight, info.is_windowed) = (in_flight, false);
        Some(self.stamp(info, segment))
    }

    /// Lets the algorithm stamp a packet; `info.in_flight` excludes the packet.
    #[inline]
    fn stamp(&mut self, mut info: SendInfo, segment: Segment) -> (Header, CongestionHeader) {
        info.pending = Bytes::new(self.send.pending);
        let mut congestion = CongestionHeader::default();
        self.algorithm.on_transmit(&mut congestion, &info);
        let body = Body::Data(segment);
        (Header { flow: self.peer, seq: info.seq, body }, congestion)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A million connections are two million flows: the size of a flow limits their number.
    #[test]
    fn a_flow_fits_into_448_bytes() {
        let bytes = size_of::<Flow<apus_algorithms::AlgorithmConfig>>();
        assert!(bytes <= 448, "a flow takes {bytes} bytes");
    }
}
