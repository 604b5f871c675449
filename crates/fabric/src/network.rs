//! The network: every port, link, packet and route of one topology.

mod ahead;
mod choose;
mod common;
mod control;
mod facts;
mod mail;
mod parts;
mod signals;
mod windows;

use alloc::string::String;
use alloc::vec::Vec;

use apus_cc::{SwitchHalf, Telemetry};
use apus_units::random::mix;
use apus_units::{HostId, PortId, Time};

use crate::config::PortKind;
use crate::counters::DropReason;
use crate::event::{FabricEvent, Schedule};
use crate::packet::{Packet, PacketPool, PacketRef};
use crate::port::{InFlight, Port, SharedBuffer};
use crate::routing::{
    Avoided, PathSet, PathSets, Paths, RouteError, RouteId, Terminal, absorb, forward,
};
use crate::topology::Node;

use choose::Chooser;
pub(crate) use common::Common;
pub use common::RemovePayload;
pub use control::ControlError;
use mail::Mailboxes;
pub use signals::Signalling;

/// The result of sending a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The packet is in the host's egress port.
    Accepted,
    /// The packet was dropped.
    Dropped(DropReason),
}

/// The result of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A packet reached its host, which must [`Network::take`] it.
    Delivered {
        /// The host.
        host: HostId,
        /// The packet.
        packet: PacketRef,
    },
    /// A packet moved on, or a port served its queue; the caller need not act.
    Forwarded,
    /// A packet that arrived at a switch was dropped.
    Dropped(DropReason),
    /// A switch paused a class of a host's port or ended such a pause ([`Network::is_paused`]).
    Paused {
        /// The host.
        host: HostId,
        /// Its port.
        port: PortId,
    },
}

/// A network of one topology, built by [`Topology::build`](crate::Topology::build). `P` is the
/// user's payload of a packet.
///
/// Successive calls must not decrease `now`, and every event due before `now` must have been
/// handled.
pub struct Network<P, W> {
    ports: Vec<Port<W>>,
    common: Common<P>,
    paths: Paths,
    path_sets: PathSets,
    /// Rules by which switches choose the next hop.
    choosers: Vec<Chooser>,
    /// Ends a and b of each link.
    ends: Vec<(Node, Node)>,
    /// Name of each switch.
    names: Vec<String>,
    /// Buffer in which a path is assembled before it is stored.
    scratch: Vec<PortId>,
    has_event_ports: bool,
    mail: Mailboxes,
}

impl<P, W: SwitchHalf> Network<P, W> {
    pub(crate) fn assemble(
        ports: Vec<Port<W>>,
        shared: Vec<SharedBuffer>,
        paths: Paths,
        ends: Vec<(Node, Node)>,
        names: Vec<String>,
    ) -> Self {
        Self {
            has_event_ports: ports.iter().any(|port| port.kind() == PortKind::Event),
            ports,
            common: Common::new(shared),
            paths,
            path_sets: PathSets::default(),
            choosers: Vec::new(),
            ends,
            names,
            scratch: Vec::new(),
            mail: Mailboxes::default(),
        }
    }

    /// Sets the function that removes the payload of packets ([`Trim`](crate::Trim)). Without it,
    /// ports drop packets instead of trimming them.
    pub fn trim_packets(&mut self, remove: RemovePayload<P>) {
        self.common.trim = Some(remove);
    }

    /// Sends `packet` from host `host`: passes it to the egress port of its NIC. The packet's route
    /// must start at that host.
    #[inline]
    pub fn send<S: Schedule>(
        &mut self,
        now: Time,
        host: HostId,
        packet: Packet<P>,
        schedule: &mut S,
    ) -> Sent {
        let bytes = packet.wire_bytes;
        let packet = self.hold(packet, None);
        self.send_held(host, InFlight { arrives: now, packet, bytes }, schedule)
    }

    /// Stores a packet that a host will [send](Network::send_held), with its telemetry if the
    /// packet is an acknowledgement that returns telemetry.
    #[inline(always)]
    pub fn hold(&mut self, mut packet: Packet<P>, telemetry: Option<&Telemetry>) -> PacketRef {
        packet.hop = 0;
        let carries_telemetry = packet.carries_telemetry();
        let packet = self.common.pool.insert(packet);
        if carries_telemetry {
            self.common.pool.set_telemetry(packet, telemetry);
        }
        packet
    }

    /// Sends a packet that was stored by [`Network::hold`], at the time at which it arrives at the
    /// NIC.
    #[inline(always)]
    pub fn send_held<S: Schedule>(
        &mut self,
        host: HostId,
        packet: InFlight,
        schedule: &mut S,
    ) -> Sent {
        let port = self.first_port(self.common.pool.fields(packet.packet).route);
        self.send_by(host, port, packet, schedule)
    }

