//! `kind` of a topology: its hosts, its switches and their links.

mod read;

use crate::set::{Tier, Topology};
use std::sync::Arc;

use apus_fabric::{Rails, TopologyError};
use apus_sim::plan::{LocalNetwork, Nics};
use apus_units::Rate;

use super::declared::{Key, Kind, KindKeys, key};
use super::graph::{GraphSpec, LINK, MAX_HOSTS};
use super::links::{LINKS, Links, read_links};
use super::section::{MAX_DELAY, Section};
use crate::import::MAX_LINKS;
use read::Reader;

/// Declares a number of nodes, small enough that products do not overflow.
const fn nodes(name: &'static str, doc: &'static str) -> Key {
    key(name, Kind::Count, doc).within(1, MAX_HOSTS)
}

/// Declares a table of links between switches.
const fn upper(name: &'static str, doc: &'static str) -> Key {
    key(name, Kind::Table(&LINKS), doc)
}

const SCALE_UP_RATE: Key = key(
    "scale_up_rate",
    Kind::Rate,
    "Rate of each rank, in each direction, in the network within its node. It is the default of `local_rate` of jobs",
)
.at_least(1);

const SCALE_UP_DELAY: Key = key(
    "scale_up_delay",
    Kind::Time,
    "Delay of the network within a node. It is the default of `local_delay` of jobs",
)
.at_most(MAX_DELAY.as_ps())
.or("0s");

/// Number of disjoint networks on each of which hosts have a port.
const PLANES: Key = key(
    "planes",
    Kind::Count,
    "Number of equal networks that share nothing except the hosts. Each host (with `rails`, each NIC) has a port of \
     `rate` on each plane. A path policy that spreads packets uses all planes; a flow with one path uses one plane",
)
.within(1, 64)
.or("1");

/// The kinds of topology by name, with their meaning and keys.
pub const TOPOLOGIES: [KindKeys; 7] = [
    KindKeys {
        name: "star",
        doc: "`hosts` hosts on one switch",
        keys: &[nodes("hosts", "Number of hosts"), PLANES],
    },
    KindKeys {
        name: "dumbbell",
        doc: "`left` and `right` hosts on two switches, which the link `middle` connects",
        keys: &[
            nodes("left", "Number of hosts on the left switch"),
            nodes("right", "Number of hosts on the right switch"),
            upper("middle", "Settings in which the link between the switches differs from the links of hosts"),
        ],
    },
    KindKeys {
        name: "leaf-spine",
        doc: "`leaves` switches with `hosts_per_leaf` hosts each; every leaf has an `uplink` to each of the `spines`",
        keys: &[
            nodes("leaves", "Number of leaf switches"),
            nodes("hosts_per_leaf", "Number of hosts of each leaf switch"),
            nodes("spines", "Number of spine switches; not needed with `oversubscription`"),
            key(
                "oversubscription",
                Kind::Number,
                "Total rate of the hosts of a leaf, divided by the total rate of its uplinks. It determines `spines`; if both are given, they must agree",
            )
            .above_0_to(1024.0),
            upper("uplink", "Settings in which the links between leaf and spine switches differ from the links of hosts"),
            PLANES,
        ],
    },
    KindKeys {
        name: "fat-tree",
        doc: "`k`-port switches in three tiers; `aggregation` and `core` set the links between the tiers",
        keys: &[
            key("k", Kind::Count, "Number of ports of each switch; must be even").within(2, 128),
            nodes("hosts_per_edge", "Number of hosts of each edge switch. Default: `k` / 2"),
            upper(
                "aggregation",
                "Settings in which the links between edge and aggregation switches differ from the links of hosts",
            ),
            upper("core", "Settings in which the links between aggregation and core switches differ from the links of hosts"),
            PLANES,
        ],
    },
    KindKeys {
        name: "rails",
        doc: "`nodes` with one NIC per rail: NIC i of each node is on a leaf switch of rail i, and `spines` connect the rails",
        keys: &[
            nodes("nodes", "Number of nodes. Each node is a host with `nics` NICs; each rank of a job uses one NIC"),
            key("nics", Kind::Count, "Number of NICs of each node, which is also the number of rails").within(1, 64).or("8"),
            PLANES,
            nodes("nodes_per_leaf", "Number of nodes whose NICs share leaf switches. Default: all nodes"),
            key(
                "spines",
                Kind::Count,
                "Number of spine switches of each plane. Without spines, a message to another rail first crosses the network within its node",
            )
            .within(0, MAX_HOSTS)
            .or("0"),
            upper("uplink", "Settings in which the links between leaf and spine switches differ from the links of hosts"),
            SCALE_UP_RATE,
            SCALE_UP_DELAY,
        ],
    },
    KindKeys {
        name: "parking-lot",
        doc: "a chain of `switches` with `hosts_per_switch` hosts each; `chain` sets the links between the switches",
        keys: &[
            nodes("switches", "Number of switches"),
            nodes("hosts_per_switch", "Number of hosts of each switch"),
            upper("chain", "Settings in which the links between switches differ from the links of hosts"),
        ],
    },
    KindKeys {
        name: "links",
        doc: "links listed one by one, in tables `[[topology.link]]` or in a `file` (.topo of htsim, topology.txt of \
              the HPCC simulator or of SimAI, or InfraGraph)",
        keys: &[
            key(
                "link",
                Kind::Tables(&LINK),
                "A link. Its settings replace those of `[topology]`",
            ),
            key(
                "file",
                Kind::Text,
                "File with the links: .topo of htsim, topology.txt of the HPCC simulator or of SimAI, or InfraGraph",
            ),
            key("text", Kind::Text, "Content of such a file, in place of `file`"),
            key(
                "servers",
                Kind::Flag,
                "For topologies of SimAI. `true`: each server is a host; it has the NICs of its GPUs, and its \
                 NVSwitches are the network within the host. `false`: each GPU is a host, and NVSwitches are left \
                 out",
            ),
            key(
                "nics",
                Kind::Count,
                "Number of NICs of each host. The links of a host are divided among its NICs, in their order; each \
                 rank of a job uses one NIC. If not given, messages use all links of a host",
            )
            .within(1, 64),
            SCALE_UP_RATE,
            SCALE_UP_DELAY,
        ],
    },
];

