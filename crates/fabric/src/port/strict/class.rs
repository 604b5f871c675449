//! A class of a port of strict priorities.

use apus_cc::SwitchHalf;
use apus_units::Ring;

use crate::config::ClassConfig;
use crate::counters::Count;
use crate::packet::PacketRef;
use crate::port::link::FIRST_SLOTS;

/// A packet that waits for service.
#[derive(Clone, Copy)]
pub(super) struct Waiting {
    pub(super) packet: PacketRef,
    pub(super) bytes: u32,
}

impl Default for Waiting {
    /// Returns the content of an empty slot of a ring.
    fn default() -> Self {
        Self { packet: PacketRef::NONE, bytes: 0 }
    }
}

/// Fields that every packet needs come first.
#[repr(C, align(64))]
pub(super) struct StrictClass<W> {
    /// Packets in the queue.
    pub(super) queue: Ring<Waiting>,
    /// Bytes in the port, a packet in service included, as far as the port has caught up.
    pub(super) bytes: u64,
    /// Packets of the class that were to go out through the port.
    pub(super) offered: Count,
    limit: u64,
    /// Packets dropped at the port.
    pub(super) dropped: Count,
    limit_packets: u64,
    pub(super) algorithm: W,
}

impl<W: SwitchHalf> StrictClass<W> {
    /// Cache lines that a packet needs of it.
    pub(super) const HOT_LINES: usize = 1;

    pub(super) fn new(config: &ClassConfig<W>) -> Self {
        Self {
            queue: Ring::with_slots(FIRST_SLOTS),
            bytes: 0,
            offered: Count::default(),
            limit: config.limit.get(),
            dropped: Count::default(),
            limit_packets: u64::from(config.limit_packets),
            algorithm: config.algorithm.clone(),
        }
    }

    /// Returns `true` if the class has its own limit.
    pub(super) fn is_limited(&self) -> bool {
        self.limit < u64::MAX || self.limit_packets < u64::from(u32::MAX)
    }

    /// Returns `true` if its own limits leave room for a packet.
    pub(super) fn has_room(&self, bytes: u32) -> bool {
        (self.queue.len() as u64) < self.limit_packets
            && self.bytes + u64::from(bytes) <= self.limit
    }
}
