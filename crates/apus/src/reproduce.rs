//! `apus reproduce`: the papers' numbers beside ours.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;
use std::time::Instant;

use apus_cc::suggestion;
use apus_sim::Watch;
use apus_sim::experiment::{CheckResult, FULL_SEEDS, QUICK_SEEDS, Shown, Verdict, run};
use apus_sim::scenario::Options;
use apus_sim::summary::Summary;
use clap::{ArgGroup, Args};
use serde::Serialize;

use crate::failure::Failure;
use crate::interrupt::{self, DEFAULT_SILENCE, read_silence};
use crate::library;
use crate::output::{OutputDir, print, to_json};
use crate::progress::Meter;
use crate::results::{Runs, keep};
use crate::text::{columns, number};

/// Reproduces tables and figures of the papers and checks them.
#[derive(Args)]
#[command(group = ArgGroup::new("which").required(true).args(["names", "all"]))]
pub struct Reproduce {
    /// Which ones; `apus list scenarios` names them (all but the benchmarks).
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// All of them.
    #[arg(long)]
    all: bool,
    /// One seed instead of five, and what the scenarios shorten or leave out in quick runs.
    #[arg(long)]
    quick: bool,
    /// Writes a report with charts, and the tables of each variant's first seed, to a directory per
    /// experiment in this one.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// Beyond this share of the paper's number a difference is worth a word.
const VISIBLE: f64 = 0.1;

/// What `--json` prints.
#[derive(Serialize)]
struct Results {
    /// How many checks have each verdict.
    counts: Counts,
    results: Vec<ExperimentResult>,
}

#[derive(Serialize)]
struct ExperimentResult {
    id: String,
    /// "pass", "fail" or "error".
    status: &'static str,
    wall_s: f64,
    checks: Vec<CheckResult>,
    /// Numbers without a band.
    shown: Vec<Shown>,
    seeds: u64,
    /// What a quick run changes and leaves out.
    quick: Vec<String>,
    title: Option<String>,
    /// Why there are no checks, if the status is "error".
    error: Option<String>,
}

impl Reproduce {
    /// Does it.
    pub fn execute(&self) -> Result<(), Failure> {
        let names: Vec<&str> = match self.all {
            true => library::experiments().collect(),
            false => self.names.iter().map(String::as_str).collect(),
        };
        for name in &names {
            if library::experiments().all(|known| known != *name) {
                let hint = suggestion(name, library::experiments());
                return Err(Failure::Input(format!("there is no experiment `{name}`{hint}")));
            }
        }
        let watch = interrupt::watch(read_silence(DEFAULT_SILENCE).map_err(Failure::Input)?)?;
        let mut results = Vec::new();
        for name in names {
            let result = self.reproduce(name, &watch)?;
            if interrupt::interrupted(&watch) {
                break;
            }
            if !self.json {
                print(&table(&result))?;
            }
            results.push(result);
        }
        let good = results.iter().all(|result| result.status == "pass");
        let results = Results { counts: Counts::of(&results), results };
        if self.json {
            print(&(to_json(&results)? + "\n"))?;
        } else {
            print(&format!("{}\n", last_line(&results)))?;
        }
        if interrupt::interrupted(&watch) {
            let message =
                "interrupted; the experiments above are complete, the others were not run";
            return Err(Failure::Interrupted(message.to_owned()));
        }
        if good { Ok(()) } else { Err(Failure::Checks) }
    }

