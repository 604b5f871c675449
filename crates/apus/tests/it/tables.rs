//! `--format`: the tables of every format are equal, cell by cell.

use std::fs::{self, File};
use std::path::Path;

use apus_sim::columns::Value;
use apus_tables::arrow_array::cast::AsArray;
use apus_tables::arrow_array::types::{Float64Type, UInt64Type};
use apus_tables::arrow_array::{Array, RecordBatch};
use apus_tables::arrow_schema::DataType;
use apus_tables::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::support::command;

/// Two classes, faults, flows that end and one that does not end: every table has rows and empty cells.
const SCENARIO: &str = r#"
duration = "200us"
topology = { kind = "star", hosts = 4, rate = "100Gbps", delay = "1us", buffer = "4MB" }
algorithm = { name = "swift" }
[[workload]]
kind = "incast"
size = "64kB"
[[workload]]
name = "long"
kind = "incast"
size = "1GB"
[[fault]]
kind = "loss"
link = "host 0 -> *"
probability = 0.001
at = "20us"
until = "40us"
"#;

const TABLES: [&str; 8] = [
    "workloads",
    "ops",
    "flows",
    "ports",
    "faults",
    "samples",
    "sample_percentiles",
    "port_samples",
];

/// Returns the text of a cell in CSV.
fn text(batch: &RecordBatch, column: usize, row: usize) -> String {
    let cells = batch.column(column);
    let value = match cells.data_type() {
        _ if cells.is_null(row) => Value::Missing,
        DataType::Boolean => Value::Flag(cells.as_boolean().value(row)),
        DataType::UInt64 => Value::Count(cells.as_primitive::<UInt64Type>().value(row)),
        DataType::Float64 => Value::Number(cells.as_primitive::<Float64Type>().value(row)),
        DataType::Utf8 => Value::Text(cells.as_string::<i32>().value(row)),
        other => panic!("{other} is no type of a table"),
    };
    value.to_string()
}

fn parquet(path: &Path) -> Vec<Vec<String>> {
    let file = File::open(path).expect("a table");
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("Parquet");
    let names = reader.schema().fields().iter().map(|field| field.name().clone()).collect();
    let mut lines = vec![names];
    for batch in reader.build().expect("a reader") {
        let batch = batch.expect("a batch");
        let line = |row| (0..batch.num_columns()).map(|column| text(&batch, column, row)).collect();
        lines.extend((0..batch.num_rows()).map(line));
    }
    lines
}

fn csv(path: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(path).expect("a table");
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    let cells = |record: csv::StringRecord| record.iter().map(str::to_owned).collect();
    reader.records().map(|record| cells(record.expect("a record"))).collect()
}

#[test]
fn parquet_equals_csv_cell_by_cell() {
    let folder = command::folder("table-formats");
    fs::write(folder.join("mine.toml"), SCENARIO).expect("file");
    for format in ["csv", "parquet"] {
        let run = ["run", "mine.toml", "--out", format, "--format", format];
        let output = command::apus(&folder, &run);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    for table in TABLES {
        let expected = csv(&folder.join(format!("csv/{table}.csv")));
        let found = parquet(&folder.join(format!("parquet/{table}.parquet")));
        assert!(expected.len() > 1, "{table} has no rows");
        assert_eq!(found.len(), expected.len(), "{table}");
        for (line, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert_eq!(found, expected, "{table}, line {}", line + 1);
        }
        assert!(!folder.join(format!("parquet/{table}.csv")).exists());
    }
}

/// Tables whose columns depend on the command; numbers keep full precision in CSV too.
#[test]
fn tables_of_sweeps_and_comparisons_have_every_format() {
    let folder = command::folder("table-any-formats");
    fs::write(folder.join("mine.toml"), SCENARIO).expect("file");
    let sweep = ["sweep", "mine.toml", "--vary", "topology.hosts=4,5"];
    let compare = ["compare", "mine.toml", "--algorithms", "swift,dctcp", "--seeds", "2"];
    for (table, command) in [("sweep", &sweep[..]), ("compare", &compare[..])] {
        for format in ["csv", "parquet"] {
            let more = ["--out", &format!("{table}-{format}"), "--format", format];
            let output = command::apus(&folder, &[command, &more].concat());
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        let expected = csv(&folder.join(format!("{table}-csv/{table}.csv")));
        let path = folder.join(format!("{table}-parquet/{table}.parquet"));
        let found = parquet(&path);
        assert!(expected.len() > 2, "{table} has no rows");
        let rounded = |text: &String| match text.parse() {
            Ok(number) => Value::Number(number).to_string(),
            Err(_) => text.clone(),
        };
        let rounded = |line: &Vec<String>| line.iter().map(rounded).collect::<Vec<_>>();
        assert_eq!(found, expected.iter().map(rounded).collect::<Vec<_>>(), "{table}");
        let text = path.with_extension("csv");
        assert!(!text.exists(), "{}", text.display());
    }
    let merge = ["sweep", "--merge", "sweep-csv", "--out", "merged", "--format", "arrow"];
    assert!(command::apus(&folder, &merge).status.success());
    assert!(folder.join("merged/sweep.arrow").exists());
    let shard = [&sweep[..], &["--shard", "1/2", "--out", "s", "--format", "arrow"]].concat();
    assert_eq!(command::apus(&folder, &shard).status.code(), Some(2));
}

/// A directory contains a table only once: the table in a new format replaces the earlier one.
#[test]
fn a_table_in_another_format_replaces_the_earlier_one() {
    let folder = command::folder("table-format-changes");
    fs::write(folder.join("mine.toml"), SCENARIO).expect("file");
    for (format, other) in [("csv", "arrow"), ("arrow", "csv"), ("parquet", "arrow")] {
        let run = ["run", "mine.toml", "--out", "out", "--format", format];
        let output = command::apus(&folder, &run);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(folder.join(format!("out/ops.{format}")).exists());
        assert!(!folder.join(format!("out/ops.{other}")).exists());
    }
}

#[test]
fn a_format_without_a_directory_is_an_error() {
    let output = command::apus(Path::new("."), &["run", "mine.toml", "--format", "parquet"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--out"));
}
