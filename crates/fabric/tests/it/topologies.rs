//! Topologies: counts, numbering, names, and errors of invalid descriptions.

use crate::support::{LinkSpec, Network, PortConfig, Topology};
use crate::support::{gbps, host_tier, switch_tier};
use apus_fabric::{Buffer, Node, Rails, RateLimit, SwitchSpec, Terminal, opposite};
use apus_units::{Bytes, HostId, PortId, Rate, Span, SwitchId};

fn fat_tree(k: u32, hosts_per_edge: u32) -> Topology {
    let tier = switch_tier(gbps(100));
    Topology::fat_tree(k, hosts_per_edge, &host_tier(gbps(100)), &tier, &tier).unwrap()
}

#[test]
fn counts() {
    let (hosts, switches) = (host_tier(gbps(100)), switch_tier(gbps(100)));
    let cases = [
        ("star", Topology::star(16, &hosts), (16, 1, 16)),
        ("dumbbell", Topology::dumbbell(3, 5, &hosts, &switches), (8, 2, 9)),
        ("parking lot", Topology::parking_lot(4, 2, &hosts, &switches), (8, 4, 11)),
        ("leaf-spine", Topology::leaf_spine(4, 10, 3, &hosts, &switches), (40, 7, 52)),
        ("fat tree, k = 4", fat_tree(4, 2), (16, 20, 48)),
        ("fat tree, k = 8", fat_tree(8, 4), (128, 80, 384)),
        ("fat tree, k = 8, 2:1", fat_tree(8, 8), (256, 80, 512)),
        ("fat tree, k = 16", fat_tree(16, 8), (1024, 320, 3072)),
    ];
    for (name, topology, (hosts, switches, links)) in cases {
        let net: Network<()> = topology.build(0).unwrap();
        assert_eq!((net.hosts(), net.switches()), (hosts, switches), "{name}");
        assert_eq!(net.ports().count(), 2 * links, "{name}");
    }
}

#[test]
fn every_switch_of_a_fat_tree_has_k_ports() {
    for k in [2, 4, 8] {
        let net: Network<()> = fat_tree(k, k / 2).build(0).unwrap();
        for switch in (0..net.switches()).map(|n| Node::Switch(SwitchId::new(n))) {
            let ports = net.ports().filter(|port| net.port_ends(*port).0 == switch).count();
            assert_eq!(ports as u32, k, "{}", net.node_name(switch));
        }
    }
}

/// Returns the egress port of `from` on its first link to `to`.
fn port_between(net: &Network<()>, from: Node, to: Node) -> Option<PortId> {
    net.ports().find(|port| net.port_ends(*port) == (from, to))
}

#[test]
fn ports_are_found_and_named() {
    let net: Network<()> = fat_tree(8, 4).build(0).unwrap();
    let host = HostId::new(17);
    let edge = Node::Switch(SwitchId::new(4));
    assert_eq!(net.node_name(edge), "edge 4");
    assert_eq!(net.host_port(host), PortId::new(34));
    assert_eq!(opposite(net.host_port(host)), PortId::new(35));
    assert_eq!(net.port_name(PortId::new(34)), "host 17 -> edge 4");
    assert_eq!(net.port_name(PortId::new(35)), "edge 4 -> host 17");
    assert_eq!(port_between(&net, edge, Node::Host(host)), Some(PortId::new(35)));
    assert_eq!(port_between(&net, edge, Node::Host(HostId::new(0))), None);
    // The first aggregation switch of pod 1 has links to cores 0 to 3.
    let agg = Node::Switch(SwitchId::new(32 + 4));
    assert_eq!(net.node_name(agg), "agg 4");
    for core in 0..16 {
        let port = port_between(&net, agg, Node::Switch(SwitchId::new(64 + core)));
        assert_eq!(port.is_some(), core < 4);
        if let Some(port) = port {
            assert_eq!(net.port_name(port), format!("agg 4 -> core {core}"));
        }
    }
}

