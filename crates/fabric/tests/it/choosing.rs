//! Switches that choose the next hop of packets.

use apus_cc::SwitchChoice;
use apus_fabric::{Avoided, Buffer, Node, Sent, Way};
use apus_units::{Bytes, ClassId, HostId, PortId, Span, SwitchId};

use crate::support::{ClassConfig, Delivery, Sim, Tier, Topology, gbps};

/// Returns two leaves with one host each and four spines, with links of 100 Gb/s between switches
/// and this buffer for each port. The hosts are ten times as fast, so that queues form at the
/// leaves.
fn topology(buffer: Buffer) -> Topology {
    let hosts = Tier::hosts(gbps(1000), Span::from_us(1), Bytes::MAX);
    let mut spines = Tier::switches(gbps(100), Span::from_us(1), Bytes::MAX);
    (spines.up.buffer, spines.down.buffer) = (buffer, buffer);
    Topology::leaf_spine(2, 1, 4, &hosts, &spines)
}

/// Returns a network with a buffer of 100 kB at each port.
fn sim(rule: SwitchChoice) -> (Sim, Way) {
    let mut sim = Sim::build(&topology(Buffer::Own(Bytes::new(100_000))));
    let way = sim.net.let_switches_choose(rule, 7);
    assert_eq!(sim.net.let_switches_choose(rule, 7), way, "a rule has one number");
    (sim, way)
}

/// Sends packets whose route starts as path `number` and that follow it in this `way`.
fn send(sim: &mut Sim, number: u32, way: Way, ids: std::ops::Range<u32>) {
    let set = sim.net.path_set(HostId::new(0), HostId::new(1)).expect("paths");
    assert_eq!(set.count(), 4);
    for id in ids {
        let mut packet = sim.packet(set.route(number), 1000, id);
        packet.way = way;
        assert_eq!(sim.send(packet), Sent::Accepted);
    }
}

/// Returns the number of packets that leaf 0 sent to each spine.
fn sent(sim: &Sim) -> Vec<u64> {
    let leaf = Node::Switch(SwitchId::new(0));
    let uplinks = sim.net.ports().filter(|&port: &PortId| {
        let (from, to) = sim.net.port_ends(port);
        from == leaf && matches!(to, Node::Switch(_))
    });
    uplinks.map(|port| sim.net.port_counters(port, sim.now()).offered.packets).collect()
}

#[test]
fn packets_take_ports_in_turn() {
    let (mut sim, way) = sim(SwitchChoice::InTurn);
    send(&mut sim, 0, way, 0..8);
    sim.run();
    assert_eq!(sent(&sim), [2; 4]);
    let set = sim.net.path_set(HostId::new(0), HostId::new(1)).expect("paths");
    let mut numbers: Vec<u32> = sim
        .delivered
        .iter()
        .map(|delivery| set.reversed().number_of(delivery.packet.route).expect("one of the paths"))
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 0, 1, 1, 2, 2, 3, 3], "the receiver knows the path");
    // Packets that follow their route, and small packets, keep the route.
    send(&mut sim, 1, Way::FORWARD, 8..12);
    let set = sim.net.path_set(HostId::new(0), HostId::new(1)).expect("paths");
    let mut small = sim.packet(set.route(1), 99, 12);
    small.way = way;
    assert_eq!(sim.send(small), Sent::Accepted);
    sim.run();
    let mut expected = sent(&sim);
    expected.sort_unstable();
    assert_eq!(expected, [2, 2, 2, 7]);
}

/// Sends 12 packets along path 2, and then 12 that switches may redirect. 12 packets of 1000 B
/// leave the host in 96 ns, and a port needs 80 ns for each. The queue of path 2 therefore exceeds
/// 5 % of its room, about 100 kB. The load of the other paths stays below that, so that they share
/// the second 12 packets.
fn check_that_the_loaded_port_is_avoided(topology: &Topology) {
    let mut sim = Sim::build(topology);
    let period = Span::from_ns(1);
    let rule = SwitchChoice::LeastLoaded { levels: [0.05, 0.1, 0.2], period };
    let way = sim.net.let_switches_choose(rule, 7);
    send(&mut sim, 2, Way::FORWARD, 0..12);
    send(&mut sim, 0, way, 12..24);
    sim.run();
    let mut ports = sent(&sim);
    ports.sort_unstable();
    assert_eq!(ports[3], 12, "none joins the loaded port: {ports:?}");
    assert_eq!(ports[..3].iter().sum::<u64>(), 12);
    assert!(sim.dropped.is_empty());
}

#[test]
fn packets_avoid_the_port_with_more_load() {
    check_that_the_loaded_port_is_avoided(&topology(Buffer::Own(Bytes::new(100_000))));
}

