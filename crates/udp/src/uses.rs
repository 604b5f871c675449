//! The engines that still use the memory of a region after its withdrawal. `tools/loom` tries all orders of these
//! steps.

use crate::sync::{AtomicBool, AtomicU64, Ordering};

/// The engines that may use a region.
pub(crate) struct Uses {
    withdrawn: AtomicBool,
    /// One bit per engine.
    engines: AtomicU64,
}

impl Uses {
    /// Returns the uses of a new region by the engines whose bits are set.
    pub(crate) fn new(engines: u64) -> Self {
        Self { withdrawn: AtomicBool::new(false), engines: AtomicU64::new(engines) }
    }

    /// Returns `true` if the region was withdrawn. Engines then begin no further use of it.
    #[inline]
    pub(crate) fn is_withdrawn(&self) -> bool {
        self.withdrawn.load(Ordering::Acquire)
    }

    /// Withdraws the region. Returns `false` if it was withdrawn before.
    pub(crate) fn withdraw(&self) -> bool {
        !self.withdrawn.swap(true, Ordering::AcqRel)
    }

    /// Records that an engine no longer uses the region: it has ended, or it has seen the withdrawal and sends nothing
    /// from the region.
    pub(crate) fn leave(&self, engine: u32) {
        self.engines.fetch_and(!(1 << engine), Ordering::AcqRel);
    }

    /// Returns `true` if the region was withdrawn and no engine uses it, so that its memory is free for other uses.
    pub(crate) fn is_free(&self) -> bool {
        self.is_withdrawn() && self.engines.load(Ordering::Acquire) == 0
    }
}
