//! `apus sweep`: runs a scenario over the product of settings, on all cores or in shards; it can be resumed.

pub mod folder;
mod grid;
mod merge;
mod plan;
mod results;
mod shard;
pub mod table;

use std::path::{Path, PathBuf};

use apus_scenario::{Options, Setup};
use apus_sim::results::{METRICS, SCOPED, pattern_of};
use apus_units::suggestion;
use clap::Args;
pub use grid::Axis;
use grid::{Point, read_axis};
use plan::Plan;
use results::Partial;
pub use results::{PERCENTILES, of_rows};
use shard::{Shard, read_shard};
use table::Done;

use crate::batch::{self, Job, Limits};
use crate::failure::Failure;
use crate::interrupt;
use crate::open;
use crate::output::{OutputDir, say, to_json};
use crate::store::Store;
use crate::tables::Format;

/// Run a scenario with every combination of settings, and write one table and one chart of the results.
///
/// DIR gets sweep.csv (all metrics of each run), sweep.json (settings and summary of each run), sweep.svg (medians over the
/// seeds) and report.html. sweep.csv grows during the sweep. DIR/runs keeps each finished run: the same command does not
/// repeat these runs, but repeats failed ones.
///
/// Several processes, on one machine or on several, can share the work: each runs a shard (`--shard 1/3` to `--shard 3/3`).
/// At any time, `apus sweep --merge` combines the finished runs of all shards in one table.
#[derive(Args)]
pub struct Sweep {
    /// Scenario file, or name of a built-in scenario.
    #[arg(required_unless_present = "merge")]
    file: Option<String>,
    /// Vary the setting KEY over the values, as in `--vary algorithm.base_target=20us,30us,50us`. May be given several times:
    /// all combinations are run, and the first setting is the horizontal axis of the chart.
    #[arg(long, value_name = "KEY=A,B,C", required_unless_present = "merge",
          value_parser = read_axis)]
    vary: Vec<Axis>,
    /// Set KEY to VALUE in all runs, as in `--set duration=50ms`. May be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Number of seeds per combination, from the seed of the scenario upwards [default: 1].
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: Option<u64>,
    /// Metric of the table and the chart (see `apus list metrics`). May be given several times.
    #[arg(long, value_name = "NAME")]
    metric: Vec<String>,
    /// Run only shard I of N, with I from 1 to N. Shards may share one directory or have one each; a shard writes only
    /// DIR/runs.
    #[arg(long, value_name = "I/N", value_parser = read_shard)]
    shard: Option<Shard>,
    /// Write the table and the chart of the shards in these directories, without running anything.
    #[arg(long, value_name = "DIR", num_args = 1..)]
    #[arg(conflicts_with_all = ["file", "vary", "set", "seeds", "metric", "shard"])]
    #[arg(conflicts_with_all = ["threads", "watchdog", "max_memory"])]
    merge: Vec<PathBuf>,
    /// Write the results to DIR. With `--merge` of a single directory, the default is that directory.
    #[arg(long, value_name = "DIR", required_unless_present = "merge")]
    out: Option<PathBuf>,
    /// Open report.html in a browser.
    #[arg(long, conflicts_with_all = ["shard", "merge"])]
    open: bool,
    /// Format of the table of all runs.
    #[arg(long, value_enum, default_value_t, conflicts_with = "shard")]
    format: Format,
    #[command(flatten)]
    limits: Limits,
    /// Print the results as JSON.
    #[arg(long)]
    json: bool,
}

impl Sweep {
    /// Returns an error for a setting that an axis would overwrite, and for an axis that is given twice.
    fn check_settings(&self) -> Result<(), Failure> {
        for (index, axis) in self.vary.iter().enumerate() {
            if axis.key == "seed" {
                let message = "--vary seed: seeds are no setting that is varied; --set seed=N is the first \
                               one, and --seeds N their number";
                return Err(Failure::Input(message.to_owned()));
            }
            if self.vary[..index].iter().any(|other| other.key == axis.key) {
                let message = format!("--vary {}: given twice; write all values once", axis.key);
                return Err(Failure::Input(message));
            }
        }
        for text in &self.set {
            let key = text.split('=').next().unwrap_or_default().trim();
            if let Some(axis) = self.vary.iter().find(|axis| axis.key == key) {
                let axis = &axis.key;
                let message = format!(
                    "--set {text}: has no effect, because `--vary {axis}=...` sets the value of every \
                     run; remove one of them"
                );
                return Err(Failure::Input(message));
            }
        }
        Ok(())
    }

    /// Runs the command.
    pub fn execute(&self) -> Result<(), Failure> {
        match (&self.file, &self.out) {
            (Some(file), Some(out)) => self.run(file, out),
            _ => merge::merge(&self.merge, self.out.as_deref(), self.format, self.json),
        }
    }

