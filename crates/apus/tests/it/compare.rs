//! `apus compare`: every algorithm gets the same traffic, and the switch configuration that it needs.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use crate::support::command;
use crate::support::command::apus;
use serde_json::Value;

const SCENARIO: &str = r#"
duration = "3ms"
warmup = "1ms"
topology = { kind = "star", hosts = 5, rate = "10Gbps", delay = "1us", buffer = "1MB" }
algorithm = { name = "swift" }
[[workload]]
name = "writes"
kind = "incast"
size = "64kB"
"#;

fn folder(test: &str) -> PathBuf {
    let path = command::folder(test);
    fs::write(path.join("mine.toml"), SCENARIO).expect("file");
    path
}

#[track_caller]
fn json(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn the_numbers_are_those_of_a_run_by_itself() {
    let folder = folder("numbers");
    let compared = json(&apus(
        &folder,
        &["compare", "mine.toml", "--algorithms", "swift,dctcp:gcn", "--seeds", "1", "--json"],
    ));
    let runs = [
        apus(&folder, &["run", "mine.toml", "--json"]),
        apus(
            &folder,
            &[
                "run",
                "mine.toml",
                "--json",
                "--set",
                "algorithm.name=dctcp",
                "--set",
                "algorithm.profile=gcn",
                "--set",
                // 65 packets of 1538 B; a seventh of 10 Gb/s times 8 us is smaller.
                "topology.ecn.threshold=99970B",
            ],
        ),
    ];
    for (run, compared) in runs.iter().zip(compared["algorithms"].as_array().expect("list")) {
        let run = &json(run)["runs"][0];
        for (name, pointer) in [
            ("goodput_gbps", "/goodput_gbps"),
            ("fabric_rtt_us.p99", "/fabric_rtt_us/p99"),
            ("busiest_port.max_queue_bytes", "/busiest_port/max_queue_bytes"),
        ] {
            let (a, b) = (&compared["metrics"][name]["median"], run.pointer(pointer));
            assert_eq!(a.as_f64(), b.and_then(Value::as_f64), "{name}");
        }
    }
    // Marks keep DCTCP's queue near the threshold; delay keeps Swift's queue at its target of about 25 us.
    let queue = |index: usize| {
        let metrics = &compared["algorithms"][index]["metrics"];
        metrics["busiest_port.mean_queue_bytes"]["median"].as_f64().expect("queue")
    };
    assert!(queue(0) < 50_000.0 && (50_000.0..120_000.0).contains(&queue(1)), "{compared:#}");
}

#[test]
fn results_are_written_and_found_again() {
    let folder = folder("written");
    let arguments =
        ["compare", "mine.toml", "--algorithms", "swift,dctcp", "--seeds", "2", "--out", "out"];
    let text = String::from_utf8(apus(&folder, &arguments).stdout).expect("UTF-8");
    assert!(text.contains("dctcp: switches mark from 99.97kB on"), "{text}");
    assert!(text.contains("workload writes size 10kB..100kB slowdown p99"), "{text}");
    let read = |name: &str| fs::read_to_string(folder.join("out").join(name)).expect("file");
    let (csv, page) = (read("compare.csv"), read("report.html"));
    assert!(
        csv.starts_with(
            "metric,unit,algorithm,median,lower,upper,min,max\ngoodput_gbps,Gb/s,swift,"
        )
    );
    assert!(
        page.contains("\"label\":\"dctcp\"")
            && page.contains("dctcp: switches mark from 99.97kB on")
    );
    let runs = || {
        let files = fs::read_dir(folder.join("out/runs")).expect("runs");
        let names = files.map(|file| file.expect("file").file_name().into_string().expect("UTF-8"));
        let (pages, runs): (Vec<String>, Vec<String>) =
            names.partition(|name| name.ends_with(".page.json"));
        (runs.len(), pages.len())
    };
    let before = runs();
    // Two seeds of two algorithms, and a recorded run of each algorithm for the report.
    assert_eq!(before, (4, 2));
    assert_eq!(String::from_utf8(apus(&folder, &arguments).stdout).expect("UTF-8"), text);
    assert_eq!(runs(), before);
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let folder = folder("refused");
    for (algorithms, message) in [
        ("swift,swfit", "unknown algorithm `swfit`; did you mean `swift`?"),
        ("swift,swift", "is there twice"),
        ("swift:fast", "fast"),
    ] {
        let output = apus(&folder, &["compare", "mine.toml", "--algorithms", algorithms]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(message), "{message} is not in {stderr}");
    }
    let metric = ["compare", "mine.toml", "--algorithms", "swift", "--metric", "jian"];
    let stderr = String::from_utf8_lossy(&apus(&folder, &metric).stderr).into_owned();
    assert!(stderr.contains("did you mean `jain`?"), "{stderr}");
}

/// Four links of 5 us at 100 Gb/s: an unloaded RTT of 20.679 04 us.
const FABRIC: &str = r#"
duration = "3ms"
warmup = "1ms"
topology = { kind = "star", hosts = 5, rate = "100Gbps", delay = "5us", buffer = "4MB" }
algorithm = { name = "swift", base_target = "20us" }
[[workload]]
name = "writes"
kind = "incast"
size = "64kB"
"#;

/// Returns the entry with this name in a list of JSON objects.
#[track_caller]
fn entry<'a>(list: &'a Value, key: &str, name: &str) -> &'a Value {
    let list = list.as_array().expect("list");
    list.iter().find(|one| one[key] == name).unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn the_files_own_parameters_give_the_same_numbers_by_run_and_compare() {
    let folder = folder("own");
    fs::write(folder.join("mine.toml"), FABRIC).expect("file");
    let compare = |set: &str| {
        let arguments = [
            "compare",
            "mine.toml",
            "--algorithms",
            "swift",
            "--seeds",
            "1",
            "--json",
            "--set",
            set,
        ];
        let json = json(&apus(&folder, &arguments));
        json["algorithms"][0].clone()
    };
    let compared = compare("seed=1");
    let run = json(&apus(&folder, &["run", "mine.toml", "--json"]))["runs"][0].clone();
    for (name, pointer) in [
        ("goodput_gbps", "/goodput_gbps"),
        ("fabric_rtt_us.p99", "/fabric_rtt_us/p99"),
        ("op_latency_us.p50", "/op_latency_us/p50"),
        ("jain", "/jain"),
    ] {
        let (a, b) = (&compared["metrics"][name]["median"], run.pointer(pointer));
        assert!(a.is_number(), "{name}");
        assert_eq!(a.as_f64(), b.and_then(Value::as_f64), "{name}");
    }
    let target = entry(&compared["parameters"], "name", "base_target");
    assert_eq!((&target["value"], &target["origin"]), (&"20us".into(), &"set".into()));
    // The parameter of the file has an effect: a different value changes the numbers.
    let other = compare("swift.base_target=60us");
    assert_ne!(other["metrics"]["fabric_rtt_us.p50"], compared["metrics"]["fabric_rtt_us.p50"]);
}

