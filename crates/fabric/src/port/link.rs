//! The link behind a port: packets in the order in which they arrive at the peer.

use alloc::boxed::Box;

use apus_units::{PortId, Ring, Span, Time};

use crate::event::{FabricEvent, Flight, Leads, Schedule};
use crate::packet::PacketRef;
use crate::topology::Node;

/// Initial number of slots of a ring of packets: a port that is used once is mostly used again.
pub(super) const FIRST_SLOTS: u32 = 4;

/// A packet with a known arrival time at the end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// Time of the arrival.
    pub arrives: Time,
    /// The packet.
    pub packet: PacketRef,
    /// Wire bytes of the packet.
    pub bytes: u32,
}

impl Default for InFlight {
    /// Returns the content of an empty slot of a ring.
    fn default() -> Self {
        Self { arrives: Time::ZERO, packet: PacketRef::NONE, bytes: 0 }
    }
}

/// A link. An `Arrival` event is pending if and only if the link holds a packet that arrives here.
///
/// If the packets of the link *fly*, the simulator keeps them. It keeps them until they arrive if
/// this applies to the whole network. If only the link is *shared*, because some of its packets
/// continue in another part of the network, it keeps them until the next end of a window; packets
/// that continue in this part then [return](Self::receive). If packets fly from a FIFO port, the
/// link records their departures until the port has been updated past them.
pub(crate) struct Link {
    /// Packets that arrive at the peer; only their departures if they fly.
    ring: Ring<InFlight>,
    /// For a shared link: the packets that arrive in this part.
    back: Option<Box<Ring<InFlight>>>,
    flies: bool,
    /// Whether all packets of the network fly.
    all_fly: bool,
    leads: Leads,
    /// Propagation delay plus pipeline latency of the peer: the time from departure to arrival.
    delay: Span,
    port: PortId,
    peer: Node,
}

impl Link {
    pub(crate) fn new(port: PortId, delay: Span, peer: Node) -> Self {
        Self {
            ring: Ring::with_slots(FIRST_SLOTS),
            back: None,
            flies: false,
            all_fly: false,
            leads: leads_to(peer),
            delay,
            port,
            peer,
        }
    }

    /// Marks the link as shared: some packets continue in another part.
    pub(crate) fn set_shared(&mut self) {
        (self.back, self.leads, self.flies) = (Some(Box::default()), Leads::ToParts, true);
    }

    /// Sets whether all packets of the network fly.
    pub(crate) fn set_all_fly(&mut self, all_fly: bool) {
        (self.all_fly, self.flies) = (all_fly, all_fly || self.back.is_some());
    }

    #[inline(always)]
    pub(crate) fn flies(&self) -> bool {
        self.flies
    }

    pub(crate) fn leads(&self) -> Leads {
        self.leads
    }

    /// Returns the packets that arrive here, if the simulator does not keep them.
    #[inline(always)]
    fn arrivals(&self) -> &Ring<InFlight> {
        self.back.as_deref().unwrap_or(&self.ring)
    }

    #[inline]
    pub(crate) fn delay(&self) -> Span {
        self.delay
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.ring.len()
    }

    /// Returns the departure and the bytes of the packet with this index, counted from the oldest.
    #[inline]
    pub(crate) fn departure(&self, index: usize) -> Option<(Time, u32)> {
        self.ring.get(index).map(|entry| (entry.arrives - self.delay, entry.bytes))
    }

    /// Returns the departures and bytes of all packets from this index on, counted from the oldest.
    pub(crate) fn departures_from(&self, index: usize) -> impl Iterator<Item = (Time, u32)> {
        self.ring.iter_from(index).map(|entry| (entry.arrives - self.delay, entry.bytes))
    }

    /// Adds a packet that departs at `departs`, which must not be before the previous departure.
    /// Returns `false` if the link stores nothing. If the packet flies, the link stores only its
    /// departure, and that only if `remember` is set.
    #[inline(always)]
    pub(crate) fn push<S: Schedule>(
        &mut self,
        departs: Time,
        packet: PacketRef,
        (bytes, remember): (u32, bool),
        schedule: &mut S,
    ) -> bool {
        let arrives = departs + self.delay;
        let mut entry = InFlight { arrives, packet, bytes };
        if self.flies {
            schedule.fly(Flight { arrives, link: self.port, packet }, self.leads);
            if !remember {
                return false;
            }
            entry.packet = PacketRef::NONE;
        } else if self.ring.is_empty() {
            schedule.at(FabricEvent::Arrival(self.port), arrives);
        }
        self.ring.push_back(entry);
        true
    }

