//! The link behind a port: packets in the order in which they arrive at the peer.

use alloc::boxed::Box;

use apus_units::{PortId, Ring, Span, Time};

use crate::event::{FabricEvent, Flight, Leads, Schedule};
use crate::packet::PacketRef;
use crate::topology::Node;

/// Slots of a new ring of packets: a port that is used once is mostly used again.
pub(super) const FIRST_SLOTS: u32 = 4;

/// A packet with known arrival time at the end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// Time of the arrival.
    pub arrives: Time,
    /// The packet.
    pub packet: PacketRef,
    /// Its wire bytes.
    pub bytes: u32,
}

impl Default for InFlight {
    /// Returns the content of an empty slot of a ring.
    fn default() -> Self {
        Self { arrives: Time::ZERO, packet: PacketRef::NONE, bytes: 0 }
    }
}

/// A link. An `Arrival` event is pending if and only if it holds a packet that arrives.
///
/// If its packets *fly*, the simulator keeps them: until they arrive if the whole network does, or until the next end of a
/// window if the link is *shared*, because some of them continue in another part of the network; the others come
/// [back](Self::receive). Of packets that fly from a FIFO port the link remembers the departures, until the port has caught
/// up with them.
pub(crate) struct Link {
    /// Packets that arrive; departures if they fly.
    ring: Ring<InFlight>,
    /// Of a shared link: the packets that arrive here.
    back: Option<Box<Ring<InFlight>>>,
    flies: bool,
    /// All packets of the network fly.
    all_fly: bool,
    leads: Leads,
    /// Propagation delay plus pipeline latency of the peer: arrival - departure.
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

    /// Some packets continue in another part.
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

    /// The packets that arrive, if the simulator does not keep them.
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

    /// Departure of the `index`-th oldest packet and its bytes.
    #[inline]
    pub(crate) fn departure(&self, index: usize) -> Option<(Time, u32)> {
        self.ring.get(index).map(|entry| (entry.arrives - self.delay, entry.bytes))
    }

    /// Departures from the `index`-th oldest packet on, with their bytes.
    pub(crate) fn departures_from(&self, index: usize) -> impl Iterator<Item = (Time, u32)> {
        self.ring.iter_from(index).map(|entry| (entry.arrives - self.delay, entry.bytes))
    }

    /// A packet departs at `departs`, not before the one that was pushed last. Returns `false` if the link has nothing
    /// more to do with it; `remember`: it remembers the departure.
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

    /// Returns `true` if there is no free slot to remember a departure.
    #[inline(always)]
    pub(crate) fn is_full(&self) -> bool {
        self.ring.is_full()
    }

    /// Packets that arrive, without those that the simulator keeps.
    pub(crate) fn held(&self) -> usize {
        if self.flies { self.back.as_ref().map_or(0, |back| back.len()) } else { self.ring.len() }
    }

    /// Forgets the oldest departures.
    #[inline(always)]
    pub(crate) fn forget(&mut self, departed: usize) {
        self.ring.discard(departed);
    }

    /// Returns when the oldest packet arrives; [`Time::MAX`] if there is none.
    #[inline(always)]
    pub(crate) fn next_arrival(&self) -> Time {
        self.arrivals().front().map_or(Time::MAX, |entry| entry.arrives)
    }

    /// A packet arrives here at `arrives`, from the link's other half or back from the simulator. Returns `false` if the link
    /// has nothing more to do with it.
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

    /// Removes all packets, which have departed and do not arrive. `lose` gets those that are here or with the simulator.
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

    /// The packet that arrives next.
    #[inline]
    pub(crate) fn head(&self) -> Option<PacketRef> {
        self.arrivals().front().map(|entry| entry.packet)
    }

    /// The packet that arrives after `n` others.
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

    /// Takes the packet that arrives now.
    ///
    /// # Panics
    /// If the link is empty: the event did not come from this fabric.
    #[inline(always)]
    pub(crate) fn pop(&mut self, now: Time) -> InFlight {
        let ring = self.back.as_deref_mut().unwrap_or(&mut self.ring);
        // Copied instead of taken: a hop writes no default value into the slot.
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
