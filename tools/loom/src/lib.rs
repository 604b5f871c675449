//! Interleavings of threads, tested with loom: the source files of `apus-udp` and `apus-sim` with these steps, compiled
//! with loom's atomics and locks.
#![allow(dead_code, reason = "tests use a part")]

mod sync {
    pub(crate) use loom::sync::atomic::{
        AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub(crate) use loom::sync::{Arc, Condvar, Mutex};
}

#[path = "../../../crates/udp/src/sleepers.rs"]
mod sleepers;
#[path = "../../../crates/udp/src/slots.rs"]
mod slots;
#[path = "../../../crates/udp/src/uses.rs"]
mod uses;
#[path = "../../../crates/sim/src/waiters.rs"]
mod waiters;

#[cfg(test)]
mod tests {
    use loom::cell::UnsafeCell;
    use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
    use loom::sync::{Arc, Condvar, Mutex};
    use loom::thread;

    use crate::sleepers::{Sleeper, Sleepers};
    use crate::slots::Slots;
    use crate::uses::Uses;
    use crate::waiters::Waiters;

    /// Model of an eventfd.
    struct EventFd {
        is_readable: Mutex<bool>,
        changed: Condvar,
    }

    impl EventFd {
        fn new() -> Self {
            Self { is_readable: Mutex::new(false), changed: Condvar::new() }
        }

        fn write(&self) {
            *self.is_readable.lock().expect("no panic") = true;
            self.changed.notify_one();
        }

        /// Waits until the eventfd is readable, and reads it.
        fn wait(&self) {
            let mut is_readable = self.is_readable.lock().expect("no panic");
            while !*is_readable {
                is_readable = self.changed.wait(is_readable).expect("no panic");
            }
            *is_readable = false;
        }
    }

    /// State that the threads of an engine share. Queues and the end of a wait are modelled by flags.
    struct Engine {
        sleepers: Sleepers,
        commands: [AtomicBool; 2],
        wakeups: [EventFd; 2],
    }

    impl Engine {
        fn new() -> Arc<Self> {
            let flag = || AtomicBool::new(false);
            Arc::new(Self {
                sleepers: Sleepers::new(),
                commands: [flag(), flag()],
                wakeups: [EventFd::new(), EventFd::new()],
            })
        }

        fn wake(&self, who: Sleeper) {
            self.wakeups[usize::from(who == Sleeper::Background)].write();
        }

        /// Models `Mailbox::post`.
        fn post(&self, command: usize) {
            self.commands[command].store(true, Ordering::Release);
            if let Some(who) = self.sleepers.to_wake() {
                self.wake(who);
            }
        }

        /// Models `Mailbox::sleep`: sleeps until there is a command. A lost wake-up would make this wait endless.
        fn take(&self, who: Sleeper, commands: &[usize]) {
            for &command in commands {
                while !self.commands[command].load(Ordering::Acquire) {
                    self.sleepers.begin(who);
                    if !self.commands[command].load(Ordering::Acquire) {
                        self.wakeups[usize::from(who == Sleeper::Background)].wait();
                    }
                    self.sleepers.end(who);
                }
            }
        }
    }

    #[test]
    fn a_command_wakes_the_thread_that_sleeps_or_is_about_to() {
        for who in [Sleeper::Leader, Sleeper::Background] {
            loom::model(move || {
                let engine = Engine::new();
                let poster = Arc::clone(&engine);
                let thread = thread::spawn(move || poster.post(0));
                engine.take(who, &[0]);
                thread.join().expect("no panic");
            });
        }
    }

