//! `apus reproduce`: simulated numbers next to those of the papers.

mod counts;
mod curves;
mod document;
mod figure;
mod golden;
mod mutations;
mod picture;
mod points;
mod pool;
mod result;
pub mod tables;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::thread::available_parallelism;

use apus_scenario::experiment::{Experiment, FULL_SEEDS, QUICK_SEEDS};
use apus_scenario::{Options, Scenario, Setup};
use apus_sim::Watch;
use apus_sim::summary::Summary;
use clap::{ArgGroup, Args};
use serde::Serialize;

use crate::closer::{self, PageOptions};
use crate::failure::Failure;
use crate::interrupt::{self, DEFAULT_SILENCE, read_silence};
use crate::library;
use crate::memory::MaxMemory;
use crate::output::{OutputDir, say, to_json};
use crate::report::{SecondRun, with_causes};
use crate::results::{Judged, Runs, keep, keep_cost};
use crate::tables::TableFormat;
use counts::Counts;
use document::Document;
use golden::Golden;
use picture::Curves;
use pool::{Finished, Pool};
use result::ExperimentResult;

/// Reproduce tables and figures of the papers, and check the results.
#[derive(Args)]
#[command(group = ArgGroup::new("which").required(true).args(["names", "all"]))]
pub struct Reproduce {
    /// Experiments (see `apus list experiments`), or scenario files (.toml) with `[[check]]` or `[[show]]`.
    #[arg(value_name = "NAME|FILE")]
    names: Vec<String>,
    /// Run all built-in experiments.
    #[arg(long, conflicts_with = "open")]
    all: bool,
    /// Run the shortened versions of the scenarios, with one seed instead of five.
    #[arg(long)]
    quick: bool,
    /// Write the results, a report with charts, and the tables of the first seed of each variant to one directory per
    /// experiment in DIR.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    page: PageOptions,
    #[command(flatten)]
    tables: TableFormat,
    /// Write the results to FILE as a Markdown page: values of the papers, simulated values, and reasons for differences, with
    /// a figure per experiment in the folder `figures` next to FILE. Sections of other experiments are kept.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Compare the events of quick runs with FILE. A difference means that results have changed; the command then ends with
    /// an error.
    #[arg(long, value_name = "FILE", requires = "quick")]
    expect_events: Option<PathBuf>,
    /// Write the events of quick runs to FILE, for `--expect-events`. Lines of other experiments are kept, but with `--all`
    /// only those of built-in experiments.
    #[arg(long, value_name = "FILE", requires = "quick", conflicts_with = "expect_events")]
    write_events: Option<PathBuf>,
    /// Remove each mechanism from the quick runs of the experiments that show it, and name the checks that then fail. With
    /// `--report`, also write the table as a page.
    #[arg(long, conflicts_with_all = ["quick", "out", "json"])]
    mutations: bool,
    #[command(flatten)]
    max_memory: MaxMemory,
    /// Print the results as JSON.
    #[arg(long)]
    json: bool,
}

/// Output of `--json`.
#[derive(Serialize)]
struct Results {
    /// Number of checks of each kind and verdict.
    counts: Counts,
    results: Vec<ExperimentResult>,
    /// Cost of the experiments on this machine, kept apart from their results.
    cost: Vec<ExperimentCost>,
}

/// Cost of an experiment.
#[derive(Serialize)]
struct ExperimentCost {
    id: String,
    /// Real time of all its runs together; other runs may have executed at the same time.
    wall_s: f64,
}

impl ExperimentCost {
    fn of(result: &ExperimentResult) -> Self {
        Self { id: result.id.clone(), wall_s: result.wall_s }
    }
}

/// An experiment to run.
struct Entry {
    name: String,
    scenario: Scenario,
    out: Option<OutputDir>,
}

