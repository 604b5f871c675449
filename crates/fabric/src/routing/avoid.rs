//! Paths around failed links.
//!
//! At first a switch stops using its own port to a failed link (a local detour); later other
//! switches stop using paths that need the link (a global detour). A detour follows the planned
//! path as long as that may be used, and leaves it by a hash. A host with several ports does not
//! use a port whose link it avoids. Once the failure is known globally, the host's peers do not
//! send to that port.

use alloc::vec;
use alloc::vec::Vec;

use apus_units::random::{below, mix};
use apus_units::{PortId, SwitchId};

use super::{Ends, MAX_SWITCHES, Node, Paths, Terminal, UNREACHABLE, absorb, opposite};

/// Constant that separates the hashes of detours from those of paths.
const DETOUR: u64 = 0x6465_746f_7572;

/// How a group of ports that has lost a member distributes the flows over the remaining members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rehash {
    /// Flows of the remaining members keep their port: 1/n of all flows move.
    #[default]
    Resilient,
    /// By the hash modulo the number of remaining members: all but 1/n of the flows move.
    Modulo,
}

/// Links that switches avoid. A link is avoided in both directions: a port that receives nothing
/// informs its peer (IEEE 802.3 clause 46, remote fault).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Avoided {
    /// Links that the switches at either end do not use; each is given by either of its ports.
    pub local: Vec<PortId>,
    /// Links that all switches avoid in their paths.
    pub global: Vec<PortId>,
    /// How the flows are distributed.
    pub rehash: Rehash,
}

/// The links that switches avoid now.
pub(crate) struct Live {
    avoided: Avoided,
    /// Distances without the globally avoided links, if there are any.
    distances: Option<Vec<u8>>,
}

/// Returns the number of the link behind a port.
const fn link(port: PortId) -> u32 {
    port.get() / 2
}

fn contains(ports: &[PortId], port: PortId) -> bool {
    ports.iter().any(|other| link(*other) == link(port))
}

impl Avoided {
    /// Returns `true` if a path through this port cannot be used as before.
    pub(super) fn concerns(&self, port: PortId) -> bool {
        contains(&self.local, port) || contains(&self.global, port)
    }
}

impl Paths {
    /// Sets the links that switches avoid from now on.
    pub(crate) fn set_avoided(&mut self, avoided: Option<&Avoided>) {
        self.live = avoided.map(|avoided| {
            let used = |port| !contains(&avoided.global, port);
            let distances = (!avoided.global.is_empty()).then(|| self.measure_all(used));
            Live { avoided: avoided.clone(), distances }
        });
    }

    /// Replaces the planned path from `src` to `dst` by the one that packets take while links are
    /// avoided. `word` selects among the detours.
    pub(crate) fn detour(&self, src: Terminal, dst: Terminal, word: u64, path: &mut Vec<PortId>) {
        if self.is_cut(src, dst, path) {
            self.take_other_ports(src, dst, word, path);
        }
        self.detour_between(src, dst, word, path);
    }

    /// Replaces the planned path like [`Paths::detour`], but keeps the ports of the hosts.
    pub(crate) fn detour_between(
        &self,
        src: Terminal,
        dst: Terminal,
        word: u64,
        path: &mut Vec<PortId>,
    ) {
        if let Some(live) = &self.live
            && let Some(around) = self.walk_around(live, (src, dst), word, path)
        {
            *path = around;
        }
    }

    /// Returns `true` if a host does not use the ports at which this path begins and ends. Either
    /// it avoids the link of its own port, or it is globally known that the link of the peer's port
    /// is avoided or that the networks behind the two ports are separated.
    pub(crate) fn is_cut(&self, src: Terminal, dst: Terminal, path: &[PortId]) -> bool {
        let (Some(live), &[first, .., last]) = (&self.live, path) else { return false };
        live.avoided.concerns(first)
            || contains(&live.avoided.global, last)
            || live.distances.as_ref().is_some_and(|distances| {
                let (from, edge) = (self.edge_of(src, first), self.edge_of(dst, opposite(last)));
                let row = edge.and_then(|edge| self.rows[edge.index()]);
                from.zip(row).is_some_and(|(from, row)| {
                    distances[row as usize * self.ranges.len() + from.index()] == UNREACHABLE
                })
            })
    }

