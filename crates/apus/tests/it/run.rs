//! `apus run` as a process: exit codes, messages, printed output and written files.

use std::fs;
use std::path::Path;

use crate::support::command::{apus as apus_in, folder, refused, succeeds, texts};
use serde_json::Value;

const SCENARIO: &str = r#"
duration = "3ms"
warmup = "1ms"
topology = { kind = "star", hosts = 4, rate = "100Gbps", delay = "1us", buffer = "4MB" }
algorithm = { name = "swift" }
[[workload]]
kind = "incast"
size = "64kB"
"#;

const SWEEP: &str = "[sweep]\nkey = \"workload.size\"\nvalues = [\"4kB\", \"64kB\"]\n";

#[test]
fn run_prints_a_summary_with_units() {
    let folder = folder("run_prints");
    fs::write(folder.join("mine.toml"), SCENARIO).expect("file");
    let stdout = succeeds(&apus_in(&folder, &["run", "mine.toml", "--seed", "7"]));
    for part in ["mine, seed 7", " Gb/s at switch 0 -> host 3", "\n  warm-up ", " us", " sent = "] {
        assert!(stdout.contains(part), "{part} is not in\n{stdout}");
    }
}

/// Hosts of the model "ideal" take no time, no packet is lost, and there is no warm-up.
#[test]
fn run_leaves_out_what_a_scenario_does_not_have() {
    let folder = folder("run_leaves_out");
    let text = SCENARIO.replace("warmup = \"1ms\"\n", "").replace("incast", "permutation");
    fs::write(folder.join("mine.toml"), text).expect("file");
    let stdout = succeeds(&apus_in(&folder, &["run", "mine.toml"]));
    for part in ["warm-up", "start-up", "99 %", "99.9 %", "duplicates", "median 0 us"] {
        assert!(!stdout.contains(part), "{part} is in\n{stdout}");
    }
    for part in ["endpoint delay  0 us throughout", ", p99 ", ", p99.9 "] {
        assert!(stdout.contains(part), "{part} is not in\n{stdout}");
    }
    fs::write(folder.join("warm.toml"), SCENARIO).expect("file");
    let stdout = succeeds(&apus_in(&folder, &["run", "warm.toml", "--out", "out"]));
    assert!(stdout.contains(" kB during warm-up"), "{stdout}");
    let effective = fs::read_to_string(folder.join("out/effective.toml")).expect("file");
    assert!(effective.contains("\"0s\"") && !effective.contains("\"0ps\""), "{effective}");
}

#[test]
fn run_quick_runs_the_smaller_version() {
    let folder = folder("run_quick");
    fs::write(folder.join("mine.toml"), SCENARIO).expect("file");
    refused(&apus_in(&folder, &["run", "mine.toml", "--quick"]), "--quick: has no effect");
    let text = format!("{SCENARIO}[quick]\nset = {{ duration = \"2ms\" }}\n");
    fs::write(folder.join("mine.toml"), text).expect("file");
    let run = |more: &[&str]| -> Value {
        let stdout = succeeds(&apus_in(&folder, &[&["run", "mine.toml", "--json"], more].concat()));
        serde_json::from_str(&stdout).expect("JSON")
    };
    let simulated = |value: &Value| value["runs"][0]["simulated_s"].as_f64();
    assert_eq!(simulated(&run(&[])), Some(0.003));
    assert_eq!(simulated(&run(&["--quick"])), Some(0.002));
    let stdout = succeeds(&apus_in(&folder, &["run", "mine.toml", "--quick"]));
    assert!(stdout.starts_with("quick: duration = 2ms\n"), "{stdout}");
}

