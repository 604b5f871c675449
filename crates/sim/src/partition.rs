//! Division of a network among threads.

use apus_cc::SwitchHalf;
use apus_fabric::{Network, Node};
use apus_units::{HostId, PortId, Span};
use apus_wire::Header;

/// Division of a network into parts: hosts in blocks of neighbours, and each port in the part of that end of
/// its link that is nearer to hosts. A switch in the middle, whose links lead to several parts, is divided
/// among them. In a fat tree with undivided pods, a packet changes parts once, on its way up to the core, if
/// its hosts are in different parts; otherwise it never changes parts.
///
/// If ports of a switch affect each other without delay, each switch belongs to one part: the part of most of
/// its neighbours. If several parts have equally many of them, as at the top, the switches take turns.
#[derive(Clone, Debug)]
pub(crate) struct Partition {
    /// By host: its part. `ports` has the same by port.
    hosts: Vec<u32>,
    ports: Vec<u32>,
    /// By port: whether packets may continue in another part.
    shared: Vec<bool>,
    parts: u32,
}

impl Partition {
    /// Divides `network` into at most `threads` parts; into one part if a link to be cut has no delay.
    pub(crate) fn new<W: SwitchHalf>(network: &Network<Header, W>, threads: u32) -> Self {
        let parts = threads.clamp(1, network.hosts().max(1));
        let partition = Self::divide(network, parts);
        if parts > 1 && partition.lookahead(network).is_zero() {
            return Self::divide(network, 1);
        }
        partition
    }

    fn divide<W: SwitchHalf>(network: &Network<Header, W>, parts: u32) -> Self {
        let hosts = network.hosts();
        let block = |host: u32| (u64::from(host) * u64::from(parts) / u64::from(hosts)) as u32;
        let hosts: Vec<u32> = (0..hosts).map(block).collect();
        let tiers = Tiers::new(network, &hosts, parts);
        let whole = !network.ports_are_independent();
        let owner = |port| {
            let (from, to) = network.port_ends(port);
            let (from, to) = (tiers.of(from, &hosts), tiers.of(to, &hosts));
            if whole || from.tier <= to.tier { from.part } else { to.part }
        };
        let ports: Vec<u32> = network.ports().map(owner).collect();
        let shared = shared(network, &hosts, &ports);
        Self { hosts, ports, shared, parts }
    }

    /// Returns the number of parts.
    pub(crate) fn parts(&self) -> u32 {
        self.parts
    }

    /// Returns the part that simulates a port.
    pub(crate) fn of_port(&self, port: PortId) -> u32 {
        self.ports[port.index()]
    }

    /// Returns the first host of a part.
    pub(crate) fn first_host(&self, part: u32) -> HostId {
        HostId::new(self.hosts.partition_point(|&p| p < part) as u32)
    }

    /// Returns the parts of all ports.
    pub(crate) fn ports(&self) -> &[u32] {
        &self.ports
    }

    /// Returns the ports whose link leads packets to another part.
    pub(crate) fn cut(&self) -> impl Iterator<Item = PortId> + '_ {
        let ports = (0..).map(PortId::new).zip(&self.shared);
        ports.filter(|(_, shared)| **shared).map(|(port, _)| port)
    }

    /// Returns the maximum time by which parts may be apart: the smallest delay of a link between parts.
    pub(crate) fn lookahead<W: SwitchHalf>(&self, network: &Network<Header, W>) -> Span {
        self.cut().map(|port| network.delay(port)).min().unwrap_or(Span::MAX)
    }
}

/// Returns, by port, whether packets that it sends may continue through a port, or to a host, of another part.
fn shared<W: SwitchHalf>(network: &Network<Header, W>, hosts: &[u32], ports: &[u32]) -> Vec<bool> {
    /// Parts to which the ports of a switch belong.
    #[derive(Clone, Copy, PartialEq)]
    enum Parts {
        None,
        One(u32),
        Several,
    }
    let mut onward = vec![Parts::None; network.switches() as usize];
    for port in network.ports() {
        if let (Node::Switch(switch), _) = network.port_ends(port) {
            let (own, part) = (&mut onward[switch.index()], Parts::One(ports[port.index()]));
            *own = if *own == Parts::None || *own == part { part } else { Parts::Several };
        }
    }
    let shared = |port: PortId| {
        let part = Parts::One(ports[port.index()]);
        match network.port_ends(port).1 {
            Node::Host(host) => Parts::One(hosts[host.index()]) != part,
            Node::Switch(switch) => onward[switch.index()] != part,
        }
    };
    network.ports().map(shared).collect()
}

/// Distance of a node from the nearest host, and the part of the node if it is not divided.
#[derive(Clone, Copy, Debug)]
struct Spot {
    tier: u32,
    part: u32,
}

/// Spots of all switches, by index of the switch; `None` before a switch is placed.
struct Tiers(Vec<Option<Spot>>);

