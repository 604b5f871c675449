//! Rows as Arrow record batches.

use std::sync::Arc;

use apus_sim::columns::{Cells, Row, Table, Value};
use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, Float64Builder, StringBuilder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, SchemaRef};

use crate::schema;

/// Maximum number of rows of a batch.
pub const BATCH_ROWS: usize = 8192;

/// Record batches of the rows of a table, made one at a time, so that the memory does not depend on the number of rows.
///
/// A batch is an error if the cells of a row do not match the columns of the table.
#[derive(Debug)]
pub struct Batches<I> {
    schema: SchemaRef,
    rows: I,
}

/// Returns the record batches of these rows.
pub fn batches<R: Row, I: IntoIterator<Item = R>>(rows: I) -> Batches<I::IntoIter> {
    Batches::new(&Table::of::<R>(), rows)
}

impl<I> Batches<I> {
    /// Returns the record batches of rows of this table.
    pub fn new<R: IntoIterator<IntoIter = I>>(table: &Table, rows: R) -> Self {
        Self { schema: schema(table), rows: rows.into_iter() }
    }

    /// Returns the schema of the batches.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl<I: Iterator<Item: Cells>> Iterator for Batches<I> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut row = self.rows.next()?;
        let fields = self.schema.fields();
        let mut columns: Vec<Builder> =
            fields.iter().map(|field| Builder::new(field.data_type())).collect();
        for count in 1.. {
            let (mut index, mut wrong) = (0, false);
            row.cells(&mut |value| {
                wrong |= !columns.get_mut(index).is_some_and(|column| column.append(value));
                index += 1;
            });
            if wrong || index != columns.len() {
                return Some(Err(ArrowError::SchemaError(format!(
                    "table `{}`: a row of {index} cells does not fit its {} columns or their types",
                    self.schema.metadata()["table"],
                    columns.len()
                ))));
            }
            if count == BATCH_ROWS {
                break;
            }
            match self.rows.next() {
                Some(next) => row = next,
                None => break,
            }
        }
        let columns = columns.into_iter().map(Builder::finish).collect();
        Some(RecordBatch::try_new(self.schema(), columns))
    }
}

impl<I: Iterator<Item: Cells>> RecordBatchReader for Batches<I> {
    fn schema(&self) -> SchemaRef {
        self.schema()
    }
}

/// A column of a batch under construction.
enum Builder {
    Flag(BooleanBuilder),
    Count(UInt64Builder),
    Number(Float64Builder),
    Text(StringBuilder),
}

impl Builder {
    fn new(data_type: &DataType) -> Self {
        match data_type {
            DataType::Boolean => Self::Flag(BooleanBuilder::new()),
            DataType::UInt64 => Self::Count(UInt64Builder::new()),
            DataType::Float64 => Self::Number(Float64Builder::new()),
            _ => Self::Text(StringBuilder::new()),
        }
    }

    /// Appends a cell. Returns `false` if the type of the cell is not that of the column.
    fn append(&mut self, value: Value<'_>) -> bool {
        match (self, value) {
            (Self::Flag(column), Value::Flag(flag)) => column.append_value(flag),
            (Self::Flag(column), Value::Missing) => column.append_null(),
            (Self::Count(column), Value::Count(count)) => column.append_value(count),
            (Self::Count(column), Value::Missing) => column.append_null(),
            (Self::Number(column), Value::Number(number)) => {
                column.append_option(number.is_finite().then_some(number));
            }
            (Self::Number(column), Value::Missing) => column.append_null(),
            (Self::Text(column), Value::Text(text)) => column.append_value(text),
            (Self::Text(column), Value::Missing) => column.append_null(),
            _ => return false,
        }
        true
    }

    fn finish(self) -> ArrayRef {
        match self {
            Self::Flag(mut column) => ArrayBuilder::finish(&mut column),
            Self::Count(mut column) => ArrayBuilder::finish(&mut column),
            Self::Number(mut column) => ArrayBuilder::finish(&mut column),
            Self::Text(mut column) => ArrayBuilder::finish(&mut column),
        }
    }
}

#[cfg(test)]
mod tests {
    use apus_sim::columns::{FlowRow, OpRow, Row, Table, Value};
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, UInt64Type};
    use arrow_array::{Array, RecordBatch};
    use arrow_schema::DataType;

    use super::{BATCH_ROWS, Batches, batches};

    fn op(number: u64) -> OpRow {
        OpRow {
            flow: 3,
            op: Some(number),
            from: "h0".to_owned(),
            to: "h1".to_owned(),
            kind: "write",
            size_bytes: 1 << 40,
            submit_us: 0.125,
            complete_us: None,
            latency_us: Some(f64::INFINITY),
            slowdown: Some(1.0 / 3.0),
            outcome: "done",
            phase: "measured",
        }
    }

    #[test]
    fn columns_have_types_units_and_definitions() {
        let schema = batches(std::iter::empty::<OpRow>()).schema();
        assert_eq!(schema.metadata()["table"], "ops");
        assert_eq!(schema.metadata()["row"], OpRow::MEANING.trim());
        let field = |name| schema.field_with_name(name).expect(name);
        assert_eq!(field("op").data_type(), &DataType::UInt64);
        assert_eq!(field("from").data_type(), &DataType::Utf8);
        let latency = field("latency_us");
        assert_eq!(latency.data_type(), &DataType::Float64);
        assert_eq!(latency.metadata()["unit"], "us");
        let definition = "submission to completion on the clock of the submitting host";
        assert_eq!(latency.metadata()["definition"], definition);
        assert_eq!(latency.metadata()["aggregation"], "one op");
        assert!(!field("op").metadata().contains_key("unit"));
    }

    #[test]
    fn cells_keep_their_full_value_and_missing_ones_are_null() {
        let batch: RecordBatch = batches([op(7)]).next().expect("a batch").expect("cells");
        let column = |name| batch.column_by_name(name).expect(name);
        assert_eq!(column("size_bytes").as_primitive::<UInt64Type>().value(0), 1 << 40);
        assert_eq!(column("slowdown").as_primitive::<Float64Type>().value(0), 1.0 / 3.0);
        assert_eq!(column("kind").as_string::<i32>().value(0), "write");
        // A number that is not finite counts as missing, as in CSV.
        assert!(column("complete_us").is_null(0) && column("latency_us").is_null(0));
    }

    #[test]
    fn a_long_table_is_a_stream_of_small_batches() {
        let rows = (0..2 * BATCH_ROWS as u64 + 1).map(op);
        let mut numbers = Vec::new();
        let mut sizes = Vec::new();
        for batch in batches(rows) {
            let batch = batch.expect("cells");
            sizes.push(batch.num_rows());
            numbers.extend_from_slice(batch.column(1).as_primitive::<UInt64Type>().values());
        }
        assert_eq!(sizes, [BATCH_ROWS, BATCH_ROWS, 1]);
        assert!(numbers.into_iter().eq(0..2 * BATCH_ROWS as u64 + 1));
    }

    #[test]
    fn a_row_with_other_cells_than_its_table_is_an_error() {
        let table = Table::of::<FlowRow>();
        let other = vec![Value::Count(0); table.columns.len()];
        let short = vec![Value::Missing; table.columns.len() - 1];
        let long = vec![Value::Missing; table.columns.len() + 1];
        for row in [other, short, long] {
            let error = Batches::new(&table, [row]).next().expect("a batch").expect_err("cells");
            assert!(error.to_string().contains("table `flows`"), "{error}");
        }
        let fits = vec![Value::Missing; table.columns.len()];
        assert!(Batches::new(&table, [fits]).all(|batch| batch.is_ok()));
    }
}