impl Reproduce {
    /// Runs the command.
    pub fn execute(&self) -> Result<(), Failure> {
        if self.mutations {
            return mutations::execute(
                if self.all { None } else { Some(&self.names) },
                self.report.as_deref(),
                self.max_memory,
            );
        }
        let golden = match (&self.expect_events, &self.write_events) {
            (Some(file), _) => Some(Golden::read(file, false).map_err(Failure::Input)?),
            (None, Some(file)) => Some(Golden::read(file, true).map_err(Failure::Input)?),
            (None, None) => None,
        };
        let entries = self.entries()?;
        let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        let report = match &self.report {
            Some(file) => Some(Document::create(file, self.quick, &names).map_err(Failure::Input)?),
            None => None,
        };
        let watch = interrupt::watch(read_silence(DEFAULT_SILENCE).map_err(Failure::Input)?)?;
        let seeds = if self.quick { QUICK_SEEDS } else { FULL_SEEDS };
        let pool =
            Pool::new(entries.iter().map(|entry| (entry.name.as_str(), &entry.scenario)), seeds);
        let mut results = Vec::new();
        // Results that cannot be stored are still printed, and vice versa. These errors are reported at the end.
        let (mut second, mut problems) = (Vec::new(), Vec::new());
        pool.run(self.max_memory, &watch, &mut |index, finished| {
            results.push(self.finish(&entries[index], finished, &mut second, &mut problems));
        });
        problems.extend(self.follow(&second, &watch));
        let mut wrote = String::new();
        if let Some(report) = report {
            let scenario = |result: &ExperimentResult| {
                entries.iter().find(|entry| entry.name == result.id).map(|entry| &entry.scenario)
            };
            let pairs = results.iter().filter_map(|result| Some((scenario(result)?, result)));
            let pairs: Vec<_> = pairs.collect();
            let written = report.write(&pairs, library::experiments());
            wrote = written.unwrap_or_else(|why| noted(&mut problems, why));
        }
        if let Some(golden) = golden {
            if self.write_events.is_some() {
                let known: Vec<&str> = library::experiments().collect();
                let all = self.all.then_some(&known[..]);
                let written = golden.write(&results, all);
                wrote += &written.unwrap_or_else(|why| noted(&mut problems, why));
            } else {
                let changed = golden.differences(&results);
                problems
                    .extend(Some(changed.trim_end().to_owned()).filter(|text| !text.is_empty()));
            }
        }
        let good = results.iter().all(|result| result.status == "pass");
        let cost = results.iter().map(ExperimentCost::of).collect();
        let results = Results {
            counts: Counts::of(results.iter().flat_map(|result| &result.checks)),
            results,
            cost,
        };
        let text = if self.json {
            to_json(&results)? + "\n"
        } else {
            let errors = results.results.iter().filter(|result| result.status == "error").count();
            format!("{}{wrote}", results.counts.lines(errors))
        };
        say(&text, &mut problems);
        if interrupt::interrupted(&watch) {
            return Err(interrupt::failure(kept(&results, seeds), &problems));
        }
        let shown = second.iter().map(|(dir, _)| self.page.show(Some(dir.path())));
        problems.extend(shown.filter_map(|shown| Some(shown.err()?.to_string())));
        if !problems.is_empty() {
            return Err(Failure::Run(problems.join("\n")));
        }
        if good { Ok(()) } else { Err(Failure::Checks) }
    }

    /// Returns the repetitions of an experiment's first seeds, with recording around their slowest ops.
    fn second_runs(&self, scenario: &Scenario, experiment: &Experiment) -> Vec<SecondRun> {
        if self.page.worst == 0 {
            return Vec::new();
        }
        let runs = scenario.runs.iter().zip(&experiment.summaries);
        let count = experiment.summaries.len();
        let second = runs.filter_map(|(run, seeds)| {
            SecondRun::of(&run.setup, seeds.first()?, self.page.worst as usize, count)
        });
        second.collect()
    }

    fn entries(&self) -> Result<Vec<Entry>, Failure> {
        let names: Vec<&str> = match self.all {
            true => library::experiments().collect(),
            false => self.names.iter().map(String::as_str).collect(),
        };
        let mut entries: Vec<Entry> =
            names.iter().map(|name| self.entry(name)).collect::<Result<_, _>>()?;
        for (place, Entry { name, .. }) in entries.iter().enumerate() {
            if entries[..place].iter().any(|earlier| earlier.name == *name) {
                let why = "is named twice; each experiment is run once, under its own name";
                return Err(Failure::Input(format!("the experiment `{name}` {why}")));
            }
        }
        self.create_folders(&mut entries).map_err(Failure::Input)?;
        Ok(entries)
    }

    fn entry(&self, name: &str) -> Result<Entry, Failure> {
        let mut scenario = self.read(name)?;
        if self.report.is_some() {
            curves::record(&mut scenario);
        }
        Ok(Entry { name: scenario.name.clone(), scenario, out: None })
    }

    /// Creates a directory for each experiment in `--out`.
    fn create_folders(&self, entries: &mut [Entry]) -> Result<(), String> {
        let Some(path) = &self.out else { return Ok(()) };
        let all = OutputDir::open(path)?.with_tables(self.tables.format);
        for Entry { name, scenario, out } in entries {
            for run in &mut scenario.runs {
                run.setup = run.setup.clone().recorded(true);
            }
            let dir = all.within(name)?;
            dir.begin(scenario)?;
            *out = Some(dir);
        }
        Ok(())
    }

