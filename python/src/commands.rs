//! Commands that execute many runs or none: comparisons, searches and replays.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::atomic::Ordering;

use apus::api::{self, Comparison, Contest, Failure, Job, TargetSearch, varied_by_target_search};
use apus_scenario::experiment::{Step, Threads, is_interrupted, run_all};
use apus_scenario::{Options, Setup, Source};
use apus_sim::{Fault, Watch};
use pyo3::prelude::*;
use pyo3::types::PyList;
use serde_json::Value;

use crate::options::{Cores, Count, RunOptions, limit};
use crate::progress::Progress;
use crate::scenario::Scenario;
use crate::{algorithm as own, blocking, errors};

/// What is compared, and how; see `Contest`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct ContestOptions {
    algorithms: Vec<String>,
    set: Vec<String>,
    variant: Option<String>,
    seeds: Count,
    metrics: Vec<String>,
    tune_each: bool,
    objective: String,
    keep: f64,
    tune_values: Count,
    tune_seeds: Count,
}

impl ContestOptions {
    /// Returns the contest, whose numbers are within the limits of the command.
    fn contest(self) -> PyResult<Contest> {
        let seeds = self.seeds.within("seeds", 1, 1000)?;
        let tune_values = self.tune_values.within("tune_values", 2, 100)? as u32;
        let tune_seeds = self.tune_seeds.within("tune_seeds", 1, 1000)?;
        check_percent("keep", self.keep)?;
        if self.algorithms.is_empty() {
            return Err(errors::of_input("algorithms=[]: must name at least one algorithm"));
        }
        let Self { algorithms, set, variant, metrics: metric, tune_each, objective, keep, .. } =
            self;
        Ok(Contest {
            algorithms,
            set,
            variant,
            seeds,
            metric,
            tune_each,
            objective,
            keep,
            tune_values,
            tune_seeds,
        })
    }
}

fn check_percent(name: &str, value: f64) -> PyResult<()> {
    if value > 0.0 && value < 100.0 {
        return Ok(());
    }
    Err(errors::of_input(&format!("{name}={value}: must be above 0 and below 100 percent")))
}

/// The result of a comparison.
#[pyclass(frozen, module = "apus._native")]
pub struct Compared {
    /// The numbers as JSON, as in compare.json.
    #[pyo3(get)]
    json: String,
    /// The tables that the command prints.
    #[pyo3(get)]
    text: String,
    /// The page that the command writes, without the parts that need recorded runs.
    #[pyo3(get)]
    html: String,
    /// Why runs have no results.
    #[pyo3(get)]
    failures: Vec<String>,
    /// Reports of flows without progress.
    #[pyo3(get)]
    warnings: Vec<String>,
    raised: Option<PyErr>,
}

#[pymethods]
impl Compared {
    /// The exception that ended the runs early, such as `KeyboardInterrupt`.
    #[getter]
    fn raised(&self, py: Python<'_>) -> Option<PyErr> {
        self.raised.as_ref().map(|error| error.clone_ref(py))
    }
}

/// Compares algorithms on a scenario: the text `text`, or the file or built-in scenario `name`.
#[pyfunction]
#[pyo3(signature = (name, text, contest, options, on_progress=None))]
pub fn compare(
    py: Python<'_>,
    name: &str,
    text: Option<String>,
    contest: ContestOptions,
    options: RunOptions,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<Compared> {
    let contest = contest.contest()?;
    let read: Options = contest.options(limit(options.max_memory())?);
    let scenario = match text {
        Some(text) => {
            let source = Source { name: name.to_owned(), text };
            let read = blocking::call(py, || api::read(&source, Path::new(""), &read))?;
            read.map_err(|error| errors::of_scenario(&error))?
        }
        None => {
            let opened = blocking::call(py, || api::open(name, &read))?;
            opened.map_err(|error| errors::of_open(&error))?
        }
    };
    let scenario = api::single(name, scenario).map_err(|why| errors::of_input(&why))?;
    let label = scenario.name.clone();
    let prepared = blocking::call(py, || Comparison::new(&contest, scenario))?;
    let mut comparison = prepared.map_err(|why| errors::of_input(&why))?;
    let (watch, warnings) = options.watch()?;
    let cores = options.cores()?;
    let progress = Progress::new(on_progress);
    let execute = |jobs: Vec<Job>| execute(&label, jobs, &cores, &watch, &progress);
    let interrupted = || watch.stop.load(Ordering::Relaxed);
    let (failures, raised) = blocking::run(
        py,
        &watch,
        || comparison.run(&execute, &interrupted),
        |py| progress.report(py),
    );
    let report = comparison.report();
    let (json, text) = (report.json().to_string(), report.text());
    let html = report.html(Vec::new(), &failures);
    let warnings = warnings.lock().map(|mut all| std::mem::take(&mut *all)).unwrap_or_default();
    Ok(Compared { json, text, html, failures, warnings, raised })
}

/// Executes the runs of a batch: returns the summary of each, and the errors.
fn execute(
    name: &str,
    jobs: Vec<Job>,
    cores: &Cores,
    watch: &Watch,
    progress: &Progress,
) -> (Vec<Option<Value>>, Vec<String>) {
    let (setups, settings): (Vec<Setup>, Vec<String>) =
        jobs.into_iter().map(|job| (job.setup, job.settings)).unzip();
    let (at_once, each) = cores.share(&setups);
    let tracker = progress.begin(name, setups.len(), at_once);
    let on_step = |step: Step| tracker.on_step(step);
    let results = run_all(&setups, at_once, Threads::Exactly(each), watch, &on_step);
    let (mut summaries, mut failures) = (Vec::new(), Vec::new());
    for (result, settings) in results.into_iter().zip(settings) {
        let summary = match result {
            result if is_interrupted(&result) => None,
            Ok(summary) => match &summary.stop_reason {
                Some(why) => {
                    failures.push(format!("{} ({settings}): {why}", summary.name));
                    None
                }
                None => serde_json::to_value(&summary).ok(),
            },
            Err(why) => {
                failures.push(why);
                None
            }
        };
        summaries.push(summary);
    }
    (summaries, failures)
}

/// How the base target is searched; see `TargetSearch`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct TargetOptions {
    set: Vec<String>,
    algorithm: Option<String>,
    keep: f64,
    seeds: Count,
}

