//! CPU time of this process, and how long its threads waited for a core.

use std::fs;
use std::time::Duration;

use super::spec::{Scheduler, Usage};
use crate::bench::cpu_seconds;

impl Usage {
    /// Returns what this process has used until now.
    pub fn now() -> Self {
        Self { cpu: Duration::from_secs_f64(cpu_seconds()), scheduler: Scheduler::now() }
    }

    /// Returns what was used after `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        let scheduler = self.scheduler.zip(earlier.scheduler).map(|(now, then)| Scheduler {
            queued: now.queued.saturating_sub(then.queued),
            runs: now.runs.saturating_sub(then.runs),
        });
        Self { cpu: self.cpu.saturating_sub(earlier.cpu), scheduler }
    }

    /// Returns the sum of two processes.
    pub fn and(self, other: Self) -> Self {
        let scheduler = self
            .scheduler
            .zip(other.scheduler)
            .map(|(a, b)| Scheduler { queued: a.queued + b.queued, runs: a.runs + b.runs });
        Self { cpu: self.cpu + other.cpu, scheduler }
    }
}

impl Scheduler {
    fn now() -> Option<Self> {
        let mut all = Self::default();
        for task in fs::read_dir("/proc/self/task").ok()? {
            // A thread that ends meanwhile has no file any more.
            let Ok(text) = fs::read_to_string(task.ok()?.path().join("schedstat")) else {
                continue;
            };
            let of_task = Self::parse(&text)?;
            all.queued += of_task.queued;
            all.runs += of_task.runs;
        }
        Some(all)
    }

    /// Reads a `schedstat`: nanoseconds on a core, nanoseconds in a run queue, number of time slices
    /// (Documentation/scheduler/sched-stats.rst of Linux).
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split_ascii_whitespace().map(|word| word.parse::<u64>().ok());
        let (_, queued, runs) = (numbers.next()??, numbers.next()??, numbers.next()??);
        Some(Self { queued: Duration::from_nanos(queued), runs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedstat_has_the_wait_second_and_the_runs_third() {
        let read = Scheduler::parse("1000 2500 7\n").expect("three numbers");
        assert_eq!((read.queued, read.runs), (Duration::from_nanos(2500), 7));
        assert!(Scheduler::parse("").is_none() && Scheduler::parse("1 2").is_none());
    }

    #[test]
    fn usage_is_the_difference_and_the_sum_of_processes() {
        let of = |ms: u64, runs| Usage {
            cpu: Duration::from_millis(ms),
            scheduler: Some(Scheduler { queued: Duration::from_millis(2 * ms), runs }),
        };
        let used = of(10, 5).since(of(4, 2)).and(of(1, 1));
        let scheduler = used.scheduler.expect("both have it");
        assert_eq!(
            (used.cpu, scheduler.queued),
            (Duration::from_millis(7), Duration::from_millis(14))
        );
        assert_eq!(scheduler.runs, 4);
        assert!(used.since(Usage::default()).scheduler.is_none(), "unknown stays unknown");
    }
}
