//! A part of the network with its hosts, which one thread simulates. A sequential run has one part.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use apus_cc::AlgorithmFactory;
use apus_fabric::{FabricEvent, Network, Node, Outcome, RouteId, Transit};
use apus_jobs::loggops::Parameters;
use apus_units::{HostId, PortId, Rate, Span, Time};
use apus_wire::Header;

use crate::build::{PlanError, make_hosts};
use crate::calendar::Calendar;
use crate::detours;
use crate::groups::GroupPlan;
use crate::host::Host;
use crate::jobs::{Happened, ModelledJobs};
use crate::metrics::Metrics;
use crate::op_times::{Groups, OpTimes};
use crate::parallel::{Exchange, Message, News, PanicAlarm, Parcel};
use crate::partition::Partition;
use crate::plan::{JobError, Plan};
use crate::queue::EventQueue;
use crate::record::{CloseUp, Tap};
use crate::windows::{Batch, Handled};
use crate::world::{Entities, Entity, Pending, ToParts, World};

/// Prefetch distances in events: for ports, for packets, and for the next port or the flow.
const AHEAD: [usize; 3] = [5, 3, 1];
/// Number of events per window from which time windows are faster than a queue. Measured: `permutation-128`
/// has 2000 and takes 0.7 of the time; `incast-100` has 37 and takes 1.2 of the time.
const MANY: u64 = 400;
/// Number of events of a data packet and its acknowledgement over four links.
const EVENTS_PER_PACKET: u64 = 8;
/// Prefetch distance, in packets, for the ports of packets that move to another part.
const PARCEL_AHEAD: usize = 4;

/// A part of the network.
pub(crate) struct Part<F: AlgorithmFactory> {
    id: u32,
    pub(crate) world: World<F>,
    /// Hosts of this part, beginning with `first_host`.
    pub(crate) hosts: Vec<Host<F>>,
    pub(crate) first_host: u32,
    pub(crate) handled: Handled,
    pub(crate) batch: Batch,
    /// Jobs on hosts of the LogGOPS model. With such jobs this part is the whole network.
    modelled: Option<Box<ModelledJobs>>,
    /// Takes packets at ports, if they are traced.
    pub(crate) tap: Option<Box<Tap>>,
    /// Keeps the packets around chosen ops; present only together with a tap.
    pub(crate) close_up: Option<Box<CloseUp>>,
    /// By port: the part that simulates it.
    owners: Box<[u32]>,
    /// Routes that other parts resolved: (part, its identifier) to the identifier in this part.
    imported: BTreeMap<(u32, RouteId), RouteId>,
    /// Routes that this part resolved and other parts already know: (part, identifier in this part).
    exported: BTreeSet<(u32, RouteId)>,
    /// First route that was resolved after the parts were built.
    shared_routes: RouteId,
    /// By part: packets to be sent to it in this window.
    outboxes: Vec<Parcel>,
    /// Parcel that is being received; empty between windows.
    inbox: Parcel,
    /// Earliest time of the notices in the outboxes.
    next_notice: Time,
    window: usize,
}

impl<F: AlgorithmFactory> Part<F> {
    /// Builds part `id` of the whole `network`. The part has its own hosts and uses its own ports of the network.
    pub(crate) fn new(
        plan: &Plan<F>,
        partition: &Partition,
        id: u32,
        mut network: Network<Header, F::Switch>,
    ) -> Result<Self, PlanError> {
        for port in partition.cut().filter(|&port| partition.of_port(port) == id) {
            network.share_link(port);
        }
        let ports = network.ports().count();
        let entities = Entities::new(&network);
        let first_host = partition.first_host(id).get();
        let end = if id + 1 == partition.parts() {
            plan.topology.hosts
        } else {
            partition.first_host(id + 1).get()
        };
        let calendar = Calendar::new(&network)
            .filter(|calendar| is_busy(plan, &network, first_host..end, calendar.width()));
        let pending = match calendar {
            Some(calendar) => Pending::Calendar(Box::new(calendar)),
            None => Pending::Queue(EventQueue::new(entities.count(network.hosts()))),
        };
        let mut world = World {
            pending,
            entities,
            metrics: Metrics::new(plan.connections.len(), Time::ZERO + plan.warmup),
            op_times: Box::new(OpTimes::new(
                plan,
                Arc::new([]),
                &Groups::default(),
                &GroupPlan::default(),
            )),
            sizes: plan.sizes,
            ack_class: plan.ack_class,
            credits: plan.credits.is_some(),
            now: Time::ZERO,
            to_parts: ToParts::default(),
            notices: Vec::new(),
            observes_sent: false,
            workloads: None,
            recorder: None,
            terminals: BTreeMap::new(),
            network,
        };
        let mut hosts = make_hosts(plan, first_host..end, &mut world)?;
        world.network.prepare_detours(&detours::states(plan).0).map_err(PlanError::Route)?;
        for host in &mut hosts {
            host.start(&mut world);
        }
        let flies = matches!(world.pending, Pending::Calendar(_));
        world.network.fly_packets(flies);
        let shared_routes = world.network.routes_end();
        Ok(Self {
            id,
            world,
            hosts,
            first_host,
            handled: Handled::default(),
            batch: Batch::new(ports),
            modelled: None,
            tap: None,
            close_up: None,
            owners: partition.ports().into(),
            imported: BTreeMap::new(),
            exported: BTreeSet::new(),
            shared_routes,
            outboxes: (0..partition.parts()).map(|_| Parcel::default()).collect(),
            inbox: Parcel::default(),
            next_notice: Time::MAX,
            window: 0,
        })
    }

