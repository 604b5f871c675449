//! `[topology]`: shape, links, buffers and marking.

use std::sync::Arc;

use apus_cc::SwitchAlgorithm;
use apus_fabric::{Buffer, Node, PfcConfig, Tier, Topology, TopologyError};
use apus_units::{Bytes, Rate, Span};

use super::classes::{Class, read_classes};
use super::ecn::Marking;
use super::graph::GraphSpec;
use super::section::Section;
use super::tree::Value;
use crate::import::End;

/// Most hosts of a topology: numbers in messages and tables stay readable, memory stays bounded.
pub(super) const MAX_HOSTS: u64 = 65_536;
/// Most links of a topology.
const MAX_LINKS: u64 = 1_000_000;
/// Below this a single packet would occupy a link for hours, and times might overflow.
const MIN_RATE: Rate = Rate::from_bps(1_000);

/// The fabric as a scenario describes it.
#[derive(Clone, Debug)]
pub(super) struct TopologySpec {
    pub(super) shape: Shape,
    /// Links between hosts and switches.
    pub(super) edge: Links,
    /// Memory that all ports of a switch share.
    pub(super) shared: Option<Shared>,
    pub(super) pipeline_latency: Span,
    /// What every switch port marks.
    pub(super) ecn: Option<Marking>,
    /// Classes of every switch port; none means one without a name.
    pub(super) classes: Vec<Class>,
    /// Index of the class of acknowledgements and read requests, if they have their own.
    pub(super) ack_class: Option<u8>,
    /// Names of switches whose ports take part in no algorithm.
    pub(super) plain: Vec<String>,
    /// Signals of switches are with their source at once.
    pub(super) instant_signals: bool,
    /// Switches pause what fills their memory.
    pub(super) pfc: Option<PfcConfig>,
}

/// Links of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Links {
    pub(super) rate: Rate,
    pub(super) delay: Span,
    /// Per port; [`Bytes::MAX`] is unlimited.
    pub(super) buffer: Bytes,
}

/// Memory shared with dynamic thresholds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shared {
    pub(super) size: Bytes,
    pub(super) alpha: f64,
}

#[derive(Clone, Debug)]
pub(super) enum Shape {
    Star { hosts: u32 },
    Dumbbell { left: u32, right: u32, middle: Links },
    LeafSpine { leaves: u32, hosts_per_leaf: u32, spines: u32, uplink: Links },
    FatTree { k: u32, hosts_per_edge: u32, aggregation: Links, core: Links },
    ParkingLot { switches: u32, hosts_per_switch: u32, chain: Links },
    Graph(Arc<GraphSpec>),
}

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

impl TopologySpec {
    /// Reads the table; `packet` is the size of the largest packet, which every buffer must hold.
    pub(super) fn read(section: Section<'_>, packet: u64) -> Option<Self> {
        let shared = read_shared(&section, packet);
        let kind = match section.node("kind") {
            Some(_) => section.word("kind", &TOPOLOGIES.map(|(name, _)| name)),
            None => {
                let names: Vec<_> =
                    TOPOLOGIES.iter().map(|(name, _)| format!("\"{name}\"")).collect();
                section.missing("kind", &format!("one of {}", names.join(", ")));
                None
            }
        };
        let graph = match kind {
            Some("links") => Some(GraphSpec::read(&section, shared.is_some(), packet)),
            _ => None,
        };
        let edge = match &graph {
            None => read_links(&section, None, shared.is_some(), packet),
            Some(graph) => graph.as_ref().and_then(|g| g.links.first()).map(|link| link.links),
        };
        let upper = |key| read_upper(&section, key, edge, shared.is_some(), packet);
        let shape = kind.map(|kind| match kind {
            "star" => count(&section, "hosts").map(|hosts| Shape::Star { hosts }),
            "dumbbell" => {
                let (left, right) = (count(&section, "left"), count(&section, "right"));
                let middle = upper("middle");
                Some(Shape::Dumbbell { left: left?, right: right?, middle: middle? })
            }
            "leaf-spine" => {
                let leaves = count(&section, "leaves");
                let hosts_per_leaf = count(&section, "hosts_per_leaf");
                let (spines, uplink) = (count(&section, "spines"), upper("uplink"));
                Some(Shape::LeafSpine {
                    leaves: leaves?,
                    hosts_per_leaf: hosts_per_leaf?,
                    spines: spines?,
                    uplink: uplink?,
                })
            }
            "parking-lot" => {
                let switches = count(&section, "switches");
                let hosts_per_switch = count(&section, "hosts_per_switch");
                let chain = upper("chain");
                Some(Shape::ParkingLot {
                    switches: switches?,
                    hosts_per_switch: hosts_per_switch?,
                    chain: chain?,
                })
            }
            "links" => graph.flatten().map(Shape::Graph),
            _ => read_fat_tree(&section, &upper),
        });
        let own_latency = match &shape {
            Some(Some(Shape::Graph(graph))) => graph.pipeline_latency,
            _ => Span::ZERO,
        };
        let pipeline_latency = section.get("pipeline_latency").unwrap_or(own_latency);
        let ecn = section.section("ecn").and_then(Marking::read);
        let classes = read_classes(&section);
        let ack_class = read_ack_class(&section, &classes);
        let plain = super::halves::read_plain(&section);
        let instant_signals = section.word("signals", &["packets", "instant"]) == Some("instant");
        let pfc = super::pfc::read(&section, &classes);
        if ecn.is_some() && !classes.is_empty() && classes.iter().all(|c| c.ecn.is_some()) {
            section.problem("ecn", "has no effect: every class has its own; remove it");
        }
        let shape = shape.flatten();
        if let Some(shape) = &shape {
            check_size(&section, shape);
        }
        if kind.is_some() {
            section.finish();
        }
        let spec = Self {
            shape: shape?,
            edge: edge?,
            shared,
            pipeline_latency,
            ecn,
            classes,
            ack_class,
            plain,
            instant_signals,
            pfc: pfc?,
        };
        Some(spec)
    }