    /// Returns `true` if no free slot is left for a departure.
    #[inline(always)]
    pub(crate) fn is_full(&self) -> bool {
        self.ring.is_full()
    }

    /// Returns the number of packets that arrive here, without those that the simulator keeps.
    pub(crate) fn held(&self) -> usize {
        if self.flies { self.back.as_ref().map_or(0, |back| back.len()) } else { self.ring.len() }
    }

    /// Removes the records of the oldest departures.
    #[inline(always)]
    pub(crate) fn forget(&mut self, departed: usize) {
        self.ring.discard(departed);
    }

    /// Returns the arrival time of the oldest packet; [`Time::MAX`] if there is none.
    #[inline(always)]
    pub(crate) fn next_arrival(&self) -> Time {
        self.arrivals().front().map_or(Time::MAX, |entry| entry.arrives)
    }

    /// Adds a packet that arrives here at `arrives`; it comes from another part or back from the
    /// simulator. Returns `true` if the packet was stored in the main ring of a link whose packets
    /// do not fly.
    pub(crate) fn receive<S: Schedule>(
        &mut self,
        arrives: Time,
        packet: PacketRef,
        bytes: u32,
        schedule: &mut S,
    ) -> bool {
        if self.all_fly {
            schedule.fly(Flight { arrives, link: self.port, packet }, leads_to(self.peer));
            return false;
        }
        let ring = self.back.as_deref_mut().unwrap_or(&mut self.ring);
        if ring.is_empty() {
            schedule.at(FabricEvent::Arrival(self.port), arrives);
        }
        ring.push_back(InFlight { arrives, packet, bytes });
        !self.flies
    }

    /// Removes all packets on the link, which will not arrive. Calls `lose` for those that are
    /// stored here or by the simulator.
    pub(crate) fn cut<S: Schedule>(&mut self, schedule: &mut S, mut lose: impl FnMut(PacketRef)) {
        if self.flies {
            schedule.cut(self.port, &mut lose);
        }
        if self.held() > 0 {
            schedule.cancel(FabricEvent::Arrival(self.port));
        }
        for ring in [Some(&mut self.ring), self.back.as_deref_mut()].into_iter().flatten() {
            let packets = ring.iter().filter(|entry| entry.packet != PacketRef::NONE);
            packets.for_each(|entry| lose(entry.packet));
            ring.discard(ring.len());
        }
    }

    /// Prefetches the slot of the next packet.
    #[inline]
    pub(crate) fn prefetch_tail(&self) {
        self.ring.prefetch_free();
    }

    /// Returns the packet that arrives next.
    #[inline]
    pub(crate) fn head(&self) -> Option<PacketRef> {
        self.arrivals().front().map(|entry| entry.packet)
    }

    /// Returns the packet that arrives after `n` others.
    #[inline]
    pub(crate) fn coming(&self, n: usize) -> Option<PacketRef> {
        self.arrivals().get(n).map(|entry| entry.packet)
    }

    pub(crate) fn peer(&self) -> Node {
        self.peer
    }

    pub(crate) fn port(&self) -> PortId {
        self.port
    }

    /// Removes the packet that arrives now.
    ///
    /// # Panics
    /// If the link is empty: the fabric did not request the event.
    #[inline(always)]
    pub(crate) fn pop(&mut self, now: Time) -> InFlight {
        let ring = self.back.as_deref_mut().unwrap_or(&mut self.ring);
        // Copied instead of taken, so that a hop writes no default value into the slot.
        let entry = *ring.front().expect("an arrival is pending only while a packet is");
        ring.discard(1);
        debug_assert_eq!(entry.arrives, now, "{} was handled at the wrong time", self.port);
        entry
    }
}

/// Returns where a link to a node leads.
fn leads_to(peer: Node) -> Leads {
    match peer {
        Node::Host(_) => Leads::ToHost,
        Node::Switch(_) => Leads::ToSwitch,
    }
}
