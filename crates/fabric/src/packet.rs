//! Packets and the arena that holds them.

use alloc::vec::Vec;

use apus_cc::{CongestionHeader, Telemetry};
use apus_units::{ClassId, HostId, prefetch, reserve_more};

use crate::RouteId;

/// A packet: the fields that the fabric uses, and the user's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<P> {
    /// Number of bytes that occupy the link, preamble and gap included.
    pub wire_bytes: u32,
    /// The egress ports on the path, from [`Network::route`](crate::Network::route).
    pub route: RouteId,
    /// Host that sent the packet.
    pub src: HostId,
    /// Destination host.
    pub dst: HostId,
    /// Egress ports passed so far: index into the route. Set to 0 when the packet is sent.
    pub hop: u8,
    /// Number of switches that the packet may still visit. Each switch decrements it and drops the
    /// packet at 0 (IP's TTL, from which Swift §3.5 counts hops).
    pub ttl: u8,
    /// How the packet follows its route.
    pub way: Way,
    /// Traffic class. At a port with fewer classes the packet joins the last one.
    pub class: ClassId,
    /// The congestion fields, which switch halves may change.
    pub congestion: CongestionHeader,
    /// The user's payload.
    pub payload: P,
}

/// How a packet follows its route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Way(u8);

impl Way {
    /// Forwards, from the first port of the route to the last.
    pub const FORWARD: Self = Self(0);
    /// Backwards from the switch that made the packet
    /// ([`Network::answer_signals`](crate::Network::answer_signals)). `hop` then counts down.
    pub const BACK: Self = Self(1);

    /// Returns the way of packets whose route switches may change. Each switch with a choice may
    /// replace the rest of the route, one of the paths of a [`PathSet`](crate::PathSet), by the
    /// rule of this number ([`Network::let_switches_choose`](crate::Network::let_switches_choose)).
    #[must_use]
    pub(crate) const fn chosen(rule: u8) -> Self {
        Self(rule + 2)
    }

    /// Returns the number of the rule by which switches choose.
    pub(crate) const fn rule(self) -> Option<usize> {
        match self.0 {
            0 | 1 => None,
            rule => Some(rule as usize - 2),
        }
    }
}

impl<P> Packet<P> {
    /// TTL that [`Packet::new`] sets: IP's recommended default (RFC 1700, "IP TIME TO LIVE").
    pub const DEFAULT_TTL: u8 = 64;

    /// Returns a packet of class 0 with a TTL of [`Packet::DEFAULT_TTL`], not ECN-capable.
    #[must_use]
    pub fn new(route: RouteId, src: HostId, dst: HostId, wire_bytes: u32, payload: P) -> Self {
        Self {
            wire_bytes,
            route,
            src,
            dst,
            hop: 0,
            ttl: Self::DEFAULT_TTL,
            way: Way::FORWARD,
            class: ClassId::default(),
            congestion: CongestionHeader::default(),
            payload,
        }
    }
}

impl<P> Packet<P> {
    /// Returns `true` if switches append telemetry to the packet, or if it returns telemetry.
    #[inline]
    #[must_use]
    pub const fn carries_telemetry(&self) -> bool {
        self.congestion.fields.carries_telemetry()
    }
}

/// A reference to a packet in a [`PacketPool`]. Valid until the packet is removed; its slot is then
/// reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PacketRef(pub(crate) u32);

impl PacketRef {
    /// No packet: the content of an empty slot.
    pub const NONE: Self = Self(u32::MAX);
}

impl Default for PacketRef {
    /// Returns [`PacketRef::NONE`].
    fn default() -> Self {
        Self::NONE
    }
}

/// The fields of a [`Packet`] that ports and switches read and change: all except the payload.
/// Aligned, so that the fields of one packet are in one cache line.
#[repr(align(32))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// See [`Packet::wire_bytes`].
    pub wire_bytes: u32,
    /// See [`Packet::route`].
    pub route: RouteId,
    /// See [`Packet::src`].
    pub src: HostId,
    /// See [`Packet::dst`].
    pub dst: HostId,
    /// See [`Packet::hop`].
    pub hop: u8,
    /// See [`Packet::ttl`].
    pub ttl: u8,
    /// See [`Packet::way`].
    pub way: Way,
    /// See [`Packet::class`].
    pub class: ClassId,
    /// See [`Packet::congestion`].
    pub congestion: CongestionHeader,
}

