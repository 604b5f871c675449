//! The command as a process: exit codes, messages, and what it prints and writes.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::support::command::{apus as apus_in, folder};
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

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    (text(&output.stdout), text(&output.stderr))
}

#[track_caller]
fn succeeds(output: &Output) -> String {
    let (stdout, stderr) = texts(output);
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    // Where there is no terminal, progress is a line now and then if the command takes long.
    assert!(stderr.lines().all(|line| line.starts_with("progress: ")), "{stderr}");
    stdout
}

/// Refused before anything ran: exit code 2, nothing on standard output.
#[track_caller]
fn refused(output: &Output, message: &str) {
    let (stdout, stderr) = texts(output);
    assert_eq!(output.status.code(), Some(2), "{stdout}{stderr}");
    assert_eq!(stdout, "");
    assert!(stderr.contains(message), "{stderr}");
}

#[test]
fn run_prints_a_summary_with_units() {
    let folder = folder("run_prints");
    fs::write(folder.join("mine.toml"), SCENARIO).expect("file");
    let stdout = succeeds(&apus_in(&folder, &["run", "mine.toml", "--seed", "7"]));
    for part in ["mine, seed 7", " Gb/s at switch 0 -> host 3", "\n  warm-up ", " us", " sent = "] {
        assert!(stdout.contains(part), "{part} is not in\n{stdout}");
    }
}

/// Hosts of the model "ideal" take no time, nothing is lost, and there is no warm-up.
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
        // What it took may differ, what happened may not.
        let cost = json["cost"].take();
        assert!(cost[0]["wall_s"].as_f64().expect("wall_s") > 0.0, "{cost}");
        json
    };
    assert_eq!(run("1"), run("3"));
}

/// Measurements of the machine are in cost.json, so that two runs write identical summaries.
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
    // The effective configuration is the same run.
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

/// Every wrong scenario of the reader's corpus, through the command.
#[test]
fn run_refuses_the_corpus_of_mistakes() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenario/tests/wrong");
    for entry in fs::read_dir(corpus).expect("corpus") {
        let path = entry.expect("entry").path();
        let file = path.to_str().expect("UTF-8");
        refused(&apus_in(Path::new("."), &["run", file]), file);
    }
}

#[test]
fn reproduce_refuses_names_that_it_does_not_know() {
    let here = Path::new(".");
    refused(&apus_in(here, &["reproduce"]), "<NAME|FILE");
    let output = apus_in(here, &["reproduce", "swift/fig177"]);
    refused(&output, "unknown experiment `swift/fig177`; did you mean `swift/fig17`?");
    let output = apus_in(here, &["reproduce", "fig17"]);
    refused(&output, "`fig17`; did you mean `bolt/fig17` or `swift/fig17`?");
    let output = apus_in(here, &["reproduce", "xyzzy"]);
    refused(&output, "unknown experiment `xyzzy`; see `apus list experiments` (");
    refused(&apus_in(here, &["reproduce", "--all", "swift/fig17"]), "cannot be used with");
    let output = apus_in(here, &["reproduce", "swift/fig20", "swift/fig20"]);
    refused(&output, "the experiment `swift/fig20` is named twice");
    refused(&apus_in(here, &["reproduce", "none.toml"]), "none.toml: this file cannot be read");
}

/// A scenario of one's own is an experiment if it says what it must show.
#[test]
fn reproduce_takes_files_with_checks() {
    let folder = folder("reproduce_file");
    let scenario = r#"
name = "mine"
duration = "1ms"
topology = { kind = "star", hosts = 2, rate = "100Gbps", delay = "1us", buffer = "1MB" }
algorithm = { name = "swift" }
[[workload]]
kind = "incast"
size = "64kB"
"#;
    fs::write(folder.join("plain.toml"), scenario).expect("file");
    let output = apus_in(&folder, &["reproduce", "plain.toml"]);
    refused(&output, "plain.toml has no `[[check]]` and no `[[show]]`");
    let check = |low: &str| {
        let check = "[[check]]\nname = \"busy\"\nkind = \"shape\"\nmetric = \"throughput_gbps\"\nsource = \"us\"\n";
        fs::write(folder.join("mine.toml"), format!("{scenario}{check}low = {low}\n"))
            .expect("file");
        let arguments = ["reproduce", "mine.toml", "swift/fig22", "--quick", "--report", "page.md"];
        apus_in(&folder, &arguments).status.code()
    };
    assert_eq!(check("1.0"), Some(0));
    let page = fs::read_to_string(folder.join("page.md")).expect("page");
    assert!(page.find("\n## swift/fig22: ") < page.find("\n## mine\n"), "own ones come last");
    assert_eq!(check("1000.0"), Some(1), "no link has 1 Tb/s");
}

