//! A network in virtual time, with the smallest event queue that can drive one.
#![allow(dead_code, reason = "every test file uses its own part of this")]

use apus_algorithms::BuiltInSwitch;
use apus_cc::SwitchHalf;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use apus_fabric::{DropReason, FabricEvent, Outcome, Packet, PortKind, RouteId, Schedule, Sent};
use apus_units::{Bytes, HostId, PortId, Rate, Span, Time};

/// The fabric with the switch halves of Apus.
pub type Topology = apus_fabric::Topology<BuiltInSwitch>;
pub type PortConfig = apus_fabric::PortConfig<BuiltInSwitch>;
pub type ClassConfig = apus_fabric::ClassConfig<BuiltInSwitch>;
pub type Tier = apus_fabric::Tier<BuiltInSwitch>;
pub type LinkSpec = apus_fabric::LinkSpec<BuiltInSwitch>;
pub type Network<P> = apus_fabric::Network<P, BuiltInSwitch>;

/// Events are ordered by (time, port, kind), so that ties do not depend on the order of requests.
type Key = (Time, PortId, u8);

/// Stores the fabric's events, and checks the guarantees of `FabricEvent`.
#[derive(Default)]
pub struct Engine {
    now: Time,
    heap: BinaryHeap<Reverse<Key>>,
    pending: BTreeSet<(PortId, u8)>,
    /// Number of events handled.
    pub handled: u64,
}

fn parts(event: FabricEvent) -> (PortId, u8) {
    match event {
        FabricEvent::Arrival(port) => (port, 0),
        FabricEvent::Service(port) => (port, 1),
        FabricEvent::Wake(port) => (port, 2),
        FabricEvent::Held(port) => (port, 3),
        FabricEvent::Mail(port) => (port, 4),
    }
}

impl Schedule for Engine {
    fn at(&mut self, event: FabricEvent, time: Time) {
        let (port, kind) = parts(event);
        assert!(time >= self.now, "{event:?} was requested in the past");
        assert!(self.pending.insert((port, kind)), "{event:?} is pending twice");
        self.heap.push(Reverse((time, port, kind)));
    }

    fn cancel(&mut self, event: FabricEvent) {
        let (port, kind) = parts(event);
        assert!(self.pending.remove(&(port, kind)), "{event:?} is cancelled but not pending");
        self.heap.retain(|Reverse((_, p, k))| (*p, *k) != (port, kind));
    }
}

/// A packet delivered to its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub at: Time,
    pub host: HostId,
    pub packet: Packet<u32>,
}

/// A network with its event queue and a record of the results.
pub struct Sim<W: SwitchHalf = BuiltInSwitch> {
    pub net: apus_fabric::Network<u32, W>,
    pub engine: Engine,
    pub delivered: Vec<Delivery>,
    pub dropped: Vec<(Time, DropReason)>,
}

impl<W: SwitchHalf> Sim<W> {
    pub fn new(net: apus_fabric::Network<u32, W>) -> Self {
        Self { net, engine: Engine::default(), delivered: Vec::new(), dropped: Vec::new() }
    }

    pub fn build(topology: &apus_fabric::Topology<W>) -> Self {
        Self::new(topology.build(1).expect("a valid topology"))
    }

    /// Builds a network without ports of a simpler kind than `least`.
    pub fn build_at_least(topology: &apus_fabric::Topology<W>, least: PortKind) -> Self {
        Self::new(topology.build_at_least(1, least).expect("a valid topology"))
    }

    pub fn now(&self) -> Time {
        self.engine.now
    }

    pub fn route(&mut self, src: u32, dst: u32) -> RouteId {
        self.net.route(HostId::new(src), HostId::new(dst), 0, 0).expect("a path")
    }

