//! Clusters whose hosts have several ports: planes and rails.

use alloc::format;
use alloc::vec::Vec;

use apus_cc::SwitchHalf;
use apus_units::{HostId, SwitchId};

use super::{Node, SwitchSpec, Tier, Topology};

/// Sizes of a cluster with rails ([`Topology::rails`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rails {
    /// Number of hosts, which are nodes with several NICs.
    pub nodes: u32,
    /// Number of NICs of a node, one per rail.
    pub nics: u32,
    /// Number of ports of a NIC, each in a separate plane.
    pub planes: u32,
    /// Number of nodes whose NICs share leaf switches.
    pub nodes_per_leaf: u32,
    /// Number of spine switches of a plane; without spines, rails are separate networks.
    pub spines: u32,
}

impl Rails {
    /// Returns the number of groups of nodes that share leaf switches.
    #[must_use]
    pub const fn groups(&self) -> u32 {
        self.nodes.div_ceil(self.nodes_per_leaf)
    }

    /// Returns the number of leaf switches of a plane.
    const fn leaves_per_plane(&self) -> u32 {
        self.groups() * self.nics
    }

    /// Returns the number of leaf switches.
    #[must_use]
    pub const fn leaves(&self) -> u32 {
        self.leaves_per_plane() * self.planes
    }

    fn leaf(&self, plane: u32, group: u32, nic: u32) -> u32 {
        plane * self.leaves_per_plane() + group * self.nics + nic
    }
}

impl<W: SwitchHalf> Topology<W> {
    /// Returns this topology repeated `planes` times, with the same hosts: host port p is in plane
    /// p, and planes share only the hosts.
    ///
    /// Switches and links are those of plane 0, then those of plane 1 and so on. With several
    /// planes, the names of switches start with the plane: "plane 1 leaf 3".
    #[must_use]
    pub fn in_planes(self, planes: u32) -> Self {
        if planes == 1 {
            return self;
        }
        let count = self.switches.len() as u32;
        let mut all = Self { hosts: self.hosts, switches: Vec::new(), links: Vec::new() };
        for plane in 0..planes {
            let moved = |node: Node| match node {
                Node::Host(_) => node,
                Node::Switch(switch) => Node::Switch(SwitchId::new(plane * count + switch.get())),
            };
            all.switches.extend(self.switches.iter().map(|switch| SwitchSpec {
                name: format!("plane {plane} {}", switch.name),
                ..switch.clone()
            }));
            all.links.extend(self.links.iter().map(|link| {
                let (a, b) = (moved(link.a), moved(link.b));
                super::LinkSpec { a, b, ..link.clone() }
            }));
        }
        all
    }

    /// Returns a cluster with one NIC per rail in each node. NIC i of each node is on a leaf switch
    /// of rail i, and `nodes_per_leaf` nodes, a group, share these switches. Spines connect all
    /// leaves of a plane. NICs have one port per plane.
    ///
    /// Host port `i * planes + p` is port p of NIC i. Switches: the leaves of plane 0, group by
    /// group and within a group rail by rail (with 8 rails, "leaf 12" is that of rail 4 in group
    /// 1), then those of the other planes, then the spines of plane 0 and so on. Links: those of
    /// host 0 in the order of its ports and so on, then those of leaf 0 to the spines of its plane,
    /// then those of leaf 1 and so on.
    #[must_use]
    pub fn rails(size: &Rails, edge: &Tier<W>, up: &Tier<W>) -> Self {
        let mut links = Vec::new();
        for node in 0..size.nodes {
            let host = Node::Host(HostId::new(node));
            for nic in 0..size.nics {
                for plane in 0..size.planes {
                    let leaf = size.leaf(plane, node / size.nodes_per_leaf, nic);
                    links.push(edge.link(host, Node::Switch(SwitchId::new(leaf))));
                }
            }
        }
        let leaves = size.leaves();
        for leaf in 0..leaves {
            let plane = leaf / size.leaves_per_plane();
            for spine in 0..size.spines {
                let spine = SwitchId::new(leaves + plane * size.spines + spine);
                links.push(up.link(Node::Switch(SwitchId::new(leaf)), Node::Switch(spine)));
            }
        }
        let leaf_names = (0..leaves).map(|leaf| format!("leaf {leaf}"));
        let names = leaf_names.chain((0..size.spines * size.planes).map(|n| format!("spine {n}")));
        Self { hosts: size.nodes, switches: names.map(SwitchSpec::new).collect(), links }
    }
}