/// The schema that others read: exactly these keys, with these types.
#[test]
fn reproduce_json_has_its_schema() {
    let output = apus_in(Path::new("/"), &["reproduce", "swift/fig20", "--quick", "--json"]);
    let (stdout, stderr) = texts(&output);
    assert!(stderr.lines().all(|line| line.starts_with("progress: ")), "{stderr}");
    let json: Value = serde_json::from_str(&stdout).expect("JSON");
    let results = json["results"].as_array().expect("results");
    assert_eq!(results.len(), 1);
    let result = &results[0];
    assert_eq!(result["id"], "swift/fig20");
    let status = result["status"].as_str().expect("status");
    assert_eq!(output.status.code(), Some(i32::from(status != "pass")), "{status}");
    assert!(["pass", "fail"].contains(&status), "{status}");
    assert!(json["cost"][0]["wall_s"].as_f64().expect("wall_s") > 0.0);
    let checks = result["checks"].as_array().expect("checks");
    let stated = |check: &Value| check["verdict"] == "pass" || check["verdict"] == "differs";
    assert_eq!(checks.iter().all(stated), status == "pass");
    let counts = json["counts"].as_object().expect("counts");
    assert_eq!(counts["checks"], checks.len());
    let verdicts = ["pass", "fail", "differs", "stale"];
    let sum: u64 = verdicts.iter().map(|verdict| counts[*verdict].as_u64().expect("count")).sum();
    assert_eq!(sum, checks.len() as u64);
    let kinds = ["reproductions", "fitted", "shapes", "invariants", "formulas"];
    let sum: u64 = kinds.iter().map(|kind| counts[*kind]["checks"].as_u64().expect("count")).sum();
    assert_eq!(sum, checks.len() as u64);
    assert!(result["quick"].is_array());
    for check in checks {
        let kind = check["kind"].as_str().expect("kind");
        assert!(["reproduction", "shape", "invariant", "formula"].contains(&kind), "{kind}");
        assert!(check["seeds"].is_array() && check["seeds_outside"].is_u64(), "{check}");
        assert!(check["pass"].is_boolean());
        assert!(["name", "unit", "source"].iter().all(|key| check[key].is_string()), "{check}");
        for key in ["paper", "measured", "deviation_percent", "low", "high"] {
            let value = check.get(key).expect("always there");
            assert!(value.is_number() || value.is_null(), "{key}: {value}");
        }
    }
}

#[test]
fn reproduce_prints_paper_and_measurement() {
    let output = apus_in(Path::new("/"), &["reproduce", "swift/fig20", "--quick"]);
    let (stdout, _) = texts(&output);
    for part in [
        "swift/fig20",
        "paper",
        "simulated",
        "off by",
        "band",
        "<= 10",
        "Swift Fig. 20",
        "fitted 1 of 1",
    ] {
        assert!(stdout.contains(part), "{part} is not in\n{stdout}");
    }
}

/// A change of results is an error that names the experiment and the remedy.
#[test]
fn reproduce_compares_the_events_of_quick_runs() {
    let folder = folder("events");
    let run = |option: &str| {
        let arguments = ["reproduce", "swift/fig20", "--quick", option, "events.txt"];
        apus_in(&folder, &arguments)
    };
    refused(&run("--expect-events"), "--expect-events events.txt: it cannot be read");
    assert_eq!(run("--write-events").status.code(), Some(0));
    let file = folder.join("events.txt");
    let text = fs::read_to_string(&file).expect("written");
    let line = text.lines().find(|line| line.starts_with("swift/fig20 ")).expect("a line");
    assert_eq!(run("--expect-events").status.code(), Some(0));
    let other = "swift/fig20 0123456789abcdef";
    fs::write(&file, text.replace(line, other)).expect("file");
    let output = run("--expect-events");
    let (_, stderr) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    let events = line.trim_start_matches("swift/fig20 ");
    let expected = format!("swift/fig20: its events are {events}, expected 0123456789abcdef");
    assert!(stderr.contains(&expected) && stderr.contains("--write-events"), "{stderr}");
    fs::write(&file, "swift/fig20 none\n").expect("file");
    refused(&run("--expect-events"), "line 1 must be a name and 16 hexadecimal digits");
}

/// Without topology scaling the far flow gets less: a check fails.
#[test]
fn mutations_name_the_checks_that_notice() {
    let output = apus_in(Path::new("/"), &["reproduce", "swift/fig22", "--mutations"]);
    let (stdout, stderr) = texts(&output);
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    for part in ["topology scaling", "swift/fig22", "1 of 1 mutations are noticed"] {
        assert!(stdout.contains(part), "{part} is not in\n{stdout}");
    }
    let output = apus_in(Path::new("/"), &["reproduce", "swift/nothing", "--mutations"]);
    refused(&output, "the experiment `swift/nothing` has no mutations");
}

