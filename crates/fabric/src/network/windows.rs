//! Handles all packets of a time window at once, port by port, instead of event by event.
//!
//! In a window no longer than the smallest delay of any link, a packet that leaves a port cannot
//! arrive any more. So all arrivals of the window are known when it begins. If no port affects
//! another ([`Network::ports_are_independent`]), each port may process its own arrivals in their
//! order, independently of the other ports, with the same result.

use apus_cc::SwitchHalf;
use apus_units::{PortId, Span, Time};

use super::Network;
use crate::event::Schedule;
use crate::port::{InFlight, Port};

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

    /// Takes the packets that arrive before `limit` on the link behind `port`, which leads to a
    /// switch, and returns when the next one arrives ([`Time::MAX`] if none does).
    #[inline(always)]
    pub fn collect<S: Schedule>(
        &mut self,
        port: PortId,
        limit: Time,
        schedule: &mut S,
        mut take: impl FnMut(&InFlight),
    ) -> Time {
        self.ports[port.index()].pop_before(limit, &mut self.common, schedule, |common, entry| {
            common.pool.prefetch(entry.packet, false);
            take(entry);
        })
    }

    /// Packets that [`Network::pass`] sent to a port within a window join it, in order of time; packets of
    /// the same instant in the order of the links over which they arrived. The last of these packets must arrive
    /// before any pending event of the port.
    #[inline]
    pub fn enter_all<S: Schedule>(&mut self, port: PortId, packets: &[InFlight], schedule: &mut S) {
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
}
