//! Handles all packets of a time window at once, port by port, instead of event by event.
//!
//! In a window no longer than the smallest delay of any link, a packet that leaves a port cannot
//! arrive any more. So all arrivals of the window are known when it begins. If no port affects
//! another ([`Network::ports_are_independent`]), each port may process its own arrivals in their
//! order, independently of the other ports, with the same result.

use alloc::vec::Vec;

use apus_cc::SwitchHalf;
use apus_units::{PortId, Span, Time};

use super::{Common, Network};
use crate::event::Schedule;
use crate::packet::PacketRef;
use crate::port::{InFlight, Port};
use crate::routing::forward;

impl<P, W: SwitchHalf> Network<P, W> {
    /// Returns `true` if no event at a port affects another port within the smallest delay of a
    /// link: ports share no memory, do not pause each other, no switch half sends signals, and switches do
    /// not choose by loads.
    #[must_use]
    pub fn ports_are_independent(&self) -> bool {
        self.common.pfc.is_none()
            && self.choosers.is_empty()
            && self.ports.iter().all(Port::is_independent)
    }

    /// The smallest delay of a link; [`Span::MAX`] if there is none.
    #[must_use]
    pub fn smallest_delay(&self) -> Span {
        self.ports.iter().map(Port::delay).min().unwrap_or(Span::MAX)
    }

    /// Returns when the next packet arrives on the link behind `port`; [`Time::MAX`] if none does.
    #[inline]
    #[must_use]
    pub fn next_arrival(&self, port: PortId) -> Time {
        self.ports[port.index()].link().next_arrival()
    }

    /// Takes the packets that arrive before `limit` on the link behind `port`, which leads to a
    /// switch, and returns when the next one arrives ([`Time::MAX`] if none does).
    #[inline(always)]
    pub fn collect<S: Schedule, T>(
        &mut self,
        port: PortId,
        limit: Time,
        schedule: &mut S,
        taken: &mut Vec<T>,
        mut take: impl FnMut(&InFlight) -> T,
    ) -> Time {
        let common = &mut self.common;
        self.ports[port.index()].pop_before(limit, common, schedule, taken, |common, packet| {
            common.pool.prefetch(packet.packet, false);
            take(packet)
        })
    }

    /// Takes the packet that arrives at `now` on the link behind `port`, which leads to a host. The next arrival is not
    /// scheduled.
    #[inline(always)]
    pub fn deliver<S: Schedule>(&mut self, now: Time, port: PortId, schedule: &mut S) -> PacketRef {
        self.common.counters.delivered += 1;
        self.ports[port.index()].pop_arrived(now, &mut self.common, schedule).packet
    }

    /// Packets that arrived at switches get their next hop: the egress port by which each leaves is set, except of
    /// packets that are dropped, and given to `leaves`.
    #[inline(always)]
    pub fn pass_all<S: Schedule>(
        &mut self,
        arrived: &mut [(InFlight, PortId)],
        schedule: &mut S,
        mut leaves: impl FnMut(PortId),
    ) {
        let mut arrived = arrived.iter_mut();
        loop {
            let Common { pool, routes, .. } = &mut self.common;
            let (fields, words) = (&mut pool.fields[..], &routes.words[..]);
            let other = arrived.find_map(|(packet, port)| {
                let Some(next) = forward(&mut fields[packet.packet.0 as usize], words) else {
                    return Some((packet, port));
                };
                *port = next;
                leaves(next);
                None
            });
            let Some((packet, port)) = other else { return };
            if let Some(next) = self.pass_otherwise(packet.arrives, packet.packet, schedule) {
                *port = next;
                leaves(next);
            }
        }
    }

    /// Packets that [`Network::pass_all`] sent to a port within a window join it, in order of time; packets of
    /// the same instant in the order of the links over which they arrived. The last of these packets must arrive
    /// before any pending event of the port.
    #[inline(always)]
    pub fn enter_all<S: Schedule>(&mut self, port: PortId, packets: &[InFlight], schedule: &mut S) {
        if self.ports[port.index()].is_unhindered_lazy() {
            return self.enter_all_lazily(port, packets, schedule);
        }
        let mut packets = packets.iter();
        loop {
            let egress = &mut self.ports[port.index()];
            let other = loop {
                let Some(packet) = packets.next() else { return };
                if !egress.accept(packet, schedule) {
                    break packet;
                }
            };
            // The counters record the result.
            let _ = self.enter_slowly(port, other, schedule);
        }
    }

    /// Packets join a lazy port, like [`Network::enter_all`].
    #[inline(never)] // apart from the loop of FIFO ports
    fn enter_all_lazily<S: Schedule>(
        &mut self,
        port: PortId,
        packets: &[InFlight],
        schedule: &mut S,
    ) {
        for packet in packets {
            let egress = &mut self.ports[port.index()];
            if !egress.accept_lazily(packet, &mut self.common, schedule) {
                // The counters record the result.
                let _ = self.enter_slowly(port, packet, schedule);
            }
        }
    }
}
