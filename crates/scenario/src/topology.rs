//! `[topology]`: shape, links, buffers and marking.

use crate::set::Topology;
use apus_algorithms::BuiltInSwitch;
use apus_cc::NetworkInfo;
use apus_fabric::{Buffer, Node, PfcConfig, SchedulerKind, TopologyError};
use apus_units::{Bytes, Rate, Span, suggestion};

use super::classes::CLASS;
use super::classes::{Class, read_classes, read_scheduler};
use super::declared::{Keys, Kind, key, words_of};
use super::ecn::ECN;
use super::ecn::Marking;
use super::links::{BUFFER, DELAY, RATE};
use super::links::{Links, check_holds_packet};
use super::pfc;
use super::pfc::PFC;
use super::section::{MAX_DELAY, Section};
use super::shape::{Shape, TOPOLOGIES};
use apus_sim::PacketSizes;
use apus_sim::host_model::HostModel;
use apus_sim::network_info;
use apus_sim::plan::{LocalNetwork, Nics};

/// Keys of `topology`.
pub(super) static TOPOLOGY: Keys = Keys {
    own: &[
        key("kind", Kind::Discriminant, "Kind of topology"),
        RATE,
        DELAY,
        BUFFER,
        key("shared", Kind::Table(&SHARED), "Memory that all ports of a switch share, in place of `buffer`"),
        key("pipeline_latency", Kind::Time, "Time that a packet spends in a switch before it joins a queue").at_most(MAX_DELAY.as_ps()).or("0s"),
        key("ecn", Kind::Table(&ECN), "ECN: switches mark packets, depending on the queue of the port"),
        key("class", Kind::Tables(&CLASS), "Traffic classes of every switch port, at least two. If the algorithm of the workloads in a class has a switch half, the switch ports run it for this class"),
        key("scheduler", Kind::Word(&words_of(&SchedulerKind::WORDS)), SchedulerKind::DOC).or(SchedulerKind::WORDS[0].0),
        key("ack_class", Kind::Text, "Traffic class of acknowledgements and read requests. Default: the class of their flow"),
        key("plain", Kind::Texts, "Names of switches that do not run the switch halves of algorithms"),
        key("signals", Kind::Word(&["packets", "instant"]), "\"packets\": signals of switches travel as packets, like acknowledgements. \"instant\": signals reach their source at once and use no bandwidth").or("packets"),
        key("pfc", Kind::Table(&PFC), "Priority flow control: switches pause the links that fill their memory"),
    ],
    kinds: &TOPOLOGIES,
    others: None,
};

/// Keys of `shared`.
pub(super) static SHARED: Keys = Keys::of(&[
    key("size", Kind::Size, "Shared memory of each switch"),
    key(
        "alpha",
        Kind::Number,
        "Factor of the dynamic threshold: a queue may hold at most `alpha` times the free memory",
    )
    .above_0_to(MAX_ALPHA),
]);

/// The fabric as a scenario describes it.
#[derive(Clone, Debug)]
pub(super) struct TopologySpec {
    pub(super) shape: Shape,
    /// Links between hosts and switches.
    pub(super) edge: Links,
    /// Memory that all ports of a switch share.
    pub(super) shared: Option<Shared>,
    pub(super) pipeline_latency: Span,
    /// Marking at every switch port.
    pub(super) ecn: Option<Marking>,
    /// Classes of every switch port; an empty list means one class without a name.
    pub(super) classes: Vec<Class>,
    /// Wire bytes of the header of a trimmed packet.
    pub(super) header: u32,
    /// Scheduler among classes of the same priority.
    pub(super) scheduler: SchedulerKind,
    /// Index of the class of acknowledgements and read requests, if they have their own.
    pub(super) ack_class: Option<u8>,
    /// Names of switches without switch halves.
    pub(super) plain: Vec<String>,
    /// Whether signals of switches reach their source at once.
    pub(super) instant_signals: bool,
    /// The settings by which switches pause ports that fill their memory, if they do.
    pub(super) pfc: Option<PfcConfig>,
}

/// Largest factor of a dynamic threshold. Rationale: switches offer 1/128 to 8; from 1024 upwards one
/// queue gets 99.9 % of the memory, which is the same as no threshold.
const MAX_ALPHA: f64 = 1024.0;

