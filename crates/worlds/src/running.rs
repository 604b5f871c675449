//! The seeds that threads are running, so that a panic, or a run without end, is reported with its seed.

use std::any::Any;
use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind, set_hook, take_hook};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};
use std::{io, num::NonZeroUsize};

use crate::batch::{each_seed, lock};

/// The world that each thread is running.
static RUNNING: Mutex<Vec<(ThreadId, String)>> = Mutex::new(Vec::new());

/// Time between two looks for runs without end.
const BETWEEN: Duration = Duration::from_secs(1);

/// Real time after which a seed without an end is a violation: the time of its world stands still, so that no check
/// within the run ends it. deviation: no source; the largest scenario that a check within the run allows
/// takes five minutes on an idle core without optimisation across crates.
pub(crate) const MAX_TIME: Duration = Duration::from_secs(1800);

/// Returns the description of a run without an end.
pub(crate) fn no_end() -> String {
    format!("no end after {} s", MAX_TIME.as_secs())
}

/// Runs the world `name`. If it panics and the build unwinds, returns the message.
pub(crate) fn guarded<T>(name: String, work: impl FnOnce() -> T) -> Result<T, String> {
    let thread = thread::current().id();
    lock(&RUNNING).push((thread, name));
    let result = catch_unwind(AssertUnwindSafe(work));
    lock(&RUNNING).retain(|&(of, _)| of != thread);
    result.map_err(|panic| message(&*panic))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

/// Returns the world that a thread is running; if it runs none itself, those of all threads.
fn worlds_of(thread: ThreadId) -> Option<String> {
    let running = lock(&RUNNING);
    let own = running.iter().find(|&&(of, _)| of == thread).map(|(_, name)| name.clone());
    let all = || running.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>().join(", or ");
    own.or_else(|| (!running.is_empty()).then(all))
}

/// Makes a panic print the seed of its world, also if the build does not unwind. Runs of the simulator have
/// threads of their own; a panic on one of them prints the seeds of all worlds in progress.
pub fn name_seeds_of_panics() {
    let before = take_hook();
    set_hook(Box::new(move |info| {
        before(info);
        if let Some(worlds) = worlds_of(thread::current().id()) {
            // A failure to print must not panic again.
            let _ = writeln!(io::stderr(), "the panic occurred in {worlds}");
        }
    }));
}

/// Calls `work` with every seed, as [`each_seed`] does. If a seed takes longer than `limit` of real time, returns the
/// seeds that do, and leaves their threads running.
pub(crate) fn each_seed_within(
    limit: Duration,
    seeds: Range<u64>,
    threads: NonZeroUsize,
    work: impl Fn(u64) -> (bool, usize) + Send + Sync + 'static,
) -> Vec<u64> {
    let started = Arc::new(Mutex::new(BTreeMap::new()));
    let (done, ended) = channel();
    let table = Arc::clone(&started);
    let runner = thread::spawn(move || {
        each_seed(seeds, threads, |seed| {
            lock(&table).insert(seed, Instant::now());
            let result = work(seed);
            lock(&table).remove(&seed);
            result
        });
        // The receiver waits for this, unless it has given up.
        let _ = done.send(());
    });
    loop {
        match ended.recv_timeout(BETWEEN.min(limit)) {
            Err(RecvTimeoutError::Timeout) => {
                let started = lock(&started);
                let late = started.iter().filter(|(_, at)| at.elapsed() > limit);
                let late: Vec<u64> = late.map(|(&seed, _)| seed).collect();
                if !late.is_empty() {
                    return late;
                }
            }
            _ => match runner.join() {
                Ok(()) => return Vec::new(),
                Err(panic) => resume_unwind(panic),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Condvar;

    use super::*;

    #[test]
    fn a_panic_is_returned_and_names_the_world_of_its_thread() {
        let here = thread::current().id();
        let result = guarded("seed 41".to_owned(), || {
            assert_eq!(worlds_of(here).as_deref(), Some("seed 41"));
            let other = thread::spawn(|| worlds_of(thread::current().id()));
            let all = other.join().expect("no panic").expect("one world is running");
            assert!(all.contains("seed 41"), "{all}");
            resume_unwind(Box::new("a bug"));
        });
        assert_eq!(result, Err::<(), _>("a bug".to_owned()));
        assert_ne!(worlds_of(here).as_deref(), Some("seed 41"));
    }

    #[test]
    fn a_seed_without_end_is_returned() {
        let released = Arc::new((Mutex::new(false), Condvar::new()));
        let waits = Arc::clone(&released);
        let one = NonZeroUsize::MIN;
        let late = each_seed_within(Duration::from_millis(1), 5..6, one, move |_| {
            let mut open = lock(&waits.0);
            while !*open {
                open = waits.1.wait(open).expect("no panic");
            }
            (true, 0)
        });
        assert_eq!(late, [5]);
        *lock(&released.0) = true;
        released.1.notify_all();
        let all = each_seed_within(Duration::from_secs(600), 0..9, one, |_| (true, 0));
        assert!(all.is_empty(), "{all:?}");
    }
}
