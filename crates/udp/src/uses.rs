//! Which engines still use the memory of a region after its withdrawal. `tools/loom` tries all orders of these steps.

use crate::sync::{AtomicBool, AtomicU64, Ordering};

/// The engines that may use a region.
pub(crate) struct Uses {
    withdrawn: AtomicBool,
    /// One bit per engine.
    engines: AtomicU64,
}

impl Uses {
    /// Returns the uses of a new region by the engines with these bits.
    pub(crate) fn new(engines: u64) -> Self {
        Self { withdrawn: AtomicBool::new(false), engines: AtomicU64::new(engines) }
    }

    /// Returns `true` if the region was withdrawn: an engine begins no use of it then.
    #[inline]
    pub(crate) fn is_withdrawn(&self) -> bool {
        self.withdrawn.load(Ordering::Acquire)
    }

    /// Withdraws the region; returns `false` if it was withdrawn before.
    pub(crate) fn withdraw(&self) -> bool {
        !self.withdrawn.swap(true, Ordering::AcqRel)
    }

    /// Records that an engine uses the region no more: it has ended, or has seen the withdrawal and sends nothing from it.
    pub(crate) fn leave(&self, engine: u32) {
        self.engines.fetch_and(!(1 << engine), Ordering::AcqRel);
    }

    /// Returns `true` if the region was withdrawn and no engine uses it: its memory may be used otherwise.
    pub(crate) fn is_free(&self) -> bool {
        self.is_withdrawn() && self.engines.load(Ordering::Acquire) == 0
    }
}
