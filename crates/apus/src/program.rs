//! Identity of the program that makes results: results of different builds are not mixed.

use std::env;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use apus_scenario::Setup;

use crate::written::Checksum;

/// The version and, in a build from the repository, a hash of the simulator's sources (`build.rs`).
pub const BUILD: &str = env!("APUS_BUILD");

/// Returns what decides the results of a run besides its effective configuration: the build, and the implementation
/// of each algorithm from outside.
pub fn program_of(setup: &Setup) -> String {
    let mut program = BUILD.to_owned();
    for (label, config) in setup.algorithms() {
        if let Some(factory) = config.foreign() {
            let own = factory.implementation();
            program += &format!(" {label}={}", own.as_deref().unwrap_or(&EXECUTABLE));
        }
    }
    program
}

/// Hash of the executable, which contains the algorithms that [`main_with`](crate::main_with) adds.
static EXECUTABLE: LazyLock<String> = LazyLock::new(|| {
    let sum = env::current_exe().and_then(|path| Checksum::of(&path));
    // A program whose file is no longer there reuses nothing.
    sum.map_or_else(|_| format!("{:016x}", RandomState::new().hash_one(0)), |sum| sum.to_string())
});
