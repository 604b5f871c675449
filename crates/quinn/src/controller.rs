//! Conversion of the events of quinn's connection to events of Swift, and of Swift's window to quinn's.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use apus_algorithms::swift::Swift as Sender;
use apus_cc::{
    AckEvent, Algorithm, FlowInfo, LossEvent, PacketSizeEvent, Sender as _, Snapshot, TimeoutEvent,
};
use apus_units::{Bytes, Span, Time};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::Controller;

use crate::SwiftConfig;

/// Swift as the congestion controller of one path of a QUIC connection.
///
/// Packets are units of the current MTU, as quinn reports it: the UDP payload of a full datagram.
#[derive(Clone, Debug)]
pub struct Swift {
    sender: Sender,
    config: Arc<SwiftConfig>,
    /// Time 0 of Swift's clock. Packets sent earlier belong to another path.
    origin: Instant,
    mtu: u16,
    /// Acknowledged bytes that no [`AckEvent`] has reported yet: less than a packet, and those of
    /// acknowledgements without an RTT sample.
    acked_bytes: u64,
    /// Send time of the newest packet of the acknowledgement in progress.
    newest_in_batch: Option<Instant>,
    /// Send time of the newest packet acknowledged so far.
    newest_acked: Option<Instant>,
    /// Largest packet number acknowledged so far, as quinn reported it last.
    largest_acked: Option<u64>,
    /// When a loss or an ECN mark last reduced the window.
    last_event: Option<Instant>,
}

impl Swift {
    pub(crate) fn new(config: Arc<SwiftConfig>, now: Instant, mtu: u16) -> Self {
        let size = Bytes::new(mtu.into());
        let flow = FlowInfo { payload: size, packet: size, ..FlowInfo::default() };
        let sender = Sender::new(config.params(mtu), &flow);
        Self {
            sender,
            config,
            origin: now,
            mtu,
            acked_bytes: 0,
            newest_in_batch: None,
            newest_acked: None,
            largest_acked: None,
            last_event: None,
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

    /// Returns the bytes of a window of this number of packets.
    ///
    /// quinn sends a packet of `mtu` bytes if `in_flight + mtu < window`. With one byte more than the window
    /// it admits what [`apus_cc::Allowance::packets`] does: the largest whole number of packets within it.
    fn bytes(&self, packets: f64) -> u64 {
        (packets * f64::from(self.mtu)) as u64 + 1
    }

    /// Records that one ack-eliciting packet was acknowledged for the first time.
    fn on_packet_acked(&mut self, sent: Instant, bytes: u64, app_limited: bool) {
        // `Connection::path_changed` replaces the controller while packets of the old path are in flight.
        if sent < self.origin {
            return;
        }
        // deviation: Swift has no special treatment of flows whose application has no data to send. An
        // acknowledgement of 0 packets decreases the window if the delay is above the target, and otherwise
        // does not change it, as RFC 9002 §7.8 requires of underutilised windows.
        if !app_limited {
            self.acked_bytes += bytes;
        }
        self.newest_in_batch = self.newest_in_batch.max(Some(sent));
    }

    /// Handles the end of an acknowledgement whose packets have all been reported. `largest` is the largest
    /// packet number acknowledged so far in the packet number space of this acknowledgement.
    fn on_batch_end(&mut self, now: Instant, largest: Option<u64>) {
        let is_new_largest = largest != self.largest_acked;
        self.largest_acked = largest;
        let Some(sent) = self.newest_in_batch.take() else { return };
        // RFC 9002 §5.1: only the newest packet acknowledged so far gives an RTT sample. The packets of a
        // burst have the same send time, so their numbers decide. The bytes of reordered packets wait for the
        // next sample.
        if self.newest_acked.is_some_and(|at| sent < at || (sent == at && !is_new_largest)) {
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

/// Returns picoseconds, which wrap around after 213 days; Swift's clock allows this.
fn picoseconds(duration: Duration) -> u64 {
    (duration.as_nanos() as u64).wrapping_mul(1000)
}

impl Controller for Swift {
    /// Ignores quinn's RTT estimate, which does not yet include the present acknowledgement and has only
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

    fn on_end_acks(&mut self, now: Instant, _: u64, _: bool, largest: Option<u64>) {
        self.on_batch_end(now, largest);
    }

    /// `sent` is the send time of the newest lost packet, or of the newest acknowledged one if ECN marks were
    /// reported; `lost_bytes` is then 0.
    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent: bool,
        lost_bytes: u64,
    ) {
        if sent < self.origin {
            return;
        }
        let at = self.time(now);
        let window = self.sender.allowance().window;
        let config = self.config.config();
        if is_persistent {
            // RFC 9002 §7.6.2: the minimum window; Swift Alg. 1 l. 17-18 after as many timeouts.
            for _ in 0..config.retx_reset_threshold {
                self.sender.on_timeout(&TimeoutEvent::new(at));
            }
        } else if (lost_bytes == 0 || config.max_decrease_on_loss)
            // RFC 9002 §7.3.2: packets sent before a reduction do not cause another.
            && self.last_event.is_none_or(|last| sent > last)
        {
            // An ECN mark counts as the loss of a packet (RFC 9002 §7.1).
            let packets = lost_bytes.div_ceil(self.mtu.into()).max(1);
            self.sender.on_loss(&LossEvent::new(at, packets.try_into().unwrap_or(u32::MAX)));
        }
        if self.sender.allowance().window < window {
            self.last_event = Some(now);
        }
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
        self.bytes(self.config.initial_cwnd(self.mtu))
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests;
