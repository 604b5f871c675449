//! Paths: shortest, symmetric, balanced, re-drawn by label.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{LinkSpec, Network, Sim, Topology};
use crate::support::{gbps, host_tier, switch_tier};
use apus_fabric::{Avoided, Node, RouteError, Sent};
use apus_units::{HostId, PortId, SwitchId};

fn shapes() -> Vec<(&'static str, Topology)> {
    let (hosts, switches) = (host_tier(gbps(100)), switch_tier(gbps(100)));
    let fat_tree = |k, per_edge| {
        Topology::fat_tree(k, per_edge, &hosts, &switches, &switches).expect("k is even")
    };
    vec![
        ("star", Topology::star(9, &hosts)),
        ("dumbbell", Topology::dumbbell(3, 4, &hosts, &switches)),
        ("parking lot", Topology::parking_lot(5, 2, &hosts, &switches)),
        ("leaf-spine", Topology::leaf_spine(4, 5, 3, &hosts, &switches)),
        ("fat tree, k = 4", fat_tree(4, 2)),
        ("fat tree, k = 4, oversubscribed", fat_tree(4, 6)),
        ("fat tree, k = 8", fat_tree(8, 4)),
    ]
}

fn host(n: u32) -> HostId {
    HostId::new(n)
}

fn path(net: &mut Network<u32>, src: u32, dst: u32, key: u64, label: u32) -> Vec<PortId> {
    let route = net.route(host(src), host(dst), key, label).expect("a path");
    net.route_ports(route)
}

#[test]
fn the_return_path_is_the_forward_path_reversed() {
    for (name, topology) in shapes() {
        for seed in [0, 1, 0xdead_beef] {
            let mut net: Network<u32> = topology.build(seed).unwrap();
            for n in 0..2000_u64 {
                let hosts = u64::from(net.hosts());
                let src = (n.wrapping_mul(7919) % hosts) as u32;
                let dst = (n.wrapping_mul(104_729) / 3 % hosts) as u32;
                if src == dst {
                    continue;
                }
                let there = path(&mut net, src, dst, n, n as u32 % 5);
                let back = path(&mut net, dst, src, n, n as u32 % 5);
                let ends = |net: &Network<u32>, port| net.port_ends(port);
                let reversed: Vec<(Node, Node)> = back
                    .iter()
                    .rev()
                    .map(|port| ends(&net, *port))
                    .map(|(from, to)| (to, from))
                    .collect();
                let forward: Vec<(Node, Node)> =
                    there.iter().map(|port| ends(&net, *port)).collect();
                assert_eq!(forward, reversed, "{name}: {src} -> {dst}");
                // The path is connected from end to end.
                assert_eq!(forward[0].0, Node::Host(host(src)));
                assert_eq!(forward.last().unwrap().1, Node::Host(host(dst)));
                assert!(forward.windows(2).all(|pair| pair[0].1 == pair[1].0));
            }
        }
    }
}

#[test]
fn paths_are_shortest() {
    let (_, topology) = shapes().pop().unwrap();
    let mut net: Network<u32> = topology.build(0).unwrap();
    for (dst, hops) in [(1, 2), (4, 4), (15, 4), (16, 6), (127, 6)] {
        assert_eq!(path(&mut net, 0, dst, 5, 0).len(), hops, "host 0 -> host {dst}");
    }
}

/// Returns the number of `flows` that use each link that `pick` selects.
fn usage(
    net: &mut Network<u32>,
    flows: impl Iterator<Item = (u32, u32, u64)>,
    pick: impl Fn(&str) -> bool,
) -> BTreeMap<String, u32> {
    let mut usage = BTreeMap::new();
    for port in net.ports().map(|port| net.port_name(port)).filter(|name| pick(name)) {
        usage.insert(port, 0);
    }
    for (src, dst, key) in flows {
        for port in path(net, src, dst, key, 0) {
            if let Some(count) = usage.get_mut(&net.port_name(port)) {
                *count += 1;
            }
        }
    }
    usage
}

/// Checks that every count is within 5 standard deviations of the mean.
fn assert_balanced(usage: &BTreeMap<String, u32>) {
    let mean = f64::from(usage.values().sum::<u32>()) / usage.len() as f64;
    assert!(mean > 50.0, "too few flows to tell");
    for (port, count) in usage {
        let off = (f64::from(*count) - mean).abs();
        assert!(off < 5.0 * mean.sqrt(), "{port} carries {count} flows, the mean is {mean}");
    }
}

#[test]
fn every_core_and_uplink_is_used_about_equally() {
    for k in [4_u32, 8] {
        let switches = switch_tier(gbps(100));
        let topology =
            Topology::fat_tree(k, k / 2, &host_tier(gbps(100)), &switches, &switches).unwrap();
        let mut net: Network<u32> = topology.build(11).unwrap();
        let (hosts, pod) = (net.hosts(), net.hosts() / k);
        // Every host sends 200 flows to its counterpart in the next pod: same addresses, different
        // keys.
        let flows = (0..hosts * 200).map(|n| {
            let src = n % hosts;
            (src, (src + pod) % hosts, u64::from(n))
        });
        let up = usage(&mut net, flows.clone(), |name| {
            name.starts_with("agg") && name.contains("-> core")
        });
        assert_eq!(up.len() as u32, k * k * k / 4);
        assert_balanced(&up);
        let edge =
            usage(&mut net, flows, |name| name.starts_with("edge") && name.contains("-> agg"));
        assert_eq!(edge.len() as u32, k * k * k / 4);
        assert_balanced(&edge);
    }
}