impl Tiers {
    /// Places all switches, tier by tier from the hosts upwards: a switch joins the part of most of its
    /// neighbours. If several parts have equally many of them, the switches take turns.
    fn new<W: SwitchHalf>(network: &Network<Header, W>, hosts: &[u32], parts: u32) -> Self {
        let mut neighbours = vec![Vec::new(); network.switches() as usize];
        for port in network.ports() {
            if let (Node::Switch(switch), peer) = network.port_ends(port) {
                neighbours[switch.index()].push(peer);
            }
        }
        let mut tiers = Self(vec![None; neighbours.len()]);
        let mut open: Vec<usize> = (0..neighbours.len()).collect();
        for tier in 1.. {
            let join = |switch: usize| {
                let mut votes = vec![0u32; parts as usize];
                for spot in neighbours[switch].iter().filter_map(|&peer| tiers.find(peer, hosts)) {
                    votes[spot.part as usize] += 1;
                }
                let most = votes.iter().copied().max().filter(|&most| most > 0)?;
                let leaders: Vec<u32> =
                    (0..parts).filter(|&part| votes[part as usize] == most).collect();
                Some((switch, leaders[switch % leaders.len()]))
            };
            let mut placed: Vec<_> = open.iter().filter_map(|&switch| join(switch)).collect();
            if placed.is_empty() {
                // A switch that no host reaches carries no packet.
                placed = open.iter().map(|&switch| (switch, 0)).collect();
            }
            for &(switch, part) in &placed {
                tiers.0[switch] = Some(Spot { tier, part });
            }
            open.retain(|switch| tiers.0[*switch].is_none());
            if open.is_empty() {
                break;
            }
        }
        tiers
    }

    fn find(&self, node: Node, hosts: &[u32]) -> Option<Spot> {
        match node {
            Node::Host(host) => Some(Spot { tier: 0, part: hosts[host.index()] }),
            Node::Switch(switch) => self.0[switch.index()],
        }
    }

    fn of(&self, node: Node, hosts: &[u32]) -> Spot {
        self.find(node, hosts).expect("every switch was given a place")
    }
}

#[cfg(test)]
mod tests {
    use super::Partition;
    use apus_cc::Plain;
    use apus_fabric::{Buffer, Network, Node, Tier, Topology};
    use apus_units::{Bytes, HostId, PortId, Rate, Span};
    use apus_wire::Header;

    fn fat_tree(delay: Span) -> Network<Header, Plain> {
        let tier = Tier::hosts(Rate::from_gbps(100), delay, Bytes::new(1 << 20));
        let tree = Topology::fat_tree(8, 4, &tier, &tier, &tier).expect("fat tree");
        tree.build(1).expect("network")
    }

    /// Pods are not divided. Packets change parts on the links from aggregation (of 8 pods, 4 switches each
    /// with 4 links) to the core, whose ports belong to the pods to which they lead.
    #[test]
    fn a_fat_tree_is_cut_below_its_core_only() {
        let network = fat_tree(Span::from_us(1));
        let partition = Partition::new(&network, 2);
        let cut: Vec<_> = partition.cut().map(|port| network.port_name(port)).collect();
        assert_eq!(cut.len(), 128);
        for name in cut {
            let (from, to) = name.split_once(" -> ").expect("two nodes");
            assert!(from.starts_with("agg ") && to.starts_with("core"), "{name}");
        }
        assert_eq!(partition.lookahead(&network), Span::from_us(1));
        assert_eq!(partition.first_host(1).get(), 64);
    }

    /// A packet changes parts once if its hosts are in different parts, otherwise never. With three parts,
    /// which cut pods and racks, it changes parts at most once more at each end.
    #[test]
    fn packets_cross_no_more_often_than_they_must() {
        let mut network = fat_tree(Span::from_us(1));
        for parts in [2, 3, 4] {
            let partition = Partition::new(&network, parts);
            for (from, to) in [(0, 127), (3, 64), (70, 1), (5, 6), (0, 40), (41, 45), (90, 60)] {
                let ends = [HostId::new(from), HostId::new(to)];
                let route = network.route(ends[0], ends[1], 7, 0).expect("route");
                let ports = network.route_ports(route);
                let passed = ports.iter().map(|&port| partition.of_port(port));
                let parts_of = ends.map(|host| partition.hosts[host.index()]);
                let passed: Vec<u32> = passed.chain([parts_of[1]]).collect();
                let crossed = passed.windows(2).filter(|pair| pair[0] != pair[1]).count();
                let apart = usize::from(parts_of[0] != parts_of[1]);
                let most = if parts == 3 { apart + 2 } else { apart };
                assert!((apart..=most).contains(&crossed), "{from} to {to}: {passed:?}");
            }
        }
    }

    /// The ports of switches that pause each other are in one part.
    #[test]
    fn switches_that_share_memory_stay_whole() {
        let host =
            Tier::<Plain>::hosts(Rate::from_gbps(100), Span::from_us(1), Bytes::new(1 << 20));
        let star = Topology::star(4, &host)
            .with_shared_buffer(Bytes::new(1 << 20))
            .with_switch_ports(|port| port.buffer = Buffer::Shared { alpha: 1.0 });
        let network = star.build(1).expect("network");
        assert!(!network.ports_are_independent());
        let partition = Partition::new(&network, 2);
        let of_switch = |port: &PortId| matches!(network.port_ends(*port).0, Node::Switch(_));
        let parts: Vec<u32> =
            network.ports().filter(of_switch).map(|port| partition.of_port(port)).collect();
        assert_eq!(parts, [parts[0]; 4]);
    }

    #[test]
    fn links_without_delay_are_not_cut() {
        assert_eq!(Partition::new(&fat_tree(Span::ZERO), 2).parts(), 1);
    }
}