    /// Sends a packet like [`Network::send_held`], whose route begins at `port`. The port is an
    /// argument because, with many flows, the route of a packet is in no cache.
    #[inline(always)]
    pub fn send_by<S: Schedule>(
        &mut self,
        host: HostId,
        port: PortId,
        packet: InFlight,
        schedule: &mut S,
    ) -> Sent {
        debug_assert_eq!(
            port,
            self.first_port(self.common.pool.fields(packet.packet).route),
            "the route of a packet of {host:?} starts at this port"
        );
        self.common.counters.sent += 1;
        match self.enter(port, &packet, schedule) {
            Ok(()) => Sent::Accepted,
            Err(reason) => Sent::Dropped(reason),
        }
    }

    /// Handles a requested event at its time.
    ///
    /// # Panics
    /// If the fabric did not request the event.
    #[inline(always)]
    pub fn handle<S: Schedule>(
        &mut self,
        now: Time,
        event: FabricEvent,
        schedule: &mut S,
    ) -> Outcome {
        let Self { ports, common, .. } = self;
        match event {
            FabricEvent::Arrival(port) => return self.arrive(now, port, schedule),
            FabricEvent::Mail(port) => return self.open_mail(now, port, schedule),
            FabricEvent::Service(port) => ports[port.index()].on_service(now, common, schedule),
            FabricEvent::Wake(port) => ports[port.index()].on_wake(now, common, schedule),
            FabricEvent::Held(port) => ports[port.index()].on_held(now, schedule),
        }
        self.answer_now(now, schedule);
        Outcome::Forwarded
    }

    /// Handles the arrival of a packet at the end of a link: one hop, event by event.
    #[inline(always)]
    fn arrive<S: Schedule>(&mut self, now: Time, by: PortId, schedule: &mut S) -> Outcome {
        let port = &mut self.ports[by.index()];
        let entry = port.pop_arrived(now, &mut self.common, schedule);
        let next = port.link().next_arrival();
        if next < Time::MAX {
            schedule.at(FabricEvent::Arrival(by), next);
        }
        if let Node::Host(host) = port.link().peer() {
            self.common.counters.delivered += 1;
            return Outcome::Delivered { host, packet: entry.packet };
        }
        let Some(next) = self.pass(now, entry.packet, schedule) else {
            return Outcome::Dropped(DropReason::Ttl);
        };
        match self.enter(next, &entry, schedule) {
            Ok(()) => Outcome::Forwarded,
            Err(reason) => Outcome::Dropped(reason),
        }
    }

    /// Advances a packet that arrived at a switch to its next hop. Returns the egress port by which
    /// it leaves; `None` if it was dropped because it has visited too many switches.
    #[inline(always)]
    fn pass<S: Schedule>(
        &mut self,
        now: Time,
        packet: PacketRef,
        schedule: &mut S,
    ) -> Option<PortId> {
        let Common { pool, routes, .. } = &mut self.common;
        if let Some(next) = forward(pool.fields_mut(packet), &routes.words) {
            return Some(next);
        }
        self.pass_otherwise(now, packet, schedule)
    }

    /// Adds a packet to the port by which it leaves the node where it arrived, unless the node or
    /// the port has no room for it. The packet must have arrived before any pending event of the
    /// port.
    ///
    /// # Errors
    /// Returns the reason for the drop, which the counters record.
    #[inline(always)]
    pub fn enter<S: Schedule>(
        &mut self,
        port: PortId,
        packet: &InFlight,
        schedule: &mut S,
    ) -> Result<(), DropReason> {
        if self.ports[port.index()].accept(packet, schedule) {
            return Ok(());
        }
        self.enter_slowly(port, packet, schedule)
    }

    /// Adds a packet to a port that is served by events like [`Network::enter`], if only a limit
    /// can stop it and no earlier service is due. Otherwise returns `false`, without effect on the
    /// packet.
    #[inline(always)]
    pub fn enter_unhindered<S: Schedule>(
        &mut self,
        port: PortId,
        packet: &InFlight,
        schedule: &mut S,
    ) -> bool {
        self.ports[port.index()].accept_unhindered(packet, &self.common, schedule)
    }

    /// Adds a packet to a port of any kind. Sends the signals and pauses that the port or its
    /// switch requests.
    #[inline(never)] // one copy in addition to the short paths
    fn enter_slowly<S: Schedule>(
        &mut self,
        port: PortId,
        joining: &InFlight,
        schedule: &mut S,
    ) -> Result<(), DropReason> {
        if self.enter_unhindered(port, joining, schedule) {
            return Ok(());
        }
        let InFlight { arrives: now, packet, bytes } = *joining;
        if self.common.pfc.is_some()
            && let Err(reason) = self.common.enter_switch(packet)
        {
            self.common.discard(port, packet, reason);
            return Err(reason);
        }
        let common = &mut self.common;
        let accepted = self.ports[port.index()].offer(now, packet, bytes, common, schedule);
        if let Err(reason) = accepted {
            common.leave_switch(packet);
            common.discard(port, packet, reason);
        }
        self.answer_now(now, schedule);
        accepted
    }

    /// Returns the packet that arrives next at the end of the link behind a port, at `now`; `None` if
    /// there is none.
    pub fn arriving<S: Schedule>(
        &mut self,
        now: Time,
        port: PortId,
        schedule: &mut S,
    ) -> Option<PacketRef> {
        self.ports[port.index()].arriving(now, &mut self.common, schedule)
    }

