//! `apus calibrate`: derives the scenario of a cluster from measurements between two machines.

mod fit;
mod measured;
mod model;

use std::fmt::Write;
use std::path::PathBuf;

use apus_units::{Bytes, Rate};
use clap::Args;

use crate::failure::Failure;
use crate::output::{print, write_file};
use fit::Fit;
use measured::{Perf, Ping};
use model::Setting;

/// Create a scenario of a cluster from measurements of `apus ping` and `apus perf` between two of its machines.
///
/// Link delay and host jitter follow from the fabric RTT of the ping. The costs of a host engine are fitted so that the
/// simulator reproduces the round trip of the ping and the goodput of the writes.
#[derive(Args)]
pub struct Calibrate {
    /// File with the output of `apus ping --json`.
    #[arg(long, value_name = "FILE")]
    ping: PathBuf,
    /// File with the output of `apus perf --json`, for writes.
    #[arg(long, value_name = "FILE")]
    perf: PathBuf,
    /// Rate of the links of the machines.
    #[arg(long)]
    rate: Rate,
    /// Payload of a packet [default: that of full packets in the measurement of the writes].
    #[arg(long)]
    payload: Option<Bytes>,
    /// Number of hosts of the scenario.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=65_536))]
    hosts: u32,
    /// Write the scenario to FILE, and print measured and simulated values side by side. Without it, print the scenario.
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
}

impl Calibrate {
    /// Runs the command.
    pub fn execute(&self) -> Result<(), Failure> {
        let ping: Ping = measured::read(&self.ping)?;
        let perf: Perf = measured::read(&self.perf)?;
        let payload = perf.payload(self.payload)?;
        let algorithm = perf.algorithm.table();
        let setting = Setting { algorithm, rate: self.rate, payload, hosts: self.hosts };
        setting.check()?;
        let fit = Fit::of(&ping, &perf, &setting)?;
        let text = scenario(&fit, &perf, &setting);
        let Some(out) = &self.scenario else { return print(&text) };
        write_file(out, &text).map_err(Failure::Input)?;
        print(&fit.table())
    }
}

/// Returns the scenario: the cluster, with the writes of the measurement as its workload.
fn scenario(fit: &Fit, perf: &Perf, setting: &Setting) -> String {
    let mut text = String::from("# Made by `apus calibrate`. Measured and simulated:\n");
    for line in fit.table().lines() {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "# {line}");
    }
    for note in &fit.notes {
        let _ = writeln!(text, "# Note: {note}");
    }
    let writes = model::writes(perf.size, perf.outstanding, perf.flows);
    text + &setting.scenario(&fit.model, model::LONG, &writes)
}
