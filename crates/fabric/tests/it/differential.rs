//! Equal traffic through ports of all kinds: the results are equal to the picosecond.

use crate::support::{ClassConfig, PortConfig, Tier, Topology};
use crate::support::{Delivery, Sim, wire};
use apus_algorithms::BuiltInSwitch;
use apus_algorithms::bolt::BoltFields;
use apus_algorithms::dctcp::switch::{EcnMarker, MarkAt};
use apus_algorithms::notified::switch::QueueReport;
use apus_cc::Ecn;
use apus_fabric::{ClassCounters, PortCounters, PortKind, SchedulerKind, Sent, Signalling, Trim};
use apus_units::{Bytes, ClassId, HostId, PortId, Rate, Span, Time};
use proptest::prelude::*;

/// Arrival of a packet, relative to the previous one.
#[derive(Clone, Debug)]
enum Gap {
    Ps(u64),
    /// Multiple of the time that 1000 B take.
    Services(u64),
    /// Exactly when the port becomes empty: a tie.
    WhenIdle,
}

#[derive(Clone, Debug)]
struct Arrival {
    gap: Gap,
    bytes: u32,
    capable: bool,
    class: u8,
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let gap = prop_oneof![
        2 => Just(Gap::Ps(0)),
        6 => (0..4_u64).prop_map(Gap::Services),
        6 => (0..400_000_u64).prop_map(Gap::Ps),
        2 => Just(Gap::WhenIdle),
        1 => (0..10_000_000_u64).prop_map(Gap::Ps),
    ];
    let bytes = prop_oneof![6 => Just(1000_u32), 6 => Just(3000), 1 => Just(84_u32), 1 => Just(1538), 1 => Just(4178), 1 => 1..9216_u32];
    let arrival = (gap, bytes, any::<bool>(), 0..5_u8)
        .prop_map(|(gap, bytes, capable, class)| Arrival { gap, bytes, capable, class });
    prop::collection::vec(arrival, 1..200)
}

/// Zero, less than a service, or several services.
fn delays() -> impl Strategy<Value = Span> {
    prop::sample::select(vec![Span::ZERO, Span::from_ns(7), Span::from_us(1)])
}

fn wire_of(delay: Span, port: PortConfig) -> Topology {
    let mut topology = wire(port);
    topology.links[0].delay = delay;
    topology
}

fn rates() -> impl Strategy<Value = Rate> {
    prop::sample::select(vec![1, 10, 25, 40, 100, 102, 400]).prop_map(Rate::from_gbps)
}

/// Everything that can be observed at a port.
#[derive(Debug, PartialEq)]
struct Observed {
    sent: Vec<Sent>,
    seen: Vec<(PortCounters, Bytes, Time)>,
    classes: Vec<(ClassCounters, Bytes)>,
    /// The signals of the port to its own host, for each packet.
    signals: Vec<Option<(HostId, u32)>>,
    delivered: Vec<Delivery>,
}

fn observe(mut sim: Sim, arrivals: &[Arrival], events_first: bool) -> Observed {
    let port = PortId::new(0);
    let route = sim.route(0, 1);
    let (mut sent, mut seen, mut of_classes) = (Vec::new(), Vec::new(), Vec::new());
    let mut signals = Vec::new();
    sim.net.answer_signals(Signalling {
        payload: |_, signal| signal.queue.get() as u32,
        class: None,
        wire_bytes: 84,
        instant: false,
    });
    let classes: Vec<ClassId> =
        (0..sim.net.class_count(port)).map(|class| ClassId::new(class as u8)).collect();
    for (id, arrival) in (0..).zip(arrivals) {
        let at = match arrival.gap {
            Gap::Ps(gap) => sim.now() + Span::from_ps(gap),
            Gap::Services(n) => {
                sim.now() + sim.net.rate(port).serialization_time(Bytes::new(1000)) * n
            }
            Gap::WhenIdle => sim.net.busy_until(port).max(sim.now()),
        };
        if events_first {
            sim.run_through(at);
        } else {
            sim.run_before(at);
        }
        let idle = sim.net.busy_until(port).max(at);
        seen.push((sim.net.port_counters(port, at), sim.net.queue_bytes(port, at), idle));
        of_classes.extend(classes.iter().map(|&class| {
            (sim.net.class_counters(port, class, at), sim.net.class_queue_bytes(port, class, at))
        }));
        let mut packet = sim.packet(route, arrival.bytes, id);
        packet.class = ClassId::new(arrival.class);
        packet.congestion.fields = BoltFields::new(0, 0).fields();
        packet.congestion.ecn = if arrival.capable { Ecn::Capable } else { Ecn::NotCapable };
        sent.push(sim.send(packet));
        signals.push(sim.net.take_own_signal());
        sim.net.check_conservation().unwrap();
    }
    sim.run();
    let end = sim.now();
    seen.push((sim.net.port_counters(port, end), Bytes::ZERO, end));
    Observed { sent, seen, classes: of_classes, signals, delivered: sim.delivered }
}

