//! Events that the transport reports to a sender half.

use apus_units::{Bytes, PacketNumber, Rate, Span, Time};

use crate::{Fields, Telemetry};

/// Arrival of an acknowledgement. It covers at least one packet for the first time, or gives an RTT sample of
/// a packet that had been declared lost (`acked_packets` is then 0).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct AckEvent<'a> {
    /// Arrival, on the clock of the transport.
    pub now: Time,
    /// End-to-end RTT, t6 - t1 (Swift §3.1).
    pub rtt: Span,
    /// RTT minus endpoint delay (Swift §3.3).
    pub fabric_delay: Span,
    /// `remote_queuing` + (t6 - t5) (Swift §3.3).
    pub endpoint_delay: Span,
    /// Switches on the forward path, from the IP TTL (Swift §3.5).
    pub hops: u8,
    /// Packets acknowledged for the first time (Swift Alg. 1 `num_acked`).
    pub acked_packets: u32,
    /// Payload bytes of these packets.
    pub acked_bytes: Bytes,
    /// Number of acknowledged packets that carried an ECN mark when they arrived.
    pub marked_packets: u32,
    /// Whether the packet that triggered the acknowledgement carried an ECN mark when it arrived. The RTT and
    /// the delays belong to the same packet.
    pub echo_marked: bool,
    /// Fill level of the receiver's buffer in 32nds (0 empty, 31 full), as Falcon's 5 bits.
    pub receiver_level: u8,
    /// The largest packet number acknowledged.
    pub acked_seq: PacketNumber,
    /// Number of the next packet that is sent.
    pub next_seq: PacketNumber,
    /// Packets in flight after this acknowledgement.
    pub in_flight: u32,
    /// The algorithm's fields as the receiver echoes them.
    pub fields: Fields,
    /// Telemetry that switches appended to the data packet that this acknowledgement echoes, if
    /// any.
    pub telemetry: Option<&'a Telemetry>,
}

impl AckEvent<'_> {
    /// Creates an acknowledgement of one packet with this RTT, all of it fabric delay. The other
    /// fields are 0 or empty; set those that the algorithm reads.
    #[inline]
    #[must_use]
    pub const fn new(now: Time, rtt: Span) -> Self {
        Self {
            now,
            rtt,
            fabric_delay: rtt,
            endpoint_delay: Span::ZERO,
            hops: 0,
            acked_packets: 1,
            acked_bytes: Bytes::ZERO,
            marked_packets: 0,
            echo_marked: false,
            receiver_level: 0,
            acked_seq: PacketNumber::new(0),
            next_seq: PacketNumber::new(0),
            in_flight: 0,
            fields: Fields::NONE,
            telemetry: None,
        }
    }
}

/// Change of the size of a flow's full packets: the path MTU was discovered or has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketSizeEvent {
    /// Payload bytes of a full data packet until now.
    pub payload_before: Bytes,
    /// Payload bytes of a full data packet; not zero.
    pub payload: Bytes,
    /// Wire bytes of a full data packet.
    pub packet: Bytes,
}

impl PacketSizeEvent {
    /// Scales a window in packets so that it does not exceed the previous number of bytes: longer
    /// packets must not make it larger (RFC 8899 §3, probing and congestion control). A window that
    /// admits one packet still admits one: a flow that has just started with one packet must not
    /// start with a pause.
    #[must_use]
    pub fn scaled(&self, window: f64) -> f64 {
        let same_bytes =
            window * self.payload_before.get() as f64 / self.payload.get().max(1) as f64;
        same_bytes.max(if window >= 1.0 { 1.0 } else { 0.0 })
    }

    /// Scales a slow-start threshold. A threshold that still has its initial value `high` keeps it
    /// (RFC 5681 §3.1: the initial value is "arbitrarily high").
    #[must_use]
    pub fn scaled_threshold(&self, threshold: f64, high: f64) -> f64 {
        if threshold < high { self.scaled(threshold).min(high) } else { high }
    }
}

/// A congestion signal from a switch to the source of a packet ([`Signal`](crate::Signal)).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SignalEvent {
    /// Time at which the stack processes the signal.
    pub now: Time,
    /// Time from the departure of the packet to the arrival of the signal at the NIC (Bolt Alg. 2 `rtt_src`).
    pub rtt: Span,
    /// Number of the packet that encountered the congestion.
    pub seq: PacketNumber,
    /// Occupancy of the congested port.
    pub queue: Bytes,
    /// Rate of the congested link.
    pub link_rate: Rate,
    /// Packets in flight.
    pub in_flight: u32,
}

impl SignalEvent {
    /// Creates a signal about this packet. The other fields are 0; set those that the algorithm
    /// reads.
    #[inline]
    #[must_use]
    pub const fn new(now: Time, rtt: Span, seq: PacketNumber) -> Self {
        Self { now, rtt, seq, queue: Bytes::ZERO, link_rate: Rate::from_bps(0), in_flight: 0 }
    }
}

/// Loss of packets, concluded from holes in the SACK bitmap (Swift §3.6: fast recovery).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LossEvent {
    /// Time at which the loss was detected.
    pub now: Time,
    /// Number of lost packets.
    pub lost_packets: u32,
    /// The largest packet number among them.
    pub lost_seq: PacketNumber,
    /// Number of the next packet that is sent.
    pub next_seq: PacketNumber,
    /// Packets in flight after the loss.
    pub in_flight: u32,
}

