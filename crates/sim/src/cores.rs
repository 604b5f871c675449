//! Processor cores that other programs leave free.

use std::thread::{Builder, scope};
use std::time::{Duration, Instant};

/// Duration of the observation of threads. deviation: no source; several time slices of a scheduler (3 ms on
/// Linux), so that a thread that shares its core loses it.
const LOOK: Duration = Duration::from_millis(10);
/// Minimum time without the core that counts as descheduled, not as an interrupt.
const LOST: Duration = Duration::from_micros(500);

/// Returns how many of `threads` threads have a core of their own now, at least 1. For more than one thread,
/// it runs the threads for 10 ms and counts those that were not descheduled.
///
/// The threads of one run wait for each other several thousand times per second, so a thread that shares its
/// core delays all others. The results of a run do not depend on the number of threads.
#[must_use]
pub fn free(threads: u32) -> u32 {
    if threads <= 1 {
        return 1;
    }
    let undisturbed = scope(|scope| {
        let start = |_| Builder::new().spawn_scoped(scope, keeps_core).ok();
        let others: Vec<_> = (1..threads).map(start).collect();
        let own = u32::from(keeps_core());
        let kept = |thread: std::thread::ScopedJoinHandle<'_, bool>| thread.join().unwrap_or(false);
        own + others.into_iter().flatten().map(|thread| u32::from(kept(thread))).sum::<u32>()
    });
    undisturbed.max(1)
}

/// Returns `true` if the calling thread kept its core for [`LOOK`].
fn keeps_core() -> bool {
    let began = Instant::now();
    let mut last = began;
    while last - began < LOOK {
        let now = Instant::now();
        if now - last > LOST {
            return false;
        }
        last = now;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_least_one_thread_and_at_most_all_have_a_core() {
        assert_eq!(free(0), 1);
        assert_eq!(free(1), 1);
        assert!((1..=3).contains(&free(3)));
    }
}