#[test]
fn list_names_what_there_is() {
    for (what, parts) in [
        ("scenarios", &["swift/table3", "swift/fig17", "swift/fig20", "bench/incast-100"][..]),
        ("experiments", &["swift/table3", "swift/fig17", "swift/fig20"]),
        ("algorithms", &["swift", "dctcp", "constant"]),
        ("topologies", &["star", "dumbbell", "leaf-spine", "fat-tree"]),
        ("workloads", &["incast", "permutation", "all-to-all", "flows"]),
        ("metrics", &["fabric_rtt_us.mean", "throughput_gbps"]),
    ] {
        let stdout = succeeds(&apus_in(Path::new("/"), &["list", what]));
        for part in parts {
            assert!(stdout.lines().any(|line| line.starts_with(part)), "{part}: {stdout}");
        }
        // Benchmarks, contests and real runs are no experiments.
        let others = ["bench/", "contest/", "real/"];
        let other = |line: &str| others.iter().any(|other| line.starts_with(other));
        assert!(what != "experiments" || !stdout.lines().any(other), "{stdout}");
    }
}

/// All kinds of port are one queue, so that a benchmark of one kind sends the same packets.
#[test]
fn bench_times_every_kind_of_class_port() {
    let case = ["bench", "incast-100", "--set", "duration=1ms", "--repeat", "1", "--warm-up", "0"];
    let measured = |ports: &str| -> (Value, Value) {
        let more = [ports, "--json"];
        let shown = succeeds(&apus_in(Path::new("/"), &[&case[..], &more[..]].concat()));
        let report: Value = serde_json::from_str(&shown).expect("JSON");
        let case = &report["cases"][0];
        (case["packet_hops"].clone(), case["events"].clone())
    };
    let (strict, general) = (measured("--class-ports"), measured("--class-ports=general"));
    assert_eq!(strict, measured("--class-ports=strict"));
    assert_eq!(strict.0, general.0, "packet-hops");
    assert!(general.1.as_u64() > strict.1.as_u64(), "general ports have events of their own");
    refused(&apus_in(Path::new("/"), &["bench", "--class-ports=weighted"]), "general");
    refused(&apus_in(Path::new("/"), &["bench", "--threads", "1024"]), "cores");
}

const FLOWS: &str = "2\n2 0 3 100 5000 0.0001\n4 2 3 100 1 0\nFirst line: number of flows\n";

/// In the form of the HPCC simulator's files: hosts 0, 2 and 4, switches 1 and 3.
const HPCC_TOPOLOGY: &str = "5 2 4\n1 3\n0 1 100Gbps 0.001ms 0\n2 1 100Gbps 0.001ms 0\n\
                             1 3 400Gbps 0.002ms 0\n3 4 100Gbps 0.001ms 0\n";

/// The files of the HPCC simulator run as they are, and fct.txt is what its scripts read.
#[test]
fn files_of_other_simulators_run_as_they_are() {
    let folder = folder("traffic");
    fs::write(folder.join("flow.txt"), FLOWS).expect("flows");
    fs::write(folder.join("topology.txt"), HPCC_TOPOLOGY).expect("topology");
    let traffic = ["run", "--traffic", "flow.txt", "--topology", "topology.txt"];
    let shown = succeeds(&apus_in(&folder, &[&traffic[..], &["--out", "out"]].concat()));
    assert!(shown.contains("2 ops done"), "{shown}");
    let times = fs::read_to_string(folder.join("out/fct.txt")).expect("fct.txt");
    let rows: Vec<Vec<&str>> = times.lines().map(|l| l.split(' ').collect()).collect();
    assert_eq!(rows.len(), 2, "{times}");
    // Node 4 sends 1 B to node 2 at the start, node 2 sends 5000 B to node 0 after 100 us.
    assert_eq!(rows[0][..6], ["0b000401", "0b000201", "10000", "100", "1", "0"]);
    assert_eq!(rows[1][..6], ["0b000201", "0b000001", "10000", "100", "5000", "100000"]);
    let number = |row: usize, column: usize| rows[row][column].parse::<f64>().expect("ns");
    assert!(number(1, 6) >= 4_000.0, "four links of 1 us: {times}");
    // The effective configuration needs neither file.
    fs::rename(folder.join("out/effective.toml"), folder.join("again.toml")).expect("rename");
    fs::remove_file(folder.join("flow.txt")).expect("remove");
    succeeds(&apus_in(&folder, &["run", "again.toml"]));

    refused(&apus_in(&folder, &traffic), "flow.txt: cannot be read");
    fs::write(folder.join("flow.txt"), "1\n2 0 3 100 5000\n").expect("flows");
    refused(&apus_in(&folder, &traffic), "flow.txt:2: 5 words; there must be six");
    fs::write(folder.join("flow.txt"), "1\n2 1 3 100 5000 0\n").expect("flows");
    refused(&apus_in(&folder, &traffic), "flow.txt:2: node 1 is not a host of the topology");
    refused(&apus_in(&folder, &["run", "--traffic", "flow.txt"]), "--topology");
    for (topology, message) in [
        ("star hosst=3 10Gbps 1us", "--topology star hosst=3 10Gbps 1us: unknown key"),
        ("absent.topo", "--topology absent.topo: cannot be used: the file"),
        ("star hosts=2 10Gbps 1us", "flow.txt:2: unknown host 2"),
    ] {
        let output = apus_in(&folder, &["run", "--traffic", "flow.txt", "--topology", topology]);
        refused(&output, message);
        let (_, stderr) = texts(&output);
        assert!(!stderr.contains("flow.toml"), "a file that does not exist is named: {stderr}");
    }
    let star = ["run", "--traffic", "flow.txt", "--topology", "star hosts=3 10Gbps 1us"];
    let shown = succeeds(&apus_in(&folder, &star));
    assert!(shown.contains("1 ops done"), "{shown}");
}

