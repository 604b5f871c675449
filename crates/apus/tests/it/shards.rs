//! Sweeps in shards: several processes, one table.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::support::command;
use serde_json::{Value, json};

const SCENARIO: &str = r#"
duration = "1ms"
topology = { kind = "star", hosts = 4, rate = "100Gbps", delay = "1us", buffer = "4MB" }
algorithm = { name = "swift" }
[[workload]]
kind = "incast"
size = "64kB"
[[variant]]
name = "whole"
set = { "algorithm.ai" = 1 }
[[variant]]
name = "half"
set = { "algorithm.ai" = 0.5 }
"#;

/// Five sizes, two variants and two seeds: 20 runs.
const SWEEP: [&str; 6] =
    ["sweep", "mine.toml", "--vary", "workload.size=1kB,4kB,16kB,64kB,256kB", "--seeds", "2"];

/// Files of the results.
const FILES: [&str; 4] = ["report.html", "sweep.csv", "sweep.json", "sweep.svg"];

fn folder(test: &str) -> PathBuf {
    let path = command::folder(test);
    fs::write(path.join("mine.toml"), SCENARIO).expect("file");
    path
}

fn apus(folder: &Path, arguments: &[&str], more: &[&str]) -> Output {
    command::apus(folder, &[arguments, more].concat())
}

/// Returns the output of a successful command.
#[track_caller]
fn succeeds(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

#[track_caller]
fn fails(output: &Output, code: i32, parts: &[&str]) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    for part in parts {
        assert!(stderr.contains(part), "{part} is not in {stderr}");
    }
}

fn same_files(a: &Path, b: &Path) {
    for file in FILES {
        let read = |folder: &Path| fs::read(folder.join(file)).expect(file);
        assert!(read(a) == read(b), "{file} differs");
    }
}

#[test]
fn shards_of_one_directory_give_the_table_of_one_process() {
    let folder = folder("one_directory");
    succeeds(&apus(&folder, &SWEEP, &["--out", "whole"]));
    let shard = |shard| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_apus"));
        command.current_dir(&folder).args(SWEEP).args(["--out", "parts", "--shard", shard]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("process")
    };
    // The shards run in parallel. The last two processes have the same shard, and both may run it.
    let shards = ["1/3", "2/3", "3/3", "3/3"].map(shard);
    for (child, runs) in shards.into_iter().zip([7, 7, 6, 6]) {
        let text = succeeds(&child.wait_with_output().expect("process"));
        assert!(text.contains(&format!(" of 3: {runs} of {runs} runs complete")), "{text}");
    }
    assert!(!folder.join("parts/sweep.csv").exists(), "a shard has no table");
    let text = succeeds(&apus(&folder, &["sweep", "--merge", "parts"], &[]));
    assert!(text.contains("20 of 20 runs complete. Table"), "{text}");
    same_files(&folder.join("whole"), &folder.join("parts"));
    // No incomplete file remains.
    let names = fs::read_dir(folder.join("parts/runs")).expect("runs").flatten();
    assert_eq!(names.filter(|name| name.path().extension() != Some("json".as_ref())).count(), 0);
}

#[test]
fn shards_of_several_directories_are_merged_when_all_are_there() {
    let folder = folder("several");
    succeeds(&apus(&folder, &SWEEP, &["--out", "whole"]));
    succeeds(&apus(&folder, &SWEEP, &["--out", "a", "--shard", "1/2"]));
    let merge = |folders: &[&str]| {
        apus(&folder, &[&["sweep", "--merge"], folders].concat(), &["--out", "all"])
    };
    let partial = merge(&["a"]);
    fails(&partial, 1, &["10 of 20 runs are missing", "workload.size=4kB, variant", "and 5 more"]);
    // The table contains the available runs.
    let table = fs::read_to_string(folder.join("all/sweep.csv")).expect("table");
    assert_eq!(table.lines().count(), 11);
    succeeds(&apus(&folder, &SWEEP, &["--out", "b", "--shard", "2/2"]));
    succeeds(&merge(&["a", "b"]));
    same_files(&folder.join("whole"), &folder.join("all"));
    let json =
        succeeds(&apus(&folder, &["sweep", "--merge", "a", "b"], &["--json", "--out", "all"]));
    assert_eq!(json, fs::read_to_string(folder.join("all/sweep.json")).expect("numbers"));
    fails(&apus(&folder, &["sweep", "--merge", "a", "b"], &[]), 2, &["need --out DIR"]);
}

