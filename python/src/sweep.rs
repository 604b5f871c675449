//! Runs of sweeps, which other processes may execute, and the directory with their results.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Mutex;
use std::{slice, thread};

use apus::api::{self, Axis, BUILD, SweepFolder, SweepPoint};
use apus_scenario::experiment::{Threads, run_each};
use apus_scenario::{Options, Setup, Source};
use apus_sim::columns::unit_of;
use apus_sim::results::{METRICS, SCOPED, pattern_of};
use apus_units::suggestion;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::options::{RunOptions, limit};
use crate::scenario::Scenario;
use crate::{algorithm, blocking, errors};

/// A run of a sweep. It can be sent to another process: its effective configuration is its state.
#[pyclass(frozen, module = "apus._native")]
pub struct Point {
    /// Folder to which the file names in the configuration are relative.
    folder: PathBuf,
    variant: Option<String>,
    setup: Setup,
}

#[pymethods]
impl Point {
    /// Returns one run of each variant of a scenario.
    #[staticmethod]
    #[allow(clippy::needless_pass_by_value, reason = "an argument of Python's")]
    fn of(scenario: PyRef<'_, Scenario>, folder: PathBuf) -> Vec<Self> {
        let runs = scenario.runs().iter().cloned();
        runs.map(|run| Self { folder: folder.clone(), variant: run.variant, setup: run.setup })
            .collect()
    }

    /// Returns the run with this effective configuration. `build` is the program which made it.
    #[staticmethod]
    fn restore(
        py: Python<'_>,
        build: &str,
        folder: PathBuf,
        variant: Option<String>,
        effective: String,
    ) -> PyResult<Self> {
        if build != BUILD {
            return Err(errors::of_input(&format!(
                "a point of a sweep is of apus {build}, but this process has apus {BUILD}; use one \
                 build in all processes"
            )));
        }
        let source = Source { name: "effective configuration".to_owned(), text: effective };
        let read = blocking::call(py, || api::read(&source, &folder, &Options::default()))?;
        let mut scenario = read.map_err(|error| errors::of_scenario(&error))?;
        // An effective configuration has no variants.
        Ok(Self { folder, variant, setup: scenario.runs.swap_remove(0).setup })
    }

    /// Returns what another process needs to restore the run: the arguments of `restore`, and the algorithms in
    /// Python that it must register before, each as name, class and hash of the code.
    fn parts(&self, py: Python<'_>) -> PointParts {
        let Self { folder, variant, setup } = self;
        let restore = (BUILD, folder.clone(), variant.clone(), setup.to_toml());
        (restore, algorithm::classes(py, setup))
    }

    /// Returns the run with another seed.
    fn with_seed(&self, seed: u64) -> Self {
        let Self { folder, variant, setup } = self;
        Self {
            folder: folder.clone(),
            variant: variant.clone(),
            setup: setup.clone().with_seed(seed),
        }
    }

    /// Name of the variant; `None` if the scenario has none.
    #[getter]
    fn variant(&self) -> Option<&str> {
        self.variant.as_deref()
    }

    /// Seed of all random number streams.
    #[getter]
    fn seed(&self) -> u64 {
        self.setup.seed()
    }

    /// The effective configuration: a scenario with every default resolved.
    fn effective(&self) -> String {
        self.setup.to_toml()
    }