#[test]
fn tiers_have_their_own_rates() {
    let topology = Topology::leaf_spine(2, 2, 2, &host_tier(gbps(100)), &switch_tier(gbps(400)));
    let net: Network<()> = topology.build(0).unwrap();
    assert_eq!(net.rate(net.host_port(HostId::new(3))), gbps(100));
    let leaf_to_spine =
        port_between(&net, Node::Switch(SwitchId::new(1)), Node::Switch(SwitchId::new(2)));
    assert_eq!(net.rate(leaf_to_spine.unwrap()), gbps(400));
}

fn switch(n: u32) -> Node {
    Node::Switch(SwitchId::new(n))
}

#[test]
fn an_explicit_description_may_have_parallel_links() {
    let port = || PortConfig::new(gbps(100), Bytes::MAX);
    let link = |a, b| LinkSpec { a, b, delay: Span::from_us(1), ab: port(), ba: port() };
    let host = |n| Node::Host(HostId::new(n));
    let topology = Topology {
        hosts: 2,
        switches: ["tor", "core"].map(|name| SwitchSpec::new(name.to_string())).into(),
        links: vec![
            link(host(0), switch(0)),
            link(switch(1), host(1)),
            link(switch(0), switch(1)),
            link(switch(1), switch(0)),
        ],
    };
    let mut net: Network<()> = topology.build(0).unwrap();
    let mut middle: Vec<PortId> = (0..50)
        .map(|key| {
            let route = net.route(HostId::new(0), HostId::new(1), key, 0).unwrap();
            net.route_ports(route)[1]
        })
        .collect();
    middle.sort_unstable();
    middle.dedup();
    assert_eq!(middle, [PortId::new(4), PortId::new(7)]);
    assert_eq!(net.port_name(PortId::new(7)), "tor -> core");
}

