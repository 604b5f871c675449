//! The packet memory that the ports of a switch share.

/// A switch's memory with dynamic thresholds (Choudhury and Hahne 1998, see [`crate::Buffer`]).
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedBuffer {
    size: u64,
    used: u64,
}

impl SharedBuffer {
    pub(crate) fn new(size: u64) -> Self {
        Self { size, used: 0 }
    }

    /// Returns `true` if a queue that holds `queue` bytes may take `bytes` more.
    pub(crate) fn admits(&self, alpha: f64, queue: u64, bytes: u64) -> bool {
        bytes <= self.size - self.used && (queue + bytes) as f64 <= self.threshold(alpha)
    }

    /// Returns the bytes that each queue may hold now.
    pub(crate) fn threshold(&self, alpha: f64) -> f64 {
        alpha * (self.size - self.used) as f64
    }

    pub(crate) fn reserve(&mut self, bytes: u64) {
        self.used += bytes;
        debug_assert!(self.used <= self.size, "a packet was admitted without room");
    }

    pub(crate) fn release(&mut self, bytes: u64) {
        self.used -= bytes;
    }

    /// Bytes of packets in the memory.
    pub(crate) fn used(&self) -> u64 {
        self.used
    }
}
