//! Going through the events of a part of the network window by window: see [`Calendar`].

use apus_fabric::{Arrived, FabricEvent, Network, Outcome, Schedule};
use apus_units::{PortId, Time};
use apus_wire::Header;

use crate::calendar::Calendar;
use crate::host::Host;
use crate::part::{Part, look_behind};
use crate::world::{Entities, Pending, World};

/// Events handled.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Handled {
    pub(crate) events: u64,
    /// Sum over all events of a hash of (time, entity): independent of their order, so that the
    /// sum over all parts can be compared.
    pub(crate) hash: u64,
}

impl Handled {
    #[inline]
    pub(crate) fn note(&mut self, now: Time, entity: u32) {
        self.events += 1;
        self.hash = self.hash.wrapping_add(hash_event(now, entity));
    }
}

/// A hash of one event: two rounds of multiplication mix time and entity well enough that two sets of
/// events with the same sum are the same set.
#[inline]
fn hash_event(now: Time, entity: u32) -> u64 {
    let key = now.as_ps() ^ u64::from(entity).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (key ^ (key >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// Where the packets of a window are sorted.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    /// Those that arrive at the switch, link by link.
    arrived: Vec<Arrived>,
    /// By egress port, in the order in which it takes them.
    sorted: Vec<Vec<Arrived>>,
    /// Which of them are not empty.
    used: Vec<usize>,
}

impl Desk {
    /// Makes room for a switch of so many ports.
    fn open(&mut self, ports: usize) {
        if self.sorted.len() < ports {
            self.sorted.resize_with(ports, Vec::new);
        }
    }

    /// Puts a packet among those of egress port `index`.
    #[inline]
    fn sort_in(&mut self, index: usize, packet: Arrived) {
        let packets = &mut self.sorted[index];
        if packets.is_empty() {
            self.used.push(index);
        }
        let mut place = packets.len();
        packets.push(packet);
        // A few links bring a few packets each, those of a link in order.
        while place > 0 && (packets[place - 1].at, packets[place - 1].by) > (packet.at, packet.by) {
            packets[place] = packets[place - 1];
            place -= 1;
        }
        packets[place] = packet;
    }
}

/// Puts the events of switches into the calendar.
struct Notes<'a> {
    calendar: &'a mut Calendar,
    to_hand_over: &'a mut Vec<PortId>,
}

impl Schedule for Notes<'_> {
    #[inline]
    fn at(&mut self, event: FabricEvent, time: Time) {
        self.calendar.push(event, time);
    }

    #[inline]
    fn hand_over(&mut self, port: PortId) {
        self.to_hand_over.push(port);
    }
}

impl Part {
    /// Everything before `end`.
    pub(crate) fn run_calendar(&mut self, end: Time) {
        let Self { world, hosts, first_host, handled, desk, .. } = self;
        while let Some(limit) = calendar(world).begin_window(end) {
            for word in 0..calendar(world).words() {
                let mut nodes = calendar(world).take_nodes(word);
                while nodes != 0 {
                    let node = word as u32 * u64::BITS + nodes.trailing_zeros();
                    nodes &= nodes - 1;
                    match calendar(world).node(node) {
                        None => run_switch(world, desk, handled, node, limit),
                        Some(host) => {
                            let local = host.get().checked_sub(*first_host);
                            let host = local.and_then(|local| hosts.get_mut(local as usize));
                            // Other parts' hosts have no events here.
                            let Some(host) = host else { continue };
                            run_host(world, host, handled, node, limit);
                        }
                    }
                }
            }
            if limit == end {
                break;
            }
        }
        world.now = end;
    }
}

#[inline]
fn calendar(world: &mut World) -> &mut Calendar {
    match &mut world.pending {
        Pending::Calendar(calendar) => calendar,
        Pending::Queue(_) => unreachable!("a run has a queue or a calendar from its start on"),
    }
}

