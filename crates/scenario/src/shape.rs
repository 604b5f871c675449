//! `kind` of a topology: its hosts, its switches and their links.

use crate::set::{Tier, Topology};
use std::sync::Arc;

use apus_fabric::TopologyError;
use apus_units::Rate;

use super::declared::{Key, Kind, KindKeys, key};
use super::graph::{GraphSpec, LINK, MAX_HOSTS};
use super::links::{LINKS, Links, read_links, read_upper};
use super::section::Section;
use crate::import::{End, MAX_LINKS};

/// A number of nodes, small enough that products do not overflow.
const fn nodes(name: &'static str, doc: &'static str) -> Key {
    key(name, Kind::Count, doc).within(1, MAX_HOSTS)
}

/// Links between switches.
const fn upper(name: &'static str, doc: &'static str) -> Key {
    key(name, Kind::Table(&LINKS), doc)
}

/// The kinds of topology by name, with their meaning and keys.
pub const TOPOLOGIES: [KindKeys; 6] = [
    KindKeys { name: "star", doc: "`hosts` hosts on one switch", keys: &[nodes("hosts", "Hosts")] },
    KindKeys {
        name: "dumbbell",
        doc: "`left` and `right` hosts on two switches, joined by the link `middle`",
        keys: &[
            nodes("left", "Hosts on the left switch"),
            nodes("right", "Hosts on the right switch"),
            upper("middle", "Differences of the link between the switches from those of hosts"),
        ],
    },
    KindKeys {
        name: "leaf-spine",
        doc: "`leaves` switches of `hosts_per_leaf` hosts, each with an `uplink` to all `spines`",
        keys: &[
            nodes("leaves", "Leaf switches"),
            nodes("hosts_per_leaf", "Hosts of each leaf switch"),
            nodes("spines", "Spine switches"),
            upper("uplink", "Differences of links between leaf and spine from those of hosts"),
        ],
    },
    KindKeys {
        name: "fat-tree",
        doc: "of `k`-port switches in three tiers: links, `aggregation`, `core`",
        keys: &[
            key("k", Kind::Count, "Ports of a switch, an even number").within(2, 128),
            nodes("hosts_per_edge", "Hosts of each edge switch; `k` / 2 if not given"),
            upper(
                "aggregation",
                "Differences of links between edge and aggregation from those of hosts",
            ),
            upper("core", "Differences of links between aggregation and core from those of hosts"),
        ],
    },
    KindKeys {
        name: "parking-lot",
        doc: "a chain of `switches` with `hosts_per_switch` hosts each, joined by links `chain`",
        keys: &[
            nodes("switches", "Switches"),
            nodes("hosts_per_switch", "Hosts of each switch"),
            upper("chain", "Differences of links between switches from those of hosts"),
        ],
    },
    KindKeys {
        name: "links",
        doc: "each link in a table `[[topology.link]]`, or in a `file`: .topo of htsim, topology.txt of the \
              HPCC simulator, or InfraGraph",
        keys: &[
            key(
                "link",
                Kind::Tables(&LINK),
                "A link, with the settings that differ from the topology's",
            ),
            key(
                "file",
                Kind::Text,
                "A .topo of htsim, a topology.txt of the HPCC simulator, or a file of InfraGraph",
            ),
            key("text", Kind::Text, "The text of such a file"),
        ],
    },
];

/// The readers of topologies, in the order of [`TOPOLOGIES`].
const READERS: [fn(&Reader<'_>) -> Option<Shape>; TOPOLOGIES.len()] =
    [read_star, read_dumbbell, read_leaf_spine, read_fat_tree, read_parking_lot, read_graph];

/// Arguments of the readers of topologies.
struct Reader<'a> {
    section: &'a Section<'a>,
    /// The links of hosts, if they could be read.
    edge: Option<Links>,
    /// The ports of a switch share its memory.
    shared: bool,
    /// The largest packet.
    packet: u64,
}

impl Reader<'_> {
    fn count(&self, key: &'static str) -> Option<u32> {
        self.section.require(key)
    }

    fn upper(&self, key: &'static str) -> Option<Links> {
        read_upper(self.section, key, self.edge, self.shared, self.packet)
    }
}

fn read_star(reader: &Reader<'_>) -> Option<Shape> {
    reader.count("hosts").map(|hosts| Shape::Star { hosts })
}

fn read_dumbbell(reader: &Reader<'_>) -> Option<Shape> {
    let (left, right) = (reader.count("left"), reader.count("right"));
    let middle = reader.upper("middle");
    Some(Shape::Dumbbell { left: left?, right: right?, middle: middle? })
}

fn read_leaf_spine(reader: &Reader<'_>) -> Option<Shape> {
    let (leaves, hosts_per_leaf) = (reader.count("leaves"), reader.count("hosts_per_leaf"));
    let (spines, uplink) = (reader.count("spines"), reader.upper("uplink"));
    Some(Shape::LeafSpine {
        leaves: leaves?,
        hosts_per_leaf: hosts_per_leaf?,
        spines: spines?,
        uplink: uplink?,
    })
}

