//! Progress on standard error: simulated time, real time and remaining time. On a terminal it is a bar; otherwise it is
//! an occasional line of a long command.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use apus_scenario::experiment::Step;
use apus_units::Span;
use indicatif::{ProgressBar, ProgressStyle};

/// Real time before the first line of progress without a terminal. Rationale: a command that ends sooner needs none.
const FIRST_LINE: Duration = Duration::from_secs(15);
/// Longest real time between two lines. Rationale: an hour of progress stays readable.
const LINE_INTERVAL: Duration = Duration::from_secs(60);

/// Decides when a line of progress is due without a terminal: after 15 s, 30 s and 60 s, then once per minute.
struct LineTimer {
    /// Time of the next line, in milliseconds of real time after the start.
    next_ms: AtomicU64,
}

impl LineTimer {
    fn new() -> Self {
        Self { next_ms: AtomicU64::new(FIRST_LINE.as_millis() as u64) }
    }

    /// Returns `true` if a line is due `elapsed` after the start. If several threads call at once, only one gets
    /// `true`.
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

/// Returns a span of real time rounded to the second, or in minutes from 90 s upwards.
fn rough(span: Duration) -> String {
    match span.as_secs() {
        seconds @ 0..=90 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

/// Progress of runs on standard error.
pub struct Meter {
    bar: ProgressBar,
    timer: LineTimer,
    tracker: Tracker,
    /// Earliest time of the next change of the bar, in milliseconds.
    next_ms: AtomicU64,
}

/// Progress of runs, with the remaining time estimated from runs of the same name.
pub struct Tracker {
    created: Instant,
    threads: usize,
    runs: Mutex<Vec<RunState>>,
}

impl Tracker {
    /// Returns the progress of runs with these names; `threads` run in parallel.
    #[must_use]
    pub fn new(names: &[&str], threads: NonZeroUsize) -> Self {
        let runs = Mutex::new(names.iter().map(|name| RunState::new(name)).collect());
        Self { created: Instant::now(), threads: threads.get(), runs }
    }

    /// Records the progress of a run.
    pub fn on_step(&self, step: Step) {
        let Ok(mut runs) = self.runs.lock() else { return };
        let run = &mut runs[step.run];
        run.started.get_or_insert_with(Instant::now);
        (run.simulated, run.duration) = (step.progress.simulated, step.progress.duration);
        run.operations = step.progress.operations;
    }

    /// Records the end of a run and returns its real time.
    pub fn on_end(&self, run: usize) -> Duration {
        let Ok(mut runs) = self.runs.lock() else { return Duration::ZERO };
        let run = &mut runs[run];
        let took = run.started.map_or(Duration::ZERO, |started| started.elapsed());
        *run.took.insert(took)
    }

    /// Returns the simulated share of all runs, from 0 to 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        let Ok(runs) = self.runs.lock() else { return 0.0 };
        runs.iter().map(RunState::share).sum::<f64>() / runs.len().max(1) as f64
    }

    /// Describes the progress: runs or simulated time, real time, and an estimate of the time left.
    #[must_use]
    pub fn describe(&self) -> String {
        let Ok(runs) = self.runs.lock() else { return String::new() };
        // The first run in progress names the scenario.
        let current = runs.iter().position(|run| run.started.is_some() && run.took.is_none());
        let current = current.or_else(|| runs.len().checked_sub(1));
        current.map_or_else(String::new, |current| {
            describe(&runs, current, self.threads, self.created.elapsed())
        })
    }
}

struct RunState {
    /// Name of its scenario or experiment.
    name: String,
    started: Option<Instant>,
    simulated: Span,
    duration: Span,
    /// Completed operations of jobs, and all operations.
    operations: Option<(u64, u64)>,
    took: Option<Duration>,
}

impl RunState {
    fn new(name: &str) -> Self {
        let (simulated, duration) = (Span::ZERO, Span::ZERO);
        let operations = None;
        Self { name: name.to_owned(), started: None, simulated, duration, operations, took: None }
    }

    /// Returns the finished share of the run, from 0 to 1: of its simulated time, or of the operations of its jobs,
    /// which may end the run earlier.
    fn share(&self) -> f64 {
        if self.took.is_some() {
            return 1.0;
        }
        let time = self.simulated.as_ps_f64() / self.duration.as_ps_f64().max(1.0);
        let operations = self.operations.map_or(0.0, |(done, all)| done as f64 / all.max(1) as f64);
        time.max(operations)
    }
}

/// Shortest time between two changes of the bar.
const BAR_INTERVAL_MS: u64 = 50;
/// Steps of the bar per run.
const BAR_STEPS: f64 = 1000.0;

impl Meter {
    /// Returns a meter of runs with these names; `threads` run in parallel.
    pub fn new(names: &[&str], threads: NonZeroUsize) -> Self {
        // The bar draws on standard error and is hidden without a terminal.
        let bar = ProgressBar::new((names.len() as f64 * BAR_STEPS) as u64);
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar}") {
            bar.set_style(style);
        }
        let (timer, tracker) = (LineTimer::new(), Tracker::new(names, threads));
        Self { bar, timer, tracker, next_ms: AtomicU64::new(0) }
    }

