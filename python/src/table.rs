//! Tables of results as Arrow streams, through the PyCapsule interface. Every data library accepts them without a copy
//! through text, and no particular library is required.

use std::collections::VecDeque;
use std::sync::Arc;

use apus_sim::columns::Row;
use apus_sim::record::Recording;
use apus_sim::results::TABLES;
use apus_sim::summary::Summary;
use apus_tables::arrow_array::cast::AsArray;
use apus_tables::arrow_array::ffi_stream::FFI_ArrowArrayStream;
use apus_tables::arrow_array::types::{Float64Type, UInt64Type};
use apus_tables::arrow_array::{
    ArrayRef, RecordBatch, RecordBatchReader, StringArray, UInt64Array,
};
use apus_tables::arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};

use crate::outcome::Run;

/// A table of one run or of several.
#[pyclass(frozen, module = "apus._native")]
pub struct Table {
    table: &'static apus_sim::columns::Table,
    parts: VecDeque<Part>,
    schema: SchemaRef,
}

/// The rows of a run.
#[derive(Clone)]
struct Part {
    summary: Arc<Summary>,
    recording: Arc<Recording>,
    /// Columns before the columns of the table.
    keys: Option<Keys>,
}

/// Identifies the run of a row, in tables with several runs.
#[derive(Clone)]
struct Keys {
    variant: Option<String>,
    seed: u64,
}

#[pymethods]
impl Table {
    /// Returns the table `name` of these runs. With `keys` its first columns are the variant and the seed of
    /// the run.
    #[staticmethod]
    fn of(runs: Vec<PyRef<'_, Run>>, name: &str, keys: bool) -> PyResult<Self> {
        let Some(table) = TABLES.iter().find(|table| table.stem() == name && has_rows(table))
        else {
            return Err(PyValueError::new_err(format!("there is no table `{name}`")));
        };
        let part = |run: &PyRef<'_, Run>| {
            let Some(recording) = &run.summary.recording else {
                let message = "the tables were not kept; `record=True` keeps them";
                return Err(PyValueError::new_err(message));
            };
            let keys = keys.then(|| Keys { variant: run.variant.clone(), seed: run.summary.seed });
            Ok(Part { summary: Arc::clone(&run.summary), recording: Arc::clone(recording), keys })
        };
        let parts = runs.iter().map(part).collect::<PyResult<_>>()?;
        let schema = apus_tables::schema(table);
        Ok(Self { table, parts, schema: if keys { with_keys(&schema) } else { schema } })
    }

    /// Name of the table.
    #[getter]
    fn name(&self) -> &str {
        self.table.stem()
    }

    /// Meaning of a row.
    #[getter]
    fn row(&self) -> &str {
        self.table.row
    }

    /// Names of the columns in order.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let (name, rows) = (self.table.stem(), self.__len__(py));
        format!("<table `{name}`: {rows} rows; columns {}>", self.columns().join(", "))
    }

    /// Returns the unit of a column, which is empty for some.
    fn unit(&self, column: &str) -> PyResult<String> {
        let found = self.schema.field_with_name(column);
        let field = found.map_err(|_| PyKeyError::new_err(column.to_owned()))?;
        Ok(field.metadata().get("unit").cloned().unwrap_or_default())
    }

    /// Returns the values of these columns, `None` for those that are missing.
    fn values<'py>(
        &self,
        py: Python<'py>,
        columns: Vec<String>,
    ) -> PyResult<Vec<Bound<'py, PyList>>> {
        let unknown = columns.iter().find(|name| self.schema.field_with_name(name).is_err());
        if let Some(name) = unknown {
            return Err(PyKeyError::new_err(name.clone()));
        }
        let mut stream = self.stream();
        let lists: Vec<_> = columns.iter().map(|_| PyList::empty(py)).collect();
        while let Some(batch) = py.detach(|| stream.next()) {
            let batch = batch.map_err(|error| PyValueError::new_err(error.to_string()))?;
            for (name, list) in columns.iter().zip(&lists) {
                if let Some(column) = batch.column_by_name(name) {
                    append(list, column)?;
                }
            }
        }
        Ok(lists)
    }

    /// Number of rows.
    fn __len__(&self, py: Python<'_>) -> usize {
        let count = |part: &Part| visit(self.table.stem(), part, Count).unwrap_or(0);
        py.detach(|| self.parts.iter().map(count).sum())
    }

    /// The rows as a stream of Arrow record batches. The schema that a consumer requests is not used: it
    /// casts the columns itself.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let stream = FFI_ArrowArrayStream::new(Box::new(self.stream()));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

