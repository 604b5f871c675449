//! Progress on standard error: simulated time, real time, remaining time. On a terminal a bar,
//! elsewhere occasional lines of a long command.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use apus_scenario::experiment::Step;
use apus_units::Span;
use indicatif::{ProgressBar, ProgressStyle};

/// Real time before the first line of progress where there is no terminal. Rationale: a command that
/// ends sooner needs none.
const FIRST_LINE: Duration = Duration::from_secs(15);
/// Longest real time between two lines. Rationale: an hour of progress stays readable.
const LINE_INTERVAL: Duration = Duration::from_secs(60);

/// Decides when a line of progress is due where there is no terminal: after 15 s, 30 s, 60 s, and
/// then once per minute.
struct LineTimer {
    /// Real time since the start of the next line, milliseconds.
    next_ms: AtomicU64,
}

impl LineTimer {
    fn new() -> Self {
        Self { next_ms: AtomicU64::new(FIRST_LINE.as_millis() as u64) }
    }

    /// Returns `true` if a line is due `elapsed` after the start. Of several threads that ask at once,
    /// one gets it.
    fn is_due(&self, elapsed: Duration) -> bool {
        let next = self.next_ms.load(Ordering::Relaxed);
        if elapsed.as_millis() < u128::from(next) {
            return false;
        }
        let following = elapsed + elapsed.clamp(FIRST_LINE, LINE_INTERVAL);
        let following = following.as_millis() as u64;
        let (ours, theirs) = (Ordering::Relaxed, Ordering::Relaxed);
        self.next_ms.compare_exchange(next, following, ours, theirs).is_ok()
    }
}

