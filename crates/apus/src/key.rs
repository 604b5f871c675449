//! `apus key`: secrets that peers share.

use std::path::PathBuf;

use apus_udp::keyfile;
use clap::Args;

use crate::failure::Failure;
use crate::output::print;

/// Makes a key that peers share, in a new file; copy the file to every peer.
///
/// Whoever has the file can open sessions under the key. A file may hold several keys, one per line:
/// a server that gives each client its own can withdraw one.
#[derive(Args)]
pub struct Key {
    /// The file to make; it must not be there yet.
    file: PathBuf,
}

impl Key {
    /// Does it.
    pub fn execute(&self) -> Result<(), Failure> {
        let id = keyfile::create(&self.file).map_err(|error| Failure::Input(error.to_string()))?;
        print(&format!("key {id} is in {}\n", self.file.display()))
    }
}
