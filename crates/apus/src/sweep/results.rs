//! Files of a sweep's results, complete and partial.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use apus_sim::record::Cdf;
use apus_sim::results::SCHEMA_VERSION;
use serde_json::{Value, json};

use super::grid::Axis;
use super::plan::Plan;
use super::table::{self, Done};
use crate::chart;
use crate::output::OutputDir;
use crate::report::{self, Comparison, Distribution, Report};
use crate::store::Store;

/// Returns the content of sweep.json.
pub fn json(axes: &[Axis], runs: &[Done]) -> Value {
    let run = |run: &Done| {
        let settings: serde_json::Map<String, Value> = axes
            .iter()
            .zip(&run.point.values)
            .map(|(axis, value)| (axis.key.clone(), json!(value)))
            .collect();
        json!({
            "settings": settings,
            "variant": run.point.variant,
            "seed": run.point.seed,
            "summary": run.summary,
            "failure": run.failure,
        })
    };
    json!({ "schema_version": SCHEMA_VERSION, "runs": runs.iter().map(run).collect::<Vec<_>>() })
}

/// Names of the result files; the table is listed in every format.
const FILES: [&str; 6] =
    ["sweep.csv", "sweep.parquet", "sweep.arrow", "sweep.json", "sweep.svg", "report.html"];

/// Removes the results of other commands and of other sweeps, so that results of two runs are never mixed, and stores
/// the plan of this sweep. Finished runs stay.
pub fn begin(dir: &OutputDir, store: &Store, plan: &Plan) -> Result<(), String> {
    if !Plan::load(store).is_ok_and(|other| plan.difference(&other).is_none()) {
        return dir.clear().and_then(|()| plan.save(store));
    }
    if dir.other_than(&FILES).is_some() { dir.clear() } else { Ok(()) }
}

/// Stores the plan of a shard. The directory must not hold results of other commands or sweeps, or shards of another
/// sweep.
pub fn begin_shard(dir: &OutputDir, store: &Store, plan: &Plan) -> Result<(), String> {
    // Without a plan, the sweep to which the results belong is unknown.
    let own: &[&str] = if Plan::is_in(store) { &FILES } else { &[] };
    if let Some(name) = dir.other_than(own) {
        return Err(format!(
            "{}: the directory has the results of another command or sweep, such as `{name}`; choose \
             another directory, or remove them",
            dir.path().display()
        ));
    }
    plan.share(store)
}

/// Maximum number of rows whose distributions are drawn on the same axes.
const MAX_CURVES: usize = 12;
/// Percentiles of a distribution in a summary.
pub const PERCENTILES: [(&str, f64); 6] =
    [("p1", 0.01), ("p10", 0.1), ("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99_9", 0.999)];

/// Returns the percentiles of ops and packets by row: medians over the seeds.
fn distributions(runs: &[Done]) -> Vec<Distribution> {
    let names = |stats: &str| PERCENTILES.map(|(stat, _)| format!("{stats}.{stat}")).to_vec();
    let of = |(stats, name): (&str, &'static str)| {
        let rows = table::rows(runs, &names(stats));
        let points = |row: table::Row| {
            let points = row.numbers.iter().zip(PERCENTILES);
            points.filter_map(|(n, (_, f))| Some((n.as_ref()?.median.value()?, f))).collect()
        };
        Distribution { name, rows: rows.into_iter().map(points).collect::<Vec<Cdf>>() }
    };
    let all = [("op_latency_us", "op latency"), ("fabric_rtt_us", "fabric RTT")].map(of);
    let shown = |one: &Distribution| {
        one.rows.len() <= MAX_CURVES && one.rows.iter().any(|points| points.len() > 1)
    };
    all.into_iter().filter(shown).collect()
}

