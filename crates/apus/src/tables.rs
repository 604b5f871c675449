//! Tables of results, in the format that the user chooses.

use apus_sim::columns::{Row, Table};
use apus_sim::record::Recording;
use apus_sim::summary::Summary;
use apus_tables::{write_arrow, write_csv, write_parquet};
use clap::{Args, ValueEnum};

use crate::output::OutputDir;

/// Format of tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text with a header line; numbers have up to six decimals.
    #[default]
    Csv,
    /// Parquet, compressed with Snappy.
    Parquet,
    /// Arrow's file format (IPC, Feather 2).
    Arrow,
}

impl Format {
    /// Returns the ending of files.
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
    /// Format of the tables in this directory.
    #[arg(long = "format", id = "table_format", value_enum, default_value_t, requires = "out")]
    pub format: Format,
}

/// Writes every table of a run.
pub fn write(dir: &OutputDir, summary: &Summary, recording: &Recording) -> Result<(), String> {
    write_rows(dir, summary.workload_rows())?;
    write_rows(dir, recording.op_rows())?;
    write_rows(dir, recording.flow_rows())?;
    write_rows(dir, recording.port_rows())?;
    write_rows(dir, recording.faults.iter().cloned())?;
    write_rows(dir, recording.sample_rows())?;
    write_rows(dir, recording.band_rows())?;
    write_rows(dir, recording.port_sample_rows())
}

/// Writes the table that these rows belong to, in the format of the directory. The table in other formats, of earlier
/// results, is removed.
pub fn write_rows<R: Row>(
    dir: &OutputDir,
    rows: impl IntoIterator<Item = R>,
) -> Result<(), String> {
    let table = Table::of::<R>();
    let format = dir.tables();
    let name = format!("{}.{}", table.stem(), format.ending());
    for other in Format::value_variants().iter().filter(|other| **other != format) {
        dir.remove(&format!("{}.{}", table.stem(), other.ending()))?;
    }
    dir.write_with(&name, |out| match format {
        Format::Csv => write_csv(out, &table, rows),
        Format::Parquet => write_parquet(out, &table, rows),
        Format::Arrow => write_arrow(out, &table, rows),
    })
}

/// Returns a table whose columns are known only at run time. The first record is the header; all have its length.
pub fn to_csv(records: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut out = csv::Writer::from_writer(Vec::new());
    for record in records {
        out.write_record(&record).expect("every record has the length of the header");
    }
    let bytes = out.into_inner().expect("writing to memory cannot fail");
    String::from_utf8(bytes).expect("cells are text")
}
