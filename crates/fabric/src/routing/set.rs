//! All shortest paths between two hosts, for flows that choose a path per packet.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use apus_units::{HostId, PortId};

use super::{Node, Paths, RouteError, RouteId, RouteTable, UNREACHABLE, opposite};

/// Maximum number of paths that are stored of a pair of hosts: an entropy value of 16 bits names no more.
const MAX_PATHS: usize = 1 << 16;

/// The shortest paths from one host to another, numbered from 0. The number of a path is the same in both
/// directions.
///
/// Paths whose numbers differ by one differ at the first switch with a choice, as seen from the host with
/// the smaller number: the choice there is the lowest digit of the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathSet {
    /// The words of the table of routes where the first path starts, there and back.
    first: [u32; 2],
    /// Words between two paths.
    stride: u32,
    count: u32,
}

impl PathSet {
    /// Returns the number of paths, at least 1.
    #[inline]
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Returns the route of path `number`, which is below [`PathSet::count`].
    #[inline]
    #[must_use]
    pub const fn route(&self, number: u32) -> RouteId {
        RouteId::new(self.first[0] + number * self.stride)
    }

    /// Returns the number of the path of a packet that came from the other host; `None` if its route is
    /// none of these paths.
    #[inline]
    #[must_use]
    pub fn number_of(&self, route: RouteId) -> Option<u32> {
        let number = route.get().checked_sub(self.first[1])? / self.stride;
        (number < self.count).then_some(number)
    }

    /// The paths in the other direction.
    #[must_use]
    pub const fn reversed(&self) -> Self {
        Self { first: [self.first[1], self.first[0]], ..*self }
    }
}

/// The paths stored so far, by pair of hosts, the smaller number first.
#[derive(Default)]
pub(crate) struct PathSets(BTreeMap<(HostId, HostId), PathSet>);

impl PathSets {
    pub(crate) fn get(
        &mut self,
        paths: &Paths,
        routes: &mut RouteTable,
        src: HostId,
        dst: HostId,
    ) -> Result<PathSet, RouteError> {
        let pair = (src.min(dst), src.max(dst));
        let set = match self.0.get(&pair) {
            Some(set) => *set,
            None => {
                let set = store(&paths.find_all(pair.0, pair.1)?, routes);
                *self.0.entry(pair).or_insert(set)
            }
        };
        Ok(if src <= dst { set } else { set.reversed() })
    }
}

/// Stores paths of equal length, each followed by its reverse.
fn store(paths: &[Vec<PortId>], routes: &mut RouteTable) -> PathSet {
    let ids: Vec<[u32; 2]> = paths
        .iter()
        .map(|path| {
            let back: Vec<PortId> = path.iter().rev().copied().map(opposite).collect();
            [routes.insert(path).get(), routes.insert(&back).get()]
        })
        .collect();
    let stride = ids.get(1).map_or(1, |second| second[0] - ids[0][0]);
    // At most 65536.
    PathSet { first: ids[0], stride, count: ids.len() as u32 }
}

impl Paths {
    /// Returns all shortest paths from `low` to `high`, at most [`MAX_PATHS`] of them and at least one.
    fn find_all(&self, low: HostId, high: HostId) -> Result<Vec<Vec<PortId>>, RouteError> {
        let mut one = Vec::new();
        self.find(low, high, 0, 0, &mut one)?;
        let ((first, from), (last, to)) = (self.nics[low.index()], self.nics[high.index()]);
        let (Node::Switch(from), Node::Switch(to)) = (from, to) else { return Ok(vec![one]) };
        let no_path = RouteError::NoPath { src: low, dst: high };
        let row = self.rows[to.index()].ok_or(no_path)? as usize * self.ranges.len();
        // Each path with its choices, the latest first: the order of the choices is that of the numbers.
        let mut open = vec![(Vec::<u32>::new(), vec![first], from)];
        while open.iter().any(|(.., switch)| *switch != to) {
            let mut longer = Vec::new();
            for (choices, path, switch) in &open {
                let (start, end) = self.ranges[switch.index()];
                let closer = self.distances[row + switch.index()].saturating_sub(1);
                let hops = self.uplinks[start as usize..end as usize]
                    .iter()
                    .filter(|(_, peer)| self.distances[row + peer.index()] == closer);
                for (choice, &(port, peer)) in (0..).zip(hops) {
                    if longer.len() == MAX_PATHS || closer == UNREACHABLE {
                        break;
                    }
                    let mut choices = choices.clone();
                    choices.insert(0, choice);
                    let mut path = path.clone();
                    path.push(port);
                    longer.push((choices, path, peer));
                }
            }
            open = longer;
        }
        open.sort_by(|a, b| a.0.cmp(&b.0));
        let complete = |(_, mut path, _): (_, Vec<PortId>, _)| {
            path.push(opposite(last));
            path
        };
        Ok(open.into_iter().map(complete).collect())
    }
}
