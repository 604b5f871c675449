//! A host: NIC, engine, transport and applications.
//!
//! Transport and algorithms are the same code as over UDP; this module models the machine. A packet passes
//! the NIC's receive queue, waits for the engine and costs the engine time. Packets that the transport sends
//! pass the NIC's transmit port. That port pulls: the stack passes a packet to the NIC when the NIC is ready
//! to send it (Swift §3.1), so no queue builds up in the port.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use apus_cc::{AlgorithmFactory, FlowInfo};
use apus_fabric::{InFlight, Network, Packet, PacketRef, RouteId};
use apus_jobs::Message;
use apus_transport::{Arrival, Completion, Endpoint, Handled, Observed};
use apus_units::{ClassId, FlowId, HostId, PortId, Rate, Time, prefetch};
use apus_wire::{Body, Header, SegmentKind};

use crate::application::Application;
use crate::clock::HostClocks;
use crate::engine::Engine;
use crate::host_model::HostModel;
use crate::jobs::{HostJobs, JOB_OP, Notice};
use crate::metrics::Metrics;
use crate::plan::OpArrival;
use crate::random::{Purpose, Stream};
use crate::service::Devices;
use crate::world::World;

mod nic;
mod paths;
mod ports;

pub(crate) use paths::FlowPaths;
use ports::NicPorts;

/// State of a flow that the transport does not have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostFlow {
    /// Number of the connection in the run: index into the metrics.
    pub(crate) connection: u32,
    pub(crate) peer: HostId,
    pub(crate) route: RouteId,
    /// Label of the flow's path. If the flow spreads its packets, this is its index in `Host::spreads`.
    pub(crate) path_label: u32,
    pub(crate) class: ClassId,
    pub(crate) is_spread: bool,
}

/// A packet in the NIC's receive queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued {
    /// Time at which the NIC received it (true time).
    pub(crate) received_at: Time,
    pub(crate) packet: PacketRef,
    pub(crate) bytes: u32,
}

/// Receive queue of the NIC, of finite size.
#[derive(Debug, Default)]
pub(crate) struct ReceiveQueue {
    pub(crate) packets: VecDeque<Queued>,
    bytes: u64,
}

impl ReceiveQueue {
    pub(crate) fn pop(&mut self) -> Option<Queued> {
        let queued = self.packets.pop_front()?;
        self.bytes -= u64::from(queued.bytes);
        Some(queued)
    }
}

/// Sending thread of a host's engine: the only thread, unless each direction has its own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Thread {
    Sending,
    Receiving,
}

/// A host.
pub(crate) struct Host<F: AlgorithmFactory> {
    pub(crate) id: HostId,
    pub(crate) endpoint: Endpoint<F>,
    pub(crate) flows: Vec<HostFlow>,
    /// Paths of flows that spread their packets.
    pub(crate) spreads: Vec<FlowPaths>,
    /// By the peer's host and its index of the flow: the flow. Filled when the first signal of a switch arrives.
    by_peer: BTreeMap<(HostId, FlowId), FlowId>,
    pub(crate) application: Application,
    /// Ranks of jobs; `None` without any.
    pub(crate) jobs: Option<Box<HostJobs>>,
    /// Devices on which reads of peers wait; `None` without such devices.
    pub(crate) devices: Option<Box<Devices>>,
    pub(crate) model: HostModel,
    pub(crate) clocks: HostClocks,
    pub(crate) receive_queue: ReceiveQueue,
    pub(crate) engine: Option<Engine>,
    pub(crate) ports: NicPorts,
    jitter: Stream,
    /// Packets that the stack has sent and that reach the NIC later, in order of time.
    on_the_way: VecDeque<InFlight>,
    /// Time at which the last packet of each thread reaches the NIC. Interference never reorders packets.
    last_handed: [Time; 2],
    /// Time of the pending wake-up event, if there is one.
    wake_at: Time,
}

impl<F: AlgorithmFactory> Host<F> {
    pub(crate) fn new(
        id: HostId,
        endpoint: Endpoint<F>,
        model: HostModel,
        clocks: HostClocks,
        network: &Network<Header, F::Switch>,
        seed: u64,
    ) -> Self {
        let entity = u64::from(id.get());
        let engine = model
            .engine
            .map(|costs| Engine::new(costs, Stream::new(seed, Purpose::Engine, entity)));
        Self {
            id,
            endpoint,
            flows: Vec::new(),
            spreads: Vec::new(),
            by_peer: BTreeMap::new(),
            application: Application::default(),
            jobs: None,
            devices: None,
            model,
            clocks,
            receive_queue: ReceiveQueue::default(),
            engine,
            ports: NicPorts::of(network, id),
            jitter: Stream::new(seed, Purpose::Jitter, entity),
            on_the_way: VecDeque::new(),
            last_handed: [Time::ZERO; 2],
            wake_at: Time::MAX,
        }
    }

