//! Sizes of packets on the wire.

use apus_cc::{FlowInfo, MAX_CREDIT_PADDING};
use apus_units::Bytes;
use apus_wire::{Body, Control};

/// Sizes of packets on the wire: everything that occupies the link, preamble and gap included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketSizes {
    /// Payload bytes of a full data packet.
    pub payload: u32,
    /// Bytes that a data packet adds to its payload.
    pub header: u32,
    /// Bytes of an acknowledgement, a read request or a trimmed packet.
    pub control: u32,
}

impl Default for PacketSizes {
    /// Payload of 4096 B and headers of 64 B: deviation, Swift says "MTU-sized" (§3.4); 4096 B is Falcon's
    /// MTU. A control packet is a minimum Ethernet frame of 64 B with 20 B of preamble and gap (IEEE 802.3).
    fn default() -> Self {
        Self { payload: 4096, header: 64, control: 84 }
    }
}

impl PacketSizes {
    /// Returns the sizes that a flow needs.
    pub(crate) fn flow_info(&self) -> FlowInfo {
        let bytes = |n: u32| Bytes::new(u64::from(n));
        FlowInfo {
            payload: bytes(self.payload),
            packet: bytes(self.payload + self.header),
            control: bytes(self.control),
            ..FlowInfo::default()
        }
    }

    /// Returns the wire bytes of the shortest and of the longest credit; their mean is the size of a control packet.
    pub(crate) fn credit_range(&self) -> (u32, u32) {
        let half = u32::from(MAX_CREDIT_PADDING / 2);
        let shortest = self.control.saturating_sub(half);
        (shortest, shortest + 2 * half)
    }

    /// Returns the wire bytes of a packet.
    #[inline]
    pub(crate) fn wire_bytes(&self, body: &Body) -> u32 {
        match body {
            Body::Data(segment) if segment.length > 0 => segment.length + self.header,
            Body::Control(Control::Credit(credit)) => {
                self.credit_range().0 + u32::from(credit.padding)
            }
            Body::Data(_)
            | Body::Ack(_)
            | Body::Control(_)
            | Body::Reject(_)
            | Body::Signal(_)
            | Body::Trimmed(_)
            | Body::Nack(_) => self.control,
        }
    }
}
