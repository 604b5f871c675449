//! `kind` of a topology: which hosts and switches there are, and how links join them.

use std::sync::Arc;

use apus_fabric::{Tier, Topology, TopologyError};
use apus_units::Rate;

use super::graph::{GraphSpec, MAX_HOSTS};
use super::links::{Links, read_links, read_upper};
use super::section::Section;
use crate::import::{End, MAX_LINKS};

/// The kinds of topology by name, with what they are.
pub const TOPOLOGIES: [(&str, &str); 6] = [
    ("star", "`hosts` hosts on one switch"),
    ("dumbbell", "`left` and `right` hosts on two switches, joined by the link `middle`"),
    (
        "leaf-spine",
        "`leaves` switches of `hosts_per_leaf` hosts, each with an `uplink` to all `spines`",
    ),
    ("fat-tree", "of `k`-port switches in three tiers: links, `aggregation`, `core`"),
    (
        "parking-lot",
        "a chain of `switches` with `hosts_per_switch` hosts each, joined by links `chain`",
    ),
    (
        "links",
        "each link in a table `[[topology.link]]`, or in a `file`: .topo of htsim, topology.txt of the \
         HPCC simulator",
    ),
];

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
    /// Its nodes, as far as they can be read, and the links of its hosts.
    pub(super) fn read(
        section: &Section<'_>,
        kind: Option<&'static str>,
        shared: bool,
        packet: u64,
    ) -> (Option<Self>, Option<Links>) {
        let graph = match kind {
            Some("links") => Some(GraphSpec::read(section, shared, packet)),
            _ => None,
        };
        let edge = match &graph {
            None => read_links(section, None, shared, packet),
            Some(graph) => graph.as_ref().and_then(|g| g.links.first()).map(|link| link.links),
        };
        let upper = |key| read_upper(section, key, edge, shared, packet);
        let shape = kind.and_then(|kind| match kind {
            "star" => count(section, "hosts").map(|hosts| Self::Star { hosts }),
            "dumbbell" => {
                let (left, right) = (count(section, "left"), count(section, "right"));
                let middle = upper("middle");
                Some(Self::Dumbbell { left: left?, right: right?, middle: middle? })
            }
            "leaf-spine" => {
                let leaves = count(section, "leaves");
                let hosts_per_leaf = count(section, "hosts_per_leaf");
                let (spines, uplink) = (count(section, "spines"), upper("uplink"));
                Some(Self::LeafSpine {
                    leaves: leaves?,
                    hosts_per_leaf: hosts_per_leaf?,
                    spines: spines?,
                    uplink: uplink?,
                })
            }
            "parking-lot" => {
                let switches = count(section, "switches");
                let hosts_per_switch = count(section, "hosts_per_switch");
                let chain = upper("chain");
                Some(Self::ParkingLot {
                    switches: switches?,
                    hosts_per_switch: hosts_per_switch?,
                    chain: chain?,
                })
            }
            "links" => graph.flatten().map(Self::Graph),
            _ => read_fat_tree(section, &upper),
        });
        (shape, edge)
    }

    /// How many hosts there are.
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

    /// The fabric without what shared buffers and classes add.
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
        match self {
            Self::Graph(graph) if !graph.numbers.is_empty() => Some(&graph.numbers),
            _ => None,
        }
    }

    /// The rack of each host: the hosts of one switch. Those of a `links` topology are all in one.
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
        if let Self::Graph(graph) = self {
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

/// The word for the kind of topology.
pub(super) fn read_kind(section: &Section<'_>) -> Option<&'static str> {
    match section.node("kind") {
        Some(_) => section.word("kind", &TOPOLOGIES.map(|(name, _)| name)),
        None => {
            let names: Vec<_> = TOPOLOGIES.iter().map(|(name, _)| format!("\"{name}\"")).collect();
            section.missing("kind", &format!("one of {}", names.join(", ")));
            None
        }
    }
}

/// A number of nodes: at least 1, and small enough that products do not overflow.
fn count(section: &Section<'_>, key: &'static str) -> Option<u32> {
    let count: u32 = section.require(key)?;
    let holds = (1..=MAX_HOSTS).contains(&u64::from(count));
    section.check(holds, key, format_args!("must be from 1 to {MAX_HOSTS}, but it is {count}"));
    holds.then_some(count)
}

fn read_fat_tree(
    section: &Section<'_>,
    upper: &dyn Fn(&'static str) -> Option<Links>,
) -> Option<Shape> {
    let (aggregation, core) = (upper("aggregation"), upper("core"));
    let hosts_per_edge = match section.node("hosts_per_edge") {
        Some(_) => count(section, "hosts_per_edge").map(Some),
        None => Some(None),
    };
    let k: u32 = section.require("k")?;
    let holds = k.is_multiple_of(2) && (2..=128).contains(&k);
    section.check(holds, "k", format_args!("must be an even number from 2 to 128, but it is {k}"));
    if !holds {
        return None;
    }
    let hosts_per_edge = hosts_per_edge?.unwrap_or(k / 2);
    Some(Shape::FatTree { k, hosts_per_edge, aggregation: aggregation?, core: core? })
}
