//! Events that the fabric requests from the simulator.

use apus_units::{PortId, Time};

use crate::packet::PacketRef;

/// A packet on its way over a link, which the simulator keeps: in a network whose packets
/// [fly](crate::Network::fly_packets), or on a link that leads to [several parts](crate::Network::share_link).
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    /// Time of its arrival at the end of the link.
    pub arrives: Time,
    /// The port that the link is behind.
    pub link: PortId,
    /// The packet.
    pub packet: PacketRef,
}

/// An event that a port has requested.
///
/// For each port and kind at most one event is pending at any time; a requested event is not moved, and
/// cancelled only when a link loses the packets on it. A port that is paused, or whose link fails,
/// leaves the event of its service as it is: the packet in service finishes (or is lost) at the
/// announced time, and only the choice of the next packet depends on the new state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FabricEvent {
    /// The oldest packet on the link behind this port is handled by the peer. Pending if and only
    /// if the port knows the arrival time of a packet that continues in this part of the network:
    /// one event per link, not per packet, and none if the simulator keeps the packets on links.
    Arrival(PortId),
    /// The last bit of the packet in service leaves this port, which then chooses the next. Only
    /// ports of kind [`PortKind::Event`](crate::PortKind::Event) request it, and not without further
    /// queued packets if their link cannot be stopped.
    Service(PortId),
    /// The rate-limited class of this port has gathered enough tokens for its first packet.
    /// Apart from `Service`, because while the limited class waits another class may be served.
    Wake(PortId),
    /// A packet that an [`Impairment`](crate::Impairment) of this port's link held back enters
    /// the link.
    Held(PortId),
    /// A pause for this port, or a signal for the host behind it, is due.
    Mail(PortId),
}

/// Where a link leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leads {
    /// To a switch.
    ToSwitch,
    /// To a host.
    ToHost,
    /// To several parts of the network: the simulator [finds](crate::Network::next_port) that of each packet.
    ToParts,
}

/// The simulator's side: stores events and passes each to [`Network::handle`] at its time.
///
/// `time` is never before the `now` of the requesting call, but may equal it. The simulator chooses
/// the order of events of the same instant; the order must be deterministic.
///
/// [`Network::handle`]: crate::Network::handle
pub trait Schedule {
    /// Give `event` back at `time`.
    fn at(&mut self, event: FabricEvent, time: Time);

    /// Keep a packet until it arrives.
    fn fly(&mut self, flight: Flight, leads: Leads) {
        unreachable!("{flight:?} leads {leads:?}, but the engine keeps no packets");
    }

    /// Let a port whose packets fly [serve its link](crate::Network::serve_link): no event says when packets that wait
    /// enter the link. At the next end of a window if the link leads to several parts; otherwise in the window of `time`,
    /// before the packets of that window.
    fn serve_by(&mut self, port: PortId, time: Time, leads: Leads) {
        unreachable!(
            "{port} asks to be served by {time} ({leads:?}), but the engine keeps no packets"
        );
    }

    /// Give all packets that it keeps of a link to `lose`.
    fn cut(&mut self, link: PortId, _lose: &mut dyn FnMut(PacketRef)) {
        unreachable!("the link of {link} is cut, but the engine keeps no packets");
    }

    /// Forget the pending `event`. Only [`Network::lose_flying`] asks for it.
    ///
    /// [`Network::lose_flying`]: crate::Network::lose_flying
    fn cancel(&mut self, event: FabricEvent) {
        unreachable!("{event:?} is cancelled, but the engine cuts no link");
    }
}
