//! The native module `apus._native` of the Python package `apus`: scenarios, runs and results of the crates below as
//! Python classes. The package's Python modules define the public interface on top of them.
//!
//! Everything that may take long goes through [`blocking::run`], which releases the interpreter's lock and checks for
//! signals during the work.

mod algorithm;
mod blocking;
mod commands;
mod errors;
mod options;
mod outcome;
mod progress;
#[cfg(all(feature = "real", target_os = "linux"))]
mod real;
mod scenario;
mod sweep;
mod table;

/// The native part of the package.
#[pyo3::pymodule(gil_used = false)]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::algorithm::events::{
        AckEvent, Allowance, FlowInfo, LossEvent, PacketSizeEvent, SendInfo, SignalEvent,
        TimeoutEvent,
    };
    #[pymodule_export]
    use super::algorithm::{algorithm_parameters, register_algorithm};
    #[pymodule_export]
    use super::commands::{Compared, compare, explain, replay, tune_target};
    #[pymodule_export]
    use super::outcome::{Outcome, Run};
    #[pymodule_export]
    use super::scenario::Scenario;
    #[pymodule_export]
    use super::sweep::{Point, SweepStore, unit_of_metric};
    #[pymodule_export]
    use super::table::Table;

    /// Returns the declarations of scenarios and results as JSON.
    #[pyfunction]
    fn declarations() -> String {
        apus::api::declarations().to_string()
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        #[cfg(all(feature = "real", target_os = "linux"))]
        super::real::add_to(module)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("__build__", apus::api::BUILD)
    }
}
