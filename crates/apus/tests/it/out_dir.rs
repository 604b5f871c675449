//! `--out DIR` and `--report FILE` of every command: only files that the program wrote are overwritten.

use crate::support::command;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

const SCENARIO: &str = r#"
duration = "1ms"
topology = { kind = "star", hosts = 3, rate = "100Gbps", delay = "1us", buffer = "4MB" }
algorithm = { name = "swift" }
[[workload]]
kind = "incast"
size = "64kB"
[[show]]
name = "goodput"
metric = "goodput_gbps"
source = "a test"
"#;

/// Every command that takes `--out DIR`.
const COMMANDS: &[&[&str]] = &[
    &["run", "mine.toml"],
    &["reproduce", "mine.toml", "--quick"],
    &["sweep", "mine.toml", "--vary", "workload.size=4kB,8kB"],
    &["compare", "mine.toml", "--algorithms", "swift,dctcp", "--seeds", "1"],
    &["tune", "mine.toml", "--seeds", "1"],
    &["perf", "127.0.0.1:9", "--insecure"],
    &["rerun", "mine.zip"],
    &["whatif", "mine.toml", "--link", "switch 0 -> host 0", "--fault", "slow fraction=0.5"],
];

/// Returns the entries of [`COMMANDS`] that this build has.
fn built() -> impl Iterator<Item = &'static &'static [&'static str]> {
    COMMANDS.iter().filter(|command| command::is_built(command))
}

