//! The path of packets from the stack through the NIC, and the feedback of the NIC's own port.

use apus_cc::{AlgorithmFactory, Fields};
use apus_fabric::{InFlight, Packet, Way};
use apus_transport::{Arrival, Path, Transmit};
use apus_units::{FlowId, HostId, Time};
use apus_wire::{Body, Header};

use super::{Host, Thread};
use crate::host_model::Nic;
use crate::world::World;

impl<F: AlgorithmFactory> Host<F> {
    /// Sends a packet of the stack at `now`. Interference between the timestamp of the packet and the wire
    /// delays it ([`HostModel::jitter`](crate::host_model::HostModel::jitter)) without changing the order of
    /// packets.
    #[inline]
    pub(crate) fn hand_to_nic(
        &mut self,
        now: Time,
        thread: Thread,
        transmit: &Transmit,
        world: &mut World<F>,
    ) {
        let mut at = now;
        if !self.model.jitter.is_zero() {
            let last = &mut self.last_handed[thread as usize];
            at = (*last).max(now + self.model.jitter.mul_f64(self.jitter.uniform()));
            *last = at;
        }
        let flow = &mut self.flows[transmit.flow.index()];
        let (mut route, mut way) = (flow.route, Way::FORWARD);
        if flow.is_spread {
            let paths = &self.spreads[flow.path_label as usize];
            let (ports, network) = (&self.ports, &world.network);
            (route, way) = paths
                .route(transmit.path, transmit.header.seq, |port| network.is_up(ports.id(port)));
        } else if let Path::Label(label) = transmit.path
            && flow.path_label != label
        {
            flow.path_label = label;
            world.reroute(self.id, flow);
            route = flow.route;
        }
        let wire_bytes = world.sizes.wire_bytes(&transmit.header.body);
        let packet = Packet {
            wire_bytes,
            route,
            hop: 0,
            way,
            ttl: Packet::<Header>::DEFAULT_TTL,
            class: world.class_of(&transmit.header.body, flow.class),
            congestion: transmit.congestion,
            src: self.id,
            dst: flow.peer,
            payload: transmit.header,
        };
        let telemetry = match transmit.congestion.fields {
            Fields::TELEMETRY_ECHO => self.endpoint.telemetry(transmit.flow),
            _ => None,
        };
        let packet = world.network.hold(packet, telemetry);
        let packet = InFlight { arrives: at, packet, bytes: wire_bytes };
        world.metrics.on_sent(&transmit.header.body);
        if world.observes_sent {
            let connection = flow.connection;
            self.on_observed(now, connection, transmit, wire_bytes, world);
        }
        let mut accepted = true;
        if at <= world.now && self.on_the_way.is_empty() {
            let port = self.ports.first_of(route, world);
            accepted = world.send_by(self.id, port, packet);
            self.hear_own_port(at, world);
        } else {
            let place = self.on_the_way.partition_point(|other| other.arrives <= at);
            self.on_the_way.insert(place, packet);
        }
        // A credit that the credit limit of the NIC drops takes no time on the wire.
        if accepted {
            self.occupy_port(now, wire_bytes, route, world);
        }
        if let Some(jobs) = &mut self.jobs
            && let Body::Data(segment) = &transmit.header.body
        {
            let mut left_at = self.ports.drained_at(route, world);
            let flow = &self.flows[transmit.flow.index()];
            if flow.is_spread {
                left_at = self.spreads[flow.path_label as usize].leaves(left_at);
            }
            if segment.offset + u64::from(segment.length) == segment.op_length {
                jobs.on_last_bytes(transmit.flow, segment, left_at);
            }
        }
    }

    /// Measures and traces a packet that the stack passes to the NIC.
    #[inline(never)] // most runs have neither
    fn on_observed(
        &self,
        now: Time,
        connection: u32,
        transmit: &Transmit,
        wire_bytes: u32,
        world: &mut World<F>,
    ) {
        if let Some(workloads) = &mut world.workloads {
            workloads.on_sent(connection, &transmit.header.body);
        }
        let recorder = world.recorder.as_mut();
        if let Some(tracer) = recorder.and_then(|recorder| recorder.tracer.as_mut()) {
            tracer.on_sent((now, self.id), connection, transmit, wire_bytes, &self.endpoint);
        }
    }

    /// Passes on the feedback of the NIC's port about the packet that the port has just received (Bolt ns-3:
    /// a host's device is a port like any other).
    #[inline]
    pub(super) fn hear_own_port(&mut self, now: Time, world: &mut World<F>) {
        if self.model.nic == Nic::Queue {
            while let Some((peer, header)) = world.network.take_own_signal() {
                self.on_own_signal(now, peer, header);
            }
        }
    }

    fn on_own_signal(&mut self, now: Time, peer: HostId, mut header: Header) {
        let Some(flow) = self.flow_of_peer(peer, header.flow) else { return };
        header.flow = flow;
        let now = self.clocks.host.read(now);
        let arrival =
            Arrival { now, nic_received_at: now, hops: 0, marked: false, receiver_level: 0 };
        self.endpoint.handle_packet(&arrival, &header);
    }

    /// Returns the flow that the host `peer` knows by its own index `theirs`.
    pub(super) fn flow_of_peer(&mut self, peer: HostId, theirs: FlowId) -> Option<FlowId> {
        if self.by_peer.len() != self.flows.len() {
            let endpoint = &self.endpoint;
            let ours = (0..).map(FlowId::new).zip(&self.flows);
            let known = ours.filter_map(|(id, flow)| Some(((flow.peer, endpoint.peer(id)?), id)));
            self.by_peer = known.collect();
        }
        self.by_peer.get(&(peer, theirs)).copied()
    }
}
