//! Events of a part of the network, window by window: see [`Calendar`].

use apus_cc::{AlgorithmFactory, SwitchHalf};
use apus_fabric::{Arrived, FabricEvent, Network, Outcome, Schedule};
use apus_units::{PortId, Time};
use apus_wire::Header;

use crate::calendar::{Calendar, Place};
use crate::host::Host;
use crate::part::{Part, look_behind};
use crate::world::{Entities, Pending, World};

/// Number of events.
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

/// Returns a hash of one event: two rounds of multiplication mix time and entity well enough that
/// two sets of events with the same sum are the same set.
#[inline]
fn hash_event(now: Time, entity: u32) -> u64 {
    let key = now.as_ps() ^ u64::from(entity).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (key ^ (key >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// Number of packets that are sorted at a time: few enough for the nearest cache, enough for
/// prefetching.
const CHUNK: usize = 256;
/// End of a list.
const NIL: u32 = u32::MAX;
/// Reason why events are not in a queue here: `Pace` gives a part a calendar before it runs window
/// by window.
const ONLY_WITH_A_CALENDAR: &str = "a part that goes window by window has a calendar";
/// Number of places by which the data of links is prefetched.
const AHEAD: usize = 4;

/// Buffer in which the packets that arrive at switches in a window are sorted by egress port.
#[derive(Debug)]
pub(crate) struct Desk {
    /// Places with events in the window, in order.
    places: Vec<u32>,
    /// Packets that have arrived, link by link, each with the index of the previous one for the
    /// same port.
    arrived: Vec<(Arrived, u32)>,
    /// By place: index of the last packet for its port.
    last: Vec<u32>,
    /// Places whose ports have packets or events, and by place whether it is in this list.
    used: Vec<u32>,
    /// Packets of one port, in the order of their processing.
    sorted: Vec<Arrived>,
}

impl Desk {
    /// Returns the buffer for a network with this number of ports.
    pub(crate) fn new(ports: usize) -> Self {
        Self {
            places: Vec::new(),
            arrived: Vec::with_capacity(2 * CHUNK),
            last: vec![NIL; ports],
            used: Vec::new(),
            sorted: Vec::new(),
        }
    }

    /// Sorts the packets of a place's port and removes the place.
    #[inline]
    fn sort(&mut self, place: u32) -> &[Arrived] {
        let mut index = core::mem::replace(&mut self.last[place as usize], NIL);
        match self.arrived.get(index as usize) {
            // Often there is only one.
            Some((packet, NIL)) => return core::slice::from_ref(packet),
            Some(_) => {}
            None => return &[],
        }
        self.sorted.clear();
        while let Some((packet, before)) = self.arrived.get(index as usize) {
            self.sorted.push(*packet);
            index = *before;
        }
        sort_reversed(&mut self.sorted);
        &self.sorted
    }
}

/// Sorts packets by time and link. They come in the opposite order: those of each link are sorted,
/// which makes the sort fast for a few links; packets of the same time stay in order.
#[inline]
fn sort_reversed(packets: &mut [Arrived]) {
    const FEW: usize = 24;
    let key = |packet: &Arrived| (packet.at, packet.by);
    packets.reverse();
    if packets.len() > FEW {
        packets.sort_by_key(key);
        return;
    }
    for end in 1..packets.len() {
        let packet = packets[end];
        let mut place = end;
        while place > 0 && key(&packets[place - 1]) > key(&packet) {
            packets[place] = packets[place - 1];
            place -= 1;
        }
        packets[place] = packet;
    }
}

/// Enters the events of switches into the calendar.
struct Notes<'a> {
    calendar: &'a mut Calendar,
    to_hand_over: &'a mut Vec<PortId>,
}

impl Schedule for Notes<'_> {
    #[inline(always)]
    fn at(&mut self, event: FabricEvent, time: Time) {
        self.calendar.push(event, time);
    }

    #[inline]
    fn hand_over(&mut self, port: PortId) {
        self.to_hand_over.push(port);
    }
}

impl<F: AlgorithmFactory> Part<F> {
    /// Runs all events before `end`.
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

    /// Runs all events in the window before `limit`: switches, a few at a time, then hosts.
    fn run_window(&mut self, limit: Time) {
        let Self { world, hosts, first_host, handled, desk, .. } = self;
        let mut places = core::mem::take(&mut desk.places);
        calendar(world).take_places(&mut places);
        let hosts_from = calendar(world).hosts_from();
        let (switches, at_hosts) = places.split_at(places.partition_point(|&at| at < hosts_from));
        let mut switch = NIL;
        for (index, &at) in switches.iter().enumerate() {
            let place = calendar(world).place(at);
            if let Some(&next) = switches.get(index + AHEAD) {
                let link = calendar(world).place(next).link;
                world.network.prefetch_port(link);
            }
            if desk.arrived.len() >= CHUNK && place.first != switch {
                run_switches(world, desk, handled, limit);
            }
            switch = place.first;
            collect(world, desk, at, &place, limit);
        }
        run_switches(world, desk, handled, limit);
        for (index, &at) in at_hosts.iter().enumerate() {
            look_ahead(world, hosts, *first_host, &at_hosts[index..]);
            let place = calendar(world).place(at);
            // Hosts of other parts have no events here.
            if let Some(host) = place.host
                && let Some(local) = host.get().checked_sub(*first_host)
                && let Some(host) = hosts.get_mut(local as usize)
            {
                run_host(world, host, handled, (at, &place), limit);
            }
        }
        places.clear();
        desk.places = places;
    }
}

/// Prefetches the data of the next hosts, each step one host after the previous one: link, packet,
/// flow.
#[inline]
fn look_ahead<F: AlgorithmFactory>(
    world: &mut World<F>,
    hosts: &[Host<F>],
    first_host: u32,
    places: &[u32],
) {
    let mut link = |n: usize| places.get(n).map(|&at| calendar(world).place(at).link);
    let (third, second, first) = (link(3), link(2), link(1));
    if let Some(link) = third {
        world.network.prefetch_port(link);
    }
    if let Some(link) = second {
        world.network.prefetch_packet(link);
    }
    if let Some((host, header)) = first.and_then(|link| world.network.prefetch_next(link))
        && let Some(local) = host.get().checked_sub(first_host)
        && let Some(host) = hosts.get(local as usize)
    {
        host.prefetch(header);
    }
}

#[inline]
fn calendar<F: AlgorithmFactory>(world: &mut World<F>) -> &mut Calendar {
    match &mut world.pending {
        Pending::Calendar(calendar) => calendar,
        Pending::Queue(_) => unreachable!("{ONLY_WITH_A_CALENDAR}"),
    }
}

/// Takes the packets that arrive at a place of a switch before `limit`.
#[inline]
fn collect<F: AlgorithmFactory>(
    world: &mut World<F>,
    desk: &mut Desk,
    index: u32,
    place: &Place,
    limit: Time,
) {
    let World { network, pending: Pending::Calendar(calendar), to_hand_over, .. } = world else {
        unreachable!("{ONLY_WITH_A_CALENDAR}")
    };
    let mut next = calendar.arrival(index);
    if next < limit {
        let mut notes = Notes { calendar, to_hand_over };
        let take = |packet| desk.arrived.push((packet, NIL));
        next = network.collect(place.link, limit, &mut notes, take);
        calendar.set_arrival(index, next);
    }
    if calendar.has_own_events() {
        let (due, _) = calendar.next_own(index);
        if due < limit {
            desk.used.push(index);
        } else {
            next = next.min(due);
        }
    }
    if next < Time::MAX {
        calendar.mark(index, next);
    }
}

/// Sorts the packets that have arrived at switches by egress port; then each port takes its own.
fn run_switches<F: AlgorithmFactory>(
    world: &mut World<F>,
    desk: &mut Desk,
    handled: &mut Handled,
    limit: Time,
) {
    let World { network, pending: Pending::Calendar(calendar), to_hand_over, entities, .. } = world
    else {
        unreachable!("{ONLY_WITH_A_CALENDAR}")
    };
    for index in 0..desk.arrived.len() {
        let (packet, before) = &mut desk.arrived[index];
        handled.note(packet.at, entities.fabric(FabricEvent::Arrival(packet.by)));
        if let Some(port) = network.pass(packet.packet) {
            let place = calendar.place_of_port(port);
            // Fewer than 2^32 packets fit into the pool.
            *before = core::mem::replace(&mut desk.last[place as usize], index as u32);
            if *before == NIL {
                desk.used.push(place);
            }
        }
    }
    let mut notes = Notes { calendar, to_hand_over };
    if notes.calendar.has_own_events() {
        while let Some(place) = desk.used.pop() {
            // The port may be listed twice: for its packets and for its own event.
            let packets = desk.sort(place);
            run_port(network, &mut notes, *entities, handled, (place, packets), limit);
        }
    } else {
        while let Some(place) = desk.used.pop() {
            look_ahead_at_switches(network, notes.calendar, &desk.used);
            let port = notes.calendar.place(place).port;
            network.enter_all(port, desk.sort(place), &mut notes);
        }
    }
    desk.arrived.clear();
}

/// Prefetches the ports that get packets next, the last first, each step one port after the
/// previous one.
#[inline]
fn look_ahead_at_switches<W: SwitchHalf>(
    network: &Network<Header, W>,
    calendar: &Calendar,
    places: &[u32],
) {
    let port = |n: usize| {
        let place = places.len().checked_sub(n).and_then(|index| places.get(index));
        place.map(|&place| calendar.place(place).port)
    };
    if let Some(port) = port(2 * AHEAD) {
        network.prefetch_port(port);
    }
    if let Some(port) = port(AHEAD) {
        network.prefetch_class_port(port);
    }
}

/// Runs all events before `limit` at a port that may have events other than arrivals.
#[inline]
fn run_port<W: SwitchHalf>(
    network: &mut Network<Header, W>,
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
        // At the same time arrivals come first.
        if let Some((first, others)) = packets.split_first()
            && first.at <= due
        {
            network.enter_all(port, core::slice::from_ref(first), notes);
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

/// Runs all events at a host before `limit`.
fn run_host<F: AlgorithmFactory>(
    world: &mut World<F>,
    host: &mut Host<F>,
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
        // At the same time in the order of the entities.
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

#[cfg(test)]
mod tests {
    use super::*;
    use apus_fabric::{Packet, PacketPool, RouteId};
    use apus_units::HostId;

    /// However many there are, packets that come by one link at one instant, as those that were held
    /// back may, stay in their order; here a number of each stands in for its bytes.
    #[test]
    fn packets_of_one_instant_stay_in_their_order() {
        let host = HostId::new(0);
        let packet = PacketPool::new().insert(Packet::new(RouteId::default(), host, host, 1, ()));
        for count in [8, 24, 25, 400] {
            let arrived = |bytes: u32| {
                let (at, by) = (Time::from_ps(u64::from(bytes / 40)), PortId::new(bytes % 2));
                Arrived { at, by, packet, bytes }
            };
            let mut packets: Vec<Arrived> = (0..count).rev().map(arrived).collect();
            sort_reversed(&mut packets);
            let order = |packet: &Arrived| (packet.at, packet.by, packet.bytes);
            assert!(packets.is_sorted_by_key(order), "{count} packets");
        }
    }
}
