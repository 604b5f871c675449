//! Hosts, switches and the links between them.

mod build;
mod clusters;
mod path;
mod shapes;

pub use build::MAX_HOST_PORTS;
pub use clusters::Rails;

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use apus_cc::SwitchHalf;
use apus_units::{Bytes, HostId, PortId, Rate, Span, SwitchId};

use crate::config::PortConfig;

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    /// A host. Packets end here; a host forwards none.
    Host(HostId),
    /// A switch.
    Switch(SwitchId),
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(host) => host.fmt(f),
            Self::Switch(switch) => switch.fmt(f),
        }
    }
}

/// A switch.
#[derive(Clone, Debug)]
pub struct SwitchSpec {
    /// Display name: "edge 3".
    pub name: String,
    /// Time from the arrival of a packet's last bit until the packet joins an egress port.
    pub pipeline_latency: Span,
    /// Memory that the switch's ports with [`Buffer::Shared`](crate::Buffer::Shared) share.
    pub shared_buffer: Option<Bytes>,
}

impl SwitchSpec {
    /// Returns a switch without pipeline latency and shared memory.
    #[must_use]
    pub fn new(name: String) -> Self {
        Self { name, pipeline_latency: Span::ZERO, shared_buffer: None }
    }
}

/// A link, in both directions.
#[derive(Clone, Debug)]
pub struct LinkSpec<W> {
    /// One end; in the built-in topologies the end nearer to the hosts.
    pub a: Node,
    /// The other end.
    pub b: Node,
    /// Propagation delay in each direction.
    pub delay: Span,
    /// Egress port of `a` towards `b`.
    pub ab: PortConfig<W>,
    /// Egress port of `b` towards `a`.
    pub ba: PortConfig<W>,
}

/// The links of one tier of a topology: a lower end (nearer to the hosts) and an upper one.
#[derive(Clone, Debug)]
pub struct Tier<W> {
    /// Propagation delay in each direction.
    pub delay: Span,
    /// Egress port of the lower end.
    pub up: PortConfig<W>,
    /// Egress port of the upper end.
    pub down: PortConfig<W>,
}

impl<W: SwitchHalf> Tier<W> {
    /// Returns links between hosts and switches: the NIC's buffer is unlimited, the switch's port
    /// has `buffer`.
    #[must_use]
    pub fn hosts(rate: Rate, delay: Span, buffer: Bytes) -> Self
    where
        W: Default,
    {
        let up = PortConfig::new(rate, Bytes::MAX);
        Self { delay, up, down: PortConfig::new(rate, buffer) }
    }

    /// Returns links between switches: each port has `buffer`.
    #[must_use]
    pub fn switches(rate: Rate, delay: Span, buffer: Bytes) -> Self
    where
        W: Default,
    {
        let port = PortConfig::new(rate, buffer);
        Self { delay, up: port.clone(), down: port }
    }

    fn link(&self, lower: Node, upper: Node) -> LinkSpec<W> {
        LinkSpec {
            a: lower,
            b: upper,
            delay: self.delay,
            ab: self.up.clone(),
            ba: self.down.clone(),
        }
    }
}

/// Nodes and links. Every topology kind is built from these alone; a custom topology is a list of
/// links.
///
/// Hosts are numbered `0..hosts`, switches by their index in `switches`. The egress port of link
/// number `l` from `a` to `b` is port `2 l`, from `b` to `a` port `2 l + 1`. Every host has at
/// least one link and at most [`MAX_HOST_PORTS`]; two switches may have several links.
#[derive(Clone, Debug)]
pub struct Topology<W> {
    /// Number of hosts.
    pub hosts: u32,
    /// The switches.
    pub switches: Vec<SwitchSpec>,
    /// The links.
    pub links: Vec<LinkSpec<W>>,
}

impl<W: SwitchHalf> Topology<W> {
    /// Sets this pipeline latency in every switch.
    #[must_use]
    pub fn with_pipeline_latency(mut self, latency: Span) -> Self {
        for switch in &mut self.switches {
            switch.pipeline_latency = latency;
        }
        self
    }

    /// Sets a shared memory of this size in every switch, for ports with
    /// [`Buffer::Shared`](crate::Buffer::Shared).
    #[must_use]
    pub fn with_shared_buffer(mut self, size: Bytes) -> Self {
        for switch in &mut self.switches {
            switch.shared_buffer = Some(size);
        }
        self
    }

