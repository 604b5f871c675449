//! The parts of the standard library that `tools/loom` replaces by those of loom.

pub(crate) use std::sync::atomic::{AtomicUsize, Ordering, fence};
pub(crate) use std::sync::{Condvar, Mutex};