    /// Prefetches the flow of a packet that will arrive soon.
    #[inline]
    pub(crate) fn prefetch(&self, header: &Header) {
        self.endpoint.prefetch(header);
        if let Some(flow) = self.flows.get(header.flow.index()) {
            prefetch(flow);
        }
    }

    /// Returns `true` if the host has so few flows that they are prefetched once per time window instead of per packet.
    #[inline(always)]
    pub(crate) fn has_few_flows(&self) -> bool {
        const FEW: usize = 3;
        self.flows.len() <= FEW
    }

    /// Prefetches all flows if they are few.
    #[inline(always)]
    pub(crate) fn prefetch_few(&self) {
        if self.has_few_flows() {
            self.endpoint.prefetch_all();
            self.flows.iter().for_each(prefetch);
        }
    }

    /// Prefetches the data that the flow stores elsewhere; the flow itself has been prefetched.
    #[inline]
    pub(crate) fn prefetch_further(&self, header: &Header, metrics: &Metrics) {
        self.endpoint.prefetch_further(header);
        if let Some(flow) = self.flows.get(header.flow.index()) {
            metrics.prefetch(flow.connection);
        }
    }

    /// Handles a packet that reached the NIC.
    #[inline]
    pub(crate) fn on_arrival(&mut self, now: Time, packet: PacketRef, world: &mut World<F>) {
        if self.engine.is_none() {
            self.process(now, now, packet, 0, world);
            let local = self.clocks.host.read(now);
            return self.answer(now, local, world);
        }
        let bytes = world.network.pool().fields(packet).wire_bytes;
        let queue = &mut self.receive_queue;
        if queue.bytes + u64::from(bytes) > self.model.receive_queue.get() {
            world.network.take(packet);
            world.metrics.nic_drops += 1;
            return;
        }
        queue.bytes += u64::from(bytes);
        queue.packets.push_back(Queued { received_at: now, packet, bytes });
        self.schedule(now, world);
    }

    /// Returns the time of the pending wake-up; [`Time::MAX`] if there is none.
    #[inline]
    pub(crate) fn wake_at(&self) -> Time {
        self.wake_at
    }

    /// Schedules the first wake-up.
    pub(crate) fn start(&mut self, world: &mut World<F>) {
        self.schedule(Time::ZERO, world);
    }

    /// Appends later ops to an open loop of the application.
    pub(crate) fn extend(
        &mut self,
        now: Time,
        source: usize,
        more: Vec<OpArrival>,
        world: &mut World<F>,
    ) {
        self.application.extend(source, more);
        self.schedule(now, world);
    }

    /// Sends a message for an external program, or for a model of all hosts, at `now`.
    pub(crate) fn send_from_outside(
        &mut self,
        now: Time,
        rank: (u32, u32),
        message: Message,
        world: &mut World<F>,
    ) {
        if let Some(jobs) = &mut self.jobs {
            jobs.send_from_outside(now, rank, message);
        }
        self.wake_by(now, world);
    }

    /// Wakes the host at `at`, unless it wakes earlier.
    fn wake_by(&mut self, at: Time, world: &mut World<F>) {
        if at < self.wake_at {
            self.wake_at = at;
            world.schedule_host(self.id, at);
        }
    }

    /// Stores a notice for a rank of a job until its time.
    pub(crate) fn on_notice(&mut self, notice: &Notice, world: &mut World<F>) {
        if let Some(jobs) = &mut self.jobs {
            jobs.on_notice(notice);
        }
        // In a time window this host may be ahead of the sender of the notice, so only a wake-up is scheduled.
        self.wake_by(notice.at, world);
    }

    /// Handles the wake-up event of the host.
    pub(crate) fn on_wake(&mut self, now: Time, world: &mut World<F>) {
        self.wake_at = Time::MAX;
        self.ports.unblock();
        while self.on_the_way.front().is_some_and(|next| next.arrives <= now) {
            let Some(next) = self.on_the_way.pop_front() else { break };
            world.send(self.id, next);
            self.hear_own_port(next.arrives, world);
        }
        let local = self.clocks.host.read(now);
        self.application.start_due(now, local, &mut self.endpoint);
        if let Some(jobs) = &mut self.jobs {
            jobs.run_due(now, local, &mut self.endpoint);
        }
        if let Some(devices) = &mut self.devices {
            devices.answer_due(now, local, &mut self.endpoint);
        }
        if self.engine.is_some() {
            self.run_engine(now, world);
        } else {
            self.endpoint.handle_timeout(local);
            return self.answer(now, local, world);
        }
        self.schedule(now, world);
    }

