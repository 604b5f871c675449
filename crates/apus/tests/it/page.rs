//! The report in a real browser: headless Chromium, if the machine has one.

// Prints why a test was skipped, and how long a page took to open.
#![allow(clippy::print_stdout)]

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::report::apus;
use crate::support::command::folder;
use serde_json::{Value, json};

const PROBE: &str = include_str!("page_probe.js");

pub fn browser() -> Option<&'static str> {
    let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    });
    if found.is_none() {
        println!("skipped: there is no chromium here (Debian: apt-get install chromium)");
    }
    found
}

/// Advances timers faster than real time until no work is left.
pub const UNTIL_DONE: &[&str] = &["--virtual-time-budget=10000"];

/// Returns the page after its scripts and the test's script have run.
pub fn open(browser: &str, page: &Path, profile: &Path, more: &[&str]) -> String {
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--window-size=1400,2000", "--dump-dom"])
        .args(more)
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("browser");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Returns the observations of the probe after it has used a report like a person.
fn probe(folder: &Path, browser: &str) -> Value {
    let page = fs::read_to_string(folder.join("out/report.html")).expect("report");
    let errors = "<head><script>window.problems = []; window.addEventListener('error', \
                  event => window.problems.push(event.message));</script>";
    let probed = page.replacen("<head>", errors, 1);
    let probed = probed.replacen("</body>", &format!("<script>{PROBE}</script></body>"), 1);
    fs::write(folder.join("probed.html"), probed).expect("written");
    let dom = open(browser, &folder.join("probed.html"), &folder.join("profile"), UNTIL_DONE);
    let seen = dom.rsplit_once("<pre id=\"probe\">").expect("the probe ran").1;
    let seen =
        seen.split_once("</pre>").expect("an end").0.replace("&gt;", ">").replace("&lt;", "<");
    let seen: Value = serde_json::from_str(&seen).expect("JSON");
    assert_eq!(seen["errors"], json!([]), "{seen}");
    seen
}

/// A report with 5000 flows opens in less than 1 s, measured from the start of the page to the visible pictures. This
/// test runs only with `APUS_REPORT_TIME=1`, because it measures real time and needs an idle machine.
#[test]
fn a_report_of_5000_flows_opens_in_a_second() {
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
    assert!(ready < 1000, "{ready} ms");
}

fn range(value: &Value) -> f64 {
    value[1].as_f64().expect("high") - value[0].as_f64().expect("low")
}

/// A report with 5000 flows is smaller than 2 MB and requests nothing from outside. Hovering shows values, a drag zooms
/// every picture over time, a double click zooms out, and the filter and the legend select lines.
#[test]
fn a_report_of_5000_flows_can_be_used() {
    let folder = folder("report");
    apus(
        &folder,
        &["run", "bench/incast-5000", "--set", "duration=10ms", "--worst", "0", "--out", "out"],
    );
    let page = fs::read_to_string(folder.join("out/report.html")).expect("report");
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    for outside in ["src=\"http", "href=\"http", "@import", "fetch(", "XMLHttpRequest"] {
        assert!(!page.contains(outside), "the report asks for something outside: {outside}");
    }
    let Some(browser) = browser() else { return };
    let seen = probe(&folder, browser);
    // A round of 1 MiB ops of 5000 flows takes 420 ms on a link of 100 Gb/s, so no op ends in 10 ms.
    assert_eq!(seen["status"][0], "Problem: ", "{seen}");
    assert!(seen["definition"].as_str().expect("text").contains("op_latency_us"), "{seen}");
    let tip = seen["tip"].as_str().expect("text");
    assert!(tip.contains("median of flows") && tip.contains("ms"), "{seen}");
    assert!((range(&seen["zoomed"]) / range(&seen["before"]) - 0.5).abs() < 0.05, "{seen}");
    assert_eq!(seen["zoomed_with_it"], seen["zoomed"]);
    assert_eq!(seen["after"], seen["before"]);
    assert_eq!(seen["filtered"], json!(["flow 78: host 1 → host 127"]));
    assert_eq!(seen["without_median"], json!(false));
    assert!(seen["times"][0] != seen["times"][1], "the slider moves the topology: {seen}");
    assert!(seen["csv"].as_str().expect("CSV").starts_with("time_us,median of flows"), "{seen}");
    assert!(seen["svg"].as_str().expect("SVG").starts_with("<svg"), "{seen}");
    assert_eq!(seen["causes"], 0, "the second run was turned off: {seen}");
}

/// Of two flows neither finishes: the page says so, draws the available data, and reports no error.
#[test]
fn a_report_in_which_nothing_finished_says_so() {
    let folder = folder("report_unfinished");
    let scenario = "duration = \"1ms\"\ndrain = \"0s\"\nalgorithm = { name = \"swift\" }\n\
        topology = \"star hosts=3 100Gbps 1us\"\n[[workload]]\nkind = \"incast\"\nsize = \"1GB\"\n";
    fs::write(folder.join("long.toml"), scenario).expect("written");
    apus(&folder, &["run", "long.toml", "--out", "out"]);
    let Some(browser) = browser() else { return };
    let seen = probe(&folder, browser);
    assert_eq!(seen["status"][0], "Problem: ");
    assert!(seen["first"].as_str().expect("text").contains("2 of 2 ops had not ended"), "{seen}");
    // The causes of the unfinished ops are shown as well.
    assert_eq!(seen["causes"], 2, "{seen}");
    assert!(seen["answer"].as_str().expect("text").contains("not ended"), "{seen}");
}

/// Two hosts send to a third one over links of 8 Gb/s, one op of 100 packets each. The slower op waits at the port to
/// the receiver, behind packets of the other flow. The page leads from the tail to that queue.
#[test]
fn an_op_is_followed_to_the_queue_in_which_it_waited() {
    let folder = folder("report_cause");
    let scenario = "duration = \"4ms\"\n\
        algorithm = { name = \"constant\", window = 100.0 }\n\
        topology = \"star hosts=3 8Gbps 1us\"\n\
        [packets]\npayload = \"1000B\"\nheader = \"64B\"\n\
        [[workload]]\nkind = \"incast\"\nsize = \"100kB\"\n\
        [[fault]]\nlink = \"switch 0 <-> host 0\"\nkind = \"down\"\nat = \"2ms\"\nuntil = \"2.2ms\"\n";
    fs::write(folder.join("two.toml"), scenario).expect("written");
    apus(&folder, &["run", "two.toml", "--out", "out"]);
    let page = fs::read_to_string(folder.join("out/report.html")).expect("report");
    let data = page.split_once("type=\"application/json\">").expect("data").1;
    let data: Value =
        serde_json::from_str(data.split_once("</script>").expect("an end").0).expect("JSON");
    let causes = &data["runs"][0]["causes"];
    assert_eq!(causes["failed"], Value::Null, "{causes}");
    for op in causes["ops"].as_array().expect("ops") {
        // The parts of an op, each rounded to a nanosecond, sum to its latency.
        let parts = op["parts"].as_array().expect("parts");
        let sum: f64 = parts.iter().filter_map(|part| part[2].as_f64()).sum();
        let latency = op["latency_us"].as_f64().expect("number");
        assert!((sum / latency - 1.0).abs() < 2e-3, "{sum} {latency} {parts:?}");
    }
    // Both senders offer 8 Gb/s to a link of 8 Gb/s, with 100 packets each. When the last packet arrives, the port has
    // sent half of the 200 packets. The packet waits for the remaining ones: 100 packets of 1064 B at 1 B/ns take 106
    // us, less one packet in transmission.
    let first = causes["ops"]
        .as_array()
        .expect("ops")
        .iter()
        .find(|op| op["submit_us"] == 0.0 && op["op"] == 0);
    let first = first.expect("an op of the beginning");
    let waits: Vec<f64> = first["waits"]
        .as_array()
        .expect("waits")
        .iter()
        .filter_map(|wait| wait["us"].as_f64())
        .collect();
    assert!((waits[1] - 105.0).abs() < 3.0, "{waits:?}");
    let flows: Vec<&Value> =
        first["waits"][1]["named"].as_array().expect("flows").iter().map(|one| &one[0]).collect();
    assert_eq!(flows.len(), 2, "both flows were in the queue: {first}");
    let Some(browser) = browser() else { return };
    let seen = probe(&folder, browser);
    assert!(seen["causes"].as_u64().expect("count") > 2, "{seen}");
    assert!(seen["followed"].as_str().expect("text").contains("at switch 0 → host"), "{seen}");
    assert!(seen["members"].as_u64().expect("count") >= 1, "{seen}");
    assert!(seen["address"].as_str().expect("text").contains("op="), "{seen}");
    // The fault is a band in pictures over time. At its time, its link is dashed in the topology.
    assert!(seen["bands"].as_u64().expect("count") >= 4, "{seen}");
    assert_eq!(seen["broken"], 1, "{seen}");
}

/// A comparison draws one number against another, percentiles and bars; a sweep over two settings also has small
/// multiples.
#[test]
fn comparisons_share_axes() {
    let folder = folder("report_compare");
    let scenario = "duration = \"1ms\"\nalgorithm = { name = \"swift\" }\n\
        topology = \"star hosts=5 100Gbps 1us 400kB\"\n[[workload]]\nkind = \"incast\"\nsize = \"16kB\"\n";
    fs::write(folder.join("mine.toml"), scenario).expect("written");
    apus(
        &folder,
        &["compare", "mine.toml", "--algorithms", "swift,dctcp", "--seeds", "2", "--out", "out"],
    );
    let sweep = [
        "sweep",
        "mine.toml",
        "--vary",
        "workload.size=4kB,16kB",
        "--vary",
        "workload.outstanding=1,2",
        "--vary",
        "algorithm.base_target=25us,50us",
        "--out",
        "swept/out",
    ];
    apus(&folder, &sweep);
    let Some(browser) = browser() else { return };
    let seen = probe(&folder, browser);
    // Each run has its own times.
    assert!(seen["csv"].as_str().expect("CSV").starts_with("line,time_us,value\n"), "{seen}");
    assert_eq!(seen["zooms"], json!([["op", [-1.5, 2]]]), "{seen}");
    // The curves of both runs share their axes, and an op of each run can be followed.
    assert!(seen["causes"].as_u64().expect("count") > 2 && seen["answer"] != "", "{seen}");
    let dom = fs::read_to_string(folder.join("out/report.html")).expect("page");
    // Both algorithms have a recorded run whose slowest ops are followed.
    let (_, data, _) = data(&dom);
    for (place, name) in ["swift", "dctcp"].into_iter().enumerate() {
        let run = &data["runs"][place];
        assert_eq!(run["label"], name);
        assert!(run["causes"]["ops"].as_array().is_some_and(|ops| !ops.is_empty()), "{name}");
    }
    assert!(folder.join("out/runs").read_dir().expect("store").any(|file| {
        file.is_ok_and(|file| file.file_name().to_string_lossy().ends_with(".page.json"))
    }));
    let opened =
        open(browser, &folder.join("swept/out/report.html"), &folder.join("profile"), UNTIL_DONE);
    for picture in ["trade-off", "parallel-coordinates", "small-multiples"] {
        assert!(opened.contains(&format!("data-picture=\"{picture}\"")), "{picture}");
    }
    // The table has eight rows, one per combination, and every small picture has a line for each target.
    assert_eq!(opened.matches("<th scope=\"row\">").count(), 8);
    assert_eq!(probe(&folder.join("swept"), browser)["small_lines"], 2);
}

/// Returns the data of a page, and the texts before and after it.
fn data(page: &str) -> (&str, Value, &str) {
    let (head, rest) = page.split_once("type=\"application/json\">").expect("data");
    let (data, tail) = rest.split_once("</script>").expect("an end");
    (head, serde_json::from_str(data).expect("JSON"), tail)
}

/// Values that are lists contain commas. Two sweeps over the same setting have one curve each, and separate set-ups.
#[test]
fn curves_are_told_apart_by_directory_and_not_by_commas_in_values() {
    let folder = folder("report_lists");
    let scenario = "duration = \"1ms\"\nalgorithm = { name = \"swift\" }\n\
        topology = \"star hosts=4 100Gbps 1us 400kB\"\n\
        [[workload]]\nkind = \"poisson\"\nload = 0.3\nsize = \"16kB\"\n";
    fs::write(folder.join("mine.toml"), scenario).expect("written");
    let vary = ["sweep", "mine.toml", "--vary", "workload.hosts=[0, 1],[0, 1, 2]"];
    for (out, rate) in [("a/out", "topology.rate=100Gbps"), ("b/out", "topology.rate=25Gbps")] {
        apus(&folder, &[&vary[..], &["--set", rate, "--out", out]].concat());
    }
    fs::create_dir_all(folder.join("both/out")).expect("folder");
    apus(&folder, &["report", "a/out", "b/out", "--page", "both/out/report.html"]);
    let Some(browser) = browser() else { return };
    assert_eq!(probe(&folder.join("a"), browser)["curves"], json!([]));
    let both = probe(&folder.join("both"), browser);
    assert_eq!(both["curves"], json!(["a/out", "b/out"]), "{both}");
    let what = both["what"].as_str().expect("text");
    for (dir, rate) in [("a/out", "100 Gb/s"), ("b/out", "25 Gb/s")] {
        let line = what.split(dir).nth(1).unwrap_or_default();
        assert!(line.starts_with(": ") && line.replace("&nbsp;", " ").contains(rate), "{what}");
    }
    // The run has the same network as the first sweep, but its own load.
    apus(&folder, &["run", "mine.toml", "--set", "workload.load=0.2", "--out", "c/out"]);
    fs::create_dir_all(folder.join("run/out")).expect("folder");
    apus(&folder, &["report", "c/out", "a/out", "b/out", "--page", "run/out/report.html"]);
    let with_run = probe(&folder.join("run"), browser);
    let what = with_run["what"].as_str().expect("text").replace("&nbsp;", " ");
    assert!(what.contains("b/out: ") && what.contains("25 Gb/s"), "{what}");
    let shared = what.split("100 Gb/s").next().expect("the topology");
    assert!(!shared.contains("a/out: "), "{what}");
    assert!(what.contains("a/out, b/out: "), "{what}");
}

/// With the first setting, one of three seeds left two ops unfinished; with the second setting, one seed failed.
#[test]
fn a_sweep_has_finished_only_if_all_seeds_have() {
    let folder = folder("report_seeds");
    let scenario = "duration = \"1ms\"\nalgorithm = { name = \"swift\" }\n\
        topology = \"star hosts=3 100Gbps 1us 400kB\"\n[[workload]]\nkind = \"incast\"\nsize = \"16kB\"\n";
    fs::write(folder.join("mine.toml"), scenario).expect("written");
    let vary = ["sweep", "mine.toml", "--vary", "workload.size=4kB,16kB"];
    apus(&folder, &[&vary[..], &["--seeds", "3", "--out", "out"]].concat());
    let page = fs::read_to_string(folder.join("out/report.html")).expect("page");
    let (head, all, tail) = data(&page);
    let metrics = all["comparison"]["metrics"].as_array().expect("metrics");
    let open = metrics.iter().position(|one| one["name"] == "op_latency_us.unfinished");
    let open = open.expect("the number of unfinished ops");
    let Some(browser) = browser() else { return };
    let status = |numbers: [Value; 2]| {
        let mut changed = all.clone();
        for (row, number) in numbers.into_iter().enumerate() {
            changed["comparison"]["rows"][row]["numbers"][open] = number;
        }
        let changed = changed.to_string().replace('<', "\\u003c");
        let text = format!("{head}type=\"application/json\">{changed}</script>{tail}");
        fs::write(folder.join("out/report.html"), text).expect("written");
        probe(&folder, browser)["status"].clone()
    };
    let done = json!([0, 0, 0, 0, 0, [0, 0, 0]]);
    assert_eq!(status([done.clone(), done.clone()]), json!(["Finished: "]));
    let of_a_seed = json!([0, 0, 0, 0, 2, [0, 2, 0]]);
    assert_eq!(status([of_a_seed.clone(), done.clone()]), json!(["Warning: "]));
    let failed = json!([0, 0, 0, 0, 0, [0, null, 0]]);
    assert_eq!(status([done, failed.clone()]), json!(["Problem: "]));
    assert_eq!(status([of_a_seed, failed]), json!(["Problem: ", "Warning: "]));
}

/// A fault appears in the text, in `faults.csv` and in the data of the page.
#[test]
fn faults_show_in_text_tables_and_page() {
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
    let listed = rows.iter().any(|row| row.starts_with("down,switch 0 -> host 1,1000,3000,"));
    assert!(listed, "{table}");
    let ports = fs::read_to_string(folder.join("out/ports.csv")).expect("ports.csv");
    let column = ports.lines().next().expect("header").split(',');
    let column = column.clone().position(|name| name == "link_down_drops").expect("a column");
    let own = ports.lines().find(|row| row.starts_with("switch 0 -> host 1,")).expect("a port");
    assert!(
        own.split(',').nth(column).expect("a cell").parse::<u64>().expect("drops") > 0,
        "{own}"
    );
    let page = fs::read_to_string(folder.join("out/report.html")).expect("report");
    let data = page.split_once("type=\"application/json\">").expect("data").1;
    let data: Value =
        serde_json::from_str(data.split_once("</script>").expect("an end").0).expect("JSON");
    let faults = data["runs"][0]["recording"]["faults"].as_array().expect("faults");
    let named: Vec<&str> =
        faults.iter().map(|fault| fault["text"].as_str().expect("a text")).collect();
    let is_named = |text: &str| named.iter().any(|one| one.starts_with(text));
    let back = "link down from 1000 us to 3000 us: host 1 -> switch 0";
    assert!(named.len() == 2 && is_named(band) && is_named(back), "{named:?}");
    assert!(data["runs"][0]["status"].as_array().expect("lines").iter().any(|line| {
        // Both directions of the link share a line.
        let both = "Link down from 1000 us to 3000 us: host 1 <-> switch 0";
        line["level"] == "warn" && line["text"] == both
    }));
}

/// The page compares the paper's numbers with the simulated ones, and has the tables of every variant; `apus report`
/// joins such pages.
#[test]
fn reproduce_writes_a_report_with_the_papers_numbers() {
    let folder = folder("reproduced");
    apus(&folder, &["reproduce", "swift/fig17", "--quick", "--out", "out"]);
    let out = folder.join("out/swift/fig17");
    for file in ["summary.json", "report.html", "effective-15us.toml", "15us/ops.csv"] {
        assert!(out.join(file).is_file(), "{file}");
    }
    let of = |name: &str| {
        let page = fs::read_to_string(folder.join(name)).expect("page");
        page.matches("\"seeds\":1,\"setup\"").count()
    };
    let printed =
        apus(&folder, &["report", "out/swift/fig17", "out/swift/fig17", "--page", "both.html"]);
    assert_eq!(printed, "both.html\n");
    assert_eq!(of("both.html"), 2 * of("out/swift/fig17/report.html"));
    let Some(browser) = browser() else { return };
    let dom = open(browser, &out.join("report.html"), &folder.join("profile"), UNTIL_DONE);
    assert!(dom.contains("throughput over its maximum, 25us"));
    assert!(dom.contains("<td class=\"pass\">✓ pass</td>"));
    // The numbers are drawn over the settings, together with the paper's, and the slowest ops are followed.
    for picture in ["slowdown-tail", "panel-1", "causes"] {
        assert!(dom.contains(&format!("data-picture=\"{picture}\"")), "{picture}");
    }
}