/// A packet that is passed between the networks of two parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transit<P> {
    /// All fields except the payload.
    pub fields: Fields,
    /// The user's payload.
    pub payload: P,
}

impl<P> Transit<P> {
    /// Returns `true` if switches append telemetry to the packet, or if it returns telemetry.
    #[inline]
    #[must_use]
    pub const fn carries_telemetry(&self) -> bool {
        self.fields.congestion.fields.carries_telemetry()
    }
}

/// An arena of packets. It grows to the largest number of packets held at the same time and does
/// not allocate afterwards.
///
/// Payloads are stored separately. A hop therefore touches only 32 bytes of a packet, and the
/// fields of all packets in flight fit into a cache that their payloads would exceed.
#[derive(Clone, Debug)]
pub struct PacketPool<P> {
    pub(crate) fields: Vec<Fields>,
    /// Payload of each slot; `None` if the slot is free.
    payloads: Vec<Option<P>>,
    /// Telemetry that switches appended to the packet; empty until the first packet that needs it.
    telemetry: Vec<Telemetry>,
    free: Vec<u32>,
}

const STALE: &str = "this packet was already taken out of the pool";

impl<P> PacketPool<P> {
    /// Returns an empty pool.
    #[must_use]
    pub const fn new() -> Self {
        Self { fields: Vec::new(), payloads: Vec::new(), telemetry: Vec::new(), free: Vec::new() }
    }

    /// Inserts a packet.
    ///
    /// # Panics
    /// If the pool already holds 2^32 packets.
    #[inline(always)]
    pub fn insert(&mut self, packet: Packet<P>) -> PacketRef {
        let Packet { wire_bytes, route, src, dst, hop, ttl, way, class, congestion, payload } =
            packet;
        let fields = Fields { wire_bytes, route, src, dst, hop, ttl, way, class, congestion };
        self.receive(Transit { fields, payload })
    }

    /// Inserts a packet from another arena.
    ///
    /// # Panics
    /// As [`PacketPool::insert`].
    #[inline(always)]
    pub(crate) fn receive(&mut self, packet: Transit<P>) -> PacketRef {
        let index = self.free.pop().unwrap_or_else(|| self.grow());
        self.fields[index as usize] = packet.fields;
        self.payloads[index as usize] = Some(packet.payload);
        PacketRef(index)
    }

    /// Adds a free slot and returns its index.
    #[cold]
    fn grow(&mut self) -> u32 {
        let index = u32::try_from(self.fields.len()).expect("fewer than 2^32 packets at once");
        reserve_more(&mut self.fields, 1);
        self.fields.push(Fields::default());
        reserve_more(&mut self.payloads, 1);
        self.payloads.push(None);
        index
    }

    /// Returns the packet's fields; meaningless if it was removed.
    #[inline]
    #[must_use]
    pub fn fields(&self, packet: PacketRef) -> &Fields {
        &self.fields[packet.0 as usize]
    }

    /// Returns the packet's fields for changes; meaningless if it was removed.
    #[inline]
    pub fn fields_mut(&mut self, packet: PacketRef) -> &mut Fields {
        &mut self.fields[packet.0 as usize]
    }

    /// Returns the telemetry that switches appended to the packet, or that it returns to a sender;
    /// `None` if it carries none.
    #[inline]
    #[must_use]
    pub fn telemetry(&self, packet: PacketRef) -> Option<&Telemetry> {
        if !self.fields(packet).congestion.fields.carries_telemetry() {
            return None;
        }
        self.telemetry.get(packet.0 as usize)
    }

    /// Stores the packet's telemetry, if its fields say that it carries any.
    #[inline]
    pub(crate) fn set_telemetry(&mut self, packet: PacketRef, telemetry: Option<&Telemetry>) {
        if !self.fields(packet).congestion.fields.carries_telemetry() {
            return;
        }
        let index = packet.0 as usize;
        if index >= self.telemetry.len() {
            self.telemetry.resize_with(self.fields.len(), Telemetry::default);
        }
        match telemetry {
            Some(telemetry) => self.telemetry[index] = *telemetry,
            None => self.telemetry[index].clear(),
        }
    }