    /// Processes a packet in the stack at `now` that the NIC received at `received_at`. Returns the kind of
    /// the packet, for the costs of the engine.
    #[inline(always)] // into the handlers of an arrival and of a batch
    pub(crate) fn process(
        &mut self,
        now: Time,
        received_at: Time,
        packet: PacketRef,
        receiver_level: u8,
        world: &mut World<F>,
    ) -> Handled {
        self.ports.unblock();
        // The header is read in place and freed afterwards, because it is long.
        let pool = world.network.pool();
        let telemetry = pool.telemetry(packet);
        let (fields, mut header) = (pool.fields(packet), pool.payload(packet));
        let own;
        if let Body::Signal(_) = header.body {
            // A signal has the peer's index of the flow.
            let Some(flow) = self.flow_of_peer(fields.src, header.flow) else {
                world.network.release(packet);
                return Handled::Refused;
            };
            own = Header { flow, ..*header };
            header = &own;
        }
        let arrival = Arrival {
            now: self.clocks.host.read(now),
            nic_received_at: self.clocks.nic_timestamp(received_at, now),
            hops: Packet::<Header>::DEFAULT_TTL - fields.ttl,
            marked: fields.congestion.ecn == apus_cc::Ecn::Congested,
            receiver_level,
        };
        let mut observed = Observed { fields: fields.congestion.fields, telemetry, path: 0 };
        let flow = &self.flows[header.flow.index()];
        if flow.is_spread {
            let paths = &self.spreads[flow.path_label as usize];
            observed.path = paths.came_by(fields.route, &world.network);
        }
        let handled = self.endpoint.handle_observed(&arrival, header, &observed);
        let id = header.flow;
        let connection = self.flows[id.index()].connection;
        world.metrics.on_handled(connection, &handled, header);
        if let Some(workloads) = &mut world.workloads {
            let bytes = world.sizes.wire_bytes(&header.body);
            let state = || self.endpoint.snapshot(id);
            workloads.on_handled(connection, &handled, bytes, state);
        }
        if let Some(recorder) = &mut world.recorder {
            recorder.on_handled(connection, &handled);
            if let Some(tracer) = &mut recorder.tracer {
                let bytes = world.sizes.wire_bytes(&header.body);
                let observed = (now, self.id);
                tracer.on_handled(
                    observed,
                    (connection, id),
                    header,
                    bytes,
                    &handled,
                    &self.endpoint,
                );
            }
        }
        let finished = matches!(handled, Handled::Data { finished: true, .. });
        if let Some(jobs) = &mut self.jobs
            && jobs.hears_first_bytes()
            && let (Handled::Data { .. }, Body::Data(segment)) = (&handled, &header.body)
            && segment.offset == 0
        {
            jobs.on_first_bytes(now, id, segment);
        }
        if finished
            && let Some(devices) = &mut self.devices
            && let Body::Data(segment) = &header.body
            && matches!(segment.kind, SegmentKind::ReadRequest { .. })
        {
            devices.on_request((now, arrival.now), id, segment, &mut self.endpoint);
        }
        if finished
            && let Some(jobs) = &mut self.jobs
            && let Body::Data(segment) = &header.body
        {
            // The application is informed of the packets of a batch at the end of the batch.
            let now = now.max(world.now);
            let local = self.clocks.host.read(now);
            world.notices.extend(jobs.on_received(now, local, id, segment, &mut self.endpoint));
        }
        world.network.release(packet);
        if finished {
            let application = &mut self.application;
            let noted = application.on_received(now, arrival.now, id, &mut self.endpoint);
            if let Some(completion) = noted {
                world.on_completion(now, connection, &completion);
            }
        }
        handled
    }

    /// Returns the fill level of the NIC's receive queue in 32nds (Falcon's five bits).
    pub(crate) fn receiver_level(&self) -> u8 {
        let limit = self.model.receive_queue.get();
        let level = u128::from(self.receive_queue.bytes) * 32 / u128::from(limit.max(1));
        level.min(31) as u8
    }

    /// Sends the packets of a host without engine costs and schedules the next wake-up. Acknowledgements
    /// leave at once, data as the NIC pulls it.
    #[inline(never)] // one copy of the path of a packet through endpoint and NIC
    fn answer(&mut self, now: Time, local: Time, world: &mut World<F>) {
        while self.endpoint.has_ack() {
            let Some(transmit) = &self.endpoint.poll_ack(local) else { break };
            self.hand_to_nic(now, Thread::Sending, transmit, world);
        }
        self.complete(now, local, world);
        while self.endpoint.has_data() && self.nic_has_room(now) {
            let Some(transmit) = &self.poll_data(now, local, world) else { break };
            if let Some(next) = self.endpoint.next_data() {
                prefetch(&self.flows[next.index()]);
            }
            self.hand_to_nic(now, Thread::Sending, transmit, world);
        }
        self.schedule(now, world);
    }

