//! One network simulated in several parts, each by a copy of its own.
//!
//! Every part is built from the same topology, seed and routes, so that identifiers agree, and works
//! only with the ports of the nodes it owns. A link between nodes of two parts is *remote* at its
//! sender: packets are handed over between the parts before they arrive, which their propagation
//! delay leaves time for.

use apus_cc::Telemetry;
use apus_units::{PortId, Span, Time};

use super::Network;
use crate::event::Schedule;
use crate::packet::Packet;
use crate::routing::RouteId;

impl<P> Network<P> {
    /// Makes the link behind `port` a remote one: its peer belongs to another part. Before anything
    /// is sent.
    pub fn set_remote(&mut self, port: PortId) {
        self.ports[port.index()].set_remote();
    }

    /// The time from a packet's departure from `port` to its arrival at the peer: how far the two
    /// parts that share the link may run apart.
    #[must_use]
    pub fn delay(&self, port: PortId) -> Span {
        self.ports[port.index()].delay()
    }

    /// Calls `take` with each packet on the remote link behind `port`, in the order of arrival, and
    /// the time at which it arrives and its telemetry.
    pub fn hand_over(
        &mut self,
        port: PortId,
        mut take: impl FnMut(Time, Packet<P>, Option<Telemetry>),
    ) {
        while let Some(entry) = self.ports[port.index()].hand_over() {
            let telemetry = self.pool.telemetry(entry.packet).copied();
            take(entry.arrives, self.pool.take(entry.packet), telemetry);
        }
    }

    /// A packet that another part handed over arrives behind `port` at `arrives`.
    pub fn receive<S: Schedule>(
        &mut self,
        port: PortId,
        arrives: Time,
        packet: Packet<P>,
        telemetry: Option<&Telemetry>,
        schedule: &mut S,
    ) {
        let bytes = packet.wire_bytes;
        let packet = self.pool.insert(packet);
        self.pool.set_telemetry(packet, telemetry);
        self.ports[port.index()].receive(arrives, packet, bytes, schedule);
    }

    /// How many routes' words there are: a route resolved later starts at or beyond.
    #[must_use]
    pub fn routes_end(&self) -> RouteId {
        self.routes.end()
    }

    /// Stores a path that another part resolved.
    pub fn import_route(&mut self, path: &[PortId]) -> RouteId {
        self.routes.insert_shared(path)
    }

    /// Packets in ports and on links of this part, for the check over all parts.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.ports.iter().map(crate::port::Port::held).sum::<u64>() + self.mail.held()
    }
}
