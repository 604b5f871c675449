//! Tables as CSV.

use std::fmt::Write as _;
use std::io::{self, Write};

use apus_sim::columns::{Cells, Table};

/// Writes the rows of a table as CSV, with a header line. A missing value is an empty cell; numbers have up to six
/// decimals.
///
/// # Errors
/// If `out` fails, or if a row does not have the columns of the table.
pub fn write_csv(
    out: impl Write,
    table: &Table,
    rows: impl IntoIterator<Item: Cells>,
) -> io::Result<()> {
    let mut out = csv::Writer::from_writer(out);
    out.write_record(table.names())?;
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
}
