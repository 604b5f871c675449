//! Events that the fabric requests from the simulator.

use apus_units::{PortId, Time};

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
    /// one event per link, not per packet.
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

/// The simulator's side: stores events and passes each to [`Network::handle`] at its time.
///
/// `time` is never before the `now` of the requesting call, but may equal it. The simulator chooses
/// the order of events of the same instant; the order must be deterministic.
///
/// [`Network::handle`]: crate::Network::handle
pub trait Schedule {
    /// Give `event` back at `time`.
    fn at(&mut self, event: FabricEvent, time: Time);

    /// The shared link behind `port` has packets of which some may have to be handed over
    /// ([`Network::hand_over`]). Asked once until it is done.
    ///
    /// [`Network::hand_over`]: crate::Network::hand_over
    fn hand_over(&mut self, port: PortId) {
        unreachable!("{port} has a shared link, but the engine runs no other network");
    }

    /// Forget the pending `event`. Only [`Network::lose_flying`] asks for it.
    ///
    /// [`Network::lose_flying`]: crate::Network::lose_flying
    fn cancel(&mut self, event: FabricEvent) {
        unreachable!("{event:?} is cancelled, but the engine cuts no link");
    }
}
