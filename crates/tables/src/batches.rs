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

/// Record batches of the rows of a table, made one at a time: memory does not depend on the number of rows.
///
/// A batch is an error if a row has other cells than the table's columns.
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
                let column = index.min(columns.len());
                return Some(Err(ArrowError::SchemaError(format!(
                    "table `{}`: a row's {column} cells do not have the types of its {} columns",
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

/// A column of a batch while it grows.
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

    /// Appends a cell; returns `false` if its type is not that of the column.
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
