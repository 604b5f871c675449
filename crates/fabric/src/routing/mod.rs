//! Shortest paths, and the choice of a flow's path.
//!
//! A flow's path is resolved once. It is drawn from all shortest paths by a seeded hash of (flow
//! key, the two hosts without order, path label), one digit per switch. The walk always starts at
//! the host with the smaller number; the path of the other direction is the reverse. The
//! acknowledgements of a flow therefore take the links of its data, in every topology.

mod avoid;
mod set;
mod table;
mod terminal;

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use apus_cc::SwitchHalf;
use apus_units::random::{INCREMENT, below, mix};
use apus_units::{HostId, PortId, SwitchId};

use avoid::Live;
pub use avoid::{Avoided, Rehash};
pub use set::PathSet;
pub(crate) use set::PathSets;
pub use table::RouteId;
pub(crate) use table::{RouteTable, forward};
use terminal::Ends;
pub use terminal::Terminal;

use crate::packet::Packet;
use crate::topology::{Node, Topology};

/// The reason why a route cannot be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteError {
    /// The host does not exist.
    UnknownHost {
        /// The requested host.
        host: HostId,
        /// Number of hosts.
        hosts: u32,
    },
    /// Source and destination are the same host.
    SameHost(HostId),
    /// No path connects the two hosts, or only paths through more than 63 switches, on which
    /// packets are dropped by their TTL.
    NoPath {
        /// The source.
        src: HostId,
        /// The destination.
        dst: HostId,
    },
    /// All routes together have 2^32 egress ports or more.
    TooMany,
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownHost { host, hosts } => {
                write!(f, "unknown {host}: the topology has {hosts} hosts, numbered from 0")
            }
            Self::SameHost(host) => {
                write!(f, "{host} cannot be both ends of a route; choose two different hosts")
            }
            Self::NoPath { src, dst } => write!(
                f,
                "no path leads from {src} to {dst}; connect them by links through at most \
                 {MAX_SWITCHES} switches"
            ),
            Self::TooMany => f.write_str(
                "all routes together have at most 2^32 egress ports; use fewer flows, or let them use fewer paths or \
                 avoid fewer links",
            ),
        }
    }
}

impl core::error::Error for RouteError {}

/// Returns the port of the opposite direction of a link: ports are numbered in pairs, see
/// [`Topology`].
#[must_use]
pub const fn opposite(port: PortId) -> PortId {
    PortId::new(port.get() ^ 1)
}

/// Returns a hash that includes one more word.
pub(crate) const fn absorb(hash: u64, word: u64) -> u64 {
    mix(hash.wrapping_add(INCREMENT) ^ word)
}

const UNREACHABLE: u8 = u8::MAX;

/// Maximum number of switches on a path, limited by the TTL of a packet.
pub(crate) const MAX_SWITCHES: u8 = Packet::<()>::DEFAULT_TTL - 1;

/// The ends of links, and the distance from every switch to every switch that has hosts.
pub(crate) struct Paths {
    seed: u64,
    /// The ports of hosts, host by host, with the nodes behind them; and for each host the index of
    /// its first port.
    nics: Vec<(PortId, Node)>,
    first_nic: Vec<u32>,
    /// For each switch: its egress ports to other switches in the order of their numbers, as a
    /// range of `uplinks`.
    ranges: Vec<(u32, u32)>,
    uplinks: Vec<(PortId, SwitchId)>,
    /// For each switch: its row in `distances`, if it has hosts.
    rows: Vec<Option<u32>>,
    /// Number of links from each switch to the switch of the row.
    distances: Vec<u8>,
    /// The links that switches avoid now.
    live: Option<Live>,
}

impl Paths {
    /// # Panics
    /// If the topology was not checked: every host must have a link.
    pub(crate) fn new<W: SwitchHalf>(topology: &Topology<W>, seed: u64) -> Self {
        let switches = topology.switches.len();
        let mut nics = Vec::new();
        let mut ports: Vec<Vec<(PortId, SwitchId)>> = vec![Vec::new(); switches];
        let mut rows = vec![None; switches];
        let mut row_count = 0;
        for (port, from, to) in topology.ports() {
            match (from, to) {
                (Node::Host(host), peer) => {
                    nics.push((host, (port, peer)));
                    if let Node::Switch(edge) = peer
                        && rows[edge.index()].is_none()
                    {
                        rows[edge.index()] = Some(row_count);
                        row_count += 1;
                    }
                }
                (Node::Switch(from), Node::Switch(to)) => ports[from.index()].push((port, to)),
                (Node::Switch(_), Node::Host(_)) => {}
            }
        }
        nics.sort_by_key(|(host, _)| *host);
        let mut first_nic = vec![0];
        for ports in topology.ports_of_hosts() {
            first_nic.push(first_nic[first_nic.len() - 1] + ports);
        }
        let nics = nics.into_iter().map(|(_, nic)| nic).collect();
        let mut ranges = Vec::with_capacity(switches);
        let mut uplinks = Vec::new();
        for list in &ports {
            let start = uplinks.len() as u32;
            uplinks.extend_from_slice(list);
            ranges.push((start, uplinks.len() as u32));
        }
        let distances = Vec::new();
        let mut paths =
            Self { seed, nics, first_nic, ranges, uplinks, rows, distances, live: None };
        paths.distances = paths.measure_all(|_| true);
        paths
    }

