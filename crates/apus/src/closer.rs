//! What a report adds to numbers: recorded runs, and a second run around the slowest ops of each.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use apus_scenario::Setup;
use apus_scenario::experiment::{Threads, run_each};
use apus_sim::Watch;
use apus_sim::summary::Summary;
use clap::Args;
use serde_json::{Value, json};

use crate::batch::{self, Limits};
use crate::failure::Failure;
use crate::interrupt::interrupted;
use crate::open;
use crate::progress::Meter;
use crate::report::{RunPage, SecondRun};
use crate::store::Store;

/// Number of slow ops of each workload that a report follows.
/// Rationale: as many as a reader looks at; the second run then costs about as much as the first.
pub const DEFAULT_WORST: u32 = 20;

/// How a command makes its report.
#[derive(Args, Clone, Copy)]
pub struct PageOptions {
    /// Follow this number of the slowest ops of each workload to their causes in report.html: the run of the first
    /// seed is repeated, and everything around these ops is recorded. 0 turns the second run off.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_WORST, requires = "out",
          value_parser = clap::value_parser!(u32).range(0..=60))]
    pub worst: u32,
    /// Open report.html in a browser.
    #[arg(long, requires = "out")]
    pub open: bool,
}

impl PageOptions {
    /// Opens the report in the directory of results, if that is asked for.
    pub fn show(&self, out: Option<&Path>) -> Result<(), Failure> {
        let out = out.filter(|_| self.open);
        out.map_or(Ok(()), |out| open::open(&out.join("report.html")))
    }
}

/// Repeats runs with everything around their slowest ops recorded, and returns what happened to these ops by the names
/// of the runs.
pub fn follow(
    second: &[SecondRun],
    side_by_side: NonZeroUsize,
    watch: &Watch,
) -> BTreeMap<String, Value> {
    if second.is_empty() || interrupted(watch) {
        return BTreeMap::new();
    }
    let setups: Vec<Setup> = second.iter().map(|one| one.setup.clone()).collect();
    let meter = Meter::new(&vec!["slowest ops"; setups.len()], side_by_side);
    // The first run has told which flows make no progress.
    let watch = Watch { tell: None, ..watch.clone() };
    let causes = Mutex::new(BTreeMap::new());
    let (one, on_step) = (Threads::Exactly(1), |step| meter.on_step(step));
    run_each(&setups, side_by_side, one, &watch, &on_step, &|place, result| {
        meter.on_end(place);
        let (name, found) = second[place].results(&result);
        causes.lock().unwrap_or_else(PoisonError::into_inner).insert(name, found);
    });
    causes.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Runs each setup with its tables recorded and again around its slowest ops, and returns the runs as a report has
/// them. `store` keeps them: the same command repeats none. Runs that fail or are interrupted are left out.
pub fn pages(
    name: &str,
    setups: &[Setup],
    worst: u32,
    store: Option<&Store>,
    limits: Limits,
    watch: &Watch,
) -> Vec<Value> {
    let how = json!({ "worst": worst, "runs": setups.len() });
    let setups: Vec<Setup> = setups.iter().map(|setup| setup.clone().recorded(true)).collect();
    let mut pages: Vec<Option<Value>> =
        setups.iter().map(|setup| store?.load_page(setup, &how)).collect();
    let missing: Vec<usize> =
        (0..).zip(&pages).filter(|(_, page)| page.is_none()).map(|(place, _)| place).collect();
    let missing_setups: Vec<Setup> = missing.iter().map(|&place| setups[place].clone()).collect();
    let ended: Mutex<BTreeMap<usize, Summary>> = Mutex::default();
    // The runs of the comparison have told which flows make no progress.
    let quiet = Watch { tell: None, ..watch.clone() };
    batch::run_summaries(name, &missing_setups, limits, &quiet, &|place, result| {
        let Ok(summary) = result else { return };
        ended.lock().unwrap_or_else(PoisonError::into_inner).insert(missing[place], summary);
    });
    let ended = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
    let second = |(&place, summary): (&usize, &Summary)| {
        SecondRun::of(&setups[place], summary, worst as usize, setups.len())
    };
    let second: Vec<SecondRun> =
        if worst == 0 { Vec::new() } else { ended.iter().filter_map(second).collect() };
    let causes = follow(&second, limits.side_by_side(&missing_setups), watch);
    for (place, summary) in ended {
        let setup = &setups[place];
        let page = RunPage {
            summary: &summary,
            label: setup.name(),
            setup: Some(setup),
            seeds: vec![&summary],
            causes: causes.get(setup.name()),
        };
        let page = page.json(setups.len());
        // Without it the same command would make it again.
        let _ =
            store.filter(|_| !interrupted(watch)).map(|store| store.save_page(setup, &how, &page));
        pages[place] = Some(page);
    }
    pages.into_iter().flatten().collect()
}
