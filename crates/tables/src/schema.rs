//! The Arrow schema of a table.

use std::collections::HashMap;
use std::sync::Arc;

use apus_sim::columns::{CellType, Column, Table};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

/// Returns the schema of a table.
///
/// Metadata of a field: `definition`, `aggregation`, and `unit` if the column has a unit. Metadata of the
/// schema: `table`, the name of the table; `row`, the meaning of a row; and `apus_version`. Every field is
/// nullable: a missing value is null.
#[must_use]
pub fn schema(table: &Table) -> SchemaRef {
    let fields: Vec<Field> = table.columns.iter().map(field).collect();
    let metadata =
        [("table", table.stem()), ("row", table.row), ("apus_version", env!("CARGO_PKG_VERSION"))];
    Arc::new(Schema::new(fields).with_metadata(owned(&metadata)))
}

fn field(column: &Column) -> Field {
    let mut metadata =
        vec![("definition", column.definition.as_str()), ("aggregation", column.aggregation)];
    if !column.unit.is_empty() {
        metadata.push(("unit", column.unit));
    }
    Field::new(&column.name, data_type(column), true).with_metadata(owned(&metadata))
}

/// Returns the Arrow type of a column. A number of a summary, which has no cells, has the type of text.
fn data_type(column: &Column) -> DataType {
    match column.cells {
        Some(CellType::Flag) => DataType::Boolean,
        Some(CellType::Count) => DataType::UInt64,
        Some(CellType::Number) => DataType::Float64,
        Some(CellType::Text) | None => DataType::Utf8,
    }
}

fn owned(metadata: &[(&str, &str)]) -> HashMap<String, String> {
    metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}