/// The readers of topologies, in the order of [`TOPOLOGIES`].
const READERS: [fn(&Reader<'_>) -> Option<Shape>; TOPOLOGIES.len()] = [
    read::star,
    read::dumbbell,
    read::leaf_spine,
    read::fat_tree,
    read::rails,
    read::parking_lot,
    read::graph,
];

/// Hosts and switches, how many of each, and the links between switches.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    Star { hosts: u32, planes: u32 },
    Dumbbell { left: u32, right: u32, middle: Links },
    LeafSpine { leaves: u32, hosts_per_leaf: u32, spines: u32, uplink: Links, planes: u32 },
    FatTree { k: u32, hosts_per_edge: u32, aggregation: Links, core: Links, planes: u32 },
    Rails { size: Rails, uplink: Links, scale_up: Option<LocalNetwork> },
    ParkingLot { switches: u32, hosts_per_switch: u32, chain: Links },
    Graph(Arc<GraphSpec>),
}

impl Shape {
    /// Reads the shape and the links of its hosts, as far as they are valid.
    pub(super) fn read(
        section: &Section<'_>,
        shared: bool,
        packet: u64,
    ) -> (Option<Self>, Option<Links>) {
        let kind = section.kind();
        // A graph sets each link, other kinds set all links of hosts.
        let is_graph = kind.is_some_and(|kind| TOPOLOGIES[kind].name == "links");
        let edge = match is_graph {
            true => None,
            false => read_links(section, None, shared, packet),
        };
        let reader = Reader { section, edge, shared, packet };
        let shape = kind.and_then(|kind| READERS[kind](&reader));
        let edge = match shape.as_ref().and_then(Self::graph) {
            Some(graph) => graph.links.first().map(|link| link.links),
            None => edge,
        };
        (shape, edge)
    }

    /// Returns the nodes and links if they are listed one by one.
    pub(super) fn graph(&self) -> Option<&GraphSpec> {
        match self {
            Self::Graph(graph) => Some(graph),
            Self::Star { .. }
            | Self::Dumbbell { .. }
            | Self::LeafSpine { .. }
            | Self::FatTree { .. }
            | Self::Rails { .. }
            | Self::ParkingLot { .. } => None,
        }
    }

