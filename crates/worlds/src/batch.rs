//! Many seeds, on several threads.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::log::Counts;
use crate::plan::Plan;
use crate::run;
use crate::world::Violation;

/// Maximum number of violations after which a batch ends.
const MAX_FAILURES: usize = 10;

/// What the worlds of a range of seeds have shown.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Number of worlds.
    pub worlds: u64,
    /// Seeds with a violation, in their order; at most 10, and more are not looked for.
    pub failures: Vec<(u64, Violation)>,
    /// Sums over all worlds.
    pub counts: Counts,
    /// Number of worlds by number of hosts, of ops and of faults that began.
    pub hosts: Vec<u64>,
    /// As `hosts`.
    pub ops: Vec<u64>,
    /// As `hosts`.
    pub faults: Vec<u64>,
}

/// Returns the median of numbers of which `counts` has how often each occurs.
#[must_use]
pub fn median(counts: &[u64]) -> u64 {
    let half = counts.iter().sum::<u64>().div_ceil(2);
    let mut below = 0;
    let place = counts.iter().position(|count| {
        below += count;
        below >= half
    });
    place.unwrap_or(0) as u64
}

/// Counts a number in a list of how often each occurs.
pub(crate) fn count(counts: &mut Vec<u64>, number: u64) {
    let place = number as usize;
    if counts.len() <= place {
        counts.resize(place + 1, 0);
    }
    counts[place] += 1;
}

impl Batch {
    fn add(&mut self, seed: u64, plan: &Plan, counts: Counts, violation: Option<Violation>) {
        self.worlds += 1;
        count(&mut self.hosts, plan.hosts.len() as u64);
        count(&mut self.ops, counts.ops);
        count(&mut self.faults, counts.faults);
        self.counts.add(&counts);
        self.failures.extend(violation.map(|violation| (seed, violation)));
    }
}

/// Calls `work` with every seed, on several threads, until it returns `false` or this number of violations.
pub(crate) fn each_seed(
    seeds: Range<u64>,
    threads: NonZeroUsize,
    work: impl Fn(u64) -> (bool, usize) + Sync,
) {
    let next = AtomicU64::new(seeds.start);
    let enough = AtomicBool::new(false);
    let run = || {
        while !enough.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return;
            }
            let (go_on, failures) = work(seed);
            if !go_on || failures >= MAX_FAILURES {
                enough.store(true, Ordering::Relaxed);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.get() {
            scope.spawn(run);
        }
        run();
    });
}

/// Locks a batch; a thread that panicked has not changed it by half.
pub(crate) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the worlds of seeds. `progress` is called with the number of worlds that have ended; it returns `false` to end the
/// batch.
#[must_use]
pub fn run_seeds(
    seeds: Range<u64>,
    threads: NonZeroUsize,
    progress: impl Fn(u64) -> bool + Sync,
) -> Batch {
    let batch = Mutex::new(Batch::default());
    each_seed(seeds, threads, |seed| {
        let plan = Plan::draw(seed);
        let outcome = run(&plan, false);
        let mut batch = lock(&batch);
        batch.add(seed, &plan, outcome.counts, outcome.violation);
        (progress(batch.worlds), batch.failures.len())
    });
    let mut batch = lock(&batch).clone();
    batch.failures.sort_by_key(|&(seed, _)| seed);
    batch
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_smallest_number_with_half_of_all_at_or_below() {
        assert_eq!(median(&[]), 0);
        assert_eq!(median(&[0, 0, 1, 1]), 2);
        assert_eq!(median(&[0, 1, 1, 1]), 2);
        assert_eq!(median(&[5, 0, 4]), 0);
    }
}
