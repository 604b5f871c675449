//! The resolved routes in one flat table, so that a hop costs one load.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use apus_units::PortId;

use super::{MAX_SWITCHES, RouteError};
use crate::packet::{Fields, Way};

/// A resolved route: the position in the network's table at which its egress ports start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteId(u32);

impl RouteId {
    /// Returns the route that starts at this word of the table.
    #[inline]
    pub(crate) const fn new(word: u32) -> Self {
        Self(word)
    }

    /// Returns the word of the table at which the route starts.
    #[inline]
    pub(crate) const fn get(self) -> u32 {
        self.0
    }
}

/// Routes in sequence, each preceded by its length.
#[derive(Default)]
pub(crate) struct RouteTable {
    pub(crate) words: Vec<u32>,
    /// Routes stored while a simulation runs, by their paths, so that a flow that changes its path
    /// back and forth does not make the table grow.
    shared: BTreeMap<Box<[PortId]>, RouteId>,
    choices: Choices,
}

/// Positions at which switches may change the rest of a route.
#[derive(Default)]
struct Choices {
    /// For each word of the table: the start in `lists` of the routes that may be taken from there
    /// on; 0 if there is no choice.
    at: Vec<u32>,
    /// Lists of routes, each preceded by its length.
    lists: Vec<u32>,
}

impl RouteTable {
    /// # Errors
    /// If the table would outgrow 2^32 words.
    ///
    /// # Panics
    /// If the path has more hops than a packet can take (neither [`super::Paths`] nor
    /// [`crate::Topology::path`] returns such a path).
    pub(crate) fn insert(&mut self, path: &[PortId]) -> Result<RouteId, RouteError> {
        assert!(path.len() <= usize::from(MAX_SWITCHES) + 1, "a packet takes at most 64 hops");
        let start = start_of(self.words.len(), path.len())?;
        self.words.push(path.len() as u32);
        self.words.extend(path.iter().map(|port| port.get()));
        Ok(RouteId(start))
    }

    /// Stores a path like `insert`, but reserves words for `room` hops.
    pub(crate) fn insert_in(
        &mut self,
        path: &[PortId],
        room: usize,
    ) -> Result<RouteId, RouteError> {
        start_of(self.words.len(), room)?;
        let route = self.insert(path)?;
        self.words.resize(self.words.len() + room.saturating_sub(path.len()), 0);
        Ok(route)
    }

    /// Stores a path like `insert`, or returns an equal route that this function stored before.
    pub(crate) fn insert_shared(&mut self, path: &[PortId]) -> Result<RouteId, RouteError> {
        if let Some(route) = self.shared.get(path) {
            return Ok(*route);
        }
        let route = self.insert(path)?;
        self.shared.insert(path.into(), route);
        Ok(route)
    }

    /// Lets switches choose among these routes, which connect the same two hosts and may differ in
    /// length.
    pub(crate) fn add_choices(&mut self, routes: impl Iterator<Item = RouteId>) {
        let mut routes: Vec<RouteId> = routes.collect();
        let longest = routes.iter().map(|route| self.len(*route)).max().unwrap_or(0);
        if self.choices.lists.is_empty() {
            self.choices.lists.push(0); // no list starts at 0
        }
        self.choices.at.resize(self.words.len(), 0);
        // A path has at most 64 hops.
        for hop in 1..longest as u8 {
            routes.retain(|route| usize::from(hop) < self.len(*route));
            // Routes with the same ports up to this hop: one for each port at this hop.
            let mut groups: BTreeMap<Vec<PortId>, Vec<RouteId>> = BTreeMap::new();
            let prefix = |table: &Self, route| table.ports(route).take(hop.into()).collect();
            for &route in &routes {
                let group = groups.entry(prefix(self, route)).or_default();
                if group.iter().all(|other| self.port(*other, hop) != self.port(route, hop)) {
                    group.push(route);
                }
            }
            groups.retain(|_, group| group.len() > 1);
            let starts: BTreeMap<&Vec<PortId>, u32> = groups
                .iter()
                .map(|(prefix, group)| {
                    let start = self.choices.lists.len() as u32; // fewer than words of routes
                    self.choices.lists.push(group.len() as u32);
                    self.choices.lists.extend(group.iter().map(|route| route.get()));
                    (prefix, start)
                })
                .collect();
            for &route in &routes {
                if let Some(&start) = starts.get(&prefix(self, route)) {
                    self.choices.at[route.get() as usize + usize::from(hop)] = start;
                }
            }
        }
    }

    /// Returns the routes, as words, that a packet on `route` may take from `hop` on, one for each
    /// next port; empty if there is no choice.
    #[inline]
    pub(crate) fn choices(&self, route: RouteId, hop: u8) -> &[u32] {
        let word = route.get() as usize + usize::from(hop);
        let Some(start) = self.choices.at.get(word).map(|start| *start as usize) else {
            return &[];
        };
        if start == 0 {
            return &[];
        }
        let count = self.choices.lists[start] as usize;
        &self.choices.lists[start + 1..=start + count]
    }

    /// Returns the end of the table: every route stored so far is below it, and every later one at
    /// or above it.
    pub(crate) fn end(&self) -> RouteId {
        RouteId(self.words.len() as u32)
    }

    /// Returns the egress port of hop number `hop`.
    #[inline]
    pub(crate) fn port(&self, route: RouteId, hop: u8) -> PortId {
        PortId::new(self.words[route.0 as usize + usize::from(hop)])
    }

    /// Returns all egress ports of a route in order.
    pub(crate) fn ports(&self, route: RouteId) -> impl DoubleEndedIterator<Item = PortId> + '_ {
        let start = route.0 as usize;
        self.words[start..start + self.len(route)].iter().map(|word| PortId::new(*word))
    }

    pub(crate) fn len(&self, route: RouteId) -> usize {
        self.words[route.0 as usize - 1] as usize
    }
}

/// Returns the word at which the next route, with `hops` ports, starts in a table of `words` words.
///
/// # Errors
/// If the route would end at word 2^32 or later.
fn start_of(words: usize, hops: usize) -> Result<u32, RouteError> {
    let start = words.saturating_add(1);
    u32::try_from(start.saturating_add(hops)).map_err(|_| RouteError::TooMany)?;
    u32::try_from(start).map_err(|_| RouteError::TooMany)
}

/// Advances a packet that follows its route forwards to its next hop, and returns the egress port
/// by which it leaves. Returns `None`, without effect, for other packets, and for those that may
/// visit no further switch.
#[inline(always)]
pub(crate) fn forward(fields: &mut Fields, words: &[u32]) -> Option<PortId> {
    if fields.ttl <= 1 || fields.way != Way::FORWARD {
        return None;
    }
    fields.ttl -= 1;
    fields.hop += 1;
    Some(PortId::new(words[fields.route.0 as usize + usize::from(fields.hop)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_fewer_than_2_32_words() {
        assert_eq!(start_of(0, 6), Ok(1));
        let most = u32::MAX as usize;
        assert_eq!(start_of(most - 7, 6), Ok(u32::MAX - 6));
        assert_eq!(start_of(most - 6, 6), Err(RouteError::TooMany));
        assert_eq!(start_of(usize::MAX, 6), Err(RouteError::TooMany));
    }
}
