//! Events of a part of the network, window by window: see [`Calendar`].
//!
//! All packets that arrive at switches in a window pass them, are sorted by the ports by which they
//! leave, and then each port takes its packets in one step. Hosts run their events one by one.

use apus_cc::AlgorithmFactory;
use apus_fabric::{Arrived, FabricEvent};
use apus_units::{PortId, Time};

use crate::calendar::{Calendar, Place};
use crate::part::Part;
use crate::world::{Entity, Pending, World};

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
/// Number of places by which the data of links is prefetched.
const AHEAD: usize = 4;

/// Packets that arrive at switches in a window, by the ports by which they leave.
#[derive(Debug)]
pub(crate) struct Batch {
    /// Places with events in the window, in order.
    places: Vec<u32>,
    /// Packets that have arrived, link by link, each with the index of the previous one for the
    /// same port.
    arrived: Vec<(Arrived, u32)>,
    /// By port: index of its last packet.
    last: Vec<u32>,
    /// Ports with packets or events of their own.
    used: Vec<PortId>,
    /// Indices of the packets of one port, the last first.
    order: Vec<u32>,
}

impl Batch {
    /// Returns the buffer for a network with this number of ports.
    pub(crate) fn new(ports: usize) -> Self {
        Self {
            places: Vec::new(),
            arrived: Vec::with_capacity(2 * CHUNK),
            last: vec![NIL; ports],
            used: Vec::new(),
            order: Vec::new(),
        }
    }

    /// Removes the packets of a port and returns them in order of time; those of the same instant in
    /// the order of the links over which they arrived.
    #[inline]
    fn take(&mut self, port: PortId) -> impl Iterator<Item = Arrived> {
        let Self { arrived, order, .. } = self;
        let mut index = core::mem::replace(&mut self.last[port.index()], NIL);
        order.clear();
        let (mut in_order, mut later) = (true, Time::MAX);
        while let Some((packet, before)) = arrived.get(index as usize) {
            in_order &= packet.at <= later;
            later = packet.at;
            order.push(index);
            index = *before;
        }
        if !in_order {
            sort_descending(order, |index| arrived[index as usize].0.at);
        }
        order.iter().rev().map(|&index| arrived[index as usize].0)
    }
}

/// Sorts indices that descend by their times, those of the same time by themselves, all descending.
/// Packets of each link are sorted, which makes the sort fast for a few links.
#[inline]
fn sort_descending(indices: &mut [u32], time: impl Fn(u32) -> Time) {
    const FEW: usize = 24;
    if indices.len() > FEW {
        // A stable sort.
        indices.sort_by_key(|&index| core::cmp::Reverse(time(index)));
        return;
    }
    for end in 1..indices.len() {
        let index = indices[end];
        let at = time(index);
        let mut place = end;
        while place > 0 && time(indices[place - 1]) < at {
            indices[place] = indices[place - 1];
            place -= 1;
        }
        indices[place] = index;
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
        let mut switch = NIL;
        for (index, &at) in switches.iter().enumerate() {
            let place = calendar(world).place(at);
            if let Some(&next) = switches.get(index + AHEAD) {
                let link = calendar(world).place(next).link;
                world.network.prefetch_port(link);
            }
            if batch.arrived.len() >= CHUNK && place.first != switch {
                run_switches(world, batch, handled, limit);
            }
            switch = place.first;
            collect(world, batch, at, &place, limit);
        }
        run_switches(world, batch, handled, limit);
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
        if local >= self.hosts.len() {
            // Hosts of other parts have no events here.
            return;
        }
        let entities = self.world.entities;
        calendar(&mut self.world).begin(index);
        loop {
            let wake_at = self.hosts[local].wake_at();
            let calendar = calendar(&mut self.world);
            let arrival = calendar.arrival(index);
            let (own, event) = calendar.next_own(index);
            let now = arrival.min(own).min(wake_at);
            if now >= limit {
                return calendar.finish(index, now);
            }
            // At the same time in the order of the entities.
            let event = if arrival == now {
                calendar.set_arrival(index, Time::MAX);
                Entity::Fabric(FabricEvent::Arrival(place.link))
            } else if own == now {
                Entity::Fabric(calendar.take_own(index, event))
            } else {
                Entity::Host(id)
            };
            self.run_event(now, entities.number(&event), event);
        }
    }
}

