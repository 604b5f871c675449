//! Options of source ports, and their state in a connection.

use apus_udp::session::MAX_PORTS;
use apus_udp::{AckPath, Config, Connection, DEFAULT_PORTS, OnePort, SpreadSettings};
use apus_units::Span;
use clap::Args;
use serde::Serialize;

use super::failure;
use crate::failure::Failure;

/// Options that spread the packets of a flow over source ports.
#[derive(Args)]
pub struct SpreadOptions {
    /// Spread the packets of each flow over source ports by a path policy: its name, and parameters as `key=value` after it, such
    /// as "reps" or "reps freeze=10ms". Policies: ecmp, plb, flowlet, oblivious, bitmap, reps, mixed.
    #[arg(long, value_name = "POLICY")]
    balancer: Option<String>,
    /// Number of source ports per engine, a power of two from 2 to 256 [default: 64].
    #[arg(long, value_name = "N", requires = "balancer")]
    ports: Option<u16>,
    /// First source port after the listening port; the others follow it [default: ports that the system chooses].
    #[arg(long, value_name = "PORT", requires = "balancer")]
    source_port: Option<u16>,
    /// Rule that declares a packet lost before its timeout: time, ev-order, or timeout for none [default: time].
    #[arg(long, value_name = "RULE", requires = "balancer")]
    loss: Option<String>,
    /// With `--loss time`: declare a packet lost if a packet sent TIME later is acknowledged [default: 5ms].
    #[arg(long, value_name = "TIME", requires = "balancer")]
    loss_delay: Option<Span>,
    /// Maximum range of packet numbers in flight of a flow with several ports, a power of two from 128 to 16384. The smaller
    /// value of the two hosts applies [default: 1024].
    #[arg(long, value_name = "N")]
    range: Option<u32>,
    /// Path of acknowledgements to a peer with several ports: symmetric (back to the port that the packet came from) or own (by
    /// the ports of this host) [default: symmetric].
    #[arg(long, value_name = "PATH", value_parser = str::parse::<AckPath>)]
    ack_path: Option<AckPath>,
    /// Maximum number of source ports of a peer, a power of two; 1 refuses further ports [default: 256, or 1 with several
    /// engines].
    #[arg(long, value_name = "N")]
    accept_ports: Option<u16>,
}

const _: () = assert!(DEFAULT_PORTS == 64 && MAX_PORTS == 256, "the help says so");

impl SpreadOptions {
    /// Applies the options to the settings of a host.
    pub fn apply(&self, config: &mut Config) -> Result<(), Failure> {
        let settings = SpreadSettings {
            balancer: self.balancer.clone(),
            ports: self.ports,
            source_port: self.source_port,
            loss: self.loss.clone(),
            loss_delay: self.loss_delay,
            range: self.range,
            ack_path: self.ack_path,
            accept_ports: self.accept_ports,
        };
        config.set_spreading(&settings).map_err(failure)
    }
}

/// The source ports of a connection, for results.
#[derive(Serialize)]
pub struct SourcePorts {
    peer: String,
    /// Number of ports from which packets leave.
    usable: usize,
    /// Reason for a single port, if there is only one.
    one_port: Option<&'static str>,
    ports: Vec<SourcePort>,
}

/// Outcome of the packets of a source port.
#[derive(Serialize)]
struct SourcePort {
    port: u16,
    usable: bool,
    sent: u64,
    good: u64,
    marked: u64,
    lost: u64,
    timeouts: u64,
}

impl SourcePorts {
    /// Returns the ports of a connection; `None` if its host has no balancer or the connection has ended.
    pub fn of(connection: &Connection) -> Option<Self> {
        let paths = connection.paths().ok().filter(|paths| paths.one_port != Some(OnePort::Off))?;
        let ports = paths.ports.iter().map(|port| {
            let counters = port.counters;
            SourcePort {
                port: port.port,
                usable: port.usable,
                sent: counters.sent,
                good: counters.good,
                marked: counters.marked,
                lost: counters.lost,
                timeouts: counters.timeouts,
            }
        });
        Some(Self {
            peer: connection.peer().to_string(),
            usable: paths.ports.iter().filter(|port| port.usable).count(),
            one_port: paths.one_port.map(OnePort::name),
            ports: ports.collect(),
        })
    }

    /// Returns a line that describes the ports.
    pub fn text(&self) -> String {
        let sent = || self.ports.iter().filter(|port| port.usable).map(|port| port.sent);
        let (least, most) = (sent().min().unwrap_or(0), sent().max().unwrap_or(0));
        let lost: u64 = self.ports.iter().map(|port| port.lost).sum();
        let timeouts: u64 = self.ports.iter().map(|port| port.timeouts).sum();
        match self.one_port {
            Some(reason) => {
                format!("\nports:      one to {}: {}", self.peer, reason.replace('_', " "))
            }
            None => format!(
                "\nports:      {} of {} to {}, {least} to {most} packets each, {lost} lost, {timeouts} timeouts",
                self.usable,
                self.ports.len(),
                self.peer
            ),
        }
    }
}
