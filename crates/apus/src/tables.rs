//! Tables of results in the format that the user chooses.

use apus_sim::columns::{CellType, Column, Kind, Row, Table, Value};
use apus_sim::record::Recording;
use apus_sim::summary::Summary;
use apus_tables::{write_arrow, write_csv, write_parquet};
use clap::{Args, ValueEnum};

use crate::output::OutputDir;

/// Format of tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text with a header line; numbers with up to six decimals.
    #[default]
    Csv,
    /// Parquet, compressed with Snappy.
    Parquet,
    /// Arrow IPC file format (Feather 2).
    Arrow,
}

impl Format {
    /// Returns the file name extension.
    fn ending(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
        }
    }
}

/// Option of every command that writes tables.
#[derive(Args, Clone, Copy)]
pub struct TableFormat {
    /// Format of the tables that `--out` writes.
    #[arg(long = "format", id = "table_format", value_enum, default_value_t, requires = "out")]
    pub format: Format,
}

/// Writes every table of a run.
pub fn write(dir: &OutputDir, summary: &Summary, recording: &Recording) -> Result<(), String> {
    write_rows(dir, summary.workload_rows())?;
    write_rows(dir, recording.op_rows())?;
    if !recording.jobs.is_empty() {
        write_rows(dir, recording.job_op_rows())?;
    }
    write_rows(dir, recording.flow_rows())?;
    write_rows(dir, recording.port_rows())?;
    write_rows(dir, recording.faults.iter().cloned())?;
    write_rows(dir, recording.sample_rows())?;
    write_rows(dir, recording.band_rows())?;
    write_rows(dir, recording.port_sample_rows())
}

/// Writes the table to which these rows belong, in the format of the directory. Removes the same table of earlier
/// results in other formats.
pub fn write_rows<R: Row>(
    dir: &OutputDir,
    rows: impl IntoIterator<Item = R>,
) -> Result<(), String> {
    let table = Table::of::<R>();
    let name = replace(dir, &table)?;
    dir.write_with(&name, |out| match dir.tables() {
        Format::Csv => write_csv(out, &table, rows),
        Format::Parquet => write_parquet(out, &table, rows),
        Format::Arrow => write_arrow(out, &table, rows),
    })
}

/// Rows of a table whose columns are known only at run time.
pub type AnyRows<'a> = Vec<Vec<Value<'a>>>;

/// Writes such a table, as [`write_rows`] does; numbers have full precision also in CSV.
pub fn write_any(dir: &OutputDir, table: &Table, rows: AnyRows<'_>) -> Result<(), String> {
    let name = replace(dir, table)?;
    dir.write_with(&name, |out| match dir.tables() {
        Format::Csv => out.write_all(to_csv(table, &rows).as_bytes()),
        Format::Parquet => write_parquet(out, table, rows),
        Format::Arrow => write_arrow(out, table, rows),
    })
}

/// Returns the name of a table in the format of the directory, and removes the table in other formats.
fn replace(dir: &OutputDir, table: &Table) -> Result<String, String> {
    let name = |format: Format| format!("{}.{}", table.stem(), format.ending());
    for other in Format::value_variants().iter().filter(|other| **other != dir.tables()) {
        dir.remove(&name(*other))?;
    }
    Ok(name(dir.tables()))
}

fn to_csv(table: &Table, rows: &[Vec<Value<'_>>]) -> String {
    let mut out = csv::Writer::from_writer(Vec::new());
    out.write_record(table.names()).expect("memory");
    for row in rows {
        let cells = row.iter().map(|value| match value {
            Value::Number(number) if number.is_finite() => number.to_string(),
            other => other.to_string(),
        });
        out.write_record(cells).expect("every row has the length of the header");
    }
    let bytes = out.into_inner().expect("writing to memory cannot fail");
    String::from_utf8(bytes).expect("cells are text")
}

/// Returns a column of such a table.
pub fn column(name: &str, cells: CellType, definition: &str) -> Column {
    Column {
        name: name.to_owned(),
        unit: "",
        definition: definition.to_owned(),
        aggregation: "",
        kind: Kind::Fact,
        cells: Some(cells),
        optional: true,
    }
}
