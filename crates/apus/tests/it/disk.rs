//! Runs whose disk fills up, that reach the memory limit, or that are killed: results are readable or absent, and files
//! are never partial.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Instant;

use crate::support::command::{apus, folder, succeeds, texts};

/// An incast from two hosts to a third one.
const SCENARIO: &str = include_str!("support/incast.toml");

/// Runs the scenario into `out` after a shell command such as `ulimit`.
fn run_after(folder: &Path, limits: &str) -> Output {
    let program = env!("CARGO_BIN_EXE_apus");
    let script = format!("{limits}; exec '{program}' run mine.toml --out out --format csv");
    Command::new("bash").current_dir(folder).args(["-c", &script]).output().expect("bash")
}

/// Runs the scenario with files limited to `limit` KiB. If `killed` is true, exceeding the limit kills the process;
/// otherwise the write fails as on a full disk.
fn run(folder: &Path, limit: &str, killed: bool) -> Output {
    let trap = if killed { "" } else { "trap '' XFSZ; " };
    run_after(folder, &format!("{trap}ulimit -f {limit}"))
}

/// Returns the results in `out`: the files that are not hidden.
fn results(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let Ok(files) = fs::read_dir(folder.join("out")) else { return BTreeMap::new() };
    let files = files.flatten().map(|entry| (entry.file_name(), entry.path()));
    let files = files.map(|(name, path)| (name.to_string_lossy().into_owned(), path));
    let shown = files.filter(|(name, path)| !name.starts_with('.') && path.is_file());
    shown.map(|(name, path)| (name, fs::read(path).expect("a file"))).collect()
}

/// Returns a result without the numbers that differ between runs, which are real times.
fn comparable(name: &str, bytes: &[u8]) -> Vec<u8> {
    match name.ends_with(".csv") || name.ends_with(".toml") {
        true => bytes.to_vec(),
        // The length may differ by a digit, so only the end of the file is checked.
        false => bytes.last().copied().into_iter().collect(),
    }
}

/// Asserts that the results present in `out` equal those of a run without limits.
fn assert_whole(folder: &Path, whole: &BTreeMap<String, Vec<u8>>) {
    for (name, bytes) in results(folder) {
        assert_eq!(comparable(&name, &bytes), comparable(&name, &whole[&name]), "{name}");
    }
}

#[test]
fn a_full_disk_or_a_kill_leaves_whole_files_or_none() {
    let folder = folder("full");
    fs::write(folder.join("mine.toml"), SCENARIO).expect("file");
    succeeds(&run(&folder, "unlimited", false));
    let whole = results(&folder);
    assert!(whole.len() >= 4, "{:?}", whole.keys());
    let longest = whole.values().map(Vec::len).max().expect("files");
    let mut failed = 0;
    for killed in [false, true] {
        for limit in [1, 2, 4, 8, 16, 64] {
            fs::remove_dir_all(folder.join("out")).expect("results");
            let output = run(&folder, &limit.to_string(), killed);
            let too_long = longest > limit * 1024;
            assert_eq!(output.status.success(), !too_long, "{limit} KiB, killed: {killed}");
            failed += usize::from(too_long);
            assert_whole(&folder, &whole);
            if too_long && !killed {
                let why = String::from_utf8_lossy(&output.stderr);
                assert!(why.contains("cannot be written: File too large"), "{why}");
            }
            // The same command continues from the stored results.
            succeeds(&run(&folder, "unlimited", false));
            assert_eq!(results(&folder).len(), whole.len());
        }
    }
    assert!(failed > 2, "no limit was reached");
}

