//! `apus tune`: the result changes with the network as expected, and invalid requests are refused.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::command::folder;
use serde_json::Value;

/// Writes a scenario with four senders, one flow each, to one port over links of `delay`.
fn scenario(folder: &Path, delay: &str, more: &str) {
    let text = format!(
        "duration = \"10ms\"\nwarmup = \"3ms\"\n\
         topology = {{ kind = \"star\", hosts = 5, rate = \"100Gbps\", delay = \"{delay}\", \
         buffer = \"4MB\" }}\n\
         [[workload]]\nkind = \"incast\"\nsenders = 4\nreceiver = 4\noutstanding = 2\n\
         size = \"1MB\"\n{more}"
    );
    fs::write(folder.join("mine.toml"), text).expect("file");
}

const SWIFT: &str = "[algorithm]\nname = \"swift\"\n";

fn tune(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_apus"));
    command.current_dir(folder).args(["tune", "mine.toml"]).args(arguments);
    command.output().expect("process")
}

#[track_caller]
fn answer(folder: &Path, arguments: &[&str]) -> Value {
    let output = tune(folder, &[arguments, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Four links of 5 us and the transmission times: 4160 B twice and 84 B twice at 100 Gb/s, 0.68 us.
#[test]
fn the_target_lies_at_the_unloaded_rtt_and_follows_the_links() {
    let folder = folder("links");
    scenario(&folder, "5us", SWIFT);
    let near = answer(&folder, &["--seeds", "1"]);
    let base = |json: &Value| json["base_target_us"].as_f64().expect("a target");
    let unloaded = near["unloaded_fabric_rtt_us"].as_f64().expect("an RTT");
    assert!((20.0..=20.7).contains(&unloaded), "{unloaded}");
    assert!((19.0..=22.0).contains(&base(&near)), "{near:#}");
    scenario(&folder, "10us", SWIFT);
    let far = answer(&folder, &["--seeds", "1"]);
    // Each of the four links is 5 us longer; the value is read from a curve whose points are 6 % apart.
    let shift = base(&far) - base(&near);
    assert!((18.0..=23.0).contains(&shift), "{shift}");
    // With hop scaling (1 us) and flow scaling (at least 0), targets from about 37 us upwards reach the RTT. Far below,
    // the link idles; above, no throughput is lost.
    for sample in far["base_target_curve"].as_array().expect("curve") {
        let value = sample["value_us"].as_f64().expect("value");
        if !(36.0..41.0).contains(&value) {
            assert_eq!(sample["keeps"], value >= 41.0, "{sample:#}");
        }
    }
}

/// Only flow scaling brings the windows of many flows together (Swift §3.5, Fig. 21). For flows that always have data
/// to send, the range is the one that fairness needs.
#[test]
fn the_range_is_what_fairness_needs() {
    let folder = folder("fair");
    scenario(&folder, "1us", "flows_per_pair = 10\n[algorithm]\nname = \"swift\"\n");
    let json = answer(&folder, &["--seeds", "1", "--set", "workload.size=64kB"]);
    let range = json["fs_range_us"].as_f64().expect("a range");
    let curve = json["fs_range_curve"].as_array().expect("curve");
    let jain = |value: f64| {
        let sample = curve.iter().find(|sample| sample["value_us"] == value).expect("tried");
        sample["medians"]["jain"].as_f64().expect("an index")
    };
    let best = curve.iter().filter_map(|s| s["medians"]["jain"].as_f64()).fold(0.0, f64::max);
    assert!(range > 0.0 && jain(0.0) < best - 0.05, "{json:#}");
    assert!(jain(range) >= best - 0.05, "{json:#}");
}

/// With an RTT of 400 ms, eight times the RTT exceeds the largest target of an algorithm.
#[test]
fn a_search_ends_at_the_largest_target_of_an_algorithm() {
    let folder = folder("largest");
    let text = "duration = \"4s\"\ntopology = \"star hosts=3 10Mbps 100ms\"\n\
        [[workload]]\nkind = \"incast\"\nsize = \"100kB\"\n";
    fs::write(folder.join("mine.toml"), format!("{text}{SWIFT}")).expect("file");
    let output = tune(&folder, &["--seeds", "1", "--json"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!stderr.contains("base_target"), "{stderr}");
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let samples = found["base_target_curve"].as_array().expect("curve");
    assert_eq!(samples.last().expect("a sample")["value_us"], 1e6, "{found:#}");
    // An RTT of 1.2 s, less one hop scale, exceeds it too.
    let far = text.replace("100ms", "300ms").replace("4s", "12s");
    fs::write(folder.join("mine.toml"), format!("{far}{SWIFT}")).expect("file");
    let json = answer(&folder, &["--seeds", "1"]);
    assert!(json["unloaded_fabric_rtt_us"].as_f64() > Some(1.2e6), "{json:#}");
    assert_eq!(
        (&json["base_target_us"], &json["base_target_floor_us"]),
        (&1e6.into(), &1e6.into())
    );
    let why = json["why"].to_string();
    assert!(!why.contains("hop_scale") || !why.contains("this RTT minus"), "{why}");
    // Larger targets are refused.
    let set = ["validate", "mine.toml", "--set", "algorithm.base_target=1000000.1us"];
    let output = crate::support::command::apus(&folder, &set);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("it must be at most 1s"), "{stderr}");
}

#[test]
fn the_answer_is_kept_and_found_again() {
    let folder = folder("kept");
    scenario(&folder, "5us", SWIFT);
    let first = answer(&folder, &["--seeds", "1", "--out", "out"]);
    let written = fs::read_to_string(folder.join("out/tune.json")).expect("tune.json");
    assert_eq!(serde_json::from_str::<Value>(&written).expect("JSON"), first);
    assert!(fs::read_to_string(folder.join("out/tune.svg")).expect("chart").contains("<polyline"));
    let runs = || fs::read_dir(folder.join("out/runs")).expect("runs").count();
    let before = runs();
    assert_eq!(answer(&folder, &["--seeds", "1", "--out", "out"]), first);
    assert_eq!(runs(), before);
}

#[test]
fn the_text_has_the_settings_and_a_reason() {
    let folder = folder("text");
    scenario(&folder, "5us", SWIFT);
    let output = tune(&folder, &["--seeds", "1"]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    for part in ["base_target = \"", "fs_range = \"", "Below it, at", "yes <-"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[test]
fn what_cannot_be_tuned_is_refused() {
    let folder = folder("refused");
    let variants = "[[variant]]\nname = \"a\"\nset = { duration = \"9ms\" }\n\
                    [[variant]]\nname = \"b\"\n[[show]]\nname = \"x\"\nmetric = \"jain\"\n\
                    source = \"none\"\n";
    let cases: [(&str, &[&str], &str); 5] = [
        ("[algorithm]\nname = \"constant\"\n", &[], "none of its algorithms has a base target"),
        (SWIFT, &["--keep", "100"], "above 0 and below 100"),
        (SWIFT, &["--algorithm", "quick"], "has no algorithm `quick`; it has swift"),
        (&format!("{SWIFT}{variants}"), &[], "choose one with --variant (a, b)"),
        (SWIFT, &["--set", "duration=1"], "duration"),
    ];
    for (more, arguments, message) in cases {
        scenario(&folder, "5us", more);
        let output = tune(&folder, arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}: {stderr}");
        assert!(stderr.contains(message), "{message} is not in {stderr}");
        assert!(output.stdout.is_empty());
    }
}

/// Four senders to a port whose buffer of 30 kB overflows with a target of 20 us, so goodput decreases again.
#[test]
fn a_buffer_that_overflows_with_larger_targets_does_not_hide_the_answer() {
    let folder = folder("overflow");
    let text = "duration = \"30ms\"\nwarmup = \"1ms\"\n\
        topology = { kind = \"star\", hosts = 5, rate = \"10Gbps\", delay = \"1us\", buffer = \"30kB\" }\n\
        algorithm = { name = \"swift\" }\n[[workload]]\nkind = \"incast\"\nsize = \"100kB\"\n";
    fs::write(folder.join("mine.toml"), text).expect("file");
    let json = answer(&folder, &["--seeds", "1"]);
    let curve = json["base_target_curve"].as_array().expect("curve");
    let goodput = |sample: &Value| sample["medians"]["goodput_gbps"].as_f64().expect("goodput");
    let largest = curve.last().expect("a sample");
    let best = curve.iter().map(goodput).fold(0.0, f64::max);
    // 30 kB take 24 us at 10 Gb/s. With the RTT of 7 us, the delay never reaches a target of 31 us or more.
    assert!(goodput(largest) < 0.9 * best && largest["value_us"].as_f64() < Some(64.0), "{json:#}");
    assert_eq!((&largest["keeps"], &largest["fails"]), (&false.into(), &"goodput".into()));
    let base = json["base_target_us"].as_f64().expect("a target");
    let chosen = curve.iter().find(|sample| sample["value_us"] == base).expect("tried");
    assert!(goodput(chosen) >= 0.98 * best && base < 31.0, "{json:#}");
    assert_eq!((&chosen["keeps"], &chosen["fails"]), (&true.into(), &Value::Null));
    let why = json["why"].to_string();
    assert!(!why.contains("still grows") && why.contains(" % lower and the p99"), "{why}");
}

/// Eight senders of 100 kB: small targets give high goodput, but an op of one flow does not end in time.
#[test]
fn ops_that_a_target_leaves_unfinished_are_the_reason_that_is_given() {
    let folder = folder("unfinished");
    let text = "duration = \"4ms\"\nwarmup = \"1ms\"\n\
        topology = { kind = \"star\", hosts = 9, rate = \"10Gbps\", delay = \"1us\", buffer = \"60kB\" }\n\
        algorithm = { name = \"swift\" }\n[[workload]]\nkind = \"incast\"\nsize = \"100kB\"\n";
    fs::write(folder.join("mine.toml"), text).expect("file");
    let json = answer(&folder, &[]);
    let curve = json["base_target_curve"].as_array().expect("curve");
    let base = &json["base_target_us"];
    let place = curve.iter().position(|sample| sample["value_us"] == *base).expect("tried");
    let (below, chosen) = (&curve[place - 1], &curve[place]);
    let of = |sample: &Value, name: &str| sample["medians"][name].as_f64();
    assert!(of(chosen, "op_latency_us.p99").is_some(), "{chosen:#}");
    assert_eq!(below["fails"], "unfinished ops", "{json:#}");
    assert!(of(below, "goodput_gbps") > Some(0.98 * of(chosen, "goodput_gbps").expect("goodput")));
    let why = json["why"][0].as_str().expect("a reason");
    assert!(why.contains("ops are unfinished") && !why.contains("windows shrink"), "{why}");
}
