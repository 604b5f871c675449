//! CPU time of this process, and the time that its threads waited for a core.

use std::fs;
use std::time::Duration;

use super::spec::{Scheduler, Usage};
use crate::bench::cpu_seconds;

impl Usage {
    /// Returns the resources that this process has used so far.
    pub fn now() -> Self {
        Self { cpu: Duration::from_secs_f64(cpu_seconds()), scheduler: Scheduler::now() }
    }

    /// Returns the resources used since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        let scheduler = self.scheduler.zip(earlier.scheduler).map(|(now, then)| Scheduler {
            queued: now.queued.saturating_sub(then.queued),
            runs: now.runs.saturating_sub(then.runs),
        });
        Self { cpu: self.cpu.saturating_sub(earlier.cpu), scheduler }
    }

    /// Returns the sum of the usage of two processes.
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
            // The file is gone if the thread has ended in the meantime.
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

/// CPU time of the whole machine, and of this process with its ended children, seconds.
#[derive(Clone, Copy, Default)]
pub struct Machine {
    busy: f64,
    steal: f64,
    own: f64,
}

impl Machine {
    /// Returns the times so far; `None` if the system does not report them.
    pub fn now() -> Option<Self> {
        let read = |path| fs::read_to_string(path).ok();
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        Self::parse(&read("/proc/stat")?, &read("/proc/self/stat")?, ticks)
    }

    /// Reads `/proc/stat` and `/proc/self/stat` (proc_stat(5), proc_pid_stat(5)), both in clock ticks.
    fn parse(machine: &str, own: &str, ticks: f64) -> Option<Self> {
        let numbers = |text: &str| -> Option<Vec<f64>> {
            text.split_ascii_whitespace().map(|word| word.parse().ok()).collect()
        };
        let all = numbers(machine.lines().next()?.strip_prefix("cpu ")?)?;
        let [user, nice, system, _, _, irq, soft_irq, steal, ..] = all[..] else { return None };
        // The name ends at the last parenthesis and may contain spaces. Field 3 follows the name; fields 14 to 17 are
        // the user and system times of the process and of its children.
        let (_, fields) = own.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().skip(11).take(4).collect();
        let own: f64 = numbers(&fields.join(" "))?.iter().sum();
        let busy = user + nice + system + irq + soft_irq;
        Some(Self { busy: busy / ticks, steal: steal / ticks, own: own / ticks })
    }

    /// Returns the CPU time since `earlier`, over `seconds`, in percent of a core: of other processes, and of other
    /// virtual machines.
    pub fn others(self, earlier: Self, seconds: f64) -> (f64, f64) {
        let others = (self.busy - earlier.busy) - (self.own - earlier.own);
        (others.max(0.0) / seconds * 100.0, (self.steal - earlier.steal) / seconds * 100.0)
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
    fn others_are_the_machine_without_this_process_and_its_children() {
        let at = |user, own, children| {
            let machine = format!("cpu  {user} 10 20 999 99 3 4 50 0 0\ncpu0 1 2 3\n");
            // pid, name, state and ten more fields, then utime, stime, cutime, cstime and priority.
            let process = format!("7 (a b) c) R 1 2 3 4 5 6 7 8 9 10 {own} 5 {children} 6 20");
            Machine::parse(&machine, &process, 100.0).expect("times")
        };
        // Of 3 s, this process and its children used 2 s. Over 2 s, other processes therefore used half a core.
        let (others, steal) = at(400, 60, 150).others(at(100, 10, 0), 2.0);
        assert!((others - 50.0).abs() < 1e-9 && steal == 0.0, "{others} {steal}");
        assert!(Machine::parse("cpu  1 2", "7 (a) R", 100.0).is_none());
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
