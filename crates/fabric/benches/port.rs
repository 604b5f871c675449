//! Cost of a hop: through one port of each kind, and across a k = 8 fat tree with an engine.
#![allow(missing_docs, reason = "criterion's macros define undocumented functions")]

use apus_algorithms::BuiltInSwitch;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;

use apus_fabric::{FabricEvent, Node, Outcome, Packet, PortKind, RouteId, Schedule};
use apus_units::{Bytes, HostId, PortId, Rate, Span, Time};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

type LinkSpec = apus_fabric::LinkSpec<BuiltInSwitch>;
type Network<P> = apus_fabric::Network<P, BuiltInSwitch>;
type PortConfig = apus_fabric::PortConfig<BuiltInSwitch>;
type Tier = apus_fabric::Tier<BuiltInSwitch>;
type Topology = apus_fabric::Topology<BuiltInSwitch>;

const RATE: Rate = Rate::from_gbps(100);
const KINDS: [(&str, PortKind); 3] =
    [("fifo", PortKind::Fifo), ("strict", PortKind::Lazy), ("class", PortKind::Event)];

/// The next events of one link: an arrival and, for a port served by events, a service.
#[derive(Default)]
struct Two {
    arrival: Option<Time>,
    service: Option<Time>,
}

impl Schedule for Two {
    fn at(&mut self, event: FabricEvent, time: Time) {
        match event {
            FabricEvent::Arrival(_) => self.arrival = Some(time),
            FabricEvent::Service(_)
            | FabricEvent::Wake(_)
            | FabricEvent::Held(_)
            | FabricEvent::Mail(_) => {
                self.service = Some(time);
            }
        }
    }
}

impl Two {
    fn next(&mut self) -> Option<(FabricEvent, Time)> {
        let port = PortId::new(0);
        match (self.arrival, self.service) {
            (Some(arrival), service) if service.is_none_or(|s| arrival <= s) => {
                self.arrival = None;
                Some((FabricEvent::Arrival(port), arrival))
            }
            (_, Some(service)) => {
                self.service = None;
                Some((FabricEvent::Service(port), service))
            }
            (_, None) => None,
        }
    }
}

fn wire() -> Topology {
    let port = || PortConfig::new(RATE, Bytes::MAX);
    let (a, b) = (Node::Host(HostId::new(0)), Node::Host(HostId::new(1)));
    let link = LinkSpec { a, b, delay: Span::from_us(1), ab: port(), ba: port() };
    Topology { hosts: 2, switches: Vec::new(), links: vec![link] }
}

/// Sends bursts of 64 packets of two sizes through one port: send, serve, arrive, take.
fn one_port(c: &mut Criterion) {
    const BURST: u64 = 64;
    let mut group = c.benchmark_group("one port");
    group.throughput(Throughput::Elements(BURST));
    for (name, kind) in KINDS {
        let mut net: Network<u64> = wire().build_at_least(0, kind).expect("valid");
        let (src, dst) = (HostId::new(0), HostId::new(1));
        let route = net.route(src, dst, 0, 0).expect("a path");
        let (mut now, mut two) = (Time::ZERO, Two::default());
        group.bench_function(name, |b| {
            b.iter(|| {
                for n in 0..BURST {
                    let bytes = if n % 8 == 7 { 84 } else { 1538 };
                    let packet = Packet::new(route, src, dst, bytes, n);
                    net.send(now, src, black_box(packet), &mut two);
                }
                while let Some((event, time)) = two.next() {
                    now = time;
                    if let Outcome::Delivered { packet, .. } = net.handle(now, event, &mut two) {
                        black_box(net.take(packet));
                    }
                }
            });
        });
    }
    group.finish();
}

/// A binary heap of (time, port, kind).
#[derive(Default)]
struct Heap(BinaryHeap<Reverse<(Time, u64)>>);

impl Schedule for Heap {
    fn at(&mut self, event: FabricEvent, time: Time) {
        let (port, kind) = match event {
            FabricEvent::Arrival(port) => (port, 0),
            FabricEvent::Service(port) => (port, 1),
            FabricEvent::Wake(port) => (port, 2),
            FabricEvent::Held(port) => (port, 3),
            FabricEvent::Mail(port) => (port, 4),
        };
        self.0.push(Reverse((time, (u64::from(port.get()) << 2) | kind)));
    }
}

impl Heap {
    fn pop(&mut self) -> Option<(Time, FabricEvent)> {
        let Reverse((time, key)) = self.0.pop()?;
        let port = PortId::new((key >> 2) as u32);
        let event = match key & 3 {
            0 => FabricEvent::Arrival(port),
            1 => FabricEvent::Service(port),
            2 => FabricEvent::Wake(port),
            3 => FabricEvent::Held(port),
            _ => FabricEvent::Mail(port),
        };
        Some((time, event))
    }
}

/// Every host keeps 16 packets in flight to the host four pods away: 6 hops each.
fn fat_tree(c: &mut Criterion) {
    const DELIVERIES: u64 = 10_000;
    let mut group = c.benchmark_group("fat tree k=8, packet-hops");
    group.throughput(Throughput::Elements(6 * DELIVERIES));
    group.sample_size(20);
    let tier = Tier::switches(RATE, Span::from_ns(500), Bytes::MAX);
    let hosts = Tier::hosts(RATE, Span::from_ns(500), Bytes::MAX);
    let topology = Topology::fat_tree(8, 4, &hosts, &tier, &tier).expect("k is even");
    for (name, kind) in KINDS {
        let mut net: Network<u64> = topology.build_at_least(0, kind).expect("valid");
        let mut heap = Heap::default();
        let routes: Vec<RouteId> = (0..128)
            .map(|h| net.route(HostId::new(h), HostId::new((h + 64) % 128), 0, 0).expect("a path"))
            .collect();
        let packet = |h: u32| {
            let (src, dst) = (HostId::new(h), HostId::new((h + 64) % 128));
            Packet::new(routes[h as usize], src, dst, 1538, 0)
        };
        for h in (0..128).flat_map(|h| [h; 16]) {
            net.send(Time::ZERO, HostId::new(h), packet(h), &mut heap);
        }
        group.bench_function(name, |b| {
            b.iter(|| {
                let mut delivered = 0;
                while delivered < DELIVERIES {
                    let (now, event) = heap.pop().expect("packets are in flight");
                    if let Outcome::Delivered { packet: p, .. } = net.handle(now, event, &mut heap)
                    {
                        let src = net.take(p).src;
                        net.send(now, src, packet(src.get()), &mut heap);
                        delivered += 1;
                    }
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, one_port, fat_tree);
criterion_main!(benches);
