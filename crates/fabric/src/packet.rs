//! Packets and the arena that holds them.

use alloc::vec::Vec;

use apus_cc::CongestionHeader;
use apus_units::{ClassId, HostId};

use crate::RouteId;

/// A packet as the fabric sees it: 20 bytes that ports read, then the user's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)] // The fields that ports touch come first and share a cache line.
pub struct Packet<P> {
    /// Everything that occupies the link, preamble and gap included, in bytes.
    pub wire_bytes: u32,
    /// The egress ports on its way, from [`Network::route`](crate::Network::route).
    pub route: RouteId,
    /// Host that sent it.
    pub src: HostId,
    /// Host it goes to.
    pub dst: HostId,
    /// Egress ports passed so far: index into the route. Set to 0 when the packet is sent.
    pub hop: u8,
    /// Switches it may still visit: each takes one off, and drops the packet at 0 (IP's TTL, from
    /// which Swift §3.5 counts hops).
    pub ttl: u8,
    /// Traffic class. At a port with fewer classes the packet joins the last one.
    pub class: ClassId,
    /// The congestion fields, which switch halves may change.
    pub congestion: CongestionHeader,
    /// The user's part.
    pub payload: P,
}

impl<P> Packet<P> {
    /// The TTL that [`Packet::new`] gives: IP's recommended default (RFC 1700, "IP TIME TO LIVE").
    pub const DEFAULT_TTL: u8 = 64;

    /// A packet of class 0 with a TTL of [`Packet::DEFAULT_TTL`], not ECN-capable.
    #[must_use]
    pub fn new(route: RouteId, src: HostId, dst: HostId, wire_bytes: u32, payload: P) -> Self {
        Self {
            wire_bytes,
            route,
            src,
            dst,
            hop: 0,
            ttl: Self::DEFAULT_TTL,
            class: ClassId::default(),
            congestion: CongestionHeader::default(),
            payload,
        }
    }
}

/// A packet in a [`PacketPool`]. Valid until the packet is taken out; the slot is reused then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PacketRef(u32);

/// An arena of packets. It grows to the largest number held at once and allocates nothing after.
#[derive(Clone, Debug)]
pub struct PacketPool<P> {
    slots: Vec<Option<Packet<P>>>,
    free: Vec<u32>,
}

const STALE: &str = "this packet was already taken out of the pool";

impl<P> PacketPool<P> {
    /// An empty pool.
    #[must_use]
    pub const fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    /// Puts a packet in.
    ///
    /// # Panics
    /// If the pool already holds 2^32 packets.
    #[inline]
    pub fn insert(&mut self, packet: Packet<P>) -> PacketRef {
        if let Some(index) = self.free.pop() {
            self.slots[index as usize] = Some(packet);
            return PacketRef(index);
        }
        let index = u32::try_from(self.slots.len()).expect("fewer than 2^32 packets at once");
        self.slots.push(Some(packet));
        PacketRef(index)
    }

    /// The packet.
    ///
    /// # Panics
    /// If it was taken out.
    #[inline]
    #[must_use]
    pub fn get(&self, packet: PacketRef) -> &Packet<P> {
        self.slots[packet.0 as usize].as_ref().expect(STALE)
    }

    /// The packet, to change it.
    ///
    /// # Panics
    /// If it was taken out.
    #[inline]
    pub fn get_mut(&mut self, packet: PacketRef) -> &mut Packet<P> {
        self.slots[packet.0 as usize].as_mut().expect(STALE)
    }

    /// Takes the packet out and frees its slot.
    ///
    /// # Panics
    /// If it was taken out before.
    #[inline]
    pub fn take(&mut self, packet: PacketRef) -> Packet<P> {
        let taken = self.slots[packet.0 as usize].take().expect(STALE);
        self.free.push(packet.0);
        taken
    }

    /// Packets held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<P> Default for PacketPool<P> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fabric_part_is_first_and_within_half_a_cache_line() {
        assert!(core::mem::offset_of!(Packet<u64>, payload) <= 32);
        assert_eq!(core::mem::offset_of!(Packet<u64>, wire_bytes), 0);
    }

    #[test]
    fn a_slot_costs_nothing_over_the_packet() {
        assert_eq!(size_of::<Option<Packet<u64>>>(), size_of::<Packet<u64>>());
    }

    #[test]
    fn slots_are_reused() {
        let packet = |n: u32| {
            Packet::new(RouteId::default(), HostId::new(0), HostId::new(1), n, u64::from(n))
        };
        let mut pool = PacketPool::new();
        let first = pool.insert(packet(1));
        let second = pool.insert(packet(2));
        assert_eq!(pool.take(first).payload, 1);
        assert_eq!(pool.insert(packet(3)), first);
        assert_eq!((pool.get(first).payload, pool.get(second).payload), (3, 2));
        assert_eq!(pool.len(), 2);
    }

    #[test]
    #[should_panic(expected = "already taken")]
    fn a_stale_reference_is_caught() {
        let mut pool = PacketPool::new();
        let packet =
            pool.insert(Packet::new(RouteId::default(), HostId::new(0), HostId::new(1), 1, ()));
        pool.take(packet);
        let _ = pool.get(packet);
    }
}