    /// Returns the distances over the links whose ports are `used`.
    fn measure_all(&self, used: impl Fn(PortId) -> bool) -> Vec<u8> {
        let switches = self.ranges.len();
        let rows = self.rows.iter().flatten().count();
        let mut distances = vec![UNREACHABLE; rows * switches];
        for (edge, row) in self.rows.iter().enumerate() {
            if let Some(row) = row {
                let start = *row as usize * switches;
                self.measure(edge, &mut distances[start..start + switches], &used);
            }
        }
        distances
    }

    /// Runs a breadth-first search from switch `edge`, limited to the reach of a packet; links work
    /// in both directions.
    fn measure(&self, edge: usize, distances: &mut [u8], used: &impl Fn(PortId) -> bool) {
        let mut reached = vec![edge];
        distances[edge] = 0;
        let mut next = 0;
        while next < reached.len() {
            let switch = reached[next];
            next += 1;
            let distance = distances[switch] + 1;
            if distance == MAX_SWITCHES {
                return;
            }
            let (start, end) = self.ranges[switch];
            let links = &self.uplinks[start as usize..end as usize];
            for &(_, peer) in links.iter().filter(|(port, _)| used(*port)) {
                let known = &mut distances[peer.index()];
                if *known == UNREACHABLE {
                    *known = distance;
                    reached.push(peer.index());
                }
            }
        }
    }

    pub(crate) fn hosts(&self) -> u32 {
        self.first_nic.len() as u32 - 1
    }

    /// Appends the egress ports from `src` to `dst` to `path`.
    pub(crate) fn find(
        &self,
        src: Terminal,
        dst: Terminal,
        key: u64,
        label: u32,
        path: &mut Vec<PortId>,
    ) -> Result<(), RouteError> {
        for host in [src.host, dst.host] {
            if host.get() >= self.hosts() {
                return Err(RouteError::UnknownHost { host, hosts: self.hosts() });
            }
        }
        if src.host == dst.host {
            return Err(RouteError::SameHost(src.host));
        }
        path.clear();
        if self.walk(src.min(dst), src.max(dst), key, label, path).is_none() {
            return Err(RouteError::NoPath { src: src.host, dst: dst.host });
        }
        if src > dst {
            path.reverse();
            for port in path {
                *port = opposite(*port);
            }
        }
        Ok(())
    }

    fn walk(
        &self,
        low: Terminal,
        high: Terminal,
        key: u64,
        label: u32,
        path: &mut Vec<PortId>,
    ) -> Option<()> {
        let hosts = (u64::from(low.host.get()) << 32) | u64::from(high.host.get());
        let mut hash = absorb(absorb(absorb(mix(self.seed), key), hosts), u64::from(label));
        let ends = match self.only_ends(low, high) {
            Some(ends) => ends,
            None => {
                let all = self.ends(low, high);
                hash = absorb(hash, u64::from(UNREACHABLE));
                *all.get(below(hash, all.len() as u64) as usize)?
            }
        };
        self.walk_between(ends, hash, path)
    }

    /// Appends a shortest path between two ports; `hash` determines the choices.
    fn walk_between(
        &self,
        Ends { first, last }: Ends,
        mut hash: u64,
        path: &mut Vec<PortId>,
    ) -> Option<()> {
        path.push(first.0);
        let (Node::Switch(mut switch), Node::Switch(edge)) = (first.1, last.1) else {
            return Some(());
        };
        let row = self.rows[edge.index()]? as usize * self.ranges.len();
        let distance = |switch: SwitchId| self.distances[row + switch.index()];
        while switch != edge {
            let (start, end) = self.ranges[switch.index()];
            let closer = distance(switch) - 1;
            let next_hops = || {
                self.uplinks[start as usize..end as usize]
                    .iter()
                    .filter(|(_, peer)| distance(*peer) == closer)
            };
            // One digit per switch, each from a fresh hash: choices at successive tiers are
            // independent.
            hash = absorb(hash, u64::from(closer));
            let (port, peer) = *next_hops().nth(below(hash, next_hops().count() as u64) as usize)?;
            path.push(port);
            switch = peer;
        }
        path.push(opposite(last.0));
        Some(())
    }
}
