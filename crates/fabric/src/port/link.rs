//! The link behind a port: packets in the order in which they arrive at the peer.

use alloc::collections::VecDeque;

use apus_units::{PortId, Span, Time};

use crate::event::{FabricEvent, Schedule};
use crate::packet::PacketRef;
use crate::topology::Node;

/// A packet whose arrival at the peer is known.
#[derive(Clone, Copy)]
pub(crate) struct InFlight {
    pub(crate) arrives: Time,
    pub(crate) packet: PacketRef,
    pub(crate) bytes: u32,
}

/// A link. An `Arrival` event is pending if and only if it holds a packet.
pub(crate) struct Link {
    ring: VecDeque<InFlight>,
    /// Propagation delay plus pipeline latency of the peer: arrival - departure.
    delay: Span,
    port: PortId,
    peer: Node,
}

impl Link {
    pub(crate) fn new(port: PortId, delay: Span, peer: Node) -> Self {
        Self { ring: VecDeque::new(), delay, port, peer }
    }

    #[inline]
    pub(crate) fn delay(&self) -> Span {
        self.delay
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.ring.len()
    }

    /// Departure of the `index`-th oldest packet and its bytes.
    #[inline]
    pub(crate) fn departure(&self, index: usize) -> Option<(Time, u32)> {
        self.ring.get(index).map(|entry| (entry.arrives - self.delay, entry.bytes))
    }

    /// Departures from the `index`-th oldest packet on, with their bytes.
    pub(crate) fn departures_from(&self, index: usize) -> impl Iterator<Item = (Time, u32)> {
        self.ring.range(index..).map(|entry| (entry.arrives - self.delay, entry.bytes))
    }

    /// A packet departs at `departs`, not before the one that was pushed last.
    #[inline]
    pub(crate) fn push<S: Schedule>(
        &mut self,
        departs: Time,
        packet: PacketRef,
        bytes: u32,
        schedule: &mut S,
    ) {
        let arrives = departs + self.delay;
        if self.ring.is_empty() {
            schedule.at(FabricEvent::Arrival(self.port), arrives);
        }
        self.ring.push_back(InFlight { arrives, packet, bytes });
    }

    /// Takes the packet that arrives now.
    ///
    /// # Panics
    /// If the link is empty: the event did not come from this fabric.
    #[inline]
    pub(crate) fn pop<S: Schedule>(&mut self, now: Time, schedule: &mut S) -> (InFlight, Node) {
        let entry = self.ring.pop_front().expect("an arrival is pending only while a packet is");
        debug_assert_eq!(entry.arrives, now, "{} was handled at the wrong time", self.port);
        if let Some(next) = self.ring.front() {
            schedule.at(FabricEvent::Arrival(self.port), next.arrives);
        }
        (entry, self.peer)
    }
}
