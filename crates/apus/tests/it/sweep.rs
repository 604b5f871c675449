//! `apus sweep`: tables, chart, and the results that are reused by the next call.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support;
use serde_json::Value;

const SCENARIO: &str = r#"
duration = "2ms"
topology = { kind = "star", hosts = 4, rate = "100Gbps", delay = "1us", buffer = "4MB" }
algorithm = { name = "swift" }
[[workload]]
kind = "incast"
size = "64kB"
"#;

fn folder(test: &str) -> PathBuf {
    let path = support::command::folder(test);
    fs::write(path.join("mine.toml"), SCENARIO).expect("file");
    path
}

fn apus(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_apus"));
    command.current_dir(folder).args(arguments);
    command
}

const VARY: [&str; 8] = [
    "sweep",
    "mine.toml",
    "--vary",
    "algorithm.base_target=20us,40us",
    "--vary",
    "workload.size=4kB,64kB,1MB",
    "--out",
    "out",
];

#[track_caller]
fn sweep(folder: &Path, more: &[&str]) -> String {
    let output = apus(folder, &VARY).args(more).output().expect("process");
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(stderr.lines().all(|line| line.starts_with("progress: ")), "{stderr}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Returns the stored runs of a directory of results.
fn kept(out: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(out.join("runs")).expect("runs").flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| path.file_stem().is_some_and(|stem| stem.len() == 16)).collect()
}

#[track_caller]
fn refused(output: &Output, message: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(output.stdout.is_empty());
    assert!(stderr.contains(message), "{message} is not in {stderr}");
}

#[test]
fn the_product_of_all_values_is_run_and_shown() {
    let folder = folder("product");
    let text = sweep(&folder, &["--seeds", "2"]);
    let header = text.lines().next().expect("header");
    for part in ["algorithm.base_target", "workload.size", "goodput_gbps [Gb/s]", "p99 [us]"] {
        assert!(header.contains(part), "{header}");
    }
    let firsts: Vec<_> = text.lines().skip(1).take(6).map(|line| &line[..4]).collect();
    assert_eq!(firsts, ["20us", "20us", "20us", "40us", "40us", "40us"]);
    assert!(text.contains("12 of 12 runs complete (0 reused)"), "{text}");

    let csv = fs::read_to_string(folder.join("out/sweep.csv")).expect("table");
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 13);
    assert_eq!(lines[0][..4], ["algorithm.base_target", "workload.size", "variant", "seed"]);
    assert_eq!(lines[2][..4], ["20us", "4kB", "", "2"]);
    assert!(lines.iter().all(|line| line.len() == lines[0].len()));
    // The column has the same number as `apus run` with these settings.
    let goodput = lines[0].iter().position(|name| *name == "goodput_gbps").expect("column");
    let arguments = ["run", "mine.toml", "--json", "--seed", "2", "--set"];
    let sets = ["algorithm.base_target=40us", "--set", "workload.size=1MB"];
    let output = apus(&folder, &arguments).args(sets).output().expect("process");
    let run: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let last = &lines[12];
    assert_eq!(last[..4], ["40us", "1MB", "", "2"]);
    assert_eq!(last[goodput].parse().ok(), run["runs"][0]["goodput_gbps"].as_f64());

    let svg = fs::read_to_string(folder.join("out/sweep.svg")).expect("chart");
    assert!(svg.starts_with("<svg xmlns") && svg.trim_end().ends_with("</svg>"));
    // Seven metrics, each with a line for each of the three sizes.
    assert_eq!(svg.matches("<polyline").count(), 21);
    assert!(svg.contains("workload.size = 64kB") && svg.contains("fabric_rtt_us.p99 [us]"));
}

#[test]
fn a_second_call_runs_only_what_is_missing() {
    let folder = folder("resume");
    let first = sweep(&folder, &["--json"]);
    let again = sweep(&folder, &["--json"]);
    // Even the cost is unchanged, so no run was repeated.
    assert!(first == again, "something was run again");
    let kept = kept(&folder.join("out"));
    assert_eq!(kept.len(), 6);
    fs::remove_file(&kept[0]).expect("remove");
    // A damaged or useless file is replaced by a new run.
    fs::write(&kept[1], "{").expect("write");
    assert!(sweep(&folder, &[]).contains("6 of 6 runs complete (4 reused)"));
    // More seeds and further values reuse the stored runs.
    assert!(sweep(&folder, &["--seeds", "2"]).contains("12 of 12 runs complete (6 reused)"));
}

/// Two builds of one version may give different results.
#[test]
fn a_result_of_another_build_is_not_used() {
    let folder = folder("build");
    sweep(&folder, &[]);
    let one = &kept(&folder.join("out"))[0];
    let text = fs::read_to_string(one).expect("a run");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    let program = json["program"].as_str().expect("a program");
    assert!(program.starts_with(concat!(env!("CARGO_PKG_VERSION"), "+")), "{program}");
    fs::write(one, text.replace(program, "0.1.0+other")).expect("file");
    assert!(sweep(&folder, &[]).contains("6 of 6 runs complete (5 reused)"));
}