#[test]
fn run_json_holds_every_run() {
    let folder = folder("run_json");
    fs::write(folder.join("mine.toml"), format!("{SCENARIO}{SWEEP}")).expect("file");
    let runs = |more: &[&str]| {
        let arguments = [&["run", "mine.toml", "--json"], more].concat();
        let stdout = succeeds(&apus_in(&folder, &arguments));
        let json: Value = serde_json::from_str(&stdout).expect("JSON");
        let runs = json["runs"].as_array().expect("runs").clone();
        runs.iter().map(|run| run["name"].as_str().expect("name").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(runs(&[]), ["mine/4kB", "mine/64kB"]);
    assert_eq!(runs(&["--variant", "4kB"]), ["mine/4kB"]);
    assert_eq!(runs(&["--variant", "4kB", "--set", "workload.size=1kB"]), ["mine/4kB"]);
}

#[test]
fn run_yields_the_same_on_any_number_of_threads() {
    let folder = folder("run_threads");
    fs::write(folder.join("mine.toml"), SCENARIO).expect("file");
    let run = |threads| {
        let arguments = ["run", "mine.toml", "--json", "--threads", threads];
        let stdout = succeeds(&apus_in(&folder, &arguments));
        let mut json: Value = serde_json::from_str(&stdout).expect("JSON");
        // The cost may differ, the events may not.
        let cost = json["cost"].take();
        assert!(cost[0]["wall_s"].as_f64().expect("wall_s") > 0.0, "{cost}");
        json
    };
    assert_eq!(run("1"), run("3"));
}

/// Measurements of the machine are in cost.json, so that equal runs write identical summaries.
#[test]
fn equal_runs_write_equal_summaries() {
    let folder = folder("run_twice");
    fs::write(folder.join("mine.toml"), SCENARIO).expect("file");
    let run = |out: &str, threads: &str| {
        succeeds(&apus_in(&folder, &["run", "mine.toml", "--out", out, "--threads", threads]));
        let read = |name: &str| fs::read_to_string(folder.join(out).join(name)).expect(name);
        let cost: Value = serde_json::from_str(&read("cost.json")).expect("JSON");
        assert!(cost["cost"][0]["wall_s"].as_f64().expect("wall_s") > 0.0, "{cost}");
        (read("summary.json"), read("report.html"))
    };
    let first = run("a", "1");
    assert_eq!(run("b", "1"), first, "again");
    assert_eq!(run("c", "3"), first, "on three threads");
}

#[test]
fn run_writes_summary_and_effective_configuration() {
    let folder = folder("run_writes");
    fs::write(folder.join("mine.toml"), SCENARIO).expect("file");
    succeeds(&apus_in(&folder, &["run", "mine.toml", "--out", "a/b", "--set", "topology.hosts=3"]));
    let summary = fs::read_to_string(folder.join("a/b/summary.json")).expect("summary");
    let summary: Value = serde_json::from_str(&summary).expect("JSON");
    assert!(summary["runs"][0]["throughput_gbps"].as_f64().expect("number") > 1.0);
    let files = || {
        let mut names: Vec<_> = fs::read_dir(folder.join("a/b"))
            .expect("folder")
            .map(|entry| entry.expect("entry").file_name().into_string().expect("name"))
            .collect();
        names.sort();
        names
    };
    assert_eq!(
        files(),
        [
            ".apus-files",
            "cost.json",
            "effective.toml",
            "faults.csv",
            "fct.txt",
            "flows.csv",
            "ops.csv",
            "port_samples.csv",
            "ports.csv",
            "report.html",
            "sample_percentiles.csv",
            "samples.csv",
            "summary.json",
            "workloads.csv",
        ]
    );
    // The effective configuration gives the same run.
    let again = succeeds(&apus_in(&folder, &["run", "a/b/effective.toml", "--json"]));
    let again: Value = serde_json::from_str(&again).expect("JSON");
    assert_eq!(again["runs"], summary["runs"]);
}

#[test]
fn run_of_variants_writes_an_effective_configuration_of_each() {
    let folder = folder("run_variants");
    fs::write(folder.join("mine.toml"), format!("{SCENARIO}{SWEEP}")).expect("file");
    succeeds(&apus_in(&folder, &["run", "mine.toml", "--out", "out"]));
    for file in ["summary.json", "effective-4kB.toml", "effective-64kB.toml"] {
        assert!(folder.join("out").join(file).is_file(), "{file}");
    }
}

#[test]
fn run_refuses_a_directory_that_it_cannot_write() {
    let folder = folder("run_unwritable");
    fs::write(folder.join("mine.toml"), SCENARIO).expect("file");
    fs::write(folder.join("taken"), "").expect("file");
    let output = apus_in(&folder, &["run", "mine.toml", "--out", "taken"]);
    refused(&output, "taken: this directory cannot be created");
}

#[test]
fn run_refuses_wrong_scenarios_and_options() {
    let folder = folder("run_refuses");
    fs::write(folder.join("mine.toml"), SCENARIO).expect("file");
    fs::write(folder.join("wrong.toml"), SCENARIO.replace("64kB", "64")).expect("file");
    fs::write(folder.join("binary.toml"), [0xff, 0xfe]).expect("file");
    for (arguments, message) in [
        (&["run", "wrong.toml"][..], "wrong.toml:8:8: `workload.size`: `64` is not a size"),
        (&["run", "absent.toml"], "absent.toml: this file cannot be read"),
        (&["run", "swift/tabel3"], "did you mean `swift/table3`?"),
        (&["run", "binary.toml"], "binary.toml: is not text"),
        (&["run", "."], "cannot be read"),
        (&["run", "mine.toml", "--set", "topology.rte=1"], "--set topology.rte=1: unknown key"),
        (&["run", "mine.toml", "--variant", "a"], "unknown variant `a`"),
        (&["run", "mine.toml", "--seed", "x"], "invalid value 'x'"),
        (&["run"], "<FILE>"),
        (&["runn"], "a similar subcommand exists: 'run'"),
        (&[], "Usage: apus"),
    ] {
        refused(&apus_in(&folder, arguments), message);
    }
}

/// Runs every invalid scenario of the reader's corpus through the command.
#[test]
fn run_refuses_the_corpus_of_mistakes() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenario/tests/wrong");
    for entry in fs::read_dir(corpus).expect("corpus") {
        let path = entry.expect("entry").path();
        let file = path.to_str().expect("UTF-8");
        refused(&apus_in(Path::new("."), &["run", file]), file);
    }
}

/// The checks of a user's scenario are evaluated: the exit code is 1 if one fails, and the table names it.
#[test]
fn run_judges_the_checks_of_the_scenario() {
    let folder = folder("run_judges");
    let scenario = |low: f64| {
        format!(
            "{SCENARIO}\n[[check]]\nname = \"busy\"\nkind = \"shape\"\nmetric = \"throughput_gbps\"\nlow = {low:?}\nsource = \"our own goal\"\n"
        )
    };
    fs::write(folder.join("good.toml"), scenario(1.0)).expect("scenario");
    fs::write(folder.join("bad.toml"), scenario(101.0)).expect("scenario");
    let good = succeeds(&apus_in(&folder, &["run", "good.toml"]));
    assert!(good.contains("busy") && good.contains("pass"), "{good}");
    let bad = apus_in(&folder, &["run", "bad.toml"]);
    let (stdout, stderr) = texts(&bad);
    assert_eq!(bad.status.code(), Some(1), "{stdout}{stderr}");
    assert!(stdout.contains("busy FAILS"), "{stdout}");
    let known = scenario(101.0) + "differs = \"a link of 100 Gb/s carries no more\"\n";
    fs::write(folder.join("known.toml"), known).expect("scenario");
    let known = succeeds(&apus_in(&folder, &["run", "known.toml"]));
    assert!(known.contains("busy DIFFERS from the paper: a link of 100 Gb/s"), "{known}");
    let json = apus_in(&folder, &["run", "bad.toml", "--json"]);
    let (stdout, stderr) = texts(&json);
    assert_eq!(json.status.code(), Some(1));
    assert!(stderr.contains("busy FAILS") && serde_json::from_str::<Value>(&stdout).is_ok());
}