    /// Gives a connection of the host `from` another path in both directions. Changes only the ends that
    /// belong to this part.
    pub(crate) fn reroute(
        &mut self,
        connection: u32,
        from: HostId,
        there: &[PortId],
        back: &[PortId],
    ) {
        for host in &mut self.hosts {
            host.ask_flows_again(self.world.now, &mut self.world, false);
            let path = if host.id == from { there } else { back };
            for flow in host.flows.iter_mut().filter(|flow| flow.connection == connection) {
                flow.route = self.world.network.import_route(path);
            }
        }
    }

    /// Applies the links that switches now avoid: flows take other paths, except those `pinned` to one.
    pub(crate) fn avoid(&mut self, state: Option<usize>, pinned: &BTreeSet<u32>) {
        self.world.network.set_detours(state);
        for host in &mut self.hosts {
            host.avoid(pinned, &mut self.world);
        }
    }

    /// Sets the rate at which a port of a host of this part pulls packets.
    pub(crate) fn set_nic_rate(&mut self, host: HostId, port: PortId, rate: Rate) {
        let local = (host.get() - self.first_host) as usize;
        self.hosts[local].set_nic_rate(port, rate);
    }

    /// Returns `true` if this part simulates `port`.
    pub(crate) fn owns(&self, port: PortId) -> bool {
        self.owners[port.index()] == self.id
    }

    /// Runs all events before `end`.
    pub(crate) fn run_events(&mut self, end: Time) {
        match self.world.pending {
            Pending::Queue(_) if self.modelled.is_some() => self.run_modelled(end),
            Pending::Queue(_) if self.tap.is_some() => self.run_traced(end, None),
            Pending::Queue(_) => self.run_queue(end),
            Pending::Calendar(_) => self.run_calendar(end),
        }
    }

    /// Hands the jobs of a plan to the LogGOPS model. Call it before the run, on the only part.
    ///
    /// # Errors
    /// If the host of a rank is not in this part.
    pub(crate) fn model_jobs(
        &mut self,
        plan: &Plan<F>,
        parameters: &Parameters,
    ) -> Result<(), JobError> {
        self.modelled = Some(Box::new(ModelledJobs::new(plan, parameters, &self.hosts)?));
        self.use_queue();
        Ok(())
    }

    /// Runs all events of the network and of the model of its hosts before `end`. Of events at the same time,
    /// those of the network come first.
    #[cold]
    fn run_modelled(&mut self, end: Time) {
        let Some(mut modelled) = self.modelled.take() else { return };
        let mut happened = Vec::new();
        loop {
            let due = modelled.next_at();
            let stop = due.saturating_add(Span::from_ps(1)).min(end).max(self.world.now);
            if self.tap.is_some() {
                self.run_traced(stop, Some(&mut happened));
            } else {
                self.run_until_happened(stop, &mut happened);
            }
            if happened.is_empty() {
                if due >= end {
                    break;
                }
                modelled.run_due(due, &mut self.hosts, &mut self.world);
            }
            for news in happened.drain(..) {
                modelled.note(&news, &mut self.hosts);
            }
        }
        self.modelled = Some(modelled);
    }

