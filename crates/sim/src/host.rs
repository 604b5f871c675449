//! A host: NIC, engine, transport and applications.
//!
//! The transport and its algorithms are the code that runs over UDP too; what is modelled here is
//! the machine around them. A packet passes the NIC's receive queue, waits for the engine, costs it
//! time, and what the transport answers passes the NIC's transmit port, which pulls: the stack
//! hands a packet over when the NIC is ready to send it (Swift §3.1), so no queue builds up there.

use std::collections::{BTreeMap, VecDeque};

use apus_cc::{AlgorithmFactory, FlowInfo};
use apus_fabric::{Packet, PacketRef, RouteId};
use apus_transport::{Arrival, Completion, Endpoint, Handled, Observed};
use apus_units::{ClassId, FlowId, HostId, Rate, Time, prefetch};
use apus_wire::{Body, Header, SegmentKind};

use crate::application::Application;
use crate::clock::HostClocks;
use crate::engine::Engine;
use crate::host_model::HostModel;
use crate::plan::OpArrival;
use crate::random::{Purpose, Stream};
use crate::service::Devices;
use crate::world::World;

mod nic;

use nic::OnTheWay;

/// What a host knows of one of its flows beyond the transport.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostFlow {
    /// The connection, numbered across the run: index into the metrics.
    pub(crate) connection: u32,
    pub(crate) peer: HostId,
    pub(crate) route: RouteId,
    pub(crate) path_label: u32,
    pub(crate) class: ClassId,
}

/// A packet in the NIC's receive queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued {
    /// When the NIC received it (true time).
    pub(crate) received_at: Time,
    pub(crate) packet: PacketRef,
    pub(crate) bytes: u32,
}

/// The NIC's receive queue, finite.
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

/// The thread of a host's engine that sends: one, unless each direction has its own.
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
    /// Flows by the peer's host and its index of the flow, from the first signal of a switch on.
    by_peer: BTreeMap<(HostId, FlowId), FlowId>,
    pub(crate) application: Application,
    /// What the peers' reads wait for; `None`: they wait for nothing.
    pub(crate) devices: Option<Box<Devices>>,
    pub(crate) model: HostModel,
    pub(crate) clocks: HostClocks,
    pub(crate) receive_queue: ReceiveQueue,
    pub(crate) engine: Option<Engine>,
    nic_rate: Rate,
    /// Picoseconds per byte if that is a whole number, otherwise 0: it spares a division per packet.
    nic_byte_time: u64,
    jitter: Stream,
    /// Packets that the stack has let go and that reach the NIC later, in order of time.
    on_the_way: VecDeque<OnTheWay>,
    /// When the last packet of each thread reaches the NIC: interference never reorders.
    last_handed: [Time; 2],
    /// When the NIC would have sent all that the stack has let go, interference apart: what the
    /// pull goes by, so that a packet delayed on the way to the NIC does not hold up the next.
    nic_drained: Time,
    /// When the pending wake-up event is due, if there is one.
    wake_at: Time,
}