/// A span of real time to the second, or in minutes from 90 s upwards.
fn rough(span: Duration) -> String {
    match span.as_secs() {
        seconds @ 0..=90 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

/// The progress of several runs together.
pub struct Meter {
    bar: ProgressBar,
    started: Instant,
    timer: LineTimer,
    name: String,
    /// Per run: picoseconds simulated.
    simulated: Vec<AtomicU64>,
}

/// The bar counts microseconds: the sum of many runs in picoseconds might overflow.
const UNIT_PS: u64 = 1_000_000;

impl Meter {
    /// Returns a meter of `runs` runs.
    pub fn new(name: &str, runs: usize) -> Self {
        // It draws on standard error and is hidden without a terminal.
        let bar = ProgressBar::new(1);
        let template = "{msg} {wide_bar} {elapsed} real, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        let simulated = (0..runs).map(|_| AtomicU64::new(0)).collect();
        let (started, timer) = (Instant::now(), LineTimer::new());
        Self { bar, started, timer, name: name.to_owned(), simulated }
    }

    /// One of the runs is further than before.
    pub fn on_step(&self, step: Step) {
        if self.bar.is_hidden() {
            if let Some(line) = self.line(step, self.started.elapsed()) {
                eprintln!("{line}");
            }
            return;
        }
        let (done, all) = self.count(step);
        self.bar.set_length(all);
        self.bar.set_position(done);
        self.bar.set_message(self.describe(done, all));
    }

    /// Records a step; returns the simulated and the total time of all runs in units.
    fn count(&self, step: Step) -> (u64, u64) {
        self.simulated[step.run].store(step.progress.simulated.as_ps(), Ordering::Relaxed);
        let done = self.simulated.iter().map(|run| run.load(Ordering::Relaxed) / UNIT_PS).sum();
        let all = step.progress.duration.as_ps() / UNIT_PS * self.simulated.len() as u64;
        (done, all.max(1))
    }

    fn describe(&self, done: u64, all: u64) -> String {
        let ms = |units: u64| Span::from_ps(units.saturating_mul(UNIT_PS)).as_secs_f64() * 1e3;
        format!("{}: {:.1} of {:.1} ms simulated", self.name, ms(done), ms(all))
    }

    /// Records a step; returns the line that is due `elapsed` after the start, if one is.
    fn line(&self, step: Step, elapsed: Duration) -> Option<String> {
        let (done, all) = self.count(step);
        if !self.timer.is_due(elapsed) {
            return None;
        }
        let mut text = format!("progress: {}, {} real", self.describe(done, all), rough(elapsed));
        if done > 0 {
            let left = elapsed.mul_f64(all.saturating_sub(done) as f64 / done as f64);
            text += &format!(", about {} left", rough(left));
        }
        Some(text)
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Progress of many runs of different length, with the remaining time estimated from runs of the
/// same kind.
pub struct RunsMeter {
    bar: ProgressBar,
    created: Instant,
    timer: LineTimer,
    threads: usize,
    runs: Mutex<Vec<RunState>>,
}

struct RunState {
    /// Index of its experiment.
    name: String,
    started: Option<Instant>,
    /// Simulated share.
    share: f64,
    took: Option<Duration>,
}

impl RunsMeter {
    /// Returns a meter of runs, by the index of the experiment of each; `threads` run in parallel.
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
        let (created, timer) = (Instant::now(), LineTimer::new());
        Self { bar, created, timer, threads: threads.get(), runs }
    }

    /// One of the runs is further than before.
    pub fn on_step(&self, step: Step) {
        let Ok(mut runs) = self.runs.lock() else { return };
        let run = &mut runs[step.run];
        run.started.get_or_insert_with(Instant::now);
        let (done, all) = (step.progress.simulated, step.progress.duration);
        run.share = done.as_ps_f64() / all.as_ps_f64().max(1.0);
        let hidden = self.bar.is_hidden();
        if hidden && !self.timer.is_due(self.created.elapsed()) {
            return;
        }
        let text = describe(&runs, step.run, self.threads);
        drop(runs);
        if hidden {
            eprintln!("progress: {text}");
        } else {
            self.bar.set_message(text);
        }
    }

    /// Records the end of a run.
    pub fn on_end(&self, run: usize) {
        let Ok(mut runs) = self.runs.lock() else { return };
        let run = &mut runs[run];
        run.took = Some(run.started.map_or(Duration::ZERO, |started| started.elapsed()));
    }

    /// Hides the bar while `print` prints.
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
        text += &format!(", about {} left", rough(left));
    }
    text
}

/// State of runs: finished ones, and started ones with their progress. A run of an experiment
/// without a finished run is assumed to take the mean time of all.
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
    use apus_sim::Progress;

    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn lines_are_due_after_15_30_and_60_seconds_and_then_each_minute() {
        let timer = LineTimer::new();
        let due: Vec<u64> = (0..200).filter(|&at| timer.is_due(seconds(at))).collect();
        assert_eq!(due, [15, 30, 60, 120, 180]);
    }

    #[test]
    fn a_step_after_a_long_silence_is_one_line() {
        let timer = LineTimer::new();
        assert!(timer.is_due(seconds(1000)));
        assert!(!timer.is_due(seconds(1000)));
        assert!(!timer.is_due(seconds(1059)));
        assert!(timer.is_due(seconds(1060)));
    }

    /// One of two runs of 10 ms has reached 4 ms: a fifth of all in 20 s, so that 80 s are left.
    #[test]
    fn a_line_tells_simulated_and_real_time_and_the_time_left() {
        let meter = Meter::new("mine", 2);
        let (simulated, duration) = (Span::from_ms(4), Span::from_ms(10));
        let progress = Progress { simulated, duration, events: 0 };
        let step = Step { run: 1, progress };
        assert_eq!(meter.line(step, seconds(14)), None, "what ends soon prints nothing");
        assert_eq!(
            meter.line(step, seconds(20)).as_deref(),
            Some("progress: mine: 4.0 of 20.0 ms simulated, 20 s real, about 80 s left")
        );
        assert_eq!(meter.line(step, seconds(21)), None);
    }

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
