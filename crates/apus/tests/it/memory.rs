//! `--max-memory` refuses runs that are too large, limits parallel runs, and exists only in commands on which it has an
//! effect.

use std::fs;
use std::path::PathBuf;
use std::process::Output;
use std::thread::available_parallelism;

use crate::support::command;
use crate::support::command::apus;
use crate::support::help;

/// An incast from two hosts to a third one.
const SCENARIO: &str = include_str!("support/incast.toml");

/// Every command that simulates, each with one incast of two connections over a star of three hosts.
const SIMULATING: &[&str] = &[
    "run mine.toml",
    "run mine.toml --out results",
    "reproduce checked.toml",
    "sweep mine.toml --vary workload.size=1kB,2kB --out results",
    "compare mine.toml --algorithms swift,constant --out results",
    "tune mine.toml --out results",
    "emulate mine.toml",
];

/// Returns the folder of a test, with scenarios and traffic.
fn folder(test: &str) -> PathBuf {
    let path = command::folder(test);
    let check = "[[check]]\nname = \"busy\"\nkind = \"shape\"\nmetric = \"throughput_gbps\"\nlow = 0.0\n\
                 source = \"our own goal\"\n";
    let variants = "[sweep]\nkey = \"workload.size\"\nvalues = [\"4kB\", \"64kB\"]\n";
    for (name, text) in [
        ("mine.toml", SCENARIO.to_owned()),
        ("checked.toml", format!("{SCENARIO}{check}")),
        ("two.toml", format!("{SCENARIO}{variants}")),
        ("t.csv", "start_us,from,to,bytes\n0,0,2,1000\n1,1,2,1000\n".to_owned()),
        ("pair.csv", format!("start_us,from,to,bytes\n{}", "0,0,2,1000\n".repeat(5))),
    ] {
        fs::write(path.join(name), text).expect("file");
    }
    path
}

/// Asserts that a command was refused before any run; returns its error.
#[track_caller]
fn refused(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(output.stdout.is_empty(), "{stderr}");
    stderr
}

/// 1 MiB for the run, 16 KiB for each of three hosts and a few kB for two connections: 1.1 MB.
#[test]
fn a_run_above_max_memory_is_refused_with_estimate_and_limit() {
    let folder = folder("refused");
    let star = "star hosts=3 10Gbps 1us";
    let traffic = ["run", "--traffic", "t.csv", "--topology", star];
    let lines = SIMULATING.iter().map(|line| line.split(' ').collect::<Vec<_>>());
    for line in lines.chain([traffic.to_vec()]).filter(|line| command::is_built(line)) {
        let error = refused(&apus(&folder, &[&line[..], &["--max-memory", "1MB"]].concat()));
        for part in ["opens 2 connections", "take about 1.1MB of memory", "--max-memory is 1MB"] {
            assert!(error.contains(part), "{line:?}: {part} is not in {error}");
        }
        assert!(!folder.join("results").exists(), "{line:?}");
    }
    let output = apus(&folder, &["run", "mine.toml", "--max-memory", "2MB"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Five messages between one pair of hosts need five flows, or as many as the limit per pair allows.
#[test]
fn messages_of_imported_traffic_can_share_flows() {
    let folder = folder("traffic");
    let star = "star hosts=3 10Gbps 1us";
    let traffic = ["run", "--traffic", "pair.csv", "--topology", star, "--max-memory", "1MB"];
    for (settings, connections) in [
        (&[][..], "opens 5 connections for 5 ops"),
        (&["--set", "workload.flows_per_pair=2"], "opens 2 connections for 5 ops"),
    ] {
        let error = refused(&apus(&folder, &[&traffic[..], settings].concat()));
        assert!(error.contains(connections), "{settings:?}: {error}");
    }
    let shared = [&traffic[..5], &["--set", "workload.flows_per_pair=2", "--json"]].concat();
    let output = apus(&folder, &shared);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["runs"][0]["measured"]["ops"], 5);
}

#[test]
fn max_memory_that_is_no_size_is_refused() {
    let folder = folder("sizes");
    for (size, message) in [("0B", "must be above 0"), ("32", "32"), ("much", "much")] {
        let error = refused(&apus(&folder, &["run", "mine.toml", "--max-memory", size]));
        assert!(error.contains("--max-memory") && error.contains(message), "{size}: {error}");
    }
}

#[test]
fn only_commands_that_simulate_have_max_memory() {
    let folder = folder("commands");
    for name in help::commands() {
        if !SIMULATING.iter().any(|line| line.split(' ').next() == Some(name.as_str())) {
            let error = refused(&apus(&folder, &[&name, "--max-memory", "1GB"]));
            assert!(error.contains("--max-memory") || name == "help", "{name}: {error}");
        }
    }
}

/// Two runs of 1.1 MB each: one at a time within 1.5 MB, both at once within 3 MB. The results are equal.
#[test]
fn runs_share_max_memory() {
    let folder = folder("shared");
    let run = |size: &str| {
        let threads = ["--threads", "2", "--max-memory", size, "--out", size];
        let output = apus(&folder, &[&["run", "two.toml"], &threads[..]].concat());
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{stderr}");
        let summary = fs::read(folder.join(size).join("summary.json")).expect("a summary");
        (summary, stderr)
    };
    let ((one, limited), (both, unlimited)) = (run("1.5MB"), run("3MB"));
    assert!(one == both, "results depend on --max-memory");
    let several = available_parallelism().is_ok_and(|cores| cores.get() > 1);
    let note = "1 instead of 2 runs at a time: --max-memory is 1.5MB";
    assert_eq!(limited.contains(note), several, "{limited}");
    assert!(!unlimited.contains("at a time"), "{unlimited}");
}
