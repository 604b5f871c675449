//! Events of quinn's connection as events of Swift, and Swift's window as quinn's.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use apus_algorithms::swift::{Params, Swift as Sender};
use apus_cc::{
    AckEvent, Algorithm, FlowInfo, LossEvent, PacketSizeEvent, Sender as _, Snapshot, TimeoutEvent,
};
use apus_units::{Bytes, Span, Time};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::Controller;

/// Swift as the congestion controller of one path of a QUIC connection.
///
/// Packets are units of the current MTU, as quinn counts it: the UDP payload of a full datagram. Swift reads no
/// packet numbers, so none are passed on; quinn numbers the packets of each packet number space from 0.
#[derive(Clone, Debug)]
pub struct Swift {
    sender: Sender,
    params: Arc<Params>,
    /// Time 0 of Swift's clock.
    origin: Instant,
    mtu: u16,
    /// Acknowledged bytes that no [`AckEvent`] has reported yet: less than a packet, and those of
    /// acknowledgements without an RTT sample.
    acked_bytes: u64,
    /// Send time of the newest packet of the acknowledgement in progress.
    newest_in_batch: Option<Instant>,
    /// Send time of the newest packet acknowledged so far.
    newest_acked: Option<Instant>,
}

impl Swift {
    pub(crate) fn new(params: Arc<Params>, now: Instant, mtu: u16) -> Self {
        let size = Bytes::new(mtu.into());
        let flow = FlowInfo { payload: size, packet: size, ..FlowInfo::default() };
        let sender = Sender::new(Arc::clone(&params), &flow);
        Self {
            sender,
            params,
            origin: now,
            mtu,
            acked_bytes: 0,
            newest_in_batch: None,
            newest_acked: None,
        }
    }

    /// Returns Swift's state: window in packets, target and RTT.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.sender.snapshot()
    }

    fn time(&self, now: Instant) -> Time {
        Time::from_ps(picoseconds(now.saturating_duration_since(self.origin)))
    }

    /// Bytes of a window of this number of packets.
    ///
    /// quinn sends a packet of `mtu` bytes if `in_flight + mtu < window`. With one byte more than the window
    /// it admits what [`apus_cc::Allowance::packets`] does: the largest whole number of packets within it.
    fn bytes(&self, packets: f64) -> u64 {
        (packets * f64::from(self.mtu)) as u64 + 1
    }

    /// One ack-eliciting packet was acknowledged for the first time.
    fn on_packet_acked(&mut self, sent: Instant, bytes: u64, app_limited: bool) {
        // deviation: Swift does not treat flows specially whose application has no data to send; an
        // acknowledgement of 0 packets decreases the window if the delay is above the target, and
        // otherwise leaves it as it is, as RFC 9002 §7.8 requires of underutilised windows.
        if !app_limited {
            self.acked_bytes += bytes;
        }
        self.newest_in_batch = self.newest_in_batch.max(Some(sent));
    }

    /// All packets of one acknowledgement have been reported.
    fn on_batch_end(&mut self, now: Instant) {
        let Some(sent) = self.newest_in_batch.take() else { return };
        // RFC 9002 §5.1: only the newest packet acknowledged so far gives an RTT sample. The bytes of
        // reordered packets wait for the next sample.
        if self.newest_acked.is_some_and(|newest| sent < newest) {
            return;
        }
        self.newest_acked = Some(sent);
        let rtt = Span::from_ps(picoseconds(now.saturating_duration_since(sent)));
        let mut event = AckEvent::new(self.time(now), rtt);
        let packets = self.acked_bytes / u64::from(self.mtu);
        self.acked_bytes %= u64::from(self.mtu);
        event.acked_packets = packets.try_into().unwrap_or(u32::MAX);
        self.sender.on_ack(&event);
    }
}

/// Wraps around after 213 days, which Swift's clock allows.
fn picoseconds(duration: Duration) -> u64 {
    (duration.as_nanos() as u64).wrapping_mul(1000)
}

impl Controller for Swift {
    /// Ignores quinn's RTT estimate: it does not include the present acknowledgement yet, and shows only
    /// smoothed values.
    fn on_ack(
        &mut self,
        _: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        _: &RttEstimator,
    ) {
        self.on_packet_acked(sent, bytes, app_limited);
    }

    fn on_end_acks(&mut self, now: Instant, _in_flight: u64, _app_limited: bool, _: Option<u64>) {
        self.on_batch_end(now);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        _: Instant,
        is_persistent: bool,
        lost_bytes: u64,
    ) {
        let now = self.time(now);
        if is_persistent {
            // RFC 9002 §7.6.2: the minimum window; Swift Alg. 1 l. 17-18 after as many timeouts.
            for _ in 0..self.params.config().retx_reset_threshold {
                self.sender.on_timeout(&TimeoutEvent::new(now));
            }
            return;
        }
        // Lost bytes are 0 for an ECN mark, which counts as the loss of a packet (RFC 9002 §7.1).
        let packets = lost_bytes.div_ceil(self.mtu.into()).max(1);
        self.sender.on_loss(&LossEvent::new(now, packets.try_into().unwrap_or(u32::MAX)));
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        let size = Bytes::new(new_mtu.into());
        let payload_before = Bytes::new(self.mtu.into());
        self.sender.on_packet_size(&PacketSizeEvent {
            payload_before,
            payload: size,
            packet: size,
        });
        self.mtu = new_mtu;
    }

    fn window(&self) -> u64 {
        self.bytes(self.sender.allowance().window)
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.bytes(self.params.config().initial_cwnd)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests;
