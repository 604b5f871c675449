//! The ports of a host's NICs, and the times at which they can take another packet.

use std::mem::replace;

use apus_cc::{AlgorithmFactory, SwitchHalf};
use apus_fabric::{Network, RouteId};
use apus_transport::{Transmit, Turn};
use apus_units::{ClassId, HostId, PortId, Rate, Span, Time};
use apus_wire::Header;

use super::{FlowPaths, Host};
use crate::host_model::Nic;
use crate::world::World;

/// A port of a NIC.
#[derive(Clone, Copy, Debug)]
struct NicPort {
    id: PortId,
    rate: Rate,
    /// Picoseconds per byte if that is a whole number, otherwise 0. This avoids a division per packet.
    byte_time: u64,
    /// Time at which the port would have sent all packets of the stack without interference. The pull uses
    /// this time, so that a packet that is delayed on its way to the NIC does not delay the next packet.
    drained: Time,
}

impl NicPort {
    fn has_room(&self, now: Time, backlog: Span) -> bool {
        self.drained.since(now) < backlog
    }

    fn room_at(&self, now: Time, backlog: Span) -> Time {
        let drained = self.drained + Span::from_ps(1);
        now.max(drained.saturating_sub(backlog))
    }
}

/// The ports of a host. Most hosts have one.
#[derive(Debug)]
pub(crate) struct NicPorts {
    first: NicPort,
    /// `None` if the only port takes packets of any flow.
    choice: Option<Box<Choice>>,
}

/// State of a host whose NIC must consider the flow of a packet: a host with several ports, or with ports
/// that switches may pause.
#[derive(Debug)]
struct Choice {
    /// The ports after the first.
    others: Vec<NicPort>,
    /// Port at which the search for a free port begins.
    next: u32,
    /// Ports whose links worked when data was last polled, as bits.
    up: u64,
    /// Whether all remaining data waits for a port that is busy or paused, and no event has occurred at the host since.
    is_blocked: bool,
    /// Whether a traffic class of any port is paused.
    is_paused: bool,
}

impl NicPorts {
    pub(super) fn of<W: SwitchHalf>(network: &Network<Header, W>, host: HostId) -> Self {
        let port = |id| {
            let rate: Rate = network.rate(id);
            NicPort { id, rate, byte_time: rate.whole_byte_time(), drained: Time::ZERO }
        };
        let mut ports = network.host_ports(host).map(port);
        let first = ports.next().unwrap_or_else(|| port(network.host_port(host)));
        let others: Vec<NicPort> = ports.collect();
        let looks = !others.is_empty() || network.has_pfc();
        let (next, up) = (0, 0);
        let choice = || Box::new(Choice { others, next, up, is_blocked: false, is_paused: false });
        Self { first, choice: looks.then(choice) }
    }

    fn are_several(&self) -> bool {
        self.choice.as_ref().is_some_and(|choice| !choice.others.is_empty())
    }

    #[inline]
    fn number_of(&self, id: PortId) -> usize {
        let Some(choice) = &self.choice else { return 0 };
        choice.others.iter().position(|port| port.id == id).map_or(0, |other| other + 1)
    }

    /// Returns the bit of a port in the set of ports of a flow.
    pub(crate) fn bit_of(&self, id: PortId) -> u64 {
        1 << self.number_of(id) // below 64
    }

    fn port(&self, number: usize) -> &NicPort {
        let other = number.checked_sub(1).zip(self.choice.as_ref());
        other.and_then(|(other, choice)| choice.others.get(other)).unwrap_or(&self.first)
    }

    /// Returns the port of this number.
    pub(super) fn id(&self, number: u8) -> PortId {
        self.port(usize::from(number)).id
    }

    fn port_mut(&mut self, number: usize) -> &mut NicPort {
        let other = number.checked_sub(1).zip(self.choice.as_mut());
        match other.and_then(|(other, choice)| choice.others.get_mut(other)) {
            Some(port) => port,
            None => &mut self.first,
        }
    }