#[test]
fn a_kill_at_any_time_leaves_whole_files_or_none() {
    let folder = folder("killed");
    fs::write(folder.join("mine.toml"), SCENARIO).expect("file");
    let from = Instant::now();
    succeeds(&run_after(&folder, "true"));
    let took = from.elapsed();
    let whole = results(&folder);
    // From before the first step to about the end of the run, whose time differs between runs.
    for part in 0..24 {
        fs::remove_dir_all(folder.join("out")).expect("results");
        let mut command = Command::new(env!("CARGO_BIN_EXE_apus"));
        command.args(["run", "mine.toml", "--out", "out", "--format", "csv"]);
        command.current_dir(&folder).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("process");
        sleep(took * part / 20);
        // The process may have ended.
        let _ = child.kill();
        child.wait().expect("its end");
        assert_whole(&folder, &whole);
        succeeds(&run_after(&folder, "true"));
        assert_eq!(results(&folder).len(), whole.len());
    }
}

/// After another run in the same directory, its files are never mixed with those of the earlier run.
#[test]
fn results_of_two_runs_are_never_mixed() {
    let folder = folder("mixed");
    let other = SCENARIO.replace("size = \"64kB\"", "size = \"16kB\"");
    assert_ne!(other, SCENARIO);
    let run_one = |text: &str, limit: &str| {
        fs::write(folder.join("mine.toml"), text).expect("file");
        run(&folder, limit, false)
    };
    succeeds(&run_one(&other, "unlimited"));
    let whole = results(&folder);
    let longest = whole.values().map(Vec::len).max().expect("files");
    for limit in [1, 2, 4, 8, 16] {
        succeeds(&run_one(SCENARIO, "unlimited"));
        let output = run_one(&other, &limit.to_string());
        assert_eq!(output.status.success(), longest <= limit * 1024, "{limit} KiB");
        let left = results(&folder);
        for (name, bytes) in
            left.iter().filter(|(name, _)| name.ends_with(".csv") || name.ends_with(".toml"))
        {
            assert_eq!(bytes, &whole[name], "{limit} KiB: {name} is of the earlier run");
        }
        let is_complete = left.len() == whole.len();
        assert_eq!(
            left.contains_key("summary.json"),
            is_complete,
            "{limit} KiB: {:?}",
            left.keys()
        );
    }
}

/// The record's last line, truncated by a full disk, must not prevent the command from continuing.
#[test]
fn a_cut_line_of_the_record_does_no_harm() {
    let folder = folder("record");
    fs::write(folder.join("mine.toml"), SCENARIO).expect("file");
    succeeds(&run_after(&folder, "true"));
    let record = folder.join("out/.apus-files");
    let text = fs::read_to_string(&record).expect("the record");
    // The name is incomplete: its file was not put in place.
    let last = text.trim_end().rsplit(' ').next().expect("a name");
    fs::remove_file(folder.join("out").join(last)).expect("a file");
    fs::write(&record, &text[..text.len() - 3]).expect("the record");
    for _ in 0..2 {
        succeeds(&run_after(&folder, "true"));
    }
}

/// Tries address space limits from one in which the program cannot even be loaded to one that is more than sufficient.
#[cfg(target_os = "linux")]
#[test]
fn a_memory_limit_leaves_whole_files_or_none() {
    let folder = folder("memory");
    fs::write(folder.join("mine.toml"), SCENARIO).expect("file");
    succeeds(&run_after(&folder, "true"));
    let whole = results(&folder);
    let outcomes: Vec<bool> = (32..=160)
        .step_by(8)
        .chain([16 << 10])
        .map(|mib| {
            let _ = fs::remove_dir_all(folder.join("out"));
            let output = run_after(&folder, &format!("ulimit -v {}", mib << 10));
            assert_whole(&folder, &whole);
            let is_complete = results(&folder).len() == whole.len();
            let why = String::from_utf8_lossy(&output.stderr);
            assert!(is_complete || !output.status.success(), "{mib} MiB: {why}");
            // The kernel kills a process that cannot be loaded, and prints no message.
            let has_ended_itself = output.status.code().is_some();
            assert!(is_complete || !why.is_empty() || !has_ended_itself, "{mib} MiB: no reason");
            is_complete
        })
        .collect();
    assert!(outcomes.contains(&false) && outcomes.contains(&true), "{outcomes:?}");
}

