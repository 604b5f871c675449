//! The link behind a port: packets in the order in which they arrive at the peer.

use apus_units::{PortId, Span, Time};

use super::ring::Ring;
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

impl InFlight {
    /// What an empty place of a ring holds.
    pub(super) const NONE: Self = Self { arrives: Time::ZERO, packet: PacketRef::NONE, bytes: 0 };
}

/// A link. An `Arrival` event is pending if and only if it holds a packet.
///
/// The peer of a *remote* link is simulated elsewhere: no event is asked for, and the packets are
/// handed over as soon as the engine calls for them, which must be before they arrive.
pub(crate) struct Link {
    ring: Ring,
    /// So many of the ring's oldest packets were handed over; they remain as departures.
    handed: usize,
    remote: bool,
    /// Propagation delay plus pipeline latency of the peer: arrival - departure.
    delay: Span,
    port: PortId,
    peer: Node,
}

impl Link {
    pub(crate) fn new(port: PortId, delay: Span, peer: Node) -> Self {
        Self { ring: Ring::new(), remote: false, handed: 0, delay, port, peer }
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
        self.ring.from(index).map(|entry| (entry.arrives - self.delay, entry.bytes))
    }

    /// A packet departs at `departs`, not before the one that was pushed last.
    #[inline(always)]
    pub(crate) fn push<S: Schedule>(
        &mut self,
        departs: Time,
        packet: PacketRef,
        bytes: u32,
        schedule: &mut S,
    ) {
        let arrives = departs + self.delay;
        if self.ring.len() == self.handed {
            if self.remote {
                schedule.hand_over(self.port);
            } else {
                schedule.at(FabricEvent::Arrival(self.port), arrives);
            }
        }
        self.ring.push_back(InFlight { arrives, packet, bytes });
    }

    pub(crate) fn set_remote(&mut self) {
        self.remote = true;
    }

    pub(crate) fn is_remote(&self) -> bool {
        self.remote
    }

    /// Packets whose arrival is still this link's business.
    pub(crate) fn held(&self) -> usize {
        self.ring.len() - self.handed
    }

    /// The next packet to hand over.
    pub(crate) fn hand_over(&mut self) -> Option<InFlight> {
        let entry = *self.ring.get(self.handed)?;
        self.handed += 1;
        Some(entry)
    }

    /// Forgets up to `departed` of the oldest packets, as far as they were handed over; says how
    /// many.
    #[inline]
    pub(crate) fn forget(&mut self, departed: usize) -> usize {
        let forgotten = departed.min(self.handed);
        self.ring.forget(forgotten);
        self.handed -= forgotten;
        forgotten
    }

    /// A packet handed over by the link's other half arrives at `arrives`.
    pub(crate) fn receive<S: Schedule>(
        &mut self,
        arrives: Time,
        packet: PacketRef,
        bytes: u32,
        schedule: &mut S,
    ) {
        if self.ring.len() == 0 {
            schedule.at(FabricEvent::Arrival(self.port), arrives);
        }
        self.ring.push_back(InFlight { arrives, packet, bytes });
    }

    /// The packet that arrives next.
    #[inline]
    pub(crate) fn head(&self) -> Option<PacketRef> {
        self.ring.front().map(|entry| entry.packet)
    }

    /// The packet that arrives after `n` others.
    #[inline]
    pub(crate) fn coming(&self, n: usize) -> Option<PacketRef> {
        self.ring.get(n).map(|entry| entry.packet)
    }

    pub(crate) fn peer(&self) -> Node {
        self.peer
    }

    /// Takes the packets that arrive before `limit`, oldest first; when the next one does.
    #[inline(always)]
    pub(crate) fn pop_before(&mut self, limit: Time, mut take: impl FnMut(InFlight)) -> Time {
        while let Some(&entry) = self.ring.front() {
            if entry.arrives >= limit {
                return entry.arrives;
            }
            self.ring.forget(1);
            take(entry);
        }
        Time::MAX
    }

    /// Takes the packet that arrives now.
    ///
    /// # Panics
    /// If the link is empty: the event did not come from this fabric.
    #[inline(always)]
    pub(crate) fn pop<S: Schedule>(&mut self, now: Time, schedule: &mut S) -> (InFlight, Node) {
        let entry = self.ring.pop_front().expect("an arrival is pending only while a packet is");
        debug_assert_eq!(entry.arrives, now, "{} was handled at the wrong time", self.port);
        if let Some(next) = self.ring.front() {
            schedule.at(FabricEvent::Arrival(self.port), next.arrives);
        }
        (entry, self.peer)
    }
}
