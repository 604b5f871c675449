//! Events of a part of the network, window by window: see [`Calendar`].
//!
//! All packets that arrive at switches in a window pass them, are sorted by the ports by which they
//! leave, and then each port takes its packets in one step. Hosts run their events one by one.

use apus_cc::AlgorithmFactory;
use apus_fabric::{FabricEvent, InFlight};
use apus_units::{PortId, Time};

use crate::calendar::Calendar;
use crate::part::{Part, look_behind};
use crate::world::{Entity, World};

/// Number of events.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Handled {
    pub(crate) events: u64,
    /// See [`Handled::hash`], before the second multiplication.
    sum: u64,
}

impl Handled {
    #[inline]
    pub(crate) fn note(&mut self, now: Time, entity: u32) {
        self.events += 1;
        self.sum = self.sum.wrapping_add(mixed(now, entity));
    }

    /// Returns the sum over all events of a hash of (time, entity): independent of their order, so that
    /// the sum over all parts can be compared. Two rounds of multiplication mix time and entity well
    /// enough that two sets of events with the same sum are the same set; the second one, of the sum,
    /// multiplies every event.
    pub(crate) fn hash(&self) -> u64 {
        self.sum.wrapping_mul(0xd6e8_feb8_6659_fd93)
    }
}

/// Mixes the time and entity of an event.
#[inline]
fn mixed(now: Time, entity: u32) -> u64 {
    let key = now.as_ps() ^ u64::from(entity).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    key ^ (key >> 32)
}

/// Number of packets that are sorted at a time: few enough for the nearest cache, enough for
/// prefetching.
const CHUNK: usize = 256;
/// Number of places by which the data of links is prefetched.
const AHEAD: usize = 4;

/// Packets that arrive at switches in a window, by the ports by which they leave.
#[derive(Debug)]
pub(crate) struct Batch {
    /// Places with events in the window, in order.
    places: Vec<u32>,
    /// Packets that have arrived, link by link, each with the port by which it leaves: [`NO_PORT`]
    /// before it passes its switch.
    arrived: Vec<(InFlight, PortId)>,
    /// Ports by which they leave, and ports with events of their own.
    used: Vec<PortId>,
    due: Vec<PortId>,
    /// By port: number of its packets, or their end in `sorted`; 0 for other ports.
    ends: Vec<u32>,
    /// The packets by port.
    sorted: Vec<InFlight>,
}

/// No port, as that of a packet that its switch dropped.
const NO_PORT: PortId = PortId::new(u32::MAX);

impl Batch {
    /// Returns the buffer for a network with this number of ports.
    pub(crate) fn new(ports: usize) -> Self {
        Self {
            places: Vec::new(),
            arrived: Vec::with_capacity(2 * CHUNK),
            used: Vec::new(),
            due: Vec::new(),
            ends: vec![0; ports],
            sorted: Vec::new(),
        }
    }

    /// Sorts the packets by their ports, and leaves those of a port in the order in which they arrived,
    /// link by link.
    #[inline]
    fn sort_by_port(&mut self) {
        let Self { arrived, used, ends, sorted, .. } = self;
        let mut begin = 0;
        for port in used.iter() {
            begin += core::mem::replace(&mut ends[port.index()], begin);
        }
        if sorted.len() < arrived.len() {
            sorted.resize(arrived.len(), InFlight::default());
        }
        for (packet, port) in arrived.drain(..) {
            if let Some(place) = ends.get_mut(port.index()) {
                sorted[*place as usize] = packet;
                *place += 1;
            }
        }
    }
}

