//! Events that the fabric requests from the simulator.

use apus_units::{PortId, Time};

use crate::packet::PacketRef;

/// A packet on a link that the simulator keeps: in a network whose packets
/// [fly](crate::Network::fly_packets), or on a link that leads to [several
/// parts](crate::Network::share_link).
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    /// Time of its arrival at the end of the link.
    pub arrives: Time,
    /// The port in front of the link.
    pub link: PortId,
    /// The packet.
    pub packet: PacketRef,
}

/// An event that a port has requested.
///
/// For each port and kind at most one event is pending at any time. A pending event is never moved,
/// and cancelled only when a link loses the packets on it. If a port is paused or its link fails,
/// its pending service event stays as it is. The packet in service finishes (or is lost) at the
/// announced time, and only the choice of the next packet depends on the new state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FabricEvent {
    /// The peer handles the oldest packet on the link behind this port. Pending if and only if the
    /// port knows the arrival time of a packet that continues in this part of the network. There is
    /// one event per link, not per packet, and none if the simulator keeps the packets on links.
    Arrival(PortId),
    /// The last bit of the packet in service leaves this port, which then chooses the next packet.
    /// Only ports of kind [`PortKind::Event`](crate::PortKind::Event) request this event. They omit
    /// it if no further packet is queued and their link cannot be stopped.
    Service(PortId),
    /// The rate-limited class of this port has accumulated enough tokens for its first packet. This
    /// event is separate from `Service`, because another class may be served while the limited
    /// class waits.
    Wake(PortId),
    /// A packet that an [`Impairment`](crate::Impairment) of this port's link held back enters
    /// the link.
    Held(PortId),
    /// A pause for this port, or a signal for the host behind it, is due.
    Mail(PortId),
}

/// The destination of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leads {
    /// A switch.
    ToSwitch,
    /// A host.
    ToHost,
    /// Several parts of the network: the simulator [finds](crate::Network::next_port) the part of
    /// each packet.
    ToParts,
}

/// The interface to the simulator, which stores events and passes each one to [`Network::handle`]
/// at its time.
///
/// `time` is never before the `now` of the requesting call, but may equal it. The simulator chooses
/// the order of simultaneous events; the order must be deterministic.
///
/// [`Network::handle`]: crate::Network::handle
pub trait Schedule {
    /// Stores `event`, to be handled at `time`.
    fn at(&mut self, event: FabricEvent, time: Time);

    /// Keeps a packet until it arrives.
    fn fly(&mut self, flight: Flight, leads: Leads) {
        unreachable!("{flight:?} leads {leads:?}, but the engine keeps no packets");
    }

    /// Makes the simulator [serve the link](crate::Network::serve_link) of a port whose packets
    /// fly: no event marks the times at which queued packets enter the link. If the link leads to
    /// several parts, that is due at the next end of a window; otherwise in the window of `time`,
    /// before the packets of that window.
    fn serve_by(&mut self, port: PortId, time: Time, leads: Leads) {
        unreachable!(
            "{port} asks to be served by {time} ({leads:?}), but the engine keeps no packets"
        );
    }

    /// Passes all packets that the simulator keeps of a link to `lose`.
    fn cut(&mut self, link: PortId, _lose: &mut dyn FnMut(PacketRef)) {
        unreachable!("the link of {link} is cut, but the engine keeps no packets");
    }

    /// Removes the pending `event`. Only [`Network::lose_flying`] calls this.
    ///
    /// [`Network::lose_flying`]: crate::Network::lose_flying
    fn cancel(&mut self, event: FabricEvent) {
        unreachable!("{event:?} is cancelled, but the engine cuts no link");
    }
}
