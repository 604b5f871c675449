//! Construction of a network from its description.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use apus_cc::SwitchHalf;
use apus_units::{Bytes, PortId, Span, SwitchId};

use super::{Node, SwitchSpec, Topology, TopologyError};
use crate::config::{Buffer, PortConfig, PortKind};
use crate::network::Network;
use crate::port::{Link, Port, SharedBuffer};
use crate::routing::Paths;

/// Maximum number of ports of a host. Rationale: a node with 8 NICs of 8 ports; the simulator keeps
/// one bit per port in a 64-bit word.
pub const MAX_HOST_PORTS: u8 = 64;

impl<W: SwitchHalf> Topology<W> {
    /// Builds the network. `seed` determines which of several shortest paths a flow takes.
    ///
    /// # Errors
    /// If a link names a node that does not exist, a host does not have 1 to 64 links, or the
    /// configuration of a port is invalid; the error names the place.
    pub fn build<P>(&self, seed: u64) -> Result<Network<P, W>, TopologyError> {
        self.build_at_least(seed, PortKind::Fifo)
    }

    /// Builds the network without ports of a simpler kind than `least`, for the differential test
    /// and the benchmark of port kinds.
    ///
    /// # Errors
    /// See [`Topology::build`].
    #[doc(hidden)]
    pub fn build_at_least<P>(
        &self,
        seed: u64,
        least: PortKind,
    ) -> Result<Network<P, W>, TopologyError> {
        self.check()?;
        let mut ports = Vec::with_capacity(2 * self.links.len());
        for (l, link) in self.links.iter().enumerate() {
            let ends = [(link.a, link.b, &link.ab), (link.b, link.a, &link.ba)];
            for (side, (from, to, config)) in (0..).zip(ends) {
                let id = PortId::new(2 * l as u32 + side);
                let (owner, latency) = (self.switch_of(from), self.pipeline_latency(to));
                let wire = Link::new(id, link.delay + latency, to);
                ports.push(Port::new(config, config.kind().max(least), wire, owner));
            }
        }
        let mut sharing = vec![0; self.switches.len()];
        let ends = self.links.iter().flat_map(|link| [(link.a, &link.ab), (link.b, &link.ba)]);
        for (owner, config) in ends {
            if let (Node::Switch(switch), Buffer::Shared { .. }) = (owner, config.buffer) {
                sharing[switch.index()] += 1;
            }
        }
        let shared = |(switch, ports): (&SwitchSpec, u32)| {
            let size = switch.shared_buffer.map(Bytes::get);
            size.map_or_else(SharedBuffer::default, |size| SharedBuffer::new(size, ports))
        };
        Ok(Network::assemble(
            ports,
            self.switches.iter().zip(sharing).map(shared).collect(),
            Paths::new(self, seed),
            self.links.iter().map(|link| (link.a, link.b)).collect(),
            self.switches.iter().map(|s| s.name.clone()).collect(),
        ))
    }

    fn switch_of(&self, node: Node) -> Option<SwitchId> {
        match node {
            Node::Host(_) => None,
            Node::Switch(switch) => Some(switch),
        }
    }

    /// Returns the smallest delay of a link, including the latency of the switch behind it;
    /// [`Span::MAX`] if there are no links.
    #[must_use]
    pub fn smallest_delay(&self) -> Span {
        let ends = self.links.iter().flat_map(|link| [(link, link.a), (link, link.b)]);
        let delays = ends.map(|(link, to)| link.delay + self.pipeline_latency(to));
        delays.min().unwrap_or(Span::MAX)
    }

    fn pipeline_latency(&self, node: Node) -> Span {
        self.switch_of(node).map_or(Span::ZERO, |s| self.switches[s.index()].pipeline_latency)
    }

    fn check(&self) -> Result<(), TopologyError> {
        if self.links.len() > (u32::MAX / 2) as usize {
            return Err(TopologyError(
                "more than 2^31 links; ports are numbered in 32 bits".into(),
            ));
        }
        for (l, link) in self.links.iter().enumerate() {
            let name = |node| self.node_name(node);
            for node in [link.a, link.b] {
                match node {
                    Node::Host(host) if host.get() < self.hosts => {}
                    Node::Switch(switch) if switch.index() < self.switches.len() => {}
                    _ => {
                        return Err(TopologyError(format!(
                            "link {l} ends at {node}, which does not exist: there are {} hosts and \
                             {} switches, numbered from 0",
                            self.hosts,
                            self.switches.len()
                        )));
                    }
                }
            }
            if link.a == link.b {
                return Err(TopologyError(format!(
                    "link {l} connects {} to itself; its ends must differ",
                    name(link.a)
                )));
            }
            for (from, to, config) in [(link.a, link.b, &link.ab), (link.b, link.a, &link.ba)] {
                self.check_port(from, config).map_err(|why| {
                    TopologyError(format!("port {} -> {}: {why}", name(from), name(to)))
                })?;
            }
        }
        let allowed = 1..=u32::from(MAX_HOST_PORTS);
        let links_of_host = self.ports_of_hosts();
        if let Some(host) = links_of_host.iter().position(|links| !allowed.contains(links)) {
            return Err(TopologyError(format!(
                "host {host} has {} links; every host must have 1 to {MAX_HOST_PORTS}",
                links_of_host[host]
            )));
        }
        Ok(())
    }

    fn check_port(&self, owner: Node, config: &PortConfig<W>) -> Result<(), String> {
        config.check()?;
        if let Buffer::Shared { .. } = config.buffer {
            let memory = self.switch_of(owner).and_then(|s| self.switches[s.index()].shared_buffer);
            if memory.is_none() {
                return Err(format!(
                    "it shares the memory of {}, which has none; set `shared_buffer` of a switch \
                     or give the port its own buffer",
                    self.node_name(owner)
                ));
            }
        }
        Ok(())
    }
}
