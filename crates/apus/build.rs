//! Names this build, so that results of one build are never taken for those of another: `APUS_BUILD` is the version
//! and, in a build from the repository, a hash of the simulator's sources and of what else decides what is kept. A
//! published version never changes, so that its number is enough.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The crates whose code decides results, as folders in `crates`.
const CRATES: [&str; 9] =
    ["algorithms", "cc", "fabric", "jobs", "scenario", "sim", "transport", "units", "wire"];

/// Other folders in `crates` whose files decide results, or the runs of reports, which are kept too: published
/// distributions of sizes, the runs of reports, and the path of Python's algorithms into the simulator.
const FOLDERS: [&str; 3] = ["sim/data", "apus/src/report", "../python/src/algorithm"];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let version = env::var("CARGO_PKG_VERSION").map_err(io::Error::other)?;
    let own = PathBuf::from(env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?);
    // A published crate has its dependencies elsewhere.
    let crates = own.parent().filter(|crates| crates.join("sim/src").is_dir());
    let build = match crates {
        Some(crates) => format!("{version}+{:016x}", hash(crates)?),
        None => version,
    };
    println!("cargo::rustc-env=APUS_BUILD={build}");
    Ok(())
}

/// Returns a hash of the sources of the simulator and of the versions of its dependencies.
fn hash(crates: &Path) -> io::Result<u64> {
    let mut files = Vec::new();
    let sources = CRATES.iter().map(|name| crates.join(name).join("src"));
    let others = FOLDERS.iter().map(|name| crates.join(name)).filter(|folder| folder.is_dir());
    for folder in sources.chain(others) {
        println!("cargo::rerun-if-changed={}", folder.display());
        list(&folder, &mut files)?;
    }
    let lock = crates.join("../Cargo.lock");
    if lock.is_file() {
        println!("cargo::rerun-if-changed={}", lock.display());
        files.push(lock);
    }
    files.sort();
    // FNV-1a, 64 bits.
    let mut hash = 0xcbf2_9ce4_8422_2325;
    for file in files {
        let name = file.strip_prefix(crates).unwrap_or(&file).to_string_lossy().replace('\\', "/");
        let content = fs::read(&file)?;
        for byte in name.into_bytes().iter().chain(&content) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    Ok(hash)
}

/// Adds all files of a folder and of those within.
fn list(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
