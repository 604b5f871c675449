//! In-network telemetry: data that switches append to a packet for its sender (HPCC §3.1, Fig. 7).

use apus_units::{Bytes, Rate, Span, Time};

/// Maximum number of hops that one packet records; further hops are only counted. HPCC's header has room for
/// 5, the number of switches between two hosts of a three-tier fat tree.
pub const MAX_TELEMETRY_HOPS: usize = 8;

/// The data that one egress port appends when the packet begins to leave it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HopTelemetry {
    /// Time of departure (HPCC `ts`).
    pub at: Time,
    /// Wire bytes that the port had put on the link before this packet (HPCC `txBytes`).
    pub sent: Bytes,
    /// Bytes that remain queued in the port (HPCC `qLen`).
    pub queue: Bytes,
    /// Rate of the link (HPCC `B`).
    pub link_rate: Rate,
}

/// Values at which the counts of a hop wrap to 0 in the wire format: 2^32 ns and 2^40 bytes (`apus_wire`'s
/// hops). In the simulator counts never wrap.
const AT_WRAPS: Span = Span::from_ns(1 << 32);
const SENT_WRAPS: u64 = 1 << 40;

impl HopTelemetry {
    /// Returns the time from `old`, another record of the same port, to this record; `None` unless this
    /// record is later. If this record seems older by more than half the range, its time has wrapped.
    #[inline]
    #[must_use]
    pub fn elapsed_since(&self, old: &Self) -> Option<Span> {
        if self.at > old.at {
            return Some(self.at.since(old.at));
        }
        let back = old.at.since(self.at);
        (back > AT_WRAPS / 2 && back < AT_WRAPS).then(|| AT_WRAPS - back)
    }

    /// Returns the bytes that the port sent between the two records.
    #[inline]
    #[must_use]
    pub fn sent_since(&self, old: &Self) -> Bytes {
        let (new, old) = (self.sent.get(), old.sent.get());
        match new.checked_sub(old) {
            Some(sent) => Bytes::new(sent),
            None => Bytes::new(SENT_WRAPS.saturating_sub(old - new)),
        }
    }
}

/// Hops of one packet, in the order in which the packet passed them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Telemetry {
    hops: [HopTelemetry; MAX_TELEMETRY_HOPS],
    passed: u8,
    /// Exclusive or of the numbers of the ports passed.
    path: u16,
}

impl Telemetry {
    /// Adds the record of the port with this number.
    #[inline]
    pub fn push(&mut self, hop: HopTelemetry, port: u16) {
        self.path ^= port;
        if let Some(place) = self.hops.get_mut(usize::from(self.passed)) {
            *place = hop;
        }
        self.passed = self.passed.saturating_add(1);
    }

    /// Returns the recorded hops.
    #[inline]
    #[must_use]
    pub fn hops(&self) -> &[HopTelemetry] {
        &self.hops[..usize::from(self.passed).min(MAX_TELEMETRY_HOPS)]
    }

    /// Returns the identifier of the path (HPCC `pathID`): the exclusive or of the numbers of the ports
    /// passed.
    #[inline]
    #[must_use]
    pub fn path(&self) -> u16 {
        self.path
    }

    /// Removes all hops.
    #[inline]
    pub fn clear(&mut self) {
        (self.passed, self.path) = (0, 0);
    }
}