/// Two merges may write one file at the same time; each file is complete at any moment.
#[test]
fn merges_at_the_same_time_into_one_directory_give_one_table() {
    let folder = folder("merges");
    succeeds(&apus(&folder, &SWEEP, &["--out", "whole"]));
    let merge = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_apus"));
        command.current_dir(&folder).args(["sweep", "--merge", "whole", "--out", "all"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("process")
    };
    for merge in (0..6).map(|_| merge()).collect::<Vec<_>>() {
        succeeds(&merge.wait_with_output().expect("process"));
    }
    same_files(&folder.join("whole"), &folder.join("all"));
    let names = fs::read_dir(folder.join("all")).expect("results").flatten();
    let names: Vec<_> = names.filter(|name| name.path().extension().is_some()).collect();
    assert_eq!(names.len(), FILES.len(), "{names:?}");
}

#[test]
fn shards_of_another_build_are_refused() {
    let folder = folder("build");
    succeeds(&apus(&folder, &SWEEP, &["--out", "a", "--shard", "1/20"]));
    let plan = folder.join("a/runs/plan.json");
    let text = fs::read_to_string(&plan).expect("plan");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    let build = json["build"].as_str().expect("a build");
    assert!(build.starts_with(concat!(env!("CARGO_PKG_VERSION"), "+")), "{build}");
    fs::write(&plan, text.replace(build, "0.1.0+other")).expect("plan");
    let refused = apus(&folder, &SWEEP, &["--out", "a", "--shard", "2/20"]);
    fails(&refused, 2, &["a/runs/plan.json", "build of apus is 0.1.0+other instead of"]);
}

#[test]
fn a_store_has_the_shards_of_one_sweep_only() {
    let folder = folder("other");
    succeeds(&apus(&folder, &SWEEP, &["--out", "a", "--shard", "1/20"]));
    let other = ["sweep", "mine.toml", "--vary", "workload.size=1kB,2kB", "--shard", "1/4"];
    let refused = apus(&folder, &other, &["--out", "a"]);
    fails(
        &refused,
        2,
        &["a/runs/plan.json", "--vary is workload.size=1kB,4kB", "another directory"],
    );
    succeeds(&apus(&folder, &other, &["--out", "b"]));
    let refused = apus(&folder, &["sweep", "--merge", "a", "b"], &["--out", "all"]);
    fails(&refused, 2, &["b: its shard is of another sweep than that of a: its --vary is"]);
    // The same command after the scenario has been edited.
    fs::write(folder.join("mine.toml"), SCENARIO.replace("4MB", "2MB")).expect("file");
    let refused = apus(&folder, &SWEEP, &["--out", "a", "--shard", "2/20"]);
    fails(&refused, 2, &["a/runs/plan.json", "scenario or other settings differ"]);
    let none = apus(&folder, &["sweep", "--merge", "nothing"], &[]);
    fails(&none, 2, &["nothing/runs/plan.json", "`apus sweep` writes it"]);
}

/// Packets of the second point take longer than the span of the watchdog.
#[test]
fn failures_are_kept_with_their_settings_and_run_again() {
    let folder = folder("failures");
    let sweep = ["sweep", "mine.toml", "--vary", "topology.delay=1us,400us", "--set"];
    let sweep = [&sweep[..], &["duration=3ms", "--out", "out"]].concat();
    let output = apus(&folder, &sweep, &["--watchdog", "300us"]);
    let settings = "topology.delay=400us, variant half, seed 1";
    fails(&output, 1, &[settings, "no packet was delivered for"]);
    let json = fs::read_to_string(folder.join("out/sweep.json")).expect("numbers");
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["runs"][1]["failure"], Value::Null);
    let failure = json["runs"][3]["failure"].as_str().expect("a failure");
    assert!(failure.contains(settings) && json["runs"][3]["summary"].is_null(), "{json}");
    let failed = || {
        let names = fs::read_dir(folder.join("out/runs")).expect("runs").flatten();
        let names = names.map(|entry| entry.file_name().into_string().expect("a name"));
        names.filter(|name| name.ends_with(".failed.json")).collect::<Vec<_>>()
    };
    assert_eq!(failed().len(), 2);
    let kept = fs::read_to_string(folder.join("out/runs").join(&failed()[0])).expect("kept");
    let kept: Value = serde_json::from_str(&kept).expect("JSON");
    assert!(kept["settings"].as_str().is_some_and(|text| text.starts_with("topology.delay=400us")));
    assert!(kept["effective"].as_str().is_some_and(|text| text.contains("400us")), "{kept}");
    // Merging reports them too.
    fails(&apus(&folder, &["sweep", "--merge", "out"], &[]), 1, &[settings]);
    // A later successful attempt replaces the failures.
    let text = succeeds(&apus(&folder, &sweep, &["--watchdog", "off"]));
    assert!(text.contains("4 of 4 runs complete (2 reused)"), "{text}");
    assert!(failed().is_empty());
    succeeds(&apus(&folder, &["sweep", "--merge", "out"], &[]));
}

/// If the runs of a plan do not fit its settings, the plan was not written by a sweep.
#[test]
fn a_plan_without_values_is_refused() {
    let folder = folder("values");
    succeeds(&apus(&folder, &SWEEP, &["--out", "out"]));
    let path = folder.join("out/runs/plan.json");
    let text = fs::read_to_string(&path).expect("a plan");
    let plan: Value = serde_json::from_str(&text).expect("JSON");
    let mut without = plan.clone();
    without["points"][0]["values"] = json!([]);
    let mut empty = plan;
    empty["vary"][0]["values"] = json!([]);
    for (wrong, part) in
        [(without, "a run does not have a value of each"), (empty, "a setting has no values")]
    {
        fs::write(&path, wrong.to_string()).expect("a plan");
        fails(&apus(&folder, &["sweep", "--merge", "out"], &["--out", "merged"]), 2, &[part]);
    }
}