    /// Whether any class is marked by chance.
    pub(super) fn ramps(&self) -> bool {
        let ramp = |marking: &Option<Marking>| matches!(marking, Some(Marking::Ramp(_)));
        ramp(&self.ecn) || self.classes.iter().any(|class| ramp(&class.ecn))
    }

    /// How many hosts it has.
    pub(super) fn hosts(&self) -> u32 {
        self.shape.hosts() as u32
    }

    /// Every kind of link.
    pub(super) fn links(&self) -> Vec<Links> {
        let mut links = vec![self.edge];
        match &self.shape {
            Shape::Star { .. } => {}
            Shape::Graph(graph) => links.extend(graph.links.iter().map(|link| link.links)),
            Shape::Dumbbell { middle: upper, .. }
            | Shape::LeafSpine { uplink: upper, .. }
            | Shape::ParkingLot { chain: upper, .. } => {
                links.push(*upper);
            }
            Shape::FatTree { aggregation, core, .. } => links.extend([*aggregation, *core]),
        }
        links
    }

    /// Whether any packet may be marked.
    pub(super) fn marks(&self) -> bool {
        self.ecn.is_some() || self.classes.iter().any(|class| class.ecn.is_some())
    }

    /// The number of each host in the file that the topology is from, ascending; `None` if hosts are
    /// numbered from 0.
    pub(super) fn host_numbers(&self) -> Option<&[u32]> {
        match &self.shape {
            Shape::Graph(graph) if !graph.numbers.is_empty() => Some(&graph.numbers),
            _ => None,
        }
    }

    /// The rack of each host: the hosts of one switch. Those of a `links` topology are all in one.
    pub(super) fn racks(&self) -> Vec<u32> {
        let hosts = self.hosts();
        let rack = |host: u32| match self.shape {
            Shape::Star { .. } | Shape::Graph(_) => 0,
            Shape::Dumbbell { left, .. } => u32::from(host >= left),
            Shape::LeafSpine { hosts_per_leaf: size, .. }
            | Shape::FatTree { hosts_per_edge: size, .. }
            | Shape::ParkingLot { hosts_per_switch: size, .. } => host / size,
        };
        (0..hosts).map(rack).collect()
    }

