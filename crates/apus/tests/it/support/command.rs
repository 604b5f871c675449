//! Runs the command as a process in a folder of its test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Creates an empty folder for a test. Its path starts with the file of the caller, so that different files can use the
/// same names.
#[track_caller]
pub fn folder(name: &str) -> PathBuf {
    let file = Path::new(std::panic::Location::caller().file()).file_stem().expect("a file");
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(file).join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("folder");
    path
}

/// Returns `true` if this build has the command with which `line` starts. The commands of the transport over UDP need
/// feature `real`.
pub fn is_built(line: &[&str]) -> bool {
    const REAL: [&[&str]; 7] =
        [&["bench", "udp"], &["emulate"], &["key"], &["perf"], &["ping"], &["serve"], &["switch"]];
    cfg!(feature = "real") || !REAL.iter().any(|command| line.starts_with(command))
}

/// Runs the command in `folder` until it ends.
pub fn apus(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_apus"));
    command.current_dir(folder).args(arguments).output().expect("process")
}

/// Returns standard output and standard error.
pub fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    (text(&output.stdout), text(&output.stderr))
}

/// Asserts that a command succeeds without messages, and returns its output.
#[track_caller]
pub fn succeeds(output: &Output) -> String {
    let (stdout, stderr) = texts(output);
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    // Without a terminal, a command that takes long prints occasional lines of progress.
    assert!(stderr.lines().all(|line| line.starts_with("progress: ")), "{stderr}");
    stdout
}

/// Asserts that a command was refused before any run: exit code 2, and no standard output.
#[track_caller]
pub fn refused(output: &Output, message: &str) {
    let (stdout, stderr) = texts(output);
    assert_eq!(output.status.code(), Some(2), "{stdout}{stderr}");
    assert_eq!(stdout, "");
    assert!(stderr.contains(message), "{stderr}");
}
