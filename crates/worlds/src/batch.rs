//! Worlds of many seeds, on several threads.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use apus_units::Time;

use crate::log::Counts;
use crate::plan::Plan;
use crate::run;
use crate::running::{MAX_TIME, each_seed_within, no_end};
use crate::world::Violation;

/// Maximum number of violations after which a batch ends.
const MAX_FAILURES: usize = 10;

/// Check of worlds whose time stands still.
pub const STUCK: &str = "stuck";

/// Results of the worlds of a range of seeds.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Number of worlds.
    pub worlds: u64,
    /// Seeds with a violation, in order. After 10 of them the batch starts no further world; worlds in
    /// progress may add more.
    pub failures: Vec<(u64, Violation)>,
    /// Sums over all worlds.
    pub counts: Counts,
    /// By number of hosts: number of worlds.
    pub hosts: Vec<u64>,
    /// By number of ops: number of worlds.
    pub ops: Vec<u64>,
    /// By number of faults that began and had an effect: number of worlds.
    pub faults: Vec<u64>,
}

/// Returns the smallest number with at least `percent` % of a list of numbers at or below it; `counts` has, by
/// number, how often it occurs.
#[must_use]
pub fn quantile(counts: &[u64], percent: u64) -> u64 {
    let least = (counts.iter().sum::<u64>() * percent).div_ceil(100);
    let mut below = 0;
    let place = counts.iter().position(|count| {
        below += count;
        below >= least
    });
    place.unwrap_or(0) as u64
}

/// Counts a number in a list of frequencies.
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

/// Calls `work` with every seed, on several threads. `work` returns whether to continue, and the number of
/// violations so far; no seed follows after [`MAX_FAILURES`] of them.
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

/// Locks a batch. A thread that panicked cannot have left it half changed.
pub(crate) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the worlds of seeds. `progress` gets the number of worlds that have ended, and returns `false` to end
/// the batch. A world that takes half an hour of real time is a violation.
#[must_use]
pub fn run_seeds(
    seeds: Range<u64>,
    threads: NonZeroUsize,
    progress: impl Fn(u64) -> bool + Send + Sync + 'static,
) -> Batch {
    let results = Arc::new(Mutex::new(Batch::default()));
    let shared = Arc::clone(&results);
    let late = each_seed_within(MAX_TIME, seeds, threads, move |seed| {
        let plan = Plan::draw(seed);
        let outcome = run(&plan, false);
        let mut batch = lock(&shared);
        batch.add(seed, &plan, outcome.counts, outcome.violation);
        (progress(batch.worlds), batch.failures.len())
    });
    let mut batch = lock(&results).clone();
    for seed in late {
        let violation = Violation { check: STUCK, what: no_end(), at: Time::ZERO };
        batch.add(seed, &Plan::draw(seed), Counts::default(), Some(violation));
    }
    batch.failures.sort_by_key(|&(seed, _)| seed);
    batch
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_the_smallest_number_with_its_share_of_all_at_or_below() {
        assert_eq!(quantile(&[], 50), 0);
        assert_eq!(quantile(&[0, 0, 1, 1], 50), 2);
        assert_eq!(quantile(&[0, 1, 1, 1], 50), 2);
        assert_eq!(quantile(&[5, 0, 4], 50), 0);
        // Of 100 numbers, the fifth and the 95th.
        let counts = [4, 1, 85, 4, 1, 5];
        assert_eq!([5, 50, 95].map(|percent| quantile(&counts, percent)), [1, 2, 4]);
    }
}
