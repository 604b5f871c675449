//! Prefetches data for the next arrivals. A simulator that knows its next events calls these
//! functions a few events ahead, in this order. None of them changes any state.

use apus_cc::SwitchHalf;
use apus_units::{HostId, PortId};

use super::Network;
use crate::packet::{PacketRef, Way};
use crate::topology::Node;

impl<P, W: SwitchHalf> Network<P, W> {
    /// Prefetches the data of a port that a packet needs.
    #[inline]
    pub fn prefetch_port(&self, port: PortId) {
        self.ports[port.index()].prefetch();
    }

    /// Returns `true` if any port is of kind [`PortKind::Event`](crate::PortKind::Event).
    #[inline]
    #[must_use]
    pub fn has_event_ports(&self) -> bool {
        self.has_event_ports
    }

    /// Returns the payloads of the next two packets to arrive on the link behind `port`, if any,
    /// and prefetches the third packet.
    #[inline]
    pub fn coming(&self, port: PortId) -> (Option<&P>, Option<&P>) {
        let link = self.ports[port.index()].link();
        let payload = |packet| self.common.pool.payload(packet);
        let Some(first) = link.coming(0) else { return (None, None) };
        let Some(second) = link.coming(1) else { return (Some(payload(first)), None) };
        if let Some(third) = link.coming(2) {
            self.common.pool.prefetch(third, true);
        }
        (Some(payload(first)), Some(payload(second)))
    }

    /// Prefetches the packet that will arrive next.
    #[inline]
    pub fn prefetch_packet(&self, port: PortId) {
        let link = self.ports[port.index()].link();
        if let Some(packet) = link.head() {
            self.common.pool.prefetch(packet, matches!(link.peer(), Node::Host(_)));
        }
    }

    /// Prefetches the next port of the packet that will arrive next, or returns the destination
    /// host and the payload, so that the simulator can prefetch these.
    #[inline]
    pub fn prefetch_next(&self, port: PortId) -> Option<(HostId, &P)> {
        let link = self.ports[port.index()].link();
        let packet = link.head()?;
        match link.peer() {
            Node::Host(host) => Some((host, self.common.pool.payload(packet))),
            Node::Switch(_) => {
                if packet == PacketRef::NONE {
                    // The packet has been handed over to another part.
                    return None;
                }
                let fields = self.common.pool.fields(packet);
                if fields.way == Way::FORWARD {
                    self.prefetch_port(self.common.routes.port(fields.route, fields.hop + 1));
                }
                None
            }
        }
    }
}
