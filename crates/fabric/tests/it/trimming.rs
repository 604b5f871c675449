//! Ports that remove the payload of packets for which they have no room (uet-htsim 40ccb05,
//! composite queue).

use crate::support::{ClassConfig, PortConfig, Tier, Topology};
use crate::support::{Sim, UNLIMITED, gbps, ps, wire};
use apus_fabric::{Count, DropReason, PortKind, Sent, Trim};
use apus_units::random::SplitMix64;
use apus_units::{Bytes, ClassId, HostId, PortId, Rate, Span, Time};

const PORT: PortId = PortId::new(0);
const DATA: ClassId = ClassId::new(0);
const HEADERS: ClassId = ClassId::new(1);
/// Times of 1500 B and 64 B at 100 Gb/s, and delay of the link.
const T: u64 = 120_000;
const H: u64 = 5_120;
const D: u64 = 1_000_000;

/// Returns classes with room for three packets of 1500 B and for two headers of 64 B, which are
/// served first.
fn classes(trim: Trim) -> Vec<ClassConfig> {
    let data = ClassConfig { priority: 1, limit: Bytes::new(4500), ..Default::default() };
    let headers = ClassConfig { priority: 0, limit: Bytes::new(128), ..Default::default() };
    vec![ClassConfig { trim: Some(trim), ..data }, headers]
}

const TRIM: Trim = Trim { class: HEADERS, bytes: 64, tail: false, keeps_headers: true, seed: 0 };

fn port(trim: Trim) -> PortConfig {
    PortConfig { classes: classes(trim), ..PortConfig::new(gbps(100), UNLIMITED) }
}

/// Trims a payload value: values from 500 upwards have nothing to remove. All others grow by 1000,
/// at a last hop by 2000.
fn remove(payload: &mut u32, last_hop: bool) -> bool {
    let can = *payload < 500;
    *payload += if !can {
        0
    } else if last_hop {
        2000
    } else {
        1000
    };
    can
}

fn sim(topology: &Topology) -> Sim {
    let mut sim = Sim::build(topology);
    sim.net.trim_packets(remove);
    sim
}

#[test]
fn a_packet_without_room_loses_its_payload_and_its_header_goes_first() {
    let mut sim = sim(&wire(port(TRIM)));
    assert_eq!(sim.net.port_kind(PORT), PortKind::Lazy);
    let route = sim.route(0, 1);
    for id in 0..5 {
        assert_eq!(sim.send_bytes(route, 1500, id), Sent::Accepted);
    }
    // The port has no room for a third header, and the last packet has no payload to remove.
    assert_eq!(sim.send_bytes(route, 1500, 5), Sent::Dropped(DropReason::Buffer));
    assert_eq!(sim.send_bytes(route, 1500, 500), Sent::Dropped(DropReason::Buffer));
    let counters = sim.net.port_counters(PORT, sim.now());
    assert_eq!((counters.trimmed, counters.headers_lost), (3, 1));
    assert_eq!(counters.offered, Count { packets: 7, bytes: 4 * 1500 + 3 * 64 });
    assert_eq!(counters.dropped, Count { packets: 2, bytes: 1564 });
    assert_eq!(counters.queued, Count { packets: 5, bytes: 4628 });
    sim.run();
    assert_eq!(sim.ids(), [0, 2003, 2004, 1, 2]);
    let expected = [T, T + H, T + 2 * H, 2 * T + 2 * H, 3 * T + 2 * H].map(|at| at + D);
    assert_eq!(sim.arrivals_ps(), expected);
    let header = &sim.delivered[1].packet;
    assert_eq!((header.wire_bytes, header.class), (64, HEADERS));
    let network = sim.net.counters();
    assert_eq!((network.trimmed, network.headers_lost), (3, 1));
    assert_eq!(sim.net.check_conservation(), Ok(()));
}

/// Either the arriving packet (3) is trimmed or the last one of the queue (2), each with
/// probability 1/2. 400 draws: 200 +- 4 standard deviations of 10.
#[test]
fn the_tail_is_trimmed_half_of_the_time() {
    let mut tails = 0;
    for seed in 0..400 {
        let mut sim = sim(&wire(port(Trim { tail: true, seed, ..TRIM })));
        let route = sim.route(0, 1);
        (0..4).for_each(|id| _ = sim.send_bytes(route, 1500, id));
        let class = sim.net.class_counters(PORT, DATA, sim.now());
        assert_eq!(class.queued, Count { packets: 3, bytes: 4500 });
        sim.run();
        match sim.ids()[..] {
            [0, 2002, 1, 3] => tails += 1,
            [0, 2003, 1, 2] => {}
            ref ids => panic!("{ids:?}"),
        }
        let last = *sim.arrivals_ps().last().expect("four packets");
        assert_eq!(last, 3 * T + H + D);
        let counters = sim.net.port_counters(PORT, sim.now());
        // Total time in the port: 1 T, T + H, 2 T + H and 3 T + H.
        assert_eq!(counters.packet_time, u128::from(7 * T + 3 * H));
    }
    assert!((160..=240).contains(&tails), "{tails} of 400");
}

