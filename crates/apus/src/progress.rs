//! Progress on standard error, if that is a terminal: simulated time, real time, time left.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use apus_sim::experiment::Step;
use apus_units::Span;
use indicatif::{ProgressBar, ProgressStyle};

/// The progress of several runs together.
pub struct Meter {
    bar: ProgressBar,
    name: String,
    /// Per run: picoseconds simulated.
    simulated: Vec<AtomicU64>,
}

/// The bar counts microseconds: in picoseconds many runs together might not fit.
const UNIT_PS: u64 = 1_000_000;

impl Meter {
    /// A meter of `runs` runs.
    pub fn new(name: &str, runs: usize) -> Self {
        // It draws on standard error, and nothing if that is no terminal.
        let bar = ProgressBar::new(1);
        let template = "{msg} {wide_bar} {elapsed} real, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        let simulated = (0..runs).map(|_| AtomicU64::new(0)).collect();
        Self { bar, name: name.to_owned(), simulated }
    }

    /// One of the runs is further than before.
    pub fn on_step(&self, step: Step) {
        if self.bar.is_hidden() {
            return;
        }
        self.simulated[step.run].store(step.progress.simulated.as_ps(), Ordering::Relaxed);
        let done: u64 =
            self.simulated.iter().map(|run| run.load(Ordering::Relaxed) / UNIT_PS).sum();
        let all = step.progress.duration.as_ps() / UNIT_PS * self.simulated.len() as u64;
        self.bar.set_length(all.max(1));
        self.bar.set_position(done);
        let ms = |units: u64| Span::from_ps(units.saturating_mul(UNIT_PS)).as_secs_f64() * 1e3;
        self.bar.set_message(format!(
            "{}: {:.1} of {:.1} ms simulated",
            self.name,
            ms(done),
            ms(all)
        ));
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The progress of many runs of unlike length, with the time left as runs of the same kind took it.
pub struct RunsMeter {
    bar: ProgressBar,
    threads: usize,
    runs: Mutex<Vec<RunState>>,
}

struct RunState {
    /// What it belongs to.
    name: String,
    started: Option<Instant>,
    /// Simulated share.
    share: f64,
    took: Option<Duration>,
}

impl RunsMeter {
    /// A meter of runs, by what each belongs to, of which `threads` go side by side.
    pub fn new(names: &[&str], threads: NonZeroUsize) -> Self {
        let bar = ProgressBar::new(names.len() as u64);
        if let Ok(style) = ProgressStyle::with_template("{wide_msg}") {
            bar.set_style(style);
        }
        let state = |name: &&str| RunState {
            name: (*name).to_owned(),
            started: None,
            share: 0.0,
            took: None,
        };
        let runs = Mutex::new(names.iter().map(state).collect());
        Self { bar, threads: threads.get(), runs }
    }

    /// One of the runs is further than before.
    pub fn on_step(&self, step: Step) {
        if self.bar.is_hidden() {
            return;
        }
        let Ok(mut runs) = self.runs.lock() else { return };
        let run = &mut runs[step.run];
        run.started.get_or_insert_with(Instant::now);
        let (done, all) = (step.progress.simulated, step.progress.duration);
        run.share = done.as_ps_f64() / all.as_ps_f64().max(1.0);
        let text = describe(&runs, step.run, self.threads);
        drop(runs);
        self.bar.set_message(text);
    }

    /// One of the runs has ended.
    pub fn on_end(&self, run: usize) {
        let Ok(mut runs) = self.runs.lock() else { return };
        let run = &mut runs[run];
        run.took = Some(run.started.map_or(Duration::ZERO, |started| started.elapsed()));
    }

    /// Makes room for what `print` prints.
    pub fn pause(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }
}

impl Drop for RunsMeter {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// "swift/fig17: 34 of 120 runs, about 3 min left".
fn describe(runs: &[RunState], current: usize, threads: usize) -> String {
    let done = runs.iter().filter(|run| run.took.is_some()).count();
    let mut text = format!("{}: {done} of {} runs", runs[current].name, runs.len());
    if let Some(left) = time_left(runs, threads) {
        let seconds = left.as_secs();
        text += &match seconds {
            0..=90 => format!(", about {seconds} s left"),
            _ => format!(", about {} min left", seconds.div_ceil(60)),
        };
    }
    text
}

/// What is known of runs: those that are finished, and those under way as their share says.
/// A run of an experiment of which nothing is known yet takes as long as the mean of all.
fn time_left(runs: &[RunState], threads: usize) -> Option<Duration> {
    let length = |run: &RunState| match (run.took, run.started) {
        (Some(took), _) => Some(took.as_secs_f64()),
        (None, Some(started)) if run.share > 0.02 => {
            Some(started.elapsed().as_secs_f64() / run.share)
        }
        _ => None,
    };
    let mean = |values: &mut dyn Iterator<Item = f64>| {
        let (count, sum) = values.fold((0u32, 0.0), |(count, sum), value| (count + 1, sum + value));
        (count > 0).then(|| sum / f64::from(count))
    };
    let of_all = mean(&mut runs.iter().filter_map(length))?;
    let mut left = 0.0;
    for group in runs.chunk_by(|a, b| a.name == b.name) {
        let of_group = mean(&mut group.iter().filter_map(length)).unwrap_or(of_all);
        for run in group.iter().filter(|run| run.took.is_none()) {
            left += length(run).unwrap_or(of_group) * (1.0 - run.share);
        }
    }
    Some(Duration::from_secs_f64(left / threads as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str, took: Option<u64>) -> RunState {
        let took = took.map(Duration::from_secs);
        RunState { name: name.to_owned(), started: None, share: 0.0, took }
    }

    /// One run of `a` took 10 s and another is to come, of `b` nothing is known, so that its two
    /// runs take the mean of all, 10 s: 30 s in all, on two cores 15 s.
    #[test]
    fn the_time_left_is_that_of_runs_like_those_to_come() {
        let runs = [run("a", Some(10)), run("a", None), run("b", None), run("b", None)];
        assert_eq!(time_left(&runs, 2), Some(Duration::from_secs(15)));
        assert_eq!(time_left(&runs[1..], 2), None, "nothing is known");
        let text = describe(&runs, 1, 2);
        assert_eq!(text, "a: 1 of 4 runs, about 15 s left");
    }
}
