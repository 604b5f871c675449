//! Bundles: `apus run --bundle`, `apus rerun`, and `apus diff` with bundles and other results.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::support::command;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// A scenario with a testbed, a trace in a file, and variants.
const SCENARIO: &str = r#"
testbed = "beds/mine.toml"
duration = "1ms"
[[workload]]
kind = "trace"
file = "flows.csv"
[[variant]]
name = "whole"
set = { "algorithm.ai" = 1 }
reason = "a test with two variants that differ"
[[variant]]
name = "half"
set = { "algorithm.ai" = 0.5 }
reason = "a test with two variants that differ"
"#;

const TESTBED: &str = "topology = { kind = \"star\", hosts = 4, rate = \"100Gbps\", delay = \"1us\", \
                       buffer = \"4MB\" }\nalgorithm = { name = \"swift\" }\n";

const FLOWS: &str = "start_us,from,to,bytes\n0,0,3,400000\n1,1,3,400000\n2,2,3,30000\n";

fn folder(test: &str) -> PathBuf {
    let path = command::folder(test);
    fs::create_dir(path.join("beds")).expect("folder");
    fs::write(path.join("mine.toml"), SCENARIO).expect("file");
    fs::write(path.join("beds/mine.toml"), TESTBED).expect("file");
    fs::write(path.join("flows.csv"), FLOWS).expect("file");
    path
}

#[track_caller]
fn ends(output: &Output, code: i32, parts: &[&str]) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{stdout}{stderr}");
    for part in parts {
        assert!(
            stdout.contains(part) || stderr.contains(part),
            "{part} is not in {stdout}{stderr}"
        );
    }
    stdout
}

fn apus(folder: &Path, line: &str) -> Output {
    command::apus(folder, &line.split(' ').collect::<Vec<_>>())
}

#[test]
fn a_bundle_is_repeated_without_the_files_it_was_made_of() {
    let folder = folder("repeated");
    let run = "run mine.toml --seed 3 --set duration=2ms --out a --bundle";
    ends(&apus(&folder, &format!("{run} a.zip")), 0, &[]);
    let again = apus(&folder, "run mine.toml --seed 3 --set duration=2ms --bundle b.zip");
    ends(&again, 0, &[]);
    let read = |name: &str| fs::read(folder.join(name)).expect(name);
    assert!(read("a.zip") == read("b.zip"), "equal runs have equal bundles");
    // The other machine has the bundle and nothing else.
    let elsewhere = folder.join("elsewhere");
    fs::create_dir(&elsewhere).expect("folder");
    fs::copy(folder.join("a.zip"), elsewhere.join("a.zip")).expect("copy");
    let output = apus(&elsewhere, "rerun a.zip --out out");
    ends(&output, 0, &["of 2 runs: no difference"]);
    let file = |name: &str| (read(&format!("a/{name}")), read(&format!("elsewhere/out/{name}")));
    for name in ["summary.json", "effective-half.toml", "half/ops.csv"] {
        let (made, repeated) = file(name);
        assert!(made == repeated, "{name}");
    }
    let json = ends(&apus(&elsewhere, "rerun a.zip --json"), 0, &[]);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&json["equal"], &json["results"]["runs"]), (&true.into(), &2.into()));
    // A bundle contains the results, and any zip tool can unpack it.
    ends(&apus(&elsewhere, "diff a.zip out"), 0, &["no difference"]);
}

#[test]
fn a_bundle_overwrites_nothing() {
    let folder = folder("overwrites");
    fs::write(folder.join("mine.zip"), "mine").expect("file");
    let output = apus(&folder, "run mine.toml --bundle mine.zip");
    ends(&output, 2, &["--bundle mine.zip: the file exists; choose another name"]);
    assert_eq!(fs::read_to_string(folder.join("mine.zip")).expect("file"), "mine");
    ends(&apus(&folder, "run mine.toml --bundle no/a.zip"), 2, &["its folder does not exist"]);
}

