//! `apus key`: secrets that peers share, and key pairs of hosts.

use std::path::PathBuf;

use apus_udp::keyfile;
use apus_udp::session::Entry;
use clap::Args;

use crate::failure::Failure;
use crate::output::print;

/// Create a key file with a shared key to copy to every peer, or with `--name` the key file of one host.
///
/// A holder of a shared key can open sessions with it, and can impersonate any other holder. With `--name`, each host has its own
/// key pair and proves it: add the line that `--public` prints to the key files of its peers.
#[derive(Args)]
pub struct Key {
    /// Key file to create; must not exist. With `--public`, the file to read.
    file: PathBuf,
    /// Create a key pair for the host NAME.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Copy the shared keys from the key file FILE; without it, a new shared key is created.
    #[arg(long, value_name = "FILE", requires = "name")]
    group: Option<PathBuf>,
    /// Print the public key of the host of the key file, as a line for the key files of its peers.
    #[arg(long, conflicts_with = "name")]
    public: bool,
}

impl Key {
    /// Runs the command.
    pub fn execute(&self) -> Result<(), Failure> {
        let input = |error: keyfile::KeyFileError| Failure::Input(error.to_string());
        let file = self.file.display();
        if self.public {
            let entries = keyfile::read_entries(&self.file).map_err(input)?;
            let public: Vec<Entry> =
                entries.iter().filter(|entry| !entry.retired).filter_map(Entry::public).collect();
            if public.is_empty() {
                return Err(Failure::Input(format!(
                    "{file}: no key pair of a host; `apus key --name` makes one"
                )));
            }
            let lines = public.iter().map(|entry| entry.to_line().to_string() + "\n");
            return print(&lines.collect::<String>());
        }
        match &self.name {
            None => {
                let id = keyfile::create(&self.file).map_err(input)?;
                print(&format!("key {id} is in {file}\n"))
            }
            Some(name) => {
                let group = self.group.as_deref();
                let public = keyfile::create_pair(&self.file, name, group).map_err(input)?;
                print(&format!(
                    "the keys of {name} are in {file}; its peers need this line:\n{}\n",
                    *public.to_line()
                ))
            }
        }
    }
}