/// Five ports of a switch share 600 kB. If all are at their thresholds, each has 600 kB * 0.5 /
/// (1 + 0.5 * 5), which is 86 kB.
#[test]
fn packets_avoid_the_port_with_more_load_of_a_shared_memory() {
    let topology = topology(Buffer::Shared { alpha: 0.5 });
    check_that_the_loaded_port_is_avoided(&topology.with_shared_buffer(Bytes::new(600_000)));
}

/// Packets at distances below the gap keep their port; over 64 gaps, each of four ports is chosen.
#[test]
fn a_flowlet_keeps_its_port_until_a_gap() {
    let gap = Span::from_us(2);
    let (mut sim, way) = sim(SwitchChoice::Flowlet { gap, least_loaded: false, places: 16 });
    for id in 0..20 {
        send(&mut sim, 0, way, id..id + 1);
        sim.run_before(sim.now() + Span::from_us(1));
    }
    sim.run();
    let mut ports = sent(&sim);
    ports.sort_unstable();
    assert_eq!(ports, [0, 0, 0, 20]);
    for id in 20..84 {
        send(&mut sim, 0, way, id..id + 1);
        sim.run_before(sim.now() + Span::from_us(3));
    }
    sim.run();
    assert!(sent(&sim).iter().all(|packets| *packets > 0), "{:?}", sent(&sim));
}

/// The link from leaf 0 to one spine is avoided: packets take the other three ports in turn,
/// whether or not their paths were stored before.
#[test]
fn switches_choose_among_detours() {
    for known in [true, false] {
        let (mut sim, way) = sim(SwitchChoice::InTurn);
        let ends = (HostId::new(0), HostId::new(1));
        if known {
            sim.net.path_set(ends.0, ends.1).expect("paths");
        }
        let lost = sim.net.ports().find(|&port| sim.net.port_name(port) == "leaf 0 -> spine 2");
        let avoided = Avoided { local: lost.into_iter().collect(), ..Avoided::default() };
        sim.net.prepare_detours(&[avoided]).expect("few routes");
        sim.net.set_detours(Some(0));
        let set = sim.net.path_set(ends.0, ends.1).expect("paths");
        for id in 0..12 {
            let mut packet = sim.packet(set.route(0), 1000, id);
            packet.way = way;
            assert_eq!(sim.send(packet), Sent::Accepted);
        }
        sim.run();
        assert_eq!(sent(&sim), [4, 4, 0, 4], "{known}");
        let back = set.reversed();
        let is_known = |delivery: &Delivery| back.number_of(delivery.packet.route).is_some();
        assert!(sim.delivered.iter().all(is_known), "the receiver knows the path");
    }
}

/// A queue of 12 kB is short for a class with 1 MB of room, and long for a class with 20 kB. Each
/// class sees its own load, even within the period of the other.
#[test]
fn each_class_has_its_own_load_of_a_port() {
    let hosts = Tier::hosts(gbps(1000), Span::from_us(1), Bytes::MAX);
    let spines = Tier::switches(gbps(100), Span::from_us(1), Bytes::MAX);
    let classes = [1_000_000, 20_000]
        .map(|limit| ClassConfig { limit: Bytes::new(limit), ..ClassConfig::default() });
    let topology = Topology::leaf_spine(2, 1, 4, &hosts, &spines)
        .with_switch_ports(|port| port.classes = classes.to_vec());
    let mut sim = Sim::build(&topology);
    let period = Span::from_ms(1);
    let rule = SwitchChoice::LeastLoaded { levels: [0.05, 0.1, 0.2], period };
    let way = sim.net.let_switches_choose(rule, 7);
    send(&mut sim, 2, Way::FORWARD, 0..12);
    send(&mut sim, 0, way, 12..13);
    let set = sim.net.path_set(HostId::new(0), HostId::new(1)).expect("paths");
    for id in 13..37 {
        let mut packet = sim.packet(set.route(0), 500, id);
        (packet.way, packet.class) = (way, ClassId::new(1));
        assert_eq!(sim.send(packet), Sent::Accepted);
    }
    sim.run();
    let leaf = Node::Switch(SwitchId::new(0));
    let small = |port: PortId| {
        let (from, to) = sim.net.port_ends(port);
        let is_uplink = from == leaf && matches!(to, Node::Switch(_));
        is_uplink.then(|| sim.net.class_counters(port, ClassId::new(1), sim.now()).offered.packets)
    };
    let small: Vec<u64> = sim.net.ports().filter_map(small).collect();
    assert_eq!((small[2], small.iter().sum::<u64>()), (0, 24), "{small:?}");
}
