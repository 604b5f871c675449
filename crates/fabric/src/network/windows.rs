//! Handling all packets of a window of time at once, port by port, in place of event by event.
//!
//! Within a window no longer than the smallest delay of any link, a packet that leaves a port cannot
//! arrive any more. So all arrivals of the window are known when it begins, and if no port touches
//! another ([`Network::ports_are_independent`]) each port may take its own, in their order, without
//! regard to the others: what comes out is the same.

use apus_cc::SwitchHalf;
use apus_units::{PortId, Span, Time};

use super::Network;
use crate::event::Schedule;
use crate::packet::PacketRef;
use crate::port::Port;

/// A packet that has arrived at a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// When.
    pub at: Time,
    /// The egress port by whose link it came.
    pub by: PortId,
    /// The packet.
    pub packet: PacketRef,
    /// Its wire bytes.
    pub bytes: u32,
}

impl<P, W: SwitchHalf> Network<P, W> {
    /// Whether what happens at one port touches no other within the smallest delay of a link: ports
    /// share no memory, do not pause each other, and no switch half tells the sources of packets.
    #[must_use]
    pub fn ports_are_independent(&self) -> bool {
        self.pfc.is_none() && self.ports.iter().all(Port::is_independent)
    }

    /// The smallest delay of a link; [`Span::MAX`] if there is none.
    #[must_use]
    pub fn smallest_delay(&self) -> Span {
        self.ports.iter().map(Port::delay).min().unwrap_or(Span::MAX)
    }

    /// Takes the packets that arrive before `limit` by the link behind `port`, which leads to a switch,
    /// and returns when the next one arrives ([`Time::MAX`] if none is on its way).
    #[inline]
    pub fn collect(&mut self, port: PortId, limit: Time, mut take: impl FnMut(Arrived)) -> Time {
        let pool = &self.pool;
        self.ports[port.index()].pop_before(limit, |entry| {
            pool.prefetch(entry.packet, false);
            let (at, packet, bytes) = (entry.arrives, entry.packet, entry.bytes);
            take(Arrived { at, by: port, packet, bytes });
        })
    }

    /// Offers a port all packets that [`Network::pass`] sent there within a window, in order of time;
    /// those of one instant in the order of the links by which they came. A class port must have no
    /// event of its own before the last of them.
    #[inline]
    pub fn offer_all<S: Schedule>(&mut self, port: PortId, arrived: &[Arrived], schedule: &mut S) {
        match &mut self.ports[port.index()] {
            Port::Fifo(fifo) if fifo.is_plain() => {
                for &Arrived { at, packet, bytes, .. } in arrived {
                    if let Err(reason) = fifo.offer_plain(at, packet, bytes, schedule) {
                        self.counters.note_drop(reason);
                        self.drops.note(port, reason);
                        self.pool.take(packet);
                    }
                }
                return;
            }
            Port::Strict(strict) if strict.is_plain() => {
                for &Arrived { at, packet, bytes, .. } in arrived {
                    let class = self.pool.fields(packet).class;
                    if let Err(reason) = strict.offer_plain(at, packet, (bytes, class), schedule) {
                        self.counters.note_drop(reason);
                        self.drops.note(port, reason);
                        self.pool.take(packet);
                    }
                }
                return;
            }
            _ => {}
        }
        for &Arrived { at, packet, .. } in arrived {
            // What became of it is in the counters.
            let _ = self.offer(at, port, packet, schedule);
        }
    }
}