proptest! {
    #[test]
    fn one_port(
        rate in rates(),
        limit in prop_oneof![Just(Bytes::MAX), (1000..60_000_u64).prop_map(Bytes::new)],
        threshold in (0..30_000_u64).prop_map(Bytes::new),
        class_limit in prop::option::of((1000..20_000_u64).prop_map(Bytes::new)),
        delay in delays(),
        arrivals in arrivals(),
    ) {
        let marker = BuiltInSwitch::Ecn(EcnMarker::new(threshold));
        let mut port = PortConfig::new(rate, limit).with_algorithm(&marker);
        port.classes[0].limit = class_limit.unwrap_or(Bytes::MAX);
        let topology = wire_of(delay, port);
        let fifo = observe(Sim::build(&topology), &arrivals, false);
        for least in [PortKind::Lazy, PortKind::Event] {
            for events_first in [false, true] {
                let sim = Sim::build_at_least(&topology, least);
                let other = observe(sim, &arrivals, events_first);
                prop_assert_eq!(&fifo, &other);
            }
        }
    }

    /// Some packets are of classes that the port does not have.
    #[test]
    fn one_port_of_strict_priorities(
        rate in rates(),
        limit in prop_oneof![Just(Bytes::MAX), (1000..60_000_u64).prop_map(Bytes::new)],
        threshold in (0..30_000_u64).prop_map(Bytes::new),
        priorities in Just(vec![0_u8, 1, 4, 9]).prop_shuffle(),
        count in 2..5_usize,
        limits in prop::option::of((1..20_u32, 1000..20_000_u64)),
        delay in delays(),
        arrivals in arrivals(),
    ) {
        let marker = BuiltInSwitch::Ecn(EcnMarker::new(threshold));
        let mut port = PortConfig::new(rate, limit);
        let class = |priority| ClassConfig { priority, ..ClassConfig::default() };
        port.classes = priorities[..count].iter().copied().map(class).collect();
        port.classes[0].algorithm = BuiltInSwitch::Notified(QueueReport);
        port.classes[1].algorithm = marker;
        if let Some((packets, bytes)) = limits {
            port.classes[0].limit_packets = packets;
            port.classes[1].limit = Bytes::new(bytes);
        }
        prop_assert_eq!(port.kind(), PortKind::Lazy);
        let topology = wire_of(delay, port);
        let general = observe(Sim::build_at_least(&topology, PortKind::Event), &arrivals, false);
        for events_first in [false, true] {
            let strict = observe(Sim::build(&topology), &arrivals, events_first);
            prop_assert_eq!(&general, &strict);
        }
    }

    /// Weights, and strict priorities above and below; some packets are of classes that the port does not have.
    #[test]
    fn one_port_of_weights(
        rate in rates(),
        limit in prop_oneof![Just(Bytes::MAX), (1000..60_000_u64).prop_map(Bytes::new)],
        threshold in (0..30_000_u64).prop_map(Bytes::new),
        classes in prop::collection::vec((0..3_u8, 1..6_u32), 2..5),
        drr in any::<bool>(),
        limits in prop::option::of((1..20_u32, 1000..20_000_u64)),
        delay in delays(),
        arrivals in arrivals(),
    ) {
        let mut port = PortConfig::new(rate, limit);
        let class = |&(priority, weight)| ClassConfig { priority, weight, ..ClassConfig::default() };
        port.classes = classes.iter().map(class).collect();
        port.scheduler = SchedulerKind::WORDS[usize::from(drr)].1;
        port.classes[1].algorithm = BuiltInSwitch::Ecn(EcnMarker::new(threshold));
        if let Some((packets, bytes)) = limits {
            port.classes[0].limit_packets = packets;
            port.classes[1].limit = Bytes::new(bytes);
        }
        prop_assert_eq!(port.kind(), PortKind::Lazy);
        let topology = wire_of(delay, port);
        let by_events = observe(Sim::build_at_least(&topology, PortKind::Event), &arrivals, false);
        for events_first in [false, true] {
            let lazily = observe(Sim::build(&topology), &arrivals, events_first);
            prop_assert_eq!(&by_events, &lazily);
        }
    }

    /// Packets without room in their class lose their payload, or the last packet of the queue
    /// does.
    #[test]
    fn one_port_that_trims(
        rate in rates(),
        limit in (1000..20_000_u64).prop_map(Bytes::new),
        headers in (64..2000_u64).prop_map(Bytes::new),
        (tail, keeps_headers) in any::<(bool, bool)>(),
        priorities in prop::sample::select(vec![[0, 0], [1, 0]]),
        delay in delays(),
        arrivals in arrivals(),
    ) {
        let mut port = PortConfig::new(rate, Bytes::MAX);
        let class = |priority| ClassConfig { priority, ..ClassConfig::default() };
        port.classes = priorities.map(class).to_vec();
        let to = ClassId::new(1);
        port.classes[0].trim = Some(Trim { class: to, bytes: 64, tail, keeps_headers, seed: 7 });
        port.classes[0].limit = limit;
        port.classes[1].limit = headers;
        prop_assert_eq!(port.kind(), PortKind::Lazy);
        let topology = wire_of(delay, port);
        let run = |least, events_first| {
            let mut sim = Sim::build_at_least(&topology, least);
            sim.net.trim_packets(|_, _| true);
            observe(sim, &arrivals, events_first)
        };
        let by_events = run(PortKind::Event, false);
        for events_first in [false, true] {
            prop_assert_eq!(&by_events, &run(PortKind::Fifo, events_first));
        }
    }

    #[test]
    fn a_network(
        rate in rates(),
        seed in any::<u64>(),
        flows in prop::collection::vec((0..12_u32, 0..12_u32, 0..3_000_000_u64, 64..5000_u32), 1..200),
    ) {
        let limit = Bytes::new(20_000);
        let marker = BuiltInSwitch::Ecn(EcnMarker::new(Bytes::new(6000)));
        let topology = Topology::leaf_spine(
            3,
            4,
            2,
            &Tier::hosts(rate, Span::from_ns(100), limit),
            &Tier::switches(rate, Span::from_ns(250), limit),
        )
        .with_switch_ports(|port| *port = port.clone().with_algorithm(&marker));
        let run = |mut sim: Sim| {
            let mut flows = flows.clone();
            flows.sort_by_key(|flow| flow.2);
            for (id, (src, dst, at, bytes)) in (0..).zip(flows) {
                let dst = if src == dst { (dst + 1) % 12 } else { dst };
                let key = u64::from(src * 12 + dst);
                let route = sim.net.route(HostId::new(src), HostId::new(dst), key, 0).unwrap();
                sim.run_before(Time::from_ps(at));
                let mut packet = sim.packet(route, bytes, id);
                packet.congestion.ecn = Ecn::Capable;
                packet.class = ClassId::new(u8::from(bytes < 1000));
                sim.send(packet);
            }
            sim.run();
            let now = sim.now();
            let ports: Vec<PortCounters> =
                sim.net.ports().map(|port| sim.net.port_counters(port, now)).collect();
            (sim.delivered, sim.dropped, *sim.net.counters(), ports)
        };
        let fifo = run(Sim::new(topology.build(seed).unwrap()));
        for least in [PortKind::Lazy, PortKind::Event] {
            let other = run(Sim::new(topology.build_at_least(seed, least).unwrap()));
            prop_assert_eq!(&fifo, &other);
        }
        let strict = topology.with_switch_ports(|port| {
            let data = ClassConfig { priority: 1, ..port.classes[0].clone() };
            port.classes = vec![data, ClassConfig::default()];
        });
        let kinds = [PortKind::Fifo, PortKind::Event];
        let [strict, general] =
            kinds.map(|least| run(Sim::new(strict.build_at_least(seed, least).unwrap())));
        prop_assert_eq!(strict, general);
    }
}