    /// Returns the port where a route begins.
    #[inline]
    pub(super) fn first_of<F: AlgorithmFactory>(&self, route: RouteId, world: &World<F>) -> PortId {
        match self.choice {
            None => self.first.id,
            Some(_) => world.network.first_port(route),
        }
    }

    /// Returns the time at which the port where a route begins has sent all packets of the stack.
    pub(super) fn drained_at<F: AlgorithmFactory>(&self, route: RouteId, world: &World<F>) -> Time {
        match self.choice {
            None => self.first.drained,
            Some(_) => self.port(self.number_of(world.network.first_port(route))).drained,
        }
    }

    /// Assigns to the paths from this host to `peer` the ports at which they begin, if the host has several ports.
    pub(crate) fn bind<W: SwitchHalf>(
        &self,
        paths: &mut FlowPaths,
        (host, peer): (HostId, HostId),
        network: &Network<Header, W>,
    ) {
        if self.are_several() {
            // A host has at most 64 ports.
            let number = |route| self.number_of(network.first_port(route)) as u8;
            paths.set_ports(|route| (number(route), network.is_cut(host, peer, route)));
        }
    }

    /// Sets the rate at which a port pulls packets.
    pub(super) fn set_rate(&mut self, port: PortId, rate: Rate) {
        let port = self.port_mut(self.number_of(port));
        (port.rate, port.byte_time) = (rate, rate.whole_byte_time());
    }

    /// Handles an event at the host after which a packet may have a free port.
    #[inline]
    pub(super) fn unblock(&mut self) {
        if let Some(choice) = &mut self.choice {
            choice.is_blocked = false;
        }
    }

    /// Returns the set of ports, as bits, that are not paused for a class.
    fn open_to<W: SwitchHalf>(&self, class: ClassId, network: &Network<Header, W>) -> u64 {
        let ports = self.all().enumerate();
        ports.fold(0, |open, (number, port)| {
            open | u64::from(!network.is_paused(port.id, class)) << number
        })
    }

    fn all(&self) -> impl Iterator<Item = &NicPort> {
        let others = self.choice.iter().flat_map(|choice| &choice.others);
        core::iter::once(&self.first).chain(others)
    }
}

impl<F: AlgorithmFactory> Host<F> {
    /// Returns `true` if a port of the NIC pulls another data packet from the stack at `now`.
    #[inline]
    pub(crate) fn nic_has_room(&self, now: Time) -> bool {
        let backlog = self.model.nic_backlog;
        self.model.nic == Nic::Queue
            || self.ports.first.has_room(now, backlog)
            || self.ports.choice.is_some()
                && self.ports.all().any(|port| port.has_room(now, backlog))
    }

    /// Returns the time at which the NIC has room for the next data packet, or `now` if it never fills.
    pub(super) fn nic_room_at(&self, now: Time) -> Time {
        if self.model.nic == Nic::Queue {
            return now;
        }
        let backlog = self.model.nic_backlog;
        let Some(choice) = &self.ports.choice else {
            return self.ports.first.room_at(now, backlog);
        };
        let ports = self.ports.all();
        // Flows that wait for a busy port gain nothing from a port that has been free all the time.
        let waited_for = ports.filter(|port| !choice.is_blocked || !port.has_room(now, backlog));
        // The end of a pause wakes the host.
        let otherwise = if choice.is_paused { Time::MAX } else { now };
        waited_for.map(|port| port.room_at(now, backlog)).min().unwrap_or(otherwise)
    }

    /// Returns the next data packet for a port with room.
    #[inline]
    pub(crate) fn poll_data(
        &mut self,
        now: Time,
        local: Time,
        world: &World<F>,
    ) -> Option<Transmit> {
        match &self.ports.choice {
            Some(choice) if !choice.others.is_empty() || choice.is_paused => {
                self.choose_data(now, local, world)
            }
            _ => self.endpoint.poll_data(local),
        }
    }