/// Returns the results in `folder` and its subfolders by their path: the files that are not hidden.
fn all_results(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (name, path) = (entry.file_name().to_string_lossy().into_owned(), entry.path());
        if path.is_dir() {
            let within = all_results(&path);
            found.extend(
                within.into_iter().map(|(inner, bytes)| (format!("{name}/{inner}"), bytes)),
            );
        } else if !name.starts_with('.') {
            found.insert(name, fs::read(path).expect("a file"));
        }
    }
    found
}

/// Asserts that a file of results is whole. Some commands extend a table or a list of runs while they go on, so that a
/// file may have less than at the end of the command; but every one of its states is a whole file of its kind.
fn assert_is_whole(name: &str, bytes: &[u8], end: &[u8]) {
    let (_, kind) = name.rsplit_once('.').expect("a file of results has an ending");
    match kind {
        "json" => drop(serde_json::from_slice::<serde_json::Value>(bytes).expect(name)),
        "csv" | "html" | "svg" | "txt" => assert!(bytes.ends_with(b"\n"), "{name}"),
        // Parquet ends with its magic number, and Arrow files with theirs.
        "parquet" => assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"), "{name}"),
        "arrow" => assert!(bytes.ends_with(b"ARROW1"), "{name}"),
        "toml" | "zip" | "perfetto-trace" => assert!(bytes == end, "{name}"),
        _ => panic!("{name}: a file of a new kind; say here how to see that it is whole"),
    }
}

/// These commands leave whole files or none, in every format of tables, and print their results.
#[test]
fn commands_leave_whole_files_and_print_their_results_on_a_full_disk() {
    let folder = folder("commands");
    fs::write(folder.join("mine.toml"), SCENARIO).expect("file");
    let commands = [
        "run mine.toml --bundle out/mine.zip",
        "run mine.toml --format parquet --timeline --out out/results",
        "run mine.toml --format arrow --out out/results",
        "sweep mine.toml --vary workload.size=16kB,64kB --format parquet --out out/results",
        "compare mine.toml --algorithms swift,dctcp --seeds 2 --out out/results",
        "whatif mine.toml --link 'host * -> *' --pairs --fault 'slow fraction=0.25' --out out/results",
        "tune mine.toml --seeds 1 --out out/results",
        "reproduce swift/fig5 --quick --out out/results",
    ];
    for command in commands {
        let run = |limits: &str| {
            let _ = fs::remove_dir_all(folder.join("out"));
            fs::create_dir(folder.join("out")).expect("a folder");
            let script = format!("{limits}; exec '{}' {command}", env!("CARGO_BIN_EXE_apus"));
            let output = Command::new("bash").current_dir(&folder).args(["-c", &script]).output();
            output.expect("bash")
        };
        let without = run("true");
        succeeds(&without);
        let end = all_results(&folder.join("out"));
        let longest = end.values().map(Vec::len).max().expect("files");
        let limits: Vec<usize> =
            [1, 8, 64].into_iter().filter(|limit| longest > limit * 1024).collect();
        assert!(!limits.is_empty(), "{command}: no file is longer than 1 KiB");
        for (killed, trap) in [(false, "trap '' XFSZ; "), (true, "")] {
            for limit in &limits {
                let output = run(&format!("{trap}ulimit -f {limit}"));
                assert!(!output.status.success(), "{command}: {limit} KiB");
                for (name, bytes) in all_results(&folder.join("out")) {
                    let end = end.get(&name).map_or(&[][..], Vec::as_slice);
                    assert_is_whole(&name, &bytes, end);
                }
                if killed {
                    continue;
                }
                let why = String::from_utf8_lossy(&output.stderr);
                assert!(why.contains("cannot be written: "), "{command}: {limit} KiB: {why}");
                assert!(matches!(output.status.code(), Some(1 | 2)), "{command}: {limit} KiB");
                // Only the last files do not fit the largest of these limits, so all runs have results.
                if Some(limit) == limits.last() {
                    assert_eq!(output.status.code(), Some(1), "{command}: {limit} KiB");
                    assert!(!printed(&without).is_empty(), "{command}");
                    assert_eq!(printed(&output), printed(&without), "{command}: {limit} KiB");
                }
            }
        }
    }
}

