//! A network that is simulated in several parts, each of which has a copy of the network.
//!
//! Every part is built from the same topology, seed and routes, so that identifiers agree, and uses
//! only the ports that it owns. A link whose packets may continue through a port of another part is
//! *shared*. The parts hand over such packets before they arrive, which is possible during their
//! propagation delay; they then arrive at the other part's copy of the link.

use apus_cc::{SwitchHalf, Telemetry};
use apus_units::{PortId, Span, Time};

use super::Network;
use crate::event::{Flight, Schedule};
use crate::packet::{PacketRef, Transit, Way};
use crate::routing::{RouteId, opposite};
use crate::topology::Node;

impl<P, W: SwitchHalf> Network<P, W> {
    /// Shares the link behind `port`, which this part owns: its packets may continue in another
    /// part. The simulator [keeps its packets](Schedule::fly), and [hands them
    /// over](Self::hand_over) or [returns them](Self::keep) before they arrive. Call it before
    /// anything is sent.
    pub fn share_link(&mut self, port: PortId) {
        self.ports[port.index()].set_shared();
    }

    /// Returns the time from a packet's departure from `port` to its arrival at the peer: the two
    /// parts that share the link may differ in time by at most this span.
    #[must_use]
    pub fn delay(&self, port: PortId) -> Span {
        self.ports[port.index()].delay()
    }

    /// Returns the port by which a packet continues at the end of a link; if the link leads to a
    /// host, the port of its NIC.
    #[must_use]
    pub fn next_port(&self, flight: &Flight) -> PortId {
        if let Node::Host(_) = self.port_ends(flight.link).1 {
            return opposite(flight.link);
        }
        let fields = self.common.pool.fields(flight.packet);
        if fields.way == Way::BACK {
            opposite(self.common.routes.port(fields.route, fields.hop - 1))
        } else {
            self.common.routes.port(fields.route, fields.hop + 1)
        }
    }

    /// Removes a packet that continues in another part, and passes it with its telemetry to `take`.
    pub fn hand_over(
        &mut self,
        packet: PacketRef,
        take: impl FnOnce(Transit<&P>, Option<&Telemetry>),
    ) {
        let pool = &self.common.pool;
        let transit = Transit { fields: *pool.fields(packet), payload: pool.payload(packet) };
        take(transit, pool.telemetry(packet));
        self.common.pool.release(packet);
    }

    /// Returns a packet on a shared link that continues in this part to the link.
    pub fn keep<S: Schedule>(&mut self, flight: &Flight, schedule: &mut S) {
        let bytes = self.common.pool.fields(flight.packet).wire_bytes;
        let port = &mut self.ports[flight.link.index()];
        port.receive(flight.arrives, flight.packet, bytes, schedule);
    }

    /// Prefetches the slot where [`Network::receive`] stores a packet of a cached port.
    #[inline]
    pub fn prefetch_tail(&self, port: PortId) {
        self.ports[port.index()].link().prefetch_tail();
    }

    /// Adds a packet that another part handed over, which arrives behind `port` at `arrives`.
    pub fn receive<S: Schedule>(
        &mut self,
        port: PortId,
        arrives: Time,
        packet: Transit<P>,
        telemetry: Option<&Telemetry>,
        schedule: &mut S,
    ) {
        let bytes = packet.fields.wire_bytes;
        let packet = self.common.pool.receive(packet);
        self.common.pool.set_telemetry(packet, telemetry);
        self.ports[port.index()].receive(arrives, packet, bytes, schedule);
    }

    /// Returns the number of words of all routes: a route that is resolved later starts there or
    /// behind.
    #[must_use]
    pub fn routes_end(&self) -> RouteId {
        self.common.routes.end()
    }

    /// Stores a path that another part resolved.
    ///
    /// # Panics
    /// If all routes together have 2^32 egress ports or more. Few routes are found during a run.
    pub fn import_route(&mut self, path: &[PortId]) -> RouteId {
        self.common.routes.insert_shared(path).expect("fewer than 2^32 words of routes")
    }

    /// Returns the number of packets in ports and on links of this part, without those that the
    /// simulator [keeps](Schedule::fly), for the check over all parts.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.ports.iter().map(crate::port::Port::held).sum::<u64>() + self.mail.held()
    }
}