/// Without headers, one packet is lost: the arriving one or the last one of the queue.
#[test]
fn the_tail_is_dropped_half_of_the_time() {
    let mut tails = 0;
    for seed in 0..400 {
        let mut sim = sim(&wire(port(Trim { tail: true, keeps_headers: false, seed, ..TRIM })));
        let route = sim.route(0, 1);
        (0..4).for_each(|id| _ = sim.send_bytes(route, 1500, id));
        let class = sim.net.class_counters(PORT, DATA, sim.now());
        assert_eq!(class.queued, Count { packets: 3, bytes: 4500 });
        let counters = sim.net.port_counters(PORT, sim.now());
        assert_eq!(counters.offered, Count { packets: 4, bytes: 6000 });
        assert_eq!(counters.dropped, Count { packets: 1, bytes: 1500 });
        assert_eq!((counters.trimmed, counters.headers_lost), (0, 0));
        sim.run();
        match sim.ids()[..] {
            [0, 1, 3] => tails += 1,
            [0, 1, 2] => {}
            ref ids => panic!("{ids:?}"),
        }
        assert_eq!(sim.net.check_conservation(), Ok(()));
    }
    assert!((160..=240).contains(&tails), "{tails} of 400");
}

/// The header of a packet that was trimmed at the last switch says so; the header of one trimmed
/// earlier does not.
#[test]
fn a_header_knows_whether_it_was_trimmed_at_the_last_hop() {
    let tier = |rate| {
        let mut tier = Tier::switches(gbps(rate), Span::from_us(1), UNLIMITED);
        for port in [&mut tier.up, &mut tier.down] {
            port.classes = classes(TRIM);
        }
        tier
    };
    // The slow link is the one to the receiver, or the one between switches.
    for (host, leaf, expected) in [(10, 100, 2000), (100, 10, 1000)] {
        let mut hosts = Tier::hosts(gbps(host), Span::from_us(1), UNLIMITED);
        hosts.up = PortConfig::new(gbps(100), UNLIMITED);
        hosts.down.classes = classes(TRIM);
        let topology = Topology::leaf_spine(2, 1, 1, &hosts, &tier(leaf));
        let mut sim = sim(&topology);
        let route = sim.route(0, 1);
        (0..8).for_each(|id| _ = sim.send_bytes(route, 1500, id));
        sim.run();
        let trimmed: Vec<u32> = sim.ids().into_iter().filter(|id| *id >= 1000).collect();
        assert!(!trimmed.is_empty());
        assert!(trimmed.iter().all(|id| id / 1000 * 1000 == expected), "{trimmed:?}");
    }
}

#[test]
fn trimming_without_effect_is_refused() {
    let refused = |change: fn(&mut PortConfig)| {
        let mut config = port(TRIM);
        change(&mut config);
        let Err(error) = wire(config).build::<u32>(1) else { panic!("it was accepted") };
        error.to_string()
    };
    let error = refused(|port| port.classes[0].limit = Bytes::MAX);
    assert!(error.contains("without effect"), "{error}");
    let error = refused(|port| port.classes[0].trim = Some(Trim { class: DATA, ..TRIM }));
    assert!(error.contains("another class"), "{error}");
    let error = refused(|port| port.classes[1].trim = Some(Trim { class: DATA, ..TRIM }));
    assert!(error.contains("at most one"), "{error}");
}

/// Random traffic with link failures and changed rates: packets are conserved in every class.
#[test]
fn trimmed_packets_are_conserved() {
    for seed in 0..60 {
        let mut random = SplitMix64::new(seed);
        let mut below = |n: u64| (random.uniform() * n as f64) as u64;
        let mut hosts = Tier::hosts(gbps(100), Span::from_ns(500), UNLIMITED);
        let mut switches = Tier::switches(gbps(40), Span::from_ns(500), UNLIMITED);
        let tail = below(2) == 0;
        for port in [&mut switches.up, &mut switches.down, &mut hosts.down] {
            port.classes = classes(Trim { tail, seed, ..TRIM });
            port.variable = true;
        }
        let topology = Topology::fat_tree(4, 2, &hosts, &switches, &switches).expect("a fat tree");
        let mut sim = sim(&topology);
        for id in 0..600 {
            let now = Time::from_ps(sim.now().as_ps() + below(60_000));
            sim.run_before(now);
            let (src, dst) = (below(16) as u32, below(4) as u32);
            if src != dst {
                let route =
                    sim.net.route(HostId::new(src), HostId::new(dst), id % 7, 0).expect("a path");
                let bytes = 64 + below(1437) as u32;
                sim.send_bytes(route, bytes, id as u32 % 600);
            }
            let port = PortId::new(32 + below(64) as u32);
            match below(20) {
                0 => sim
                    .net
                    .set_link_up(now, port, below(2) == 0, &mut sim.engine)
                    .expect("variable"),
                1 => {
                    let rate = Rate::from_gbps(1 + below(100));
                    sim.net.set_rate(now, port, rate, &mut sim.engine).expect("variable");
                }
                _ => {}
            }
            assert_eq!(sim.net.check_conservation(), Ok(()), "seed {seed}");
        }
        sim.run();
        let now = sim.now().max(ps(1));
        assert_eq!(sim.net.check_conservation(), Ok(()));
        assert!(sim.net.pool().is_empty() && sim.net.counters().trimmed > 0, "seed {seed}");
        let mut trimmed = 0;
        for port in sim.net.ports() {
            let counters = sim.net.port_counters(port, now);
            trimmed += counters.trimmed;
            assert_eq!(counters.queued, Count::default());
            assert!(counters.byte_time >= counters.packet_time);
            if sim.net.class_count(port) < 2 {
                continue;
            }
            let [data, headers] =
                [DATA, HEADERS].map(|class| sim.net.class_counters(port, class, now));
            assert_eq!(data.sent.packets + headers.sent.packets, counters.sent.packets);
            assert_eq!(data.sent.bytes + headers.sent.bytes, counters.sent.bytes);
        }
        assert_eq!(trimmed, sim.net.counters().trimmed);
    }
}