    /// At most three switches between runnable threads are tested; without a bound the test takes minutes.
    #[test]
    fn commands_of_two_threads_wake_the_thread_that_sleeps() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let engine = Engine::new();
            let threads = [0, 1].map(|command| {
                let poster = Arc::clone(&engine);
                thread::spawn(move || poster.post(command))
            });
            engine.take(Sleeper::Leader, &[0, 1]);
            threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        });
    }

    #[test]
    fn the_end_of_a_wait_wakes_the_call_that_leads() {
        loom::model(|| {
            let engine = Engine::new();
            let other = Arc::clone(&engine);
            // Models `Wake::wake_by_ref` of the mailbox.
            let thread = thread::spawn(move || {
                other.commands[0].store(true, Ordering::Release);
                if other.sleepers.must_wake_leader() {
                    other.wake(Sleeper::Leader);
                }
            });
            engine.take(Sleeper::Leader, &[0]);
            thread.join().expect("no panic");
        });
    }

    /// At most the limit is in use at any time, and none is in use at the end.
    #[test]
    fn slots_are_never_more_than_their_limit_and_none_is_lost() {
        loom::model(|| {
            let slots = Slots::new(1);
            let used = Arc::new(AtomicU32::new(0));
            let threads = [(); 2].map(|()| {
                let (slots, used) = (slots.clone(), Arc::clone(&used));
                thread::spawn(move || {
                    if let Ok(slot) = slots.take() {
                        assert_eq!(used.fetch_add(1, Ordering::AcqRel), 0);
                        used.fetch_sub(1, Ordering::AcqRel);
                        drop(slot);
                    }
                })
            });
            threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
            assert!(slots.take().is_ok());
        });
    }

    /// The memory of a withdrawn region is free only after the last use by an engine; loom reports concurrent accesses.
    #[test]
    fn memory_that_is_free_is_used_by_no_engine() {
        loom::model(|| {
            let shared = Arc::new((Uses::new(1), UnsafeCell::new(0), EventFd::new()));
            let engine = Arc::clone(&shared);
            let thread = thread::spawn(move || {
                let (uses, memory, wake) = &*engine;
                // A packet that reads the region, and then the step after the packet or a wake-up.
                if !uses.is_withdrawn() {
                    memory.with(|_| ());
                }
                if !uses.is_withdrawn() {
                    wake.wait();
                }
                assert!(uses.is_withdrawn());
                uses.leave(0);
            });
            let (uses, memory, wake) = &*shared;
            assert!(!uses.is_free() && uses.withdraw() && !uses.withdraw());
            wake.write();
            if uses.is_free() {
                memory.with_mut(|_| ());
            }
            thread.join().expect("no panic");
            assert!(uses.is_free());
        });
    }

    /// Imitates `Shared::submitted` and `Shared::flush` of a driven engine: a thread posts its command, and the thread that
    /// holds the lock of the engine processes the commands of all threads.
    #[test]
    fn no_command_is_forgotten() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let flag = || AtomicBool::new(false);
            let shared = Arc::new((Mutex::new(0), [flag(), flag()]));
            let run = |shared: &(Mutex<u32>, [AtomicBool; 2]), own: usize| {
                let (engine, commands) = shared;
                commands[own].store(true, Ordering::Release);
                fence(Ordering::SeqCst);
                while commands.iter().any(|command| command.load(Ordering::Acquire)) {
                    let Ok(mut processed) = engine.try_lock() else { return };
                    for command in commands {
                        if command.load(Ordering::Acquire) {
                            command.store(false, Ordering::Relaxed);
                            *processed += 1;
                        }
                    }
                    drop(processed);
                    fence(Ordering::SeqCst);
                }
            };
            let other = Arc::clone(&shared);
            let thread = thread::spawn(move || run(&other, 0));
            run(&shared, 1);
            thread.join().expect("no panic");
            assert_eq!(*shared.0.lock().expect("no panic"), 2);
        });
    }

    /// The end of a window of a parallel simulation: each of two parts waits for the other one. A lost wake-up would
    /// make a wait endless.
    #[test]
    fn parts_that_wait_for_each_other_both_go_on() {
        loom::model(|| {
            let shared = Arc::new((Waiters::new(), [AtomicU32::new(0), AtomicU32::new(0)]));
            let meet = |shared: &(Waiters, [AtomicU32; 2]), part: usize| {
                let (waiters, windows) = shared;
                windows[part].store(1, Ordering::Release);
                waiters.wake();
                waiters.sleep_until(|| windows[1 - part].load(Ordering::Acquire) >= 1);
            };
            let other = Arc::clone(&shared);
            let thread = thread::spawn(move || meet(&other, 1));
            meet(&shared, 0);
            thread.join().expect("no panic");
        });
    }
}
