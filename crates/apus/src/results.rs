//! Directory of results of `run` and `reproduce`.

use std::collections::BTreeMap;

use apus_scenario::Scenario;
use apus_scenario::experiment::{CheckResult, Shown};
use apus_scenario::import::hpcc;
use apus_sim::results::{RunCost, SCHEMA_VERSION};
use apus_sim::summary::Summary;
use serde::Serialize;
use serde_json::Value;

use crate::output::OutputDir;
use crate::report::{Report, RunPage};
use crate::{tables, traces};

/// Content of summary.json.
#[derive(Serialize)]
pub struct Runs<T> {
    schema_version: u32,
    /// The runs in the scenario's order.
    pub runs: Vec<T>,
}

/// Output of `apus run --json`.
#[derive(Serialize)]
pub struct RunsWithCost<'a> {
    #[serde(flatten)]
    runs: &'a Runs<Summary>,
    cost: Vec<RunCost>,
}

impl<'a> RunsWithCost<'a> {
    /// Returns these runs with their cost.
    pub fn new(runs: &'a Runs<Summary>) -> Self {
        Self { runs, cost: costs(runs.runs.iter()) }
    }
}

impl<T> Runs<T> {
    /// Returns the content for these runs.
    pub fn new(runs: Vec<T>) -> Self {
        Self { schema_version: SCHEMA_VERSION, runs }
    }
}

/// Returns the cost of these runs.
fn costs<'a>(runs: impl Iterator<Item = &'a Summary>) -> Vec<RunCost> {
    runs.map(|run| RunCost { name: run.name.clone(), seed: run.seed, cost: run.cost }).collect()
}

/// Content of cost.json.
#[derive(Serialize)]
struct Costs {
    schema_version: u32,
    cost: Vec<RunCost>,
}

/// Writes cost.json.
pub fn keep_cost<'a>(
    dir: &OutputDir,
    runs: impl Iterator<Item = &'a Summary>,
) -> Result<(), String> {
    let costs = Costs { schema_version: SCHEMA_VERSION, cost: costs(runs) };
    let json = serde_json::to_string_pretty(&costs).map_err(|error| error.to_string())?;
    dir.write("cost.json", &(json + "\n"))
}

/// Additions of an experiment to its runs.
#[derive(Default)]
pub struct Judged<'a> {
    /// Checks of the experiment.
    pub checks: &'a [CheckResult],
    /// Numbers without a band.
    pub shown: &'a [Shown],
    /// Figures of the paper.
    pub figures: Vec<Value>,
}

/// Writes the numbers, tables and charts of a scenario's runs; `json` is the content of summary.json.
///
/// `all` contains the runs of all seeds, for the spread of numbers.
pub fn keep(
    dir: &OutputDir,
    command: &'static str,
    scenario: &Scenario,
    (runs, all): (&[&Summary], &[&Summary]),
    json: &str,
    judged: Judged<'_>,
    causes: &BTreeMap<String, Value>,
) -> Result<(), String> {
    for run in runs {
        let Some(recording) = &run.recording else { continue };
        let of_run = scenario.runs.iter().find(|one| one.setup.name() == run.name);
        let within;
        let dir = match of_run.and_then(|one| one.variant.as_ref()) {
            Some(variant) if scenario.runs.len() > 1 => {
                within = dir.within(variant)?;
                &within
            }
            _ => dir,
        };
        tables::write(dir, run, recording)?;
        traces::write(dir, recording, dir.has_timeline())?;
        let numbers = of_run.and_then(|one| one.setup.host_numbers());
        dir.write("fct.txt", &hpcc::render_fct(&hpcc::flow_times(recording, numbers)))?;
    }
    let recorded = runs.iter().filter(|run| run.recording.is_some()).count();
    let prefix = format!("{}/", scenario.name);
    let page = |run: &&Summary| {
        let setups = scenario.runs.iter().map(|run| &run.setup);
        let page = RunPage {
            summary: run,
            label: run.name.strip_prefix(&prefix).unwrap_or(&run.name),
            setup: setups.into_iter().find(|setup| setup.name() == run.name),
            seeds: all.iter().copied().filter(|other| other.name == run.name).collect(),
            causes: causes.get(&run.name),
        };
        page.json(recorded)
    };
    let subtitle = scenario.title.as_deref().unwrap_or_default();
    let report = Report {
        runs: runs.iter().map(page).collect(),
        checks: judged.checks,
        shown: judged.shown,
        figures: judged.figures,
        ..Report::new(command, &scenario.name, subtitle)
    };
    dir.write("report.html", &report.html())?;
    // summary.json is written last: a directory that contains it is complete.
    dir.write("summary.json", json)
}
