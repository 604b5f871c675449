//! Runs that end early, and results that cannot be stored.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use crate::support;
use crate::support::command::folder;
use serde_json::Value;

/// Takes minutes of real time, so that it can be interrupted.
const LONG: &str = r#"
duration = "60s"
topology = { kind = "star", hosts = 4, rate = "100Gbps", delay = "1us", buffer = "4MB" }
algorithm = { name = "swift" }
[[workload]]
kind = "incast"
size = "64kB"
"#;

fn apus(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_apus"));
    command.current_dir(folder).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Sends Ctrl-C once the run has begun. The progress at that time depends on the machine, so callers assert nothing
/// about it; `interrupted_run_keeps_what_it_measured` of `apus-sim` tests the values at a fixed simulated time.
fn interrupt(mut child: Child) -> Output {
    support::begun(&mut child);
    support::interrupt(&child);
    child.wait_with_output().expect("process")
}

#[test]
fn ctrl_c_keeps_partial_results_and_says_so() {
    let folder = folder("interrupt");
    // Because of its many events, the rest of the run would take a minute; the run must end at its next step.
    fs::write(folder.join("long.toml"), LONG.replace("60s", "20s")).expect("file");
    for threads in ["1", "2"] {
        let arguments = ["run", "long.toml", "--out", threads, "--threads", threads];
        let output = interrupt(apus(&folder, &arguments).spawn().expect("process"));
        let stderr = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(output.status.code(), Some(130), "{stderr}");
        assert!(stderr.contains("interrupted; results are partial"), "{stderr}");
        assert!(stderr.contains("ended early: long after "), "{stderr}");
        let stdout = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(stdout.contains("ENDED EARLY after "), "{stdout}");
        let summary = fs::read_to_string(folder.join(threads).join("summary.json")).expect("kept");
        let summary: Value = serde_json::from_str(&summary).expect("JSON");
        let run = &summary["runs"][0];
        assert_eq!(run["interrupted"], true);
        let reached = run["simulated_s"].as_f64().expect("number");
        assert!((0.0..20.0).contains(&reached), "{reached}");
    }
}

#[test]
fn ctrl_c_in_the_warm_up_measures_nothing_and_says_so() {
    let folder = folder("warmup");
    let scenario = LONG.replace("60s\"", "20s\"\nwarmup = \"19s\"");
    fs::write(folder.join("long.toml"), scenario).expect("file");
    let child = apus(&folder, &["run", "long.toml", "--json"]).spawn().expect("process");
    let output = interrupt(child);
    assert_eq!(output.status.code(), Some(130));
    let summary: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let run = &summary["runs"][0];
    assert_eq!(run["interrupted"], true);
    assert_eq!(run["measured"]["seconds"], 0.0);
    assert_eq!(run["goodput_gbps"], 0.0);
}

/// An interrupted experiment shows no checks, neither passed nor failed.
#[test]
fn ctrl_c_ends_reproduce() {
    let folder = folder("reproduce");
    let child = apus(&folder, &["reproduce", "swift/table3"]).spawn().expect("process");
    let output = interrupt(child);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("interrupted; the experiments above are complete"), "{stderr}");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("table3"));
}

#[test]
fn a_run_that_ends_by_itself_is_not_interrupted() {
    let folder = folder("whole");
    fs::write(folder.join("short.toml"), LONG.replace("60s", "1ms")).expect("file");
    let output = apus(&folder, &["run", "short.toml", "--json"]).output().expect("process");
    let summary: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let run = &summary["runs"][0];
    assert_eq!(run["interrupted"], false);
    assert_eq!(run["stop_reason"], Value::Null);
    assert_eq!(run["simulated_s"], 1e-3);
}

/// Links with a delay of 1 s: before the first arrival, timeouts reduce the windows to the minimum.
#[test]
fn the_watchdog_names_flow_queue_and_reason() {
    let folder = folder("watchdog");
    // Without an explicit target, Swift would derive one that fits the RTT of these links.
    let scenario =
        LONG.replace("1us", "1s").replace("\"swift\"", "\"swift\", base_target = \"25us\"");
    fs::write(folder.join("stuck.toml"), scenario).expect("file");
    let mut reasons = Vec::new();
    for threads in ["1", "2"] {
        let arguments =
            ["run", "stuck.toml", "--json", "--watchdog", "400ms", "--threads", threads];
        let output = apus(&folder, &arguments).output().expect("process");
        let stderr = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        for part in [
            "stuck: no packet was delivered for ",
            "(host 0 -> host 3): window 0.001 packets, 1 ops outstanding",
            " timeouts, next ",
            "all queues are empty and nothing was dropped: ",
            " packets are on links",
            "--watchdog sets the span",
        ] {
            assert!(stderr.contains(part), "{part} is not in {stderr}");
        }
        let summary: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(summary["runs"][0]["interrupted"], true);
        reasons.push(summary["runs"][0]["stop_reason"].clone());
    }
    assert_eq!(reasons[0], reasons[1]);
}