#[test]
fn parameters_follow_from_the_network_in_run_and_compare_alike() {
    let folder = folder("derived");
    fs::write(folder.join("mine.toml"), FABRIC).expect("file");
    let arguments = [
        "compare",
        "mine.toml",
        "--algorithms",
        "swift,hpcc,dcqcn",
        "--seeds",
        "1",
        "--set",
        "dcqcn.k_min=7kB",
    ];
    let text = String::from_utf8(apus(&folder, &arguments).stdout).expect("UTF-8");
    let line = |words: &[&str]| {
        let found = text.lines().find(|line| words.iter().all(|word| line.contains(word)));
        assert!(found.is_some(), "{words:?} are not in {text}");
    };
    line(&["hpcc", "base_rtt", "20679.04ns", "derived: the unloaded RTT", "HPCC §"]);
    line(&["swift", "base_target", "20us", "set"]);
    // 200 kB at 40 Gb/s.
    line(&["dcqcn", "k_max", "500kB", "derived:"]);
    line(&["dcqcn", "k_min", "7kB", "set"]);
    let run =
        apus(&folder, &["run", "mine.toml", "--out", "out", "--set", "algorithm={name=\"hpcc\"}"]);
    assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stderr));
    let effective = fs::read_to_string(folder.join("out/effective.toml")).expect("file");
    let line = effective.lines().find(|line| line.starts_with("base_rtt")).expect("base_rtt");
    assert!(line.starts_with("base_rtt = \"20679.04ns\" # derived: the unloaded RTT"), "{line}");
}

