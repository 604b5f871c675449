//! Additions of a report to its numbers: recorded runs, and a second run around the slowest ops of each run.

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
/// Rationale: about as many as a reader examines; the second run then costs about as much as the first.
pub const DEFAULT_WORST: u32 = 20;

/// How a command makes its report.
#[derive(Args, Clone, Copy)]
pub struct PageOptions {
    /// Follow the N slowest ops of each workload to their causes in report.html. For this, the run of the first seed is
    /// repeated, and everything around these ops is recorded; 0 disables the second run.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_WORST, requires = "out",
          value_parser = clap::value_parser!(u32).range(0..=60))]
    pub worst: u32,
    /// Open report.html in a browser.
    #[arg(long, requires = "out")]
    pub open: bool,
}

impl PageOptions {
    /// Opens the report in the directory of results, if the user has requested that.
    pub fn show(&self, out: Option<&Path>) -> Result<(), Failure> {
        let out = out.filter(|_| self.open);
        out.map_or(Ok(()), |out| open::open(&out.join("report.html")))
    }
}

/// Repeats runs with full recording around their slowest ops. Returns the causes of these ops by the names of the runs.
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
    // The first run has already reported the flows without progress.
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

/// Runs each setup with its tables recorded, and again around its slowest ops. Returns the runs in the form of a
/// report, and the reasons of failures. `store` keeps the results, so that the same command repeats none. Failed and
/// interrupted runs are left out.
pub fn pages(
    name: &str,
    setups: &[Setup],
    worst: u32,
    store: Option<&Store>,
    limits: Limits,
    watch: &Watch,
) -> (Vec<Value>, Vec<String>) {
    let how = json!({ "worst": worst, "runs": setups.len() });
    let setups: Vec<Setup> = setups.iter().map(|setup| setup.clone().recorded(true)).collect();
    let mut pages: Vec<Option<Value>> =
        setups.iter().map(|setup| store?.load_page(setup, &how)).collect();
    let missing: Vec<usize> =
        (0..).zip(&pages).filter(|(_, page)| page.is_none()).map(|(place, _)| place).collect();
    let missing_setups: Vec<Setup> = missing.iter().map(|&place| setups[place].clone()).collect();
    let ended: Mutex<BTreeMap<usize, Summary>> = Mutex::default();
    let failed: Mutex<BTreeMap<usize, String>> = Mutex::default();
    // The runs of the comparison have already reported the flows without progress.
    let quiet = Watch { tell: None, ..watch.clone() };
    batch::run_summaries(name, &missing_setups, limits, &quiet, &|place, result| {
        let place = missing[place];
        match result {
            Ok(summary) => {
                ended.lock().unwrap_or_else(PoisonError::into_inner).insert(place, summary);
            }
            Err(why) => {
                let why = format!("no curves and causes of {why}");
                failed.lock().unwrap_or_else(PoisonError::into_inner).insert(place, why);
            }
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
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
        // A page that is not kept is made again by the same command. This is necessary if the page depends on the
        // watchdog.
        let kept = !interrupted(watch) && summary.drain.ended_by != "stuck";
        let _ = store.filter(|_| kept).map(|store| store.save_page(setup, &how, &page));
        pages[place] = Some(page);
    }
    (pages.into_iter().flatten().collect(), failed.into_values().collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use apus_scenario::{Options, Source};
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        limits: Limits,
    }

    /// The trace file of the first run has been deleted when the run begins.
    #[test]
    fn a_run_that_fails_is_named_beside_the_pages_of_the_others() {
        let folder = std::env::temp_dir().join(format!("apus-closer-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("folder");
        let file = folder.join("rows.csv");
        fs::write(&file, "start_us,from,to,bytes\n1,0,1,1000\n").expect("file");
        let setup = |name: &str, workload: &str| {
            let text = format!(
                "duration = \"100us\"\ntopology = \"star hosts=2 100Gbps 1us\"\nalgorithm = {{ name = \"swift\" }}\n\
                 [[workload]]\n{workload}\n"
            );
            let source = Source { name: name.to_owned(), text };
            let scenario = crate::library::read(&source, &folder, &Options::default());
            scenario.expect("good").runs.swap_remove(0).setup.with_name(name)
        };
        let stream = "kind = \"trace\"\nfile = \"rows.csv\"\nflows_per_pair = 1\nstream = true";
        let setups = [setup("gone", stream), setup("kept", "kind = \"incast\"\nsize = \"1kB\"")];
        fs::remove_dir_all(&folder).expect("removed");
        let limits = Line::parse_from(["apus"]).limits;
        let (runs, failures) = pages("test", &setups, 0, None, limits, &Watch::default());
        let labels: Vec<&Value> = runs.iter().map(|run| &run["label"]).collect();
        assert_eq!(labels, ["kept"]);
        assert_eq!(failures.len(), 1, "{failures:?}");
        let why = &failures[0];
        assert!(why.starts_with("no curves and causes of gone (seed "), "{why}");
        assert!(why.contains("rows.csv"), "{why}");
    }
}
