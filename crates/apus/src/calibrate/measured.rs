//! Results of `apus ping` and `apus perf` that a calibration uses.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use apus_scenario::file::{DATA_BYTES, read_text};
use apus_units::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;

/// Round trips of small messages.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Ping {
    /// Bytes of each message and of each answer.
    pub(super) size: u64,
    /// Round trip of the application, median.
    pub(super) p50_us: f64,
    /// RTT without the delays in the hosts, as Swift divides them.
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
    /// Payload of a full data packet; `None` if the connection ended during the measurement.
    pub(super) packet_bytes: Option<u64>,
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
    /// Returns the algorithm as a table of a scenario.
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

impl Perf {
    /// Returns the payload of packets: `given`, or the measured one.
    pub(super) fn payload(&self, given: Option<Bytes>) -> Result<Bytes, Failure> {
        if self.op != "write" {
            let what = format!("the perf measured {}s; give a measurement of writes", self.op);
            return Err(Failure::Input(what));
        }
        given.or_else(|| self.packet_bytes.map(Bytes::new)).ok_or_else(|| {
            let why =
                "the perf does not know the payload of packets, because its connection had ended";
            Failure::Input(format!("{why}; give it with --payload, or measure again"))
        })
    }
}

/// Reads a file of results.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let name = path.display();
    let text =
        read_text(path, DATA_BYTES).map_err(|error| Failure::Input(format!("{name}: {error}")))?;
    serde_json::from_str(&text).map_err(|error| {
        Failure::Input(format!(
            "{name}: {error}; give the output of this version's `apus ping --json` and `apus perf --json`, from \
             measurements that ended"
        ))
    })
}
