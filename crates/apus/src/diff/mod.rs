//! `apus diff`: differences between the results of two runs.

mod compare;
mod load;
mod tolerance;

use std::path::PathBuf;

use apus_units::suggestion;
use clap::Args;

pub use compare::{Comparison, compare};
pub use load::Results;
pub use tolerance::Rules;
use tolerance::{Rule, read_ignored, read_rule};

use crate::failure::Failure;
use crate::output::{print, to_json};

/// Compare the results of two runs, sweeps or bundles, metric by metric.
///
/// Runs are paired by name and seed, those of sweeps by settings, variant and seed; two single runs are always a pair. The exit
/// status is 0 if every metric is equal or within its tolerance, and 1 otherwise.
#[derive(Args)]
pub struct Diff {
    /// Results: a summary.json or sweep.json, a directory with one of these files, or a bundle of `apus run --bundle`.
    a: PathBuf,
    /// Results to compare with A, in any of these forms.
    b: PathBuf,
    /// Accept differences of all numbers up to a limit (`1%`), or of a metric and the metrics below it (`op_latency_us=5%`,
    /// `fabric_rtt_us.p99=2`). The limit is in percent of the larger value, or in the unit of the metric; the longest matching
    /// name applies. May be given several times.
    #[arg(long, value_name = "[METRIC=]TOLERANCE", value_parser = read_rule)]
    tolerance: Vec<Rule>,
    /// Ignore a metric and the metrics below it, such as notes. May be given several times.
    #[arg(long, value_name = "METRIC", value_parser = read_ignored)]
    ignore: Vec<Rule>,
    /// Print the results as JSON.
    #[arg(long)]
    json: bool,
}

impl Diff {
    /// Runs the command.
    pub fn execute(&self) -> Result<(), Failure> {
        let rules =
            Rules::new(self.tolerance.iter().chain(&self.ignore)).map_err(Failure::Input)?;
        let a = Results::load(&self.a).map_err(Failure::Input)?;
        let b = Results::load(&self.b).map_err(Failure::Input)?;
        let compared = compare(&a, &b, &rules);
        if let Some(rule) = rules.unused(&compared.metrics) {
            let names = compared.metrics.iter().map(String::as_str);
            let hint = suggestion(&rule.metric, names);
            let message = format!("{rule}: neither of the results has this metric{hint}");
            return Err(Failure::Input(message));
        }
        if self.json {
            print(&(to_json(&compared)? + "\n"))?;
        } else {
            print(&compared.text(&self.a.display().to_string(), &self.b.display().to_string()))?;
        }
        if compared.equal { Ok(()) } else { Err(Failure::Checks) }
    }
}