#[test]
fn flows_of_one_key_to_many_hosts_spread_too() {
    let topology = Topology::leaf_spine(8, 16, 4, &host_tier(gbps(100)), &switch_tier(gbps(100)));
    let mut net: Network<u32> = topology.build(5).unwrap();
    let flows = (0..16_u32).flat_map(|src| (16..128).map(move |dst| (src, dst, 0)));
    let up = usage(&mut net, flows, |name| name.starts_with("leaf 0 -> spine"));
    assert_balanced(&up);
}

#[test]
fn only_labels_and_seeds_change_paths() {
    let (_, topology) = shapes().pop().unwrap();
    let mut net: Network<u32> = topology.build(0).unwrap();
    let first = path(&mut net, 0, 127, 9, 0);
    assert_eq!(path(&mut net, 0, 127, 9, 0), first);
    let by_label: BTreeSet<_> = (0..200).map(|label| path(&mut net, 0, 127, 9, label)).collect();
    assert_eq!(by_label.len(), 16, "all 16 shortest paths are drawn by 200 labels");
    let by_seed: BTreeSet<_> =
        (0..200).map(|seed| path(&mut topology.build(seed).unwrap(), 0, 127, 9, 0)).collect();
    assert_eq!(by_seed.len(), 16);
}

#[test]
fn a_path_taken_again_costs_no_memory() {
    let (_, topology) = shapes().pop().unwrap();
    let mut net: Network<u32> = topology.build(0).unwrap();
    for label in 0..1000 {
        let route = net.reroute(host(0), host(127), 9, label).unwrap();
        assert_eq!(net.route_ports(route), path(&mut topology.build(0).unwrap(), 0, 127, 9, label));
    }
    let end = net.routes_end();
    for label in 1000..2000 {
        net.reroute(host(0), host(127), 9, label).unwrap();
    }
    assert_eq!(net.routes_end(), end, "all 16 shortest paths were in use");
}

#[test]
fn impossible_routes_are_errors_with_a_reason() {
    let mut topology = Topology::dumbbell(1, 1, &host_tier(gbps(100)), &switch_tier(gbps(100)));
    topology.links.pop();
    let mut net: Network<u32> = topology.build(0).unwrap();
    let error = net.route(host(0), host(1), 0, 0).unwrap_err();
    assert_eq!(error, RouteError::NoPath { src: host(0), dst: host(1) });
    assert!(error.to_string().contains("no path leads from host 0 to host 1"), "{error}");
    let error = net.route(host(0), host(7), 0, 0).unwrap_err();
    assert!(error.to_string().contains("unknown host 7: the topology has 2 hosts"), "{error}");
    let error = net.route(host(1), host(1), 0, 0).unwrap_err();
    assert_eq!(error, RouteError::SameHost(host(1)));
}

/// A packet can pass 63 switches, and is dropped at the 64th.
#[test]
fn a_chain_longer_than_a_packet_lives_has_no_route() {
    let chain = |switches| {
        Topology::parking_lot(switches, 1, &host_tier(gbps(100)), &switch_tier(gbps(100)))
    };
    let mut sim = Sim::build(&chain(63));
    let route = sim.net.route(host(0), host(62), 0, 0).expect("a path");
    assert_eq!(sim.net.route_ports(route).len(), 64);
    let packet = sim.packet(route, 1000, 0);
    assert_eq!(sim.send(packet), Sent::Accepted);
    sim.run();
    assert_eq!((sim.delivered.len(), sim.dropped.len()), (1, 0));
    let mut long: Network<u32> = chain(64).build(0).unwrap();
    let error = long.route(host(0), host(63), 0, 0).unwrap_err();
    assert!(error.to_string().contains("through at most 63 switches"), "{error}");
    assert_eq!(long.path_set(host(0), host(63)), Err(error));
    let switches: Vec<String> = (0..64).map(|switch| format!("switch {switch}")).collect();
    let error = chain(64).path(host(0), &switches, host(63)).unwrap_err();
    assert_eq!(error, "has 64 switches, but a packet visits at most 63; name fewer");
}

/// The detour around a ring of 64 switches is too long for a packet: the planned path stays.
#[test]
fn a_detour_longer_than_a_packet_lives_is_none() {
    let avoiding = |switches: u32| {
        let mut ring =
            Topology::parking_lot(switches, 1, &host_tier(gbps(100)), &switch_tier(gbps(100)));
        let between =
            |link: &&LinkSpec| matches!((link.a, link.b), (Node::Switch(_), Node::Switch(_)));
        let mut closing = ring.links.iter().find(between).expect("a link").clone();
        closing.a = Node::Switch(SwitchId::new(switches - 1));
        closing.b = Node::Switch(SwitchId::new(0));
        ring.links.push(closing);
        let mut net: Network<u32> = ring.build(0).unwrap();
        let planned = net.route(host(0), host(1), 0, 0).expect("a path");
        let planned = net.route_ports(planned);
        let links = vec![planned[1]];
        net.prepare_detours(&[Avoided {
            local: links.clone(),
            global: links,
            ..Avoided::default()
        }])
        .expect("few routes");
        net.set_detours(Some(0));
        let around = net.reroute(host(0), host(1), 0, 0).expect("a path");
        (planned, net.route_ports(around))
    };
    assert_eq!(avoiding(63).1.len(), 64);
    let (planned, around) = avoiding(64);
    assert_eq!(around, planned);
}
