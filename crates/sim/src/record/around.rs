//! A recording around chosen ops: the packets at the ports of their paths, and the queues of these ports.
//!
//! The ops are chosen from an earlier run with the same seed. Therefore only they are recorded, and a run of
//! any size can be examined.

use std::collections::BTreeSet;

use apus_cc::AlgorithmFactory;
use apus_fabric::{Network, RouteError};
use apus_units::{PacketNumber, PortId, Span, Time};
use apus_wire::{Body, Header};

use crate::build::PlanError;
use crate::host::Host;
use crate::plan::Plan;
use crate::world::World;

/// Maximum number of packets that are kept: about 200 MB.
const MAX_PASSED: usize = 4_000_000;
/// Number of samples of a queue per op.
const QUEUE_SAMPLES: u64 = 256;
/// Maximum number of observed paths of a connection that spreads its packets.
const MAX_PATHS: u32 = 64;

/// An op, given by its connection and the time span to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Around {
    /// Its connection.
    pub connection: u32,
    /// Start of the span.
    pub from: Time,
    /// End of the span.
    pub until: Time,
    /// Whether the packets and queues at the ports of its path are kept, in addition to the events of its flow.
    pub ports: bool,
}

/// A packet that left a port.
#[derive(Clone, Copy, Debug)]
pub struct Passed {
    /// Time at which its last bit left the port.
    pub left: Time,
    /// Time at which it reached the node at the end of the link.
    pub arrives: Time,
    /// The port.
    pub port: PortId,
    /// Its connection; `None` for a signal of a switch.
    pub connection: Option<u32>,
    /// Its packet number.
    pub seq: PacketNumber,
    /// Wire bytes of the packet: everything that occupies the link.
    pub wire_bytes: u32,
    /// Whether it is a data packet, trimmed or not, and no acknowledgement.
    pub is_data: bool,
}

/// Occupancy of a port.
#[derive(Clone, Copy, Debug)]
pub struct QueueSeen {
    /// Time of the sample.
    pub at: Time,
    /// The port.
    pub port: PortId,
    /// Wire bytes in the port.
    pub bytes: u64,
}

/// Recording around ops.
#[derive(Clone, Debug, Default)]
pub struct Passings {
    /// Packets in order of their arrival at the ends of links.
    pub packets: Vec<Passed>,
    /// Number of packets, including those beyond the limit.
    pub seen: u64,
    /// Samples of queues, in order of time.
    pub queues: Vec<QueueSeen>,
}

/// Spans of time, in any order.
#[derive(Clone, Debug, Default)]
pub(super) struct Windows(Vec<(Time, Time)>);

impl Windows {
    /// Adds a span.
    pub(super) fn add(&mut self, from: Time, until: Time) {
        self.0.push((from, until));
    }

    /// Returns `true` if a span contains this time.
    pub(super) fn contain(&self, at: Time) -> bool {
        self.shortest(at).is_some()
    }

    /// Returns the length of the shortest span that contains this time.
    fn shortest(&self, at: Time) -> Option<Span> {
        let own = self.0.iter().filter(|(from, until)| *from <= at && at <= *until);
        own.map(|(from, until)| until.since(*from)).min()
    }
}

/// Keeps the packets and queues at the ports of the paths of chosen ops.
#[derive(Clone, Debug)]
pub(crate) struct CloseUp {
    /// By port.
    windows: Box<[Windows]>,
    /// By port: time of the next sample of its queue.
    next_look: Box<[Time]>,
    kept: Passings,
}

impl CloseUp {
    /// Observes the ports on the paths of these ops.
    ///
    /// # Errors
    /// If there is no path.
    pub(crate) fn new<F: AlgorithmFactory>(
        plan: &Plan<F>,
        network: &mut Network<Header, F::Switch>,
        around: &[Around],
    ) -> Result<Box<Self>, PlanError> {
        let ports = network.ports().count();
        let mut windows = vec![Windows::default(); ports].into_boxed_slice();
        let no_route = |error: RouteError| PlanError::Route(error);
        for op in around.iter().filter(|op| op.ports) {
            let connection = &plan.connections[op.connection as usize];
            let (source, sink) = plan.data_terminals(connection);
            let key = u64::from(op.connection);
            let mut path: BTreeSet<PortId> = BTreeSet::new();
            // The paths of acknowledgements are observed too.
            for (source, sink) in [(source, sink), (sink, source)] {
                path.extend(network.path(source, sink, key, 0).map_err(no_route)?);
                if connection.spread.is_some() {
                    let set = network.path_set(source, sink).map_err(no_route)?;
                    let numbers = 0..set.count().min(MAX_PATHS);
                    path.extend(numbers.flat_map(|number| network.route_ports(set.route(number))));
                }
            }
            if let Some(reroute) = &connection.reroute {
                path.extend(reroute.path.iter().copied());
            }
            path.into_iter().for_each(|port| windows[port.index()].add(op.from, op.until));
        }
        let next_look = vec![Time::ZERO; ports].into_boxed_slice();
        Ok(Box::new(Self { windows, next_look, kept: Passings::default() }))
    }

    /// Handles a packet that is about to arrive at the end of the link of `port`.
    pub(crate) fn on_arrival<F: AlgorithmFactory>(
        &mut self,
        now: Time,
        port: PortId,
        world: &mut World<F>,
        hosts: &[Host<F>],
    ) {
        let Some(shortest) = self.windows[port.index()].shortest(now) else { return };
        if self.next_look[port.index()] <= now {
            self.next_look[port.index()] = now + shortest / QUEUE_SAMPLES;
            let bytes = world.network.port_counters(port, now).queued.bytes;
            self.kept.queues.push(QueueSeen { at: now, port, bytes });
        }
        let (network, mut scheduler) = world.network();
        let Some(packet) = network.arriving(now, port, &mut scheduler) else { return };
        self.kept.seen += 1;
        if self.kept.packets.len() >= MAX_PASSED {
            return;
        }
        let packet = world.network.pool().packet(packet);
        let header = &packet.payload;
        let connection = match header.body {
            Body::Signal(_) => None,
            // A header has the receiver's index of the flow.
            _ => {
                let receiver = hosts.get(packet.dst.index());
                receiver.and_then(|host| host.flows.get(header.flow.index())).map(|f| f.connection)
            }
        };
        self.kept.packets.push(Passed {
            left: now.saturating_sub(world.network.delay(port)),
            arrives: now,
            port,
            connection,
            seq: header.seq,
            wire_bytes: packet.wire_bytes,
            is_data: matches!(header.body, Body::Data(_) | Body::Trimmed(_)),
        });
    }

    /// Returns the recording.
    pub(crate) fn finish(self) -> Passings {
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::{Span, Time, Windows};

    #[test]
    fn the_shortest_of_the_windows_at_a_time_counts() {
        let mut windows = Windows::default();
        let at = |us| Time::ZERO + Span::from_us(us);
        windows.add(at(10), at(50));
        windows.add(at(20), at(30));
        let found = [9, 10, 25, 31, 51].map(|us| windows.shortest(at(us)));
        let us = |us| Some(Span::from_us(us));
        assert_eq!(found, [None, us(40), us(10), us(40), None]);
        assert!(!windows.contain(at(51)) && windows.contain(at(50)));
    }
}
