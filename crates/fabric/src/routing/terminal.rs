//! The ends of paths: hosts with one or several ports.

use alloc::vec::Vec;

use apus_units::{HostId, PortId};

use super::{Node, Paths, opposite};

/// An end of a path: a host, and the ports of the host that the path may use.
///
/// The ports of a host are numbered from 0 in the order of its links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Terminal {
    /// The host.
    pub host: HostId,
    /// The first of these ports, and their number; `None`: all ports of the host.
    pub ports: Option<(u8, u8)>,
}

impl From<HostId> for Terminal {
    fn from(host: HostId) -> Self {
        Self { host, ports: None }
    }
}

/// The ports and nodes at the two ends of a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    /// Egress port of the first host, and the node behind it.
    pub(super) first: (PortId, Node),
    /// Egress port of the last host, which points in the opposite direction of the path, and the
    /// node behind it.
    pub(super) last: (PortId, Node),
}

impl Paths {
    /// Returns the ports of a host with the nodes behind them.
    pub(crate) fn nics(&self, host: HostId) -> &[(PortId, Node)] {
        let range = self.first_nic[host.index()]..self.first_nic[host.index() + 1];
        &self.nics[range.start as usize..range.end as usize]
    }

    fn ports(&self, end: Terminal) -> &[(PortId, Node)] {
        let all = self.nics(end.host);
        let Some((first, count)) = end.ports else { return all };
        let first = usize::from(first).min(all.len());
        &all[first..(first + usize::from(count)).min(all.len())]
    }

    pub(crate) fn port_count(&self, end: Terminal) -> u32 {
        self.ports(end).len() as u32
    }

    /// Returns the number of links of a shortest path between these ports; `None` if no path
    /// exists.
    fn length(&self, ends: &Ends, high: HostId) -> Option<u32> {
        match (ends.first.1, ends.last.1) {
            (Node::Host(peer), _) => {
                // Both ports belong to the same link.
                (peer == high && ends.last.0 == opposite(ends.first.0)).then_some(1)
            }
            (Node::Switch(from), Node::Switch(to)) => {
                let row = self.rows[to.index()]? as usize * self.ranges.len();
                let distance = self.distances[row + from.index()];
                (distance != super::UNREACHABLE).then(|| u32::from(distance) + 2)
            }
            (Node::Switch(_), Node::Host(_)) => None,
        }
    }

    /// Returns the pairs of ports with which the shortest paths leave `low` and reach `high`, in
    /// the order of the ports of `low`.
    pub(super) fn ends(&self, low: Terminal, high: Terminal) -> Vec<Ends> {
        let mut shortest = u32::MAX;
        let mut found = Vec::new();
        for &first in self.ports(low) {
            for &last in self.ports(high) {
                let ends = Ends { first, last };
                let Some(length) = self.length(&ends, high.host) else { continue };
                if length < shortest {
                    shortest = length;
                    found.clear();
                }
                if length == shortest {
                    found.push(ends);
                }
            }
        }
        found
    }

    /// Returns the only pair of ports of two hosts with one port each, without a list.
    pub(super) fn only_ends(&self, low: Terminal, high: Terminal) -> Option<Ends> {
        let (&[first], &[last]) = (self.ports(low), self.ports(high)) else { return None };
        let ends = Ends { first, last };
        self.length(&ends, high.host).map(|_| ends)
    }
}
