//! A limited number of slots. Any thread can drop a slot, which frees it. `tools/loom` tries all orders of these steps.

use crate::sync::{Arc, AtomicU32, Ordering};

/// A limited number of slots.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    used: Arc<AtomicU32>,
    limit: u32,
}

/// A slot in use. Dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct Slot(Arc<AtomicU32>);

impl Slots {
    pub(crate) fn new(limit: u32) -> Self {
        Self { used: Arc::new(AtomicU32::new(0)), limit }
    }

    /// Takes a slot.
    ///
    /// # Errors
    /// If no slot is free. The error holds the excess count, and dropping it reverts the count.
    pub(crate) fn take(&self) -> Result<Slot, Slot> {
        let slot = Slot(Arc::clone(&self.used));
        let free = self.used.fetch_add(1, Ordering::AcqRel) < self.limit;
        if free { Ok(slot) } else { Err(slot) }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
