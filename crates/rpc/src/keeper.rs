//! A thread that keeps deadlines.
//!
//! The owner of deadlines stores them and states the time by which it must be called. The thread starts with the first
//! deadline. It is called once per earliest deadline and not once per call, because most calls end long before their
//! deadlines.

use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

/// An owner of deadlines.
pub(crate) trait Deadlines: Send + Sync {
    /// Handles the deadlines that have passed. Returns the next one.
    fn expire(&self, now: Instant) -> Option<Instant>;
}

struct State {
    at: Option<Instant>,
    owner: Option<Weak<dyn Deadlines>>,
    started: bool,
    stopped: bool,
}

/// The thread that keeps the deadlines of one owner.
pub(crate) struct Keeper {
    origin: Instant,
    /// Time of the next call in nanoseconds since `origin`; `u64::MAX` without a next call.
    next: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
}

impl Keeper {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            origin: Instant::now(),
            next: AtomicU64::new(u64::MAX),
            state: Mutex::new(State { at: None, owner: None, started: false, stopped: false }),
            changed: Condvar::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ns(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.origin).as_nanos()).unwrap_or(u64::MAX)
    }

    /// Sets the owner, which is called from now on.
    pub(crate) fn set_owner(&self, owner: Weak<dyn Deadlines>) {
        self.state().owner = Some(owner);
    }

    /// Ensures that the owner is called at `at` or earlier. The owner must have stored its deadline already.
    pub(crate) fn wake_by(self: &Arc<Self>, at: Instant) {
        // Either this thread sees that the keeper has begun to read the deadlines, or the keeper sees this deadline.
        fence(Ordering::SeqCst);
        let ns = self.ns(at);
        if ns >= self.next.load(Ordering::SeqCst) {
            return;
        }
        let mut state = self.state();
        if state.at.is_some_and(|next| next <= at) || state.stopped {
            return;
        }
        state.at = Some(at);
        self.next.store(ns, Ordering::SeqCst);
        if !state.started {
            let keeper = Arc::clone(self);
            let thread = std::thread::Builder::new().name("apus-rpc-keeper".to_owned());
            // Without this thread, only blocking calls and the server keep deadlines.
            state.started = thread.spawn(move || keeper.run()).is_ok();
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Stops the thread.
    fn stop(&self) {
        self.state().stopped = true;
        self.changed.notify_one();
    }

    fn run(&self) {
        let mut state = self.state();
        while !state.stopped {
            let now = Instant::now();
            match state.at {
                None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(at) if at > now => {
                    let waited = self.changed.wait_timeout(state, at - now);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                Some(_) => {
                    state.at = None;
                    self.next.store(u64::MAX, Ordering::SeqCst);
                    let owner = state.owner.clone();
                    drop(state);
                    fence(Ordering::SeqCst);
                    let owner = owner.and_then(|owner| owner.upgrade());
                    let next = owner.and_then(|owner| owner.expire(now));
                    state = self.state();
                    if let Some(next) = next
                        && state.at.is_none_or(|at| next < at)
                    {
                        state.at = Some(next);
                        self.next.store(self.ns(next), Ordering::SeqCst);
                    }
                }
            }
        }
    }
}

/// Stops the thread of a keeper when it is dropped.
pub(crate) struct Stops(pub(crate) Arc<Keeper>);

impl Drop for Stops {
    fn drop(&mut self) {
        self.0.stop();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    struct Owner(Mutex<Vec<Instant>>, mpsc::Sender<Instant>);

    impl Deadlines for Owner {
        fn expire(&self, now: Instant) -> Option<Instant> {
            let mut all = self.0.lock().expect("no panic");
            for at in all.extract_if(.., |at| *at <= now) {
                self.1.send(at).expect("a receiver");
            }
            all.iter().min().copied()
        }
    }

    #[test]
    fn deadlines_pass_in_order_and_none_before_its_time() {
        let (sender, passed) = mpsc::channel();
        let owner = Arc::new(Owner(Mutex::default(), sender));
        let keeper = Keeper::new();
        let weak: Weak<dyn Deadlines> = Arc::downgrade(&(Arc::clone(&owner) as Arc<dyn Deadlines>));
        keeper.set_owner(weak);
        let from = Instant::now();
        let all = [30, 5, 10, 20].map(|ms| from + Duration::from_millis(ms));
        for at in all {
            owner.0.lock().expect("no panic").push(at);
            keeper.wake_by(at);
        }
        let mut seen: Vec<_> = all.iter().map(|_| passed.recv().expect("a deadline")).collect();
        assert!(Instant::now() >= all[0]);
        // Deadlines that passed together are reported together.
        seen.sort();
        assert_eq!(seen, [all[1], all[2], all[3], all[0]]);
        keeper.stop();
    }
}