impl Table {
    fn stream(&self) -> Stream {
        Stream {
            name: self.table.stem(),
            schema: Arc::clone(&self.schema),
            parts: self.parts.clone(),
            ready: VecDeque::new(),
        }
    }
}

/// Appends the values of an Arrow column to a list.
fn append(list: &Bound<'_, PyList>, column: &ArrayRef) -> PyResult<()> {
    if let Some(numbers) = column.as_primitive_opt::<Float64Type>() {
        numbers.iter().try_for_each(|number| list.append(number))
    } else if let Some(counts) = column.as_primitive_opt::<UInt64Type>() {
        counts.iter().try_for_each(|count| list.append(count))
    } else if let Some(flags) = column.as_boolean_opt() {
        flags.iter().try_for_each(|flag| list.append(flag))
    } else {
        column.as_string::<i32>().iter().try_for_each(|text| list.append(text))
    }
}

/// Returns `true` for a table with rows, and `false` for a summary.
fn has_rows(table: &apus_sim::columns::Table) -> bool {
    table.file.ends_with(".csv")
}

/// Returns a schema with the columns of [`Keys`] before the others.
fn with_keys(schema: &Schema) -> SchemaRef {
    let doc = |text: &str| [("definition".to_owned(), text.to_owned())].into();
    let variant = Field::new("variant", DataType::Utf8, true);
    let seed = Field::new("seed", DataType::UInt64, false);
    let mut fields = vec![
        Arc::new(variant.with_metadata(doc("variant of the run; null if the scenario has none"))),
        Arc::new(seed.with_metadata(doc("seed of the run"))),
    ];
    fields.extend(schema.fields().iter().cloned());
    Arc::new(Schema::new(fields).with_metadata(schema.metadata().clone()))
}

/// An operation on the rows of a table, whatever their type.
trait Visit {
    type Output;
    fn rows<R: Row>(self, rows: impl IntoIterator<Item = R>) -> Self::Output;
}

/// Calls `visit` with the rows of the table `name`; returns `None` if there is no such table.
fn visit<V: Visit>(name: &str, part: &Part, visit: V) -> Option<V::Output> {
    let Part { summary, recording, .. } = part;
    Some(match name {
        "workloads" => visit.rows(summary.workload_rows()),
        "ops" => visit.rows(recording.op_rows()),
        "job_ops" => visit.rows(recording.job_op_rows()),
        "flows" => visit.rows(recording.flow_rows()),
        "ports" => visit.rows(recording.port_rows()),
        "faults" => visit.rows(recording.faults.iter().cloned()),
        "samples" => visit.rows(recording.sample_rows()),
        "sample_percentiles" => visit.rows(recording.band_rows()),
        "port_samples" => visit.rows(recording.port_sample_rows()),
        _ => return None,
    })
}

struct Count;

impl Visit for Count {
    type Output = usize;
    fn rows<R: Row>(self, rows: impl IntoIterator<Item = R>) -> usize {
        rows.into_iter().count()
    }
}

struct Batches;

impl Visit for Batches {
    type Output = Result<VecDeque<RecordBatch>, ArrowError>;
    fn rows<R: Row>(self, rows: impl IntoIterator<Item = R>) -> Self::Output {
        apus_tables::batches(rows).collect()
    }
}

/// Batches of a table, created run by run.
struct Stream {
    name: &'static str,
    schema: SchemaRef,
    parts: VecDeque<Part>,
    ready: VecDeque<RecordBatch>,
}

impl Stream {
    /// Returns the batches of a run.
    fn batches(&self, part: &Part) -> Result<VecDeque<RecordBatch>, ArrowError> {
        let unknown = || Err(ArrowError::SchemaError(format!("there is no table `{}`", self.name)));
        let batches = visit(self.name, part, Batches).unwrap_or_else(unknown)?;
        let Some(Keys { variant, seed }) = &part.keys else { return Ok(batches) };
        let with_keys = |batch: RecordBatch| {
            let count = batch.num_rows();
            let variants: StringArray = (0..count).map(|_| variant.as_deref()).collect();
            let mut columns: Vec<ArrayRef> =
                vec![Arc::new(variants), Arc::new(UInt64Array::from_value(*seed, count))];
            columns.extend(batch.columns().iter().cloned());
            RecordBatch::try_new(Arc::clone(&self.schema), columns)
        };
        batches.into_iter().map(with_keys).collect()
    }
}

impl Iterator for Stream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Some(Ok(batch));
            }
            let part = self.parts.pop_front()?;
            match self.batches(&part) {
                Ok(batches) => self.ready = batches,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl RecordBatchReader for Stream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
