//! `apus key`: secrets that peers share.

use std::path::PathBuf;

use apus_udp::keyfile;
use clap::Args;

use crate::failure::Failure;
use crate::output::print;

/// Create a file with a new key; copy the file to every peer.
///
/// A holder of the file can open sessions under the key. A file may hold several keys, one per line:
/// a server that gives each client its own key can withdraw one.
#[derive(Args)]
pub struct Key {
    /// Key file to create; must not exist.
    file: PathBuf,
}

impl Key {
    /// Runs the command.
    pub fn execute(&self) -> Result<(), Failure> {
        let id = keyfile::create(&self.file).map_err(|error| Failure::Input(error.to_string()))?;
        print(&format!("key {id} is in {}\n", self.file.display()))
    }
}
