//! Read access to a network: ports, queues, counters, paths and base RTTs.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use apus_cc::SwitchHalf;
use apus_units::{Bytes, ClassId, HostId, PortId, Rate, Span, SwitchId, Time};

use super::Network;
use crate::config::PortKind;
use crate::counters::{ClassCounters, Counters, Drops, PortCounters};
use crate::routing::{RouteError, RouteId, Terminal, opposite};
use crate::topology::Node;

impl<P, W: SwitchHalf> Network<P, W> {
    /// Returns the number of hosts, which are numbered from 0.
    #[must_use]
    pub fn hosts(&self) -> u32 {
        self.paths.hosts()
    }

    /// Returns the number of switches, which are numbered from 0.
    #[must_use]
    pub fn switches(&self) -> u32 {
        self.names.len() as u32
    }

    /// Returns every egress port. Link `l` has port `2 l` from a to b, and port `2 l + 1` from b to
    /// a.
    pub fn ports(&self) -> impl Iterator<Item = PortId> + use<P, W> {
        (0..self.ports.len() as u32).map(PortId::new)
    }

    /// Returns the node that a port belongs to and the node that its link leads to.
    #[must_use]
    pub fn port_ends(&self, port: PortId) -> (Node, Node) {
        let (a, b) = self.ends[port.index() / 2];
        if port.get().is_multiple_of(2) { (a, b) } else { (b, a) }
    }

    /// Returns the display name of a node: "host 17", "edge 3".
    #[must_use]
    pub fn node_name(&self, node: Node) -> String {
        match node {
            Node::Host(host) => host.to_string(),
            Node::Switch(switch) => self.names[switch.index()].clone(),
        }
    }

    /// Returns the display name of a port: "edge 3 -> host 17".
    #[must_use]
    pub fn port_name(&self, port: PortId) -> String {
        let (from, to) = self.port_ends(port);
        format!("{} -> {}", self.node_name(from), self.node_name(to))
    }

    /// Returns the egress port of a host's NIC; the first one if the host has several.
    ///
    /// # Panics
    /// If the host does not exist.
    #[inline]
    #[must_use]
    pub fn host_port(&self, host: HostId) -> PortId {
        self.paths.nics(host)[0].0
    }