/// Returns the error of a valid star after this change.
fn error(change: impl Fn(&mut Topology)) -> String {
    let mut topology = Topology::star(3, &host_tier(gbps(100)));
    change(&mut topology);
    match topology.build::<()>(0) {
        Ok(_) => panic!("it was accepted"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn errors_name_the_place_and_a_valid_value() {
    let odd = {
        let tier = switch_tier(gbps(100));
        Topology::fat_tree(5, 2, &host_tier(gbps(100)), &tier, &tier).unwrap_err().to_string()
    };
    assert!(odd.contains("k must be even"), "{odd}");

    type Case = (&'static str, fn(&mut Topology));
    let cases: [Case; 10] = [
        ("host 2 has 0 links; every host must have 1 to 64", |t| {
            t.links.pop();
        }),
        ("link 1 ends at switch 4, which does not exist", |t| t.links[1].b = switch(4)),
        ("link 1 connects switch 0 to itself", |t| t.links[1].a = switch(0)),
        ("port host 1 -> switch 0: its rate is 0", |t| t.links[1].ab.rate = Rate::from_bps(0)),
        ("port switch 0 -> host 1: it has 0 classes", |t| t.links[1].ba.classes.clear()),
        ("class 0 has weight 0", |t| t.links[1].ba.classes[0].weight = 0),
        ("it shares the memory of switch 0, which has none", |t| {
            t.links[1].ba.buffer = Buffer::Shared { alpha: 1.0 };
        }),
        ("it shares the memory of host 1, which has none", |t| {
            t.links[1].ab.buffer = Buffer::Shared { alpha: 1.0 };
        }),
        ("alpha is NaN; it must be a finite number above 0", |t| {
            t.links[1].ba.buffer = Buffer::Shared { alpha: f64::NAN };
        }),
        ("2 classes are rate-limited; at most one", |t| {
            let class = &mut t.links[1].ba.classes[0];
            class.rate_limit = Some(RateLimit { rate: gbps(5), burst: Bytes::new(168) });
            let class = class.clone();
            t.links[1].ba.classes.push(class);
        }),
    ];
    for (expected, change) in cases {
        let error = error(change);
        assert!(error.contains(expected), "expected `{expected}`, got `{error}`");
    }
}

/// Two planes of a leaf-spine network with two spines: host port p is in plane p, path n uses port
/// n modulo 2, and the switches of plane 1 follow those of plane 0.
#[test]
fn planes_are_equal_networks_on_ports_of_their_own() {
    let topology =
        Topology::leaf_spine(2, 2, 2, &host_tier(gbps(25)), &switch_tier(gbps(25))).in_planes(2);
    let mut net = topology.build::<()>(1).expect("network");
    let host = HostId::new;
    let ports: Vec<_> = net.host_ports(host(0)).collect();
    // Plane 0 has 4 links to hosts and 4 between switches.
    assert_eq!(ports, [PortId::new(0), PortId::new(16)]);
    assert_eq!(net.port_name(ports[1]), "host 0 -> plane 1 leaf 0");
    let set = net.path_set(host(0), host(3)).expect("paths");
    assert_eq!((set.count(), set.port_pairs()), (4, 2));
    for path in 0..4 {
        let route = net.route_ports(set.route(path));
        assert_eq!((route.len(), route[0]), (4, ports[path as usize % 2]));
        let back = net.route_ports(set.reversed().route(path));
        let there: Vec<_> = back.into_iter().rev().map(opposite).collect();
        assert_eq!(route, there);
    }
    // A flow with one path takes a port by its key, the same port in both directions.
    let mut used = std::collections::BTreeSet::new();
    for key in 0..20 {
        let there = net.route(host(0), host(3), key, 0).expect("path");
        let back = net.route(host(3), host(0), key, 0).expect("path");
        let back: Vec<_> = net.route_ports(back).into_iter().rev().map(opposite).collect();
        assert_eq!(net.route_ports(there), back);
        used.insert(net.first_port(there));
    }
    assert_eq!(used.into_iter().collect::<Vec<_>>(), ports);
}

/// NIC 1 of two reaches the same rail over one switch, and another rail over a spine of the same
/// plane.
#[test]
fn rails_join_the_nics_of_one_number() {
    let size = Rails { nodes: 4, nics: 2, planes: 2, nodes_per_leaf: 2, spines: 3 };
    let mut net = Topology::rails(&size, &host_tier(gbps(50)), &switch_tier(gbps(50)))
        .build::<()>(1)
        .expect("network");
    assert_eq!((net.switches(), net.ports().count()), (8 + 6, 2 * (16 + 24)));
    let end = |node, nic: u8| Terminal { host: HostId::new(node), ports: Some((2 * nic, 2)) };
    let mut hops = |a, b| {
        let set = net.path_set(a, b).expect("paths");
        let ports = net.route_ports(set.route(0));
        let last = net.port_name(*ports.last().expect("ports"));
        (set.count(), set.port_pairs(), ports.len(), last)
    };
    // Plane 0, group 0: leaves 0 and 1; group 1: 2 and 3.
    assert_eq!(hops(end(0, 1), end(1, 1)), (2, 2, 2, "leaf 1 -> host 1".to_owned()));
    assert_eq!(hops(end(0, 1), end(2, 1)), (6, 2, 4, "leaf 3 -> host 2".to_owned()));
    assert_eq!(hops(end(0, 0), end(1, 1)), (6, 2, 4, "leaf 1 -> host 1".to_owned()));
}

#[test]
fn rails_without_spines_do_not_reach_each_other() {
    let size = Rails { nodes: 2, nics: 2, planes: 1, nodes_per_leaf: 2, spines: 0 };
    let mut net = Topology::rails(&size, &host_tier(gbps(50)), &switch_tier(gbps(50)))
        .build::<()>(1)
        .expect("network");
    let end = |node, nic: u8| Terminal { host: HostId::new(node), ports: Some((nic, 1)) };
    assert!(net.route(end(0, 1), end(1, 1), 0, 0).is_ok());
    assert!(net.route(end(0, 0), end(1, 1), 0, 0).is_err());
}
