//! The results of `apus ping` and `apus perf` that a calibration uses.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;

/// Round trips of small messages.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Ping {
    /// Bytes of each message and each answer.
    pub(super) size: u64,
    /// Round trip of the application, median.
    pub(super) p50_us: f64,
    /// RTT less the delays in the hosts, as Swift divides them.
    pub(super) fabric_p50_us: f64,
    pub(super) fabric_p99_us: f64,
}

/// Writes in a closed loop.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Perf {
    pub(super) op: String,
    /// Bytes of a write.
    pub(super) size: u64,
    pub(super) flows: u32,
    pub(super) outstanding: u32,
    /// Mean payload of data packets.
    pub(super) packet_bytes: f64,
    pub(super) goodput_gbps: f64,
    pub(super) algorithm: Algorithm,
}

/// The algorithm of the flows, and the parameters that differ from its own defaults.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Algorithm {
    pub(super) name: String,
    pub(super) profile: String,
    pub(super) parameters: BTreeMap<String, String>,
}

impl Algorithm {
    /// Returns it as a table of a scenario.
    pub(super) fn table(&self) -> String {
        let mut text = format!("{{ name = \"{}\", profile = \"{}\"", self.name, self.profile);
        for (name, value) in &self.parameters {
            let is_bare = value.parse::<f64>().is_ok() || value.parse::<bool>().is_ok();
            let value = if is_bare { value.clone() } else { format!("\"{value}\"") };
            // Writing to a String cannot fail.
            let _ = write!(text, ", {name} = {value}");
        }
        text + " }"
    }
}

/// Reads a file of results.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let name = path.display();
    let text =
        fs::read_to_string(path).map_err(|error| Failure::Input(format!("{name}: {error}")))?;
    serde_json::from_str(&text).map_err(|error| {
        Failure::Input(format!(
            "{name}: {error}; give the output of this version's `apus ping --json` and `apus perf --json`, from \
             measurements that ended"
        ))
    })
}
