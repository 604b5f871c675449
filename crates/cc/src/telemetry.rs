//! In-network telemetry: what switches note on a packet for its sender (HPCC §3.1, Fig. 7).

use apus_units::{Bytes, Rate, Time};

/// The most hops that one packet notes: further ones are counted but not noted. HPCC's header has
/// room for 5, the switches between two hosts of a three-tier fat tree.
pub const MAX_TELEMETRY_HOPS: usize = 8;

/// What one egress port notes when the packet begins to leave it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HopTelemetry {
    /// When (HPCC `ts`).
    pub at: Time,
    /// Wire bytes that the port had put on the link before this packet (HPCC `txBytes`).
    pub sent: Bytes,
    /// Bytes left waiting in the port (HPCC `qLen`).
    pub queue: Bytes,
    /// Rate of the link (HPCC `B`).
    pub link_rate: Rate,
}

/// The hops of one packet in the order in which it took them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Telemetry {
    hops: [HopTelemetry; MAX_TELEMETRY_HOPS],
    passed: u8,
}

impl Telemetry {
    /// Adds a hop.
    #[inline]
    pub fn push(&mut self, hop: HopTelemetry) {
        if let Some(place) = self.hops.get_mut(usize::from(self.passed)) {
            *place = hop;
        }
        self.passed = self.passed.saturating_add(1);
    }

    /// The hops noted.
    #[inline]
    #[must_use]
    pub fn hops(&self) -> &[HopTelemetry] {
        &self.hops[..usize::from(self.passed).min(MAX_TELEMETRY_HOPS)]
    }

    /// Forgets all hops.
    #[inline]
    pub fn clear(&mut self) {
        self.passed = 0;
    }
}
