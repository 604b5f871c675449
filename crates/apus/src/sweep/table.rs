//! Results of a sweep as tables: one row per run in the file, medians over the seeds on the terminal.

use apus_scenario::Setup;
use apus_sim::bounds::Bounds;
use apus_sim::columns::{CellType, Column, Table, Value as Cell, unit_of};
use apus_sim::results::{METRICS, TABLES};
use serde_json::Value;

use super::grid::{Axis, Point};
use crate::output::OutputDir;
use crate::spread::Spread;
use crate::tables::{column, write_any};
use crate::text;

/// Metrics of tables and chart without `--metric`; times of jobs precede them.
const DEFAULT_METRICS: [&str; 7] = [
    "goodput_gbps",
    "loss_rate",
    "fabric_rtt_us.p50",
    "fabric_rtt_us.p99",
    "op_latency_us.p99",
    "op_latency_us.unfinished",
    "jain",
];

/// Returns the metrics of tables and chart without `--metric`; times of jobs come first.
pub fn default_metrics<'a>(setups: impl IntoIterator<Item = &'a Setup>) -> Vec<String> {
    let jobs = setups.into_iter().map(|setup| setup.job_names().count()).max().unwrap_or(0);
    let times = (0..jobs).map(|job| format!("jobs.{job}.completion_us"));
    times.chain(DEFAULT_METRICS.map(str::to_owned)).collect()
}

/// A run with its summary, once the run has finished.
pub struct Done {
    /// The run.
    pub point: Point,
    /// Summary of the run.
    pub summary: Option<Value>,
    /// Reason why the run failed.
    pub failure: Option<String>,
}

/// Returns the metrics of a table of runs: all common ones, and those of the chart that only some scenarios have.
fn columns_of(metrics: &[String]) -> impl Iterator<Item = &str> + Clone {
    let own = metrics.iter().map(String::as_str).filter(|name| !METRICS.contains(name));
    METRICS.iter().copied().chain(own)
}

/// Writes every finished run with all metrics of `columns_of`. If a number was not measured or is censored, its cell is
/// empty; the columns `lower` and `upper` of its distribution then contain the bounds.
pub fn write(
    dir: &OutputDir,
    axes: &[Axis],
    metrics: &[String],
    runs: &[Done],
) -> Result<(), String> {
    let row = |run| {
        let Done { point, summary, .. }: &Done = run;
        let summary = summary.as_ref()?;
        let mut cells: Vec<Cell<'_>> =
            point.values.iter().map(|value| Cell::Text(value.as_str())).collect();
        cells.push(point.variant.as_deref().map_or(Cell::Missing, Cell::Text));
        cells.push(Cell::Count(point.seed));
        let number = |name: &str| {
            let known = Bounds::of_metric(summary, name).and_then(Bounds::value);
            known.map_or(Cell::Missing, Cell::Number)
        };
        cells.extend(columns_of(metrics).map(number));
        Some(cells)
    };
    write_any(dir, &table_of_runs(axes, metrics), runs.iter().filter_map(row).collect())
}

/// Returns the declaration of the table.
fn table_of_runs(axes: &[Axis], metrics: &[String]) -> Table {
    let setting = |axis: &Axis| column(&axis.key, CellType::Text, "value of this setting");
    let metric = |name: &str| {
        // Columns are declared as in a summary, where one column may stand for several metrics.
        let declared = TABLES.iter().flat_map(|table| &table.columns);
        let found = declared.clone().find(|column| column.explains(name)).cloned();
        let known = found.unwrap_or_else(|| column(name, CellType::Number, ""));
        let cells = Some(CellType::Number);
        Column { name: name.to_owned(), unit: unit_of(name), cells, optional: true, ..known }
    };
    let mut columns: Vec<Column> = axes.iter().map(setting).collect();
    columns.push(column("variant", CellType::Text, "variant of the scenario, if it has variants"));
    columns.push(column("seed", CellType::Count, "seed of the run"));
    columns.extend(columns_of(metrics).map(metric));
    Table { file: "sweep.csv", row: "a run", columns }
}

/// One line of the table: the settings, and the median of each metric over the seeds.
pub struct Row {
    /// Value on each axis.
    pub values: Vec<String>,
    /// Variant of the scenario.
    pub variant: Option<String>,
    /// Numbers over the seeds, in the order of the metrics; `None` if no seed measured the number.
    pub numbers: Vec<Option<Spread>>,
}

/// Returns the numbers over the seeds of each setting, in the order of the runs.
pub fn rows(runs: &[Done], metrics: &[String]) -> Vec<Row> {
    let same = |a: &Done, b: &Done| {
        (&a.point.values, &a.point.variant) == (&b.point.values, &b.point.variant)
    };
    let groups = runs.chunk_by(same);
    let row = |group: &[Done]| {
        let number =
            |name: &String| Spread::of_metric(group.iter().map(|run| run.summary.as_ref()), name);
        let Point { values, variant, .. } = &group[0].point;
        Row {
            values: values.clone(),
            variant: variant.clone(),
            numbers: metrics.iter().map(number).collect(),
        }
    };
    groups.map(row).collect()
}

/// Returns the heading of a metric, with its unit.
pub fn heading(name: &str) -> String {
    match unit_of(name) {
        "" => name.to_owned(),
        unit => format!("{name} [{unit}]"),
    }
}

/// Returns the table for the terminal.
pub fn terminal(axes: &[Axis], rows: &[Row], metrics: &[String]) -> String {
    let variants = rows.iter().any(|row| row.variant.is_some());
    let mut lines = Vec::new();
    let mut header: Vec<String> = axes.iter().map(|axis| axis.key.clone()).collect();
    header.extend(variants.then(|| "variant".to_owned()));
    header.extend(metrics.iter().map(|name| heading(name)));
    lines.push(header);
    for row in rows {
        let mut cells = row.values.clone();
        cells.extend(row.variant.clone());
        let shown = |number: &Option<Spread>| {
            number.as_ref().map_or_else(|| "-".to_owned(), |number| text::bounds(number.median))
        };
        cells.extend(row.numbers.iter().map(shown));
        lines.push(cells);
    }
    text::columns(&lines, "")
}
