//! Events of a part of the network, window by window: see [`Calendar`].
//!
//! All packets that arrive at switches in a window pass the switches together and are sorted by egress port.
//! Then each port takes its packets in one step. Hosts run their events one by one.

use apus_cc::AlgorithmFactory;
use apus_fabric::{FabricEvent, Flight, InFlight, PacketRef, opposite};
use apus_units::planted::{Bug, is_planted};
use apus_units::{HostId, PortId, Time, prefetch, reserve_more};

use crate::calendar::Calendar;
use crate::part::Part;
use crate::world::{Entity, Scheduler, World};

/// Number of events.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Handled {
    pub(crate) events: u64,
    /// Sum of hashes before the second multiplication, see [`Handled::hash`].
    sum: u64,
}

impl Handled {
    #[inline]
    pub(crate) fn note(&mut self, now: Time, entity: u32) {
        self.events += 1;
        self.sum = self.sum.wrapping_add(mixed(now, entity));
    }

    /// Returns the sum over all events of a hash of (time, entity). The sum does not depend on the order of
    /// the events, so the sums of parts can be added and compared. Two rounds of multiplication mix time and
    /// entity well enough that two sets of events with the same sum are the same set. The second round, of
    /// the sum, multiplies every event.
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

/// Prefetch distance: in ports for the data of ports, in packets for the data of packets at hosts.
const AHEAD: usize = 4;

/// A packet that has arrived, in a window.
#[derive(Clone, Copy, Debug, Default)]
struct Arrived {
    /// Time since the start of the window in the upper half, the link in the lower half: the order of the
    /// packets of a port.
    key: u64,
    packet: PacketRef,
    bytes: u32,
}

impl Arrived {
    /// Converts a flight of `bytes` in a window that starts at `start`.
    #[inline(always)]
    fn new(flight: &Flight, bytes: u32, start: u64) -> Self {
        let since = flight.arrives.as_ps() - start;
        Self {
            key: since << u32::BITS | u64::from(flight.link.get()),
            packet: flight.packet,
            bytes,
        }
    }

    /// Returns the flight in a window that starts at `start`.
    #[inline(always)]
    fn at(self, start: u64) -> InFlight {
        let arrives = Time::from_ps(start + (self.key >> u32::BITS));
        InFlight { arrives, packet: self.packet, bytes: self.bytes }
    }
}

/// Packets that arrive in a window: at switches by egress port, at hosts by the host's own port.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Packets that are being taken from the calendar, and ports to be served before them.
    chunk: Vec<Flight>,
    to_serve: Vec<(Time, PortId)>,
    /// Places with events in the window, in order.
    places: Vec<u32>,
    /// Arrived packets in any order, each with its port.
    arrived: Vec<(Arrived, PortId)>,
    /// Egress ports of these packets, and ports with events of their own.
    used: Vec<PortId>,
    due: Vec<PortId>,
    /// By port: number of its packets, or their end in `sorted`; 0 for other ports.
    ends: Vec<u32>,
    /// The packets by port: the first `count` are those of this window.
    sorted: Vec<Arrived>,
    count: usize,
}

impl Batch {
    /// Returns the buffer for a network with this number of ports.
    pub(crate) fn new(ports: usize) -> Self {
        Self { ends: vec![0; ports], ..Self::default() }
    }

    /// Sorts the packets by these ports.
    #[inline(always)]
    fn sort_by_port(&mut self, ports: impl Iterator<Item = PortId>) {
        let Self { arrived, ends, sorted, count, .. } = self;
        *count = arrived.len();
        let mut begin = 0;
        for port in ports {
            begin += core::mem::replace(&mut ends[port.index()], begin);
        }
        if sorted.len() < arrived.len() {
            reserve_more(sorted, arrived.len() - sorted.len());
            sorted.resize(arrived.len(), Arrived::default());
        }
        for (packet, port) in arrived.drain(..) {
            let place = &mut ends[port.index()];
            sorted[*place as usize] = packet;
            *place += 1;
        }
    }
}

