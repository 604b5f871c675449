//! The lock of an engine that several threads drive.

use std::cell::Cell;
use std::sync::MutexGuard;

use super::run_engine;
use crate::engine::Engine;

thread_local! {
    /// Number of the engine that this thread runs; 0 for none.
    static RUNS: Cell<usize> = const { Cell::new(0) };
}

/// An engine that this thread has locked; `None` after the engine has ended. The second field is the engine's
/// [`Shared::number`].
pub(super) struct Locked<'a>(pub(super) MutexGuard<'a, Option<Engine>>, pub(super) usize);

impl Locked<'_> {
    /// Calls `part` with the engine, and records meanwhile that this thread runs it. Returns `None` if the engine has
    /// ended.
    #[inline]
    pub(super) fn run<T>(&mut self, part: impl FnOnce(&mut Engine) -> T) -> Option<T> {
        struct Outer(usize);
        impl Drop for Outer {
            fn drop(&mut self) {
                RUNS.set(self.0);
            }
        }
        let engine = self.0.as_mut()?;
        let _outer = Outer(RUNS.replace(self.1));
        Some(run_engine(|| part(engine)))
    }
}

/// Returns `true` if this thread runs the engine of this number.
pub(super) fn runs(number: usize) -> bool {
    RUNS.get() == number
}