/// All that happens at a switch before `limit`: first its arrivals are sorted by egress port, then
/// each port takes its own.
fn run_switch(world: &mut World, desk: &mut Desk, handled: &mut Handled, node: u32, limit: Time) {
    let World { network, pending: Pending::Calendar(calendar), to_hand_over, entities, .. } = world
    else {
        return;
    };
    calendar.begin(node);
    let places = calendar.places(node);
    desk.open(places.len());
    let mut next = Time::MAX;
    for place in places.clone() {
        let mut arrival = calendar.arrival(place);
        if arrival < limit {
            let port = calendar.port(place);
            arrival = network.collect(port, limit, |packet| desk.arrived.push(packet));
            calendar.set_arrival(place, arrival);
        }
        next = next.min(arrival);
    }
    let mut arrived = core::mem::take(&mut desk.arrived);
    for packet in arrived.drain(..) {
        handled.note(packet.at, entities.fabric(FabricEvent::Arrival(packet.by)));
        if let Some((port, _)) = network.pass(packet.packet) {
            desk.sort_in(calendar.place_of_egress(port) - places.start, packet);
        }
    }
    desk.arrived = arrived;
    let mut notes = Notes { calendar, to_hand_over };
    if notes.calendar.has_own_events() {
        for place in places {
            let port = apus_fabric::opposite(notes.calendar.port(place));
            let packets = &mut desk.sorted[place - notes.calendar.places(node).start];
            let own = run_port(network, &mut notes, *entities, handled, (port, packets), limit);
            next = next.min(own);
        }
        desk.used.clear();
    } else {
        for index in desk.used.drain(..) {
            let port = apus_fabric::opposite(notes.calendar.port(places.start + index));
            network.offer_all(port, &desk.sorted[index], &mut notes);
            desk.sorted[index].clear();
        }
    }
    notes.calendar.finish(next);
}

/// All that happens at a port that has events of its own; when the next of these is due.
#[inline]
fn run_port(
    network: &mut Network<Header>,
    notes: &mut Notes<'_>,
    entities: Entities,
    handled: &mut Handled,
    (port, packets): (PortId, &mut Vec<Arrived>),
    limit: Time,
) -> Time {
    let mut rest = packets.as_slice();
    loop {
        let (due, event) = notes.calendar.next_own(port);
        let before = due.min(limit);
        // At the same instant arrivals go first.
        if let Some((first, others)) = rest.split_first()
            && first.at <= before
        {
            network.offer_all(port, core::slice::from_ref(first), notes);
            rest = others;
        } else if due < limit {
            handled.note(due, entities.fabric(event));
            notes.calendar.take_own(event);
            network.handle(due, event, notes);
        } else {
            packets.clear();
            return due;
        }
    }
}

/// All that happens at a host before `limit`.
fn run_host(world: &mut World, host: &mut Host, handled: &mut Handled, node: u32, limit: Time) {
    let entities = world.entities;
    let nic = world.network.host_port(host.id);
    let (place, edge) = {
        let calendar = calendar(world);
        calendar.begin(node);
        let place = calendar.places(node).start;
        (place, calendar.port(place))
    };
    loop {
        let arrival = calendar(world).arrival(place);
        let (own, event) = calendar(world).next_own(nic);
        let now = arrival.min(own).min(host.wake_at());
        if now >= limit {
            calendar(world).finish(now);
            return;
        }
        world.now = now;
        // At the same instant in the order of the entities.
        if arrival == now {
            calendar(world).set_arrival(place, Time::MAX);
            let event = FabricEvent::Arrival(edge);
            handled.note(now, entities.fabric(event));
            if let Outcome::Delivered { packet, .. } = world.handle(now, event) {
                look_behind(world, host, edge);
                host.on_arrival(now, packet, world);
            }
        } else if own == now {
            calendar(world).take_own(event);
            handled.note(now, entities.fabric(event));
            world.handle(now, event);
        } else {
            handled.note(now, entities.host(host.id));
            host.on_wake(now, world);
        }
    }
}