    /// Returns the next data packet of a flow whose port has room and is not paused for the flow's class.
    #[inline(never)] // most hosts have one port, and no pauses
    fn choose_data(&mut self, now: Time, local: Time, world: &World<F>) -> Option<Transmit> {
        let takes_all = self.model.nic == Nic::Queue;
        let backlog = self.model.nic_backlog;
        let (mut free, mut up) = (0_u64, 0_u64);
        for (number, port) in self.ports.all().enumerate() {
            let is_free = takes_all || port.has_room(now, backlog);
            free |= u64::from(is_free) << number;
            // This host knows at once that a link has failed at its end.
            up |= u64::from(world.network.is_up(port.id)) << number;
        }
        // Failed links are used only if all links have failed.
        let wanted = |ports: u64| if ports & up == 0 { ports } else { ports & up };
        let choice = self.ports.choice.as_mut()?;
        let first = choice.next;
        if replace(&mut choice.up, up) != up {
            self.endpoint.forget_ports();
        }
        let is_paused = choice.is_paused;
        let (ports, flows, spreads) = (&self.ports, &self.flows, &self.spreads);
        let mut moved_to = None;
        let has_room = |ports| wanted(ports) & free != 0;
        let transmit = self.endpoint.poll_data_of(local, has_room, |id, next| {
            let flow = &flows[id.index()];
            let open = if is_paused { ports.open_to(flow.class, &world.network) } else { !0 };
            let of_flow = match next.filter(|_| flow.is_spread) {
                None => 1 << ports.number_of(world.network.first_port(flow.route)),
                Some(next) => {
                    let paths = &spreads[flow.path_label as usize];
                    if paths.names_ports() {
                        let free = wanted(paths.ports()) & open & free;
                        let Some((ev, port)) = paths.on_a_port(&next, free, up, first) else {
                            return Turn::Wait(wanted(paths.waits_for(&next, up)) & open);
                        };
                        moved_to = (ev != next.ev).then_some(port);
                        return if ev == next.ev { Turn::Send } else { Turn::SendBy(ev) };
                    }
                    paths.ports()
                }
            };
            // A flow whose ports are paused waits for no port: at the end of the pause all flows are asked again.
            let of_flow = wanted(of_flow) & open;
            if has_room(of_flow) { Turn::Send } else { Turn::Wait(of_flow) }
        });
        let has_data = self.endpoint.has_data();
        let choice = self.ports.choice.as_mut()?;
        choice.is_blocked = transmit.is_none() && has_data;
        choice.next = moved_to.map_or(choice.next, |port| port + 1);
        transmit
    }

    /// Handles the start or end of a pause of a class at a port. The NIC takes no packets of a paused class;
    /// they stay with their flows.
    pub(crate) fn on_pause(&mut self, now: Time, id: PortId, world: &mut World<F>) {
        let network = &world.network;
        let any = self.ports.all().any(|port| network.has_paused_class(port.id));
        // The packets in the port leave first.
        let drained = network.busy_until(id);
        let port = self.ports.port_mut(self.ports.number_of(id));
        port.drained = port.drained.max(drained);
        // A NIC that queues accepts all packets that it gets.
        let any = any && self.model.nic == Nic::Pull;
        if let Some(choice) = &mut self.ports.choice {
            (choice.is_blocked, choice.is_paused) = (false, any);
        }
        self.ask_flows_again(now, world, true);
    }

    /// Handles a change of links or paths of the host at `now`: flows that wait for ports are asked again.
    /// This happens at once if a pause may have stopped all of them, or if `wakes` is set.
    pub(crate) fn ask_flows_again(&mut self, now: Time, world: &mut World<F>, wakes: bool) {
        self.endpoint.forget_ports();
        let is_paused = self.ports.choice.as_ref().is_some_and(|choice| choice.is_paused);
        if (wakes || is_paused) && self.endpoint.has_data() {
            self.ports.unblock();
            self.wake_by(now, world);
        }
    }

    /// Records that the stack has passed a packet to the port where its route begins.
    #[inline]
    pub(super) fn occupy_port(&mut self, now: Time, bytes: u32, route: RouteId, world: &World<F>) {
        let port = match self.ports.choice {
            None => &mut self.ports.first,
            Some(_) => {
                let number = self.ports.number_of(world.network.first_port(route));
                self.ports.port_mut(number)
            }
        };
        port.drained = port.drained.max(now) + port.rate.packet_time(bytes, port.byte_time);
    }
}