#[inline]
fn calendar<F: AlgorithmFactory>(world: &mut World<F>) -> &mut Calendar {
    match &mut world.pending {
        Pending::Calendar(calendar) => calendar,
        Pending::Queue(_) => unreachable!("a part that goes window by window has a calendar"),
    }
}

/// Takes the packets that arrive at a place of a switch before `limit`.
#[inline]
fn collect<F: AlgorithmFactory>(
    world: &mut World<F>,
    batch: &mut Batch,
    index: u32,
    place: &Place,
    limit: Time,
) {
    let mut next = calendar(world).arrival(index);
    if next < limit {
        let (network, mut scheduler) = world.network();
        let take = |packet| batch.arrived.push((packet, NIL));
        next = network.collect(place.link, limit, &mut scheduler, take);
        calendar(world).set_arrival(index, next);
    }
    let calendar = calendar(world);
    if calendar.has_own_events() {
        let (due, _) = calendar.next_own(index);
        if due < limit {
            batch.used.push(place.port);
        } else {
            next = next.min(due);
        }
    }
    if next < Time::MAX {
        calendar.mark(index, next);
    }
}

/// All packets that have arrived pass their switches; then each port takes its own.
fn run_switches<F: AlgorithmFactory>(
    world: &mut World<F>,
    batch: &mut Batch,
    handled: &mut Handled,
    limit: Time,
) {
    let entities = world.entities;
    for (index, (packet, before)) in (0..).zip(&mut batch.arrived) {
        handled.note(packet.at, entities.fabric(FabricEvent::Arrival(packet.by)));
        if let Some(port) = world.network.pass(packet.packet) {
            // Fewer than 2^32 packets fit into the pool.
            *before = core::mem::replace(&mut batch.last[port.index()], index);
            if *before == NIL {
                batch.used.push(port);
            }
        }
    }
    let have_own_events = calendar(world).has_own_events();
    while let Some(port) = batch.used.pop() {
        // The port may be listed twice: for its packets and for its own event.
        if let Some(next) = batch.used.len().checked_sub(AHEAD) {
            world.network.prefetch_port(batch.used[next]);
        }
        if have_own_events {
            run_port(world, batch.take(port), handled, port, limit);
        } else {
            let (network, mut scheduler) = world.network();
            network.enter_all(port, batch.take(port), &mut scheduler);
        }
    }
    batch.arrived.clear();
}

/// Runs all events before `limit` at a port that may have events other than arrivals.
#[inline]
fn run_port<F: AlgorithmFactory>(
    world: &mut World<F>,
    packets: impl Iterator<Item = Arrived>,
    handled: &mut Handled,
    port: PortId,
    limit: Time,
) {
    let place = calendar(world).place_of_port(port);
    calendar(world).begin(place);
    let mut packets = packets.peekable();
    loop {
        let (due, event) = calendar(world).next_own(place);
        // At the same time arrivals come first.
        if let Some(first) = packets.next_if(|packet| packet.at <= due) {
            let (network, mut scheduler) = world.network();
            network.enter_all(port, [first].into_iter(), &mut scheduler);
        } else if due < limit {
            let event = calendar(world).take_own(place, event);
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
            let time = |index: u32| Time::from_ps(u64::from(index * 7 % 5));
            let mut indices: Vec<u32> = (0..count).rev().collect();
            sort_descending(&mut indices, time);
            indices.reverse();
            assert!(indices.is_sorted_by_key(|&index| (time(index), index)), "{count} packets");
        }
    }
}
