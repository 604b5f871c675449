//! Tables of Apus's results in the formats of data tools: Arrow record batches, Parquet, Arrow files and CSV.
//!
//! A table is declared where its rows are created (`apus_sim::columns`). Its Arrow schema has a type for each
//! column, and the unit, the definition and the aggregation as metadata. Rows become batches one at a time,
//! so a table of any length needs the memory of one batch.
//!
//! ```
//! use apus_sim::columns::FlowRow;
//!
//! let rows = [FlowRow { goodput_gbps: 12.5, ..FlowRow::default() }];
//! let batches = apus_tables::batches(rows);
//! let goodput = batches.schema().field_with_name("goodput_gbps")?.clone();
//! assert_eq!(goodput.metadata()["unit"], "Gb/s");
//! let lines: usize = batches.map(|batch| batch.map_or(0, |batch| batch.num_rows())).sum();
//! assert_eq!(lines, 1);
//! # Ok::<(), arrow_schema::ArrowError>(())
//! ```

mod batches;
mod csv;
#[cfg(feature = "files")]
mod files;
mod schema;

pub use arrow_array;
pub use arrow_schema;
#[cfg(feature = "files")]
pub use parquet;

pub use batches::{BATCH_ROWS, Batches, batches};
pub use csv::write_csv;
#[cfg(feature = "files")]
pub use files::{write_arrow, write_parquet};
pub use schema::schema;
