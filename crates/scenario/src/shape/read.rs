//! Reads the settings of each kind of topology.

use apus_fabric::{MAX_HOST_PORTS, Rails};

use super::Shape;
use crate::graph::{GraphSpec, read_scale_up};
use crate::links::{Links, read_upper};
use crate::section::Section;

/// Arguments of the readers of topologies.
pub(super) struct Reader<'a> {
    pub(super) section: &'a Section<'a>,
    /// The links of hosts, if they could be read.
    pub(super) edge: Option<Links>,
    /// Whether the ports of a switch share its memory.
    pub(super) shared: bool,
    /// Wire bytes of the largest packet.
    pub(super) packet: u64,
}

impl Reader<'_> {
    fn count(&self, key: &'static str) -> Option<u32> {
        self.section.require(key)
    }

    fn planes(&self) -> u32 {
        self.section.get_or_default("planes")
    }

    fn upper(&self, key: &'static str) -> Option<Links> {
        read_upper(self.section, key, self.edge, self.shared, self.packet)
    }
}

pub(super) fn star(reader: &Reader<'_>) -> Option<Shape> {
    let planes = reader.planes();
    reader.count("hosts").map(|hosts| Shape::Star { hosts, planes })
}

pub(super) fn dumbbell(reader: &Reader<'_>) -> Option<Shape> {
    let (left, right) = (reader.count("left"), reader.count("right"));
    let middle = reader.upper("middle");
    Some(Shape::Dumbbell { left: left?, right: right?, middle: middle? })
}

pub(super) fn leaf_spine(reader: &Reader<'_>) -> Option<Shape> {
    let (leaves, hosts_per_leaf) = (reader.count("leaves"), reader.count("hosts_per_leaf"));
    let (uplink, planes) = (reader.upper("uplink"), reader.planes());
    let section = reader.section;
    let factor: Option<f64> = section.get("oversubscription");
    let spines: Option<u32> = match factor {
        None => reader.count("spines"),
        Some(factor) => spines_for(reader, factor, hosts_per_leaf?, uplink?),
    };
    Some(Shape::LeafSpine {
        leaves: leaves?,
        hosts_per_leaf: hosts_per_leaf?,
        spines: spines?,
        uplink: uplink?,
        planes,
    })
}

/// Returns the number of spines that gives a factor of oversubscription.
fn spines_for(reader: &Reader<'_>, factor: f64, hosts: u32, uplink: Links) -> Option<u32> {
    let (section, edge) = (reader.section, reader.edge?);
    let down = f64::from(hosts) * edge.rate.as_bps() as f64;
    let exact = down / (factor * uplink.rate.as_bps() as f64);
    let given: Option<u32> = section.get("spines");
    let spines = given.unwrap_or(exact.round() as u32);
    if (f64::from(spines) - exact).abs() > 1e-6 || spines == 0 {
        let subject = match given {
            Some(spines) => format!("is {factor}, but `spines` is {spines}"),
            None => format!("is {factor}"),
        };
        section.problem(
            "oversubscription",
            format_args!(
                "{subject}: {hosts} hosts of {} and uplinks of {} need {exact} spines; they must be a whole number",
                edge.rate, uplink.rate
            ),
        );
        return None;
    }
    Some(spines)
}

pub(super) fn fat_tree(reader: &Reader<'_>) -> Option<Shape> {
    let (aggregation, core) = (reader.upper("aggregation"), reader.upper("core"));
    let section = reader.section;
    let k: u32 = section.require("k")?;
    section.check(k.is_multiple_of(2), "k", format_args!("must be an even number, but it is {k}"));
    let hosts_per_edge = section.get_or("hosts_per_edge", k / 2);
    let planes = reader.planes();
    Some(Shape::FatTree { k, hosts_per_edge, aggregation: aggregation?, core: core?, planes })
}

pub(super) fn rails(reader: &Reader<'_>) -> Option<Shape> {
    let (section, nodes) = (reader.section, reader.count("nodes"));
    let (nics, planes) = (section.get_or_default("nics"), reader.planes());
    let spines: u32 = section.get_or_default("spines");
    let uplink = match spines {
        0 => {
            section.no_effect("uplink", "without spines");
            reader.edge
        }
        _ => reader.upper("uplink"),
    };
    let scale_up = read_scale_up(section);
    let nodes = nodes?;
    let size = Rails {
        nodes,
        nics,
        planes,
        nodes_per_leaf: section.get_or("nodes_per_leaf", nodes),
        spines,
    };
    let ports = nics.saturating_mul(planes);
    section.check(
        ports <= u32::from(MAX_HOST_PORTS),
        "nics",
        format_args!(
            "with {planes} planes gives a node {ports} ports; it has at most {MAX_HOST_PORTS}"
        ),
    );
    section.check(
        spines > 0 || size.groups() == 1,
        "nodes_per_leaf",
        format_args!(
            "divides the nodes into {} groups, which nothing joins; set `spines`, or give all nodes one group",
            size.groups()
        ),
    );
    Some(Shape::Rails { size, uplink: uplink?, scale_up })
}

pub(super) fn parking_lot(reader: &Reader<'_>) -> Option<Shape> {
    let (switches, hosts_per_switch) = (reader.count("switches"), reader.count("hosts_per_switch"));
    let chain = reader.upper("chain");
    Some(Shape::ParkingLot {
        switches: switches?,
        hosts_per_switch: hosts_per_switch?,
        chain: chain?,
    })
}

pub(super) fn graph(reader: &Reader<'_>) -> Option<Shape> {
    GraphSpec::read(reader.section, reader.shared, reader.packet).map(Shape::Graph)
}