fn folder(test: &str) -> PathBuf {
    let path = command::folder(test);
    fs::write(path.join("mine.toml"), SCENARIO).expect("file");
    let made = command::apus(&path, &["run", "mine.toml", "--bundle", "mine.zip"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    path
}

fn apus(folder: &Path, arguments: &[&str], more: &[&str]) -> Output {
    command::apus(folder, &[arguments, more].concat())
}

#[track_caller]
fn refused(output: &Output, parts: &[&str]) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    for part in parts {
        assert!(stderr.contains(part), "{part} is not in {stderr}");
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("folder");
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("entry").file_name().into_string().expect("name"))
        .collect();
    names.sort();
    names
}

/// The list above is complete: no other command has `--out DIR` in its help.
#[test]
fn every_command_with_out_is_tested() {
    let help = apus(Path::new("."), &["--help"], &[]);
    let help = String::from_utf8(help.stdout).expect("UTF-8");
    let commands = help.split("Commands:").nth(1).expect("commands").split("Options:").next();
    let commands = commands.expect("commands").lines().filter(|line| line.starts_with("  "));
    let mut count = 0;
    for name in commands.filter_map(|line| line.split_whitespace().next()) {
        let own = apus(Path::new("."), &[name, "--help"], &[]);
        let takes_out = String::from_utf8_lossy(&own.stdout).contains("--out <DIR>");
        assert_eq!(takes_out, COMMANDS.iter().any(|command| command[0] == name), "{name}");
        count += usize::from(takes_out);
    }
    assert_eq!(count, built().count());
}

#[test]
fn a_directory_with_other_files_is_refused_and_left_alone() {
    let folder = folder("foreign");
    fs::create_dir(folder.join("taken")).expect("folder");
    fs::write(folder.join("taken/summary.json"), "mine").expect("file");
    for command in built() {
        let output = apus(&folder, command, &["--out", "taken"]);
        refused(
            &output,
            &["taken: the directory holds `summary.json`", "choose a new or an empty"],
        );
        assert!(output.stdout.is_empty());
        assert_eq!(names(&folder.join("taken")), ["summary.json"], "{command:?}");
        assert_eq!(fs::read_to_string(folder.join("taken/summary.json")).expect("file"), "mine");
    }
}

#[test]
fn results_are_replaced_unless_they_were_changed() {
    let folder = folder("again");
    for (command, result) in [
        (COMMANDS[0], "effective.toml"),
        (COMMANDS[1], "mine/summary.json"),
        (COMMANDS[2], "sweep.csv"),
        (COMMANDS[3], "report.html"),
    ] {
        let out = command[0];
        // Incomplete files of a killed command are ignored.
        fs::create_dir(folder.join(out)).expect("folder");
        fs::write(folder.join(out).join(".x.partial"), "").expect("file");
        for _ in 0..2 {
            let output = apus(&folder, command, &["--out", out]);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        // Additional files of the user do not matter.
        fs::write(folder.join(out).join("notes.txt"), "mine").expect("file");
        assert!(apus(&folder, command, &["--out", out]).status.success(), "{command:?}");
        let path = folder.join(out).join(result);
        let changed = fs::read_to_string(&path).expect("a result") + "\n# mine\n";
        fs::write(&path, &changed).expect("file");
        refused(&apus(&folder, command, &["--out", out]), &[result, "changed since apus wrote it"]);
        assert_eq!(fs::read_to_string(&path).expect("file"), changed);
    }
}

#[test]
fn a_result_is_not_put_over_a_file_of_that_name() {
    let folder = folder("late");
    let variants =
        format!("{SCENARIO}[sweep]\nkey = \"workload.size\"\nvalues = [\"4kB\", \"8kB\"]\n");
    fs::write(folder.join("two.toml"), variants).expect("file");
    assert!(apus(&folder, COMMANDS[0], &["--out", "out"]).status.success());
    fs::write(folder.join("out/effective-8kB.toml"), "mine").expect("file");
    let output = apus(&folder, &["run", "two.toml"], &["--out", "out"]);
    refused(&output, &["out/effective-8kB.toml", "apus did not write the one that is there"]);
    assert_eq!(fs::read_to_string(folder.join("out/effective-8kB.toml")).expect("file"), "mine");
}

#[test]
fn a_report_replaces_no_other_page() {
    let folder = folder("report");
    fs::write(folder.join("notes.md"), "# Notes\n").expect("file");
    let output = apus(&folder, COMMANDS[1], &["--report", "notes.md"]);
    refused(&output, &["--report notes.md", "not a page that `apus reproduce` wrote"]);
    assert_eq!(fs::read_to_string(folder.join("notes.md")).expect("file"), "# Notes\n");
    fs::create_dir(folder.join("figures")).expect("folder");
    fs::write(folder.join("figures/mine.svg"), "<svg/>").expect("file");
    let output = apus(&folder, COMMANDS[1], &["--report", "page.md"]);
    refused(&output, &["figures/mine.svg is there, but not a figure of that page"]);
    assert_eq!(names(&folder), ["figures", "mine.toml", "mine.zip", "notes.md"]);
}

#[test]
fn a_report_says_what_it_wrote_and_leaves_no_empty_folder() {
    let folder = folder("wrote");
    let output = apus(&folder, COMMANDS[1], &["--report", "pages/new/page.md"]);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("wrote pages/new/page.md: 1 experiment"), "{stdout}");
    let figure = folder.join("pages/new/figures/mine.svg").is_file();
    assert_eq!(figure, stdout.contains("1 figure in pages/new/figures"), "{stdout}");
    assert_eq!(folder.join("pages/new/figures").exists(), figure, "no empty folder");
}

/// Two commands that write to one directory would mix their results.
#[test]
fn a_directory_that_another_command_writes_is_refused() {
    let folder = folder("locked");
    assert!(apus(&folder, COMMANDS[0], &["--out", "out"]).status.success());
    let record = fs::File::open(folder.join("out/.apus-files")).expect("the record");
    record.lock().expect("a lock");
    for command in built() {
        let output = apus(&folder, command, &["--out", "out"]);
        refused(&output, &["out: another apus command is writing results here"]);
    }
    drop(record);
    assert!(apus(&folder, COMMANDS[0], &["--out", "out"]).status.success());
}

/// Each variant has its own folder, next to the files of all variants.
#[test]
fn a_variant_does_not_have_the_name_of_a_file_of_results() {
    let folder = folder("names");
    let text = format!(
        "{SCENARIO}[[variant]]\nname = \"report.html\"\n[[variant]]\nname = \"b\"\nset = {{ \"workload.size\" = \"4kB\" }}\n"
    );
    fs::write(folder.join("two.toml"), text).expect("file");
    let output = apus(&folder, &["run", "two.toml"], &["--out", "out"]);
    refused(&output, &["the variant `report.html` has the name of a file of results"]);
}

/// Results of variants of an earlier run are removed.
#[test]
fn results_of_former_variants_are_removed() {
    let folder = folder("former");
    let variants =
        format!("{SCENARIO}[sweep]\nkey = \"workload.size\"\nvalues = [\"4kB\", \"8kB\"]\n");
    fs::write(folder.join("two.toml"), variants).expect("file");
    assert!(apus(&folder, &["run", "two.toml"], &["--out", "out"]).status.success());
    assert!(
        folder.join("out/8kB/ops.parquet").is_file() || folder.join("out/8kB/ops.csv").is_file()
    );
    fs::write(folder.join("out/notes.txt"), "mine").expect("file");
    assert!(apus(&folder, COMMANDS[0], &["--out", "out"]).status.success());
    let left = names(&folder.join("out"));
    assert!(!left.iter().any(|name| name.contains("8kB")), "{left:?}");
    assert!(left.iter().any(|name| name == "notes.txt"), "{left:?}");
}

/// `apus diff` reads summary.json first, and that file would be a remainder of the run.
#[test]
fn a_sweep_leaves_no_results_of_another_command_and_a_shard_refuses_them() {
    let folder = folder("sweep_after");
    let (run, sweep) = (COMMANDS[0], COMMANDS[2]);
    let all = [".apus-files", "report.html", "runs", "sweep.csv", "sweep.json", "sweep.svg"];
    assert!(apus(&folder, run, &["--out", "o"]).status.success());
    refused(
        &apus(&folder, sweep, &["--out", "o", "--shard", "1/2"]),
        &[
            "o: the directory has the results of another command or sweep",
            "choose another directory",
        ],
    );
    assert!(folder.join("o/summary.json").exists());
    assert!(apus(&folder, sweep, &["--out", "o"]).status.success());
    assert_eq!(names(&folder.join("o")), all);
    // A shard may use the directory of its own sweep.
    let again = apus(&folder, sweep, &["--out", "o", "--shard", "1/2"]);
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    assert_eq!(names(&folder.join("o")), all);
    // A merge may use the directory too.
    assert!(apus(&folder, run, &["--out", "merged"]).status.success());
    let merge = apus(&folder, &["sweep", "--merge", "o"], &["--out", "merged"]);
    assert!(merge.status.success(), "{}", String::from_utf8_lossy(&merge.stderr));
    assert!(!folder.join("merged/summary.json").exists());
    // A shard of another sweep must not be added to the results of the merge, nor to results without a plan.
    let other = ["sweep", "mine.toml", "--vary", "duration=1ms,2ms", "--shard", "1/2"];
    let another =
        "merged/runs/plan.json: the plan of another sweep, whose --vary is workload.size=4kB,8kB";
    refused(&apus(&folder, &other, &["--out", "merged"]), &[another]);
    fs::remove_file(folder.join("merged/runs/plan.json")).expect("removed");
    let unknown = "merged: the directory has the results of another command or sweep, such as";
    refused(&apus(&folder, &other, &["--out", "merged"]), &[unknown]);
    // A merge into a directory with a different plan replaces that plan.
    assert!(apus(&folder, &other, &["--out", "stale"]).status.success());
    assert!(apus(&folder, &["sweep", "--merge", "o"], &["--out", "stale"]).status.success());
    refused(&apus(&folder, &other, &["--out", "stale"]), &["the plan of another sweep"]);
    // The plan of a merge has no runs, so its table stays.
    assert!(apus(&folder, &["sweep", "--merge", "o"], &["--out", "merged"]).status.success());
    let table = || fs::read_to_string(folder.join("merged/sweep.csv")).expect("a table");
    let before = table();
    let again = apus(&folder, &["sweep", "--merge", "merged"], &[]);
    assert_eq!(again.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&again.stderr).contains("2 of 2 runs are missing"));
    assert_eq!(table(), before);
}

#[test]
fn a_page_without_its_figure_is_written_again() {
    let folder = folder("figure");
    assert!(apus(&folder, COMMANDS[1], &["--report", "page.md"]).status.success());
    let figure = folder.join("figures/mine.svg");
    if figure.is_file() {
        fs::remove_file(&figure).expect("a figure");
    }
    assert!(apus(&folder, COMMANDS[1], &["--report", "page.md"]).status.success());
}