    /// Applies `change` to every egress port of a switch: to add a switch half, classes, or a share
    /// of the switch's memory.
    #[must_use]
    pub fn with_switch_ports(mut self, change: impl Fn(&mut PortConfig<W>)) -> Self {
        for link in &mut self.links {
            for (node, config) in [(link.a, &mut link.ab), (link.b, &mut link.ba)] {
                if let Node::Switch(_) = node {
                    change(config);
                }
            }
        }
        self
    }

    /// Returns `true` if all pairs of hosts keep a shortest path without the `removed` links, which
    /// are given by link number.
    #[must_use]
    pub fn keeps_shortest_paths(&self, removed: &[bool]) -> bool {
        let is_removed = |link: usize| removed.get(link).copied().unwrap_or(false);
        let mut peers: Vec<Vec<(usize, usize)>> = vec![Vec::new(); self.switches.len()];
        let mut edges = Vec::new();
        for (link, spec) in self.links.iter().enumerate() {
            match (spec.a, spec.b) {
                (Node::Switch(a), Node::Switch(b)) => {
                    peers[a.index()].push((link, b.index()));
                    peers[b.index()].push((link, a.index()));
                }
                (Node::Switch(edge), Node::Host(_)) | (Node::Host(_), Node::Switch(edge)) => {
                    edges.push(edge.index());
                    if is_removed(link) {
                        return false;
                    }
                }
                (Node::Host(_), Node::Host(_)) if is_removed(link) => return false,
                (Node::Host(_), Node::Host(_)) => {}
            }
        }
        edges.sort_unstable();
        edges.dedup();
        let far_from = |start: usize, used: &dyn Fn(usize) -> bool| -> Vec<u32> {
            let mut far = vec![u32::MAX; peers.len()];
            far[start] = 0;
            let (mut reached, mut next) = (vec![start], 0);
            while let Some(&switch) = reached.get(next) {
                next += 1;
                for &(_, peer) in peers[switch].iter().filter(|(link, _)| used(*link)) {
                    if far[peer] == u32::MAX {
                        far[peer] = far[switch] + 1;
                        reached.push(peer);
                    }
                }
            }
            far
        };
        edges.iter().all(|&edge| {
            let (all, left) =
                (far_from(edge, &|_| true), far_from(edge, &|link| !is_removed(link)));
            edges.iter().all(|&other| all[other] == left[other])
        })
    }

    /// Makes every port pausable, those of hosts included.
    #[must_use]
    pub fn with_pausable_ports(mut self) -> Self {
        for link in &mut self.links {
            link.ab.pausable = true;
            link.ba.pausable = true;
        }
        self
    }

    /// Returns the display name of a node: "host 17", "edge 3".
    #[must_use]
    pub fn node_name(&self, node: Node) -> String {
        use alloc::string::ToString;
        match node {
            Node::Host(host) => host.to_string(),
            Node::Switch(switch) => self
                .switches
                .get(switch.index())
                .map_or_else(|| switch.to_string(), |spec| spec.name.clone()),
        }
    }

    /// Returns the number of ports of each host.
    pub(crate) fn ports_of_hosts(&self) -> Vec<u32> {
        ports_of_hosts(self.hosts, self.links.iter().flat_map(|link| [link.a, link.b]))
    }

    /// Returns every egress port with its owner and its peer, in the order of port numbers.
    pub(crate) fn ports(&self) -> impl Iterator<Item = (PortId, Node, Node)> + '_ {
        self.links.iter().enumerate().flat_map(|(l, link)| {
            let port = 2 * l as u32;
            [(PortId::new(port), link.a, link.b), (PortId::new(port + 1), link.b, link.a)]
        })
    }
}

/// Returns the number of ports of each of `hosts` hosts, from the ends of all links. Ends at hosts
/// with larger numbers do not count.
pub fn ports_of_hosts(hosts: u32, ends: impl Iterator<Item = Node>) -> Vec<u32> {
    let mut ports = vec![0; hosts as usize];
    for end in ends {
        if let Node::Host(host) = end
            && let Some(count) = ports.get_mut(host.index())
        {
            *count += 1;
        }
    }
    ports
}

/// An invalid topology: the place of the mistake, and a valid value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyError(String);

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for TopologyError {}