/// Runs a command with files limited to 1 KiB.
fn on_full_disk(folder: &Path, command: &str) -> Output {
    let program = env!("CARGO_BIN_EXE_apus");
    let script = format!("trap '' XFSZ; ulimit -f 1; exec '{program}' {command}");
    Command::new("bash").current_dir(folder).args(["-c", &script]).output().expect("bash")
}

/// Asserts that a command failed because a file could not be written, and returns its standard output.
#[track_caller]
fn disk_was_full(output: &Output) -> String {
    let (stdout, stderr) = texts(output);
    assert_eq!(output.status.code(), Some(1), "{stdout}{stderr}");
    assert!(stderr.contains("cannot be written: File too large"), "{stderr}");
    stdout
}

#[test]
fn a_merge_prints_its_table_on_a_full_disk() {
    let folder = folder("merge");
    fs::write(folder.join("mine.toml"), SCENARIO).expect("file");
    for shard in ["1/2", "2/2"] {
        let sweep = ["sweep", "mine.toml", "--vary", "workload.size=16kB,64kB", "--out", "parts"];
        succeeds(&apus(&folder, &[&sweep[..], &["--shard", shard]].concat()));
    }
    let printed = disk_was_full(&on_full_disk(&folder, "sweep --merge parts"));
    assert!(printed.contains("2 of 2 runs complete"), "{printed}");
    for (name, bytes) in all_results(&folder.join("parts")) {
        assert_is_whole(&name, &bytes, &[]);
    }
    succeeds(&apus(&folder, &["sweep", "--merge", "parts"]));
}

/// The ops of a measurement cannot be repeated, so their summary is printed.
#[cfg(feature = "real")]
#[test]
fn a_measurement_over_udp_is_printed_on_a_full_disk() {
    let folder = folder("perf");
    let server = crate::support::server::serve(&["--insecure"]);
    // The table of ops is longer than 1 KiB at any speed: it has the unfinished ones, too.
    let perf = format!("perf {} --insecure --duration 1s --outstanding 64", server.address);
    for more in ["--out out", "--json --out json"] {
        let printed = disk_was_full(&on_full_disk(&folder, &format!("{perf} {more}")));
        assert!(printed.contains("goodput"), "{printed}");
    }
    for (name, bytes) in ["out", "json"].iter().flat_map(|out| all_results(&folder.join(out))) {
        assert_is_whole(&name, &bytes, &[]);
    }
}

/// Returns the second to fourth line of the output, which contain no real times.
fn printed(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().skip(1).take(3).map(str::to_owned).collect()
}

/// Checks are evaluated and printed although the results or the bundle cannot be stored.
#[test]
fn checks_are_evaluated_on_a_full_disk() {
    let folder = folder("checks");
    let check = |low: f64| {
        format!(
            "{SCENARIO}[[check]]\nname = \"busy\"\nkind = \"shape\"\nmetric = \"throughput_gbps\"\nlow = {low}\n\
             source = \"our own goal\"\n"
        )
    };
    for (low, verdict) in [(1.0, "pass"), (11.0, "FAIL")] {
        fs::write(folder.join("mine.toml"), check(low)).expect("file");
        for (stored, limit) in [("--out out", 4), ("--bundle mine.zip", 1)] {
            let script = format!(
                "trap '' XFSZ; ulimit -f {limit}; exec '{}' run mine.toml {stored}",
                env!("CARGO_BIN_EXE_apus")
            );
            let output = Command::new("bash").current_dir(&folder).args(["-c", &script]).output();
            let output = output.expect("bash");
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
            assert_eq!(output.status.code(), Some(1), "{stderr}");
            let line = stdout.lines().find(|line| line.trim_start().starts_with("busy"));
            assert!(line.is_some_and(|line| line.contains(verdict)), "{stored}: {stdout}");
            assert!(stderr.contains("cannot be written: "), "{stored}: {stderr}");
        }
    }
}