impl LossEvent {
    /// Creates a loss of this number of packets. The other fields are 0; set those that the
    /// algorithm reads.
    #[inline]
    #[must_use]
    pub const fn new(now: Time, lost_packets: u32) -> Self {
        Self {
            now,
            lost_packets,
            lost_seq: PacketNumber::new(0),
            next_seq: PacketNumber::new(0),
            in_flight: 0,
        }
    }
}

/// Trimming of a data packet: a switch removed the payload because the queue was full. The receiver got the
/// header and sent a negative acknowledgement. The transport will retransmit the payload.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TrimEvent {
    /// Arrival of the negative acknowledgement, on the clock of the transport.
    pub now: Time,
    /// Number of the trimmed packet.
    pub trimmed_seq: PacketNumber,
    /// Payload bytes that the switch removed.
    pub payload: Bytes,
    /// Whether the port to the receiver trimmed the packet, and not a port between switches.
    pub last_hop: bool,
    /// Whether the header arrived with an ECN mark, from a switch before the one that trimmed it.
    pub marked: bool,
    /// Number of the next packet that is sent.
    pub next_seq: PacketNumber,
    /// Packets in flight, the trimmed one excluded.
    pub in_flight: u32,
}

impl TrimEvent {
    /// Creates the trim of this packet within the fabric. The other fields are 0; set those that the
    /// algorithm reads.
    #[inline]
    #[must_use]
    pub const fn new(now: Time, trimmed_seq: PacketNumber) -> Self {
        Self {
            now,
            trimmed_seq,
            payload: Bytes::ZERO,
            last_hop: false,
            marked: false,
            next_seq: PacketNumber::new(0),
            in_flight: 0,
        }
    }

    /// Returns the trim as the loss of one packet.
    #[inline]
    #[must_use]
    pub const fn as_loss(&self) -> LossEvent {
        LossEvent {
            now: self.now,
            lost_packets: 1,
            lost_seq: self.trimmed_seq,
            next_seq: self.next_seq,
            in_flight: self.in_flight,
        }
    }
}

/// Expiry of the retransmission timeout.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TimeoutEvent {
    /// Time of the expiry.
    pub now: Time,
    /// Data packets that were in flight and are now declared lost.
    pub lost_packets: u32,
    /// Number of the next packet that is sent.
    pub next_seq: PacketNumber,
    /// Whether all lost packets had left before the timeout that was reported last. Set only if each packet
    /// has its own timeout. Such losses do not show that the path has been silent for another timeout.
    pub is_same_flight: bool,
}

impl TimeoutEvent {
    /// Creates a timeout at this time; the other fields are 0, or `false`.
    #[inline]
    #[must_use]
    pub const fn new(now: Time) -> Self {
        Self { now, lost_packets: 0, next_seq: PacketNumber::new(0), is_same_flight: false }
    }
}

/// A credit as a data packet echoes it to the receiver that sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditEcho {
    /// Number of the credit; a receiver numbers its credits from 0, modulo 2^32.
    pub number: u32,
    /// Time from the departure of the credit to the arrival of the data.
    pub rtt: Span,
}

/// Arrival of a data packet.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct DataEvent {
    /// Arrival, on the clock of the transport.
    pub now: Time,
    /// Whether the packet carries an ECN mark.
    pub marked: bool,
    /// Credit for which the packet was sent, if any.
    pub credit: Option<CreditEcho>,
    /// Whether the packet arrived for the first time.
    pub is_new: bool,
    /// The algorithm's fields as they arrived.
    pub fields: Fields,
}

impl DataEvent {
    /// Creates the first arrival of a data packet, without mark, credit and fields.
    #[inline]
    #[must_use]
    pub const fn new(now: Time) -> Self {
        Self { now, marked: false, credit: None, is_new: true, fields: Fields::NONE }
    }
}

/// Arrival of a credit at the sender.
#[derive(Clone, Copy, Debug)]
pub struct CreditEvent {
    /// Arrival, on the clock of the transport.
    pub now: Time,
    /// Whether there was a packet to send for it; if not, the credit is wasted.
    pub used: bool,
    /// Data that remains to be sent after that packet.
    pub backlog: Backlog,
}

/// Data that a flow has to send or has in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Data packets that have not left or must leave again.
    pub packets: u64,
    /// Data packets that left and are not acknowledged.
    pub in_flight: u32,
}

/// State that a sender half may read when it stamps an outgoing data packet.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SendInfo {
    /// Time at which the packet is handed to the NIC.
    pub now: Time,
    /// Packet number of the packet.
    pub seq: PacketNumber,
    /// Payload bytes submitted to the flow and not yet sent, this packet's excluded.
    pub pending: Bytes,
    /// Packets in flight, this one excluded.
    pub in_flight: u32,
    /// Whether the packet counts against the window: data does, the request of a read does not.
    pub is_windowed: bool,
    /// Payload bytes of the packet.
    pub payload: Bytes,
    /// Number of packets that must be retransmitted and have not left, this one excluded. Set only for
    /// algorithms with control packets.
    pub resends: u32,
    /// Number of flows of the host that could send now, this one included. Set only for algorithms with
    /// control packets.
    pub ready_flows: u32,
}

impl SendInfo {
    /// Creates the data of a packet without others in flight or pending.
    #[inline]
    #[must_use]
    pub const fn new(now: Time, seq: PacketNumber) -> Self {
        Self {
            now,
            seq,
            pending: Bytes::ZERO,
            in_flight: 0,
            is_windowed: true,
            payload: Bytes::ZERO,
            resends: 0,
            ready_flows: 1,
        }
    }
}
