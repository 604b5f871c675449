//! Names this build, so that programs never mix the results of different builds. `APUS_BUILD` is the version. In a
//! build from the repository it also has a hash of the simulator's sources and of the other files that affect kept
//! results. A published version never changes, so its number suffices.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Crates whose code determines results, as folders in `crates`.
const CRATES: [&str; 9] =
    ["algorithms", "cc", "fabric", "jobs", "scenario", "sim", "transport", "units", "wire"];

/// Other folders in `crates` whose files determine results or kept report runs: published size distributions, the
/// report code, and the code that connects Python algorithms to the simulator.
const FOLDERS: [&str; 3] = ["sim/data", "apus/src/report", "../python/src/algorithm"];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let version = env::var("CARGO_PKG_VERSION").map_err(io::Error::other)?;
    let own = PathBuf::from(env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?);
    // Outside the repository, as in a published crate, the other crates are not in the neighbouring folders.
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

/// Adds all files of a folder and its subfolders.
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
