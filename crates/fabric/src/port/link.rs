//! The link behind a port: packets in the order in which they arrive at the peer.

use apus_units::{PortId, Ring, Span, Time, prefetch};

use crate::event::{FabricEvent, Schedule};
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

/// A link. An `Arrival` event is pending if and only if it holds a packet.
///
/// On a *shared* link some packets continue in another part of the network. The simulator, once
/// asked, keeps or hands over each packet before it arrives. An `Arrival` is pending if and only if
/// a packet was kept. A packet that was handed over remains as a departure, without packet.
pub(crate) struct Link {
    ring: Ring<InFlight>,
    /// Number of the ring's oldest packets that were kept or handed over (0 unless the link is
    /// shared); `kept` counts those that were kept.
    sorted: u32,
    kept: u32,
    shared: bool,
    /// For a shared link: the simulator has been asked to sort it.
    sort_requested: bool,
    /// Propagation delay plus pipeline latency of the peer: arrival - departure.
    delay: Span,
    port: PortId,
    peer: Node,
}

impl Link {
    pub(crate) fn new(port: PortId, delay: Span, peer: Node) -> Self {
        Self {
            ring: Ring::with_slots(FIRST_SLOTS),
            sorted: 0,
            kept: 0,
            shared: false,
            sort_requested: false,
            delay,
            port,
            peer,
        }
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
        if self.ring.len() == self.sorted as usize {
            if self.shared {
                self.request_sort(schedule);
            } else {
                schedule.at(FabricEvent::Arrival(self.port), arrives);
            }
        }
        self.ring.push_back(InFlight { arrives, packet, bytes });
    }

    /// Asks the simulator, once, to sort the packets on the shared link.
    #[inline]
    pub(crate) fn request_sort<S: Schedule>(&mut self, schedule: &mut S) {
        if !core::mem::replace(&mut self.sort_requested, true) {
            schedule.hand_over(self.port);
        }
    }

    /// Records that all packets on the shared link are sorted.
    #[inline]
    pub(crate) fn end_sort(&mut self) {
        self.sort_requested = false;
    }

    pub(crate) fn set_shared(&mut self) {
        self.shared = true;
    }

    #[inline]
    pub(crate) fn is_shared(&self) -> bool {
        self.shared
    }

    /// Packets that will still arrive through this link.
    pub(crate) fn held(&self) -> usize {
        self.ring.len() - self.sorted as usize + self.kept as usize
    }

    /// The next packet to keep or to hand over.
    #[inline]
    pub(crate) fn unsorted(&self) -> Option<InFlight> {
        self.ring.get(self.sorted as usize).copied()
    }

    /// All packets to keep or to hand over.
    #[inline]
    pub(crate) fn all_unsorted(&self) -> impl Iterator<Item = &InFlight> {
        self.ring.iter_from(self.sorted as usize)
    }

    /// Prefetches the ring entry of the first unsorted packet.
    #[inline]
    pub(crate) fn prefetch_unsorted(&self) {
        if let Some(entry) = self.ring.get(self.sorted as usize) {
            prefetch(entry);
        }
    }

    /// Keeps the first unsorted packet: it arrives here.
    #[inline]
    pub(crate) fn keep<S: Schedule>(&mut self, schedule: &mut S) {
        if self.kept == 0
            && let Some(entry) = self.unsorted()
        {
            schedule.at(FabricEvent::Arrival(self.port), entry.arrives);
        }
        self.sorted += 1;
        self.kept += 1;
    }

    /// Hands over the first unsorted packet.
    #[inline]
    pub(crate) fn hand_over(&mut self) {
        if let Some(entry) = self.ring.get_mut(self.sorted as usize) {
            entry.packet = PacketRef::NONE;
        }
        self.sorted += 1;
    }

    /// Removes up to `departed` of the oldest packets, as long as they were handed over, and
    /// returns how many.
    #[inline]
    pub(crate) fn forget(&mut self, departed: usize) -> usize {
        let mut forgotten = 0;
        while forgotten < departed && self.head() == Some(PacketRef::NONE) {
            self.ring.discard(1);
            forgotten += 1;
        }
        self.sorted -= forgotten as u32;
        forgotten
    }

    /// Returns when the oldest packet that is not handed over arrives; [`Time::MAX`] if there is
    /// none. On a shared link, only packets that were kept count.
    #[inline(always)]
    pub(crate) fn next_arrival(&self) -> Time {
        if self.shared {
            return self.next_kept();
        }
        self.ring.front().map_or(Time::MAX, |entry| entry.arrives)
    }

    fn next_kept(&self) -> Time {
        if self.kept == 0 {
            return Time::MAX;
        }
        let kept = self.ring.iter().find(|entry| entry.packet != PacketRef::NONE);
        kept.map_or(Time::MAX, |entry| entry.arrives)
    }

    /// Returns the oldest packets, of which the first arrives before `limit`, as far as they do and are in one
    /// slice; on a shared link some may have been handed over.
    #[inline(always)]
    pub(crate) fn arriving_before(&self, limit: Time) -> &[InFlight] {
        let packets = self.ring.first_slice();
        &packets[..packets.iter().position(|entry| entry.arrives >= limit).unwrap_or(packets.len())]
    }

    /// Removes the `taken` oldest packets; on a shared link some may have been handed over.
    #[inline(always)]
    pub(crate) fn discard(&mut self, taken: usize) {
        if self.shared {
            let kept = |entry: &&InFlight| entry.packet != PacketRef::NONE;
            self.kept -= self.ring.iter().take(taken).filter(kept).count() as u32;
            self.sorted -= taken as u32;
        }
        self.ring.discard(taken);
    }

    /// A packet handed over by the link's other half arrives at `arrives`.
    pub(crate) fn receive<S: Schedule>(
        &mut self,
        arrives: Time,
        packet: PacketRef,
        bytes: u32,
        schedule: &mut S,
    ) {
        if self.ring.is_empty() {
            schedule.at(FabricEvent::Arrival(self.port), arrives);
        }
        self.ring.push_back(InFlight { arrives, packet, bytes });
    }

    /// Removes all packets, which have departed and do not arrive. `lose` gets those that are still here: on a
    /// shared link others were handed over.
    pub(crate) fn cut<S: Schedule>(&mut self, schedule: &mut S, mut lose: impl FnMut(PacketRef)) {
        let is_pending = if self.shared { self.kept > 0 } else { !self.ring.is_empty() };
        if is_pending {
            schedule.cancel(FabricEvent::Arrival(self.port));
        }
        self.ring
            .iter()
            .filter(|entry| entry.packet != PacketRef::NONE)
            .for_each(|e| lose(e.packet));
        self.ring.discard(self.ring.len());
        (self.sorted, self.kept) = (0, 0);
    }

    /// Prefetches the slot of the next packet.
    #[inline]
    pub(crate) fn prefetch_tail(&self) {
        self.ring.prefetch_free();
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

    pub(crate) fn port(&self) -> PortId {
        self.port
    }

    /// Takes the packet that arrives now. On a shared link, older packets that were handed over
    /// have been removed.
    ///
    /// # Panics
    /// If the link is empty: the event did not come from this fabric.
    #[inline(always)]
    pub(crate) fn pop(&mut self, now: Time) -> InFlight {
        // Copied instead of taken: a hop writes no default value into the slot.
        let entry = *self.ring.front().expect("an arrival is pending only while a packet is");
        self.ring.discard(1);
        debug_assert_eq!(entry.arrives, now, "{} was handled at the wrong time", self.port);
        if self.shared {
            self.sorted -= 1;
            self.kept -= 1;
        }
        entry
    }
}
