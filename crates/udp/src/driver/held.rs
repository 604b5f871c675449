//! Resources that the calling thread holds while application code runs: engines that it runs, and memory of regions.
//! They decide whether a call would wait for its own thread.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use apus_wire::RegionKey;

use super::turns;

/// A host of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostId(u64);

impl HostId {
    /// Returns the identifier of a new host.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Calls `run` in a thread that exists to run an engine of this host.
    pub(crate) fn in_thread<T>(self, run: impl FnOnce() -> T) -> T {
        THREAD_OF.set(Some(self));
        let result = run();
        THREAD_OF.set(None);
        result
    }

    /// Returns `true` if this thread exists to run an engine of this host. All application code in such a thread is
    /// called by the engine.
    pub(crate) fn has_this_thread(self) -> bool {
        THREAD_OF.get() == Some(self)
    }
}

thread_local! {
    /// The host whose engine this thread exists to run.
    static THREAD_OF: Cell<Option<HostId>> = const { Cell::new(None) };
    /// Number of nested steps of engines that this thread is running.
    static STEPS: Cell<u32> = const { Cell::new(0) };
    /// Regions whose memory this thread holds, with their hosts. If the thread is ending, the list may already be
    /// destroyed.
    static MEMORY: RefCell<Vec<(HostId, RegionKey)>> = const { RefCell::new(Vec::new()) };
    /// Number of these regions. It is cheaper to read than the list, and stays valid until the thread has ended.
    static REGIONS: Cell<usize> = const { Cell::new(0) };
}

/// Returns `true` if this thread is running a step of an engine. During a step, the engine calls wakers and memory of
/// the application.
fn runs_engine() -> bool {
    STEPS.get() > 0
}

/// Returns `true` if this thread is running a step of an engine, or holds the memory of a region of any host.
pub(crate) fn holds_locks() -> bool {
    runs_engine() || REGIONS.get() > 0
}

/// Returns `true` if this thread holds the memory of a region of this host. Engines of the host may wait for that
/// memory, so the thread must not wait for them. A thread that is ending may have lost the list of hosts. If it holds
/// any memory, the result is then `true` for every host.
pub(crate) fn holds_memory_of(host: HostId) -> bool {
    let any =
        |held: &RefCell<Vec<(HostId, RegionKey)>>| held.borrow().iter().any(|of| of.0 == host);
    REGIONS.get() > 0 && MEMORY.try_with(any).unwrap_or(true)
}

/// Returns `true` if this thread must not run a step of an engine of this host, because the step could wait for this
/// thread.
pub(crate) fn cannot_step(host: HostId) -> bool {
    runs_engine() || holds_memory_of(host)
}

/// Returns `true` if this thread must not wait for the end of the engines of this host, because the engines could wait
/// for this thread.
pub(crate) fn cannot_end(host: HostId) -> bool {
    cannot_step(host) || turns::waits()
}

/// Runs a step of an engine.
#[inline]
pub(crate) fn run_engine<T>(run: impl FnOnce() -> T) -> T {
    struct Step;
    impl Drop for Step {
        #[inline]
        fn drop(&mut self) {
            STEPS.set(STEPS.get() - 1);
        }
    }
    STEPS.set(STEPS.get() + 1);
    let _step = Step;
    run()
}

/// Records that its thread holds the memory of a region. Dropping it removes the record.
pub(crate) struct HeldMemory {
    of: (HostId, RegionKey),
    /// Prevents a move to another thread.
    _thread: PhantomData<*const ()>,
}

impl HeldMemory {
    pub(crate) fn new(host: HostId, region: RegionKey) -> Self {
        let of = (host, region);
        let _ = MEMORY.try_with(|held| held.borrow_mut().push(of));
        REGIONS.set(REGIONS.get() + 1);
        Self { of, _thread: PhantomData }
    }
}

impl Drop for HeldMemory {
    /// Has no effect in another thread than its own. C callers can cause such a drop.
    fn drop(&mut self) {
        let is_here = MEMORY.try_with(|held| {
            let mut held = held.borrow_mut();
            let place = held.iter().rposition(|of| *of == self.of);
            place.map(|place| held.swap_remove(place)).is_some()
        });
        if is_here.unwrap_or(true) {
            REGIONS.set(REGIONS.get().saturating_sub(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn memory_is_held_for_its_host_alone_and_until_the_last_hold_of_the_thread_ends() {
        let (host, other) = (HostId::new(), HostId::new());
        let [one, two] = [1, 2].map(RegionKey::new);
        let held = [HeldMemory::new(host, one), HeldMemory::new(host, two)];
        assert!(holds_locks() && holds_memory_of(host) && cannot_step(host) && cannot_end(host));
        assert!(!holds_memory_of(other) && !cannot_step(other) && !cannot_end(other));
        let [first, second] = held;
        drop(first);
        assert!(holds_memory_of(host));
        drop(second);
        assert!(!holds_locks() && !holds_memory_of(host));
        run_engine(|| assert!(holds_locks() && cannot_step(other) && !holds_memory_of(host)));
        assert!(!holds_locks());
    }

    #[test]
    fn thread_that_is_ending_still_knows_that_it_holds_memory() {
        /// Holds memory while its thread ends, after the list of held memory has been destroyed.
        struct Late(mpsc::Sender<[bool; 3]>);
        impl Drop for Late {
            fn drop(&mut self) {
                let [host, other] = [HostId::new(), HostId::new()];
                let held = HeldMemory::new(host, RegionKey::new(1));
                let during = [holds_locks(), cannot_step(host) && cannot_step(other)];
                drop(held);
                let _ = self.0.send([during[0], during[1], holds_locks()]);
            }
        }
        thread_local! {
            static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
        }
        let (tells, told) = mpsc::channel();
        let thread = thread::spawn(move || {
            // Destructors run in the reverse order of the first uses.
            LATE.with(|late| *late.borrow_mut() = Some(Late(tells)));
            drop(HeldMemory::new(HostId::new(), RegionKey::new(1)));
        });
        thread.join().expect("no panic");
        assert_eq!(told.recv(), Ok([true, true, false]));
    }

    #[test]
    fn thread_of_an_engine_is_that_of_its_host_until_the_engine_ends() {
        let (host, other) = (HostId::new(), HostId::new());
        assert!(!host.has_this_thread());
        host.in_thread(|| assert!(host.has_this_thread() && !other.has_this_thread()));
        assert!(!host.has_this_thread());
    }

    #[test]
    fn memory_that_another_thread_has_taken_and_this_one_gives_back_leaves_what_this_one_holds() {
        let (host, other) = (HostId::new(), HostId::new());
        let region = RegionKey::new(1);
        // Simulates a value that was sent here from another thread: this thread does not hold the memory.
        let foreign = || drop(HeldMemory { of: (host, region), _thread: PhantomData });
        foreign();
        assert!(!holds_locks(), "nothing was held here");
        let own = HeldMemory::new(other, region);
        foreign();
        assert!(holds_memory_of(other) && !holds_memory_of(host));
        drop(own);
        assert!(!holds_locks());
    }
}