    /// Returns a built-in experiment, or the experiment in a file.
    fn read(&self, name: &str) -> Result<Scenario, Failure> {
        let options =
            Options { quick: self.quick, memory: self.max_memory.limit(), ..Options::default() };
        library::open_experiment(name, &options).map_err(|error| Failure::Input(error.to_string()))
    }

    /// Repeats the runs whose slowest ops the reports follow, and adds the causes of these ops to the reports.
    /// Returns the pages that cannot be written.
    fn follow(&self, second: &[(OutputDir, Vec<SecondRun>)], watch: &Watch) -> Vec<String> {
        let mut problems = Vec::new();
        for (dir, runs) in second {
            let setups: Vec<Setup> = runs.iter().map(|run| run.setup.clone()).collect();
            let cores = available_parallelism().unwrap_or(NonZeroUsize::MIN);
            let side_by_side = self.max_memory.runs_at_once(setups.iter(), cores);
            let causes = closer::follow(runs, side_by_side, watch);
            if !causes.is_empty() {
                let page = with_causes(&dir.path().join("report.html"), &causes);
                problems.extend(page.and_then(|page| dir.write("report.html", &page)).err());
            }
        }
        problems
    }

    /// Stores and prints the results of an experiment. Adds the runs that its report repeats to `second`, and the reason to
    /// `problems` if the results cannot be stored or printed.
    fn finish(
        &self,
        entry: &Entry,
        finished: Finished,
        second: &mut Vec<(OutputDir, Vec<SecondRun>)>,
        problems: &mut Vec<String>,
    ) -> ExperimentResult {
        let Finished { experiment, complete, wall_s } = finished;
        let mut result = ExperimentResult {
            id: entry.name.clone(),
            status: "error",
            wall_s,
            checks: Vec::new(),
            shown: Vec::new(),
            seeds: 0,
            events: None,
            curves: Vec::new(),
            quick: entry.scenario.quick.clone(),
            title: entry.scenario.title.clone(),
            error: None,
        };
        match experiment {
            Ok(experiment) => {
                result.curves = curves::of(&entry.scenario, &experiment);
                if let Some(dir) = &entry.out {
                    match keep_results(dir, &entry.scenario, &experiment, &result.curves) {
                        Ok(()) => second
                            .push((dir.clone(), self.second_runs(&entry.scenario, &experiment))),
                        Err(why) => problems.push(why.to_string()),
                    }
                }
                result.status = match (complete, experiment.passes()) {
                    (false, _) => "interrupted",
                    (true, true) => "pass",
                    (true, false) => "fail",
                };
                result.seeds = experiment.seeds();
                let runs = experiment.summaries.iter().flatten();
                result.events = complete.then(|| golden::hash(runs));
                result.checks = experiment.checks;
                result.shown = experiment.shown;
            }
            Err(error) => result.error = Some(error),
        }
        if !self.json {
            say(&tables::experiment(&result), problems);
        }
        result
    }
}

/// Adds a problem that replaces what a command would have printed.
fn noted(problems: &mut Vec<String>, why: String) -> String {
    problems.push(why);
    String::new()
}

/// Writes the numbers, tables and charts of an experiment.
fn keep_results(
    dir: &OutputDir,
    scenario: &Scenario,
    experiment: &Experiment,
    curves: &[Curves],
) -> Result<(), Failure> {
    let all: Vec<&Summary> = experiment.summaries.iter().flatten().collect();
    keep_cost(dir, all.iter().copied()).map_err(Failure::Run)?;
    let json = to_json(&Runs::new(all.clone()))? + "\n";
    let first: Vec<_> = experiment.summaries.iter().filter_map(|seeds| seeds.first()).collect();
    let judged = Judged {
        checks: &experiment.checks,
        shown: &experiment.shown,
        figures: curves.iter().map(Curves::json).collect(),
    };
    keep(dir, "reproduce", scenario, (&first, &all), &json, judged, &BTreeMap::new())
        .map_err(Failure::Run)
}

/// Returns the message of an interrupted command.
fn kept(results: &Results, seeds: u64) -> String {
    let partial = results.results.iter().filter(|result| result.status == "interrupted");
    let parts: Vec<String> = partial
        .map(|result| format!("{} ({} of {seeds} seeds)", result.id, result.seeds))
        .collect();
    let mut text = "interrupted; the experiments above are complete".to_owned();
    if !parts.is_empty() {
        text += &format!(" except {}", parts.join(", "));
    }
    text + "; the others were not run"
}