    /// Records the progress of a run.
    pub fn on_step(&self, step: Step) {
        self.tracker.on_step(step);
        let (elapsed, hidden) = (self.tracker.created.elapsed(), self.bar.is_hidden());
        if hidden && !self.timer.is_due(elapsed) {
            return;
        }
        // Describing many runs takes long compared with a step of a short run.
        let now_ms = elapsed.as_millis() as u64;
        if !hidden && now_ms < self.next_ms.load(Ordering::Relaxed) {
            return;
        }
        self.next_ms.store(now_ms + BAR_INTERVAL_MS, Ordering::Relaxed);
        let text = self.tracker.describe();
        if hidden {
            eprintln!("progress: {text}");
        } else {
            // The length of the bar covers all runs.
            let length = self.bar.length().unwrap_or_default() as f64;
            self.bar.set_position((self.tracker.share() * length) as u64);
            self.bar.set_message(text);
        }
    }

    /// Records the end of a run and returns its real time.
    pub fn on_end(&self, run: usize) -> Duration {
        self.tracker.on_end(run)
    }

    /// Hides the bar while `print` prints.
    pub fn pause(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Returns a text such as "swift/fig17: 34 of 120 runs, 40 s real, about 3 min left". For a single run, gives its
/// simulated time.
fn describe(runs: &[RunState], current: usize, threads: usize, elapsed: Duration) -> String {
    let RunState { name, simulated, duration, operations, .. } = &runs[current];
    let done = runs.iter().filter(|run| run.took.is_some()).count();
    let ms = |span: &Span| span.as_secs_f64() * 1e3;
    let mut text = match (runs.len(), operations) {
        (1, Some((done, all))) => {
            format!("{name}: {done} of {all} operations, {:.1} ms simulated", ms(simulated))
        }
        (1, None) => format!("{name}: {:.1} of {:.1} ms simulated", ms(simulated), ms(duration)),
        (all, _) => format!("{name}: {done} of {all} runs"),
    };
    text += &format!(", {} real", rough(elapsed));
    if let Some(left) = time_left(runs, threads) {
        text += &format!(", about {} left", rough(left));
    }
    text
}

/// Estimates the remaining time from finished runs and from the progress of started ones. If no run of an experiment
/// has finished, its runs are assumed to take the mean time of all.
fn time_left(runs: &[RunState], threads: usize) -> Option<Duration> {
    let length = |run: &RunState| match (run.took, run.started) {
        (Some(took), _) => Some(took.as_secs_f64()),
        (None, Some(started)) if run.share() > 0.02 => {
            Some(started.elapsed().as_secs_f64() / run.share())
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
            left += length(run).unwrap_or(of_group) * (1.0 - run.share());
        }
    }
    Some(Duration::from_secs_f64(left / threads as f64))
}

#[cfg(test)]
mod tests {
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

    fn run(name: &str, took: Option<u64>) -> RunState {
        RunState { took: took.map(Duration::from_secs), ..RunState::new(name) }
    }

    /// One run of `a` took 10 s and another one remains. Nothing is known of `b`, so its two runs are assumed to take
    /// the mean of all, 10 s. The sum is 30 s, and 15 s on two cores.
    #[test]
    fn the_time_left_is_that_of_runs_like_those_to_come() {
        let runs = [run("a", Some(10)), run("a", None), run("b", None), run("b", None)];
        assert_eq!(time_left(&runs, 2), Some(Duration::from_secs(15)));
        assert_eq!(time_left(&runs[1..], 2), None, "nothing is known");
        let text = describe(&runs, 1, 2, seconds(10));
        assert_eq!(text, "a: 1 of 4 runs, 10 s real, about 15 s left");
    }

    /// A single run has simulated 4 of 10 ms in 20 s, so 30 s are left.
    #[test]
    fn a_single_run_shows_its_simulated_time() {
        let mut run = run("mine", None);
        (run.simulated, run.duration) = (Span::from_ms(4), Span::from_ms(10));
        run.started = Instant::now().checked_sub(seconds(20));
        let text = describe(std::slice::from_ref(&run), 0, 1, seconds(20));
        assert_eq!(text, "mine: 4.0 of 10.0 ms simulated, 20 s real, about 30 s left");
        // By its operations, of which a fifth are done, the run would have 80 s left. By simulated time (4 of 10 ms) it
        // has 30 s left, and the larger share counts.
        run.operations = Some((20, 100));
        let text = describe(&[run], 0, 1, seconds(20));
        assert_eq!(
            text,
            "mine: 20 of 100 operations, 4.0 ms simulated, 20 s real, about 30 s left"
        );
    }
}
