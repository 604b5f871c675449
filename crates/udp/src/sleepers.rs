//! The threads that sleep for an engine, and which of them is woken. `tools/loom` tries all orders of these steps.

use crate::sync::{AtomicBool, Ordering, fence};

/// A thread that may sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sleeper {
    /// A call that leads.
    Leader,
    /// The background thread.
    Background,
}

/// Which threads sleep or are about to.
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

    /// Says that a thread is about to sleep. What has come before must be looked for after this call, and before the sleep.
    #[inline]
    pub(crate) fn begin(&self, who: Sleeper) {
        self.flag(who).store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Says that a thread has slept.
    #[inline]
    pub(crate) fn end(&self, who: Sleeper) {
        self.flag(who).store(false, Ordering::Relaxed);
    }

    /// Returns the thread to wake after something has come: a call that leads, or else the background thread.
    #[inline]
    pub(crate) fn to_wake(&self) -> Option<Sleeper> {
        // Either this thread sees the flag, or the sleeper sees what has come after it has set the flag.
        fence(Ordering::SeqCst);
        [Sleeper::Leader, Sleeper::Background].into_iter().find(|&who| self.sleeps(who))
    }

    /// Returns `true` if a call that leads is to be woken because its wait has ended.
    #[inline]
    pub(crate) fn must_wake_leader(&self) -> bool {
        fence(Ordering::SeqCst);
        self.sleeps(Sleeper::Leader)
    }

    /// Returns `true` if a thread sleeps or is about to.
    #[inline]
    pub(crate) fn sleeps(&self, who: Sleeper) -> bool {
        self.flag(who).load(Ordering::Relaxed)
    }
}
