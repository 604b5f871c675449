//! The threads that sleep for an engine, and the choice of the thread to wake. `tools/loom` tries all orders of these
//! steps.

use crate::sync::{AtomicBool, Ordering, fence};

/// A thread that may sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sleeper {
    /// A call that leads.
    Leader,
    /// The background thread.
    Background,
}

/// The threads that sleep or are about to sleep.
#[derive(Debug)]
pub(crate) struct Sleepers {
    leader: AtomicBool,
    background: AtomicBool,
}

impl Sleepers {
    pub(crate) fn new() -> Self {
        Self { leader: AtomicBool::new(false), background: AtomicBool::new(false) }
    }

    fn flag(&self, who: Sleeper) -> &AtomicBool {
        match who {
            Sleeper::Leader => &self.leader,
            Sleeper::Background => &self.background,
        }
    }

    /// Records that a thread is about to sleep. Between this call and the sleep, the thread must check for events that
    /// occurred before.
    #[inline]
    pub(crate) fn begin(&self, who: Sleeper) {
        self.flag(who).store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Records that a thread no longer sleeps.
    #[inline]
    pub(crate) fn end(&self, who: Sleeper) {
        self.flag(who).store(false, Ordering::Relaxed);
    }

    /// Returns the thread to wake after an event: a call that leads, or else the background thread.
    #[inline]
    pub(crate) fn to_wake(&self) -> Option<Sleeper> {
        // Either this thread sees the flag, or the sleeper, which checks after setting the flag, sees the event.
        fence(Ordering::SeqCst);
        [Sleeper::Leader, Sleeper::Background].into_iter().find(|&who| self.sleeps(who))
    }

    /// Returns `true` if a call that leads must be woken because its wait has ended.
    #[inline]
    pub(crate) fn must_wake_leader(&self) -> bool {
        fence(Ordering::SeqCst);
        self.sleeps(Sleeper::Leader)
    }

    /// Returns `true` if a thread sleeps or is about to sleep.
    #[inline]
    pub(crate) fn sleeps(&self, who: Sleeper) -> bool {
        self.flag(who).load(Ordering::Relaxed)
    }
}
