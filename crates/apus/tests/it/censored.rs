//! Numbers that are bounds because of unfinished ops: in reports, checks and tables.

use std::fs;

use crate::support::command::{apus as apus_in, folder, texts};
use serde_json::Value;

/// Each of four hosts writes to another host; the link of one host is down from 1.5 ms onwards.
const BROKEN: &str = r#"
duration = "3ms"
warmup = "1ms"
drain = "2ms"
topology = { kind = "star", hosts = 4, rate = "100Gbps", delay = "1us", buffer = "4MB" }
algorithm = { name = "swift" }
[[workload]]
kind = "permutation"
size = "64kB"
[[fault]]
link = "host 0 <-> switch 0"
kind = "down"
at = "1500us"
"#;

/// Two ops have been outstanding for 3.5 ms when the run ends, so the largest latency is not the 29 us of the other
/// ops.
#[test]
fn unfinished_ops_are_reported_and_censor_the_largest_latency() {
    let folder = folder("run_unfinished");
    fs::write(folder.join("mine.toml"), BROKEN).expect("file");
    let output = apus_in(&folder, &["run", "mine.toml", "--out", "out"]);
    let (stdout, stderr) = texts(&output);
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    let latency = stdout.lines().find(|line| line.contains("op latency")).expect("latency");
    for part in ["mean >= ", "max >= 35", "2 of ", "ops had not ended, the oldest of them after 35"]
    {
        assert!(latency.contains(part), "{part}: {latency}");
    }
    // Two lines count losses: one on all links, the other at switch ports in one phase.
    assert!(stdout.contains(" dropped at switch ports"), "{stdout}");
    assert!(stdout.contains("drain") && stdout.contains("until its limit"), "{stdout}");
    assert_eq!(stdout.matches("NO PROGRESS: flow ").count(), 2, "{stdout}");
    assert_eq!(stderr.matches("warning: mine: flow ").count(), 2, "{stderr}");
    assert!(stderr.contains("has been down since 1.5ms"), "{stderr}");
    let summary = fs::read_to_string(folder.join("out/summary.json")).expect("summary");
    let summary: Value = serde_json::from_str(&summary).expect("JSON");
    let latency = &summary["runs"][0]["op_latency_us"];
    assert_eq!((&latency["max"], &latency["upper"]["max"]), (&Value::Null, &Value::Null));
    assert!(latency["lower"]["max"].as_f64().expect("bound") > 3_500.0, "{latency}");
    assert_eq!(latency["unfinished"], 2);
    let ops = fs::read_to_string(folder.join("out/ops.csv")).expect("ops");
    assert_eq!(ops.matches(",unfinished,measured\n").count(), 2);
}

#[test]
fn a_check_of_a_censored_number_fails_and_says_why() {
    let folder = folder("check_censored");
    let check = "[[check]]\nname = \"longest\"\nkind = \"shape\"\nmetric = \"op_latency_us.max\"\nhigh = 1e9\n\
                 source = \"by hand\"\n";
    fs::write(folder.join("mine.toml"), format!("{BROKEN}{check}")).expect("file");
    let output = apus_in(&folder, &["run", "mine.toml"]);
    let (stdout, stderr) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{stdout}{stderr}");
    assert!(stdout.contains("(censored)"), "{stdout}");
    assert!(stdout.contains("longest FAILS: it is censored: 2 of "), "{stdout}");
}

/// Censored numbers are lower bounds in the tables of a sweep and a comparison.
#[test]
fn censored_numbers_are_marked_in_tables() {
    let folder = folder("tables_censored");
    fs::write(folder.join("mine.toml"), BROKEN).expect("file");
    let sweep = ["sweep", "mine.toml", "--vary", "workload.size=32kB,64kB", "--out", "swept"];
    let more = ["--metric", "op_latency_us.max"];
    let (stdout, _) = texts(&apus_in(&folder, &[&sweep[..], &more].concat()));
    assert_eq!(stdout.matches(">= 3").count(), 2, "{stdout}");
    let compare = ["compare", "mine.toml", "--algorithms", "swift,dctcp", "--seeds", "1"];
    let more = ["--metric", "op_latency_us.max", "--out", "compared"];
    let (stdout, _) = texts(&apus_in(&folder, &[&compare[..], &more].concat()));
    let line = stdout.lines().find(|line| line.starts_with("op_latency_us max")).expect("max");
    assert_eq!(line.matches(">= 3").count(), 2, "{stdout}");
}
