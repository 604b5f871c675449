//! Scenarios, read and checked.

use std::path::Path;
use std::sync::Mutex;

use apus::api::{self, Estimate};
use apus_scenario::experiment::{Experiment, Step, Threads, collect, run_each};
use apus_scenario::{Run, Scenario as Checked, Source};
use apus_sim::Watch;
use apus_sim::summary::Summary;
use pyo3::prelude::*;

use crate::options::{Count, ReadOptions, RunOptions};
use crate::outcome::Outcome;
use crate::progress::Progress;
use crate::{algorithm, blocking, errors};

/// Events, seconds, maximum events and maximum seconds of the drain, and whether the numbers are measured.
type EstimateRow = (u64, f64, u64, f64, bool);

/// A scenario that was read and checked. It does not change.
#[pyclass(frozen, module = "apus._native")]
pub struct Scenario {
    checked: Checked,
}

impl Scenario {
    /// Returns the runs of the scenario: one per variant.
    pub fn runs(&self) -> &[Run] {
        &self.checked.runs
    }
}

#[pymethods]
impl Scenario {
    /// Opens a file, or a built-in scenario by name.
    #[staticmethod]
    fn open(py: Python<'_>, file: &str, options: ReadOptions) -> PyResult<Self> {
        let options = options.options()?;
        let opened = blocking::call(py, || api::open(file, &options))?;
        Ok(Self { checked: opened.map_err(|error| errors::of_open(&error))? })
    }

    /// Opens an experiment: a built-in one by name, or a file with checks.
    #[staticmethod]
    fn open_experiment(py: Python<'_>, name: &str, options: ReadOptions) -> PyResult<Self> {
        let options = options.options()?;
        let opened = blocking::call(py, || api::open_experiment(name, &options))?;
        Ok(Self { checked: opened.map_err(|error| errors::of_open(&error))? })
    }

    /// Reads a text; files that it names are relative to the current folder.
    #[staticmethod]
    fn read(py: Python<'_>, name: String, text: String, options: ReadOptions) -> PyResult<Self> {
        let (source, options) = (Source { name, text }, options.options()?);
        let read = blocking::call(py, || api::read(&source, Path::new(""), &options))?;
        Ok(Self { checked: read.map_err(|error| errors::of_scenario(&error))? })
    }

    /// Name of the scenario.
    #[getter]
    fn name(&self) -> &str {
        &self.checked.name
    }

    /// Statement that the scenario demonstrates.
    #[getter]
    fn title(&self) -> Option<&str> {
        self.checked.title.as_deref()
    }

    /// The publication that it reproduces, and where.
    #[getter]
    fn source(&self) -> Option<&str> {
        self.checked.source.as_deref()
    }

    /// Name of the variant of each run, `None` if the scenario has no variants.
    #[getter]
    fn variants(&self) -> Vec<Option<&str>> {
        self.checked.runs.iter().map(|run| run.variant.as_deref()).collect()
    }

    /// Differences of the quick run from the full one, in sentences.
    #[getter]
    fn quick(&self) -> Vec<String> {
        self.checked.quick.clone()
    }

    /// Returns name, seed, simulated seconds, estimated memory in bytes and effective configuration of each run.
    fn plan(&self, py: Python<'_>) -> Vec<(String, u64, f64, u64, String)> {
        let plan = |run: &Run| {
            let setup = &run.setup;
            let (name, seconds) = (setup.name().to_owned(), setup.duration().as_secs_f64());
            let memory = setup.estimated_memory().get();
            (name, setup.seed(), seconds, memory, setup.to_annotated_toml())
        };
        py.detach(|| self.checked.runs.iter().map(plan).collect())
    }

    /// Returns the estimate of each run. Runs the beginning of each.
    fn estimate(&self, py: Python<'_>) -> PyResult<Vec<EstimateRow>> {
        let watch = Watch::default();
        let estimate = |run: &Run| {
            let Estimate { events, seconds, drain_events, drain_seconds, measured } =
                api::estimate(&run.setup, &watch)?;
            Ok((events, seconds, drain_events, drain_seconds, measured))
        };
        let all = || self.checked.runs.iter().map(estimate).collect::<Result<Vec<_>, String>>();
        let (estimates, raised) = blocking::run(py, &watch, all, |_| Ok(()));
        if let Some(error) = raised {
            return Err(error);
        }
        estimates.map_err(|why| {
            let error = errors::of_input(&why);
            error.set_cause(py, algorithm::take_exception(&watch));
            error
        })
    }

    /// Runs every variant with `seeds` seeds, from the scenario's own upwards; seed by seed, so that an
    /// interrupted run has some seeds complete. `record`: results have tables.
    #[pyo3(signature = (seeds, record, options, on_progress=None))]
    fn run(
        &self,
        py: Python<'_>,
        seeds: Count,
        record: bool,
        options: RunOptions,
        on_progress: Option<Py<PyAny>>,
    ) -> PyResult<Outcome> {
        let seeds = seeds.seeds()?;
        let runs = &self.checked.runs;
        let of_seed = |index| {
            runs.iter().map(move |run| {
                let seed = run.setup.seed() + index;
                run.setup.clone().with_seed(seed).recorded(record)
            })
        };
        let setups: Vec<_> = (0..seeds).flat_map(of_seed).collect();
        let (watch, warnings) = options.watch()?;
        let (at_once, each) = options.cores()?.share(&setups);
        let progress = Progress::new(on_progress);
        let tracker = progress.begin(&self.checked.name, setups.len(), at_once);
        let results: Vec<_> = setups.iter().map(|_| Mutex::new(None)).collect();
        let on_step = |step: Step| tracker.on_step(step);
        let on_end = |run: usize, result| {
            tracker.on_end(run);
            if let Ok(mut place) = results[run].lock() {
                *place = Some(result);
            }
        };
        let ((), raised) = blocking::run(
            py,
            &watch,
            || run_each(&setups, at_once, Threads::Exactly(each), &watch, &on_step, &on_end),
            |py| progress.report(py),
        );
        let results: Vec<_> =
            results.into_iter().map(|place| place.into_inner().ok().flatten()).collect();
        let judged = py.detach(|| self.judge(&results));
        let cause = algorithm::take_exception(&watch);
        Outcome::new(py, runs, results, judged, raised, cause, &warnings)
    }
}

impl Scenario {
    /// Evaluates the checks of the scenario, if it has some, over the seeds of which every run is complete.
    fn judge(&self, results: &[Option<Result<Summary, String>>]) -> Option<Experiment> {
        let Checked { checks, shown, .. } = &self.checked;
        if checks.is_empty() && shown.is_empty() {
            return None;
        }
        let complete = |result: &Option<Result<Summary, String>>| match result {
            Some(Ok(summary)) if summary.interrupted => None,
            Some(Ok(summary)) => Some(Ok(Summary { recording: None, ..summary.clone() })),
            Some(Err(_)) | None => None,
        };
        collect(&self.checked, results.iter().map(complete).collect()).ok()
    }
}
