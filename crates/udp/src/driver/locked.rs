//! The lock of an engine that several threads drive.

use std::cell::Cell;
use std::sync::MutexGuard;

use super::run_engine;
use crate::engine::Engine;

thread_local! {
    /// The number of the engine that this thread runs; 0 for none.
    static RUNS: Cell<usize> = const { Cell::new(0) };
}

/// An engine that this thread has locked; `None` after it has ended. The number is that of [`Shared::number`].
pub(super) struct Locked<'a>(pub(super) MutexGuard<'a, Option<Engine>>, pub(super) usize);

impl Locked<'_> {
    /// Runs a part of the engine; returns `None` if the engine has ended.
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