    /// Returns the smallest number of ports of a NIC. In a graph without `nics`, the ports of a host form one
    /// NIC.
    pub(super) fn planes(&self) -> u32 {
        match *self {
            Self::Star { planes, .. }
            | Self::LeafSpine { planes, .. }
            | Self::FatTree { planes, .. } => planes,
            Self::Rails { size, .. } => size.planes,
            Self::Graph(ref graph) => match graph.nics {
                Some(nics) => u32::from(nics.ports),
                None => graph.min_ports(),
            },
            Self::Dumbbell { .. } | Self::ParkingLot { .. } => 1,
        }
    }

    /// Returns the NICs of hosts, of which each rank of a job has one, and the network within hosts.
    pub(super) fn nics(&self) -> Option<(Nics, Option<LocalNetwork>)> {
        if let Some(graph) = self.graph() {
            return graph.nics.map(|nics| (nics, graph.scale_up));
        }
        let Self::Rails { size, scale_up, .. } = self else { return None };
        // At most 64.
        let (count, ports) = (size.nics as u8, size.planes as u8);
        Some((Nics { count, ports, are_joined: size.spines > 0 }, *scale_up))
    }

    /// Returns the number of hosts.
    pub(super) fn hosts(&self) -> u64 {
        let product = |numbers: &[u32]| numbers.iter().fold(1, |p, n| p * u64::from(*n));
        match *self {
            Self::Graph(ref graph) => u64::from(graph.hosts),
            Self::ParkingLot { switches, hosts_per_switch, .. } => {
                product(&[switches, hosts_per_switch])
            }
            Self::Star { hosts, .. } => u64::from(hosts),
            Self::Rails { size, .. } => u64::from(size.nodes),
            Self::Dumbbell { left, right, .. } => u64::from(left) + u64::from(right),
            Self::LeafSpine { leaves, hosts_per_leaf, .. } => product(&[leaves, hosts_per_leaf]),
            Self::FatTree { k, hosts_per_edge, .. } => product(&[k, k / 2, hosts_per_edge]),
        }
    }

    /// Returns an upper bound of the egress ports of the longest path between two hosts. No path passes a
    /// switch twice.
    pub(super) fn longest_path(&self) -> u64 {
        match *self {
            Self::Star { .. } => 2,
            Self::Dumbbell { .. } => 3,
            Self::LeafSpine { .. } => 4,
            Self::FatTree { .. } => 6,
            Self::Rails { size, .. } => {
                if size.spines > 0 {
                    4
                } else {
                    2
                }
            }
            Self::ParkingLot { switches, .. } => u64::from(switches) + 1,
            Self::Graph(ref graph) => graph.longest_path(),
        }
    }

    /// Returns the number of shortest paths between two hosts: that of most pairs, or in a graph the mean.
    pub(super) fn paths(&self) -> u64 {
        let of_plane = match *self {
            Self::Star { .. } | Self::Dumbbell { .. } | Self::ParkingLot { .. } => 1,
            Self::LeafSpine { spines, .. } => u64::from(spines),
            Self::FatTree { k, .. } => u64::from(k / 2).pow(2),
            Self::Rails { size, .. } => u64::from(size.spines.max(1)),
            Self::Graph(ref graph) => graph.paths(),
        };
        of_plane.saturating_mul(u64::from(self.planes()))
    }

    fn links(&self) -> u64 {
        let between = match *self {
            Self::Graph(ref graph) => return graph.links.len() as u64,
            Self::ParkingLot { switches, .. } => u64::from(switches) - 1,
            Self::Star { .. } => 0,
            Self::Dumbbell { .. } => 1,
            Self::LeafSpine { leaves, spines, .. } => u64::from(leaves) * u64::from(spines),
            Self::FatTree { k, .. } => u64::from(k).pow(3) / 2,
            Self::Rails { size, .. } => {
                let ports = u64::from(size.nics) * u64::from(size.planes);
                return self.hosts() * ports + u64::from(size.leaves()) * u64::from(size.spines);
            }
        };
        (self.hosts() + between) * u64::from(self.planes())
    }