#[test]
fn several_of_one_name_are_chosen_by_label() {
    let folder = folder("labels");
    let text = FABRIC.replace(
        "algorithm = { name = \"swift\", base_target = \"20us\" }",
        "algorithm = { near = { name = \"swift\", base_target = \"20us\" }, \
         far = { name = \"swift\", base_target = \"40us\" } }",
    );
    let workload = |label: &str| {
        format!("algorithm = \"{label}\"\n[[workload]]\nkind = \"incast\"\nsize = \"64kB\"\n")
    };
    let text = text + &workload("near") + "algorithm = \"far\"\n";
    fs::write(folder.join("mine.toml"), text).expect("file");
    let output = apus(&folder, &["compare", "mine.toml", "--algorithms", "swift"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("choose one by its label (far, near)"), "{stderr}");
    let arguments = ["compare", "mine.toml", "--algorithms", "near,far", "--seeds", "1", "--json"];
    let compared = json(&apus(&folder, &arguments));
    for (index, value) in [(0, "20us"), (1, "40us")] {
        let parameters = &compared["algorithms"][index]["parameters"];
        assert_eq!(entry(parameters, "name", "base_target")["value"], value);
    }
}

#[test]
fn seeds_without_effect_are_named_and_differences_have_intervals() {
    let folder = folder("seeds");
    // In ExpressPass the seed varies the gaps between credits; Swift on ideal hosts uses no random numbers.
    let arguments = [
        "compare",
        "mine.toml",
        "--algorithms",
        "swift,expresspass",
        "--seeds",
        "4",
        "--out",
        "out",
    ];
    let text = String::from_utf8(apus(&folder, &arguments).stdout).expect("UTF-8");
    let line = "seeds 1 to 4, medians; swift with identical results for all seeds";
    assert!(text.contains(line) && text.contains("Student's t"), "{text}");
    // Includes a recorded run of each algorithm for the report.
    assert_eq!(fs::read_dir(folder.join("out/runs")).expect("runs").count(), 4 + 4 + 2);
    let written = fs::read_to_string(folder.join("out/compare.json")).expect("file");
    let compared: Value = serde_json::from_str(&written).expect("JSON");
    let (swift, credits) = (&compared["algorithms"][0], &compared["algorithms"][1]);
    assert_eq!((&swift["same_for_all_seeds"], &swift["complete_runs"]), (&true.into(), &4.into()));
    assert_eq!(credits["same_for_all_seeds"], false);
    let found = &credits["differences"]["goodput_gbps"];
    let of = |key: &str| found[key].as_f64().expect("number");
    assert_eq!(found["pairs"], 4);
    assert!(of("low") < of("mean") && of("mean") < of("high"), "{found}");
    // Swift's result is constant, so the mean difference lies in the range of ExpressPass's results minus this
    // constant.
    let median = |one: &Value, key: &str| one["metrics"]["goodput_gbps"][key].as_f64().expect("it");
    let (low, high) = (median(credits, "min"), median(credits, "max"));
    let reference = median(swift, "median");
    assert!((low - reference..=high - reference).contains(&of("mean")), "{found}");
}

#[test]
fn where_no_algorithm_depends_on_the_seed_the_comparison_says_so() {
    let folder = folder("same");
    let arguments = ["compare", "mine.toml", "--algorithms", "swift,hpcc", "--seeds", "3"];
    let text = String::from_utf8(apus(&folder, &arguments).stdout).expect("UTF-8");
    assert!(text.starts_with("mine, seeds 1 to 3, which give identical results"), "{text}");
    assert!(text.contains("(all seeds)"), "{text}");
}

#[test]
fn every_algorithm_is_tuned_by_one_rule_with_one_budget() {
    let folder = folder("tuned");
    let arguments = [
        "compare",
        "mine.toml",
        "--algorithms",
        "swift,dctcp,hpcc",
        "--seeds",
        "1",
        "--tune-each",
        "--tune-values",
        "4",
        "--tune-seeds",
        "2",
        "--json",
    ];
    let compared = json(&apus(&folder, &arguments));
    let objective = compared["objective"].as_str().expect("words");
    assert!(objective.contains("4 values x 2 seeds (2 to 3)"), "{objective}");
    let mut tuned_marking = false;
    for one in compared["algorithms"].as_array().expect("list") {
        let tuning = &one["tuning"];
        assert_eq!(tuning["runs"], 8, "{one:#}");
        assert!(tuning["range"].is_string() && tuning["source"].is_string(), "{one:#}");
        let candidates = tuning["candidates"].as_array().expect("list");
        let of = |one: &Value, key: &str| one[key].as_f64().expect("number");
        let best = candidates.iter().map(|c| of(c, "goodput_gbps")).fold(0.0, f64::max);
        let kept = candidates.iter().filter(|c| of(c, "goodput_gbps") >= 0.98 * best);
        let least = kept.map(|c| of(c, "objective")).fold(f64::INFINITY, f64::min);
        let chosen = entry_where(&tuning["candidates"], "chosen");
        assert_eq!(of(chosen, "objective"), least, "{tuning:#}");
        assert_eq!(chosen["value"], tuning["value"]);
        // The comparison ran with the value that the search had found.
        if let Some(value) = tuning["value"].as_str() {
            let name = tuning["parameter"].as_str().expect("a name");
            let used = entry(&one["parameters"], "name", name);
            assert_eq!((&used["value"], &used["origin"]), (&value.into(), &"tuned".into()));
            if name == "topology.ecn.threshold" {
                assert_eq!(one["changes"][0], format!("switches mark from {value} on"));
                tuned_marking = true;
            }
        }
    }
    assert!(tuned_marking, "{compared:#}");
}

#[test]
fn numbers_of_a_workload_are_metrics_and_objectives() {
    let folder = folder("parts");
    let compare = |metric: &str, objective: &str| {
        let arguments = ["--seeds", "1", "--tune-each", "--tune-values", "2", "--tune-seeds", "1"];
        let chosen = ["--metric", metric, "--objective", objective, "--json"];
        let command = ["compare", "mine.toml", "--algorithms", "swift"];
        apus(&folder, &[&command[..], &arguments, &chosen].concat())
    };
    let (metric, objective) =
        ("workload.writes.throughput_gbps", "workload.writes.op_latency_us.p50");
    let compared = json(&compare(metric, objective));
    let words = compared["objective"].as_str().expect("words");
    assert!(words.starts_with(&format!("lowest {objective} among")), "{words}");
    // The receiver's port has 10 Gb/s; a packet that arrives at the end counts as a whole.
    let throughput = compared["algorithms"][0]["metrics"][metric]["median"].as_f64();
    assert!(throughput.is_some_and(|gbps| (9.0..10.01).contains(&gbps)), "{compared:#}");
    for (metric, objective, option) in [
        ("workload.reads.throughput_gbps", objective, "--metric"),
        (metric, "workload.reads.op_latency_us.p50", "--objective"),
    ] {
        let output = compare(metric, objective);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        let message = format!("{option}: unknown metric `workload.reads.");
        assert!(stderr.contains(&message), "{stderr}");
    }
}

/// Returns the only entry of a list for which `key` is true.
#[track_caller]
fn entry_where<'a>(list: &'a Value, key: &str) -> &'a Value {
    let mut found = list.as_array().expect("list").iter().filter(|one| one[key] == true);
    let one = found.next().expect("one");
    assert!(found.next().is_none(), "{list:#}");
    one
}

