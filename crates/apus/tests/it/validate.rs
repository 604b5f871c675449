//! `apus validate`: errors without runs, and estimates of time and memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::support::command::{self, apus};
use serde_json::Value;

const SCENARIO: &str = include_str!("support/incast.toml");

/// Largest factor between the actual and the estimated number of events of a built-in scenario, in either direction,
/// that docs/clusters.md states. Only the run shows the length of its drain, so the estimate includes the same share of
/// the maximum number of drain events.
/// most events of a drain.
const FACTOR: f64 = 2.0;

fn folder(test: &str) -> PathBuf {
    let path = command::folder(test);
    fs::write(path.join("good.toml"), SCENARIO).expect("file");
    fs::write(path.join("bad.toml"), SCENARIO.replace("64kB", "64")).expect("file");
    path
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    (text(&output.stdout), text(&output.stderr))
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let output = apus(folder, &[&["validate", "--json"], arguments].concat());
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn every_file_is_checked_and_nothing_is_written() {
    let folder = folder("every");
    let output = apus(&folder, &["validate", "good.toml", "bad.toml", "none.toml", "swift/fig22"]);
    let (stdout, stderr) = texts(&output);
    assert_eq!(output.status.code(), Some(2), "{stdout}{stderr}");
    assert!(stdout.starts_with("good.toml: valid; one run, about "), "{stdout}");
    assert!(stdout.contains("\nswift/fig22: valid; "), "{stdout}");
    assert!(stderr.contains("bad.toml:6:8: `workload.size`"), "{stderr}");
    assert!(stderr.contains("none.toml: this file cannot be read"), "{stderr}");
    assert_eq!(fs::read_dir(&folder).expect("folder").count(), 2);
    let output = apus(&folder, &["validate", "good.toml", "--set", "workload.sise=1kB"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(texts(&output).1.contains("--set workload.sise=1kB"));
}

#[test]
fn json_has_errors_and_estimates() {
    let folder = folder("json");
    let all = json(&folder, &["good.toml", "bad.toml"]);
    assert_eq!((&all[0]["valid"], &all[1]["valid"]), (&true.into(), &false.into()));
    let run = &all[0]["runs"][0];
    assert!(run["memory_bytes"].as_u64().is_some_and(|bytes| bytes > 1 << 20), "{run}");
    // A run of a millisecond ends within its executed start.
    assert_eq!((&run["name"], &run["measured"]), (&"good".into(), &true.into()));
    assert!(all[1]["errors"][0].as_str().is_some_and(|text| text.contains("bad.toml:6:8")));
    let read = json(&folder, &["good.toml", "--no-estimate"]);
    assert!(read[0]["runs"][0]["events"].is_null() && read[0]["valid"] == true);
}

/// A run: its estimated and actual numbers of events, and whether the estimate is a measurement.
struct Compared {
    name: String,
    /// Estimated events, including the share of the drain that the run used.
    estimated: f64,
    actual: f64,
    measured: bool,
    /// Estimated and actual time, in seconds.
    seconds: (f64, f64),
}

impl Compared {
    /// Returns the factor between the actual number and the estimate, at least 1.
    fn factor(&self) -> f64 {
        (self.estimated / self.actual).max(self.actual / self.estimated)
    }
}

/// Estimates the runs of a scenario, and executes them.
fn compared(folder: &Path, scenario: &str, more: &[&str]) -> Vec<Compared> {
    let estimates = json(folder, &[&[scenario], more].concat());
    let output = apus(folder, &[&["run", scenario, "--json", "--threads", "1"], more].concat());
    let actual: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let (runs, cost) = (actual["runs"].as_array().expect("runs"), &actual["cost"]);
    let estimates = estimates[0]["runs"].as_array().expect("runs").clone();
    assert_eq!(estimates.len(), runs.len(), "{scenario}");
    let number = |value: &Value| value.as_f64().expect("a number");
    // Share of its limit that the drain took.
    let drained = |run: &Value| match number(&run["drain"]["limit_s"]) {
        limit if limit > 0.0 => number(&run["drain"]["seconds"]) / limit,
        _ => 0.0,
    };
    let pairs = (0..).zip(runs.iter().zip(estimates));
    pairs
        .map(|(place, (run, estimate)): (usize, _)| Compared {
            name: run["name"].as_str().expect("a name").to_owned(),
            estimated: number(&estimate["events"])
                + number(&estimate["drain_events"]) * drained(run),
            actual: number(&run["work"]["events"]),
            measured: estimate["measured"] == true,
            seconds: (number(&estimate["seconds"]), number(&cost[place]["wall_s"])),
        })
        .collect()
}

/// Neither the events of a run nor their estimate depend on the machine.
#[test]
fn estimated_events_are_near_the_actual_ones() {
    let folder = folder("events");
    fs::write(folder.join("long.toml"), SCENARIO.replace("1ms", "60ms")).expect("file");
    let mut all = compared(&folder, "long.toml", &[]);
    for scenario in ["swift/fig20", "swift/fig22", "bolt/fig2"] {
        all.extend(compared(&folder, scenario, &[]));
    }
    for scenario in ["expresspass/fig1", "compare/dctcp"] {
        all.extend(compared(&folder, scenario, &["--quick"]));
    }
    for run in &all {
        let Compared { name, estimated, actual, .. } = run;
        assert!(run.factor() <= FACTOR, "{name}: {estimated} instead of {actual}");
    }
    let estimated = all.iter().filter(|run| !run.measured).count();
    assert!(estimated > 3, "only {estimated} runs were longer than their beginning");
}

/// All built-in scenarios in full, with `APUS_ESTIMATES=1`; target/tmp/validate/all/estimates.csv has the numbers.
#[test]
fn events_of_every_built_in_scenario_are_estimated() {
    if std::env::var_os("APUS_ESTIMATES").is_none() {
        return;
    }
    let folder = folder("all");
    let names = texts(&apus(&folder, &["list", "scenarios"])).0;
    let mut table = "name,estimated,actual,measured,factor,estimated_s,actual_s\n".to_owned();
    let mut wrong = Vec::new();
    for scenario in names.lines().filter_map(|line| line.split_whitespace().next()) {
        for run in compared(&folder, scenario, &[]) {
            let Compared { name, estimated, actual, measured, seconds } = &run;
            let factor = run.factor();
            table += &format!(
                "{name},{estimated},{actual},{measured},{factor:.3},{:.3},{:.3}\n",
                seconds.0, seconds.1
            );
            if factor > FACTOR {
                wrong.push(format!("{name}: {estimated} instead of {actual}"));
            }
        }
        fs::write(folder.join("estimates.csv"), &table).expect("file");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