    fn reproduce(&self, name: &str, watch: &Watch) -> Result<ExperimentResult, Failure> {
        let started = Instant::now();
        let seeds = if self.quick { QUICK_SEEDS } else { FULL_SEEDS };
        let mut result = ExperimentResult {
            id: name.to_owned(),
            status: "error",
            wall_s: 0.0,
            checks: Vec::new(),
            shown: Vec::new(),
            seeds,
            quick: Vec::new(),
            title: None,
            error: None,
        };
        let Some(source) = library::find(name) else { return Ok(result) };
        let options = Options { quick: self.quick, ..Options::default() };
        let mut scenario = match library::read(&source, Path::new(""), &options) {
            Ok(scenario) => scenario,
            Err(error) => {
                result.error = Some(error.to_string());
                return Ok(result);
            }
        };
        result.title.clone_from(&scenario.title);
        result.quick.clone_from(&scenario.quick);
        let out = match &self.out {
            Some(path) => {
                for run in &mut scenario.runs {
                    run.setup = run.setup.clone().recorded(true);
                }
                Some(OutputDir::create(&path.join(name), &scenario).map_err(Failure::Input)?)
            }
            None => None,
        };
        let meter = Meter::new(name, scenario.runs.len() * seeds as usize);
        let threads = available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let experiment = run(&scenario, seeds, threads, watch, &|step| meter.on_step(step));
        drop(meter);
        match experiment {
            Ok(experiment) => {
                if let Some(dir) = &out {
                    let all: Vec<&Summary> = experiment.summaries.iter().flatten().collect();
                    let json = to_json(&Runs::new(all))? + "\n";
                    let first: Vec<_> =
                        experiment.summaries.iter().filter_map(|seeds| seeds.first()).collect();
                    let numbers = (&experiment.checks[..], &experiment.shown[..]);
                    keep(dir, &scenario, &first, &json, numbers).map_err(Failure::Run)?;
                }
                result.status = if experiment.passes() { "pass" } else { "fail" };
                result.checks = experiment.checks;
                result.shown = experiment.shown;
            }
            Err(error) => result.error = Some(error),
        }
        result.wall_s = started.elapsed().as_secs_f64();
        Ok(result)
    }
}

fn table(result: &ExperimentResult) -> String {
    let title = result.title.as_deref().unwrap_or_default();
    let (seeds, wall) = (result.seeds, number(result.wall_s));
    let plural = if seeds == 1 { "" } else { "s" };
    let mut text = format!("{}  {title}  ({seeds} seed{plural}, {wall} s)\n", result.id);
    if !result.quick.is_empty() {
        text += &format!("  quick: {}\n", result.quick.join("; "));
    }
    if let Some(error) = &result.error {
        return text + "  ERROR: " + error + "\n\n";
    }
    text += &tables(&result.checks, &result.shown);
    text + "\n"
}

/// The checks with their bands, why what differs may differ, and what is shown besides.
pub fn tables(checks: &[CheckResult], shown: &[Shown]) -> String {
    let header = ["", "paper", "ours", "band", "", "source"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for check in checks {
        rows.push(table_row(&check.shown, band(&check.shown), check.verdict.word()));
    }
    let mut text = columns(&rows, "  ");
    for check in checks {
        text += &difference(check);
    }
    if !shown.is_empty() {
        text += "  Also measured:\n";
        let rows: Vec<_> = shown.iter().map(shown_row).collect();
        text += &columns(&rows, "    ");
    }
    text
}

/// Why a measurement may differ from the paper's number, if it does so visibly or fails.
fn difference(check: &CheckResult) -> String {
    let Shown { name, paper, measured, why, .. } = &check.shown;
    let apart = match (paper, measured) {
        (Some(paper), Some(measured)) => (measured - paper).abs() > VISIBLE * paper.abs(),
        _ => false,
    };
    let why = why.as_deref().unwrap_or("the scenario gives no reason");
    let found = check.differs.as_deref().unwrap_or(why);
    match (check.verdict, apart) {
        (Verdict::Differs, _) => format!("  {name} DIFFERS from the paper: {found}\n"),
        (Verdict::Stale, _) => {
            format!("  {name} FAILS: this check passes now: remove `differs`\n")
        }
        (Verdict::Fail, _) => format!("  {name} FAILS; it may differ because: {why}\n"),
        (Verdict::Pass, true) => format!("  {name} differs: {why}\n"),
        (Verdict::Pass, false) => String::new(),
    }
}

/// A row without a band: the paper's number only where there is one.
fn shown_row(shown: &Shown) -> Vec<String> {
    let paper = shown
        .paper
        .map_or_else(String::new, |value| format!("(paper: {}, {})", number(value), shown.source));
    let mut row = table_row(shown, String::new(), "");
    row.truncate(3);
    row[1] = row.pop().unwrap_or_default();
    row.push(paper);
    row
}

fn table_row(shown: &Shown, band: String, verdict: &str) -> Vec<String> {
    let unit = match shown.unit.as_str() {
        "" => String::new(),
        unit => format!(" {unit}"),
    };
    let paper = shown.paper.map_or_else(|| "-".to_owned(), |value| number(value) + &unit);
    let ours = match (shown.measured, shown.spread) {
        (Some(value), Some((low, high))) if low < high => {
            format!("{}{unit} ({} .. {})", number(value), number(low), number(high))
        }
        (Some(value), _) => number(value) + &unit,
        (None, _) => "not measured".to_owned(),
    };
    let name = shown.name.clone();
    vec![name, paper, ours, band, verdict.to_owned(), shown.source.clone()]
}

fn band(shown: &Shown) -> String {
    match (shown.low, shown.high) {
        (Some(low), Some(high)) => format!("{} .. {}", number(low), number(high)),
        (Some(low), None) => format!(">= {}", number(low)),
        (None, Some(high)) => format!("<= {}", number(high)),
        (None, None) => String::new(),
    }
}

/// How many checks have each verdict.
#[derive(Serialize)]
struct Counts {
    checks: usize,
    pass: usize,
    fail: usize,
    differs: usize,
    stale: usize,
}

impl Counts {
    fn of(results: &[ExperimentResult]) -> Self {
        let checks = || results.iter().flat_map(|result| &result.checks);
        let count = |verdict| checks().filter(|check| check.verdict == verdict).count();
        Self {
            checks: checks().count(),
            pass: count(Verdict::Pass),
            fail: count(Verdict::Fail),
            differs: count(Verdict::Differs),
            stale: count(Verdict::Stale),
        }
    }
}

/// The last line.
fn last_line(results: &Results) -> String {
    let Counts { checks, pass, fail, differs, stale } = results.counts;
    let mut text = format!("{pass} of {checks} checks pass");
    let errors = results.results.iter().filter(|result| result.status == "error").count();
    for (count, what) in [
        (differs, "differ from the paper, as their scenarios say"),
        (fail, "FAIL"),
        (stale, "pass though their scenarios say `differs`"),
        (errors, "experiments could not be run"),
    ] {
        if count > 0 {
            text += &format!("; {count} {what}");
        }
    }
    text
}
