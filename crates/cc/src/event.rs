//! What the transport tells a sender half.

use apus_units::{Bytes, PacketNumber, Rate, Span, Time};

use crate::{Fields, Telemetry};

/// One acknowledgement arrived and acknowledged at least one packet for the first time, or gave an
/// RTT sample of a packet that had been taken for lost (`acked_packets` is 0 then).
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
    /// How many of them carried an ECN mark when they arrived.
    pub marked_packets: u32,
    /// Fill level of the receiver's buffer in 32nds (0 empty, 31 full), as Falcon's 5 bits.
    pub receiver_level: u8,
    /// The largest packet number acknowledged.
    pub acked_seq: PacketNumber,
    /// The number the next packet sent will carry.
    pub next_seq: PacketNumber,
    /// Packets in flight after this acknowledgement.
    pub in_flight: u32,
    /// The algorithm's fields as the receiver echoes them.
    pub fields: Fields,
    /// What switches noted on the data packet that this echoes, if they did.
    pub telemetry: Option<&'a Telemetry>,
}

impl AckEvent<'_> {
    /// An acknowledgement of one packet with this RTT, all of it fabric delay. The other fields are 0 or empty;
    /// set those that the algorithm reads.
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
            marked_packets: 0,
            receiver_level: 0,
            acked_seq: PacketNumber::new(0),
            next_seq: PacketNumber::new(0),
            in_flight: 0,
            fields: Fields::NONE,
            telemetry: None,
        }
    }
}

/// A flow's full packets have another size from now on: what the path takes was found out, or has changed.
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
    /// A window in packets, as many bytes as before: longer packets must not make it larger (RFC 8899 §3,
    /// probing and congestion control). One that admits a packet goes on admitting one: a flow that has just
    /// begun with one packet does not begin with a pause.
    #[must_use]
    pub fn scaled(&self, window: f64) -> f64 {
        let same_bytes =
            window * self.payload_before.get() as f64 / self.payload.get().max(1) as f64;
        same_bytes.max(if window >= 1.0 { 1.0 } else { 0.0 })
    }

    /// A slow-start threshold; one that is still `high`, which it begins with, stays so (RFC 5681 §3.1: it
    /// begins "arbitrarily high").
    #[must_use]
    pub fn scaled_threshold(&self, threshold: f64, high: f64) -> f64 {
        if threshold < high { self.scaled(threshold).min(high) } else { high }
    }
}

/// A switch told the source of a packet of its congestion ([`Signal`](crate::Signal)).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SignalEvent {
    /// When the stack processes it.
    pub now: Time,
    /// From the packet's departure to the signal's arrival at the NIC (Bolt Alg. 2 `rtt_src`).
    pub rtt: Span,
    /// The packet that met the congestion.
    pub seq: PacketNumber,
    /// Occupancy of the congested port.
    pub queue: Bytes,
    /// Rate of the congested link.
    pub link_rate: Rate,
    /// Packets in flight.
    pub in_flight: u32,
}

impl SignalEvent {
    /// A signal about this packet. The other fields are 0; set those that the algorithm reads.
    #[inline]
    #[must_use]
    pub const fn new(now: Time, rtt: Span, seq: PacketNumber) -> Self {
        Self { now, rtt, seq, queue: Bytes::ZERO, link_rate: Rate::from_bps(0), in_flight: 0 }
    }
}

/// Packets were found lost through holes in the SACK bitmap (Swift §3.6: fast recovery).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LossEvent {
    /// When the loss was detected.
    pub now: Time,
    /// How many packets.
    pub lost_packets: u32,
    /// The largest packet number among them.
    pub lost_seq: PacketNumber,
    /// The number the next packet sent will carry.
    pub next_seq: PacketNumber,
    /// Packets in flight after the loss was noted.
    pub in_flight: u32,
}

impl LossEvent {
    /// A loss of this number of packets. The other fields are 0; set those that the algorithm reads.
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

/// The retransmission timeout expired.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TimeoutEvent {
    /// When it expired.
    pub now: Time,
    /// The number the next packet sent will carry.
    pub next_seq: PacketNumber,
}

impl TimeoutEvent {
    /// A timeout at this time; `next_seq` is 0.
    #[inline]
    #[must_use]
    pub const fn new(now: Time) -> Self {
        Self { now, next_seq: PacketNumber::new(0) }
    }
}

/// A credit as a data packet echoes it to the receiver that sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditEcho {
    /// Its number; a receiver numbers its credits from 0, modulo 2^32.
    pub number: u32,
    /// From the credit's departure to the data's arrival.
    pub rtt: Span,
}

/// A data packet arrived.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct DataEvent {
    /// Arrival, on the clock of the transport.
    pub now: Time,
    /// Whether it carries an ECN mark.
    pub marked: bool,
    /// The credit that it was sent for, if any.
    pub credit: Option<CreditEcho>,
    /// Whether it arrived for the first time.
    pub is_new: bool,
    /// The algorithm's fields as they arrived.
    pub fields: Fields,
}

impl DataEvent {
    /// A data packet that arrives for the first time, without mark, credit and fields.
    #[inline]
    #[must_use]
    pub const fn new(now: Time) -> Self {
        Self { now, marked: false, credit: None, is_new: true, fields: Fields::NONE }
    }
}

/// A credit arrived at the sender.
#[derive(Clone, Copy, Debug)]
pub struct CreditEvent {
    /// Arrival, on the clock of the transport.
    pub now: Time,
    /// Whether there was a packet to send for it; if not, the credit is wasted.
    pub used: bool,
    /// What is left to send, that packet excluded.
    pub backlog: Backlog,
}

/// What a flow has to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Data packets that have not left or must leave again.
    pub packets: u64,
    /// Data packets that left and are not acknowledged.
    pub in_flight: u32,
}

/// What a sender half may look at when it stamps an outgoing data packet.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SendInfo {
    /// When the packet is handed to the NIC.
    pub now: Time,
    /// Its packet number.
    pub seq: PacketNumber,
    /// Payload bytes submitted to the flow and not yet sent, this packet's excluded.
    pub pending: Bytes,
    /// Packets in flight, this one excluded.
    pub in_flight: u32,
    /// Whether the packet counts against the window: data does, the request of a read does not.
    pub is_windowed: bool,
}

impl SendInfo {
    /// A data packet with nothing in flight before it and nothing to send after it.
    #[inline]
    #[must_use]
    pub const fn new(now: Time, seq: PacketNumber) -> Self {
        Self { now, seq, pending: Bytes::ZERO, in_flight: 0, is_windowed: true }
    }
}
