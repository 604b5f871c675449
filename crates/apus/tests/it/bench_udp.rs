//! `apus bench udp`: every contestant runs, and its output has the shape that scripts read.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::command::{self, apus};
use crate::support::{interrupt, until};

fn json(arguments: &[&str]) -> Value {
    let output = apus(Path::new("/"), &[&["bench", "udp", "--json"], arguments].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn names(section: &Value) -> Vec<&str> {
    let rows = section["rows"].as_array().expect("rows");
    rows.iter().map(|row| row["name"].as_str().expect("a name")).collect()
}

/// Returns a number for each turn.
fn turns(row: &Value, name: &str) -> Vec<f64> {
    let turns = row["turns"].as_array().expect("turns");
    turns.iter().map(|turn| turn[name].as_f64().expect(name)).collect()
}

/// The command fails if the two ends of a contestant counted different numbers of bytes.
#[test]
fn every_contestant_runs_in_every_turn_and_ratios_are_those_of_one_turn() {
    let report = json(&[
        "--turns",
        "3",
        "--duration",
        "3ms",
        "--only",
        "round-trips",
        "--gap",
        "0s",
        "--gap",
        "100us",
        "--only",
        "writes",
    ]);
    assert_eq!(
        (&report["facts"]["turns"], &report["facts"]["seconds"]),
        (&3.into(), &0.003.into())
    );
    assert!(report["facts"]["kernel"].as_str().is_some_and(|kernel| !kernel.is_empty()));
    let sections = report["sections"].as_array().expect("sections");
    let settings: Vec<_> = sections.iter().map(|section| &section["setting"]).collect();
    assert_eq!(
        settings,
        ["1 client, gap 0", "1 client, gap 100 us", "writes of 1 MiB", "writes of 64 B"]
    );
    for section in &sections[..2] {
        let all = [
            "UDP, blocking",
            "TCP, blocking",
            "Apus message, sealed",
            "Apus write, sealed",
            "Apus read, sealed",
        ];
        assert_eq!(names(section), all);
        let rows = section["rows"].as_array().expect("rows");
        let base = turns(&rows[0], "p50_us");
        for row in rows {
            let (p50, p99) = (turns(row, "p50_us"), turns(row, "p99_us"));
            assert_eq!(p50.len(), 3);
            assert!(p50.iter().zip(&p99).all(|(p50, p99)| *p50 > 0.0 && p50 <= p99), "{row}");
            assert!(turns(row, "ops").iter().all(|&ops| ops > 0.0), "{row}");
            assert!(row["cpu_us_per_op"]["median"].as_f64().expect("CPU") > 0.0);
            assert_eq!(row["base"], "UDP, blocking");
            // The ratio is the median of three quotients.
            let mut ratios: Vec<f64> =
                p50.iter().zip(&base).map(|(own, base)| own / base).collect();
            ratios.sort_by(f64::total_cmp);
            let [min, median, max] = ratios[..] else { panic!("three turns") };
            let spread = &row["p50_ratio"];
            for (name, value) in [("min", min), ("median", median), ("max", max)] {
                assert!((spread[name].as_f64().expect(name) - value).abs() < 1e-9, "{name}: {row}");
            }
        }
    }
    assert_eq!(
        names(&sections[2]),
        [
            "Apus write, sealed, inline, 4 outstanding",
            "Apus write, sealed, 4 outstanding",
            "TCP, blocking"
        ]
    );
    assert_eq!(
        names(&sections[3]),
        [
            "Apus write, sealed, inline, 512 outstanding",
            "Apus write, sealed, 64 outstanding",
            "Apus write, sealed, 1024 outstanding",
        ]
    );
    for (section, bytes) in [(&sections[2], 1048576.0), (&sections[3], 64.0)] {
        for row in section["rows"].as_array().expect("rows") {
            let goodput = turns(row, "goodput_gbps");
            for (ops, gbps) in turns(row, "ops_per_second").iter().zip(goodput) {
                assert!((ops * bytes * 8e-9 - gbps).abs() <= 1e-9 * gbps, "{row}");
            }
            assert_eq!(row["base"], names(section)[0]);
        }
    }
}

#[test]
fn several_clients_busy_threads_and_idle_connections_have_their_own_sections() {
    let short = ["--insecure", "--turns", "1", "--duration", "2ms"];
    let parts = ["--only", "clients", "--only", "busy", "--only", "idle"];
    let output = apus(Path::new("/"), &[&["bench", "udp"], &short[..], &parts].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let line = |word: &str| {
        let mut lines = text.lines().filter(|line| line.starts_with('|'));
        lines.find(|line| line.contains(word)).unwrap_or_else(|| panic!("{word} in {text}"))
    };
    let (row, header) = (line("Apus message, insecure"), line("contestant"));
    assert_eq!(row.matches('|').count(), header.matches('|').count(), "{text}");
    for words in ["8 clients, gap 0", "| busy threads' CPU, %", "100 idle connections"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

/// Servers on "another machine"; they end with the test.
struct Listening(Child);

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn servers_of_another_process_need_the_same_key() {
    let folder = command::folder("bench-udp");
    for name in ["one", "other"] {
        assert!(apus(&folder, &["key", name]).status.success());
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_apus"));
    command.current_dir(&folder).args([
        "bench",
        "udp",
        "--listen",
        "127.0.0.1:0",
        "--key-file",
        "one",
    ]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("a process");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("stdout")).read_line(&mut line).expect("a line");
    let _listening = Listening(child);
    let address = line.trim().strip_prefix("listening on ").expect(&line);
    let measure = |key: &str| {
        let parts = ["--turns", "1", "--duration", "2ms", "--only", "round-trips", "--gap", "0s"];
        let own = ["bench", "udp", "--json", "--peer", address, "--key-file", key];
        apus(&folder, &[&own[..], &parts].concat())
    };
    let same = measure("one");
    assert!(same.status.success(), "{}", String::from_utf8_lossy(&same.stderr));
    let report: Value = serde_json::from_slice(&same.stdout).expect("JSON");
    assert_eq!(report["facts"]["server"], address);
    assert_eq!(names(&report["sections"][0]).len(), 5);
    let different = measure("other");
    let why = String::from_utf8_lossy(&different.stderr);
    assert_eq!(different.status.code(), Some(1), "{why}");
    assert!(why.contains("no answer from the peer"), "{why}");
    fs::remove_dir_all(folder).expect("the folder");
}

#[test]
fn wrong_options_are_errors() {
    for (options, words) in [
        (&["--turns", "0"][..], "--turns"),
        (&["--duration", "0s"], "longer than 0"),
        (&["--only", "everything"], "round-trips"),
        (&["--gap", "10"], "--gap"),
        (&["--only", "writes", "--gap", "0s"], "--gap has no effect"),
        (&["--key-file", "k"], "--key-file has no effect"),
        (&["--peer", "127.0.0.1:1"], "--insecure"),
        (&["--listen", "127.0.0.1:0"], "--key-file"),
    ] {
        let output = apus(Path::new("/"), &[&["bench", "udp"], options].concat());
        let why = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{options:?}: {why}");
        assert!(why.contains(words), "{options:?}: {why}");
        assert!(output.stdout.is_empty());
    }
}

/// Returns the processes that a process has started and that have not ended.
fn children(process: u32) -> Vec<u32> {
    let path = format!("/proc/{process}/task/{process}/children");
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().filter_map(|id| id.parse().ok()).collect()
}

#[test]
fn measurement_that_is_interrupted_says_what_it_has_and_that_it_is_partial() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_apus"));
    command.args(["bench", "udp", "--json", "--turns", "99", "--duration", "5ms"]);
    command.args(["--only", "round-trips", "--gap", "0s"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("run");
    // Each measurement starts two processes, so the first measurement has ended once there is a fifth process.
    let mut seen = BTreeSet::new();
    until("two measurements have ended", || {
        seen.extend(children(child.id()));
        seen.len() > 4
    });
    interrupt(&child);
    let output = child.wait_with_output().expect("its end");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["facts"]["partial"], "interrupted");
    let rows = report["sections"][0]["rows"].as_array().expect("rows");
    assert!(!rows.is_empty() && rows.len() <= 5);
    for row in rows {
        assert!(!row["turns"].as_array().expect("turns").is_empty(), "{row}");
    }
}

#[test]
fn calls_are_measured_next_to_messages() {
    let report = json(&["--turns", "1", "--duration", "3ms", "--only", "rpc"]);
    assert_eq!(report["facts"]["partial"], Value::Null);
    let sections = report["sections"].as_array().expect("sections");
    let settings: Vec<_> = sections.iter().map(|section| &section["setting"]).collect();
    assert_eq!(settings, ["1 outstanding", "64 outstanding"]);
    for section in sections {
        assert_eq!(names(section), ["Apus message, sealed", "Apus call, sealed"]);
        for row in section["rows"].as_array().expect("rows") {
            assert_eq!(row["base"], "Apus message, sealed");
            assert!(turns(row, "ops_per_second")[0] > 0.0, "{row}");
        }
    }
}