    /// Passes completed ops to the application, which may submit the next ones.
    #[inline]
    pub(crate) fn complete(&mut self, now: Time, local: Time, world: &mut World<F>) {
        while let Some(completion) = self.endpoint.poll_completion() {
            self.on_completion(now, local, &completion, world);
        }
    }

    fn on_completion(
        &mut self,
        now: Time,
        local: Time,
        completion: &Completion,
        world: &mut World<F>,
    ) {
        let noted = if completion.submitted.user as u32 == JOB_OP {
            if let Some(jobs) = &mut self.jobs {
                jobs.on_completion(now, local, completion, &mut self.endpoint);
            }
            Some(*completion)
        } else {
            self.application.on_completion(now, local, completion, &mut self.endpoint)
        };
        if let Some(completion) = noted {
            let connection = self.flows[completion.flow.index()].connection;
            world.on_completion(now, connection, &completion);
        }
    }

    /// Schedules the next wake-up.
    #[inline]
    fn schedule(&mut self, now: Time, world: &mut World<F>) {
        let mut at = self.application.next_start();
        if let Some(jobs) = &self.jobs {
            at = at.min(jobs.next_at());
        }
        if let Some(devices) = &self.devices {
            at = at.min(devices.next_at());
        }
        if let Some(next) = self.on_the_way.front() {
            at = at.min(next.arrives);
        }
        let timeout = self.endpoint.next_timeout().unwrap_or(Time::MAX);
        let timeout = self.clocks.host.when_it_shows(timeout);
        match &self.engine {
            None => {
                at = at.min(timeout);
                if self.endpoint.has_transmit() {
                    at = at.min(self.nic_room_at(now));
                }
            }
            Some(engine) => {
                let waiting = !self.receive_queue.packets.is_empty();
                let room =
                    if self.endpoint.has_transmit() { self.nic_room_at(now) } else { Time::MAX };
                at = at.min(engine.next_step(now, waiting, room.min(timeout)));
            }
        }
        let at = at.max(now);
        if at != Time::MAX && at != self.wake_at {
            self.wake_at = at;
            world.schedule_host(self.id, at);
        }
    }

    /// Switches flows to the paths that switches use now, except the flows of connections `pinned` to a path.
    pub(crate) fn avoid(&mut self, pinned: &BTreeSet<u32>, world: &mut World<F>) {
        for flow in 0..self.flows.len() {
            if self.flows[flow].is_spread || !pinned.contains(&self.flows[flow].connection) {
                self.avoid_by(flow, world);
            }
        }
        self.ask_flows_again(world.now, world, false);
    }

    /// Switches a flow to the paths that switches use now.
    pub(crate) fn avoid_by(&mut self, flow: usize, world: &mut World<F>) {
        let flow = &mut self.flows[flow];
        if !flow.is_spread {
            world.reroute(self.id, flow);
            return;
        }
        // Paths existed when the flow was opened.
        let (own, other) = world.ends(self.id, flow);
        if let Ok(set) = world.network.path_set(own, other) {
            let paths = &mut self.spreads[flow.path_label as usize];
            paths.set_current(set);
            self.ports.bind(paths, (self.id, flow.peer), &world.network);
        }
    }

    /// Sets the rate at which a port of the NIC pulls packets.
    pub(crate) fn set_nic_rate(&mut self, port: PortId, rate: Rate) {
        self.ports.set_rate(port, rate);
    }

    /// Reserves capacity for this number of flows and of sources of ops.
    pub(crate) fn reserve(&mut self, flows: usize, sources: usize) {
        self.endpoint.reserve(flows);
        self.flows.reserve_exact(flows);
        self.application.reserve(sources);
    }

    /// Opens a flow of this host; the caller connects both ends.
    pub(crate) fn add_flow(
        &mut self,
        peer_flow: FlowId,
        algorithm: &F,
        (info, ports): (&FlowInfo, u64),
        flow: HostFlow,
    ) -> FlowId {
        self.flows.push(flow);
        self.endpoint.open_at(peer_flow, algorithm, info, ports)
    }
}

/// Returns `true` if a packet has the first bytes of an op, so that it also causes the engine's cost per op.
pub(crate) fn begins_op(header: &Header) -> bool {
    match &header.body {
        Body::Data(segment) => {
            segment.offset == 0
                && !matches!(segment.kind, SegmentKind::ReadRequest { .. } | SegmentKind::Cancel)
        }
        Body::Ack(_)
        | Body::Control(_)
        | Body::Reject(_)
        | Body::Signal(_)
        | Body::Trimmed(_)
        | Body::Nack(_) => false,
    }
}