const JOB: &str = r#"
duration = "10ms"
topology = { kind = "star", hosts = 4, rate = "100Gbps", delay = "1us", buffer = "1MB" }
algorithm = { name = "swift" }
[[workload]]
kind = "all-reduce"
size = "64kB"
"#;

#[test]
fn times_of_jobs_come_first_and_are_those_of_a_run() {
    let folder = command::folder("jobs");
    fs::write(folder.join("job.toml"), JOB).expect("file");
    let compare = ["compare", "job.toml", "--algorithms", "swift,dctcp", "--seeds", "1"];
    let text = apus(&folder, &compare);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    let rows = ["job all-reduce completion_us [us]", "job all-reduce slowdown", "goodput_gbps"];
    let places = rows.map(|row| text.find(row).unwrap_or_else(|| panic!("{row}: {text}")));
    assert!(places.is_sorted(), "{text}");
    let compared = json(&apus(&folder, &[&compare[..], &["--json"]].concat()));
    let run = json(&apus(&folder, &["run", "job.toml", "--json"]));
    let time_of = |index: usize| {
        compared["algorithms"][index]["metrics"]["jobs.0.completion_us"]["median"].as_f64()
    };
    let fastest = if time_of(0) <= time_of(1) { "swift" } else { "dctcp" };
    assert!(text.contains(&format!("job all-reduce, fastest first: {fastest} ")), "{text}");
    let time = &run["runs"][0]["jobs"][0]["completion_us"];
    assert!(time.is_number(), "{run:#}");
    let swift = &compared["algorithms"][0]["metrics"]["jobs.0.completion_us"]["median"];
    assert_eq!(swift, time);
}