    /// Returns all egress ports of a host, in the order of its links.
    ///
    /// # Panics
    /// If the host does not exist.
    pub fn host_ports(&self, host: HostId) -> impl ExactSizeIterator<Item = PortId> + '_ {
        self.paths.nics(host).iter().map(|(port, _)| *port)
    }

    /// Returns the number of ports that both ends can use at the same time: the smaller number of
    /// their ports, at least 1.
    #[must_use]
    pub fn common_ports(&self, one: impl Into<Terminal>, other: impl Into<Terminal>) -> u32 {
        self.paths.port_count(one.into()).min(self.paths.port_count(other.into())).max(1)
    }

    /// Returns `true` unless the link behind a port has failed.
    #[inline]
    #[must_use]
    pub fn is_up(&self, port: PortId) -> bool {
        self.ports[port.index()].is_up()
    }

    /// Returns the first port of a route: the port of its host.
    #[inline]
    #[must_use]
    pub fn first_port(&self, route: RouteId) -> PortId {
        self.common.routes.port(route, 0)
    }

    /// Returns the kind of a port.
    #[must_use]
    pub fn port_kind(&self, port: PortId) -> PortKind {
        self.ports[port.index()].kind()
    }

    /// Returns the number of classes of a port.
    #[must_use]
    pub fn class_count(&self, port: PortId) -> usize {
        self.ports[port.index()].class_count()
    }

    /// Returns the number of packets that a failure of the link behind a port has lost but that
    /// count as drops only when their last bit would leave: 0 or 1.
    #[must_use]
    pub fn losing(&self, port: PortId) -> u64 {
        self.ports[port.index()].losing()
    }

    /// Returns the current rate of the link behind a port.
    #[must_use]
    pub fn rate(&self, port: PortId) -> Rate {
        self.ports[port.index()].rate()
    }

    /// Returns the configured rate of the link behind a port, without faults.
    #[must_use]
    pub fn configured_rate(&self, port: PortId) -> Rate {
        self.ports[port.index()].configured_rate()
    }

    /// Returns the maximum number of wire bytes that a class of a port has held so far, of packets
    /// sent in that class. Packets sent in a class that the port does not have, which join its last
    /// class, do not count. `None` at a FIFO or lazy port, which does not count them.
    ///
    /// # Panics
    /// If the port counts them and has no such class.
    #[must_use]
    pub fn max_own_bytes(&self, port: PortId, class: ClassId) -> Option<Bytes> {
        self.ports[port.index()].max_own_bytes(class)
    }

    /// Returns the maximum number of wire bytes, of packets sent in a class that the port does not
    /// have, that have joined this class of a port while it was never empty. `None` at a FIFO or
    /// lazy port.
    ///
    /// # Panics
    /// If the port counts them and has no such class.
    #[must_use]
    pub fn max_foreign_bytes(&self, port: PortId, class: ClassId) -> Option<Bytes> {
        self.ports[port.index()].max_foreign_bytes(class)
    }

    /// Returns the time at which the last packet in the port departs; a past time if the port is
    /// empty. Except at FIFO ports, this takes one step per packet and assumes that no class is
    /// paused or rate-limited.
    #[inline]
    #[must_use]
    pub fn busy_until(&self, port: PortId) -> Time {
        self.ports[port.index()].busy_until()
    }

    /// Returns the occupancy of a port in wire bytes (whole packets, the one in service included).
    /// Takes one step per packet that has departed since the last packet was offered to the port.
    #[must_use]
    pub fn queue_bytes(&self, port: PortId, now: Time) -> Bytes {
        Bytes::new(self.ports[port.index()].queued(now).bytes)
    }

    /// Returns the occupancy of a port by one of its classes, in wire bytes.
    ///
    /// # Panics
    /// If the port does not have this class. A FIFO port has one class and ignores the argument.
    #[must_use]
    pub fn class_queue_bytes(&self, port: PortId, class: ClassId, now: Time) -> Bytes {
        Bytes::new(self.ports[port.index()].class_queued(class, now).bytes)
    }

    /// Returns the number of bytes in the memory that the ports of a switch share.
    ///
    /// # Panics
    /// If the switch does not exist.
    #[must_use]
    pub fn shared_buffer_used(&self, switch: SwitchId) -> Bytes {
        Bytes::new(self.common.shared[switch.index()].used())
    }

    /// Returns the counters of the network.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.common.counters
    }

    /// Returns the counters of a port up to `now`. Takes one step per packet in the port.
    #[must_use]
    pub fn port_counters(&self, port: PortId, now: Time) -> PortCounters {
        self.ports[port.index()].counters(now)
    }

    /// Returns the number of packets dropped at a port, by reason. A packet whose TTL reached 0
    /// counts at the port by which it arrived at the switch.
    #[must_use]
    pub fn drops(&self, port: PortId) -> Drops {
        self.common.drops.at(port)
    }

    /// Returns the counters of one class of a port up to `now`. Takes one step per packet in the
    /// port.
    ///
    /// # Panics
    /// If the port does not have this class. A FIFO port has one class and ignores the argument.
    #[must_use]
    pub fn class_counters(&self, port: PortId, class: ClassId, now: Time) -> ClassCounters {
        self.ports[port.index()].class_counters(class, now)
    }

    /// Restarts the largest occupancy of every port at `now`, for the end of a warm-up.
    pub fn restart_max_queues(&mut self, now: Time) {
        for port in &mut self.ports {
            port.restart_max_queue(now);
        }
    }

    /// Checks that every packet sent was delivered, dropped, or is in a port or on a link. Valid
    /// only for a network that keeps the packets on its links itself (see
    /// [`Network::fly_packets`]).
    ///
    /// # Errors
    /// Returns the numbers if they do not add up.
    pub fn check_conservation(&self) -> Result<(), String> {
        self.common.counters.check(self.held(), self.common.pool.len() as u64)
    }

    /// Returns the egress ports of a route in order: the first one belongs to a host, all others to
    /// switches.
    #[must_use]
    pub fn route_ports(&self, route: RouteId) -> Vec<PortId> {
        self.common.routes.ports(route).collect()
    }

    /// Returns the egress ports of the path that [`Network::route`] would store.
    ///
    /// # Errors
    /// If no path exists.
    pub fn path(
        &self,
        src: impl Into<Terminal>,
        dst: impl Into<Terminal>,
        key: u64,
        label: u32,
    ) -> Result<Vec<PortId>, RouteError> {
        let mut path = Vec::new();
        self.paths.find(src.into(), dst.into(), key, label, &mut path)?;
        Ok(path)
    }

    /// Returns the base RTT of a pair: `data` wire bytes to the destination and `ack` wire bytes
    /// back, without other packets and without processing in the hosts. All shortest paths of the
    /// built-in topologies have the same base RTT; in other topologies the result is that of one of
    /// the paths.
    ///
    /// # Errors
    /// If no path exists.
    pub fn unloaded_rtt(
        &self,
        src: impl Into<Terminal>,
        dst: impl Into<Terminal>,
        data: Bytes,
        ack: Bytes,
    ) -> Result<Span, RouteError> {
        let path = self.path(src, dst, 0, 0)?;
        let there = self.path_delay(path.iter().copied(), data);
        Ok(there + self.path_delay(path.iter().copied().map(opposite), ack))
    }

    fn path_delay(&self, path: impl Iterator<Item = PortId>, bytes: Bytes) -> Span {
        path.map(|port| &self.ports[port.index()])
            .map(|port| port.rate().serialization_time(bytes) + port.delay())
            .fold(Span::ZERO, |sum, delay| sum + delay)
    }
}
