//! The steps of `docs/adding-an-algorithm.md`, taken in a copy of the crate: the example compiles there,
//! and passes the tests that hold for every algorithm of the table.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Replaces `from`, which must be there.
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

/// The manifest of a crate without what only its other tests and benchmarks need.
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
fn the_example_becomes_part_of_the_program_by_the_steps_of_the_page() {
    let page = read(&root().join("docs/adding-an-algorithm.md"));
    for step in [
        "`const TABLE: &[ParamInfo]`",
        "`alloc::format`",
        "`pub mod aimd;`",
        "`Aimd(crate::aimd::Aimd);`",
        "`origins`",
        "algorithms.md",
        "APUS_WRITE_DOCS=1 cargo test -p apus --test reference",
    ] {
        assert!(page.contains(step), "the page does not mention {step}");
    }
    let copied = Path::new(env!("CARGO_TARGET_TMPDIR")).join("adding-an-algorithm");
    let _ = fs::remove_dir_all(copied.join("crates"));
    for name in ["units", "cc"] {
        let (from, to) = (root().join("crates").join(name), copied.join("crates").join(name));
        copy(&from.join("src"), &to.join("src"));
        let manifest = without_development(&read(&from.join("Cargo.toml")));
        fs::write(to.join("Cargo.toml"), manifest).expect("manifest");
    }
    let cc = copied.join("crates/cc");
    fs::create_dir_all(cc.join("tests")).expect("folder");
    fs::copy(root().join("crates/cc/tests/registry.rs"), cc.join("tests/registry.rs"))
        .expect("file");
    for file in ["Cargo.toml", "Cargo.lock"] {
        fs::copy(root().join(file), copied.join(file)).expect("file");
    }
    replace(&copied.join("Cargo.toml"), "[\"crates/*\"]", "[\"crates/units\", \"crates/cc\"]");

    // Step 1.
    let example = read(&root().join("crates/cc/tests/adding_an_algorithm.rs"));
    let example = example.split("\nfn flow(").next().expect("the algorithm");
    let begin = example.find("/// What the user can set.").expect("the table");
    let end = example.find("/// The parameters, checked").expect("the parameters");
    let params = example[begin..end].replace("const PARAMETERS", "pub(super) const TABLE");
    let host = format!("{}{}", &example[..begin], &example[end..])
        .replace("PARAMETERS", "TABLE")
        .replace("apus_cc::", "crate::")
        .replace(
            "use std::sync::Arc;",
            "use alloc::format;\nuse alloc::sync::Arc;\n\nuse super::params::TABLE;",
        );
    let aimd = cc.join("src/aimd");
    fs::create_dir_all(&aimd).expect("folder");
    let uses = "//! Parameters.\nuse crate::{ParamDefault, ParamInfo, ParamKind};\n\n";
    fs::write(aimd.join("params.rs"), format!("{uses}{params}")).expect("file");
    fs::write(aimd.join("host.rs"), host).expect("file");
    let module = "//! AIMD.\nmod host;\nmod params;\npub use host::{Aimd, Params};\n";
    fs::write(aimd.join("mod.rs"), module).expect("file");
    // Step 2.
    replace(&cc.join("src/lib.rs"), "pub mod bolt;", "pub mod aimd;\npub mod bolt;");
    let registry = cc.join("src/registry.rs");
    let last = "    Constant(crate::constant::Constant);\n";
    replace(&registry, last, &format!("{last}    /// AIMD.\n    Aimd(crate::aimd::Aimd);\n"));
    // Step 3.
    let tests = cc.join("tests/registry.rs");
    replace(
        &tests,
        "            \"constant\"\n",
        "            \"constant\",\n            \"aimd\"\n",
    );
    replace(&tests, "let origins = [", "let origins = [\"Chiu and Jain\",");

    let output = Command::new(env!("CARGO"))
        .args(["test", "--quiet", "--offline", "-p", "apus-cc", "--test", "registry"])
        .current_dir(&copied)
        .env("CARGO_TARGET_DIR", copied.join("target"))
        .env_remove("RUSTFLAGS")
        .output()
        .expect("cargo");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}{stderr}", String::from_utf8_lossy(&output.stdout));
}