/// Memory shared with dynamic thresholds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shared {
    pub(super) size: Bytes,
    pub(super) alpha: f64,
}

impl TopologySpec {
    /// Reads the table; `packet` is the size of the largest packet, which every buffer must hold, and
    /// `control` that of a control packet.
    pub(super) fn read(section: Section<'_>, packet: u64, control: u32) -> Option<Self> {
        let shared = read_shared(&section, packet);
        let (shape, edge) = Shape::read(&section, shared.is_some(), packet);
        let graph = shape.as_ref().and_then(Shape::graph);
        let own_latency = graph.map_or(Span::ZERO, |graph| graph.pipeline_latency);
        let pipeline_latency = section.get_or("pipeline_latency", own_latency);
        let ecn = section.section("ecn").and_then(Marking::read);
        let classes = read_classes(&section);
        let scheduler = read_scheduler(&section, &classes);
        let ack_class = read_ack_class(&section, &classes);
        let plain = section.get::<Vec<String>>("plain").unwrap_or_default();
        let instant_signals = section.word("signals") == Some("instant");
        let pfc = pfc::read(&section, &classes);
        if ecn.is_some() && !classes.is_empty() && classes.iter().all(|c| c.ecn.is_some()) {
            section.problem("ecn", "has no effect: every class has its own; remove it");
        }
        if let Some(shape) = &shape {
            shape.check_size(&section);
        }
        // The kind decides which keys are known.
        if section.has_kind() {
            section.finish();
        }
        let spec = Self {
            shape: shape?,
            edge: edge?,
            shared,
            pipeline_latency,
            ecn,
            classes,
            header: control,
            scheduler: scheduler?,
            ack_class,
            plain,
            instant_signals,
            pfc: pfc?,
        };
        Some(spec)
    }

    /// Returns the number of hosts.
    pub(super) fn hosts(&self) -> u32 {
        self.shape.hosts() as u32
    }

    /// Returns an upper bound of the egress ports of the longest path between two hosts.
    pub(super) fn longest_path(&self) -> u64 {
        self.shape.longest_path()
    }

    /// Returns the number of shortest paths between two hosts: that of most pairs, or in a graph the mean.
    pub(super) fn paths(&self) -> u64 {
        self.shape.paths()
    }

    /// Returns every kind of link.
    pub(super) fn links(&self) -> Vec<Links> {
        self.shape.kinds_of_links(self.edge)
    }

    /// Returns the number of each host in the file from which the topology was read, in ascending order; `None`
    /// if hosts are numbered from 0.
    pub(super) fn host_numbers(&self) -> Option<&[u32]> {
        self.shape.host_numbers()
    }

    /// Returns the elements of the topology's file that the topology leaves out, as a sentence.
    pub(super) fn left_out(&self) -> Option<&str> {
        self.shape.left_out()
    }

    /// Returns the rack of each host: the hosts of one switch. All hosts of a `links` topology are
    /// in one rack.
    pub(super) fn racks(&self) -> Vec<u32> {
        self.shape.racks()
    }

    /// Returns the number of ports of a NIC.
    pub(super) fn planes(&self) -> u32 {
        self.shape.planes()
    }

    /// Returns the NICs of hosts, of which each rank of a job has one, and the network within hosts.
    pub(super) fn nics(&self) -> Option<(Nics, Option<LocalNetwork>)> {
        self.shape.nics()
    }

    /// Returns the rate of each host: the sum over its ports.
    pub(super) fn host_rates(&self) -> Vec<Rate> {
        self.shape.host_rates(self.edge)
    }

    /// Returns `true` if any packet may be marked.
    pub(super) fn marks(&self) -> bool {
        self.ecn.is_some() || self.classes.iter().any(|class| class.ecn.is_some())
    }

    /// Returns `true` if any class has a path policy.
    pub(super) fn has_balancers(&self) -> bool {
        self.classes.iter().any(|class| class.balancer.is_some())
    }

    /// Returns the path policy of the workloads of a class, if the class has its own.
    pub(super) fn balancer_of(&self, class: usize) -> Option<&str> {
        self.classes.get(class)?.balancer.as_deref()
    }

