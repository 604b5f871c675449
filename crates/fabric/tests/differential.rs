//! The same traffic through both kinds of port: equal to the picosecond.

mod support;

use apus_cc::dctcp::switch::EcnMarker;
use apus_cc::{Ecn, SwitchAlgorithm};
use apus_fabric::{PortConfig, PortCounters, PortKind, Sent, Tier, Topology};
use apus_units::{Bytes, HostId, PortId, Rate, Span, Time};
use proptest::prelude::*;
use support::{Delivery, Sim, wire};

/// When a packet comes, relative to the one before.
#[derive(Clone, Debug)]
enum Gap {
    Ps(u64),
    /// Exactly when the port runs empty: the tie.
    WhenIdle,
}

#[derive(Clone, Debug)]
struct Arrival {
    gap: Gap,
    bytes: u32,
    capable: bool,
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let gap = prop_oneof![
        2 => Just(Gap::Ps(0)),
        6 => (0..400_000_u64).prop_map(Gap::Ps),
        2 => Just(Gap::WhenIdle),
        1 => (0..10_000_000_u64).prop_map(Gap::Ps),
    ];
    let bytes = prop_oneof![Just(84_u32), Just(1538), Just(4178), 1..9216_u32];
    let arrival = (gap, bytes, any::<bool>());
    let arrival = arrival.prop_map(|(gap, bytes, capable)| Arrival { gap, bytes, capable });
    prop::collection::vec(arrival, 1..200)
}

fn rates() -> impl Strategy<Value = Rate> {
    prop::sample::select(vec![1, 10, 25, 40, 100, 102, 400]).prop_map(Rate::from_gbps)
}

/// Everything that can be seen of a port.
#[derive(Debug, PartialEq)]
struct Observed {
    sent: Vec<Sent>,
    seen: Vec<(PortCounters, Bytes, u64, Time)>,
    delivered: Vec<Delivery>,
}

fn observe(mut sim: Sim, arrivals: &[Arrival], events_first: bool) -> Observed {
    let port = PortId::new(0);
    let route = sim.route(0, 1);
    let (mut sent, mut seen) = (Vec::new(), Vec::new());
    for (id, arrival) in (0..).zip(arrivals) {
        let at = match arrival.gap {
            Gap::Ps(gap) => sim.now() + Span::from_ps(gap),
            Gap::WhenIdle => sim.net.busy_until(port).max(sim.now()),
        };
        if events_first {
            sim.run_through(at);
        } else {
            sim.run_before(at);
        }
        let idle = sim.net.busy_until(port).max(at);
        seen.push((
            sim.net.port_counters(port, at),
            sim.net.queue_bytes(port, at),
            sim.net.queue_packets(port, at),
            idle,
        ));
        let mut packet = sim.packet(route, arrival.bytes, id);
        packet.congestion.ecn = if arrival.capable { Ecn::Capable } else { Ecn::NotCapable };
        sent.push(sim.send(packet));
        sim.net.check_conservation().unwrap();
    }
    sim.run();
    let end = sim.now();
    seen.push((sim.net.port_counters(port, end), Bytes::ZERO, 0, end));
    Observed { sent, seen, delivered: sim.delivered }
}

proptest! {
    #[test]
    fn one_port(
        rate in rates(),
        limit in prop_oneof![Just(Bytes::MAX), (1000..60_000_u64).prop_map(Bytes::new)],
        threshold in (0..30_000_u64).prop_map(Bytes::new),
        arrivals in arrivals(),
    ) {
        let marker = SwitchAlgorithm::Ecn(EcnMarker::new(threshold));
        let topology = wire(PortConfig::new(rate, limit).with_algorithm(&marker));
        let fifo = observe(Sim::build(&topology), &arrivals, false);
        for events_first in [false, true] {
            let class = observe(Sim::build_class_ports(&topology), &arrivals, events_first);
            prop_assert_eq!(&fifo, &class);
        }
    }

    #[test]
    fn a_network(
        rate in rates(),
        seed in any::<u64>(),
        flows in prop::collection::vec((0..12_u32, 0..12_u32, 0..3_000_000_u64, 64..5000_u32), 1..200),
    ) {
        let limit = Bytes::new(20_000);
        let marker = SwitchAlgorithm::Ecn(EcnMarker::new(Bytes::new(6000)));
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
                sim.send(packet);
            }
            sim.run();
            let now = sim.now();
            let ports: Vec<PortCounters> =
                sim.net.ports().map(|port| sim.net.port_counters(port, now)).collect();
            (sim.delivered, sim.dropped, *sim.net.counters(), ports)
        };
        let fifo = run(Sim::new(topology.build(seed).unwrap()));
        let class = run(Sim::new(topology.build_forcing_class_ports(seed).unwrap()));
        prop_assert_eq!(fifo, class);
    }
}

#[test]
fn the_configuration_chooses_the_kind() {
    let port = PortConfig::new(Rate::from_gbps(100), Bytes::MAX);
    assert_eq!(port.kind(), PortKind::Fifo);
    assert_eq!(PortConfig { pausable: true, ..port.clone() }.kind(), PortKind::Class);
    assert_eq!(PortConfig { variable: true, ..port.clone() }.kind(), PortKind::Class);
    let topology = wire(port);
    assert_eq!(Sim::build(&topology).net.port_kind(PortId::new(0)), PortKind::Fifo);
    assert_eq!(Sim::build_class_ports(&topology).net.port_kind(PortId::new(0)), PortKind::Class);
}
