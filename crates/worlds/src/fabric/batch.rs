//! Many cases, on several threads.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use apus_sim::Watch;

use super::{Case, Counts, Violation, run_guarded, run_watched};
use crate::batch::{count, lock};
use crate::running::{MAX_TIME, each_seed_within, no_end};

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
    /// Largest number of events of a run.
    pub most_events: u64,
    /// By number of hosts: number of cases.
    pub hosts: Vec<u64>,
    /// By number of faults: number of cases. A fault may match several links, and occur repeatedly.
    pub faults: Vec<u64>,
    /// By number of ops: number of cases that ended without a violation.
    pub ops: Vec<u64>,
    /// By number of [`Counts::link_faults`]: number of cases that ended without a violation.
    pub link_faults: Vec<u64>,
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
                count(&mut self.ops, counts.ops);
                count(&mut self.link_faults, counts.link_faults);
                self.counts.ops += counts.ops;
                self.counts.link_faults += counts.link_faults;
                self.counts.packets += counts.packets;
                self.counts.dropped += counts.dropped;
                self.counts.trimmed += counts.trimmed;
                self.counts.jobs += counts.jobs;
                self.counts.bounded += counts.bounded;
                self.most_events = self.most_events.max(counts.events);
                self.counts.events += counts.events;
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
    let results = Arc::new(Mutex::new(Batch::default()));
    let (shared, watch) = (Arc::clone(&results), watch.clone());
    let late = each_seed_within(MAX_TIME, seeds, threads, move |seed| {
        let case = draw(seed);
        let result = run_watched(&case, &watch);
        let mut batch = lock(&shared);
        let goes_on = !watch.stop.load(Ordering::Relaxed);
        if goes_on {
            batch.add(&case, result);
        }
        (goes_on, batch.failures.len())
    });
    let mut batch = lock(&results).clone();
    for seed in late {
        let case = draw(seed);
        let mut violation = without_end();
        violation.what += &format!(":\n{}", case.text());
        batch.add(&case, Err(violation));
    }
    batch.failures.sort_by_key(|&(seed, _)| seed);
    batch
}

/// Runs the text of a scenario that this seed once drew, with the checks and the limits of a batch. The seed may
/// draw another scenario today.
///
/// # Errors
/// The first property that does not hold.
pub fn run_text(seed: u64, text: &str) -> Result<Counts, Violation> {
    let result = Arc::new(Mutex::new(Err(without_end())));
    let (shared, text) = (Arc::clone(&result), text.to_owned());
    each_seed_within(MAX_TIME, seed..seed + 1, NonZeroUsize::MIN, move |seed| {
        *lock(&shared) = run_guarded(seed, &text, &Watch::default());
        (true, 0)
    });
    lock(&result).clone()
}

fn without_end() -> Violation {
    Violation { check: "progress", what: no_end() }
}
