//! Plan of a sweep: everything that determines its table except the results of the runs.

use std::path::Path;

use apus_scenario::Setup;
use apus_scenario::file::{DATA_BYTES, read_text};
use apus_sim::results::SCHEMA_VERSION;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::grid::{Axis, Point};
use crate::output::{to_json, write_shared};
use crate::program::BUILD;
use crate::report;
use crate::store::Store;

/// Name of the plan's file in the store.
const FILE: &str = "plan.json";

/// Maximum number of runs whose set-up is described. Rationale: values of further runs are not named.
const MAX_DESCRIBED: usize = 64;

/// Plan of a sweep. All shards of a sweep have the same plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Version of the layout of results.
    pub schema_version: u32,
    /// Version of the program.
    pub version: String,
    /// Build of the program; results of different builds may differ.
    pub build: String,
    /// Scenario as the user named it.
    pub file: String,
    /// Varied settings and their values.
    pub vary: Vec<Axis>,
    /// Metrics of the chart.
    pub metrics: Vec<String>,
    /// Set-up of the runs, for the page ([`report::describe_all`]).
    #[serde(default)]
    pub setup: Value,
    /// All runs, in the order of the table.
    pub points: Vec<Point>,
}

impl Plan {
    /// Returns the plan of these runs, whose set-ups are `setups`.
    pub fn new(
        file: &str,
        vary: &[Axis],
        metrics: Vec<String>,
        points: Vec<Point>,
        setups: &[&Setup],
    ) -> Self {
        // Each value of a setting, and each variant, occurs in a run that differs from the first run in it alone.
        let near = |point: &Point| {
            let Some(first) = points.first() else { return false };
            let differ = point.values.iter().zip(&first.values).filter(|(a, b)| a != b).count();
            point.seed == first.seed && differ + usize::from(point.variant != first.variant) <= 1
        };
        let described = points.iter().zip(setups).filter(|(point, _)| near(point));
        let described = described.take(MAX_DESCRIBED).map(|(_, setup)| *setup);
        Self {
            setup: report::describe_all(described),
            schema_version: SCHEMA_VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            build: BUILD.to_owned(),
            file: file.to_owned(),
            vary: vary.to_vec(),
            metrics,
            points,
        }
    }

    /// Writes the plan to a store.
    pub fn save(&self, store: &Store) -> Result<(), String> {
        let json = to_json(self).map_err(|failure| failure.to_string())?;
        write_shared(&store.file(FILE), json + "\n")
    }

    /// Writes the plan of a shard to a store, which must not hold shards of another sweep.
    pub fn share(&self, store: &Store) -> Result<(), String> {
        if Self::is_in(store) {
            let path = store.file(FILE);
            let other = read(&path)?;
            return match self.difference(&other) {
                None => Ok(()),
                Some(what) => Err(format!(
                    "{}: the plan of another sweep, whose {what}; choose another directory, or \
                     remove this file",
                    path.display()
                )),
            };
        }
        self.save(store)
    }

    /// Returns `true` if a store has a plan.
    pub fn is_in(store: &Store) -> bool {
        store.file(FILE).exists()
    }

    /// Reads the plan of a store.
    pub fn load(store: &Store) -> Result<Self, String> {
        read(&store.file(FILE))
    }

    /// Returns how another plan differs, as a clause about the other plan.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let values = |plan: &Self| -> Vec<String> {
            plan.vary.iter().map(|axis| format!("{}={}", axis.key, axis.values.join(","))).collect()
        };
        let (ours, theirs) = (values(self), values(other));
        let text = |what: &str, theirs: &str, ours: &str| {
            Some(format!("{what} is {theirs} instead of {ours}"))
        };
        if other.build != self.build {
            text("build of apus", &other.build, &self.build)
        } else if other.file != self.file {
            text("scenario", &other.file, &self.file)
        } else if theirs != ours {
            text("--vary", &theirs.join(" "), &ours.join(" "))
        } else if other.metrics != self.metrics {
            text("--metric", &other.metrics.join(", "), &self.metrics.join(", "))
        } else if other.points.len() != self.points.len() {
            text("number of runs", &other.points.len().to_string(), &self.points.len().to_string())
        } else if other != self {
            Some("scenario or other settings differ".to_owned())
        } else {
            None
        }
    }
}

fn read(path: &Path) -> Result<Plan, String> {
    let fail = |why: String| format!("{}: {why}", path.display());
    let text = read_text(path, DATA_BYTES).map_err(|error| {
        fail(format!("the plan of a sweep cannot be read: {error}; `apus sweep` writes it"))
    })?;
    let plan: Plan = serde_json::from_str(&text)
        .map_err(|error| fail(format!("this is not the plan of a sweep: {error}")))?;
    let own = env!("CARGO_PKG_VERSION");
    if plan.version != own || plan.schema_version != SCHEMA_VERSION {
        let theirs = &plan.version;
        return Err(fail(format!(
            "apus {theirs} made these runs, but this is apus {own}; run the sweep again, or use \
             apus {theirs}"
        )));
    }
    if plan.vary.iter().any(|axis| axis.values.is_empty()) {
        return Err(fail("this is not the plan of a sweep: a setting has no values".to_owned()));
    }
    if plan.points.iter().any(|point| point.values.len() != plan.vary.len()) {
        let settings = plan.vary.len();
        return Err(fail(format!(
            "this is not the plan of a sweep: a run does not have a value of each of its {settings} settings"
        )));
    }
    Ok(plan)
}
