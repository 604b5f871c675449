//! `apus validate`: checks scenarios and estimates the cost of their runs, without executing the runs.

pub mod estimate;

use std::num::NonZeroUsize;
use std::thread::available_parallelism;

use apus_scenario::{Options, Scenario};
use apus_sim::Watch;
use clap::Args;
use estimate::{Estimate, estimate};
use serde::Serialize;

use crate::failure::Failure;
use crate::memory::MaxMemory;
use crate::output::{print, to_json};
use crate::{api, text};

/// Check scenarios without running them, and estimate the time and memory of their runs.
///
/// The time is extrapolated from the first events of each run, which are simulated: from their number per simulated time and
/// their cost on this machine. Only the run itself shows how long the drain after `duration` takes; the time with a drain up to
/// its limit (`drain`) is given separately. Memory is that of the network, hosts, flows and known ops, without packets in
/// switches and recorded tables.
///
/// The exit status is 2 if a scenario has an error.
#[derive(Args)]
pub struct Validate {
    /// Scenario files, or names of built-in scenarios.
    #[arg(required = true)]
    files: Vec<String>,
    /// Set KEY to VALUE, as in `--set algorithm.base_target=50us`. May be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Check the shortened versions of the scenarios, with their `[quick]` settings.
    #[arg(long)]
    quick: bool,
    /// Check the scenarios without estimating the time of their runs.
    #[arg(long)]
    no_estimate: bool,
    #[command(flatten)]
    max_memory: MaxMemory,
    /// Print the results as JSON.
    #[arg(long)]
    json: bool,
}

/// Result of checking a file.
#[derive(Serialize)]
struct Checked {
    file: String,
    valid: bool,
    /// Errors, with file, line and remedy.
    errors: Vec<String>,
    runs: Vec<RunEstimate>,
}

/// Estimated cost of a run.
#[derive(Serialize)]
struct RunEstimate {
    name: String,
    /// Memory in bytes.
    memory_bytes: u64,
    /// Time on one thread; absent without an estimate.
    #[serde(flatten)]
    time: Option<Estimate>,
}

impl Validate {
    /// Runs the command.
    pub fn execute(&self) -> Result<(), Failure> {
        let options = Options {
            set: self.set.clone(),
            quick: self.quick,
            memory: self.max_memory.limit(),
            ..Options::default()
        };
        let mut all = Vec::new();
        for file in &self.files {
            let checked = self.check(file, &options);
            if !self.json {
                if checked.valid { print(&checked.text()) } else { Ok(()) }?;
            }
            all.push(checked);
        }
        if self.json {
            print(&(to_json(&all)? + "\n"))?;
        }
        let errors: Vec<String> = all.into_iter().flat_map(|checked| checked.errors).collect();
        if errors.is_empty() { Ok(()) } else { Err(Failure::Input(errors.join("\n"))) }
    }

    fn check(&self, file: &str, options: &Options) -> Checked {
        let (runs, errors) = match api::open(file, options) {
            Ok(scenario) if self.quick && scenario.quick.is_empty() => {
                let message = format!(
                    "{file}: --quick has no effect, because the scenario has neither `[quick]` nor \
                     `quick = false`; remove it"
                );
                (Vec::new(), vec![message])
            }
            Ok(scenario) => self.runs(&scenario),
            Err(error) => (Vec::new(), vec![error.to_string()]),
        };
        Checked { file: file.to_owned(), valid: errors.is_empty(), errors, runs }
    }

    fn runs(&self, scenario: &Scenario) -> (Vec<RunEstimate>, Vec<String>) {
        let (mut runs, mut errors) = (Vec::new(), Vec::new());
        for run in &scenario.runs {
            let setup = &run.setup;
            let time = match self.no_estimate {
                true => None,
                false => match estimate(setup, &Watch::default()) {
                    Ok(time) => Some(time),
                    Err(why) => {
                        errors.push(why);
                        continue;
                    }
                },
            };
            let memory_bytes = setup.estimated_memory().get();
            runs.push(RunEstimate { name: setup.name().to_owned(), memory_bytes, time });
        }
        (runs, errors)
    }
}

impl Checked {
    fn text(&self) -> String {
        let count = self.runs.len();
        let runs = if count == 1 { "one run".to_owned() } else { format!("{count} runs") };
        let most = self.runs.iter().map(|run| run.memory_bytes).max().unwrap_or_default();
        let mut out = format!("{}: valid; {runs}", self.file);
        let times: Option<Vec<Estimate>> = self.runs.iter().map(|run| run.time).collect();
        if let Some(times) = times {
            let (time, sum) = side_by_side(times.iter().map(|time| time.seconds));
            let (with_drain, _) =
                side_by_side(times.iter().map(|time| time.seconds + time.drain_seconds));
            out += &format!(", about {} on this machine", duration(time));
            if count > 1 {
                out += &format!(" ({} on one core)", duration(sum));
            }
            if with_drain > time {
                out += &format!(", {} with a drain up to its limit", duration(with_drain));
            }
        }
        out += &format!(", about {} of memory", size(most));
        out += if count > 1 { " each at most\n" } else { "\n" };
        if count > 1 {
            let rows: Vec<Vec<String>> = self.runs.iter().map(RunEstimate::row).collect();
            out += &text::columns(&rows, "  ");
        }
        out
    }
}

/// Returns the time of parallel runs on all cores, and the sum of their times, from the time of each run.
fn side_by_side(times: impl ExactSizeIterator<Item = f64> + Clone) -> (f64, f64) {
    let cores = available_parallelism().map_or(1, NonZeroUsize::get);
    let at_once = cores.min(times.len().max(1));
    let (sum, longest) = (times.clone().sum::<f64>(), times.fold(0.0, f64::max));
    ((sum / at_once as f64).max(longest), sum)
}

impl RunEstimate {
    fn row(&self) -> Vec<String> {
        let mut row = vec![self.name.clone()];
        if let Some(time) = &self.time {
            row.push(duration(time.seconds));
            row.push(format!("{} million events", text::number(time.events as f64 / 1e6)));
        }
        row.push(size(self.memory_bytes));
        row
    }
}

/// Returns a time with two significant digits in a suitable unit.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 0.995 => format!("{:.0} ms", (s * 1e3).max(1.0)),
        s if s < 9.95 => format!("{s:.1} s"),
        s if s < 99.5 => format!("{s:.0} s"),
        s if s < 5_970.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3_600.0),
    }
}

/// Returns a size in a suitable unit.
fn size(bytes: u64) -> String {
    match bytes as f64 {
        b if b < 1e9 => format!("{:.1} MB", b / 1e6),
        b => format!("{:.1} GB", b / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::{duration, size};

    #[test]
    fn times_and_sizes_have_a_unit_that_suits_them() {
        for (seconds, text) in [
            (0.0, "1 ms"),
            (0.25, "250 ms"),
            (1.0, "1.0 s"),
            (42.4, "42 s"),
            (120.0, "2 min"),
            (7_200.0, "2.0 h"),
        ] {
            assert_eq!(duration(seconds), text);
        }
        assert_eq!((size(1_500_000), size(2_500_000_000)), ("1.5 MB".into(), "2.5 GB".into()));
    }
}
