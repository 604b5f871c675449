//! `apus whatif`: the harm of failures, ranked.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::command;
use crate::support::command::apus;
use serde_json::Value;

/// Hosts 0 and 1 are on "left", 2 and 3 on "right", connected over two switches. Host 0 sends 4 MB to host 2 over a
/// single path chosen by hash. Host 1 sends as much to host 0, which crosses no link between switches.
const SCENARIO: &str = r#"
duration = "5ms"
ends_with_ops = true
algorithm = { name = "constant", window = 64.0, min_rto = "100us" }
topology = "leaf-spine leaves=2 hosts_per_leaf=2 spines=2 100Gbps 1us 4MB"
[[workload]]
kind = "trace"
flows = """
start_us,from,to,bytes
0,0,2,4000000
0,1,0,4000000
"""
"#;

fn folder(test: &str) -> PathBuf {
    let path = command::folder(test);
    fs::write(path.join("mine.toml"), SCENARIO).expect("file");
    path
}

fn json(folder: &Path, more: &[&str]) -> Value {
    let mut words = vec!["whatif", "mine.toml", "--json"];
    words.extend(more);
    let output = apus(folder, &words);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Of four links, the flow crosses two. If one of these has a quarter of its rate from the start, the flow takes four
/// times as long, apart from a few RTTs that fill the pipeline. The other links have no effect.
#[test]
fn links_on_the_path_of_a_flow_rank_first_with_the_factor_of_their_rate() {
    let folder = folder("whatif-slow");
    let report = json(&folder, &["--fault", "slow fraction=0.25", "--out", "o"]);
    let failures = report["failures"].as_array().expect("a list");
    assert_eq!(failures.len(), 4);
    assert_eq!(report["metric"], "makespan_us");
    for (rank, failure) in failures.iter().enumerate() {
        let (ratio, delayed) =
            (failure["ratio"].as_f64().expect("a ratio"), &failure["delayed_flows"]);
        if rank < 2 {
            assert!((3.8..4.0).contains(&ratio), "{failure}");
            assert_eq!((delayed, &failure["worst_flow"]), (&1.into(), &"host 0 -> host 2".into()));
        } else {
            assert!((ratio - 1.0).abs() < 1e-9, "{failure}");
            assert_eq!((delayed, &failure["worst_flow"]), (&0.into(), &Value::Null));
        }
        assert_eq!(failure["lost_packets"], 0);
    }
    let table = fs::read_to_string(folder.join("o/whatif.csv")).expect("a table");
    assert_eq!(table.lines().count(), 5);
    assert!(table.lines().nth(1).is_some_and(|line| line.contains("makespan_us")), "{table}");
}

/// The scenario itself has a slow link from 1 to 2 ms. The failure from 3 to 4 ms delays ops of host 0 until about 4
/// ms.
#[test]
fn times_count_from_the_failure_and_not_from_a_fault_of_the_scenario() {
    let folder = command::folder("whatif-own");
    let scenario = r#"
duration = "6ms"
algorithm = { name = "constant", window = 64.0, min_rto = "100us" }
topology = "leaf-spine leaves=2 hosts_per_leaf=2 spines=2 100Gbps 1us 4MB"
[[workload]]
kind = "incast"
receiver = 2
senders = [0]
size = "100kB"
[[fault]]
link = "host 1 -> leaf 0"
kind = "slow"
fraction = 0.5
at = "1ms"
until = "2ms"
"#;
    fs::write(folder.join("mine.toml"), scenario).expect("file");
    let report = json(&folder, &["--fault", "down at=3ms until=4ms"]);
    let worst = &report["failures"][0];
    assert_eq!(worst["delayed_flows"], 1, "{report}");
    let lasted = worst["delayed_for_us"].as_f64().expect("a time");
    assert!((900.0..1500.0).contains(&lasted), "{worst}");
    if let Some(even) = worst["even_after_us"].as_f64() {
        assert!((0.0..3000.0).contains(&even), "{worst}");
    }
}

/// The path, on which the flow takes 333 us, is cut at 100 us. Without rerouting the flow stays unfinished. With
/// rerouting it takes longer by the local or global delay plus an RTO.
#[test]
fn a_cut_ranks_by_unfinished_ops_and_with_rerouting_by_time() {
    let folder = folder("whatif-cut");
    let never = json(&folder, &["--fault", "down at=100us"]);
    let worst = &never["failures"][0];
    assert_eq!((&worst["unfinished"], &worst["delayed_flows"]), (&1.into(), &1.into()), "{worst}");
    assert!(worst["lost_packets"].as_u64() > Some(0), "{worst}");
    assert_eq!(never["failures"][3]["unfinished"], 0);
    let set = ["--set", "routing.reroute_local=50us", "--set", "routing.reroute_global=50us"];
    let mut words = vec!["--fault", "down at=100us"];
    words.extend(set);
    let rerouted = json(&folder, &words);
    let worst = &rerouted["failures"][0];
    assert_eq!(worst["unfinished"], 0, "{worst}");
    let ratio = worst["ratio"].as_f64().expect("a ratio");
    assert!((1.1..2.5).contains(&ratio), "{worst}");
}

#[test]
fn switches_pairs_and_samples_are_chosen() {
    let folder = folder("whatif-choice");
    let names = |more: &[&str]| -> Vec<String> {
        let report = json(&folder, more);
        let failures = report["failures"].as_array().expect("a list");
        let mut names: Vec<String> =
            failures.iter().map(|f| f["failure"].as_str().expect("a name").to_owned()).collect();
        names.sort();
        names
    };
    let slow = ["--fault", "slow fraction=0.5"];
    let with = |more: &[&'static str]| names(&[&slow[..], more].concat());
    assert_eq!(with(&["--switch", "spine *"]), ["spine 0", "spine 1"]);
    assert_eq!(with(&["--switch", "spine *", "--pairs"]), ["spine 0 and spine 1"]);
    assert_eq!(with(&["--link", "leaf 0 -> spine *"]), ["leaf 0 -> spine 0", "leaf 0 -> spine 1"]);
    assert_eq!(with(&["--sample", "3", "--pairs"]).len(), 3);
    // A link that two patterns name fails only once.
    let twice = ["--link", "leaf 0 <-> spine 1", "--link", "leaf 1 <-> spine 0", "--link"];
    assert_eq!(with(&[&twice[..], &["leaf 0 <-> spine *"]].concat()).len(), 3);
    for (words, expected) in [
        (&["--switch", "spine 0", "--pairs"][..], "--pairs: needs at least two"),
        (&["--link", "leaf 9 -> *"], "--link: names \"leaf 9\""),
        (&["--switch", "spin 0"], "did you mean `spine 0`"),
        (&["--fault", "down at=9ms"], "the run ends at 5ms"),
        (&["--fault", "slow"], "`fault.fraction` is missing"),
        (&["--metric", "nothing"], "unknown metric"),
    ] {
        let output = apus(&folder, &[&["whatif", "mine.toml"][..], words].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    }
}

/// The numbers of flows do not depend on the number of ops that tables keep.
#[test]
fn ops_that_tables_leave_out_count() {
    let folder = folder("whatif-record");
    let text = format!("{SCENARIO}[record]\nops = 0\n");
    fs::write(folder.join("mine.toml"), text).expect("file");
    let report = json(&folder, &["--fault", "slow fraction=0.25"]);
    let worst = &report["failures"][0];
    assert_eq!(worst["delayed_flows"], 1, "{worst}");
    assert_eq!(worst["worst_flow"], "host 0 -> host 2");
}

/// The fault is added to a text that the user does not see.
#[test]
fn errors_of_a_fault_name_the_option_and_no_line() {
    let folder = folder("whatif-wrong");
    for (more, message) in [
        (
            &["--fault", "slow fraction=3"][..],
            "mine.toml: --fault \"slow fraction=3\" on leaf 0 <-> spine 0: `fault.fraction` must be above 0",
        ),
        (
            &["--fault", "slow fraction=nan"],
            "mine.toml: --fault \"slow fraction=nan\" on leaf 0 <-> spine 0: `fault.fraction`",
        ),
        (
            &["--link", "leaf 0 <-> spine 0", "--link", "leaf 0 -> spine 0", "--pairs"],
            "mine.toml: --pairs: leaf 0 <-> spine 0 and leaf 0 -> spine 0: `fault.link` `leaf 0 -> spine 0` overlaps",
        ),
    ] {
        let output = apus(&folder, &[&["whatif", "mine.toml"], more].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(message), "{stderr}");
    }
}

/// The flow that is cut at 100 us makes no progress afterwards, and the other flow has ended after 333 us.
#[test]
fn a_run_without_progress_has_no_value_and_ranks_first() {
    let folder = folder("whatif-stuck");
    let fault = ["--fault", "down at=100us", "--watchdog", "1ms"];
    let report = json(&folder, &fault);
    let (worst, least) = (&report["failures"][0], &report["failures"][3]);
    let why = worst["stop_reason"].as_str().expect("a reason");
    assert!(why.contains("no packet was delivered"), "{why}");
    assert_eq!((&worst["metric"]["lower"], &worst["ratio"]), (&Value::Null, &Value::Null));
    assert_eq!(worst["unfinished"], 1);
    assert!(least["stop_reason"].is_null() && least["ratio"].is_number(), "{least}");
    let text = command::texts(&apus(&folder, &[&["whatif", "mine.toml"][..], &fault].concat())).0;
    assert!(text.contains("no packet was delivered for "), "{text}");
    // The run without a failure must make progress.
    let down = "[[fault]]\nkind = \"down\"\nlink = \"leaf 0 <-> spine *\"\nat = \"100us\"\n";
    fs::write(folder.join("mine.toml"), format!("{SCENARIO}{down}")).expect("file");
    let words = ["whatif", "mine.toml", "--watchdog", "1ms", "--link", "leaf 1 <-> spine *"];
    let output = apus(&folder, &[&words[..], &["--fault", "slow fraction=0.5"]].concat());
    let (stdout, stderr) = command::texts(&output);
    assert_eq!((output.status.code(), stdout.as_str()), (Some(1), ""), "{stderr}");
    assert!(stderr.contains("mine, without a failure: no packet was delivered for "), "{stderr}");
}
