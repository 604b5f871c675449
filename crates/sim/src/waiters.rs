//! Threads that sleep until a condition holds, which other threads make true without a lock. `tools/loom` tries all
//! orders of these steps.

use std::sync::PoisonError;

use crate::sync::{AtomicUsize, Condvar, Mutex, Ordering, fence};

/// The threads that sleep or are about to.
pub(crate) struct Waiters {
    count: AtomicUsize,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Waiters {
    pub(crate) fn new() -> Self {
        Self { count: AtomicUsize::new(0), lock: Mutex::new(()), changed: Condvar::new() }
    }

    /// Makes all sleeping threads check their conditions again. The caller has made a condition true.
    #[inline]
    pub(crate) fn wake(&self) {
        // Either this thread sees the sleeping thread, or that thread, which checks after it has counted itself, sees
        // that its condition is true.
        fence(Ordering::SeqCst);
        if self.count.load(Ordering::Relaxed) > 0 {
            self.notify();
        }
    }

    #[cold]
    fn notify(&self) {
        // A thread that has checked but does not sleep yet holds the lock.
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    /// Sleeps until the condition `is_true`.
    #[cold]
    pub(crate) fn sleep_until(&self, is_true: impl Fn() -> bool) {
        self.count.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        while !is_true() {
            guard = self.changed.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns the number of threads that sleep or are about to.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }
}
