//! Which part of a network each thread simulates.

use apus_fabric::{Network, Node};
use apus_units::{HostId, PortId, Span};
use apus_wire::Header;

/// The division of a network into parts: hosts in blocks of neighbours, each switch with most of
/// what it connects, so that few links are cut.
#[derive(Clone, Debug)]
pub(crate) struct Partition {
    /// By host and by switch.
    hosts: Vec<u32>,
    switches: Vec<u32>,
    parts: u32,
}

impl Partition {
    /// Divides `network` into at most `threads` parts; into one if it cannot be cut, because a link
    /// to be cut has no delay.
    pub(crate) fn new(network: &Network<Header>, threads: u32) -> Self {
        let parts = threads.clamp(1, network.hosts().max(1));
        let partition = Self::divide(network, parts);
        if parts > 1 && partition.lookahead(network).is_zero() {
            return Self::divide(network, 1);
        }
        partition
    }

    fn divide(network: &Network<Header>, parts: u32) -> Self {
        let (hosts, switches) = (network.hosts(), network.switches());
        let block = |host: u32| (u64::from(host) * u64::from(parts) / u64::from(hosts)) as u32;
        let mut partition = Self {
            hosts: (0..hosts).map(block).collect(),
            switches: vec![u32::MAX; switches as usize],
            parts,
        };
        let mut neighbours = vec![Vec::new(); switches as usize];
        for port in network.ports() {
            if let (Node::Switch(switch), peer) = network.port_ends(port) {
                neighbours[switch.index()].push(peer);
            }
        }
        // Tier by tier from the hosts up: a switch joins the part that most of its neighbours are
        // in; where several have the most, as at the top, the switches take turns.
        let mut open: Vec<usize> = (0..neighbours.len()).collect();
        while !open.is_empty() {
            let mut placed = Vec::new();
            for &switch in &open {
                let mut votes = vec![0u32; parts as usize];
                for &peer in &neighbours[switch] {
                    if let Some(part) = partition.placed(peer) {
                        votes[part as usize] += 1;
                    }
                }
                let most = votes.iter().copied().max().unwrap_or(0);
                if most > 0 {
                    let leaders: Vec<u32> =
                        (0..parts).filter(|&part| votes[part as usize] == most).collect();
                    placed.push((switch, leaders[switch % leaders.len()]));
                }
            }
            if placed.is_empty() {
                // What no host reaches carries nothing.
                placed = open.iter().map(|&switch| (switch, 0)).collect();
            }
            for &(switch, part) in &placed {
                partition.switches[switch] = part;
            }
            open.retain(|switch| partition.switches[*switch] == u32::MAX);
        }
        partition
    }

    fn placed(&self, node: Node) -> Option<u32> {
        Some(self.part_of(node)).filter(|&part| part != u32::MAX)
    }

    /// How many parts there are.
    pub(crate) fn parts(&self) -> u32 {
        self.parts
    }

    /// The part that simulates `node`.
    pub(crate) fn part_of(&self, node: Node) -> u32 {
        match node {
            Node::Host(host) => self.hosts[host.index()],
            Node::Switch(switch) => self.switches[switch.index()],
        }
    }

    /// The first host of a part.
    pub(crate) fn first_host(&self, part: u32) -> HostId {
        HostId::new(self.hosts.partition_point(|&p| p < part) as u32)
    }

    /// Ports whose link leads from one part into another.
    pub(crate) fn cut<'a>(
        &'a self,
        network: &'a Network<Header>,
    ) -> impl Iterator<Item = PortId> + 'a {
        network.ports().filter(|&port| {
            let (from, to) = network.port_ends(port);
            self.part_of(from) != self.part_of(to)
        })
    }

    /// How far parts may run ahead of each other: the smallest delay of a link that is cut.
    pub(crate) fn lookahead(&self, network: &Network<Header>) -> Span {
        self.cut(network).map(|port| network.delay(port)).min().unwrap_or(Span::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::Partition;
    use apus_fabric::{Network, Tier, Topology};
    use apus_units::{Bytes, Rate, Span};
    use apus_wire::Header;

    fn fat_tree(delay: Span) -> Network<Header> {
        let tier = Tier::hosts(Rate::from_gbps(100), delay, Bytes::new(1 << 20));
        let tree = Topology::fat_tree(8, 4, &tier, &tier, &tier).expect("fat tree");
        tree.build(1).expect("network")
    }

    /// Pods stay whole: only links between aggregation and core are cut. With two parts half of
    /// each core's 8 links are, in both directions: 16 cores x 4 x 2.
    #[test]
    fn a_fat_tree_is_cut_at_its_core_only() {
        let network = fat_tree(Span::from_us(1));
        let partition = Partition::new(&network, 2);
        assert_eq!(partition.cut(&network).count(), 128);
        assert_eq!(partition.lookahead(&network), Span::from_us(1));
        assert_eq!(partition.first_host(1).get(), 64);
    }

    #[test]
    fn links_without_delay_are_not_cut() {
        assert_eq!(Partition::new(&fat_tree(Span::ZERO), 2).parts(), 1);
    }
}