/// Writes the table, the chart and all numbers. `json` is the content of sweep.json.
pub fn write(
    dir: &OutputDir,
    plan: &Plan,
    runs: &[Done],
    rows: &[table::Row],
    json: &str,
) -> Result<(), String> {
    let first = plan.vary.first().map_or("", |axis| axis.key.as_str());
    let title = format!("{} over {first}", plan.file);
    table::write(dir, &plan.vary, &plan.metrics, runs)?;
    dir.write("sweep.json", json)?;
    dir.write("sweep.svg", &chart::draw(&title, &plan.vary, rows, &plan.metrics))?;
    let done = runs.iter().filter(|run| run.summary.is_some()).count();
    let caption = format!(
        "{done} of {} runs complete; medians over the seeds, with the smallest and the largest value",
        runs.len()
    );
    let reasons = runs.iter().filter_map(|run| run.failure.clone()).collect();
    let comparison = of_rows(caption, &plan.vary, rows, &plan.metrics, None, reasons);
    let comparison = Some(Comparison { distributions: distributions(runs), ..comparison });
    let report =
        Report { setup: plan.setup.clone(), comparison, ..Report::new("sweep", &title, "") };
    dir.write("report.html", &report.html())
}

/// Returns the rows of settings as the comparison of a report; `chosen` is the index of the command's choice.
pub fn of_rows(
    caption: String,
    axes: &[Axis],
    rows: &[table::Row],
    metrics: &[String],
    chosen: Option<usize>,
    reasons: Vec<String>,
) -> Comparison {
    let row = |(place, row): (usize, &table::Row)| {
        let settings =
            axes.iter().zip(&row.values).map(|(axis, value)| format!("{} = {value}", axis.key));
        let parts: Vec<String> = settings.chain(row.variant.clone()).collect();
        report::Row {
            label: parts.join(", "),
            values: row.values.clone(),
            parts: row.variant.iter().cloned().collect(),
            numbers: row.numbers.clone(),
            chosen: chosen == Some(place),
        }
    };
    let axis = |axis: &Axis| report::Axis { key: axis.key.clone(), values: axis.values.clone() };
    let place = Comparison::place;
    Comparison {
        caption,
        headings: metrics.to_vec(),
        axes: axes.iter().map(axis).collect(),
        rows: rows.iter().enumerate().map(row).collect(),
        reasons,
        distributions: Vec::new(),
        tables: Vec::new(),
        against: [place(metrics, "fabric_rtt_us.p99", 0), place(metrics, "goodput_gbps", 1)],
        metrics: metrics.to_vec(),
    }
}

/// Shortest time between two versions of the table while a sweep runs.
const INTERVAL: Duration = Duration::from_secs(1);
/// Divisor for the share of time that writing the table may take while a sweep runs: one part in 50.
const SHARE: u32 = 50;

/// Runs of a sweep in progress, whose table is rewritten as runs end.
pub struct Partial {
    axes: Vec<Axis>,
    metrics: Vec<String>,
    dir: Option<OutputDir>,
    runs: Mutex<Vec<Done>>,
    /// Earliest time of the next version of the table.
    next: Mutex<Instant>,
}

impl Partial {
    /// Writes the table of the runs that have already finished, if there is a directory. This also verifies, before a
    /// long run, that results can be written.
    pub fn new(dir: Option<OutputDir>, plan: &Plan, runs: Vec<Done>) -> Result<Self, String> {
        let (axes, metrics) = (plan.vary.clone(), plan.metrics.clone());
        if let Some(dir) = &dir {
            table::write(dir, &axes, &metrics, &runs)?;
        }
        let next = Mutex::new(Instant::now());
        Ok(Self { axes, metrics, dir, runs: Mutex::new(runs), next })
    }

    /// Adds the result of a run.
    pub fn add(&self, place: usize, result: Result<Value, String>) {
        let mut runs = self.runs();
        match result {
            Ok(summary) => runs[place].summary = Some(summary),
            Err(why) => runs[place].failure = Some(why),
        }
        drop(runs);
        let Some(dir) = &self.dir else { return };
        // If another thread is writing the table, the next version will include this run.
        let Ok(mut next) = self.next.try_lock() else { return };
        let started = Instant::now();
        if started < *next {
            return;
        }
        // The final table is written again, and its error is then reported.
        let _ = table::write(dir, &self.axes, &self.metrics, &self.runs());
        let now = Instant::now();
        *next = now + INTERVAL.max(now.duration_since(started) * SHARE);
    }

    /// Locks and returns all runs; no result can be added meanwhile.
    pub fn runs(&self) -> MutexGuard<'_, Vec<Done>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all runs.
    pub fn into_runs(self) -> Vec<Done> {
        self.runs.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