    /// The rate of each host's link.
    pub(super) fn host_rates(&self) -> Vec<Rate> {
        let mut rates = vec![self.edge.rate; self.hosts() as usize];
        if let Shape::Graph(graph) = &self.shape {
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

    /// The same with the classes of switch ports in hosts' ports too: for NICs that queue, and so
    /// that each can be paused.
    pub(super) fn with_nic_classes(&self, mut topology: Topology) -> Topology {
        if self.classes.is_empty() {
            return topology;
        }
        let mut classes: Vec<_> = self.classes.iter().map(|c| c.config(None)).collect();
        for class in &mut classes {
            class.algorithm = SwitchAlgorithm::Plain;
            class.limit = Bytes::MAX;
        }
        for link in &mut topology.links {
            for (node, port) in [(link.a, &mut link.ab), (link.b, &mut link.ba)] {
                if let Node::Host(_) = node {
                    port.classes.clone_from(&classes);
                }
            }
        }
        topology
    }

    /// The topology itself.
    pub(super) fn build(&self) -> Result<Topology, TopologyError> {
        let edge = Tier::hosts(self.edge.rate, self.edge.delay, self.edge.buffer);
        let upper = |links: Links| Tier::switches(links.rate, links.delay, links.buffer);
        let mut topology = match &self.shape {
            Shape::Graph(graph) => graph.build(),
            &Shape::ParkingLot { switches, hosts_per_switch, chain } => {
                Topology::parking_lot(switches, hosts_per_switch, &edge, &upper(chain))
            }
            &Shape::Star { hosts } => Topology::star(hosts, &edge),
            &Shape::Dumbbell { left, right, middle } => {
                Topology::dumbbell(left, right, &edge, &upper(middle))
            }
            &Shape::LeafSpine { leaves, hosts_per_leaf, spines, uplink } => {
                Topology::leaf_spine(leaves, hosts_per_leaf, spines, &edge, &upper(uplink))
            }
            &Shape::FatTree { k, hosts_per_edge, aggregation, core } => {
                Topology::fat_tree(k, hosts_per_edge, &edge, &upper(aggregation), &upper(core))?
            }
        };
        topology = topology.with_pipeline_latency(self.pipeline_latency);
        if let Some(Shared { size, alpha }) = self.shared {
            let share = Buffer::Shared { alpha };
            topology = topology.with_shared_buffer(size).with_switch_ports(|p| p.buffer = share);
        }
        if !self.classes.is_empty() {
            let classes: Vec<_> = self.classes.iter().map(|c| c.config(self.ecn)).collect();
            topology = topology.with_switch_ports(|port| port.classes.clone_from(&classes));
        } else if let Some(marking) = self.ecn {
            let half = marking.half(0);
            topology = topology.with_switch_ports(|p| *p = p.clone().with_algorithm(&half));
        }
        Ok(topology)
    }
}

impl Shape {
    fn hosts(&self) -> u64 {
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
}

fn check_size(section: &Section<'_>, shape: &Shape) {
    let (hosts, links) = (shape.hosts(), shape.links());
    let limit = format!("a topology has 2 to {MAX_HOSTS} hosts and at most {MAX_LINKS} links");
    section.check(
        (2..=MAX_HOSTS).contains(&hosts) && links <= MAX_LINKS,
        "kind",
        format_args!("gives {hosts} hosts and {links} links, but {limit}"),
    );
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

/// Links between switches: like those of the hosts but for what their own table says.
fn read_upper(
    section: &Section<'_>,
    key: &'static str,
    edge: Option<Links>,
    shared: bool,
    packet: u64,
) -> Option<Links> {
    match section.section(key) {
        Some(table) => {
            let links = read_links(&table, edge, shared, packet);
            table.finish();
            links
        }
        None => edge,
    }
}

pub(super) fn read_links(
    section: &Section<'_>,
    default: Option<Links>,
    shared: bool,
    packet: u64,
) -> Option<Links> {
    let rate = match default {
        Some(default) => section.get("rate").or(Some(default.rate)),
        None => section.require("rate"),
    };
    let delay = match default {
        Some(default) => section.get("delay").or(Some(default.delay)),
        None => section.require("delay"),
    };
    let buffer = match section.node("buffer") {
        Some(_) if shared => {
            section.no_effect("buffer", "where the ports share the memory of their switch");
            None
        }
        Some(node) => read_size_or_unlimited(section, "buffer", &node.value),
        None if shared => Some(Bytes::MAX),
        None => match default {
            Some(default) => Some(default.buffer),
            None => {
                section.missing(
                    "buffer",
                    "the memory of a switch port, like \"4MB\" or \"unlimited\"",
                );
                None
            }
        },
    };
    if let Some(rate) = rate {
        let must = format_args!("must be at least {MIN_RATE}, but it is {rate}");
        section.check(rate >= MIN_RATE, "rate", must);
    }
    if let Some(buffer) = buffer {
        check_holds_packet(section, "buffer", buffer, packet);
    }
    Some(Links { rate: rate?, delay: delay?, buffer: buffer? })
}

fn check_holds_packet(section: &Section<'_>, key: &str, size: Bytes, packet: u64) {
    let holds = size.get() >= packet;
    section.check(holds, key, format_args!("of {size} does not hold one packet of {packet}B"));
}

/// A size, or [`Bytes::MAX`] for "unlimited".
pub(super) fn read_size_or_unlimited(
    section: &Section<'_>,
    key: &'static str,
    value: &Value,
) -> Option<Bytes> {
    match value {
        Value::Text(text) if text == "unlimited" => Some(Bytes::MAX),
        _ => section.get(key),
    }
}

fn read_shared(section: &Section<'_>, packet: u64) -> Option<Shared> {
    let shared = section.section("shared")?;
    let size = shared.require("size");
    let alpha = shared.require("alpha");
    if let Some(size) = size {
        check_holds_packet(&shared, "size", size, packet);
    }
    if let Some(alpha) = alpha {
        shared.check(alpha > 0.0, "alpha", format_args!("must be above 0, but it is {alpha}"));
    }
    shared.finish();
    Some(Shared { size: size.unwrap_or(Bytes::MAX), alpha: alpha.unwrap_or(1.0) })
}

/// The class of acknowledgements and read requests, if it is not that of the data.
fn read_ack_class(section: &Section<'_>, classes: &[Class]) -> Option<u8> {
    if classes.is_empty() {
        section.no_effect("ack_class", "without `[[topology.class]]`");
        return None;
    }
    let name: String = section.get("ack_class")?;
    let names = || classes.iter().map(|class| class.name.as_str());
    let found = names().position(|known| known == name);
    let hint = || apus_cc::suggestion(&name, names());
    section.check(found.is_some(), "ack_class", format_args!("names no class{}", hint()));
    // At most 8 classes.
    found.map(|index| index as u8)
}