    /// Runs all events before `end`, instant by instant. At the start of each instant, the tap gets the
    /// packets that are about to arrive: a packet takes time on a link, so all arrivals of an instant are
    /// pending by then. The event loop is the one of other runs, which has no code for traces.
    ///
    /// With `happened`, returns after the first instant with a step of a message of a modelled job.
    #[cold]
    fn run_traced(&mut self, mut end: Time, mut happened: Option<&mut Vec<Happened>>) {
        let Some(mut tap) = self.tap.take() else { return };
        let mut pending = Vec::new();
        while let Some((now, first)) = queue(&mut self.world).pop_before(end) {
            let after = now + Span::from_ps(1);
            pending.push(first);
            while let Some((_, entity)) = queue(&mut self.world).pop_before(after) {
                pending.push(entity);
            }
            let entities = self.world.entities;
            for port in pending.iter().filter_map(|&entity| entities.arrival(entity)) {
                tap.on_arrival(now, port, &mut self.world, &self.hosts);
                if let Some(close) = &mut self.close_up {
                    close.on_arrival(now, port, &mut self.world, &self.hosts);
                }
            }
            for entity in pending.drain(..) {
                queue(&mut self.world).push(entity, now);
            }
            match &mut happened {
                None => self.run_queue(after),
                Some(happened) => {
                    self.run_until_happened(after, happened);
                    if !happened.is_empty() {
                        end = after;
                    }
                }
            }
        }
        self.world.now = end;
        self.tap = Some(tap);
    }

    /// Runs all events before `end` in total order.
    fn run_queue(&mut self, end: Time) {
        while let Some((now, place)) = queue(&mut self.world).pop_before(end) {
            let event = self.world.entities.of(place);
            self.look_ahead(self.world.upcoming(AHEAD));
            self.run_event(now, self.world.entities.number(&event), event);
        }
        self.world.now = end;
    }

    /// Runs all events before `end`, or until the end of the first instant with a step of a message of an
    /// external program or of a modelled job.
    pub(crate) fn run_until_happened(&mut self, mut end: Time, happened: &mut Vec<Happened>) {
        while let Some((now, place)) = queue(&mut self.world).pop_before(end) {
            let event = self.world.entities.of(place);
            self.look_ahead(self.world.upcoming(AHEAD));
            let host = match event {
                Entity::Host(host) => Some(host),
                Entity::Fabric(FabricEvent::Arrival(port)) => {
                    match self.world.network.port_ends(port).1 {
                        Node::Host(host) => Some(host),
                        Node::Switch(_) => None,
                    }
                }
                Entity::Fabric(_) => None,
            };
            self.run_event(now, self.world.entities.number(&event), event);
            if let Some(jobs) = host.and_then(|host| self.hosts[host.index()].jobs.as_mut()) {
                jobs.take_happened(happened);
                if !happened.is_empty() {
                    end = end.min(now.saturating_add(Span::from_ps(1)));
                }
            }
        }
        self.world.now = end;
    }

    /// Runs an event: the hop of a packet, its arrival at a host, or a timer. This function runs all events
    /// of a run, except that in time windows packets pass switches together.
    #[inline(always)]
    pub(crate) fn run_event(&mut self, now: Time, number: u32, event: Entity) {
        let world = &mut self.world;
        world.now = now;
        self.handled.note(now, number);
        match event {
            Entity::Fabric(event) => {
                let (host, packet) = match world.handle(now, event) {
                    Outcome::Delivered { host, packet } => (host, packet),
                    Outcome::Paused { host, port } => return self.on_pause(now, host, port),
                    Outcome::Forwarded | Outcome::Dropped(_) => return,
                };
                let host = &mut self.hosts[host.index() - self.first_host as usize];
                if let FabricEvent::Arrival(port) = event {
                    look_behind(world, host, port);
                }
                host.on_arrival(now, packet, world);
            }
            Entity::Host(host) => {
                let host = &mut self.hosts[host.index() - self.first_host as usize];
                host.on_wake(now, world);
            }
        }
        self.pass_notices();
    }

    /// Handles a link of a port that has failed or works again at `now`: a host of this part may send through
    /// its other ports.
    pub(crate) fn on_link_change(&mut self, now: Time, port: PortId) {
        if let Node::Host(host) = self.world.network.port_ends(port).0 {
            let host = &mut self.hosts[host.index() - self.first_host as usize];
            host.ask_flows_again(now, &mut self.world, false);
        }
    }

    #[cold]
    fn on_pause(&mut self, now: Time, host: HostId, port: PortId) {
        let host = &mut self.hosts[host.index() - self.first_host as usize];
        host.on_pause(now, port, &mut self.world);
    }

    /// Passes notices to the hosts of this part, and keeps notices for hosts of other parts.
    #[inline(always)]
    pub(crate) fn pass_notices(&mut self) {
        if !self.world.notices.is_empty() {
            self.pass_all_notices();
        }
    }