#[test]
fn the_watchdog_can_be_turned_off_and_refuses_nonsense() {
    let folder = folder("off");
    let scenario = LONG.replace("1us", "1s").replace("60s", "1.9s");
    fs::write(folder.join("stuck.toml"), scenario).expect("file");
    let run =
        |span| apus(&folder, &["run", "stuck.toml", "--watchdog", span]).output().expect("process");
    assert_eq!(run("off").status.code(), Some(0));
    assert_eq!(run("500ms").status.code(), Some(1));
    for (wrong, message) in [("0s", "longer than 0"), ("5", "unit is missing")] {
        let output = run(wrong);
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains(message));
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let folder = folder("full");
    fs::write(folder.join("short.toml"), LONG.replace("60s", "1ms")).expect("file");
    let log = "time_ps,event,rtt_ps,fabric_delay_ps,endpoint_delay_ps,hops,acked\n0,loss,,,,,\n";
    fs::write(folder.join("log.csv"), log).expect("file");
    for arguments in [
        &["run", "short.toml"][..],
        &["run", "short.toml", "--json"],
        &["list", "algorithms"],
        &["explain", "swift"],
        &["replay", "swift", "--trace", "log.csv"],
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
        let output = apus(&folder, arguments).stdout(full).output().expect("process");
        let stderr = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {stderr}");
        assert!(stderr.contains("standard output cannot be written: No space"), "{stderr}");
    }
}

/// If standard output is full, the files in the directory are complete nevertheless.
#[test]
fn results_are_kept_before_they_are_printed() {
    let folder = folder("kept");
    fs::write(folder.join("short.toml"), LONG.replace("60s", "1ms")).expect("file");
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let mut command = apus(&folder, &["run", "short.toml", "--out", "out"]);
    let output = command.stdout(full).output().expect("process");
    assert_eq!(output.status.code(), Some(1));
    assert!(folder.join("out/summary.json").is_file());
}

/// The directory is on a full disk: the results are still printed, and no partial file remains.
#[test]
fn results_that_cannot_be_kept_are_printed() {
    let folder = folder("fulldisk");
    fs::write(folder.join("short.toml"), LONG.replace("60s", "1ms")).expect("file");
    fs::create_dir(folder.join("out")).expect("folder");
    // Files are first written under this name; here the name leads to a full disk.
    let partial = folder.join("out/.summary.json.partial");
    std::os::unix::fs::symlink("/dev/full", partial).expect("link");
    let output = apus(&folder, &["run", "short.toml", "--out", "out"]).output().expect("process");
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("out/summary.json: this file cannot be written: No space"), "{stderr}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("goodput"));
    assert!(!folder.join("out/summary.json").exists());
}

/// If the directory is read-only, the command is refused before any run.
#[test]
fn a_read_only_directory_is_refused() {
    let folder = folder("readonly");
    fs::write(folder.join("long.toml"), LONG).expect("file");
    for (out, why) in [("/proc/apus", "cannot be created"), ("/sys/kernel", "did not write")] {
        let output = apus(&folder, &["run", "long.toml", "--out", out]).output().expect("process");
        let stderr = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(out) && stderr.contains(why), "{stderr}");
        assert!(output.stdout.is_empty());
    }
}

/// If one of several runs is stopped, the others keep their results.
#[test]
fn a_run_that_is_stopped_takes_nothing_from_the_others() {
    let folder = folder("others");
    let variants = "[[variant]]\nname = \"near\"\nset = { \"topology.delay\" = \"1us\" }\n\
                    [[variant]]\nname = \"far\"\nset = { \"topology.delay\" = \"15ms\" }\n";
    let scenario = LONG.replace("60s", "40ms") + variants;
    fs::write(folder.join("two.toml"), scenario).expect("file");
    let arguments = ["run", "two.toml", "--json", "--watchdog", "10ms"];
    let output = apus(&folder, &arguments).output().expect("process");
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.starts_with("two/far: no packet was delivered for "), "{stderr}");
    let summary: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(summary["runs"][0]["interrupted"], false);
    assert_eq!(summary["runs"][1]["interrupted"], true);
}
