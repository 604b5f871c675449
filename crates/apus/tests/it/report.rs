//! The report in a real browser: headless Chromium, if the machine has one.

// Why a test was skipped, and how long a page took to open.
#![allow(clippy::print_stdout)]

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::command::folder;
use serde_json::Value;

const PROBE: &str = include_str!("report_probe.js");

fn browser() -> Option<&'static str> {
    let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    });
    if found.is_none() {
        println!("skipped: there is no chromium here (Debian: apt-get install chromium)");
    }
    found
}

/// Lets timers run ahead of real time until nothing is left to do.
const UNTIL_DONE: &[&str] = &["--virtual-time-budget=10000"];

/// The page after its scripts and ours have run.
fn open(browser: &str, page: &Path, profile: &Path, more: &[&str]) -> String {
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args(["--window-size=1400,2000", "--dump-dom"])
        .args(more)
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("browser");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn apus(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_apus"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("process");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// A report of 5000 flows opens in less than 2 s, from the start of the page to the last chart. Runs with
/// `APUS_REPORT_TIME=1` only, because it measures real time and needs an idle machine.
#[test]
fn a_report_of_5000_flows_opens_in_two_seconds() {
    if std::env::var_os("APUS_REPORT_TIME").is_none() {
        println!("skipped: runs with APUS_REPORT_TIME=1 only, on an idle machine");
        return;
    }
    let folder = folder("report_time");
    apus(&folder, &["run", "bench/incast-5000", "--out", "out"]);
    let Some(browser) = browser() else { return };
    let dom = open(browser, &folder.join("out/report.html"), &folder.join("profile"), &[]);
    let ms = dom.split_once("data-ready-ms=\"").expect("the script ran").1;
    let ready: u32 = ms.split('"').next().and_then(|ms| ms.parse().ok()).expect("number");
    println!("open after {ready} ms");
    assert!(ready < 2000, "{ready} ms");
}

fn range(value: &Value) -> (f64, f64) {
    (value[0].as_f64().expect("low"), value[1].as_f64().expect("high"))
}

/// A report of 5000 flows takes less than 10 MB. In it, hover shows values, a drag zooms every chart
/// over time, a double click zooms out, and the filter and the legend choose lines.
#[test]
fn a_report_of_5000_flows_can_be_used() {
    let folder = folder("report");
    apus(&folder, &["run", "bench/incast-5000", "--out", "out"]);
    let page = fs::read_to_string(folder.join("out/report.html")).expect("report");
    assert!(page.len() < 10_000_000, "{} bytes", page.len());
    for outside in ["src=\"http", "href=\"http", "url(", "@import", "fetch(", "XMLHttpRequest"] {
        assert!(!page.contains(outside), "the report asks for something outside: {outside}");
    }
    let Some(browser) = browser() else { return };
    let profile = folder.join("profile");
    let errors = "<head><script>window.problems = []; window.addEventListener('error', \
                  event => window.problems.push(event.message));</script>";
    let probed = page.replacen("<head>", errors, 1);
    let probed = probed.replacen("</body>", &format!("<script>{PROBE}</script></body>"), 1);
    fs::write(folder.join("probed.html"), probed).expect("written");
    let dom = open(browser, &folder.join("probed.html"), &profile, UNTIL_DONE);
    let seen = dom.rsplit_once("<pre id=\"probe\">").expect("the probe ran").1;
    let seen = seen.split_once("</pre>").expect("an end").0.replace("&gt;", ">");
    let seen: Value = serde_json::from_str(&seen).expect("JSON");
    assert_eq!(seen["errors"].as_array().map(Vec::len), Some(0), "{seen}");
    assert_eq!(seen["charts"], 7, "{seen}");
    assert!(seen["topology"].as_f64().expect("width") > 100.0, "{seen}");
    let tip = seen["tip"].as_str().expect("text");
    assert!(tip.starts_with("time, ms 25") && tip.contains("median of flows"), "{seen}");
    assert_eq!(seen["tip_shown"], "block");
    let (before, zoomed, after) =
        (range(&seen["before"]), range(&seen["zoomed"]), range(&seen["after"]));
    let width = |range: (f64, f64)| range.1 - range.0;
    assert!((width(zoomed) / width(before) - 0.5).abs() < 0.05, "{seen}");
    let other = range(&seen["zoomed_with_it"]);
    assert!((other.0 - zoomed.0).abs() < 1e-6 && (other.1 - zoomed.1).abs() < 1e-6, "{seen}");
    assert_eq!(after, before);
    assert_eq!(seen["shown"].as_array().map(Vec::len), Some(4), "{seen}");
    assert_eq!(seen["filtered"], serde_json::json!(["flow 78: host 1 -> host 127"]));
    assert_eq!(seen["hidden"].as_array().map(Vec::len), Some(3), "{seen}");
}

/// Every table has the header that the reference names, and as many cells in every row; sums over
/// the tables are the summary's numbers.
#[test]
fn tables_are_what_the_reference_says() {
    let folder = folder("tables");
    apus(&folder, &["run", "bench/incast-100", "--set", "duration=5ms", "--out", "out"]);
    let mut sums = std::collections::BTreeMap::new();
    for table in apus_sim::results::TABLES.iter().filter(|table| table.file.ends_with(".csv")) {
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

/// Two workloads of swift and one of cubic, two of them in one class. The op of 1 GB takes 80 ms and does not
/// end in 2 ms.
const WORKLOADS: &str = "duration = \"2ms\"\n[algorithm.swift]\n[algorithm.cubic]\n\
    [topology]\nkind = \"star\"\nhosts = 4\nrate = \"100Gbps\"\ndelay = \"1us\"\nbuffer = \"1MB\"\n\
    [[topology.class]]\nname = \"gold\"\n[[topology.class]]\nname = \"bulk\"\n\
    [[workload]]\nname = \"web\"\nkind = \"incast\"\nsenders = [0]\nsize = \"16kB\"\n\
    algorithm = \"swift\"\nclass = \"gold\"\ndeadline = \"1us\"\n\
    [[workload]]\nkind = \"incast\"\nsenders = [1]\nsize = \"64kB\"\nalgorithm = \"swift\"\nclass = \"bulk\"\n\
    [[workload]]\nkind = \"incast\"\nsenders = [2]\nsize = \"1GB\"\nalgorithm = \"cubic\"\nclass = \"bulk\"\n";

/// The text has one table: a row for each workload and for each algorithm and class of several, the cells
/// below their headings, and a censored latency with its lower bound.
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
    // 16 kB take more than 1 us at 100 Gb/s, in every op.
    assert_eq!([1, 2, 4, 5].map(|row| cell(row, "late, %")), ["100", "-", "-", "-"]);
    assert!([4, 5].iter().all(|&row| cell(row, "latency p99") == "-"), "{text}");
    let shares: f64 = (1..4).map(|row| number(row, "share")).sum();
    assert!((shares - 100.0).abs() < 0.1, "{text}");
}

/// One workload has a line and no table.
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

/// `workloads.csv` has the numbers of the summary: a censored one is empty, with its bounds in the next columns.
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
    assert!(dom.contains("Workloads side by side") && dom.contains("incast-2</td>"));
}

/// A fault stands in the text, in `faults.csv`, in every chart over time and at its link in the topology.
#[test]
fn faults_show_in_text_tables_charts_and_topology() {
    let folder = folder("faults");
    let scenario = "duration = \"4ms\"\nalgorithm = { name = \"swift\" }\n\
        topology = \"star hosts=4 100Gbps 1us\"\n\
        [[workload]]\nkind = \"permutation\"\nsize = \"64kB\"\noutstanding = 4\n\
        [[fault]]\nlink = \"switch 0 <-> host 1\"\nkind = \"down\"\nat = \"1ms\"\nuntil = \"3ms\"\n";
    fs::write(folder.join("down.toml"), scenario).expect("written");
    let output = Command::new(env!("CARGO_BIN_EXE_apus"))
        .args(["run", "down.toml", "--out", "out"])
        .current_dir(&folder)
        .output()
        .expect("process");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let loss = text.lines().find(|line| line.trim_start().starts_with("loss")).expect("loss");
    assert!(loss.contains("link down") && loss.contains("switch 0 -> host 1"), "{text}");
    assert!(!loss.contains("none"), "{text}");
    let band = "link down from 1000 us to 3000 us: switch 0 -> host 1";
    assert!(text.contains(band), "{text}");
    let table = fs::read_to_string(folder.join("out/faults.csv")).expect("faults.csv");
    let rows: Vec<&str> = table.lines().skip(1).collect();
    assert_eq!(rows.len(), 2, "{table}");
    assert!(rows.contains(&"down,switch 0 -> host 1,1000,3000,,,"), "{table}");
    let ports = fs::read_to_string(folder.join("out/ports.csv")).expect("ports.csv");
    let column = ports.lines().next().expect("header").split(',');
    let column = column.clone().position(|name| name == "link_down_drops").expect("a column");
    let own = ports.lines().find(|row| row.starts_with("switch 0 -> host 1,")).expect("a port");
    assert!(
        own.split(',').nth(column).expect("a cell").parse::<u64>().expect("drops") > 0,
        "{own}"
    );
    let page = fs::read_to_string(folder.join("out/report.html")).expect("report");
    let data = page.split_once("\"faults\":[{").expect("faults of the charts").1;
    assert!(data.starts_with("\"at_us\":1000.0,\"instant\":false,"), "{}", &data[..200]);
    // The link of the topology names both of its faults.
    let back = "link down from 1000 us to 3000 us: host 1 -> switch 0";
    let link = [format!("[\"{band}\",\"{back}\"]"), format!("[\"{back}\",\"{band}\"]")];
    assert!(link.iter().any(|link| page.contains(link)), "{link:?}");
    let Some(browser) = browser() else { return };
    let probe = "<script>document.body.append(Object.assign(document.createElement('pre'), { id: \
                 'probe', textContent: window.report.charts.map(u => (u.faults || []).length).join() }));\
                 </script></body>";
    fs::write(folder.join("probed.html"), page.replacen("</body>", probe, 1)).expect("written");
    let dom = open(browser, &folder.join("probed.html"), &folder.join("profile"), UNTIL_DONE);
    let seen = dom.rsplit_once("<pre id=\"probe\">").expect("the probe ran").1;
    let counts = seen.split_once("</pre>").expect("an end").0;
    // Rates, windows, RTT, queues and throughput over time; not the distributions.
    assert_eq!(counts.split(',').filter(|count| *count == "2").count(), 5, "{counts}");
}

/// The paper's numbers beside ours, and the tables of every variant.
#[test]
fn reproduce_writes_a_report_with_the_papers_numbers() {
    let folder = folder("reproduced");
    apus(&folder, &["reproduce", "swift/fig17", "--quick", "--out", "out"]);
    let out = folder.join("out/swift/fig17");
    for file in ["summary.json", "report.html", "effective-15us.toml", "15us/ops.csv"] {
        assert!(out.join(file).is_file(), "{file}");
    }
    let Some(browser) = browser() else { return };
    let dom = open(browser, &out.join("report.html"), &folder.join("profile"), UNTIL_DONE);
    assert!(dom.contains("throughput over its maximum, 25us"));
    assert!(dom.contains("<td class=\"pass\">pass</td>"));
    assert!(dom.contains("<canvas"));
}