    /// Returns the packet's fields and telemetry, for a switch half.
    #[inline]
    pub(crate) fn for_switch(
        &mut self,
        packet: PacketRef,
    ) -> (&mut Fields, Option<&mut Telemetry>) {
        let index = packet.0 as usize;
        (&mut self.fields[index], self.telemetry.get_mut(index))
    }

    /// Returns the packet's payload.
    ///
    /// # Panics
    /// If it was removed.
    #[inline]
    #[must_use]
    pub fn payload(&self, packet: PacketRef) -> &P {
        self.payloads[packet.0 as usize].as_ref().expect(STALE)
    }

    /// Returns the packet's fields and payload, for trimming.
    ///
    /// # Panics
    /// If it was removed.
    pub(crate) fn for_trim(&mut self, packet: PacketRef) -> (&mut Fields, &mut P) {
        let index = packet.0 as usize;
        (&mut self.fields[index], self.payloads[index].as_mut().expect(STALE))
    }

    /// Returns a copy of the packet.
    ///
    /// # Panics
    /// If it was removed.
    #[must_use]
    pub fn packet(&self, packet: PacketRef) -> Packet<P>
    where
        P: Copy,
    {
        let payload = *self.payload(packet);
        let Fields { wire_bytes, route, src, dst, hop, ttl, way, class, congestion } =
            *self.fields(packet);
        Packet { wire_bytes, route, src, dst, hop, ttl, way, class, congestion, payload }
    }

    /// Prefetches the packet's fields, and its payload if `payload` is set; has no effect on
    /// [`PacketRef::NONE`].
    #[inline]
    pub fn prefetch(&self, packet: PacketRef, payload: bool) {
        if let Some(fields) = self.fields.get(packet.0 as usize) {
            prefetch(fields);
        }
        if payload && let Some(payload) = self.payloads.get(packet.0 as usize) {
            prefetch(payload);
        }
    }

    /// Removes the packet and frees its slot.
    ///
    /// # Panics
    /// If it was already removed.
    #[inline]
    pub fn take(&mut self, packet: PacketRef) -> Packet<P> {
        let payload = self.payloads[packet.0 as usize].take().expect(STALE);
        self.free.push(packet.0);
        let Fields { wire_bytes, route, src, dst, hop, ttl, way, class, congestion } =
            self.fields[packet.0 as usize];
        Packet { wire_bytes, route, src, dst, hop, ttl, way, class, congestion, payload }
    }

    /// Frees the packet's slot and discards its content.
    ///
    /// # Panics
    /// If it was already removed.
    #[inline]
    pub fn release(&mut self, packet: PacketRef) {
        let payload = &mut self.payloads[packet.0 as usize];
        assert!(payload.is_some(), "{STALE}");
        *payload = None;
        self.free.push(packet.0);
    }

    /// Returns the number of packets held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.fields.len() - self.free.len()
    }

    /// Returns `true` if the pool is empty.
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
    fn a_hop_touches_half_a_cache_line() {
        assert_eq!((size_of::<Fields>(), align_of::<Fields>()), (32, 32));
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
        assert_eq!((*pool.payload(first), *pool.payload(second)), (3, 2));
        assert_eq!(pool.len(), 2);
        pool.release(first);
        assert_eq!(pool.len(), 1);
        assert_eq!(pool.insert(packet(4)), first);
    }

    #[test]
    #[should_panic(expected = "already taken")]
    fn a_packet_is_released_once() {
        let mut pool = PacketPool::new();
        let packet =
            pool.insert(Packet::new(RouteId::default(), HostId::new(0), HostId::new(1), 1, ()));
        pool.release(packet);
        pool.release(packet);
    }

    #[test]
    #[should_panic(expected = "already taken")]
    fn a_stale_reference_is_caught() {
        let mut pool = PacketPool::new();
        let packet =
            pool.insert(Packet::new(RouteId::default(), HostId::new(0), HostId::new(1), 1, ()));
        pool.take(packet);
        let () = *pool.payload(packet);
    }
}