/// A setting of the contestant would replace a parameter of the scenario's algorithm with the same name.
#[test]
fn a_parameter_that_is_set_twice_is_refused() {
    let folder = folder("twice");
    let compare = |algorithms: &str, sets: [&str; 2]| {
        let words = ["compare", "mine.toml", "--seeds", "1", "--algorithms", algorithms];
        let [one, two] = sets;
        apus(&folder, &[&words[..], &["--set", one, "--set", two]].concat())
    };
    let twice = ["algorithm.base_target=55us", "swift.base_target=77us"];
    command::refused(
        &compare("swift,dctcp", twice),
        "--set algorithm.base_target=55us: has no effect, because `--set swift.base_target=...` sets the same",
    );
    let other = ["algorithm.fs_range=55us", "swift.base_target=77us"];
    assert_eq!(compare("swift", other).status.code(), Some(0));
}

#[test]
fn a_trace_that_is_streamed_is_compared() {
    let folder = folder("stream");
    fs::write(folder.join("rows.csv"), "start_us,from,to,bytes\n1,0,1,1000\n2,1,2,90000\n")
        .expect("file");
    let incast = "kind = \"incast\"\nsize = \"64kB\"";
    let stream = "kind = \"trace\"\nfile = \"rows.csv\"\nflows_per_pair = 1\nstream = true";
    let text = SCENARIO.replace(incast, stream).replace("warmup = \"1ms\"", "");
    fs::write(folder.join("mine.toml"), text).expect("file");
    // The scenario is read again for DCTCP, with switches that mark.
    let words = ["compare", "mine.toml", "--algorithms", "swift,dctcp", "--seeds", "1", "--json"];
    let compared = json(&apus(&folder, &words));
    for one in compared["algorithms"].as_array().expect("list") {
        assert_eq!(one["metrics"]["op_latency_us.unfinished"]["median"], 0.0, "{one:#}");
        assert_eq!(one["complete_runs"], 1);
    }
}
