//! Tables as Parquet and as Arrow files.

use std::io::{self, Write};

use apus_sim::columns::{Cells, Table};
use arrow_ipc::writer::FileWriter;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use crate::Batches;

/// Rows of a row group, which is in memory until it is written.
const GROUP_ROWS: usize = 1 << 17;

/// Writes the rows of a table as Parquet, compressed with Snappy. Readers with Arrow find the schema with its
/// metadata in the file.
///
/// # Errors
/// If `out` cannot be written, or a row does not have the columns of the table.
pub fn write_parquet(
    out: impl Write + Send,
    table: &Table,
    rows: impl IntoIterator<Item: Cells>,
) -> io::Result<()> {
    let batches = Batches::new(table, rows);
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_created_by(concat!("apus ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    let mut writer =
        ArrowWriter::try_new(out, batches.schema(), Some(properties)).map_err(io::Error::other)?;
    for batch in batches {
        let batch = batch.map_err(io::Error::other)?;
        writer.write(&batch).map_err(io::Error::other)?;
    }
    writer.close().map_err(io::Error::other)?;
    Ok(())
}

/// Writes the rows of a table as an Arrow file (the IPC format with random access, also known as Feather 2), without
/// compression.
///
/// # Errors
/// If `out` cannot be written, or a row does not have the columns of the table.
pub fn write_arrow(
    out: impl Write,
    table: &Table,
    rows: impl IntoIterator<Item: Cells>,
) -> io::Result<()> {
    let batches = Batches::new(table, rows);
    let mut writer = FileWriter::try_new(out, &batches.schema()).map_err(io::Error::other)?;
    for batch in batches {
        let batch = batch.map_err(io::Error::other)?;
        writer.write(&batch).map_err(io::Error::other)?;
    }
    writer.finish().map_err(io::Error::other)
}