/// Sorts packets by time, and packets of the same time by link. Packets of one link keep their order, because
/// packets that an impairment held back may arrive at the same time. The packets of each link are mostly
/// sorted, so the sort is fast for few links.
#[inline]
fn sort_by_time(packets: &mut [Arrived]) {
    const FEW: usize = 24;
    let shift = if is_planted(Bug::TieUnordered) { u32::BITS } else { 0 };
    if packets.len() > FEW {
        packets.sort_by_key(|packet| packet.key >> shift);
        return;
    }
    for end in 1..packets.len() {
        let packet = packets[end];
        let mut place = end;
        while place > 0 && packets[place - 1].key >> shift > packet.key >> shift {
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

    /// Runs all events in the window before `limit`: switches, then hosts.
    fn run_window(&mut self, limit: Time) {
        let Self { world, handled, batch, .. } = self;
        begin(world, batch, limit);
        pass_switches(world, batch, handled, limit);
        run_ports(world, batch, handled, limit);
        reach_hosts(world, batch, limit);
        let mut batch = core::mem::take(&mut self.batch);
        let mut begin = 0;
        for (index, &at) in batch.places.iter().enumerate() {
            let port = calendar(&mut self.world).place(at).port;
            let end = core::mem::take(&mut batch.ends[port.index()]) as usize;
            sort_by_time(&mut batch.sorted[begin..end]);
            let sorted = &batch.sorted[..batch.count];
            self.look_ahead_at_hosts(&batch.places[index..], sorted.get(end));
            self.run_host(at, &sorted[begin..], end - begin, limit);
            begin = end;
        }
        self.batch = batch;
    }

    /// Prefetches the data of the next hosts in stages, one host apart: host and port, then flows, then the
    /// data that the flow of the first packet stores elsewhere.
    #[inline]
    fn look_ahead_at_hosts(&mut self, places: &[u32], first: Option<&Arrived>) {
        let mut place = |n: usize| Some(calendar(&mut self.world).place(*places.get(n)?));
        let [later, soon] = [place(3), place(2)];
        let network = &self.world.network;
        let host = |id: HostId| self.hosts.get(id.index().checked_sub(self.first_host as usize)?);
        if let Some(place) = later {
            network.prefetch_port(place.port);
            place.host.and_then(host).inspect(|host| prefetch(*host));
        }
        if let Some(place) = soon {
            network.prefetch_tail(place.port);
            place.host.and_then(host).inspect(|host| host.prefetch_few());
        }
        if let Some(first) = first {
            let header = network.pool().payload(first.packet);
            match host(network.pool().fields(first.packet).dst) {
                Some(host) if host.has_few_flows() => {
                    host.prefetch_further(header, &self.world.metrics);
                }
                Some(host) => host.prefetch(header),
                None => {}
            }
        }
    }

    /// Runs all events before `limit` at the host of a place. The first `count` packets of `sorted` arrive there.
    fn run_host(&mut self, index: u32, sorted: &[Arrived], count: usize, limit: Time) {
        let start = calendar(&mut self.world).start();
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
        let looks_behind = !host.has_few_flows();
        let has_own = calendar(&mut self.world).has_own_events();
        calendar(&mut self.world).begin(index);
        let mut taken = 0;
        loop {
            let Self { world, hosts, handled, .. } = self;
            let host = &mut hosts[local];
            let next = sorted.get(taken).filter(|_| taken < count);
            let next = next.map(|packet| packet.at(start));
            let arrival = next.map_or(Time::MAX, |packet| packet.arrives);
            let own = if has_own { calendar(world).next_own(index) } else { Time::MAX };
            let now = arrival.min(own).min(host.wake_at());
            if now >= limit {
                return calendar(world).finish(index, now);
            }
            // Of events at the same time, the order is that of the entities.
            world.now = now;
            if let Some(packet) = next.filter(|packet| packet.arrives == now) {
                taken += 1;
                handled.note(now, on_arrival);
                let pool = world.network.pool();
                if let Some(later) = sorted.get(taken + AHEAD) {
                    pool.prefetch(later.packet, true);
                }
                if looks_behind {
                    let [first, second] = [taken, taken + 1].map(|n| sorted[..count].get(n));
                    second.inspect(|later| host.prefetch(pool.payload(later.packet)));
                    if let Some(later) = first {
                        host.prefetch_further(pool.payload(later.packet), &world.metrics);
                    }
                }
                world.network.note_delivered();
                host.on_arrival(now, packet.packet, world);
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

/// Begins a window: queued packets enter their links in time, and the ports of switches with events of their
/// own are collected.
fn begin<F: AlgorithmFactory>(world: &mut World<F>, batch: &mut Batch, limit: Time) {
    calendar(world).take_to_serve(&mut batch.to_serve);
    for (time, port) in batch.to_serve.drain(..) {
        let (network, mut scheduler) = world.network();
        if time >= limit {
            scheduler.pending.calendar().serve_by(port, time);
        } else {
            network.serve_link(port, limit, &mut scheduler);
        }
    }
    let calendar = calendar(world);
    if calendar.has_own_events() {
        calendar.take_places(false, &mut batch.places);
        for &place in &batch.places {
            match calendar.next_own(place) {
                due if due < limit => batch.due.push(calendar.place(place).port),
                Time::MAX => {}
                due => calendar.mark(place, due),
            }
        }
    }
}

/// Passes all packets that arrive before `limit` through their switches.
fn pass_switches<F: AlgorithmFactory>(
    world: &mut World<F>,
    batch: &mut Batch,
    handled: &mut Handled,
    limit: Time,
) {
    let start = calendar(world).start();
    let mut list = calendar(world).take_flights(false);
    let Batch { chunk, arrived, used, ends, .. } = batch;
    let ends = &mut ends[..];
    let has_later = calendar(world).has_later(limit);
    while calendar(world).flights.take_chunk(&mut list, chunk) {
        let entities = world.entities;
        let (network, mut scheduler) = world.network();
        if has_later {
            put_off(chunk, limit, false, &mut scheduler);
        }
        handled.events += chunk.len() as u64;
        for flight in chunk.iter() {
            network.pool().prefetch(flight.packet, false);
            let entity = entities.fabric(FabricEvent::Arrival(flight.link));
            handled.sum = handled.sum.wrapping_add(mixed(flight.arrives, entity));
        }
        network.pass_all(chunk, &mut scheduler, |flight, bytes, port| {
            arrived.push((Arrived::new(flight, bytes, start), port));
            let count = &mut ends[port.index()];
            if *count == 0 {
                used.push(port);
            }
            *count += 1;
        });
    }
}

/// Returns packets that do not arrive before `limit` to the calendar.
fn put_off(chunk: &mut Vec<Flight>, limit: Time, to_host: bool, scheduler: &mut Scheduler<'_>) {
    chunk.retain(|flight| {
        let is_due = flight.arrives < limit;
        if !is_due {
            scheduler.pending.calendar().fly(*flight, to_host);
        }
        is_due
    });
}

/// Runs each port of a switch that has packets or events of its own.
fn run_ports<F: AlgorithmFactory>(
    world: &mut World<F>,
    batch: &mut Batch,
    handled: &mut Handled,
    limit: Time,
) {
    let used = core::mem::take(&mut batch.used);
    batch.sort_by_port(used.iter().copied());
    batch.used = used;
    let start = calendar(world).start();
    let have_own_events = calendar(world).has_own_events();
    let mut begin = 0;
    for (index, &port) in batch.used.iter().enumerate() {
        if let Some(&next) = batch.used.get(index + 2 * AHEAD) {
            world.network.prefetch_port(next);
        }
        if let Some(&next) = batch.used.get(index + AHEAD) {
            world.network.prefetch_tail(next);
        }
        let end = core::mem::take(&mut batch.ends[port.index()]) as usize;
        let packets = &mut batch.sorted[begin..end];
        begin = end;
        sort_by_time(packets);
        let packets = packets.iter().map(|packet| packet.at(start));
        if have_own_events {
            run_port(world, packets, handled, port, limit);
        } else {
            let (network, mut scheduler) = world.network();
            network.enter_all(port, packets, &mut scheduler);
        }
    }
    batch.used.clear();
    for port in batch.due.drain(..) {
        // If the port also had packets, its own events have already run.
        run_port(world, core::iter::empty(), handled, port, limit);
    }
}

/// Collects the hosts with events before `limit`, and sorts the packets that arrive there.
fn reach_hosts<F: AlgorithmFactory>(world: &mut World<F>, batch: &mut Batch, limit: Time) {
    let start = calendar(world).start();
    let has_later = calendar(world).has_later(limit);
    let mut list = calendar(world).take_flights(true);
    let Batch { chunk, arrived, ends, .. } = batch;
    while calendar(world).flights.take_chunk(&mut list, chunk) {
        if has_later {
            put_off(chunk, limit, true, &mut world.network().1);
        }
        for flight in chunk.iter() {
            let port = opposite(flight.link);
            calendar(world).mark_now(flight.link);
            arrived.push((Arrived::new(flight, 0, start), port));
            ends[port.index()] += 1;
        }
    }
    let calendar = calendar(world);
    calendar.take_places(true, &mut batch.places);
    let places = core::mem::take(&mut batch.places);
    batch.sort_by_port(places.iter().map(|&place| calendar.place(place).port));
    batch.places = places;
}

/// Runs all events before `limit` at a port that may have events other than arrivals.
#[inline(never)] // apart from the loop of FIFO ports
fn run_port<F: AlgorithmFactory>(
    world: &mut World<F>,
    packets: impl Iterator<Item = InFlight>,
    handled: &mut Handled,
    port: PortId,
    limit: Time,
) {
    let mut packets = packets.peekable();
    let place = calendar(world).place_of_port(port);
    calendar(world).begin(place);
    loop {
        let due = calendar(world).next_own(place);
        // Of events at the same time, arrivals come first.
        if let Some(first) = packets.next_if(|first| first.arrives <= due) {
            let (network, mut scheduler) = world.network();
            if !network.enter_unhindered(port, &first, &mut scheduler) {
                // The counters record the result.
                let _ = network.enter(port, &first, &mut scheduler);
            }
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

    /// Packets of one instant are in the order of their links, for any number of packets.
    #[test]
    fn packets_of_one_instant_are_in_the_order_of_links() {
        for count in [8_u32, 24, 25, 400] {
            let packet = |index: u32| Arrived {
                key: u64::from(index * 7 % 5) << u32::BITS | u64::from(index * 11 % 401),
                ..Arrived::default()
            };
            let mut packets: Vec<Arrived> = (0..count).map(packet).collect();
            sort_by_time(&mut packets);
            let in_order = packets.is_sorted_by_key(|packet| packet.key);
            assert!(in_order, "{count} packets");
        }
    }

    /// Packets of one link at one instant keep their order, which is that of the queue.
    #[test]
    fn packets_of_one_link_and_instant_stay_in_order() {
        for count in [24_u32, 25, 400] {
            let packet = |index: u32| Arrived {
                key: u64::from(index * 7 % 3) << u32::BITS | u64::from(index % 2),
                bytes: index,
                ..Arrived::default()
            };
            let mut packets: Vec<Arrived> = (0..count).map(packet).collect();
            sort_by_time(&mut packets);
            assert!(packets.is_sorted_by_key(|packet| (packet.key, packet.bytes)), "{count}");
        }
    }
}
