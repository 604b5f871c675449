//! The command as a process, in a folder of its test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Creates an empty folder for a test. Its path begins with the file of the caller, so that files can use the
/// same names.
#[track_caller]
pub fn folder(name: &str) -> PathBuf {
    let file = Path::new(std::panic::Location::caller().file()).file_stem().expect("a file");
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(file).join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("folder");
    path
}

/// Runs the command in `folder` to its end.
pub fn apus(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_apus"));
    command.current_dir(folder).args(arguments).output().expect("process")
}