    fn run(&self, file: &str, out: &Path) -> Result<(), Failure> {
        self.check_metrics()?;
        self.check_settings()?;
        let options = Options {
            set: self.set.clone(),
            memory: self.limits.max_memory.limit(),
            ..Options::default()
        };
        let all = grid::points(file, &options, &self.vary, self.seeds.unwrap_or(1))?;
        let (points, setups): (Vec<Point>, Vec<Setup>) = all.into_iter().unzip();
        self.check_parts(&setups)?;
        let metrics = match self.metric.as_slice() {
            [] => table::default_metrics(&setups),
            given => given.to_vec(),
        };
        let described: Vec<&Setup> = setups.iter().collect();
        let plan = Plan::new(file, &self.vary, metrics, points, &described);
        let dir = OutputDir::open_shared(out).map_err(Failure::Input)?.with_tables(self.format);
        let store = Store::open(&dir).map_err(Failure::Input)?;
        match self.shard {
            None => results::begin(&dir, &store, &plan),
            Some(_) => results::begin_shard(&dir, &store, &plan),
        }
        .map_err(Failure::Input)?;
        let others = store.others(plan.points.iter().map(|point| point.run.as_str()));

        let own = |place: usize| self.shard.is_none_or(|shard| shard.has(place));
        let mut runs = Vec::new();
        let (mut places, mut jobs) = (Vec::new(), Vec::new());
        let all = plan.points.iter().zip(setups).enumerate();
        for (_, (point, setup)) in all.filter(|(place, _)| own(*place)) {
            let summary = store.load(&setup);
            if summary.is_none() {
                places.push(runs.len());
                jobs.push(Job { setup, settings: point.describe(&plan.vary) });
            }
            runs.push(Done { point: point.clone(), summary, failure: None });
        }
        let kept = runs.len() - jobs.len();
        let table = self.shard.is_none().then(|| dir.clone());
        let partial = Partial::new(table, &plan, runs).map_err(Failure::Input)?;
        let watch = interrupt::watch(self.limits.watchdog)?;
        batch::run_each(file, jobs, Some(&store), self.limits, &watch, &|job, result| {
            partial.add(places[job], result);
        });
        let runs = partial.into_runs();

        let rows = table::rows(&runs, &plan.metrics);
        let json = to_json(&results::json(&plan.vary, &runs))? + "\n";
        let written = match self.shard {
            None => results::write(&dir, &plan, &runs, &rows, &json),
            Some(_) => Ok(()),
        };
        let done = runs.iter().filter(|run| run.summary.is_some()).count();
        let count = runs.len();
        let text = if self.json {
            json
        } else {
            let mut text = table::terminal(&plan.vary, &rows, &plan.metrics);
            let out = out.display();
            let shard = self.shard.map(|shard| format!("shard {shard}: ")).unwrap_or_default();
            text += &format!("\n{shard}{done} of {count} runs complete ({kept} reused).");
            // The table names its place only if it was written.
            text += &match (self.shard, &written) {
                (None, Ok(())) => format!(" Table, chart and all numbers: {out}\n"),
                (None, Err(_)) => "\n".to_owned(),
                (Some(_), _) => {
                    format!(" `apus sweep --merge {out}` makes the table of all shards\n")
                }
            };
            if others > 0 {
                text += &format!(
                    "{others} results in {} belong to other settings, or to another version of the \
                     scenario or build of apus; they are not used\n",
                    store.folder().display()
                );
            }
            text
        };
        let shown = written.map_err(Failure::Run).and_then(|()| match self.open {
            true => open::open(&out.join("report.html")),
            false => Ok(()),
        });
        let mut failures: Vec<String> = runs.into_iter().filter_map(|run| run.failure).collect();
        say(&text, &mut failures);
        failures.extend(shown.err().map(|why| why.to_string()));
        if interrupt::interrupted(&watch) {
            let message = format!(
                "interrupted; {done} of {count} runs are complete and kept; run the same command to \
                 continue"
            );
            return Err(interrupt::failure(message, &failures));
        }
        if failures.is_empty() { Ok(()) } else { Err(Failure::Run(failures.join("\n"))) }
    }

    /// Returns an error for a metric of a part of the scenario that no run has.
    fn check_parts(&self, setups: &[Setup]) -> Result<(), Failure> {
        for name in self.metric.iter().filter(|name| !METRICS.contains(&name.as_str())) {
            if !setups.iter().any(|setup| setup.part_metrics().contains(name)) {
                let known: Vec<String> =
                    setups.iter().take(1).flat_map(Setup::part_metrics).collect();
                let hint = suggestion(name, known.iter().map(String::as_str));
                let message = format!("--metric {name}: no run has this part{hint}");
                return Err(Failure::Input(message));
            }
        }
        Ok(())
    }

    fn check_metrics(&self) -> Result<(), Failure> {
        for name in &self.metric {
            if pattern_of(name).is_none() {
                let hint = suggestion(name, METRICS.iter().chain(SCOPED.iter()).copied());
                let message = format!("--metric: unknown metric `{name}`{hint}");
                return Err(Failure::Input(message));
            }
        }
        Ok(())
    }
}
