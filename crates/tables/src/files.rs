//! Tables as Parquet and as Arrow files.

use std::io::{self, Write};

use apus_sim::columns::{Cells, Table};
use arrow_ipc::writer::FileWriter;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use crate::Batches;

/// Number of rows of a row group, which is in memory until it is written.
const GROUP_ROWS: usize = 1 << 16;

/// Writes the rows of a table as Parquet, compressed with Snappy. The file contains the Arrow schema with its metadata.
///
/// # Errors
/// If `out` fails, or if a row does not have the columns of the table.
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
/// If `out` fails, or if a row does not have the columns of the table.
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

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use apus_sim::columns::{FlowRow, Table};
    use arrow_array::RecordBatch;
    use arrow_ipc::reader::FileReader;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    use super::{GROUP_ROWS, write_arrow, write_parquet};
    use crate::batches;

    fn rows(count: u32) -> impl Iterator<Item = FlowRow> + Clone {
        let row = |flow| FlowRow {
            flow,
            from: format!("host {}", flow % 7),
            goodput_gbps: f64::from(flow) / 3.0,
            mean_slowdown: (flow % 2 == 0).then_some(1.5),
            ..FlowRow::default()
        };
        (0..count).map(row)
    }

    fn expected(count: u32) -> Vec<RecordBatch> {
        batches(rows(count)).map(|batch| batch.expect("cells")).collect()
    }

    #[test]
    fn parquet_holds_every_row_and_the_metadata() {
        let mut file = Vec::new();
        let count = GROUP_ROWS as u32 + 10;
        write_parquet(&mut file, &Table::of::<FlowRow>(), rows(count)).expect("memory");
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes(file)).expect("Parquet");
        assert_eq!(reader.metadata().num_row_groups(), 2);
        assert_eq!(reader.schema(), &crate::schema(&Table::of::<FlowRow>()));
        let batches: Vec<_> = reader
            .with_batch_size(crate::BATCH_ROWS)
            .build()
            .expect("reader")
            .map(|batch| batch.expect("batch"))
            .collect();
        let total: usize = batches.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(total, count as usize);
        for (found, expected) in batches.iter().zip(expected(count)) {
            assert!(found.columns() == expected.columns(), "{found:?}\n{expected:?}");
        }
    }

    #[test]
    fn an_arrow_file_holds_every_row() {
        let mut file = Vec::new();
        write_arrow(&mut file, &Table::of::<FlowRow>(), rows(10_000)).expect("memory");
        let reader = FileReader::try_new(Cursor::new(file), None).expect("an Arrow file");
        let found: Vec<_> = reader.map(|batch| batch.expect("batch")).collect();
        assert_eq!(found, expected(10_000));
    }

    #[test]
    fn a_table_without_rows_has_its_columns() {
        let mut file = Vec::new();
        write_parquet(&mut file, &Table::of::<FlowRow>(), rows(0)).expect("memory");
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes(file)).expect("Parquet");
        assert_eq!(reader.schema().fields().len(), Table::of::<FlowRow>().columns.len());
        assert_eq!(reader.metadata().file_metadata().num_rows(), 0);
    }

    fn bytes(file: Vec<u8>) -> bytes::Bytes {
        file.into()
    }
}