/// Searches the smallest base target that keeps the throughput of a scenario with one run.
///
/// Returns the numbers as in tune.json, the text that the command prints, and the reason why there are none.
#[pyfunction]
#[pyo3(signature = (scenario, wanted, options, on_progress=None))]
#[allow(clippy::needless_pass_by_value, reason = "arguments of Python's")]
pub fn tune_target(
    py: Python<'_>,
    scenario: PyRef<'_, Scenario>,
    wanted: TargetOptions,
    options: RunOptions,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<(Option<String>, String)> {
    let TargetOptions { set, algorithm, keep, seeds } = wanted;
    let seeds = seeds.within("seeds", 1, 1000)?;
    check_percent("keep", keep)?;
    let [run] = scenario.runs() else {
        let names = scenario.runs().iter().filter_map(|run| run.variant.as_deref());
        let names = names.collect::<Vec<_>>().join(", ");
        let message =
            format!("the scenario has several variants; choose one with variant=: {names}");
        return Err(errors::of_input(&message));
    };
    let setup = run.setup.clone();
    let search = TargetSearch { algorithm, keep, seeds };
    let problem = |why: String| errors::of_input(&why.replace("--algorithm", "algorithm="));
    let label = search.label(&setup).map_err(problem)?;
    if let Some(text) = varied_by_target_search(&set, label) {
        return Err(errors::of_input(&format!(
            "set: {text}: has no effect, because the search varies `base_target`; remove it"
        )));
    }
    let (watch, _reports) = options.watch()?;
    let cores = options.cores()?;
    let progress = Progress::new(on_progress);
    let run = |jobs: Vec<Job>| execute(setup.name(), jobs, &cores, &watch, &progress);
    let search = || {
        let report = search.search(&setup, &run)?;
        Ok((report.json().to_string(), report.text()))
    };
    match blocking::run(py, &watch, search, |py| progress.report(py)) {
        (_, Some(error)) => Err(error),
        (Ok((json, text)), None) => Ok((Some(json), text)),
        (Err(Failure::Input(why)), None) => Err(errors::of_input(&why)),
        (Err(failure), None) => Ok((None, failure.to_string())),
    }
}

/// A log reader that fails once the call has been stopped.
struct Stoppable<'a> {
    log: File,
    watch: &'a Watch,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.watch.stop.load(Ordering::Relaxed) {
            return Err(io::Error::other("the replay was stopped"));
        }
        self.log.read(buffer)
    }
}

/// Rows of a replay between two checks for signals.
const ROWS_PER_LOOK: usize = 4096;

/// Returns the state of an algorithm after each event of a log, in the order of the log. Each is made by `make` from its values.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "arguments of Python's")]
pub fn replay<'py>(
    py: Python<'py>,
    make: &Bound<'py, PyAny>,
    algorithm: &str,
    profile: Option<&str>,
    set: Vec<String>,
    trace: &str,
) -> PyResult<Bound<'py, PyList>> {
    let watch = Watch::default();
    let read = || {
        let log = File::open(trace).map_err(|why| format!("{trace}: cannot be read: {why}"))?;
        let log = BufReader::new(Stoppable { log, watch: &watch });
        api::replay((algorithm, profile, &set), trace, log)
    };
    let (replayed, raised) = blocking::run(py, &watch, || Fault::caught(read), |_| Ok(()));
    if let Some(error) = raised {
        return Err(error);
    }
    let rows = replayed.map_err(|fault| own::failure(py, fault))?;
    let list = PyList::empty(py);
    for (number, row) in rows.map_err(|why| errors::of_input(&why))?.into_iter().enumerate() {
        let values = (
            row.time.as_ps(),
            row.event.name(),
            row.target_delay.map(|target| target.as_ps()),
            row.fabric_cwnd,
            row.endpoint_cwnd,
            row.cwnd,
            row.pacing_delay.as_ps(),
            row.rto.as_ps(),
        );
        list.append(make.call1(values)?)?;
        if number % ROWS_PER_LOOK == 0 {
            py.check_signals()?;
        }
    }
    Ok(list)
}

/// Returns the explanation of an algorithm, a path policy, a result or a scenario.
#[pyfunction]
pub fn explain(name: &str) -> PyResult<String> {
    api::explain(name).map_err(|why| errors::of_input(&why))
}