#[test]
fn a_changed_scenario_is_noticed() {
    let folder = folder("changed");
    sweep(&folder, &[]);
    fs::write(folder.join("mine.toml"), SCENARIO.replace("4MB", "2MB")).expect("file");
    let text = sweep(&folder, &[]);
    assert!(text.contains("6 of 6 runs complete (0 reused)"), "{text}");
    assert!(text.contains("6 results in out/runs belong to other settings"), "{text}");
}

#[test]
fn variants_are_rows_of_their_own() {
    let folder = folder("variants");
    let more = "[[variant]]\nname = \"a\"\nset = { \"algorithm.ai\" = 1 }\n\
                [[variant]]\nname = \"b\"\nset = { \"algorithm.ai\" = 0.5 }\n";
    fs::write(folder.join("mine.toml"), format!("{SCENARIO}{more}")).expect("file");
    let text = sweep(&folder, &["--metric", "jain"]);
    assert!(text.lines().next().is_some_and(|line| line.ends_with("variant  jain")), "{text}");
    assert!(text.contains("12 of 12 runs"), "{text}");
}

#[test]
fn an_interrupted_sweep_goes_on_where_it_was() {
    let folder = folder("interrupt");
    let arguments =
        ["sweep", "mine.toml", "--vary", "duration=1ms,30s", "--out", "out", "--threads", "1"];
    let mut command = apus(&folder, &arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("process");
    let until = Instant::now() + Duration::from_secs(60);
    let table = || fs::read_to_string(folder.join("out/sweep.csv")).unwrap_or_default();
    // The table grows while the sweep runs.
    while table().lines().count() < 2 {
        assert!(Instant::now() < until, "the first run is never in the table");
        sleep(Duration::from_millis(20));
    }
    assert!(table().lines().nth(1).is_some_and(|line| line.starts_with("1ms,,1,")), "{}", table());
    assert_eq!(kept(&folder.join("out")).len(), 1);
    support::interrupt(&child);
    let output = child.wait_with_output().expect("process");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("1 of 2 runs are complete and kept"), "{stderr}");
    // An interrupted run is not stored as a result.
    let shorter = arguments.map(|a| if a.contains("30s") { "duration=1ms,2ms" } else { a });
    let output = apus(&folder, &shorter).output().expect("process");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("2 of 2 runs complete (1 reused)"), "{stdout}");
}

