//! Going through the events of a part of the network window by window: see [`Calendar`].

use apus_fabric::{Arrived, FabricEvent, Network, Outcome, Schedule};
use apus_units::{PortId, Time};
use apus_wire::Header;

use crate::calendar::{Calendar, Place};
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

/// Where the packets that arrive at a switch in a window are sorted.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    /// All of them, link by link.
    arrived: Vec<Arrived>,
    /// By egress port, counted from the switch's first place.
    ports: Vec<Port>,
    /// Which of them have something to do.
    used: Vec<u32>,
}

#[derive(Debug, Default)]
struct Port {
    /// In the order in which it takes them.
    packets: Vec<Arrived>,
    used: bool,
}

impl Desk {
    /// A port has something to do.
    #[inline]
    fn touch(&mut self, index: u32) -> &mut Port {
        if self.ports.len() <= index as usize {
            self.ports.resize_with(index as usize + 1, Port::default);
        }
        let port = &mut self.ports[index as usize];
        if !port.used {
            port.used = true;
            self.used.push(index);
        }
        port
    }

    /// Puts a packet among those of a port.
    #[inline]
    fn sort_in(&mut self, index: u32, packet: Arrived) {
        let packets = &mut self.touch(index).packets;
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
        while let Some(limit) = calendar(&mut self.world).begin_window(end) {
            self.run_window(limit);
            calendar(&mut self.world).end_window();
            if limit == end {
                break;
            }
        }
        self.world.now = end;
    }

    /// Everything in the window before `limit`, place by place.
    fn run_window(&mut self, limit: Time) {
        let Self { world, hosts, first_host, handled, desk, .. } = self;
        let mut switch = u32::MAX;
        while let Some((base, mut bits)) = calendar(world).take_places() {
            while bits != 0 {
                let index = base + bits.trailing_zeros();
                bits &= bits - 1;
                let place = calendar(world).place(index);
                if bits != 0 {
                    let next = calendar(world).place(base + bits.trailing_zeros());
                    world.network.prefetch_port(next.link);
                }
                if place.first != switch {
                    run_switch(world, desk, handled, switch, limit);
                    switch = place.first;
                }
                let Some(host) = place.host else {
                    collect(world, desk, index, &place, limit);
                    continue;
                };
                // Other parts' hosts have no events here.
                if let Some(local) = host.get().checked_sub(*first_host)
                    && let Some(host) = hosts.get_mut(local as usize)
                {
                    run_host(world, host, handled, (index, &place), limit);
                }
            }
        }
        run_switch(world, desk, handled, switch, limit);
    }
}

#[inline]
fn calendar(world: &mut World) -> &mut Calendar {
    match &mut world.pending {
        Pending::Calendar(calendar) => calendar,
        Pending::Queue(_) => unreachable!("a run has a queue or a calendar from its start on"),
    }
}

/// Takes what arrives at a place of a switch before `limit`.
#[inline]
fn collect(world: &mut World, desk: &mut Desk, index: u32, place: &Place, limit: Time) {
    let World { network, pending: Pending::Calendar(calendar), .. } = world else { return };
    if calendar.arrival(index) < limit {
        let next = network.collect(place.link, limit, |packet| desk.arrived.push(packet));
        calendar.set_arrival(index, next);
    }
    let mut next = calendar.arrival(index);
    if calendar.has_own_events() {
        let (due, _) = calendar.next_own(index);
        if due < limit {
            desk.touch(index - place.first);
        } else {
            next = next.min(due);
        }
    }
    if next < Time::MAX {
        calendar.mark(index, next);
    }
}

/// What has arrived at the switch whose places begin at `first` is sorted by egress port; then each
/// port takes its own.
fn run_switch(world: &mut World, desk: &mut Desk, handled: &mut Handled, first: u32, limit: Time) {
    let World { network, pending: Pending::Calendar(calendar), to_hand_over, entities, .. } = world
    else {
        return;
    };
    let mut arrived = core::mem::take(&mut desk.arrived);
    for packet in arrived.drain(..) {
        handled.note(packet.at, entities.fabric(FabricEvent::Arrival(packet.by)));
        if let Some((port, _)) = network.pass(packet.packet) {
            desk.sort_in(calendar.place_of_port(port) - first, packet);
        }
    }
    desk.arrived = arrived;
    let mut notes = Notes { calendar, to_hand_over };
    while let Some(index) = desk.used.pop() {
        let Port { packets, used } = &mut desk.ports[index as usize];
        *used = false;
        let place = first + index;
        if notes.calendar.has_own_events() {
            run_port(network, &mut notes, *entities, handled, (place, packets), limit);
        } else {
            let port = notes.calendar.place(place).port;
            network.offer_all(port, packets, &mut notes);
        }
        packets.clear();
    }
}

/// All that happens before `limit` at a port that may have events of its own.
#[inline]
fn run_port(
    network: &mut Network<Header>,
    notes: &mut Notes<'_>,
    entities: Entities,
    handled: &mut Handled,
    (place, mut packets): (u32, &[Arrived]),
    limit: Time,
) {
    let port = notes.calendar.place(place).port;
    notes.calendar.begin(place);
    loop {
        let (due, event) = notes.calendar.next_own(place);
        // At the same instant arrivals go first.
        if let Some((first, others)) = packets.split_first()
            && first.at <= due
        {
            network.offer_all(port, core::slice::from_ref(first), notes);
            packets = others;
        } else if due < limit {
            let event = notes.calendar.take_own(place, event);
            handled.note(due, entities.fabric(event));
            network.handle(due, event, notes);
        } else {
            return notes.calendar.finish(place, due);
        }
    }
}

/// All that happens at a host before `limit`.
fn run_host(
    world: &mut World,
    host: &mut Host,
    handled: &mut Handled,
    (index, place): (u32, &Place),
    limit: Time,
) {
    let entities = world.entities;
    calendar(world).begin(index);
    loop {
        let arrival = calendar(world).arrival(index);
        let (own, event) = calendar(world).next_own(index);
        let now = arrival.min(own).min(host.wake_at());
        if now >= limit {
            return calendar(world).finish(index, now);
        }
        world.now = now;
        // At the same instant in the order of the entities.
        if arrival == now {
            calendar(world).set_arrival(index, Time::MAX);
            let event = FabricEvent::Arrival(place.link);
            handled.note(now, entities.fabric(event));
            if let Outcome::Delivered { packet, .. } = world.handle(now, event) {
                look_behind(world, host, place.link);
                host.on_arrival(now, packet, world);
            }
        } else if own == now {
            let event = calendar(world).take_own(index, event);
            handled.note(now, entities.fabric(event));
            world.handle(now, event);
        } else {
            handled.note(now, entities.host(host.id));
            host.on_wake(now, world);
        }
    }
}
