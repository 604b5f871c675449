//! A run whose disk fills up, or that is killed: results that can be read, or none, never half a file.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::command::{folder, succeeds};

/// An incast of two hosts to a third one.
const SCENARIO: &str = include_str!("support/incast.toml");

/// Runs the scenario into `out`. No file may become larger than `limit` KiB: with `killed` the process dies of the attempt,
/// otherwise the write fails as on a full disk.
fn run(folder: &Path, limit: &str, killed: bool) -> Output {
    let trap = if killed { "" } else { "trap '' XFSZ; " };
    let program = env!("CARGO_BIN_EXE_apus");
    let script =
        format!("{trap}ulimit -f {limit}; exec '{program}' run mine.toml --out out --format csv");
    Command::new("bash").current_dir(folder).args(["-c", &script]).output().expect("bash")
}

/// Returns the results in `out`: the files that are not hidden.
fn results(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let Ok(files) = fs::read_dir(folder.join("out")) else { return BTreeMap::new() };
    let files = files.flatten().map(|entry| (entry.file_name(), entry.path()));
    let files = files.map(|(name, path)| (name.to_string_lossy().into_owned(), path));
    let shown = files.filter(|(name, path)| !name.starts_with('.') && path.is_file());
    shown.map(|(name, path)| (name, fs::read(path).expect("a file"))).collect()
}

/// Returns a result without the numbers that differ from run to run: wall times.
fn comparable(name: &str, bytes: &[u8]) -> Vec<u8> {
    match name.ends_with(".csv") || name.ends_with(".toml") {
        true => bytes.to_vec(),
        // Its length may differ by a digit; that it is whole is enough.
        false => bytes.last().copied().into_iter().collect(),
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
            for (name, bytes) in results(&folder) {
                let expected = &whole[&name];
                assert_eq!(
                    comparable(&name, &bytes),
                    comparable(&name, expected),
                    "{name}: {limit} KiB"
                );
            }
            if too_long && !killed {
                let why = String::from_utf8_lossy(&output.stderr);
                assert!(why.contains("cannot be written: File too large"), "{why}");
            }
            // The same command goes on from there.
            succeeds(&run(&folder, "unlimited", false));
            assert_eq!(results(&folder).len(), whole.len());
        }
    }
    assert!(failed > 2, "no limit was reached");
}