/// Both the bytes of the archive and its content are protected.
#[test]
fn a_damaged_bundle_is_refused() {
    let folder = folder("damaged");
    ends(&apus(&folder, "run mine.toml --bundle a.zip"), 0, &[]);
    let bundle = fs::read(folder.join("a.zip")).expect("bundle");
    fs::write(folder.join("short.zip"), &bundle[..bundle.len() - 30]).expect("file");
    let mut changed = bundle.clone();
    // A byte within the compressed content of the first entry.
    changed[60] ^= 0x10;
    fs::write(folder.join("changed.zip"), &changed).expect("file");
    fs::write(folder.join("text.zip"), "mine").expect("file");
    for (file, part) in [
        ("short.zip", "is damaged"),
        ("changed.zip", "changed.zip: "),
        ("text.zip", "is not a bundle; `apus run FILE --bundle BUNDLE` writes one"),
        ("none.zip", "cannot be read"),
    ] {
        ends(&apus(&folder, &format!("rerun {file}")), 2, &[part]);
    }
}

/// Returns the bundle with different results, configuration and events, and with matching hashes.
fn rewritten(bundle: &[u8], format: u64) -> Vec<u8> {
    let mut old = zip::ZipArchive::new(Cursor::new(bundle)).expect("an archive");
    let mut entries: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for index in 0..old.len() {
        let mut entry = old.by_index(index).expect("an entry");
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).expect("content");
        entries.insert(entry.name().expect("a name").into_owned(), bytes);
    }
    let json = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).expect("JSON");
    let mut summary = json(&entries["summary.json"]);
    summary["runs"][0]["goodput_gbps"] = 0.25.into();
    entries.insert("summary.json".to_owned(), summary.to_string().into_bytes());
    let effective = String::from_utf8(entries["effective/1.toml"].clone()).expect("text");
    let effective = effective.replace("4MB", "5MB").into_bytes();
    entries.insert("effective/1.toml".to_owned(), effective);
    let mut manifest = json(&entries.remove("manifest.json").expect("a manifest"));
    manifest["bundle_format"] = format.into();
    manifest["runs"][0]["event_hash"] = "0".into();
    for (name, bytes) in &entries {
        let hash = Sha256::digest(bytes);
        let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        manifest["sha256"][name] = digits.into();
    }
    entries.insert("manifest.json".to_owned(), manifest.to_string().into_bytes());
    let mut new = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        new.start_file(name, zip::write::SimpleFileOptions::default()).expect("an entry");
        new.write_all(&bytes).expect("content");
    }
    new.finish().expect("an archive").into_inner()
}

/// Replaces the results of the bundle, as if this machine or version gave different ones.
#[test]
fn a_repetition_with_other_results_fails_and_names_them() {
    let folder = folder("other");
    ends(&apus(&folder, "run mine.toml --variant half --bundle a.zip"), 0, &[]);
    let bundle = fs::read(folder.join("a.zip")).expect("bundle");
    fs::write(folder.join("b.zip"), rewritten(&bundle, 1)).expect("file");
    let parts = [
        "mine/half: effective configuration: `buffer = \"5MB\"` is now `buffer = \"4MB\"`",
        "mine/half: its events differ",
        "goodput_gbps",
        "of 1 run: 1 differs",
    ];
    ends(&apus(&folder, "rerun b.zip"), 1, &parts);
    ends(&apus(&folder, "diff a.zip b.zip"), 1, &["goodput_gbps", "1 differs"]);
    fs::write(folder.join("newer.zip"), rewritten(&bundle, 2)).expect("file");
    ends(&apus(&folder, "rerun newer.zip"), 2, &["its `bundle_format` is 2, but apus "]);
}

