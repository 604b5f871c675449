//! A class of a port of strict priorities.

use apus_cc::SwitchAlgorithm;

use crate::config::ClassConfig;
use crate::counters::Count;
use crate::packet::PacketRef;
use crate::port::ring::Ring;

/// A packet that waits for service.
#[derive(Clone, Copy)]
pub(super) struct Waiting {
    pub(super) packet: PacketRef,
    pub(super) bytes: u32,
    /// The same if it was sent in this class, otherwise 0.
    pub(super) own: u32,
}

impl Default for Waiting {
    /// What an empty place of a ring holds.
    fn default() -> Self {
        Self { packet: PacketRef::NONE, bytes: 0, own: 0 }
    }
}

/// What every packet needs comes first.
#[repr(C, align(64))]
pub(super) struct StrictClass {
    /// Those that wait.
    pub(super) queue: Ring<Waiting>,
    /// Bytes of packets that were sent in this class, a packet in service included, now and at most.
    own_bytes: u64,
    pub(super) max_own_bytes: u64,
    /// Packets of the class that were to go out through the port.
    pub(super) offered: Count,
    /// Bytes of packets that were sent in a class that the port does not have and joined this one: now,
    /// since the class was empty last, and at most.
    other_bytes: u64,
    joined_bytes: u64,
    pub(super) max_joined_bytes: u64,
    /// Those dropped at the port.
    pub(super) dropped: Count,
    limit: u64,
    limit_packets: u64,
    pub(super) algorithm: SwitchAlgorithm,
}

impl StrictClass {
    /// Cache lines that a packet needs of it.
    pub(super) const HOT_LINES: usize = 1;

    pub(super) fn new(config: &ClassConfig) -> Self {
        Self {
            queue: Ring::new(),
            own_bytes: 0,
            max_own_bytes: 0,
            offered: Count::default(),
            other_bytes: 0,
            joined_bytes: 0,
            max_joined_bytes: 0,
            dropped: Count::default(),
            limit: config.limit.get(),
            limit_packets: u64::from(config.limit_packets),
            algorithm: config.algorithm.clone(),
        }
    }

    /// Whether it has a limit of its own.
    pub(super) fn is_limited(&self) -> bool {
        self.limit < u64::MAX || self.limit_packets < u64::from(u32::MAX)
    }

    /// Whether its own limits leave room for a packet.
    pub(super) fn has_room(&self, bytes: u32) -> bool {
        (self.queue.len() as u64) < self.limit_packets
            && self.bytes() + u64::from(bytes) <= self.limit
    }

    /// Bytes in the port, a packet in service included.
    pub(super) fn bytes(&self) -> u64 {
        self.own_bytes + self.other_bytes
    }

    /// A packet sent in this class joins it.
    #[inline(always)]
    pub(super) fn join(&mut self, bytes: u32) {
        self.own_bytes += u64::from(bytes);
        self.max_own_bytes = self.max_own_bytes.max(self.own_bytes);
    }

    /// A packet joins it of which `own` bytes were sent in it, all or none, at a port where both happens.
    #[cold]
    pub(super) fn join_mixed(&mut self, bytes: u32, own: u32) {
        if self.bytes() == 0 {
            self.joined_bytes = 0;
        }
        self.other_bytes += u64::from(bytes - own);
        self.joined_bytes += u64::from(bytes - own);
        self.max_joined_bytes = self.max_joined_bytes.max(self.joined_bytes);
        self.join(own);
    }

    /// A packet of which `own` bytes were sent in this class, all or none, has left.
    #[inline(always)]
    pub(super) fn leave(&mut self, bytes: u32, own: u32) {
        self.own_bytes -= u64::from(own);
        if bytes != own {
            self.other_bytes -= u64::from(bytes - own);
        }
    }
}
