//! Packets at chosen ports and events of chosen flows, for the formats of packet tools.
//!
//! A traced run has one thread and no time windows, so that the trace sees each packet (`Part::run_traced`).
//! The event loop of other runs has no code for traces. Traces do not change the results.

use std::collections::BTreeMap;

use apus_cc::{AlgorithmFactory, Snapshot, Telemetry};
use apus_fabric::Packet;
use apus_transport::{Endpoint, FlowCounters, Handled, RttSample, Transmit};
use apus_units::{FlowId, HostId, PortId, Time};
use apus_wire::{Body, Header};

use super::around::{Around, Passings, Windows};
use crate::host::Host;
use crate::world::World;

/// Settings of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Ports whose packets are kept.
    pub ports: Vec<PortId>,
    /// Maximum number of packets: the first ones are kept.
    pub packets: u64,
    /// Number of flows whose events are kept, evenly spaced.
    pub flows: u32,
    /// Maximum number of events: the first ones are kept.
    pub events: u64,
    /// Ops around which everything is kept: the events of their flows, and all packets at the ports of their
    /// paths. If there are any, the other fields have no effect.
    pub around: Vec<Around>,
}

impl Trace {
    /// Returns `true` if nothing is traced.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ports.is_empty() && self.flows == 0 && self.around.is_empty()
    }
}

/// A packet that left a port and reached the end of its link.
#[derive(Clone, Debug)]
pub struct PacketRecord {
    /// Time at which its last bit left the port.
    pub left: Time,
    /// The port.
    pub port: PortId,
    /// The connection; `None` for a signal of a switch.
    pub connection: Option<u32>,
    /// The packet on the link.
    pub packet: Packet<Header>,
    /// Telemetry that it carries.
    pub telemetry: Option<Box<Telemetry>>,
}

/// An event of a flow at the host that sends its data.
#[derive(Clone, Copy, Debug)]
pub struct FlowEvent {
    /// Time of the event.
    pub at: Time,
    /// The connection.
    pub connection: u32,
    /// Counters of the flow.
    pub counters: FlowCounters,
    /// State of its algorithm.
    pub state: Snapshot,
    /// Kind of the event.
    pub what: FlowEventKind,
}

/// Kinds of events of a flow.
#[derive(Clone, Copy, Debug)]
pub enum FlowEventKind {
    /// The stack passed a packet to the NIC; with its wire bytes.
    Sent(Header, u32),
    /// The stack handled a packet; with its wire bytes and the delays that an acknowledgement shows.
    Received(Header, u32, Option<RttSample>),
}

/// Packets and events of a run.
#[derive(Clone, Debug, Default)]
pub struct Traced {
    /// Packets in order of their arrival at the ends of links.
    pub packets: Vec<PacketRecord>,
    /// Number of packets at the ports, including those beyond the limit.
    pub packets_seen: u64,
    /// The traced connections, with the host that sends the data.
    pub flows: Vec<(u32, HostId)>,
    /// Events in order of time.
    pub events: Vec<FlowEvent>,
    /// Number of events of the flows, including those beyond the limit.
    pub events_seen: u64,
    /// Recording around ops.
    pub passed: Passings,
}

impl Traced {
    /// Returns sentences about omitted packets and events.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let (kept, seen) = (self.packets.len() as u64, self.packets_seen);
        if kept < seen {
            notes.push(format!(
                "the packet trace holds the first {kept} of {seen} packets (more with `most_packets` in \
                 `[record]`)"
            ));
        }
        let (kept, seen) = (self.events.len() as u64, self.events_seen);
        if kept < seen {
            notes.push(format!(
                "the traces of flows hold the first {kept} of {seen} events (more with `most_events` in \
                 `[record]`)"
            ));
        }
        notes
    }
}

/// Takes the packets at ports from the event loop.
#[derive(Debug)]
pub(crate) struct Tap {
    /// By port.
    chosen: Box<[bool]>,
    most: u64,
    packets: Vec<PacketRecord>,
    seen: u64,
}

impl Tap {
    pub(crate) fn new(trace: &Trace, ports: usize) -> Self {
        let mut chosen = vec![false; ports].into_boxed_slice();
        trace.ports.iter().for_each(|port| chosen[port.index()] = true);
        Self { chosen, most: trace.packets, packets: Vec::new(), seen: 0 }
    }

