//! The layers of ARCHITECTURE.md: dependencies point downwards, and the lower crates cannot do I/O.

use std::fs;
use std::path::{Path, PathBuf};

/// Each crate and the crates of the workspace that it may depend on.
const LAYERS: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("wire", &["units"]),
    ("cc", &["units"]),
    ("jobs", &["units"]),
    ("algorithms", &["cc", "units"]),
    ("transport", &["cc", "units", "wire"]),
    ("fabric", &["cc", "units"]),
    ("sim", &["cc", "fabric", "jobs", "transport", "units", "wire"]),
    ("scenario", &["algorithms", "cc", "fabric", "jobs", "sim", "transport", "units", "wire"]),
    ("tables", &["sim"]),
    ("traces", &["cc", "transport", "units", "wire"]),
    ("udp", &["algorithms", "cc", "traces", "transport", "units", "wire"]),
    ("rpc", &["udp", "units"]),
    ("worlds", &["scenario", "sim", "udp", "units", "wire"]),
    ("quinn", &["algorithms", "cc", "units"]),
    ("capi", &["algorithms", "cc", "udp", "units"]),
    ("capi-sim", &["algorithms", "scenario", "sim", "units"]),
    (
        "apus",
        &[
            "algorithms",
            "cc",
            "fabric",
            "jobs",
            "rpc",
            "scenario",
            "sim",
            "tables",
            "traces",
            "transport",
            "udp",
            "units",
            "wire",
            "worlds",
        ],
    ),
    ("../python", &["algorithms", "cc", "scenario", "sim", "tables", "udp", "units"]),
];

/// Crates that must be `no_std`: the compiler then proves that they do no I/O, read no clock and start no thread.
const WITHOUT_STD: &[&str] = &["units", "wire", "cc", "algorithms", "transport", "fabric", "jobs"];

/// External dependencies that these crates may have; none of them does I/O.
const FOREIGN: &[&str] = &["crc", "libm", "thiserror"];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the names under `[dependencies]` in a crate's manifest.
fn dependencies(name: &str) -> Vec<String> {
    let manifest = fs::read_to_string(crates().join(name).join("Cargo.toml")).expect("manifest");
    manifest
        .lines()
        .skip_while(|line| *line != "[dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter(|name| !name.is_empty() && !name.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

#[test]
fn arrows_point_down() {
    for (name, allowed) in LAYERS {
        for dependency in dependencies(name) {
            if let Some(layer) = dependency.strip_prefix("apus-") {
                assert!(allowed.contains(&layer), "`{name}` must not depend on `{layer}`");
            } else if WITHOUT_STD.contains(name) {
                let known = FOREIGN.contains(&dependency.as_str());
                assert!(known, "`{name}` depends on `{dependency}`: is that free of I/O?");
            }
        }
    }
}

#[test]
fn every_crate_has_a_layer() {
    for entry in fs::read_dir(crates()).expect("crates") {
        let name = entry.expect("entry").file_name().into_string().expect("name");
        assert!(LAYERS.iter().any(|(layer, _)| *layer == name), "`{name}` has no layer");
    }
}

#[test]
fn lower_crates_are_no_std_and_the_compiler_proves_it() {
    for name in WITHOUT_STD {
        let path = crates().join(name).join("src/lib.rs");
        let source = fs::read_to_string(path).expect("lib.rs");
        assert!(source.lines().any(|line| line == "#![no_std]"), "`{name}` is not no_std");
        assert!(!source.contains("extern crate std"), "`{name}` takes std back in");
    }
}

/// Stored results are identified by a hash of the code that computes them.
#[test]
fn the_build_is_named_by_every_crate_that_decides_results() {
    let script = fs::read_to_string(crates().join("apus/build.rs")).expect("build.rs");
    let list = script.split_once("const CRATES").expect("a list").1;
    let list = list.split_once("];").expect("a list").0;
    let mut named: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
    let scenario = LAYERS.iter().find(|(layer, _)| *layer == "scenario").expect("a layer");
    let mut expected: Vec<&str> = scenario.1.iter().copied().chain(["scenario"]).collect();
    named.sort_unstable();
    expected.sort_unstable();
    assert_eq!(named, expected);
}
