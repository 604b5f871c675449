//! Follows the steps of `docs/adding-an-algorithm.md` that add an algorithm to the project, in a copy of its crate. The
//! example must compile there and pass the tests that apply to every algorithm of the table.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Replaces `from`, which must occur in the file.
fn replace(path: &Path, from: &str, to: &str) {
    let text = read(path);
    assert!(text.contains(from), "{}: {from} is missing", path.display());
    fs::write(path, text.replacen(from, to, 1)).expect("file");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("folder");
    for entry in fs::read_dir(from).expect("folder") {
        let path = entry.expect("entry").path();
        let target = to.join(path.file_name().expect("name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).expect("file");
        }
    }
}

/// Returns the manifest of a crate without the parts that only its other tests and benchmarks need.
fn without_development(manifest: &str) -> String {
    let tables = manifest.split("\n[").enumerate().filter(|(_, table)| {
        !table.starts_with("dev-dependencies]") && !table.starts_with("[bench]]")
    });
    let parts: Vec<String> = tables
        .map(|(place, table)| if place == 0 { table.into() } else { format!("\n[{table}") })
        .collect();
    parts.concat()
}

#[test]
fn the_example_joins_the_project_by_the_steps_of_the_page() {
    let page = read(&root().join("docs/adding-an-algorithm.md"));
    for step in [
        "`const TABLE: &[ParamInfo]`",
        "`alloc::sync`",
        "`pub mod peak;`",
        "`Peak(crate::peak::Peak);`",
        "`origins`",
        "algorithms.md",
        "APUS_WRITE_DOCS=1 cargo test -p apus --test it reference",
    ] {
        assert!(page.contains(step), "the page does not mention {step}");
    }
    let copied = Path::new(env!("CARGO_TARGET_TMPDIR")).join("adding-an-algorithm");
    let _ = fs::remove_dir_all(copied.join("crates"));
    for name in ["units", "cc", "algorithms"] {
        let (from, to) = (root().join("crates").join(name), copied.join("crates").join(name));
        // The documentation of a crate includes its examples.
        for folder in ["src", "examples"] {
            copy(&from.join(folder), &to.join(folder));
        }
        let manifest = without_development(&read(&from.join("Cargo.toml")));
        fs::write(to.join("Cargo.toml"), manifest).expect("manifest");
    }
    let algorithms = copied.join("crates/algorithms");
    fs::create_dir_all(algorithms.join("tests")).expect("folder");
    let tests = algorithms.join("tests/registry.rs");
    fs::copy(root().join("crates/algorithms/tests/it/registry.rs"), &tests).expect("file");
    for file in ["Cargo.toml", "Cargo.lock"] {
        fs::copy(root().join(file), copied.join(file)).expect("file");
    }
    let members = "[\"crates/*\", \"examples/*\", \"python\"]";
    replace(&copied.join("Cargo.toml"), members, "[\"crates/*\"]");

    // Step 1.
    let example = read(&root().join("examples/own-algorithm/src/main.rs"));
    let part = |from: &str, to: &str| {
        let begin = example.find(from).expect(from);
        begin..begin + example[begin..].find(to).expect(to)
    };
    let (main, table) =
        (part("fn main()", "const PARAMETERS"), part("const PARAMETERS", "/// Four"));
    let params = example[table.clone()].replace("const PARAMETERS", "pub(super) const TABLE");
    let host = format!("{}{}", &example[..main.start], &example[table.end..])
        .replace("mod policy;\n\n", "")
        .replace("use std::process::ExitCode;\nuse std::sync", "use alloc::sync")
        .replace("use apus_cc::settings::{POSITIVE, PROPER_FRACTION, number, size};\n", "")
        .replace("ParamInfo, ", "")
        .replace("PARAMETERS", "super::params::TABLE")
        .replace("\nstruct ", "\npub struct ");
    let peak = algorithms.join("src/peak");
    fs::create_dir_all(&peak).expect("folder");
    let uses = "//! Parameters.\n\
                use apus_cc::settings::{POSITIVE, PROPER_FRACTION, ParamInfo, number, size};\n\n";
    fs::write(peak.join("params.rs"), format!("{uses}{params}")).expect("file");
    fs::write(peak.join("host.rs"), host).expect("file");
    let module = "//! Peak.\nmod host;\nmod params;\npub use host::{Params, Peak};\n";
    fs::write(peak.join("mod.rs"), module).expect("file");
    // Step 2.
    let library = algorithms.join("src/lib.rs");
    replace(&library, "pub mod rcp;", "pub mod peak;\npub mod rcp;");
    let last = "    Constant(crate::constant::Constant);\n";
    let more = format!("{last}    /// Peak.\n    Peak(crate::peak::Peak);\n");
    replace(&algorithms.join("src/set.rs"), last, &more);
    // Step 3.
    let listed = "            \"constant\"\n";
    replace(&tests, listed, "            \"constant\",\n            \"peak\"\n");

    let output = Command::new(env!("CARGO"))
        .args(["test", "--quiet", "--offline", "-p", "apus-algorithms", "--test", "registry"])
        .current_dir(&copied)
        .env("CARGO_TARGET_DIR", copied.join("target"))
        .env_remove("RUSTFLAGS")
        .output()
        .expect("cargo");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}{stderr}", String::from_utf8_lossy(&output.stdout));
}
