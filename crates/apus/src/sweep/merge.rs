//! `apus sweep --merge`: the table of the runs that the shards have stored.

use std::path::{Path, PathBuf};

use super::plan::Plan;
use super::results;
use super::table::{self, Done};
use crate::failure::Failure;
use crate::output::{OutputDir, say, to_json};
use crate::store::Store;
use crate::tables::Format;

/// Maximum number of missing runs that a message names.
const NAMED: usize = 5;

/// Writes the table, the chart and all numbers of the shards in these directories to `out`. Without `out`, writes to
/// the directory of the shards, of which there must be only one.
///
/// # Errors
/// If the directories hold shards of different sweeps, or if a run failed or is missing. The results of the other runs
/// are written nevertheless.
pub fn merge(
    folders: &[PathBuf],
    out: Option<&Path>,
    format: Format,
    json: bool,
) -> Result<(), Failure> {
    let out = match (out, folders) {
        (Some(out), _) => out,
        (None, [only]) => only,
        (None, _) => {
            let message = "--merge: several directories need --out DIR for the results";
            return Err(Failure::Input(message.to_owned()));
        }
    };
    let stores: Vec<Store> = folders.iter().map(|folder| Store::within(folder)).collect();
    let plan = plan(folders, &stores)?;
    let runs: Vec<Done> = plan
        .points
        .iter()
        .map(|point| {
            let summary = stores.iter().find_map(|store| store.load_key(&point.run));
            let failure = match &summary {
                None => stores.iter().find_map(|store| store.load_failure(&point.run)),
                Some(_) => None,
            };
            Done { point: point.clone(), summary, failure }
        })
        .collect();

    let missing = missing(&plan, &runs);
    // The directory of an earlier merge has a plan but no runs; its table must stay.
    if runs.iter().all(|run| run.summary.is_none() && run.failure.is_none()) {
        return Err(Failure::Run(missing.unwrap_or_default()));
    }
    let dir = OutputDir::open_shared(out).map_err(Failure::Input)?.with_tables(format);
    let store = Store::open(&dir).map_err(Failure::Input)?;
    results::begin(&dir, &store, &plan).map_err(Failure::Input)?;
    let rows = table::rows(&runs, &plan.metrics);
    let all = to_json(&results::json(&plan.vary, &runs))? + "\n";
    let written = results::write(&dir, &plan, &runs, &rows, &all);
    let done = runs.iter().filter(|run| run.summary.is_some()).count();
    let text = if json {
        all
    } else {
        let text = table::terminal(&plan.vary, &rows, &plan.metrics);
        let (count, out) = (runs.len(), out.display());
        let place = match written {
            Ok(()) => format!(" Table, chart and all numbers: {out}"),
            Err(_) => String::new(),
        };
        format!("{text}\n{done} of {count} runs complete.{place}\n")
    };
    let mut problems: Vec<String> = runs.iter().filter_map(|run| run.failure.clone()).collect();
    say(&text, &mut problems);
    problems.extend(missing);
    problems.extend(written.err());
    if problems.is_empty() { Ok(()) } else { Err(Failure::Run(problems.join("\n"))) }
}

/// Returns the plan that all directories share.
fn plan(folders: &[PathBuf], stores: &[Store]) -> Result<Plan, Failure> {
    let mut first: Option<(&Path, Plan)> = None;
    for (folder, store) in folders.iter().zip(stores) {
        let plan = Plan::load(store).map_err(Failure::Input)?;
        match &first {
            None => first = Some((folder, plan)),
            Some((known, shared)) => {
                if let Some(what) = shared.difference(&plan) {
                    let (folder, known) = (folder.display(), known.display());
                    return Err(Failure::Input(format!(
                        "{folder}: its shard is of another sweep than that of {known}: its {what}"
                    )));
                }
            }
        }
    }
    // clap refuses `--merge` without a directory.
    first.map(|(_, plan)| plan).ok_or_else(|| Failure::Input("--merge: names no directory".into()))
}

/// Returns a message about the runs that have neither ended nor failed.
fn missing(plan: &Plan, runs: &[Done]) -> Option<String> {
    let missing = runs.iter().filter(|run| run.summary.is_none() && run.failure.is_none());
    let names: Vec<String> = missing.map(|run| run.point.describe(&plan.vary)).collect();
    if names.is_empty() {
        return None;
    }
    let shown = &names[..names.len().min(NAMED)];
    let more = match names.len() - shown.len() {
        0 => String::new(),
        more => format!("\n  and {more} more"),
    };
    Some(format!(
        "{} of {} runs are missing; run their shards:\n  {}{more}",
        names.len(),
        runs.len(),
        shown.join("\n  ")
    ))
}
