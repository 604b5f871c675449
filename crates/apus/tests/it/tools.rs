//! Scripts of the repository that run before the first build.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Returns a directory with a `rustc` that reports `version`, and a `cargo`.
fn toolchain(test: &str, version: &str) -> PathBuf {
    let folder = crate::support::command::folder(test);
    for tool in ["cargo", "rustc"] {
        let file = folder.join(tool);
        fs::write(&file, format!("#!/bin/sh\necho '{tool} {version} (hash date)'\n"))
            .expect("file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("mode");
    }
    folder
}

fn check_compiler(path: &str) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Command::new("bash")
        .arg("tools/check-compiler")
        .current_dir(root)
        .env("PATH", path)
        .output()
        .expect("bash")
}

fn with_version(test: &str, version: &str) -> Output {
    let system = std::env::var("PATH").expect("PATH");
    check_compiler(&format!("{}:{system}", toolchain(test, version).display()))
}

#[test]
fn compiler_older_than_rust_version_is_refused_by_version() {
    let wanted = env!("CARGO_PKG_RUST_VERSION");
    for old in ["1.70.0", "0.99.0", "1.94.1"] {
        let output = with_version("old", old);
        let stderr = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(output.status.code(), Some(1), "{old}");
        assert!(stderr.contains(old) && stderr.contains(&format!("needs {wanted}")), "{stderr}");
    }
}

#[test]
fn compiler_of_rust_version_or_later_is_accepted() {
    let wanted = env!("CARGO_PKG_RUST_VERSION");
    let same = format!("{wanted}.3");
    for (version, answer) in [
        (same.as_str(), "same"),
        ("1.1000.0", "newer"),
        ("2.0.0", "newer"),
        ("1.999.0-nightly", "newer"),
    ] {
        let output = with_version("accepted", version);
        assert!(output.status.success(), "{version}");
        assert_eq!(String::from_utf8(output.stdout).expect("UTF-8").trim(), answer, "{version}");
    }
}

/// `/usr/bin` may contain a compiler of the distribution, so the script gets a directory with only the tools that it
/// needs.
#[test]
fn missing_compiler_is_named() {
    let folder = crate::support::command::folder("missing");
    let system = std::env::var("PATH").expect("PATH");
    for tool in ["dirname", "sed", "awk"] {
        let found = system.split(':').map(|at| Path::new(at).join(tool)).find(|at| at.is_file());
        let found = found.unwrap_or_else(|| panic!("{tool} is not installed"));
        std::os::unix::fs::symlink(found, folder.join(tool)).expect("link");
    }
    let bash = system.split(':').map(|at| Path::new(at).join("bash")).find(|at| at.is_file());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(bash.expect("bash"))
        .arg("tools/check-compiler")
        .current_dir(root)
        .env("PATH", &folder)
        .output()
        .expect("bash");
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr.contains("cargo is not installed; Apus needs Rust"), "{stderr}");
}