/// Sorts packets by their times; those of the same time stay in their order. Packets of each link are
/// sorted, which makes the sort fast for a few links.
#[inline]
fn sort_by_time(packets: &mut [InFlight]) {
    const FEW: usize = 24;
    if packets.len() > FEW {
        // A stable sort.
        packets.sort_by_key(|packet| packet.arrives);
        return;
    }
    for end in 1..packets.len() {
        let packet = packets[end];
        if packets[end - 1].arrives <= packet.arrives {
            continue;
        }
        let mut place = end;
        while place > 0 && packets[place - 1].arrives > packet.arrives {
            packets[place] = packets[place - 1];
            place -= 1;
        }
        packets[place] = packet;
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
        let mut places = core::mem::take(&mut self.batch.places);
        calendar(&mut self.world).take_places(&mut places);
        let hosts_from = calendar(&mut self.world).hosts_from();
        let (switches, at_hosts) = places.split_at(places.partition_point(|&at| at < hosts_from));
        let Self { world, handled, batch, .. } = self;
        let mut switches = switches;
        while !switches.is_empty() {
            let collected = collect(world, batch, handled, switches, limit);
            switches = &switches[collected..];
            run_switches(world, batch, handled, limit);
        }
        for (index, &at) in at_hosts.iter().enumerate() {
            self.look_ahead_at_hosts(&at_hosts[index..]);
            self.run_host(at, limit);
        }
        places.clear();
        self.batch.places = places;
    }

    /// Prefetches the data of the next hosts, each step one host after the previous one: link,
    /// packet, flow.
    #[inline]
    fn look_ahead_at_hosts(&mut self, places: &[u32]) {
        let mut link = |n: usize| places.get(n).map(|&at| calendar(&mut self.world).place(at).link);
        let links = [link(3), link(2), link(1)];
        self.look_ahead(links);
    }

    /// Runs all events before `limit` at the host of a place.
    fn run_host(&mut self, index: u32, limit: Time) {
        let place = calendar(&mut self.world).place(index);
        let Some(id) = place.host else { return };
        let Some(local) = id.get().checked_sub(self.first_host) else { return };
        let local = local as usize;
        // Hosts of other parts have no events here.
        let Some(host) = self.hosts.get(local) else { return };
        let entities = self.world.entities;
        let [on_arrival, on_wake] =
            [Entity::Fabric(FabricEvent::Arrival(place.link)), Entity::Host(id)]
                .map(|event| entities.number(&event));
        let looks_behind = !host.prefetch_few();
        calendar(&mut self.world).begin(index);
        loop {
            let Self { world, hosts, handled, .. } = self;
            let host = &mut hosts[local];
            let arrival = world.network.next_arrival(place.link);
            let own = calendar(world).next_own(index);
            let now = arrival.min(own).min(host.wake_at());
            if now >= limit {
                return calendar(world).finish(index, now);
            }
            // At the same time in the order of the entities.
            world.now = now;
            if arrival == now {
                handled.note(now, on_arrival);
                let (network, mut scheduler) = world.network();
                let packet = network.deliver(now, place.link, &mut scheduler);
                if looks_behind {
                    look_behind(world, host, place.link);
                } else {
                    world.network.prefetch_coming(place.link);
                }
                host.on_arrival(now, packet, world);
            } else if own == now {
                let event = calendar(world).take_own(index);
                handled.note(now, entities.fabric(event));
                world.handle(now, event);
            } else {
                handled.note(now, on_wake);
                host.on_wake(now, world);
            }
            self.pass_notices();
        }
    }
}

#[inline]
fn calendar<F: AlgorithmFactory>(world: &mut World<F>) -> &mut Calendar {
    world.pending.calendar()
}

