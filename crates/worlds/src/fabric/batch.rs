//! Many cases, on several threads.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use apus_sim::Watch;

use super::{Case, Counts, Violation, run_watched};
use crate::batch::{count, each_seed, lock};

/// Results of the cases of a range of seeds.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Number of cases.
    pub cases: u64,
    /// Seeds with a violation, in order. After 10 of them the batch starts no further case; cases in progress
    /// may add more.
    pub failures: Vec<(u64, Violation)>,
    /// Sums over all cases that ended without a violation.
    pub counts: Counts,
    /// By number of hosts: number of cases.
    pub hosts: Vec<u64>,
    /// By number of faults: number of cases.
    pub faults: Vec<u64>,
    /// Number of cases by algorithm.
    pub algorithms: BTreeMap<&'static str, u64>,
    /// Number of cases by path policy.
    pub balancers: BTreeMap<&'static str, u64>,
}

impl Batch {
    fn add(&mut self, case: &Case, result: Result<Counts, Violation>) {
        self.cases += 1;
        count(&mut self.hosts, case.hosts());
        count(&mut self.faults, case.faults() as u64);
        *self.algorithms.entry(case.algorithm).or_default() += 1;
        *self.balancers.entry(case.balancer).or_default() += 1;
        match result {
            Ok(counts) => {
                self.counts.ops += counts.ops;
                self.counts.packets += counts.packets;
                self.counts.dropped += counts.dropped;
                self.counts.trimmed += counts.trimmed;
                self.counts.jobs += counts.jobs;
            }
            Err(violation) => self.failures.push((case.seed, violation)),
        }
    }
}

/// Runs the cases of seeds until the watch stops them. The watch may also stop a case in progress; that case
/// does not count.
#[must_use]
pub fn run_cases(seeds: Range<u64>, threads: NonZeroUsize, watch: &Watch) -> Batch {
    run_drawn(Case::draw, seeds, threads, watch)
}

/// Runs cases as [`run_cases`] does; `draw` draws each case from its seed.
#[must_use]
pub fn run_drawn(
    draw: fn(u64) -> Case,
    seeds: Range<u64>,
    threads: NonZeroUsize,
    watch: &Watch,
) -> Batch {
    let batch = Mutex::new(Batch::default());
    each_seed(seeds, threads, |seed| {
        let case = draw(seed);
        let result = run_watched(&case, watch);
        let mut batch = lock(&batch);
        let goes_on = !watch.stop.load(Ordering::Relaxed);
        if goes_on {
            batch.add(&case, result);
        }
        (goes_on, batch.failures.len())
    });
    let mut batch = lock(&batch).clone();
    batch.failures.sort_by_key(|&(seed, _)| seed);
    batch
}