    /// Returns a packet along `route`; `id` is its payload.
    pub fn packet(&self, route: RouteId, bytes: u32, id: u32) -> Packet<u32> {
        let ports = self.net.route_ports(route);
        let end = |port, first: bool| {
            let (from, to) = self.net.port_ends(port);
            match if first { from } else { to } {
                apus_fabric::Node::Host(host) => host,
                apus_fabric::Node::Switch(switch) => panic!("the route ends at {switch}"),
            }
        };
        let (src, dst) = (end(ports[0], true), end(*ports.last().expect("a hop"), false));
        Packet::new(route, src, dst, bytes, id)
    }

    pub fn send(&mut self, packet: Packet<u32>) -> Sent {
        self.net.send(self.engine.now, packet.src, packet, &mut self.engine)
    }

    pub fn send_bytes(&mut self, route: RouteId, bytes: u32, id: u32) -> Sent {
        let packet = self.packet(route, bytes, id);
        self.send(packet)
    }

    /// Handles the next event; returns `false` if there is none.
    pub fn step(&mut self) -> bool {
        let Some(Reverse((time, port, kind))) = self.engine.heap.pop() else { return false };
        self.engine.pending.remove(&(port, kind));
        self.engine.now = time;
        self.engine.handled += 1;
        let event = match kind {
            0 => FabricEvent::Arrival(port),
            1 => FabricEvent::Service(port),
            2 => FabricEvent::Wake(port),
            3 => FabricEvent::Held(port),
            _ => FabricEvent::Mail(port),
        };
        match self.net.handle(time, event, &mut self.engine) {
            Outcome::Delivered { host, packet } => {
                let packet = self.net.take(packet);
                self.delivered.push(Delivery { at: time, host, packet });
            }
            Outcome::Forwarded | Outcome::Paused { .. } => {}
            Outcome::Dropped(reason) => self.dropped.push((time, reason)),
        }
        true
    }

    fn next_event(&self) -> Option<Time> {
        self.engine.heap.peek().map(|Reverse((time, ..))| *time)
    }

    /// Handles all events before `time` and stops at `time`; events at `time` remain pending.
    pub fn run_before(&mut self, time: Time) {
        while self.next_event().is_some_and(|t| t < time) {
            self.step();
        }
        self.engine.now = time;
    }

    /// Handles all events up to and including `time`.
    pub fn run_through(&mut self, time: Time) {
        while self.next_event().is_some_and(|t| t <= time) {
            self.step();
        }
        self.engine.now = time;
    }

    /// Handles all events.
    pub fn run(&mut self) {
        while self.step() {}
    }

    /// Returns the arrival times of all packets, in the order of arrival.
    pub fn arrivals_ps(&self) -> Vec<u64> {
        self.delivered.iter().map(|d| d.at.as_ps()).collect()
    }

    /// Returns the payloads in the order of arrival.
    pub fn ids(&self) -> Vec<u32> {
        self.delivered.iter().map(|d| d.packet.payload).collect()
    }
}

pub const UNLIMITED: Bytes = Bytes::MAX;

pub fn gbps(n: u64) -> Rate {
    Rate::from_gbps(n)
}

pub fn ps(n: u64) -> Time {
    Time::from_ps(n)
}

/// Returns a topology of host 0 and host 1 with one link of 1 us between them; host 0's egress port
/// (port 0) is `port`.
pub fn wire(port: PortConfig) -> Topology {
    let back = PortConfig::new(port.rate, UNLIMITED);
    Topology {
        hosts: 2,
        switches: Vec::new(),
        links: vec![apus_fabric::LinkSpec {
            a: apus_fabric::Node::Host(HostId::new(0)),
            b: apus_fabric::Node::Host(HostId::new(1)),
            delay: Span::from_us(1),
            ab: port,
            ba: back,
        }],
    }
}

/// Returns host links of `rate` with a delay of 1 us.
pub fn host_tier(rate: Rate) -> Tier {
    Tier::hosts(rate, Span::from_us(1), UNLIMITED)
}

/// Returns switch links of `rate` with a delay of 1 us.
pub fn switch_tier(rate: Rate) -> Tier {
    Tier::switches(rate, Span::from_us(1), UNLIMITED)
}