/// Takes the packets that arrive at places of switches before `limit`, up to the first switch with which there
/// are enough. Returns the number of places.
fn collect<F: AlgorithmFactory>(
    world: &mut World<F>,
    batch: &mut Batch,
    handled: &mut Handled,
    places: &[u32],
    limit: Time,
) -> usize {
    let entities = world.entities;
    let (network, mut scheduler) = world.network();
    for (index, &at) in places.iter().enumerate() {
        let calendar = scheduler.pending.calendar();
        if let Some(&next) = places.get(index + AHEAD) {
            network.prefetch_port(calendar.place(next).link);
        }
        let place = calendar.place(at);
        if batch.arrived.len() >= CHUNK && place.first != calendar.place(places[index - 1]).first {
            return index;
        }
        let entity = entities.fabric(FabricEvent::Arrival(place.link));
        let arrived = &mut batch.arrived;
        let mut next = network.collect(place.link, limit, &mut scheduler, arrived, |&packet| {
            handled.sum = handled.sum.wrapping_add(mixed(packet.arrives, entity));
            (packet, NO_PORT)
        });
        let calendar = scheduler.pending.calendar();
        if calendar.has_own_events() {
            let due = calendar.next_own(at);
            if due < limit {
                batch.due.push(place.port);
            } else {
                next = next.min(due);
            }
        }
        if next < Time::MAX {
            calendar.mark(at, next);
        }
    }
    places.len()
}

/// All packets that have arrived pass their switches; then each port takes its own.
fn run_switches<F: AlgorithmFactory>(
    world: &mut World<F>,
    batch: &mut Batch,
    handled: &mut Handled,
    limit: Time,
) {
    handled.events += batch.arrived.len() as u64;
    let Batch { arrived, used, ends, .. } = batch;
    let ends = &mut ends[..];
    let (network, mut scheduler) = world.network();
    network.pass_all(arrived, &mut scheduler, |port| {
        let count = &mut ends[port.index()];
        if *count == 0 {
            used.push(port);
        }
        *count += 1;
    });
    batch.sort_by_port();
    let have_own_events = calendar(world).has_own_events();
    let mut begin = 0;
    for (index, &port) in batch.used.iter().enumerate() {
        if let Some(&next) = batch.used.get(index + AHEAD) {
            world.network.prefetch_port(next);
        }
        let end = core::mem::take(&mut batch.ends[port.index()]) as usize;
        let packets = &mut batch.sorted[begin..end];
        begin = end;
        sort_by_time(packets);
        if have_own_events {
            run_port(world, packets, handled, port, limit);
        } else {
            let (network, mut scheduler) = world.network();
            network.enter_all(port, packets, &mut scheduler);
        }
    }
    batch.used.clear();
    for port in batch.due.drain(..) {
        // The port may also have had packets.
        run_port(world, &[], handled, port, limit);
    }
}

/// Runs all events before `limit` at a port that may have events other than arrivals.
#[inline(never)] // apart from the loop of FIFO ports
fn run_port<F: AlgorithmFactory>(
    world: &mut World<F>,
    mut packets: &[InFlight],
    handled: &mut Handled,
    port: PortId,
    limit: Time,
) {
    let place = calendar(world).place_of_port(port);
    calendar(world).begin(place);
    loop {
        let due = calendar(world).next_own(place);
        // At the same time arrivals come first.
        if let Some((first, rest)) = packets.split_first()
            && first.arrives <= due
        {
            let (network, mut scheduler) = world.network();
            if !network.enter_unhindered(port, first, &mut scheduler) {
                // The counters record the result.
                let _ = network.enter(port, first, &mut scheduler);
            }
            packets = rest;
        } else if due < limit {
            let event = calendar(world).take_own(place);
            handled.note(due, world.entities.fabric(event));
            world.handle(due, event);
        } else {
            return calendar(world).finish(place, due);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However many there are, packets of one instant stay in the order in which they came.
    #[test]
    fn packets_of_one_instant_stay_in_their_order() {
        for count in [8_u32, 24, 25, 400] {
            let packet = |index: u32| InFlight {
                arrives: Time::from_ps(u64::from(index * 7 % 5)),
                bytes: index,
                ..InFlight::default()
            };
            let mut packets: Vec<InFlight> = (0..count).map(packet).collect();
            sort_by_time(&mut packets);
            let in_order = packets.is_sorted_by_key(|packet| (packet.arrives, packet.bytes));
            assert!(in_order, "{count} packets");
        }
    }
}
