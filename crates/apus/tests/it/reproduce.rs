//! `apus reproduce` as a process: its checks, its JSON, and the events of quick runs.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::command::{apus as apus_in, folder, refused, texts};
use serde_json::Value;

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
    refused(&apus_in(here, &["reproduce", "--all", "--out", "o", "--open"]), "cannot be used with");
    let output = apus_in(here, &["reproduce", "swift/fig20", "swift/fig20"]);
    refused(&output, "the experiment `swift/fig20` is named twice");
    refused(&apus_in(here, &["reproduce", "none.toml"]), "none.toml: this file cannot be read");
}

/// A user's scenario is an experiment if it has checks.
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

/// No program opens pages here: the results are written nevertheless, and the error is the last message.
#[test]
fn reproduce_that_cannot_open_its_page_has_printed_and_written_everything() {
    let folder = folder("reproduce_open");
    let options = ["--quick", "--out", "out", "--worst", "0", "--open", "--report", "page.md"];
    let output = Command::new(env!("CARGO_BIN_EXE_apus"))
        .args(["reproduce", "swift/fig20"])
        .args(options)
        .env("PATH", &folder)
        .current_dir(&folder)
        .output()
        .expect("process");
    let (stdout, stderr) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{stdout}{stderr}");
    assert!(stderr.trim_end().ends_with("report.html in a browser"), "{stderr}");
    assert!(stdout.contains("fitted 1 of 1"), "{stdout}");
    assert!(fs::read_to_string(folder.join("page.md")).expect("page").contains("swift/fig20"));
}

/// Other programs read this schema: exactly these keys, with these types.
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

/// Two experiments have equal runs, which are executed once. The events of the second experiment are the same without
/// the first.
#[test]
fn events_of_an_experiment_do_not_depend_on_experiments_that_share_its_runs() {
    let folder = folder("shared-events");
    let scenario = "duration = \"100us\"\nalgorithm = { name = \"swift\" }\n\
        topology = { kind = \"star\", hosts = 3, rate = \"10Gbps\", delay = \"1us\", buffer = \"4MB\" }\n\
        [[workload]]\nkind = \"incast\"\nsize = \"64kB\"\n\
        [[show]]\nname = \"goodput\"\nmetric = \"goodput_gbps\"\nsource = \"a test\"\n";
    for file in ["first.toml", "second.toml"] {
        fs::write(folder.join(file), scenario).expect("file");
    }
    let both = ["reproduce", "first.toml", "second.toml", "--quick", "--write-events", "e.txt"];
    assert_eq!(apus_in(&folder, &both).status.code(), Some(0));
    for file in ["first.toml", "second.toml"] {
        let output = apus_in(&folder, &["reproduce", file, "--quick", "--expect-events", "e.txt"]);
        assert_eq!(output.status.code(), Some(0), "{file}: {}", texts(&output).1);
    }
}

#[test]
fn lines_of_other_experiments_stay_in_a_file_of_events() {
    let folder = folder("other-events");
    let other = "mine 0123456789abcdef\n";
    fs::write(folder.join("events.txt"), other).expect("file");
    let arguments = ["reproduce", "swift/fig20", "--quick", "--write-events", "events.txt"];
    assert_eq!(apus_in(&folder, &arguments).status.code(), Some(0));
    let text = fs::read_to_string(folder.join("events.txt")).expect("written");
    assert!(text.contains(other) && text.contains("\nswift/fig20 "), "{text}");
}

/// Without topology scaling the far flow gets less throughput, so a check fails.
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