/// Two messages in each of three formats are measured from the first start to the last end, without the
/// idle time before and after.
#[test]
fn imported_traffic_is_measured_from_the_first_start_to_the_last_end() {
    let folder = folder("makespan");
    let files = [
        ("trace.csv", "start_us,from,to,bytes\n1000,0,1,100000\n1100,2,3,100000\n"),
        ("flow.txt", "2\n0 1 3 100 100000 0.001\n2 3 3 100 100000 0.0011\n"),
        (
            "matrix.cm",
            "Nodes 4\nConnections 2\n0->1 id 1 start 1000000000 size 100000\n\
             2->3 id 2 start 1100000000 size 100000\n",
        ),
    ];
    let run = |file: &str, more: &[&str]| {
        let star = ["run", "--traffic", file, "--topology", "star hosts=4 100Gbps 1us"];
        succeeds(&apus_in(&folder, &[&star[..], more].concat()))
    };
    let mut makespans = Vec::new();
    for (file, text) in files {
        fs::write(folder.join(file), text).expect("traffic");
        let number = |more: &[&str], pointer: &str| {
            let json: Value =
                serde_json::from_str(&run(file, &[&["--json"], more].concat())).expect("JSON");
            json["runs"][0].pointer(pointer).and_then(Value::as_f64).expect("a number")
        };
        let makespan = number(&[], "/makespan_us");
        // 100 us between the starts, and at least 8 us for 100 kB at 100 Gb/s.
        assert!((108.0..150.0).contains(&makespan), "{file}: {makespan}");
        let measured = number(&[], "/measured/seconds") * 1e6;
        assert!((measured - makespan).abs() < 1e-6, "{file}: {measured} us");
        let goodput = number(&[], "/goodput_gbps");
        assert!((goodput * makespan - 1600.0).abs() < 1e-6, "{file}: {goodput} Gb/s");
        let set = ["--set", "duration=5ms"];
        assert_eq!(
            number(&set, "/measured/seconds"),
            0.004,
            "{file}: a duration that is given counts"
        );
        assert_eq!(number(&set, "/makespan_us"), makespan, "{file}");
        let shown = run(file, &[]);
        assert!(shown.contains("makespan"), "{shown}");
        makespans.push(makespan);
    }
    assert!(makespans.iter().all(|makespan| *makespan == makespans[0]), "{makespans:?}");
}

/// The checks of one's own scenario are judged: exit code 1 if one fails, and the table says which.
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

#[test]
fn key_makes_a_key_once() {
    let folder = folder("key");
    let stdout = succeeds(&apus_in(&folder, &["key", "group.key"]));
    let text = fs::read_to_string(folder.join("group.key")).expect("key file");
    let line = text.lines().last().expect("a key");
    assert!(line.starts_with("apus-key-1 ") && line.len() == 11 + 64, "a secret of 32 bytes");
    assert!(!stdout.contains(&line[11..]), "the secret is not shown");
    refused(&apus_in(&folder, &["key", "group.key"]), "group.key: the file exists");
    refused(&apus_in(&folder, &["key", "nowhere/x.key"]), "nowhere/x.key: the key file cannot be");
}

/// Each of four hosts writes to another; the link of one is down from 1.5 ms on.
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

/// Two ops have waited for 3.5 ms when the run ends, so the largest latency is not the 29 us of the others.
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
    // Two lines count losses: those of all links, and those at switch ports in one phase.
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
