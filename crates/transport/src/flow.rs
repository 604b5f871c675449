//! A flow: both directions between two endpoints, with one algorithm.

use alloc::boxed::Box;
use core::mem::offset_of;

use apus_cc::{AlgorithmFactory, CongestionHeader, Ecn, Receiver, SendInfo, Sender};
use apus_units::{Bytes, FlowId, Span, Time, prefetch_range};
use apus_wire::{Body, Header, Segment};

use crate::config::EndpointConfig;
use crate::control::ControlState;
use crate::receive::ReceiveSide;
use crate::send::SendSide;
use crate::spread::Spread;

mod ready;
mod reports;
mod spread;

pub(crate) use ready::Readiness;

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
    /// Returns the counts since `earlier`, a previous reading of the same flow's counters.
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
    /// Whether the flow has data to send but no credit for it.
    pub needs_credit: bool,
}

/// Time during which a flow with outstanding ops has received nothing from its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// Start of the silence: the last acknowledgement, NACK or answer of the peer, or the first
    /// packet or op after it for which one of them is due.
    pub since: Time,
    /// Retransmission timeouts since then.
    pub timeouts_in_a_row: u32,
    /// The current retransmission timeout.
    pub rto: Span,
    /// Time between packets while the window is paced.
    pub gap: Span,
}

/// Whether a flow is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Open,
    Ended,
    /// The flow has ended, and its index can be used for another flow.
    Released,
}

/// State that few flows have.
#[derive(Clone, Debug)]
pub(crate) struct Extra<P> {
    /// Present if the algorithm sends control packets; without it every data packet is acknowledged.
    pub(crate) control: Option<ControlState>,
    /// Present if the flow spreads its packets over several paths.
    pub(crate) spread: Option<Box<Spread<P>>>,
}

/// A flow of an endpoint: seven cache lines. The fields are in the order in which packets need
/// them: data packets use the first half, acknowledgements the second.
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
    pub(crate) life: Life,
    /// Whether the flow is in each of the endpoint's queues.
    pub(crate) in_ready: bool,
    pub(crate) in_requests: bool,
    pub(crate) in_acks: bool,
    pub(crate) in_controls: bool,
    /// Data could be sent when the flow was last evaluated. Time does not change this to `false`,
    /// and every other change evaluates the flow again.
    pub(crate) can_send: bool,
    /// The connection is being set up: acknowledgements are not reported to the algorithm.
    pub(crate) connecting: bool,
    /// The receiver half needs no reports of data ([`Receiver::is_plain`]).
    pub(crate) plain: bool,
    /// The peer's count of marked packets, as of the newest acknowledgement.
    marked: u32,
    /// Time at which the wheel will update this flow, if the flow is in the wheel.
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
            life: Life::Open,
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

    /// Releases a flow that has ended, and frees the memory of its receiving side.
    pub(crate) fn release(&mut self) {
        self.life = Life::Released;
        self.receive = ReceiveSide::default();
        if let Some(extra) = &mut self.extra {
            extra.spread = None;
        }
    }

    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.life == Life::Open
    }

    /// Prefetches the fields that a data packet needs if `data` is set, otherwise those that an
    /// acknowledgement, a credit or a signal needs.
    #[inline]
    pub(crate) fn prefetch(&self, data: bool) {
        let (own, send) = (offset_of!(Self, extra), offset_of!(Self, send));
        if data {
            // Up to the queue of ops to send, which shows whether there is anything to send.
            prefetch_range(self, 0, send + 1);
        } else {
            let algorithm = offset_of!(Self, algorithm) + size_of::<F::Sender>();
            prefetch_range(self, own, algorithm);
        }
    }

    /// Returns the next data packet, if the flow is ready.
    #[inline]
    pub(crate) fn send_data(
        &mut self,
        now: Time,
        config: &EndpointConfig,
        ready_flows: u32,
    ) -> Option<(Header, CongestionHeader)> {
        let in_flight = self.send.data_in_flight();
        let (seq, mut segment) = self.send.send_data(now, self.max_payload, config)?;
        let mut info = SendInfo::new(now, seq);
        let mut markable = false;
        if self.extra.is_some() {
            markable = self.attach(now, &mut segment);
            // A queue of 2^32 packets would not fit into memory.
            (info.resends, info.ready_flows) = (self.send.retransmits() as u32, ready_flows);
        }
        (info.in_flight, info.is_windowed) = (in_flight, true);
        let (mut header, mut congestion) = self.stamp(info, segment);
        if self.is_spread()
            && let Body::Data(segment) = &mut header.body
        {
            segment.attached = self.order_of_data(seq);
        }
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
        info.payload = Bytes::new(u64::from(segment.length));
        let mut congestion = CongestionHeader::default();
        self.algorithm.on_transmit(&mut congestion, &info);
        let body = Body::Data(segment);
        (Header { flow: self.peer, seq: info.seq, body }, congestion)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A million connections have two million flow records, one at each end: the size of a record
    /// limits their number.
    #[test]
    fn a_flow_fits_into_448_bytes() {
        let bytes = size_of::<Flow<apus_algorithms::AlgorithmConfig>>();
        assert!(bytes <= 448, "a flow takes {bytes} bytes");
    }
}