fn read_fat_tree(reader: &Reader<'_>) -> Option<Shape> {
    let (aggregation, core) = (reader.upper("aggregation"), reader.upper("core"));
    let section = reader.section;
    let k: u32 = section.require("k")?;
    section.check(k.is_multiple_of(2), "k", format_args!("must be an even number, but it is {k}"));
    let hosts_per_edge = section.get_or("hosts_per_edge", k / 2);
    Some(Shape::FatTree { k, hosts_per_edge, aggregation: aggregation?, core: core? })
}

fn read_parking_lot(reader: &Reader<'_>) -> Option<Shape> {
    let (switches, hosts_per_switch) = (reader.count("switches"), reader.count("hosts_per_switch"));
    let chain = reader.upper("chain");
    Some(Shape::ParkingLot {
        switches: switches?,
        hosts_per_switch: hosts_per_switch?,
        chain: chain?,
    })
}

fn read_graph(reader: &Reader<'_>) -> Option<Shape> {
    GraphSpec::read(reader.section, reader.shared, reader.packet).map(Shape::Graph)
}

/// Hosts and switches, how many of each, and the links between switches.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    Star { hosts: u32 },
    Dumbbell { left: u32, right: u32, middle: Links },
    LeafSpine { leaves: u32, hosts_per_leaf: u32, spines: u32, uplink: Links },
    FatTree { k: u32, hosts_per_edge: u32, aggregation: Links, core: Links },
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
            | Self::ParkingLot { .. } => None,
        }
    }

    /// Returns the number of hosts.
    pub(super) fn hosts(&self) -> u64 {
        let product = |numbers: &[u32]| numbers.iter().fold(1, |p, n| p * u64::from(*n));
        match *self {
            Self::Graph(ref graph) => u64::from(graph.hosts),
            Self::ParkingLot { switches, hosts_per_switch, .. } => {
                product(&[switches, hosts_per_switch])
            }
            Self::Star { hosts } => u64::from(hosts),
            Self::Dumbbell { left, right, .. } => u64::from(left) + u64::from(right),
            Self::LeafSpine { leaves, hosts_per_leaf, .. } => product(&[leaves, hosts_per_leaf]),
            Self::FatTree { k, hosts_per_edge, .. } => product(&[k, k / 2, hosts_per_edge]),
        }
    }

    /// Egress ports of the longest path between two hosts, at most. No path passes a switch twice.
    pub(super) fn longest_path(&self) -> u64 {
        match *self {
            Self::Star { .. } => 2,
            Self::Dumbbell { .. } => 3,
            Self::LeafSpine { .. } => 4,
            Self::FatTree { .. } => 6,
            Self::ParkingLot { switches, .. } => u64::from(switches) + 1,
            Self::Graph(ref graph) => graph.longest_path(),
        }
    }

    fn links(&self) -> u64 {
        let between = match *self {
            Self::Graph(ref graph) => return graph.links.len() as u64,
            Self::ParkingLot { switches, .. } => u64::from(switches) - 1,
            Self::Star { .. } => 0,
            Self::Dumbbell { .. } => 1,
            Self::LeafSpine { leaves, spines, .. } => u64::from(leaves) * u64::from(spines),
            Self::FatTree { k, .. } => u64::from(k).pow(3) / 2,
        };
        self.hosts() + between
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
            &Self::Star { hosts } => Topology::star(hosts, &edge),
            &Self::Dumbbell { left, right, middle } => {
                Topology::dumbbell(left, right, &edge, &upper(middle))
            }
            &Self::LeafSpine { leaves, hosts_per_leaf, spines, uplink } => {
                Topology::leaf_spine(leaves, hosts_per_leaf, spines, &edge, &upper(uplink))
            }
            &Self::FatTree { k, hosts_per_edge, aggregation, core } => {
                Topology::fat_tree(k, hosts_per_edge, &edge, &upper(aggregation), &upper(core))?
            }
        })
    }

    /// Every kind of link, the one of hosts first.
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
            Self::FatTree { aggregation, core, .. } => links.extend([*aggregation, *core]),
        }
        links
    }

    /// The number of each host in the file that the topology is from, ascending; `None` if hosts are
    /// numbered from 0.
    pub(super) fn host_numbers(&self) -> Option<&[u32]> {
        self.graph().map(|graph| graph.numbers.as_slice()).filter(|numbers| !numbers.is_empty())
    }

    /// Returns what the topology's file has and the topology has not, as a sentence.
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
        };
        (0..hosts).map(rack).collect()
    }

    /// The rate of each host's link.
    pub(super) fn host_rates(&self, edge: Links) -> Vec<Rate> {
        let mut rates = vec![edge.rate; self.hosts() as usize];
        if let Some(graph) = self.graph() {
            for link in &graph.links {
                for end in [link.a, link.b] {
                    if let End::Host(host) = end
                        && let Some(rate) = rates.get_mut(host as usize)
                    {
                        *rate = link.links.rate;
                    }
                }
            }
        }
        rates
    }

    /// Notes a number of hosts or links that is too large.
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