    /// Runs the point on one thread. `on_tick` is called at intervals and may raise to end the run early.
    ///
    /// Returns the summary as JSON, or the reason why the run failed.
    #[pyo3(signature = (options, on_tick=None))]
    fn run(
        &self,
        py: Python<'_>,
        options: RunOptions,
        on_tick: Option<Py<PyAny>>,
    ) -> PyResult<(Option<String>, Option<String>)> {
        let setup = self.setup.clone().recorded(false);
        let (watch, _reports) = options.watch()?;
        let ended = Mutex::new(None);
        let one = NonZeroUsize::MIN;
        let (summary, raised) = blocking::run(
            py,
            &watch,
            || {
                run_each(
                    slice::from_ref(&setup),
                    one,
                    Threads::Exactly(1),
                    &watch,
                    &|_| {},
                    &|_, result| {
                        if let Ok(mut ended) = ended.lock() {
                            *ended = Some(result);
                        }
                    },
                );
                let summary = ended.lock().ok().and_then(|mut ended| ended.take());
                summary.unwrap_or_else(|| Err("the run has no result".to_owned())).and_then(|run| {
                    match &run.stop_reason {
                        Some(why) => Err(format!("{} (seed {}): {why}", run.name, run.seed)),
                        // Converted to a value first, so that equal summaries give equal texts, even after they have
                        // been read from a store.
                        None => serde_json::to_value(&run)
                            .map(|summary| summary.to_string())
                            .map_err(|error| error.to_string()),
                    }
                })
            },
            |py| on_tick.as_ref().map_or(Ok(()), |call| call.call0(py).map(drop)),
        );
        match (raised, summary) {
            (Some(error), _) => Err(error),
            (None, Ok(summary)) => Ok((Some(summary), None)),
            (None, Err(why)) => Ok((None, Some(why))),
        }
    }

    /// Returns how many of these runs to execute at once on this machine: one per core, but only as many as
    /// fit into memory together.
    #[staticmethod]
    #[pyo3(signature = (points, max_memory=None))]
    fn at_once(points: Vec<PyRef<'_, Self>>, max_memory: Option<&str>) -> PyResult<usize> {
        let cores = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let estimates = points.iter().map(|point| point.setup.estimated_memory());
        Ok(limit(max_memory)?.map_or(cores, |limit| limit.runs_at_once(estimates, cores)).get())
    }
}

/// See [`Point::parts`].
type PointParts = (RestoreArguments, Vec<(&'static str, Py<PyAny>, String)>);

/// Build of the program, folder, variant, and effective configuration.
type RestoreArguments = (&'static str, PathBuf, Option<String>, String);

/// Returns the unit of a metric, which is empty for some.
#[pyfunction]
pub fn unit_of_metric(name: &str) -> PyResult<&'static str> {
    if pattern_of(name).is_none() {
        let hint = suggestion(name, METRICS.iter().chain(SCOPED.iter()).copied());
        return Err(errors::of_input(&format!("unknown metric `{name}`{hint}")));
    }
    Ok(unit_of(name))
}

/// The directory of a sweep's results, which the command `apus sweep --merge` reads.
#[pyclass(frozen, module = "apus._native")]
pub struct SweepStore {
    folder: SweepFolder,
}

#[pymethods]
impl SweepStore {
    /// Creates the directory, or opens one of earlier results. `vary` has each setting with its values, and
    /// `points` each run with its values of these settings.
    #[staticmethod]
    fn open(
        py: Python<'_>,
        out: PathBuf,
        file: &str,
        vary: Vec<(String, Vec<String>)>,
        points: Vec<(Vec<String>, Py<Point>)>,
    ) -> PyResult<Self> {
        let vary: Vec<Axis> = vary.into_iter().map(|(key, values)| Axis { key, values }).collect();
        let all = points.iter().map(|(values, point)| {
            let Point { variant, setup, .. } = point.get();
            SweepPoint { values, variant: variant.as_deref(), setup }
        });
        let opened = py.detach(|| SweepFolder::open(&out, file, &vary, all));
        Ok(Self { folder: opened.map_err(PyOSError::new_err)? })
    }

    /// Returns the summary of the run at this place as JSON, if it is finished.
    fn summary(&self, py: Python<'_>, place: usize) -> Option<String> {
        py.detach(|| self.folder.summary(place))
    }

    /// Keeps the result of the run at this place: its summary as JSON, or the reason why it failed.
    #[pyo3(signature = (place, point, summary, failure))]
    fn keep(
        &self,
        py: Python<'_>,
        place: usize,
        point: &Bound<'_, Point>,
        summary: Option<&str>,
        failure: Option<&str>,
    ) -> PyResult<()> {
        let result = summary.ok_or_else(|| failure.unwrap_or_default());
        let setup = &point.get().setup;
        py.detach(|| self.folder.keep(place, setup, result)).map_err(PyOSError::new_err)
    }

    /// Writes table, chart and all numbers.
    fn write(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.folder.write()).map_err(PyOSError::new_err)
    }
}