    /// Returns the switch behind a port of a host.
    fn edge_of(&self, host: Terminal, port: PortId) -> Option<SwitchId> {
        match self.nics(host.host).iter().find(|(nic, _)| *nic == port) {
            Some((_, Node::Switch(switch))) => Some(*switch),
            _ => None,
        }
    }

    /// Replaces a path by one between other ports of its hosts, if such ports are in use.
    fn take_other_ports(&self, src: Terminal, dst: Terminal, word: u64, path: &mut Vec<PortId>) {
        let (low, high) = (src.min(dst), src.max(dst));
        let is_used = |ends: &Ends| {
            let ports = [ends.first.0, opposite(ends.last.0)];
            let back = [ends.last.0, opposite(ends.first.0)];
            !self.is_cut(src, dst, if src == low { &ports } else { &back })
        };
        let all: Vec<Ends> = self.ends(low, high).into_iter().filter(is_used).collect();
        let hash = absorb(mix(self.seed ^ DETOUR), word);
        let Some(ends) = all.get(below(hash, all.len() as u64) as usize) else { return };
        let mut other = Vec::new();
        if self.walk_between(*ends, hash, &mut other).is_some() {
            if src != low {
                other.reverse();
                other.iter_mut().for_each(|port| *port = opposite(*port));
            }
            *path = other;
        }
    }

    /// Returns the path that packets take; `None` if that is the planned one, for example because
    /// no other path exists.
    fn walk_around(
        &self,
        live: &Live,
        (src, dst): (Terminal, Terminal),
        word: u64,
        planned: &[PortId],
    ) -> Option<Vec<PortId>> {
        let (&first, &last) = planned.first().zip(planned.last())?;
        let last = opposite(last);
        let (from, edge) = (self.edge_of(src, first)?, self.edge_of(dst, last)?);
        let row = self.rows[edge.index()]? as usize * self.ranges.len();
        let far = |switch: SwitchId| self.distances[row + switch.index()];
        let far_now = |switch: SwitchId| {
            live.distances.as_ref().map_or_else(|| far(switch), |d| d[row + switch.index()])
        };
        let mut hash = absorb(mix(self.seed ^ DETOUR), word);
        let mut path = vec![first];
        let (mut switch, mut on_plan) = (from, true);
        while switch != edge {
            // The path so far has one switch per port.
            if path.len() == usize::from(MAX_SWITCHES) {
                return None;
            }
            hash = absorb(hash, u64::from(switch.get()));
            let (start, end) = self.ranges[switch.index()];
            let ports = &self.uplinks[start as usize..end as usize];
            let is_closer = |peer: SwitchId| {
                far_now(peer) != UNREACHABLE
                    && far_now(peer).checked_add(1) == Some(far_now(switch))
            };
            let is_live = |&&(port, peer): &&(PortId, SwitchId)| {
                is_closer(peer) && !live.avoided.concerns(port)
            };
            let was_closer = |peer: SwitchId| far(peer).checked_add(1) == Some(far(switch));
            let healthy = |&&(_, peer): &&(PortId, SwitchId)| was_closer(peer);
            let plan = planned.get(path.len()).copied().filter(|_| on_plan);
            let of_plan = ports.iter().find(|(port, _)| Some(*port) == plan);
            let count = ports.iter().filter(is_live).count() as u64;
            let whole = ports.iter().filter(healthy).eq(ports.iter().filter(is_live));
            let keeps = whole || live.avoided.rehash == Rehash::Resilient;
            let next = if let Some(of_plan) = of_plan.filter(|one| keeps && is_live(one)) {
                of_plan
            } else if count == 0 {
                // Only the failed link leads there.
                let members = ports.iter().filter(healthy).count() as u64;
                let any = || ports.iter().filter(healthy).nth((hash % members.max(1)) as usize);
                of_plan.or_else(any)?
            } else {
                ports.iter().filter(is_live).nth((hash % count) as usize)?
            };
            on_plan &= plan == Some(next.0);
            path.push(next.0);
            switch = next.1;
        }
        path.push(opposite(last));
        Some(path)
    }
}
