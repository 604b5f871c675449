//! `apus sweep`: a scenario over the product of settings, on all cores, resumable.

mod grid;
pub mod table;

use std::path::PathBuf;

use apus_scenario::Options;
use apus_sim::Watch;
use apus_sim::results::{METRICS, SCOPED, pattern_of};
use apus_units::suggestion;
use clap::Args;
pub use grid::Axis;
use grid::read_axis;
use serde_json::{Value, json};
use table::{DEFAULT_METRICS, Done};

use crate::batch::{self, Job, Limits};
use crate::chart;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{OutputDir, print, to_json};
use crate::store::Store;

/// Run a scenario with every combination of settings and write one table and one chart of the
/// results.
///
/// DIR gets sweep.csv (all metrics of each run), sweep.json (the same with separate settings) and
/// sweep.svg (medians over seeds). DIR/runs keeps each finished run: the same command repeats none of
/// them.
#[derive(Args)]
pub struct Sweep {
    /// A scenario file, or the name of a scenario of the library.
    file: String,
    /// A setting and its values: `--vary algorithm.base_target=20us,30us,50us`. May be given several
    /// times: all combinations are run, and the first setting is the horizontal axis of the chart.
    #[arg(long, value_name = "KEY=A,B,C", required = true, value_parser = read_axis)]
    vary: Vec<Axis>,
    /// Change a setting of all runs: `--set duration=50ms`. May be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Number of seeds per combination, from the scenario's own upwards.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: u64,
    /// Metric of the table and the chart (see `apus list metrics`); may be given several times.
    #[arg(long, value_name = "NAME")]
    metric: Vec<String>,
    /// Directory of results.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    limits: Limits,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Sweep {
    /// Returns an error for a setting that an axis would overwrite.
    fn check_settings(&self) -> Result<(), Failure> {
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
        let metrics = self.metrics()?;
        for (index, axis) in self.vary.iter().enumerate() {
            if self.vary[..index].iter().any(|other| other.key == axis.key) {
                let message = format!("--vary {}: given twice; write all values once", axis.key);
                return Err(Failure::Input(message));
            }
        }
        self.check_settings()?;
        let options = Options {
            set: self.set.clone(),
            memory: self.limits.max_memory.limit(),
            ..Options::default()
        };
        let points = grid::points(&self.file, &options, &self.vary, self.seeds)?;
        let dir = OutputDir::open(&self.out).map_err(Failure::Input)?;
        let store = Store::open(&dir).map_err(Failure::Input)?;
        let mut runs: Vec<Done> = points
            .into_iter()
            .map(|point| Done { summary: store.load(&point.setup), point })
            .collect();
        // The kept runs. This also shows before a long run that results can be written.
        dir.write("sweep.csv", &table::csv(&self.vary, &runs)).map_err(Failure::Input)?;
        let kept = runs.iter().filter(|run| run.summary.is_some()).count();
        let others = store.others(runs.iter().map(|run| &run.point.setup));
        let watch = interrupt::watch(self.limits.watchdog)?;
        let failures = self.run_missing(&mut runs, &store, &watch);

        let rows = table::rows(&runs, &metrics);
        let title = format!("{} over {}", self.file, self.vary[0].key);
        let json = to_json(&self.json(&runs))? + "\n";
        let written = dir
            .write("sweep.csv", &table::csv(&self.vary, &runs))
            .and_then(|()| dir.write("sweep.json", &json))
            .and_then(|()| {
                dir.write("sweep.svg", &chart::draw(&title, &self.vary, &rows, &metrics))
            });
        if self.json {
            print(&json)?;
        } else {
            let mut text = table::terminal(&self.vary, &rows, &metrics);
            let done = runs.iter().filter(|run| run.summary.is_some()).count();
            text += &format!(
                "\n{done} of {} runs complete ({kept} reused). Table, chart and all numbers: {}\n",
                runs.len(),
                self.out.display()
            );
            if others > 0 {
                text += &format!(
                    "{others} results in {} belong to other settings, or to another version of the \
                     scenario or of apus; they are not used\n",
                    self.out.join("runs").display()
                );
            }
            print(&text)?;
        }
        written.map_err(Failure::Run)?;
        if interrupt::interrupted(&watch) {
            let done = runs.iter().filter(|run| run.summary.is_some()).count();
            let all = runs.len();
            return Err(Failure::Interrupted(format!(
                "interrupted; {done} of {all} runs are complete and kept; run the same command to \
                 continue"
            )));
        }
        if failures.is_empty() { Ok(()) } else { Err(Failure::Run(failures.join("\n"))) }
    }

    fn metrics(&self) -> Result<Vec<String>, Failure> {
        for name in &self.metric {
            if pattern_of(name).is_none() {
                let hint = suggestion(name, METRICS.iter().chain(SCOPED.iter()).copied());
                let message = format!("--metric: unknown metric `{name}`{hint}");
                return Err(Failure::Input(message));
            }
        }
        if self.metric.is_empty() {
            return Ok(DEFAULT_METRICS.map(str::to_owned).to_vec());
        }
        Ok(self.metric.clone())
    }

    /// Adds the missing summaries and returns the errors of runs.
    fn run_missing(&self, runs: &mut [Done], store: &Store, watch: &Watch) -> Vec<String> {
        let missing = |runs: &&mut Done| runs.summary.is_none();
        let mut runs: Vec<&mut Done> = runs.iter_mut().filter(missing).collect();
        let job = |run: &&mut Done| Job {
            setup: run.point.setup.clone(),
            settings: run.point.values.join(", "),
        };
        let jobs: Vec<Job> = runs.iter().map(job).collect();
        let (done, failures) = batch::run(&self.file, jobs, Some(store), self.limits, watch);
        for (run, summary) in runs.iter_mut().zip(done) {
            run.summary = summary;
        }
        failures
    }

    fn json(&self, runs: &[Done]) -> Value {
        let run = |run: &Done| {
            let settings: serde_json::Map<String, Value> = self
                .vary
                .iter()
                .zip(&run.point.values)
                .map(|(axis, value)| (axis.key.clone(), json!(value)))
                .collect();
            json!({
                "settings": settings,
                "variant": run.point.variant,
                "seed": run.point.setup.seed(),
                "summary": run.summary,
            })
        };
        json!({ "runs": runs.iter().map(run).collect::<Vec<_>>() })
    }
}
