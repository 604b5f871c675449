//! Every packet is delivered, dropped or still in the fabric, in any sequence of events.

use crate::support::{ClassConfig, PortConfig, Tier, Topology};
use crate::support::{Sim, gbps};
use apus_fabric::{Buffer, RateLimit, SchedulerKind};
use apus_units::{Bytes, ClassId, HostId, PortId, Rate, Span, Time};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Op {
    Send { src: u32, dst: u32, bytes: u32, class: u8, ttl: u8 },
    Pause { port: u32, class: u8, paused: bool },
    Link { port: u32, up: bool },
    Rate { port: u32, gbps: u64 },
}

const HOSTS: u32 = 16;
/// The ports of switches to other switches: all ports above those of the hosts' links.
const SWITCH_PORTS: std::ops::Range<u32> = 2 * HOSTS..96;

fn op() -> impl Strategy<Value = Op> {
    let send = (0..HOSTS, 0..HOSTS - 1, 64..5000_u32, 0..4_u8, 1..64_u8).prop_map(
        |(src, other, bytes, class, ttl)| Op::Send {
            src,
            dst: (src + 1 + other) % HOSTS,
            bytes,
            class,
            ttl,
        },
    );
    let pause = (SWITCH_PORTS, 0..3_u8, any::<bool>())
        .prop_map(|(port, class, paused)| Op::Pause { port, class, paused });
    let link = (SWITCH_PORTS, any::<bool>()).prop_map(|(port, up)| Op::Link { port, up });
    let rate = (SWITCH_PORTS, 1..400_u64).prop_map(|(port, gbps)| Op::Rate { port, gbps });
    prop_oneof![40 => send, 3 => pause, 1 => link, 1 => rate]
}

fn classes() -> Vec<ClassConfig> {
    let rate_limit = Some(RateLimit { rate: gbps(5), burst: Bytes::new(6000) });
    vec![
        ClassConfig { priority: 0, rate_limit, limit: Bytes::new(20_000), ..Default::default() },
        ClassConfig { priority: 1, weight: 3, ..Default::default() },
        ClassConfig { priority: 1, weight: 1, ..Default::default() },
    ]
}

fn topology(scheduler: SchedulerKind) -> Topology {
    let mut hosts = Tier::hosts(gbps(100), Span::from_ns(500), Bytes::new(15_000));
    hosts.up = PortConfig::new(gbps(100), Bytes::new(50_000));
    let mut switches = Tier::switches(gbps(40), Span::from_ns(500), Bytes::ZERO);
    for port in [&mut switches.up, &mut switches.down] {
        port.buffer = Buffer::Shared { alpha: 0.5 };
        port.classes = classes();
        port.scheduler = scheduler;
        port.pausable = true;
        port.variable = true;
    }
    Topology::fat_tree(4, 2, &hosts, &switches, &switches)
        .unwrap()
        .with_shared_buffer(Bytes::new(60_000))
}

proptest! {
    #[test]
    fn under_random_traffic_pauses_and_failures(
        seed in any::<u64>(),
        scheduler in prop::sample::select(SchedulerKind::WORDS.map(|(_, kind)| kind).to_vec()),
        ops in prop::collection::vec((0..300_000_u64, op()), 1..300),
    ) {
        let mut sim = Sim::new(topology(scheduler).build(seed).unwrap());
        let mut id = 0;
        for (gap, op) in ops {
            let now = Time::from_ps(sim.now().as_ps() + gap);
            sim.run_before(now);
            match op {
                Op::Send { src, dst, bytes, class, ttl } => {
                    let (src, dst) = (HostId::new(src), HostId::new(dst));
                    let route = sim.net.route(src, dst, u64::from(id % 7), 0).unwrap();
                    let mut packet = sim.packet(route, bytes, id);
                    packet.class = ClassId::new(class);
                    packet.ttl = ttl;
                    sim.send(packet);
                    id += 1;
                }
                Op::Pause { port, class, paused } => {
                    let (port, class) = (PortId::new(port), ClassId::new(class));
                    sim.net.set_paused(now, port, class, paused, &mut sim.engine).unwrap();
                }
                Op::Link { port, up } => {
                    sim.net.set_link_up(now, PortId::new(port), up, &mut sim.engine).unwrap();
                }
                Op::Rate { port, gbps } => {
                    let rate = Rate::from_gbps(gbps);
                    sim.net.set_rate(now, PortId::new(port), rate, &mut sim.engine).unwrap();
                }
            }
            prop_assert_eq!(sim.net.check_conservation(), Ok(()));
        }
        for (port, class) in SWITCH_PORTS.flat_map(|p| (0..3).map(move |c| (p, c))) {
            let (port, class, now) = (PortId::new(port), ClassId::new(class), sim.now());
            sim.net.set_paused(now, port, class, false, &mut sim.engine).unwrap();
        }
        sim.run();
        prop_assert_eq!(sim.net.check_conservation(), Ok(()));
        let counters = *sim.net.counters();
        prop_assert_eq!(counters.in_flight(), 0);
        prop_assert_eq!(counters.sent, u64::from(id));
        prop_assert_eq!(counters.delivered, sim.delivered.len() as u64);
        prop_assert!(sim.net.pool().is_empty());
        let now = sim.now();
        let dropped: u64 =
            sim.net.ports().map(|p| sim.net.port_counters(p, now).dropped.packets).sum();
        let at_ports =
            counters.dropped_total() - counters.dropped[apus_fabric::DropReason::Ttl as usize];
        prop_assert_eq!(dropped, at_ports);
        let mut by_reason = apus_fabric::Drops::default();
        for port in sim.net.ports() {
            let drops = sim.net.drops(port);
            by_reason.iter_mut().zip(drops).for_each(|(sum, more)| *sum += more);
        }
        prop_assert_eq!(by_reason, counters.dropped);
        for port in sim.net.ports() {
            let counters = sim.net.port_counters(port, now);
            prop_assert_eq!(counters.queued.packets, 0);
            prop_assert!(counters.byte_time >= counters.packet_time);
        }
    }
}