#[test]
fn results_are_compared_with_tolerances() {
    let folder = folder("tolerances");
    for (out, bytes) in [("a", "400000"), ("b", "404000")] {
        fs::write(folder.join("flows.csv"), FLOWS.replace("400000", bytes)).expect("file");
        ends(&apus(&folder, &format!("run mine.toml --out {out}")), 0, &[]);
    }
    let diff = |more: &str| apus(&folder, &format!("diff a b{more}"));
    let text =
        ends(&diff(""), 1, &["mine/whole, seed 1\n", "mine/half, seed 1\n", "--json has all"]);
    assert!(text.lines().any(|line| line.trim_start().starts_with("makespan_us ")), "{text}");
    assert!(text.lines().all(|line| line.len() < 160), "{text}");
    ends(&diff(" --json"), 1, &["\"work.events\""]);
    ends(&apus(&folder, "diff a a/summary.json"), 0, &["of 2 runs: no difference"]);
    // Every number is within 60 % here, but texts must be equal.
    let wide = " --tolerance 60% --ignore notes";
    ends(&diff(&format!("{wide} --ignore work")), 0, &["of 2 runs: no difference"]);
    let json = ends(&diff(&format!("{wide} --json")), 1, &[]);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let differences = json["differences"].as_array().expect("a list");
    let names = differences.iter().map(|one| one["metric"].as_str().expect("a name"));
    assert_eq!(names.collect::<Vec<_>>(), ["work.event_hash", "work.event_hash"]);
    let makespan = |tolerance: &str| {
        let json = ends(&diff(&format!(" --tolerance makespan_us={tolerance} --json")), 1, &[]);
        json.contains("\"makespan_us\"")
    };
    assert!(makespan("0.01%") && !makespan("50%") && !makespan("1000"));
    for (more, part) in [
        (" --tolerance makespan=1%", "neither of the results has this metric; did you mean"),
        (" --tolerance 5", "metrics have different units"),
        (" --tolerance work=1% --ignore work", "contradicts"),
    ] {
        ends(&diff(more), 2, &[part]);
    }
    // Other layouts are refused.
    let old = fs::read_to_string(folder.join("a/summary.json")).expect("results");
    let old = old.replacen("\"schema_version\": 2", "\"schema_version\": 1", 1);
    fs::write(folder.join("old.json"), old).expect("file");
    ends(
        &apus(&folder, "diff a old.json"),
        2,
        &["old.json: its results have the layout 1, but apus"],
    );
    fs::write(folder.join("text.json"), "mine").expect("file");
    ends(&apus(&folder, "diff a text.json"), 2, &["neither a bundle nor JSON of results"]);
    ends(&apus(&folder, "diff a beds"), 2, &["beds: this directory has neither summary.json nor"]);
}

#[test]
fn runs_that_only_one_result_has_are_a_difference() {
    let folder = folder("only");
    let sweep = |values: &str, out: &str| {
        let line = format!("sweep mine.toml --vary transport.max_ops={values} --out {out}");
        ends(&apus(&folder, &line), 0, &[]);
    };
    sweep("8,16", "a");
    sweep("16,32", "b");
    let parts = [
        "transport.max_ops=8, variant whole, seed 1: only in a",
        "transport.max_ops=32, variant half, seed 1: only in b",
        "of 2 runs: no difference",
    ];
    ends(&apus(&folder, "diff a b"), 1, &parts);
    // Without a common run, a tolerance may name a metric of the runs of either side.
    sweep("64,128", "c");
    let parts = [
        "transport.max_ops=8, variant whole, seed 1: only in a",
        "transport.max_ops=128, variant half, seed 1: only in c",
        "no run is in both results",
    ];
    ends(&apus(&folder, "diff a c"), 1, &parts);
    ends(&apus(&folder, "diff a c --tolerance 1% --ignore op_latency_us"), 1, &parts);
    let unknown = "neither of the results has this metric; did you mean";
    ends(&apus(&folder, "diff a c --tolerance makespan=1%"), 2, &[unknown]);
    // Two single runs are compared whatever their names.
    ends(&apus(&folder, "run mine.toml --variant half --out half"), 0, &[]);
    ends(&apus(&folder, "run mine.toml --variant whole --out whole"), 0, &[]);
    let output = apus(&folder, "diff half whole --ignore name");
    ends(&output, 1, &["of 1 run: "]);
}

/// Same scenario as in `a_drain_that_the_watchdog_has_ended_is_run_again`.
#[test]
fn a_repetition_has_the_watchdog_of_the_bundle() {
    let folder = folder("watchdog");
    let text = "duration = \"1ms\"\ntopology = \"star hosts=3 10Gbps 1us\"\nalgorithm = { name = \"swift\" }\n\
        [[workload]]\nkind = \"trace\"\nflows = \"\"\"\nstart_us,from,to,bytes\n50,0,2,1200000\n\"\"\"\n\
        [[fault]]\nkind = \"down\"\nlink = \"host 0 <-> switch 0\"\nat = \"900us\"\n";
    fs::write(folder.join("cut.toml"), text).expect("file");
    ends(&apus(&folder, "run cut.toml --watchdog 200us --bundle a.zip"), 0, &[]);
    ends(&apus(&folder, "rerun a.zip"), 0, &["no difference"]);
    ends(&apus(&folder, "rerun a.zip --watchdog off"), 1, &["cut: its events differ"]);
}