    #[cold]
    fn pass_all_notices(&mut self) {
        let mut notices = core::mem::take(&mut self.world.notices);
        for notice in notices.drain(..) {
            let owner = self.owners[self.world.network.host_port(notice.host).index()];
            if owner == self.id {
                let local = notice.host.index() - self.first_host as usize;
                self.hosts[local].on_notice(&notice, &mut self.world);
            } else {
                self.next_notice = self.next_notice.min(notice.at);
                self.outboxes[owner as usize].notices.push(notice);
            }
        }
        self.world.notices = notices;
    }

    /// Prefetches the data of the next arrivals in stages, each a few arrivals after the previous one: the
    /// port, the packet, and then the next port or the flow.
    #[inline(always)]
    fn look_ahead(&self, [port, packet, next]: [Option<PortId>; 3]) {
        let network = &self.world.network;
        if let Some(port) = port {
            network.prefetch_port(port);
        }
        if let Some(port) = packet {
            network.prefetch_packet(port);
        }
        if let Some((host, header)) = next.and_then(|port| network.prefetch_next(port))
            && let Some(local) = host.get().checked_sub(self.first_host)
            && let Some(host) = self.hosts.get(local as usize)
        {
            host.prefetch(header);
        }
    }

    /// Runs window by window if the nodes of the network allow it. Call it before the run.
    pub(crate) fn use_windows(&mut self) {
        if self.modelled.is_none()
            && let Some(calendar) = Calendar::new(&self.world.network)
        {
            self.store_events_in(Pending::Calendar(Box::new(calendar)));
        }
    }

    /// Runs event by event in total order. Call it before the run.
    pub(crate) fn use_queue(&mut self) {
        let entities = self.world.entities.count(self.world.network.hosts());
        self.store_events_in(Pending::Queue(EventQueue::new(entities)));
    }

    /// Changes the store of events. Call it before the run, when only hosts have events.
    fn store_events_in(&mut self, pending: Pending) {
        self.world.network.fly_packets(matches!(pending, Pending::Calendar(_)));
        self.world.pending = pending;
        for host in &self.hosts {
            if host.wake_at() < Time::MAX {
                self.world.schedule_host(host.id, host.wake_at());
            }
        }
    }

    /// Runs all events before `end`, window by window, synchronised with the other parts on their own
    /// threads. Returns early after the first window in which any part finds `deadline` passed.
    pub(crate) fn run_windows(&mut self, end: Time, deadline: Instant, exchange: &Exchange) {
        let _alarm = PanicAlarm(exchange);
        loop {
            let next = self.post(exchange);
            let news = News { next, stop: Instant::now() >= deadline };
            let Some(news) = exchange.meet(self.window, self.id, news) else {
                // The thread that started the others propagates the panic.
                return;
            };
            let limit = exchange.limit(news.next, end);
            self.receive_and_run(limit, exchange);
            if limit == end || news.stop {
                // Packets that this part sent in this window arrive after it; the next call posts them.
                return;
            }
        }
    }

    /// Receives the packets of other parts and runs all events of the window before `limit`.
    pub(crate) fn receive_and_run(&mut self, limit: Time, exchange: &Exchange) {
        self.collect(exchange);
        self.window += 1;
        self.run_events(limit);
    }

    /// Posts the packets for other parts. Returns the time of the next event of this part or of the first
    /// posted packet, whichever is earlier.
    pub(crate) fn post(&mut self, exchange: &Exchange) -> Time {
        let sent = self.post_packets(exchange);
        let notice = core::mem::replace(&mut self.next_notice, Time::MAX);
        self.world.next_at().min(sent).min(notice)
    }

