//! `[topology]`: shape, links, buffers and marking.

use apus_cc::SwitchAlgorithm;
use apus_cc::dctcp::switch::EcnMarker;
use apus_fabric::{Buffer, Tier, Topology, TopologyError};
use apus_units::{Bytes, Rate, Span};

use super::section::Section;
use super::tree::Value;

/// Most hosts of a topology: numbers in messages and tables stay readable, memory stays bounded.
const MAX_HOSTS: u64 = 65_536;
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
    /// Marking threshold of every switch port.
    pub(super) ecn: Option<Bytes>,
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
}

/// The kinds of topology by name, with what they are.
pub const TOPOLOGIES: &[(&str, &str)] = &[
    ("star", "`hosts` hosts on one switch"),
    ("dumbbell", "`left` and `right` hosts on two switches, joined by the link `middle`"),
    (
        "leaf-spine",
        "`leaves` switches of `hosts_per_leaf` hosts, each with an `uplink` to all `spines`",
    ),
    ("fat-tree", "of `k`-port switches in three tiers: links, `aggregation`, `core`"),
];

impl TopologySpec {
    /// Reads the table; `packet` is the size of the largest packet, which every buffer must hold.
    pub(super) fn read(section: Section<'_>, packet: u64) -> Option<Self> {
        let shared = read_shared(&section, packet);
        let edge = read_links(&section, None, shared.is_some(), packet);
        let kind = match section.node("kind") {
            Some(_) => section.word("kind", &["star", "dumbbell", "leaf-spine", "fat-tree"]),
            None => {
                section.missing("kind", "\"star\", \"dumbbell\", \"leaf-spine\" or \"fat-tree\"");
                None
            }
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
            _ => read_fat_tree(&section, &upper),
        });
        let pipeline_latency = section.get("pipeline_latency").unwrap_or(Span::ZERO);
        let ecn = read_ecn(&section);
        let shape = shape.flatten();
        if let Some(shape) = &shape {
            check_size(&section, shape);
        }
        if kind.is_some() {
            section.finish();
        }
        Some(Self { shape: shape?, edge: edge?, shared, pipeline_latency, ecn })
    }

    /// How many hosts it has.
    pub(super) fn hosts(&self) -> u32 {
        self.shape.hosts() as u32
    }

    /// Every kind of link.
    pub(super) fn links(&self) -> Vec<Links> {
        let mut links = vec![self.edge];
        match self.shape {
            Shape::Star { .. } => {}
            Shape::Dumbbell { middle: upper, .. } | Shape::LeafSpine { uplink: upper, .. } => {
                links.push(upper);
            }
            Shape::FatTree { aggregation, core, .. } => links.extend([aggregation, core]),
        }
        links
    }

    /// The topology itself.
    pub(super) fn build(&self) -> Result<Topology, TopologyError> {
        let edge = Tier::hosts(self.edge.rate, self.edge.delay, self.edge.buffer);
        let upper = |links: Links| Tier::switches(links.rate, links.delay, links.buffer);
        let mut topology = match self.shape {
            Shape::Star { hosts } => Topology::star(hosts, &edge),
            Shape::Dumbbell { left, right, middle } => {
                Topology::dumbbell(left, right, &edge, &upper(middle))
            }
            Shape::LeafSpine { leaves, hosts_per_leaf, spines, uplink } => {
                Topology::leaf_spine(leaves, hosts_per_leaf, spines, &edge, &upper(uplink))
            }
            Shape::FatTree { k, hosts_per_edge, aggregation, core } => {
                Topology::fat_tree(k, hosts_per_edge, &edge, &upper(aggregation), &upper(core))?
            }
        };
        topology = topology.with_pipeline_latency(self.pipeline_latency);
        if let Some(Shared { size, alpha }) = self.shared {
            let share = Buffer::Shared { alpha };
            topology = topology.with_shared_buffer(size).with_switch_ports(|p| p.buffer = share);
        }
        if let Some(threshold) = self.ecn {
            let marker = SwitchAlgorithm::Ecn(EcnMarker { threshold });
            topology = topology.with_switch_ports(|p| *p = p.clone().with_algorithm(&marker));
        }
        Ok(topology)
    }
}

impl Shape {
    fn hosts(&self) -> u64 {
        let product = |numbers: &[u32]| numbers.iter().fold(1, |p, n| p * u64::from(*n));
        match *self {
            Self::Star { hosts } => u64::from(hosts),
            Self::Dumbbell { left, right, .. } => u64::from(left) + u64::from(right),
            Self::LeafSpine { leaves, hosts_per_leaf, .. } => product(&[leaves, hosts_per_leaf]),
            Self::FatTree { k, hosts_per_edge, .. } => product(&[k, k / 2, hosts_per_edge]),
        }
    }

    fn links(&self) -> u64 {
        let between = match *self {
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

fn read_links(
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

fn read_ecn(section: &Section<'_>) -> Option<Bytes> {
    let ecn = section.section("ecn")?;
    let threshold = ecn.require("threshold");
    ecn.finish();
    threshold
}