/// All links are cut: for the first run 1 ms after its start, so that it fails, and for the second run at its end.
#[test]
fn an_interrupted_sweep_names_the_runs_that_failed_before() {
    let folder = folder("interrupt_failed");
    let fault = "[[fault]]\nlink = \"* <-> *\"\nkind = \"down\"\nat = \"1ms\"\n";
    let scenario = SCENARIO.replace("duration = \"2ms\"", "duration = \"30s\"");
    fs::write(folder.join("mine.toml"), scenario + fault).expect("file");
    let vary = ["sweep", "mine.toml", "--vary", "fault.at=1ms,29s", "--out", "out"];
    let mut command = apus(&folder, &vary);
    command.args(["--threads", "1", "--watchdog", "1ms"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("process");
    let until = Instant::now() + Duration::from_secs(60);
    let failed = || {
        let files = fs::read_dir(folder.join("out/runs")).into_iter().flatten().flatten();
        files.filter(|file| file.file_name().to_string_lossy().ends_with(".failed.json")).count()
    };
    while failed() < 1 {
        assert!(Instant::now() < until, "the first run never fails");
        assert_eq!(child.try_wait().expect("process"), None, "it ended before it was interrupted");
        sleep(Duration::from_millis(20));
    }
    support::interrupt(&child);
    let output = child.wait_with_output().expect("process");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("interrupted; 0 of 2 runs are complete"), "{stderr}");
    assert!(stderr.contains("no packet was delivered"), "{stderr}");
}

#[test]
fn wrong_sweeps_are_refused() {
    let folder = folder("wrong");
    fs::write(folder.join("taken"), "").expect("file");
    let vary = |axis, out| {
        apus(&folder, &["sweep", "mine.toml", "--vary", axis, "--out", out]).output().expect("run")
    };
    let good = "workload.size=1kB,2kB";
    for (output, message) in [
        (vary("workload.size", "out"), "lacks `=`"),
        (vary("workload.size=1kB,,2kB", "out"), "a value is empty"),
        (vary("workload.size=1kB,1kB", "out"), "`1kB` is there twice"),
        (vary("seed=1,2", "out"), "--vary seed: seeds are no setting that is varied"),
        (vary("workload.sise=1kB,2kB", "out"), "did you mean `size`?"),
        (vary("workload.size=1kB,2", "out"), "--vary workload.size=2: `workload.size` must be"),
        (vary("workload.size=1kB,2", "out"), "not the number 2"),
        (vary(good, "taken"), "taken: this directory cannot be created"),
        (vary(good, "/proc/no"), "/proc/no: this directory cannot be created"),
    ] {
        refused(&output, message);
    }
    let again = ["--vary", good, "--vary", good, "--out", "out"];
    let output = apus(&folder, &["sweep", "mine.toml"]).args(again).output().expect("run");
    refused(&output, "given twice");
    let metric = ["--vary", good, "--out", "out", "--metric", "goodput"];
    let output = apus(&folder, &["sweep", "mine.toml"]).args(metric).output().expect("run");
    refused(&output, "unknown metric `goodput`");
    assert!(!folder.join("out").exists(), "nothing is written");
}

/// The time of a job comes first on the terminal and in the chart, and is a column of the table.
#[test]
fn the_time_of_a_job_is_the_first_metric_and_a_column() {
    let folder = folder("jobs");
    let job = "[[workload]]\nkind = \"all-reduce\"\n";
    let scenario = SCENARIO.replace("[[workload]]\nkind = \"incast\"\n", job);
    fs::write(folder.join("mine.toml"), scenario).expect("file");
    let vary = ["sweep", "mine.toml", "--vary", "workload.size=64kB,1MB", "--out", "out"];
    let output = apus(&folder, &vary).output().expect("process");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let header = text.lines().next().expect("header");
    assert!(header.contains("jobs.0.completion_us [us]"), "{header}");
    assert!(header.find("jobs.0.completion_us") < header.find("goodput_gbps"), "{header}");
    let svg = fs::read_to_string(folder.join("out/sweep.svg")).expect("chart");
    assert!(svg.contains("jobs.0.completion_us [us]"));
    let csv = fs::read_to_string(folder.join("out/sweep.csv")).expect("table");
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let place = lines[0].iter().position(|name| *name == "jobs.0.completion_us").expect("column");
    let set = ["run", "mine.toml", "--json", "--set", "workload.size=1MB"];
    let output = apus(&folder, &set).output().expect("process");
    let run: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let time = run["runs"][0]["jobs"][0]["completion_us"].as_f64();
    assert!(time.is_some() && lines[2][place].parse().ok() == time, "{:?}", lines[2][place]);
}

/// A flow is cut at 900 us, just after a packet was delivered. The watchdog ends the drain after 200 us without
/// packets. By default the drain ends by its limit, the 950 us from the first message to the end of the run.
#[test]
fn a_drain_that_the_watchdog_has_ended_is_run_again() {
    let folder = folder("watchdog");
    let text = "duration = \"1ms\"\ntopology = \"star hosts=3 10Gbps 1us\"\nalgorithm = { name = \"swift\" }\n\
        [[workload]]\nkind = \"trace\"\nflows = \"\"\"\nstart_us,from,to,bytes\n50,0,2,1200000\n\"\"\"\n\
        [[fault]]\nkind = \"down\"\nlink = \"host 0 <-> switch 0\"\nat = \"900us\"\n";
    fs::write(folder.join("mine.toml"), text).expect("file");
    let sweep = |more: &[&str]| {
        let vary = ["sweep", "mine.toml", "--vary", "duration=1ms", "--out", "out"];
        let output = apus(&folder, &vary).args(more).output().expect("process");
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let drain = || {
        let text = fs::read_to_string(&kept(&folder.join("out"))[0]).expect("a run");
        let json: Value = serde_json::from_str(&text).expect("JSON");
        json["summary"]["drain"]["ended_by"].as_str().expect("words").to_owned()
    };
    assert!(sweep(&["--watchdog", "200us"]).contains("1 of 1 runs complete (0 reused)"));
    assert_eq!(drain(), "stuck");
    // Tables of shards have the value too.
    let merged = apus(&folder, &["sweep", "--merge", "out"]).output().expect("process");
    assert_eq!(merged.status.code(), Some(0), "{}", String::from_utf8_lossy(&merged.stderr));
    assert!(sweep(&[]).contains("1 of 1 runs complete (0 reused)"));
    assert_eq!(drain(), "limit");
    assert!(sweep(&[]).contains("1 of 1 runs complete (1 reused)"));
}

#[test]
fn a_metric_of_a_part_that_no_run_has_is_refused() {
    let folder = folder("parts");
    for (metric, message) in [
        ("workload.foo.goodput_gbps", "--metric workload.foo.goodput_gbps: no run has this part"),
        ("jobs.0.completion_us", "--metric jobs.0.completion_us: no run has this part"),
    ] {
        let output = apus(&folder, &VARY).args(["--metric", metric]).output().expect("process");
        refused(&output, message);
    }
    let text = fs::read_to_string(folder.join("mine.toml")).expect("file");
    let named = text.replace("[[workload]]", "[[workload]]\nname = \"writes\"");
    fs::write(folder.join("mine.toml"), named).expect("file");
    sweep(&folder, &["--metric", "workload.writes.slowdown.p99"]);
}
