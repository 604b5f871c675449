//! Handles all packets of a time window together, port by port instead of event by event.
//!
//! If a window is no longer than the smallest delay of any link, a packet that leaves a port cannot
//! arrive in the same window. All arrivals of the window are therefore known when it begins. If no
//! port affects another ([`Network::ports_are_independent`]), each port may process its own
//! arrivals in their order, independently of all other ports, with the same result.

use apus_cc::SwitchHalf;
use apus_units::{PortId, Span, Time};

use super::{Common, Network};
use crate::event::{Flight, Schedule};
use crate::port::{InFlight, Port};
use crate::routing::forward;

impl<P, W: SwitchHalf> Network<P, W> {
    /// Returns `true` if no event at a port affects another port within the smallest delay of a
    /// link. Then ports share no memory and do not pause each other, no switch half sends signals,
    /// and switches do not choose by loads.
    #[must_use]
    pub fn ports_are_independent(&self) -> bool {
        self.common.pfc.is_none()
            && self.choosers.is_empty()
            && self.ports.iter().all(Port::is_independent)
    }

    /// Returns the smallest delay of a link; [`Span::MAX`] if there are no links.
    #[must_use]
    pub fn smallest_delay(&self) -> Span {
        self.ports.iter().map(Port::delay).min().unwrap_or(Span::MAX)
    }

    /// Sets which side keeps the packets on links until they arrive: the simulator if `flies` is
    /// set ([`Schedule::fly`]), otherwise the links, which request events. Call it before anything
    /// is sent.
    pub fn fly_packets(&mut self, flies: bool) {
        self.ports.iter_mut().for_each(|port| port.fly_packets(flies));
    }

    /// Lets queued packets of `port` enter its link, as far as they may arrive before `limit`. The
    /// port has [requested](Schedule::serve_by) this call, and requests it again if needed. Returns
    /// the time at which the next packet enters the link without any further event, if one does.
    pub fn serve_link<S: Schedule>(
        &mut self,
        port: PortId,
        limit: Time,
        schedule: &mut S,
    ) -> Option<Time> {
        self.ports[port.index()].serve_link(limit, &mut self.common, schedule)
    }

    /// Counts the arrival of a packet that the simulator kept at its host, which must
    /// [`Network::take`] or [`Network::release`] it.
    #[inline(always)]
    pub fn note_delivered(&mut self) {
        self.common.counters.delivered += 1;
    }

    /// Advances packets that arrived at switches to their next hops. Calls `leaves` for each packet
    /// that is not dropped, with its bytes and the egress port by which it leaves.
    #[inline(always)]
    pub fn pass_all<S: Schedule>(
        &mut self,
        arrived: &[Flight],
        schedule: &mut S,
        mut leaves: impl FnMut(&Flight, u32, PortId),
    ) {
        let mut arrived = arrived.iter();
        loop {
            let Common { pool, routes, .. } = &mut self.common;
            let (all, words) = (&mut pool.fields[..], &routes.words[..]);
            let other = arrived.find(|flight| {
                let fields = &mut all[flight.packet.0 as usize];
                let Some(next) = forward(fields, words) else { return true };
                leaves(flight, fields.wire_bytes, next);
                false
            });
            let Some(flight) = other else { return };
            if let Some(next) = self.pass_otherwise(flight.arrives, flight.packet, schedule) {
                let bytes = self.common.pool.fields(flight.packet).wire_bytes;
                leaves(flight, bytes, next);
            }
        }
    }

    /// Adds the packets that [`Network::pass_all`] sent to a port within a window, in order of
    /// time; simultaneous packets in the order of the links over which they arrived. The last of
    /// these packets must arrive before any pending event of the port.
    #[inline(always)]
    pub fn enter_all<S: Schedule>(
        &mut self,
        port: PortId,
        mut packets: impl Iterator<Item = InFlight>,
        schedule: &mut S,
    ) {
        if self.ports[port.index()].is_unhindered_lazy() {
            return self.enter_all_lazily(port, packets, schedule);
        }
        loop {
            let egress = &mut self.ports[port.index()];
            let other = loop {
                let Some(packet) = packets.next() else { return };
                if !egress.accept(&packet, schedule) {
                    break packet;
                }
            };
            // The counters record the result.
            let _ = self.enter_slowly(port, &other, schedule);
        }
    }

    /// Adds packets to a lazy port, like [`Network::enter_all`].
    #[inline(never)] // separate from the loop of FIFO ports
    fn enter_all_lazily<S: Schedule>(
        &mut self,
        port: PortId,
        packets: impl Iterator<Item = InFlight>,
        schedule: &mut S,
    ) {
        for packet in packets {
            let egress = &mut self.ports[port.index()];
            if !egress.accept_lazily(&packet, &mut self.common, schedule) {
                // The counters record the result.
                let _ = self.enter_slowly(port, &packet, schedule);
            }
        }
    }
}
