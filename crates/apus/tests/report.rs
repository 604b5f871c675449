//! The report in a real browser: headless Chromium, if the machine has one.

// Why a test was skipped, and how long the page took.
#![allow(clippy::print_stdout)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const PROBE: &str = include_str!("report_probe.js");

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("folder");
    folder
}

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

fn apus(folder: &Path, arguments: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_apus"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("process");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn range(value: &Value) -> (f64, f64) {
    (value[0].as_f64().expect("low"), value[1].as_f64().expect("high"))
}

/// 5000 flows: under 10 MB and open in less than 2 s; hover shows values, a drag zooms every chart
/// over time, a double click zooms out, the filter and the legend choose lines.
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
    // In real time, from the start of the page to the last chart; the best of three, as others use the
    // machine too.
    let mut ready = u32::MAX;
    for _ in 0..3 {
        let dom = open(browser, &folder.join("out/report.html"), &profile, &[]);
        let ms = dom.split_once("data-ready-ms=\"").expect("the script ran").1;
        ready = ready.min(ms.split('"').next().and_then(|ms| ms.parse().ok()).expect("number"));
        if ready < 2000 {
            break;
        }
    }
    println!("{} bytes, open after {ready} ms", page.len());
    assert!(ready < 2000, "{ready} ms");
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
    for table in apus_sim::columns::TABLES.iter().filter(|table| table.file.ends_with(".csv")) {
        let text = fs::read_to_string(folder.join("out").join(table.file)).expect(table.file);
        let (header, rows) = text.split_once('\n').expect("a header");
        assert_eq!(header.to_owned() + "\n", table.header());
        let filled = rows.lines().count() > 20 || table.file == "faults.csv";
        assert!(filled, "{}", table.file);
        for row in rows.lines() {
            let cells: Vec<&str> = row.split(',').collect();
            assert_eq!(cells.len(), table.columns.len(), "{}: {row}", table.file);
            for (column, cell) in table.columns.iter().zip(cells) {
                let number = cell.parse::<f64>();
                if !column.unit.is_empty() && !cell.is_empty() {
                    assert!(number.is_ok(), "{} {}: {cell}", table.file, column.name);
                }
                *sums.entry((table.file, column.name)).or_insert(0.0) += number.unwrap_or(0.0);
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
    let sent = run["measured"]["data_packets_sent"].as_f64().expect("number");
    assert!(near(sums[&("flows.csv", "packets_sent")], sent), "{sums:?}");
    let hops = run["work"]["packet_hops"].as_f64().expect("number");
    assert!(near(sums[&("ports.csv", "sent_packets")], hops), "{sums:?}");
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
