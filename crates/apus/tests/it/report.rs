//! Tables and text of a run, and the data of its page.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::page::{UNTIL_DONE, browser, open};
use crate::support::command::folder;
use serde_json::Value;

pub fn apus(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_apus"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("process");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Every table has the header that the reference names, and every row has as many cells. Sums over the tables equal the
/// numbers of the summary.
#[test]
fn tables_are_what_the_reference_says() {
    let folder = folder("tables");
    apus(&folder, &["run", "bench/incast-100", "--set", "duration=5ms", "--out", "out"]);
    let mut sums = std::collections::BTreeMap::new();
    // Only runs with jobs have `job_ops.csv`.
    let is_here = |file: &str| file.ends_with(".csv") && file != "job_ops.csv";
    for table in apus_sim::results::TABLES.iter().filter(|table| is_here(table.file)) {
        let text = fs::read_to_string(folder.join("out").join(table.file)).expect(table.file);
        let (header, rows) = text.split_once('\n').expect("a header");
        assert_eq!(header, table.names().collect::<Vec<_>>().join(","));
        let few = ["faults.csv", "workloads.csv"].contains(&table.file);
        let filled = rows.lines().count() > 20 || few;
        assert!(filled, "{}", table.file);
        for row in rows.lines() {
            let cells: Vec<&str> = row.split(',').collect();
            assert_eq!(cells.len(), table.columns.len(), "{}: {row}", table.file);
            for (column, cell) in table.columns.iter().zip(cells) {
                let number = cell.parse::<f64>();
                if !column.unit.is_empty() && !cell.is_empty() {
                    assert!(number.is_ok(), "{} {}: {cell}", table.file, column.name);
                }
                *sums.entry((table.file, column.name.as_str())).or_insert(0.0) +=
                    number.unwrap_or(0.0);
            }
        }
    }
    let summary = fs::read_to_string(folder.join("out/summary.json")).expect("summary");
    let summary: Value = serde_json::from_str(&summary).expect("JSON");
    assert_eq!(summary["schema_version"], 2);
    let run = &summary["runs"][0];
    let goodput = run["goodput_gbps"].as_f64().expect("number");
    let near = |sum: f64, whole: f64| (sum / whole - 1.0).abs() < 1e-3;
    assert!(near(sums[&("flows.csv", "goodput_gbps")], goodput), "{sums:?}");
    assert!(near(sums[&("workloads.csv", "goodput_gbps")], goodput), "{sums:?}");
    let ops = run["measured"]["ops"].as_f64().expect("number");
    assert!(near(sums[&("workloads.csv", "ops")], ops), "{sums:?}");
    let sent = run["measured"]["data_packets_sent"].as_f64().expect("number");
    assert!(near(sums[&("flows.csv", "packets_sent")], sent), "{sums:?}");
    let hops = run["work"]["packet_hops"].as_f64().expect("number");
    assert!(near(sums[&("ports.csv", "sent_packets")], hops), "{sums:?}");
}

/// Two swift workloads and one cubic workload, two of them in one class. The op of 1 GB takes 80 ms and does not end in
/// 2 ms.
const WORKLOADS: &str = "duration = \"2ms\"\n[algorithm.swift]\n[algorithm.cubic]\n\
    [topology]\nkind = \"star\"\nhosts = 4\nrate = \"100Gbps\"\ndelay = \"1us\"\nbuffer = \"1MB\"\n\
    [[topology.class]]\nname = \"gold\"\n[[topology.class]]\nname = \"bulk\"\n\
    [[workload]]\nname = \"web\"\nkind = \"incast\"\nsenders = [0]\nsize = \"16kB\"\n\
    algorithm = \"swift\"\nclass = \"gold\"\ndeadline = \"1us\"\n\
    [[workload]]\nkind = \"incast\"\nsenders = [1]\nsize = \"64kB\"\nalgorithm = \"swift\"\nclass = \"bulk\"\n\
    [[workload]]\nkind = \"incast\"\nsenders = [2]\nsize = \"1GB\"\nalgorithm = \"cubic\"\nclass = \"bulk\"\n";

/// The text has a single table: a row for each workload, and for each algorithm and class with several workloads. Cells
/// are aligned with their headings, and a censored latency shows its lower bound.
#[test]
fn several_workloads_are_one_table_of_the_text() {
    let folder = folder("workloads_text");
    fs::write(folder.join("mix.toml"), WORKLOADS).expect("written");
    let text = apus(&folder, &["run", "mix.toml"]);
    let from =
        text.lines().position(|line| line.trim_start().starts_with("workload ")).expect("table");
    let table: Vec<&str> = text.lines().skip(from).take(6).collect();
    let heads = [
        "workload",
        "algorithm",
        "class",
        "ops",
        "unfinished",
        "oldest, us",
        "goodput, Gb/s",
        "share, %",
        "latency p50, us",
        "latency p99, us",
        "slowdown p99",
        "late, %",
    ];
    assert_eq!(
        table[0].split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect::<Vec<_>>(),
        heads
    );
    let cell = |row: usize, head: &str| {
        let starts: Vec<usize> = table[0].match_indices(head).map(|(at, _)| at).collect();
        let [at] = starts[..] else { panic!("{head}: {starts:?} in {}", table[0]) };
        let line = table[row];
        assert!(line[..at].ends_with("  "), "{line}");
        line[at..].split("  ").next().expect("cell").trim()
    };
    let number = |row, head: &str| cell(row, head).parse::<f64>().expect("number");
    let named: Vec<[&str; 3]> =
        (1..6).map(|row| ["workload", "algorithm", "class"].map(|head| cell(row, head))).collect();
    assert_eq!(
        named,
        [
            ["web", "swift", "gold"],
            ["incast-1", "swift", "bulk"],
            ["incast-2", "cubic", "bulk"],
            ["total", "swift", "-"],
            ["total", "-", "bulk"],
        ]
    );
    assert_eq!((number(1, "ops") + number(2, "ops"), cell(3, "ops")), (number(4, "ops"), "0"));
    assert_eq!([1, 2, 3, 5].map(|row| cell(row, "unfinished")), ["0", "0", "1", "1"]);
    let oldest = number(3, "oldest, us");
    assert!(oldest >= 2000.0 && number(5, "oldest, us") == oldest, "{text}");
    assert_eq!(cell(3, "latency p50"), format!(">= {oldest}"));
    assert!(cell(3, "slowdown").starts_with(">= "), "{text}");
    // 16 kB take more than 1 us at 100 Gb/s, so every op is late.
    assert_eq!([1, 2, 4, 5].map(|row| cell(row, "late, %")), ["100", "-", "-", "-"]);
    assert!([4, 5].iter().all(|&row| cell(row, "latency p99") == "-"), "{text}");
    let shares: f64 = (1..4).map(|row| number(row, "share")).sum();
    assert!((shares - 100.0).abs() < 0.1, "{text}");
}

/// A single workload is shown in a line instead of a table.
#[test]
fn a_single_workload_is_a_line_of_the_text() {
    let folder = folder("workload_text");
    let text = WORKLOADS.split("[[workload]]").take(2).collect::<Vec<_>>().join("[[workload]]");
    let text = text.replace("[algorithm.cubic]\n", "");
    let text = text.replace("buffer = \"1MB\"\n", "buffer = \"1MB\"\nack_class = \"bulk\"\n");
    fs::write(folder.join("one.toml"), text).expect("written");
    let text = apus(&folder, &["run", "one.toml"]);
    assert!(!text.contains("slowdown p99"), "{text}");
    let line = text.lines().find(|line| line.contains("workload web")).expect("a line");
    assert!(line.ends_with("; swift, class gold") && line.contains("100 % of them late"), "{line}");
}

/// `workloads.csv` has the numbers of the summary. The cell of a censored number is empty, and the next columns have
/// its bounds.
#[test]
fn workloads_are_rows_of_a_table_and_of_the_page() {
    let folder = folder("workloads");
    fs::write(folder.join("mix.toml"), WORKLOADS).expect("written");
    apus(&folder, &["run", "mix.toml", "--out", "out"]);
    let summary = fs::read_to_string(folder.join("out/summary.json")).expect("summary");
    let summary: Value = serde_json::from_str(&summary).expect("JSON");
    let run = &summary["runs"][0];
    let table = fs::read_to_string(folder.join("out/workloads.csv")).expect("workloads.csv");
    let mut lines = table.lines();
    let heads: Vec<&str> = lines.next().expect("header").split(',').collect();
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 3, "{table}");
    let cell = |row: usize, head: &str| {
        rows[row][heads.iter().position(|name| *name == head).expect("column")]
    };
    for (row, name) in ["web", "incast-1", "incast-2"].into_iter().enumerate() {
        assert_eq!(cell(row, "workload"), name);
        let latency = &run["workload"][name]["op_latency_us"];
        let slowdown = &run["workload"][name]["slowdown"];
        for (column, value) in [
            ("op_latency_p50_us", &latency["p50"]),
            ("op_latency_p50_lower_us", &latency["lower"]["p50"]),
            ("op_latency_p50_upper_us", &latency["upper"]["p50"]),
            ("op_latency_p99_us", &latency["p99"]),
            ("op_latency_p99_lower_us", &latency["lower"]["p99"]),
            ("op_latency_p99_upper_us", &latency["upper"]["p99"]),
            ("slowdown_p99", &slowdown["p99"]),
            ("slowdown_p99_lower", &slowdown["lower"]["p99"]),
            ("slowdown_p99_upper", &slowdown["upper"]["p99"]),
            ("ops", &run["workload"][name]["ops"]),
            ("unfinished_ops", &latency["unfinished"]),
            ("goodput_gbps", &run["workload"][name]["goodput_gbps"]),
        ] {
            let shown = cell(row, column).parse::<f64>().ok();
            let same = match (shown, value.as_f64()) {
                (Some(shown), Some(value)) => (shown - value).abs() < 1e-5,
                (shown, value) => shown == value,
            };
            assert!(same, "{name} {column}: {shown:?}, {value}");
        }
    }
    let censored =
        ["op_latency_p99_us", "op_latency_p99_upper_us"].map(|column| cell(2, column).is_empty());
    assert_eq!(censored, [true, true]);
    assert!(cell(2, "op_latency_p99_lower_us").parse::<f64>().is_ok_and(|us| us >= 2000.0));
    assert!(cell(0, "oldest_unfinished_us").is_empty());
    let page = fs::read_to_string(folder.join("out/report.html")).expect("report");
    let data = page.split_once("type=\"application/json\">").expect("data").1;
    let data = data.split_once("</script>").expect("an end").0;
    let data: Value = serde_json::from_str(data).expect("JSON");
    let shown = data["runs"][0]["workloads"].as_array().expect("rows");
    let names: Vec<&Value> = shown.iter().map(|row| &row[0]).collect();
    assert_eq!(names, ["workload", "web", "incast-1", "incast-2", "total", "total"]);
    assert!(!data["runs"][0]["text"].as_str().expect("text").contains("slowdown p99"));
    let Some(browser) = browser() else { return };
    let dom = open(browser, &folder.join("out/report.html"), &folder.join("profile"), UNTIL_DONE);
    assert!(dom.contains("Each workload by itself") && dom.contains("incast-2</td>"));
}