#[test]
fn the_configuration_chooses_the_kind() {
    let port = PortConfig::new(Rate::from_gbps(100), Bytes::MAX);
    assert_eq!(port.kind(), PortKind::Fifo);
    assert_eq!(PortConfig { pausable: true, ..port.clone() }.kind(), PortKind::Event);
    assert_eq!(PortConfig { variable: true, ..port.clone() }.kind(), PortKind::Event);
    let with = |priority, weight| {
        let other = ClassConfig { priority, weight, ..ClassConfig::default() };
        PortConfig { classes: vec![ClassConfig::default(), other], ..port.clone() }
    };
    assert_eq!(with(1, 1).kind(), PortKind::Lazy);
    assert_eq!(with(0, 1).kind(), PortKind::Lazy);
    assert_eq!(PortConfig { pausable: true, ..with(1, 1) }.kind(), PortKind::Event);
    let marker = EcnMarker::new(Bytes::new(3000)).at(MarkAt::Dequeue);
    let marked = with(1, 1).with_algorithm(&BuiltInSwitch::Ecn(marker));
    assert_eq!(marked.kind(), PortKind::Event);
    let topology = wire(port);
    for least in [PortKind::Fifo, PortKind::Lazy, PortKind::Event] {
        let sim = Sim::build_at_least(&topology, least);
        assert_eq!(sim.net.port_kind(PortId::new(0)), least);
    }
}