    /// Posts the packets for other parts. Returns the earliest time at which a posted packet arrives, or at
    /// which another packet enters a link that may lead to another part.
    fn post_packets(&mut self, exchange: &Exchange) -> Time {
        let mut first = Time::MAX;
        let (id, owners, outboxes) = (self.id, &self.owners, &mut self.outboxes);
        let shared_routes = self.shared_routes;
        let (exported, mut resolved) = (&mut self.exported, Vec::new());
        let now = self.world.now;
        for port in core::mem::take(&mut self.world.to_parts.to_serve) {
            let (network, mut scheduler) = self.world.network();
            let limit = now + network.delay(port);
            first = first.min(network.serve_link(port, limit, &mut scheduler).unwrap_or(Time::MAX));
        }
        let mut flights = core::mem::take(&mut self.world.to_parts.flights);
        for (index, flight) in flights.iter().enumerate() {
            let (network, mut scheduler) = self.world.network();
            if let Some(later) = flights.get(index + PARCEL_AHEAD) {
                network.pool().prefetch(later.packet, true);
                network.prefetch_port(later.link);
            }
            let part = owners[network.next_port(flight).index()];
            if part == id {
                network.keep(flight, &mut scheduler);
                continue;
            }
            first = first.min(flight.arrives);
            network.hand_over(flight.packet, |packet, noted| {
                let parcel = &mut outboxes[part as usize];
                parcel.telemetry.extend(noted);
                let route = packet.fields.route;
                if route >= shared_routes && exported.insert((part, route)) {
                    resolved.push((part, route));
                }
                let packet = Transit { fields: packet.fields, payload: *packet.payload };
                parcel.messages.push(Message {
                    port: flight.link,
                    arrives: flight.arrives,
                    packet,
                });
            });
        }
        flights.clear();
        self.world.to_parts.flights = flights;
        for (part, route) in resolved {
            outboxes[part as usize].paths.push(self.world.network.route_ports(route));
        }
        for (to, outbox) in self.outboxes.iter_mut().enumerate() {
            if to != self.id as usize {
                exchange.post(self.window, self.id, to, outbox);
            }
        }
        first
    }

    /// Receives the packets of other parts.
    fn collect(&mut self, exchange: &Exchange) {
        let (world, imported) = (&mut self.world, &mut self.imported);
        let (hosts, first_host) = (&mut self.hosts, self.first_host as usize);
        let shared_routes = self.shared_routes;
        exchange.collect(self.window, self.id, &mut self.inbox, |from, parcel| {
            let mut telemetry = parcel.telemetry.iter();
            let mut paths = parcel.paths.iter();
            for index in 0..parcel.messages.len() {
                if let Some(later) = parcel.messages.get(index + 2 * PARCEL_AHEAD) {
                    world.network.prefetch_port(later.port);
                }
                if let Some(later) = parcel.messages.get(index + PARCEL_AHEAD) {
                    world.network.prefetch_tail(later.port);
                }
                let Message { port, arrives, packet } = &mut parcel.messages[index];
                let route = &mut packet.fields.route;
                if *route >= shared_routes {
                    let import = || {
                        let path = paths.next().expect("the first packet on a path brings it");
                        world.network.import_route(path)
                    };
                    *route = *imported.entry((from, *route)).or_insert_with(import);
                }
                let noted = if packet.carries_telemetry() { telemetry.next() } else { None };
                world.receive(*port, *arrives, packet, noted);
            }
            for notice in &parcel.notices {
                let host = &mut hosts[notice.host.index() - first_host];
                host.on_notice(notice, world);
            }
            parcel.clear();
        });
    }
}

#[inline]
fn queue<F: AlgorithmFactory>(world: &mut World<F>) -> &mut EventQueue {
    match &mut world.pending {
        Pending::Queue(queue) => queue,
        Pending::Calendar(_) => unreachable!("a part without calendar has a queue"),
    }
}

/// Returns `true` if a part with these hosts may have enough events per window for time windows to pay off.
/// The estimate assumes that all hosts that receive data do so as fast as their links allow.
fn is_busy<F: AlgorithmFactory>(
    plan: &Plan<F>,
    network: &Network<Header, F::Switch>,
    hosts: Range<u32>,
    window: Span,
) -> bool {
    let mut receives = vec![false; plan.topology.hosts as usize];
    for connection in &plan.connections {
        receives[connection.data_ends().1.index()] = true;
    }
    let receivers = hosts.map(HostId::new).filter(|host| receives[host.index()]);
    let ports = receivers.flat_map(|host| network.host_ports(host));
    let bytes: u64 = ports.map(|port| network.rate(port).bytes_in(window).get()).sum();
    let packet = u64::from(plan.sizes.payload + plan.sizes.header);
    bytes.saturating_mul(EVENTS_PER_PACKET) / packet >= MANY
}

/// Prefetches the data of the packets behind the one that has just reached `host`, in stages one packet
/// apart: the packet, its flow, and the data that the flow stores elsewhere. On a busy link these packets are
/// known long before the slot of the event queue that [`Part::look_ahead`] sees.
#[inline(always)]
fn look_behind<F: AlgorithmFactory>(world: &World<F>, host: &Host<F>, port: PortId) {
    let (first, second) = world.network.coming(port);
    if let Some(header) = second {
        host.prefetch(header);
    }
    if let Some(header) = first {
        host.prefetch_further(header, &world.metrics);
    }
}
