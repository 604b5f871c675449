//! A switch in user space: a bottleneck between clients and a server that takes part in an algorithm.
//!
//! The switch forwards datagrams between any number of clients and the address of one server. Each direction is a port with a
//! rate, a buffer and the switch half of an algorithm: the same code that the simulator runs. The switch half reads and writes
//! the congestion fields of packets, which are not authenticated, and therefore needs no key ([`apus_wire::SwitchView`]).
//!
//! ```text
//! clients            front socket                              one socket per client           server
//!   A --------------->+                 port ToServer                +---------------------------->
//!   B --------------->+--> [buffer | switch half | rate | delay] --->+---------------------------->
//!     <---------------+<--- [delay | rate | switch half | buffer] <--+<----------------------------
//!                                       port ToClients
//! ```
//!
//! Ports run in virtual time (`port`, `forwarder`): their clock is the time at which the kernel received the datagrams. Queues
//! are therefore exact even while the forwarding thread has no core; only departures are late during that time. The [`Report`]
//! states how late.
//!
//! Peers see the switch's address instead of each other's. A signal to the source of a packet comes from the address to which
//! that source sends, as the transport requires.

mod clients;
mod counters;
mod datagram;
mod forwarder;
mod port;
mod sockets;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;

use apus_algorithms::dctcp::switch::EcnMarker;
use apus_algorithms::{AlgorithmConfig, BuiltInSwitch};
use apus_cc::{AlgorithmFactory, Ecn, SwitchHalf, SwitchInfo};
use apus_units::{Bytes, Rate, Span};

pub use counters::{Cause, Direction, PortCounters, Punctuality, Report};
pub use sockets::Switch;

use crate::config::{first_header, switch_half, wire_bytes_of};
use crate::error::StartError;

/// Settings of a [`Switch`].
#[derive(Clone, Debug)]
pub struct Config {
    /// Address to which clients send; port 0 lets the system choose.
    pub bind: SocketAddr,
    /// Address of the server.
    pub server: SocketAddr,
    /// Rate of each port, in wire bytes.
    pub rate: Rate,
    /// Maximum number of wire bytes in each port. deviation: no source; 2 ms at 1 Gb/s.
    pub buffer: Bytes,
    /// Propagation delay of the link behind each port.
    pub delay: Span,
    /// Algorithm whose switch half the ports run; `None` for ports that only forward.
    pub algorithm: Option<AlgorithmConfig>,
    /// Number of wire bytes in a port above which the port marks packets (ECN), for algorithms that react to marks and have no
    /// switch half of their own.
    pub ecn_threshold: Option<Bytes>,
    /// Maximum length in bytes of the hosts' IP packets: their [`Config::max_mtu`](crate::Config::max_mtu).
    pub max_mtu: u32,
    /// Kernel buffer of each socket and direction, in bytes; the kernel may allow less. deviation: no source; as that of a host.
    pub socket_buffer: u32,
}

impl Config {
    /// Returns default settings for ports with this rate: no delay, and no switch half.
    #[must_use]
    pub fn new(bind: SocketAddr, server: SocketAddr, rate: Rate) -> Self {
        Self {
            bind,
            server,
            rate,
            buffer: Bytes::new(256 << 10),
            delay: Span::ZERO,
            algorithm: None,
            ecn_threshold: None,
            max_mtu: 9000,
            socket_buffer: 4 << 20,
        }
    }

    /// Returns the switch half of a port.
    fn half(&self, port: &SwitchInfo) -> BuiltInSwitch {
        match (self.ecn_threshold, &self.algorithm) {
            (Some(threshold), _) => BuiltInSwitch::Ecn(EcnMarker::new(threshold)),
            (None, Some(algorithm)) => algorithm.switch(port),
            (None, None) => BuiltInSwitch::Plain,
        }
    }

    fn check(&self) -> Result<(), StartError> {
        let wrong = |what: String| Err(StartError::Setting(what));
        if !(1280..=65_535).contains(&self.max_mtu) {
            return wrong(format!("max_mtu is {}; it must be 1280 to 65535 bytes", self.max_mtu));
        }
        if self.rate.as_bps() == 0 {
            return wrong("the rate is 0; it must be above 0".to_owned());
        }
        let longest = Bytes::new(wire_bytes_of(self.max_mtu).into());
        if self.buffer < longest {
            return wrong(format!(
                "the buffer of {} has no room for the longest packet; it must have at least {} bytes for packets of \
                 {} bytes",
                self.buffer,
                longest.get(),
                self.max_mtu
            ));
        }
        if self.server == self.bind || self.server.port() == 0 {
            return wrong(format!(
                "the server's address {} must have a port, and differ from the address of the switch",
                self.server
            ));
        }
        if self.server.is_ipv6() != self.bind.is_ipv6() {
            return wrong(format!(
                "the addresses of the switch, {}, and of the server, {}, must both be IPv4 or both IPv6",
                self.bind, self.server
            ));
        }
        let Some(algorithm) = &self.algorithm else { return Ok(()) };
        let name = algorithm.info().name;
        if algorithm.credit_limit().is_some() {
            return wrong(format!(
                "{name} needs ports that limit credits, which this switch does not have; choose another algorithm"
            ));
        }
        let has_half = !switch_half(algorithm).is_plain();
        if has_half && self.ecn_threshold.is_some() {
            return wrong(format!(
                "{name} has a switch half of its own, which would take the place of the ECN threshold; remove one of \
                 them"
            ));
        }
        let reacts_to_marks = first_header(algorithm).ecn == Ecn::Capable;
        if reacts_to_marks && !has_half && self.ecn_threshold.is_none() {
            return wrong(format!("{name} needs ECN marks; set an ECN threshold, such as 30kB"));
        }
        if !reacts_to_marks && !has_half {
            return wrong(format!(
                "{name} has no switch half, so it would have no effect on the switch; leave the algorithm out"
            ));
        }
        Ok(())
    }
}