    /// Handles a packet that is about to arrive at the end of the link of `port`.
    pub(crate) fn on_arrival<F: AlgorithmFactory>(
        &mut self,
        now: Time,
        port: PortId,
        world: &mut World<F>,
        hosts: &[Host<F>],
    ) {
        if !self.chosen[port.index()] {
            return;
        }
        let (network, mut scheduler) = world.network();
        let Some(packet) = network.arriving(now, port, &mut scheduler) else { return };
        self.seen += 1;
        if self.packets.len() as u64 >= self.most {
            return;
        }
        let pool = world.network.pool();
        let packet_in_full = pool.packet(packet);
        let header = &packet_in_full.payload;
        let connection = match header.body {
            Body::Signal(_) => None,
            // A header has the receiver's index of the flow.
            _ => {
                let receiver = hosts.get(packet_in_full.dst.index());
                receiver.and_then(|host| host.flows.get(header.flow.index())).map(|f| f.connection)
            }
        };
        self.packets.push(PacketRecord {
            left: now.saturating_sub(world.network.delay(port)),
            port,
            connection,
            packet: packet_in_full,
            telemetry: pool.telemetry(packet).map(|telemetry| Box::new(*telemetry)),
        });
    }

    /// Moves the packets to `traced`.
    pub(crate) fn finish(self, traced: &mut Traced) {
        (traced.packets, traced.packets_seen) = (self.packets, self.seen);
    }
}

/// Keeps the events of flows.
#[derive(Debug)]
pub(crate) struct FlowTracer {
    /// The traced connections, and the host at which each is observed.
    flows: BTreeMap<u32, HostId>,
    /// By connection: time spans outside of which no event is kept; empty: all events are kept.
    windows: BTreeMap<u32, Windows>,
    most: u64,
    events: Vec<FlowEvent>,
    seen: u64,
}

impl FlowTracer {
    pub(crate) fn new(flows: impl Iterator<Item = (u32, HostId)>, most: u64) -> Self {
        let windows = BTreeMap::new();
        Self { flows: flows.collect(), windows, most, events: Vec::new(), seen: 0 }
    }

    /// Keeps only events of connections near these ops.
    pub(crate) fn around(mut self, around: &[Around]) -> Self {
        for op in around {
            self.windows.entry(op.connection).or_default().add(op.from, op.until);
        }
        self
    }

    fn push<F: AlgorithmFactory>(
        &mut self,
        (at, host): (Time, HostId),
        (connection, flow): (u32, FlowId),
        endpoint: &Endpoint<F>,
        what: FlowEventKind,
    ) {
        if self.flows.get(&connection) != Some(&host) {
            return;
        }
        if self.windows.get(&connection).is_some_and(|windows| !windows.contain(at)) {
            return;
        }
        self.seen += 1;
        if self.events.len() as u64 >= self.most {
            return;
        }
        let (state, counters) = (endpoint.snapshot(flow), endpoint.counters(flow));
        let (state, counters) = (state.unwrap_or_default(), counters.unwrap_or_default());
        self.events.push(FlowEvent { at, connection, counters, state, what });
    }

    /// Handles a packet that the stack of `host` passes to the NIC.
    #[cold]
    pub(crate) fn on_sent<F: AlgorithmFactory>(
        &mut self,
        observed: (Time, HostId),
        connection: u32,
        transmit: &Transmit,
        wire_bytes: u32,
        endpoint: &Endpoint<F>,
    ) {
        let what = FlowEventKind::Sent(transmit.header, wire_bytes);
        self.push(observed, (connection, transmit.flow), endpoint, what);
    }

    /// Handles a packet that the stack of `host` has processed.
    #[cold]
    pub(crate) fn on_handled<F: AlgorithmFactory>(
        &mut self,
        observed: (Time, HostId),
        flow: (u32, FlowId),
        header: &Header,
        wire_bytes: u32,
        handled: &Handled,
        endpoint: &Endpoint<F>,
    ) {
        let sample = match handled {
            Handled::Ack(sample) => *sample,
            _ => None,
        };
        self.push(observed, flow, endpoint, FlowEventKind::Received(*header, wire_bytes, sample));
    }

    /// Moves the events to `traced`, in order of time. The order must be restored: a host whose engine has
    /// one thread per direction processes a batch of received packets at its end, after it has sent packets
    /// in the meantime.
    pub(crate) fn finish(mut self, traced: &mut Traced) {
        self.events.sort_by_key(|event| event.at);
        (traced.events, traced.events_seen) = (self.events, self.seen);
        traced.flows = self.flows.into_iter().collect();
    }
}
