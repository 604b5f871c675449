//! `apus compare`: one scenario under several algorithms.

mod comparison;
mod field;
mod ranking;
mod report;
mod table;
mod tuning;

use std::path::PathBuf;

use clap::Args;
pub use comparison::{Comparison, Contest};

use crate::batch::{self, Job, Limits};
use crate::closer::{self, PageOptions};
use crate::failure::Failure;
use crate::interrupt;
use crate::library;
use crate::output::{OutputDir, say, to_json};
use crate::store::Store;
use crate::tables::TableFormat;

/// Run one scenario with several algorithms and compare their results.
///
/// Each algorithm carries all traffic of the scenario, over switches that provide what it needs. Parameters that the scenario
/// sets apply to the algorithm of that name; those that depend on the network are derived from it by a rule of each algorithm.
///
/// DIR gets compare.json, compare.csv and report.html. DIR/runs keeps each finished run: the same command does not repeat
/// these runs.
#[derive(Args)]
pub struct Compare {
    /// Scenario file, or name of a built-in scenario.
    file: String,
    #[command(flatten)]
    contest: Contest,
    /// Write the results to DIR.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    page: PageOptions,
    #[command(flatten)]
    tables: TableFormat,
    #[command(flatten)]
    limits: Limits,
    /// Print the results as JSON.
    #[arg(long)]
    json: bool,
}

impl Compare {
    /// Runs the command.
    pub fn execute(&self) -> Result<(), Failure> {
        let options = self.contest.options(self.limits.max_memory.limit());
        let scenario = library::open_variant(&self.file, &options)?;
        let mut comparison = Comparison::new(&self.contest, scenario).map_err(Failure::Input)?;
        let dir = self.out.as_deref().map(OutputDir::renew).transpose().map_err(Failure::Input)?;
        let dir = dir.map(|dir| dir.with_tables(self.tables.format));
        let store = dir.as_ref().map(Store::open).transpose().map_err(Failure::Input)?;
        let watch = interrupt::watch(self.limits.watchdog)?;
        let run =
            |jobs: Vec<Job>| batch::run(&self.file, jobs, store.as_ref(), self.limits, &watch);
        let mut failures = comparison.run(&run, &|| interrupt::interrupted(&watch));
        let report = comparison.report();
        let json = to_json(&report.json())? + "\n";
        // If results cannot be stored they are still printed, here and in the other commands.
        let mut written = Ok(());
        if let Some(dir) = &dir {
            let setups = comparison.first_seed();
            let (worst, store) = (self.page.worst, store.as_ref());
            let (pages, without) =
                closer::pages(&self.file, &setups, worst, store, self.limits, &watch);
            failures.extend(without);
            written = dir
                .write("compare.json", &json)
                .and_then(|()| report.write_table(dir))
                .and_then(|()| dir.write("report.html", &report.html(pages, &failures)));
        }
        say(&if self.json { json } else { report.text() }, &mut failures);
        let shown =
            written.map_err(Failure::Run).and_then(|()| self.page.show(self.out.as_deref()));
        failures.extend(shown.err().map(|why| why.to_string()));
        if interrupt::interrupted(&watch) {
            let message = "interrupted; the numbers above cover the completed runs only";
            return Err(interrupt::failure(message.to_owned(), &failures));
        }
        if failures.is_empty() { Ok(()) } else { Err(Failure::Run(failures.join("\n"))) }
    }
}