    /// Builds the topology without shared buffers and classes.
    pub(super) fn build(&self, edge: Links) -> Result<Topology, TopologyError> {
        let edge = Tier::hosts(edge.rate, edge.delay, edge.buffer);
        let upper = |links: Links| Tier::switches(links.rate, links.delay, links.buffer);
        Ok(match self {
            Self::Graph(graph) => graph.build(),
            &Self::ParkingLot { switches, hosts_per_switch, chain } => {
                Topology::parking_lot(switches, hosts_per_switch, &edge, &upper(chain))
            }
            &Self::Star { hosts, planes } => Topology::star(hosts, &edge).in_planes(planes),
            &Self::Dumbbell { left, right, middle } => {
                Topology::dumbbell(left, right, &edge, &upper(middle))
            }
            &Self::LeafSpine { leaves, hosts_per_leaf, spines, uplink, planes } => {
                let up = upper(uplink);
                Topology::leaf_spine(leaves, hosts_per_leaf, spines, &edge, &up).in_planes(planes)
            }
            &Self::FatTree { k, hosts_per_edge, aggregation, core, planes } => {
                let (aggregation, core) = (upper(aggregation), upper(core));
                let tree = Topology::fat_tree(k, hosts_per_edge, &edge, &aggregation, &core)?;
                tree.in_planes(planes)
            }
            Self::Rails { size, uplink, .. } => Topology::rails(size, &edge, &upper(*uplink)),
        })
    }

    /// Returns every kind of link, that of hosts first.
    pub(super) fn kinds_of_links(&self, edge: Links) -> Vec<Links> {
        let mut links = vec![edge];
        match self {
            Self::Star { .. } => {}
            Self::Graph(graph) => links.extend(graph.links.iter().map(|link| link.links)),
            Self::Dumbbell { middle: upper, .. }
            | Self::LeafSpine { uplink: upper, .. }
            | Self::ParkingLot { chain: upper, .. } => {
                links.push(*upper);
            }
            Self::Rails { size, uplink, .. } => links.extend((size.spines > 0).then_some(*uplink)),
            Self::FatTree { aggregation, core, .. } => links.extend([*aggregation, *core]),
        }
        links
    }

    /// Returns the number of each host in the file from which the topology was read, in ascending order; `None`
    /// if hosts are numbered from 0.
    pub(super) fn host_numbers(&self) -> Option<&[u32]> {
        self.graph().map(|graph| graph.numbers.as_slice()).filter(|numbers| !numbers.is_empty())
    }

    /// Returns the elements of the topology's file that the topology leaves out, as a sentence.
    pub(super) fn left_out(&self) -> Option<&str> {
        self.graph().and_then(|graph| graph.left_out.as_deref())
    }

    /// Returns the rack of each host: the hosts of one switch. All hosts of a `links` topology are
    /// in one rack.
    pub(super) fn racks(&self) -> Vec<u32> {
        let hosts = self.hosts() as u32;
        let rack = |host: u32| match *self {
            Self::Star { .. } | Self::Graph(_) => 0,
            Self::Dumbbell { left, .. } => u32::from(host >= left),
            Self::LeafSpine { hosts_per_leaf: size, .. }
            | Self::FatTree { hosts_per_edge: size, .. }
            | Self::ParkingLot { hosts_per_switch: size, .. } => host / size,
            Self::Rails { size, .. } => host / size.nodes_per_leaf,
        };
        (0..hosts).map(rack).collect()
    }

    /// Returns the rate of each host: the sum over its ports.
    pub(super) fn host_rates(&self, edge: Links) -> Vec<Rate> {
        let nics = if let Self::Rails { size, .. } = self { size.nics } else { 1 };
        let rate = edge.rate.saturating_mul(u64::from(nics) * u64::from(self.planes()));
        match self.graph() {
            Some(graph) => graph.host_rates(),
            None => vec![rate; self.hosts() as usize],
        }
    }

    /// Reports a number of hosts or links that is too large.
    pub(super) fn check_size(&self, section: &Section<'_>) {
        let (hosts, links) = (self.hosts(), self.links());
        let limit = format!("a topology has 2 to {MAX_HOSTS} hosts and at most {MAX_LINKS} links");
        section.check(
            (2..=MAX_HOSTS).contains(&hosts) && links <= MAX_LINKS,
            "kind",
            format_args!("gives {hosts} hosts and {links} links, but {limit}"),
        );
    }
}