impl<F: AlgorithmFactory> Host<F> {
    pub(crate) fn new(
        id: HostId,
        endpoint: Endpoint<F>,
        model: HostModel,
        clocks: HostClocks,
        nic_rate: Rate,
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
            by_peer: BTreeMap::new(),
            application: Application::default(),
            devices: None,
            model,
            clocks,
            receive_queue: ReceiveQueue::default(),
            engine,
            nic_rate,
            nic_byte_time: nic_rate.whole_byte_time(),
            jitter: Stream::new(seed, Purpose::Jitter, entity),
            on_the_way: VecDeque::new(),
            last_handed: [Time::ZERO; 2],
            nic_drained: Time::ZERO,
            wake_at: Time::MAX,
        }
    }

    /// Brings near the flow of a packet that will arrive soon.
    #[inline]
    pub(crate) fn prefetch(&self, header: &Header) {
        self.endpoint.prefetch(header);
        if let Some(flow) = self.flows.get(header.flow.index()) {
            prefetch(flow);
        }
    }

    /// The same for what the flow, which is near by then, keeps elsewhere.
    #[inline]
    pub(crate) fn prefetch_further(&self, header: &Header) {
        self.endpoint.prefetch_further(header);
    }

    /// A packet reached the NIC.
    #[inline]
    pub(crate) fn on_arrival(&mut self, now: Time, packet: PacketRef, world: &mut World<F>) {
        if self.engine.is_none() {
            self.process(now, now, packet, 0, world);
            self.pump(now, world);
            self.schedule(now, world);
            return;
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

    /// When the pending wake-up is due; [`Time::MAX`] if there is none.
    #[inline]
    pub(crate) fn wake_at(&self) -> Time {
        self.wake_at
    }

    /// Schedules the first wake-up.
    pub(crate) fn start(&mut self, world: &mut World<F>) {
        self.schedule(Time::ZERO, world);
    }

    /// Gives an open loop of its application ops that come later.
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

    /// The host's wake-up event.
    pub(crate) fn on_wake(&mut self, now: Time, world: &mut World<F>) {
        self.wake_at = Time::MAX;
        while self.on_the_way.front().is_some_and(|next| next.at <= now) {
            let Some(next) = self.on_the_way.pop_front() else { break };
            world.send(next.at, self.id, next.packet, next.telemetry.as_deref());
            self.hear_own_port(next.at, world);
        }
        let local = self.clocks.host.read(now);
        self.application.start_due(now, local, &mut self.endpoint);
        if let Some(devices) = &mut self.devices {
            devices.answer_due(now, local, &mut self.endpoint);
        }
        if self.engine.is_some() {
            self.run_engine(now, world);
        } else {
            self.endpoint.handle_timeout(local);
            self.pump(now, world);
        }
        self.schedule(now, world);
    }

    /// The stack processes a packet at `now` that the NIC received at `received_at`.
    /// Returns what it was, for the engine's costs.
    pub(crate) fn process(
        &mut self,
        now: Time,
        received_at: Time,
        packet: PacketRef,
        receiver_level: u8,
        world: &mut World<F>,
    ) -> Handled {
        // The header is read where it is, and its place freed afterwards: it is long.
        let pool = world.network.pool();
        let telemetry = pool.telemetry(packet);
        let (fields, mut header) = (pool.fields(packet), pool.payload(packet));
        let own;
        if let Body::Signal(_) = header.body {
            // It names the flow as the peer knows it.
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
        let observed = Observed { fields: fields.congestion.fields, telemetry };
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
        }
        let finished = matches!(handled, Handled::Data { finished: true, .. });
        if finished
            && let Some(devices) = &mut self.devices
            && let Body::Data(segment) = &header.body
            && matches!(segment.kind, SegmentKind::ReadRequest { .. })
        {
            devices.on_request((now, arrival.now), id, segment, &mut self.endpoint);
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

    /// How full the NIC's receive queue is, in 32nds (Falcon's five bits).
    pub(crate) fn receiver_level(&self) -> u8 {
        let limit = self.model.receive_queue.get();
        let level = u128::from(self.receive_queue.bytes) * 32 / u128::from(limit.max(1));
        level.min(31) as u8
    }

    /// Sends what a host without engine costs may send: acknowledgements at once, data as the NIC
    /// pulls it.
    #[inline]
    fn pump(&mut self, now: Time, world: &mut World<F>) {
        let local = self.clocks.host.read(now);
        while self.endpoint.has_ack() {
            let Some(transmit) = self.endpoint.poll_ack(local) else { break };
            self.hand_to_nic(now, Thread::Sending, &transmit, world);
        }
        self.complete(now, local, world);
        while self.endpoint.has_data() && self.nic_has_room(now) {
            let Some(transmit) = self.endpoint.poll_data(local) else { break };
            self.hand_to_nic(now, Thread::Sending, &transmit, world);
        }
    }

    /// Hands finished ops to the application, which may submit the next.
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
        let noted = self.application.on_completion(now, local, completion, &mut self.endpoint);
        if let Some(completion) = noted {
            let connection = self.flows[completion.flow.index()].connection;
            world.on_completion(now, connection, &completion);
        }
    }

    /// Schedules the next wake-up.
    #[inline]
    fn schedule(&mut self, now: Time, world: &mut World<F>) {
        let mut at = self.application.next_start();
        if let Some(devices) = &self.devices {
            at = at.min(devices.next_at());
        }
        if let Some(next) = self.on_the_way.front() {
            at = at.min(next.at);
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

    /// Makes room for so many flows and sources of ops.
    pub(crate) fn reserve(&mut self, flows: usize, sources: usize) {
        self.endpoint.reserve(flows);
        self.flows.reserve_exact(flows);
        self.application.reserve(sources);
    }

    /// Opens a flow of this host; the caller wires up both ends.
    pub(crate) fn add_flow(
        &mut self,
        peer_flow: FlowId,
        algorithm: &F,
        info: &FlowInfo,
        flow: HostFlow,
    ) -> FlowId {
        self.flows.push(flow);
        self.endpoint.open(peer_flow, algorithm, info)
    }
}

/// Whether a packet carries the first bytes of an op: what an engine pays per op, it pays here.
pub(crate) fn begins_op(header: &Header) -> bool {
    match &header.body {
        Body::Data(segment) => {
            segment.offset == 0
                && !matches!(segment.kind, SegmentKind::ReadRequest { .. } | SegmentKind::Cancel)
        }
        Body::Ack(_) | Body::Control(_) | Body::Reject(_) | Body::Signal(_) => false,
    }
}
