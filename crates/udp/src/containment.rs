//! Protection of the engine, and of the channels between engine and application, from panics of application code
//! (wakers, destructors of memory).

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Wake, Waker};

/// Runs application code. Returns `None` if the code panics; the panic hook has reported the panic by then.
pub(crate) fn contain<T>(run: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(value) => Some(value),
        Err(payload) => {
            // The destructor of the payload is also application code, and its panic would not be caught.
            mem::forget(payload);
            None
        }
    }
}

/// Wraps the wakers of one future, so that channels never call a waker that panics. Channels call wakers under their
/// own locks, and a panic would make them lose count of the waiting tasks.
#[derive(Default)]
pub(crate) struct ContainedWaker(Option<(Waker, Waker)>);

impl ContainedWaker {
    /// Returns `waker` wrapped. Reuses the last wrapper if it wraps the same waker.
    pub(crate) fn of(&mut self, waker: &Waker) -> &Waker {
        let kept = self.0.take().filter(|(own, _)| own.will_wake(waker));
        let wrap = || (waker.clone(), Waker::from(Arc::new(Contained(Some(waker.clone())))));
        &self.0.insert(kept.unwrap_or_else(wrap)).1
    }
}

/// A waker that catches its panics. The field is `Some` until the waker is dropped.
struct Contained(Option<Waker>);

impl Wake for Contained {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        contain(|| self.0.as_ref().map(Waker::wake_by_ref));
    }
}

impl Drop for Contained {
    fn drop(&mut self) {
        let waker = self.0.take();
        contain(|| drop(waker));
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::Context;

    use super::*;

    struct Panics(AtomicU32);

    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
            panic!("a waker that panics");
        }
    }

    #[test]
    fn a_panicking_waker_neither_stops_the_sender_nor_hides_the_channels_end_from_others() {
        let panics = Arc::new(Panics(AtomicU32::new(0)));
        let (sender, receiver) = async_channel::unbounded::<u32>();
        let waker = Waker::from(Arc::clone(&panics));
        let mut contained = ContainedWaker::default();
        let mut first = pin!(receiver.recv());
        let mut context = Context::from_waker(contained.of(&waker));
        assert!(first.as_mut().poll(&mut context).is_pending());
        let other = receiver.clone();
        let blocked = std::thread::spawn(move || other.recv_blocking());
        drop(sender);
        assert!(blocked.join().expect("no panic there").is_err(), "it hears that nothing comes");
        assert_eq!(panics.0.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn the_same_waker_is_wrapped_once() {
        let mut contained = ContainedWaker::default();
        let waker = Waker::from(Arc::new(Panics(AtomicU32::new(0))));
        let first = contained.of(&waker).clone();
        assert!(contained.of(&waker).will_wake(&first));
        assert!(!contained.of(Waker::noop()).will_wake(&first));
    }
}
