//! The example of `docs/adding-a-topology.md`: a ring of switches, from a list of links.

use apus_algorithms::BuiltInSwitch;
use apus_fabric::{Node, SwitchSpec};
use apus_units::{Bytes, HostId, Rate, Span, SwitchId};

type LinkSpec = apus_fabric::LinkSpec<BuiltInSwitch>;
type Network<P> = apus_fabric::Network<P, BuiltInSwitch>;
type PortConfig = apus_fabric::PortConfig<BuiltInSwitch>;
type Topology = apus_fabric::Topology<BuiltInSwitch>;

/// Returns `switches` switches in a ring, each with one host: host `h` is on "ring h". Links: those
/// of the hosts in their order, then from each switch to the next.
fn ring(switches: u32, rate: Rate, delay: Span, buffer: Bytes) -> Topology {
    let link = |a: Node, b: Node| LinkSpec {
        a,
        b,
        delay,
        ab: PortConfig::new(rate, buffer),
        ba: PortConfig::new(rate, buffer),
    };
    let host = |n| Node::Host(HostId::new(n));
    let switch = |n| Node::Switch(SwitchId::new(n % switches));
    let to_hosts = (0..switches).map(|n| link(host(n), switch(n)));
    let around = (0..switches).map(|n| link(switch(n), switch(n + 1)));
    Topology {
        hosts: switches,
        switches: (0..switches).map(|n| SwitchSpec::new(format!("ring {n}"))).collect(),
        links: to_hosts.chain(around).collect(),
    }
}

#[test]
fn a_ring_routes_the_shorter_way() {
    let ring = ring(6, Rate::from_gbps(100), Span::from_us(1), Bytes::new(1_000_000));
    let mut network: Network<()> = ring.build(1).expect("a ring");
    assert_eq!((network.hosts(), network.switches()), (6, 6));
    let mut hops = |to| {
        let route = network.route(HostId::new(0), HostId::new(to), 0, 0).expect("connected");
        network.route_ports(route).len()
    };
    // Links from host 0: one to its switch, 1 to 3 around the ring, one to the host.
    assert_eq!([1, 2, 3, 4, 5].map(&mut hops), [3, 4, 5, 4, 3]);
}