    /// Returns `true` if the ports of switches have room for a limited number of bytes of a class.
    pub(super) fn limits(&self, class: usize) -> bool {
        let own = self.classes.get(class).is_some_and(|class| class.limit < Bytes::MAX);
        own || self.shared.is_some() || self.edge.buffer < Bytes::MAX
    }

    /// Adds the classes of switch ports to hosts' ports, for NICs that queue and so that each class can be
    /// paused.
    pub(super) fn with_nic_classes(&self, mut topology: Topology) -> Topology {
        if self.classes.is_empty() {
            return topology;
        }
        let mut classes: Vec<_> = self.classes.iter().map(|c| c.config(&[], None, 0)).collect();
        for class in &mut classes {
            class.algorithm = BuiltInSwitch::Plain;
            class.limit = Bytes::MAX;
            class.trim = None;
        }
        for link in &mut topology.links {
            for (node, port) in [(link.a, &mut link.ab), (link.b, &mut link.ba)] {
                if let Node::Host(_) = node {
                    port.classes.clone_from(&classes);
                    port.scheduler = self.scheduler;
                }
            }
        }
        topology
    }

    /// Returns the properties of the network from which algorithms derive parameters; `None` if the network
    /// cannot be built. If packets are `spread`, flows use all ports of a NIC.
    pub(super) fn network_info(
        &self,
        sizes: PacketSizes,
        host: &HostModel,
        spread: bool,
    ) -> Option<NetworkInfo> {
        let mut info = network_info(&self.build().ok()?, sizes, host)?;
        if spread {
            let planes = u64::from(self.planes());
            info.line_rate = info.line_rate.saturating_mul(planes);
            info.path_rate = info.path_rate.saturating_mul(planes);
        }
        Some(info)
    }

    /// Builds the topology.
    pub(super) fn build(&self) -> Result<Topology, TopologyError> {
        let mut topology = self.shape.build(self.edge)?;
        topology = topology.with_pipeline_latency(self.pipeline_latency);
        if let Some(Shared { size, alpha }) = self.shared {
            let share = Buffer::Shared { alpha };
            topology = topology.with_shared_buffer(size).with_switch_ports(|p| p.buffer = share);
        }
        if !self.classes.is_empty() {
            let classes: Vec<_> = self
                .classes
                .iter()
                .map(|c| c.config(&self.classes, self.ecn, self.header))
                .collect();
            topology = topology.with_switch_ports(|port| {
                port.classes.clone_from(&classes);
                port.scheduler = self.scheduler;
            });
        } else if let Some(marking) = self.ecn {
            let half = marking.half(0);
            topology = topology.with_switch_ports(|p| *p = p.clone().with_algorithm(&half));
        }
        Ok(topology)
    }
}

fn read_shared(section: &Section<'_>, packet: u64) -> Option<Shared> {
    let shared = section.section("shared")?;
    let size: Option<Bytes> = shared.require("size");
    let alpha: Option<f64> = shared.require("alpha");
    if let Some(size) = size {
        check_holds_packet(&shared, "size", size, packet);
    }
    if let (Some(size), Some(alpha)) = (size, alpha) {
        let most = Bytes::new((size.get() as f64 * alpha) as u64);
        let message = format_args!(
            "of {alpha} lets a queue hold at most {most} of {size}, which is less than one packet of {packet}B"
        );
        shared.check(most.get() >= packet, "alpha", message);
    }
    shared.finish();
    Some(Shared { size: size.unwrap_or(Bytes::MAX), alpha: alpha.unwrap_or(1.0) })
}

/// Reads the class of acknowledgements and read requests, if it is not that of the data.
fn read_ack_class(section: &Section<'_>, classes: &[Class]) -> Option<u8> {
    if classes.is_empty() {
        section.no_effect("ack_class", "without `[[topology.class]]`");
        return None;
    }
    let name: String = section.get("ack_class")?;
    let names = || classes.iter().map(|class| class.name.as_str());
    let found = names().position(|known| known == name);
    let hint = || suggestion(&name, names());
    section.check(found.is_some(), "ack_class", format_args!("names no class{}", hint()));
    // At most 8 classes.
    found.map(|index| index as u8)
}
