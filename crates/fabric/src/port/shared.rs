//! The packet memory that the ports of a switch share.

use apus_units::planted::{Bug, is_planted};

/// A switch's memory with dynamic thresholds (Choudhury and Hahne 1998, see [`crate::Buffer`]).
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedBuffer {
    size: u64,
    used: u64,
    /// Number of ports that share the memory.
    ports: u32,
}

impl SharedBuffer {
    pub(crate) fn new(size: u64, ports: u32) -> Self {
        Self { size, used: 0, ports }
    }

    /// Returns `true` if a queue that holds `queue` bytes may accept `bytes` more.
    pub(crate) fn admits(&self, alpha: f64, queue: u64, bytes: u64) -> bool {
        let free = self.size - self.used;
        (bytes <= free || is_planted(Bug::MemoryOverdrawn))
            && (queue + bytes) as f64 <= alpha * free as f64
    }

    /// Returns the number of bytes that each queue holds if one queue at every port is at its
    /// threshold. Source: the steady state of dynamic thresholds (Choudhury and Hahne 1998),
    /// alpha * size / (1 + alpha * queues).
    pub(crate) fn fair_share(&self, alpha: f64) -> f64 {
        alpha * self.size as f64 / (1.0 + alpha * f64::from(self.ports))
    }

    pub(crate) fn reserve(&mut self, bytes: u64) {
        self.used += bytes;
        assert!(self.used <= self.size, "a packet was admitted without room");
    }

    pub(crate) fn release(&mut self, bytes: u64) {
        self.used -= bytes;
    }

    /// Returns the number of bytes of packets in the memory.
    pub(crate) fn used(&self) -> u64 {
        self.used
    }
}
