//! Progress on standard error, if that is a terminal: simulated time, real time, time left.

use std::sync::atomic::{AtomicU64, Ordering};

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
