//! A network simulated in several parts, each with its copy of the network.
//!
//! Every part is built from the same topology, seed and routes, so that identifiers agree, and uses
//! only the ports that it owns. A link whose packets may continue through a port of another part is
//! *shared*. Those packets are handed over between the parts before they arrive, which is possible
//! during their propagation delay, and arrive at the other part's copy of the link.

use apus_cc::{SwitchHalf, Telemetry};
use apus_units::{PortId, Span, Time};

use super::Network;
use crate::event::Schedule;
use crate::packet::{PacketRef, Transit, Way};
use crate::routing::{RouteId, opposite};
use crate::topology::Node;

impl<P, W: SwitchHalf> Network<P, W> {
    /// Shares the link behind `port`, which this part owns: its packets may continue in another
    /// part. Call it before anything is sent.
    pub fn share_link(&mut self, port: PortId) {
        self.ports[port.index()].set_shared();
    }

    /// Returns the time from a packet's departure from `port` to its arrival at the peer: the
    /// maximum difference in time between the two parts that share the link.
    #[must_use]
    pub fn delay(&self, port: PortId) -> Span {
        self.ports[port.index()].delay()
    }

    /// Sorts the packets that have entered the shared link behind `port`, in the order of arrival.
    /// `take` receives the packets that continue elsewhere, with their arrival time and telemetry.
    /// `other_part` returns the part to which a packet goes, given the port by which it continues
    /// (the port of its NIC if the link leads to a host); `None` keeps the packet here. Every event
    /// before `now` must have been handled.
    ///
    /// Returns the time at which another packet will enter the link without any further event, if
    /// there is one: the port must be sorted again before that packet arrives, and does not request
    /// it.
    pub fn hand_over<S: Schedule>(
        &mut self,
        (now, port): (Time, PortId),
        schedule: &mut S,
        other_part: impl Fn(PortId) -> Option<u32>,
        mut take: impl FnMut(u32, Time, Transit<&P>, Option<&Telemetry>),
    ) -> Option<Time> {
        self.ports[port.index()].begin_hand_over(now, &mut self.common, schedule);
        let at_switch = matches!(self.ports[port.index()].link().peer(), Node::Switch(_));
        while let Some(entry) = self.ports[port.index()].link().unsorted() {
            let next = if at_switch { self.next_port(entry.packet) } else { opposite(port) };
            let Some(part) = other_part(next) else {
                self.ports[port.index()].keep(schedule);
                continue;
            };
            self.ports[port.index()].hand_over();
            let (fields, payload) =
                (*self.common.pool.fields(entry.packet), self.common.pool.payload(entry.packet));
            let noted = self.common.pool.telemetry(entry.packet);
            take(part, entry.arrives, Transit { fields, payload }, noted);
            self.common.pool.release(entry.packet);
        }
        self.ports[port.index()].end_hand_over()
    }

    /// The port by which a packet will leave the switch at the end of its link.
    fn next_port(&self, packet: PacketRef) -> PortId {
        let fields = self.common.pool.fields(packet);
        if fields.way == Way::BACK {
            opposite(self.common.routes.port(fields.route, fields.hop - 1))
        } else {
            self.common.routes.port(fields.route, fields.hop + 1)
        }
    }

    /// Prefetches the data that [`Network::hand_over`] needs about the packets of a cached port.
    #[inline]
    pub fn prefetch_unsorted(&self, port: PortId) {
        self.ports[port.index()].link().prefetch_unsorted();
    }

    /// Prefetches the packets that [`Network::hand_over`] will sort.
    #[inline]
    pub fn prefetch_unsorted_packets(&self, port: PortId) {
        for entry in self.ports[port.index()].link().all_unsorted() {
            self.common.pool.prefetch(entry.packet, true);
        }
    }

    /// Prefetches the slot where [`Network::receive`] stores a packet of a cached port.
    #[inline]
    pub fn prefetch_tail(&self, port: PortId) {
        self.ports[port.index()].link().prefetch_tail();
    }

    /// A packet that another part handed over arrives behind `port` at `arrives`.
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

    /// Returns the number of words of all routes: a route resolved later starts there or later.
    #[must_use]
    pub fn routes_end(&self) -> RouteId {
        self.common.routes.end()
    }

    /// Stores a path that another part resolved.
    pub fn import_route(&mut self, path: &[PortId]) -> RouteId {
        self.common.routes.insert_shared(path)
    }

    /// Packets in ports and on links of this part, for the check over all parts.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.ports.iter().map(crate::port::Port::held).sum::<u64>() + self.mail.held()
    }
}
