//! `apus key`: a new key file.

use std::path::PathBuf;

use apus_udp::keyfile;
use clap::Args;

use crate::failure::Failure;
use crate::output::print;

/// Makes a key that peers of the real transport share, in a file that only its owner can read.
#[derive(Args)]
pub struct Key {
    /// The file, which must not exist.
    file: PathBuf,
}

impl Key {
    /// Does it.
    pub fn execute(&self) -> Result<(), Failure> {
        let id = keyfile::create(&self.file).map_err(|e| Failure::Input(e.to_string()))?;
        print(&format!("{}: key {id}\n", self.file.display()))
    }
}