    /// Removes a delivered packet and frees its slot.
    ///
    /// # Panics
    /// If it was already removed.
    #[inline]
    pub fn take(&mut self, packet: PacketRef) -> Packet<P> {
        self.common.pool.take(packet)
    }

    /// Frees a delivered packet that its host has read in place.
    ///
    /// # Panics
    /// If it was already removed.
    #[inline]
    pub fn release(&mut self, packet: PacketRef) {
        self.common.pool.release(packet);
    }

    /// Returns the packets in flight and those that are delivered but not yet removed.
    #[inline]
    #[must_use]
    pub const fn pool(&self) -> &PacketPool<P> {
        &self.common.pool
    }

    /// Stores the path of a flow between two hosts, or between given ports of two hosts
    /// ([`Terminal`]). `key` identifies the flow and is the same in both directions. Another
    /// `label` draws another path, which may turn out to be the same.
    ///
    /// # Errors
    /// If no path exists, or there are too many routes.
    pub fn route(
        &mut self,
        src: impl Into<Terminal>,
        dst: impl Into<Terminal>,
        key: u64,
        label: u32,
    ) -> Result<RouteId, RouteError> {
        self.paths.find(src.into(), dst.into(), key, label, &mut self.scratch)?;
        self.common.routes.insert(&self.scratch)
    }

    /// Stores all shortest paths between two hosts, in both directions, or detours if [links are
    /// avoided](Self::set_detours). Returns the paths from `src`. The paths of a pair are stored
    /// once, independent of the number of flows.
    ///
    /// # Errors
    /// If no path exists, or there are too many routes.
    pub fn path_set(
        &mut self,
        src: impl Into<Terminal>,
        dst: impl Into<Terminal>,
    ) -> Result<PathSet, RouteError> {
        let chosen = !self.choosers.is_empty();
        let ends = (src.into(), dst.into());
        self.path_sets.current(&self.paths, &mut self.common.routes, ends, chosen)
    }

    /// Stores all shortest paths like [`Network::path_set`], and returns them even if links are
    /// avoided.
    ///
    /// # Errors
    /// If no path exists, or there are too many routes.
    pub fn planned_path_set(
        &mut self,
        src: impl Into<Terminal>,
        dst: impl Into<Terminal>,
    ) -> Result<PathSet, RouteError> {
        let chosen = !self.choosers.is_empty();
        let ends = (src.into(), dst.into());
        self.path_sets.planned(&self.paths, &mut self.common.routes, ends, chosen)
    }

    /// Stores the path of a flow like [`Network::route`], for flows that change their path during a
    /// simulation. Equal paths are stored once, so that the memory of routes is bounded.
    ///
    /// # Errors
    /// If no path exists, or there are too many routes.
    pub fn reroute(
        &mut self,
        src: impl Into<Terminal>,
        dst: impl Into<Terminal>,
        key: u64,
        label: u32,
    ) -> Result<RouteId, RouteError> {
        let (src, dst) = (src.into(), dst.into());
        self.paths.find(src, dst, key, label, &mut self.scratch)?;
        let word = absorb(mix(key), u64::from(label));
        self.paths.detour(src, dst, word, &mut self.scratch);
        self.common.routes.insert_shared(&self.scratch)
    }

    /// Stores detours for all [sets of paths](Self::path_set) stored so far, for each of these
    /// states in which switches avoid links. All parts of a network must call it at the same point,
    /// so that identifiers agree. Detours of sets that are stored later are added as they are
    /// needed.
    ///
    /// # Errors
    /// If the detours need too many routes.
    pub fn prepare_detours(&mut self, states: &[Avoided]) -> Result<(), RouteError> {
        let chosen = !self.choosers.is_empty();
        self.path_sets.prepare(states, &mut self.paths, &mut self.common.routes, chosen)
    }

    /// Returns `true` if switches [avoid links](Self::set_detours) now.
    #[must_use]
    pub const fn has_detours(&self) -> bool {
        self.path_sets.is_avoiding()
    }

    /// Makes switches avoid the links of this state from now on; with `None` they avoid none.
    /// Applies to paths that are resolved later by [`Network::path_set`] and [`Network::reroute`].
    pub fn set_detours(&mut self, state: Option<usize>) {
        let avoided = self.path_sets.set_state(state);
        self.paths.set_avoided(avoided);
    }

    /// Returns `true` if the host `src` does not use the ports at which a route to `dst` begins and
    /// ends, because [links are avoided](Self::set_detours): the link of its own port, the link of
    /// the peer's port, or all links between the networks behind these ports.
    #[must_use]
    pub fn is_cut(&self, src: HostId, dst: HostId, route: RouteId) -> bool {
        let ports: Vec<PortId> = self.common.routes.ports(route).collect();
        self.paths.is_cut(src.into(), dst.into(), &ports)
    }

    /// Returns the number of a route within the set of detours that contains it, and the
    /// [variants](PathSet::variants) of this set; `None` if no such set contains it.
    #[must_use]
    pub fn detour_number(&self, route: RouteId) -> Option<(u32, u32)> {
        self.path_sets.number_of(route)
    }
}
