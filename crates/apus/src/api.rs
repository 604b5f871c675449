//! Functions of the command for other programs. They print nothing and read no arguments. The Python package is built
//! on them.

use std::fmt;
use std::path::Path;

use apus_algorithms::Registry;
use apus_cc::{ForeignAlgorithm, SettingError};
use apus_scenario::{MemoryLimit, Options, Scenario, ScenarioError, Source};
use apus_sim::columns::{CellType, Column, Table};
use apus_sim::results::TABLES;
use apus_sim::summary::Summary;
use apus_units::Span;
use serde_json::{Value, json};

pub use crate::batch::Job;
pub use crate::compare::{Comparison, Contest};
pub use crate::explain::text_of as explain;
pub use crate::failure::Failure;
pub use crate::library::{open_experiment, single};
pub use crate::program::BUILD;
pub use crate::progress::Tracker;
pub use crate::replay::states as replay;
pub use crate::reproduce::tables::tables as describe_checks;
pub use crate::sweep::folder::{Axis, SweepFolder, SweepPoint};
pub use crate::tune::{
    Report as TargetReport, Wanted as TargetSearch, varied as varied_by_target_search,
};
pub use crate::validate::estimate::{Estimate, estimate};
use crate::{interrupt, library, memory, text};

/// Reason why a scenario cannot be opened.
#[derive(Clone, Debug)]
pub enum OpenError {
    /// Neither a readable file nor a built-in scenario. The message suggests valid names.
    File(String),
    /// The text of the scenario has errors.
    Scenario(ScenarioError),
}

/// Displays the message that the command prints.
impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(message) => f.write_str(message),
            Self::Scenario(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {}

/// Opens a scenario: a file, or a built-in one by name (`apus list scenarios`).
///
/// # Errors
/// See [`OpenError`].
pub fn open(file: &str, options: &Options) -> Result<Scenario, OpenError> {
    library::open_source(file).map_err(OpenError::File).and_then(|source| {
        let folder = Path::new(file).parent().unwrap_or(Path::new(""));
        read(&source, folder, options).map_err(OpenError::Scenario)
    })
}

/// Reads a scenario from a text. Files that it names are relative to `folder`.
///
/// # Errors
/// All errors of the scenario.
pub fn read(source: &Source, folder: &Path, options: &Options) -> Result<Scenario, ScenarioError> {
    library::read(source, folder, options)
}

/// Adds an algorithm that scenarios of this process may name. It replaces an algorithm of the same name that was
/// registered earlier in this way, and stays until the process ends.
///
/// # Errors
/// If Apus itself has an algorithm of this name, or an algorithm with the same field identifier.
pub fn register(algorithm: &'static dyn ForeignAlgorithm) -> Result<(), SettingError> {
    crate::register(algorithm)
}

/// Returns the algorithms that scenarios of this process may name.
#[must_use]
pub fn registry() -> Registry {
    crate::registry()
}

/// Returns the memory limit that follows from the available memory of this machine; `None` if that is unknown.
#[must_use]
pub fn memory_of_machine() -> Option<MemoryLimit> {
    memory::of_machine()
}

/// Reads the span of the watchdog, like "1s"; `None` is "off".
///
/// # Errors
/// If the text is not a time, or the time is zero.
pub fn read_watchdog(text: &str) -> Result<Option<Span>, String> {
    interrupt::read_silence(text).map(|silence| silence.0)
}

/// Returns the declarations of scenarios and results as JSON: see
/// [`declarations`](apus_scenario::declarations) with the built-in algorithms, and `results`, the tables of results with their columns.
#[must_use]
pub fn declarations() -> Value {
    let mut all = apus_scenario::declarations(Registry::BUILT_IN);
    let column = |column: &Column| {
        json!({
            "name": column.name,
            "unit": column.unit,
            "type": column.cells.map(|cells| match cells {
                CellType::Flag => "flag",
                CellType::Count => "count",
                CellType::Number => "number",
                CellType::Text => "text",
            }),
            "optional": column.optional,
            "doc": column.definition,
            "over": column.aggregation,
        })
    };
    let table = |table: &Table| {
        let columns: Vec<Value> = table.columns.iter().map(column).collect();
        json!({ "file": table.file, "doc": table.row, "columns": columns })
    };
    all["results"] = TABLES.iter().map(table).collect();
    all
}

/// Returns the text that the command prints for a run.
#[must_use]
pub fn describe(run: &Summary) -> String {
    text::summary(run)
}
