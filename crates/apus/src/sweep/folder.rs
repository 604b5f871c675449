//! Directory of a sweep whose runs another program executes. It contains the same files as that of the command.

use std::path::Path;

use apus_scenario::Setup;
use serde_json::Value;

pub use super::grid::Axis;
use super::grid::Point;
use super::plan::Plan;
use super::results::{self, Partial};
use super::table::{self, Done};
use crate::output::{OutputDir, to_json};
use crate::store::{self, Store};

/// A run of a sweep.
#[derive(Clone, Copy, Debug)]
pub struct SweepPoint<'a> {
    /// Value on each axis, in order.
    pub values: &'a [String],
    /// Variant of the scenario, if it has variants.
    pub variant: Option<&'a str>,
    /// Configuration of the run.
    pub setup: &'a Setup,
}

/// Directory of a sweep's results. It contains the plan of the sweep, so that `apus sweep --merge` can read it, and
/// stores each run that has ended. `sweep.csv` grows during the sweep.
pub struct SweepFolder {
    dir: OutputDir,
    store: Store,
    plan: Plan,
    partial: Partial,
}

impl SweepFolder {
    /// Creates the directory, or opens one with earlier results. `file` is the user's name of the scenario.
    ///
    /// # Errors
    /// If the directory contains files of another origin, or cannot be written.
    pub fn open<'a>(
        out: &Path,
        file: &str,
        vary: &[Axis],
        points: impl IntoIterator<Item = SweepPoint<'a>>,
    ) -> Result<Self, String> {
        let dir = OutputDir::open_shared(out)?;
        let store = Store::open(&dir)?;
        let (mut runs, mut setups) = (Vec::new(), Vec::new());
        for SweepPoint { values, variant, setup } in points {
            setups.push(setup);
            let point = Point {
                values: values.to_vec(),
                variant: variant.map(str::to_owned),
                seed: setup.seed(),
                run: store::key(setup),
            };
            runs.push(Done { summary: store.load(setup), point, failure: None });
        }
        let metrics = table::default_metrics(setups.iter().copied());
        let points = runs.iter().map(|run| run.point.clone()).collect();
        let plan = Plan::new(file, vary, metrics, points, &setups);
        results::begin(&dir, &store, &plan)?;
        let partial = Partial::new(Some(dir.clone()), &plan, runs)?;
        Ok(Self { dir, store, plan, partial })
    }

    /// Returns the summary of the run with this index as JSON, if the run has finished.
    #[must_use]
    pub fn summary(&self, place: usize) -> Option<String> {
        let runs = self.partial.runs();
        runs.get(place)?.summary.as_ref().map(Value::to_string)
    }

    /// Stores the result of the run with this index: its summary as JSON, or the reason why it failed.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn keep(
        &self,
        place: usize,
        setup: &Setup,
        result: Result<&str, &str>,
    ) -> Result<(), String> {
        let result = match result {
            Ok(summary) => {
                let summary = serde_json::from_str(summary).map_err(|error| error.to_string())?;
                self.store.save(setup, &summary)?;
                Ok(summary)
            }
            Err(why) => {
                let settings = self.plan.points[place].describe(&self.plan.vary);
                self.store.save_failure(setup, &settings, why)?;
                Err(why.to_owned())
            }
        };
        self.partial.add(place, result);
        Ok(())
    }

    /// Writes the table, the chart and all numbers.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self) -> Result<(), String> {
        let runs = self.partial.runs();
        let rows = table::rows(&runs, &self.plan.metrics);
        let json = to_json(&results::json(&self.plan.vary, &runs)).map_err(|e| e.to_string())?;
        results::write(&self.dir, &self.plan, &runs, &rows, &(json + "\n"))
    }
}
