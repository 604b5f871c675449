//! CSV tables.

use std::fmt::Write;

use apus_sim::columns::{Row, Table};
use apus_sim::record::Recording;
use apus_sim::summary::Summary;

use crate::output::OutputDir;

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

/// Writes the table that these rows belong to.
pub fn write_rows<R: Row>(
    dir: &OutputDir,
    rows: impl IntoIterator<Item = R>,
) -> Result<(), String> {
    dir.write_with(R::FILE, |out| {
        let mut out = csv::Writer::from_writer(out);
        out.write_record(Table::of::<R>().names())?;
        let (mut record, mut text) = (csv::StringRecord::new(), String::new());
        for row in rows {
            record.clear();
            row.cells(&mut |cell| {
                text.clear();
                // Writing to a String cannot fail.
                let _ = write!(text, "{cell}");
                record.push_field(&text);
            });
            out.write_record(&record)?;
        }
        out.flush()
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
