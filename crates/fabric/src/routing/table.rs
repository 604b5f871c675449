//! The resolved routes in one flat table: a hop costs one load.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use apus_units::PortId;

/// A resolved route: where its egress ports start in the table of the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteId(u32);

impl RouteId {
    /// The route that starts at this word of the table.
    #[inline]
    pub(crate) const fn new(word: u32) -> Self {
        Self(word)
    }

    /// Returns the word of the table where the route starts.
    #[inline]
    pub(crate) const fn get(self) -> u32 {
        self.0
    }
}

/// Routes one after the other, each preceded by its length.
#[derive(Default)]
pub(crate) struct RouteTable {
    words: Vec<u32>,
    /// Routes stored while a simulation runs, by their paths: a flow that changes its path back and
    /// forth must not make the table grow.
    shared: BTreeMap<Box<[PortId]>, RouteId>,
}

impl RouteTable {
    /// # Panics
    /// If the table outgrows 2^32 words, or the path 255 hops (which [`super::Paths`] never gives).
    pub(crate) fn insert(&mut self, path: &[PortId]) -> RouteId {
        assert!(path.len() <= usize::from(u8::MAX) + 1, "a packet counts hops in 8 bits");
        self.words.push(path.len() as u32);
        let start = u32::try_from(self.words.len()).expect("fewer than 2^32 words of routes");
        self.words.extend(path.iter().map(|port| port.get()));
        RouteId(start)
    }

    /// Stores a path like `insert`, in the room of one with `room` hops.
    pub(crate) fn insert_in(&mut self, path: &[PortId], room: usize) -> RouteId {
        let route = self.insert(path);
        self.words.resize(self.words.len() + room.saturating_sub(path.len()), 0);
        route
    }

    /// Stores a path like `insert`, or returns an equal path that this function stored before.
    pub(crate) fn insert_shared(&mut self, path: &[PortId]) -> RouteId {
        if let Some(route) = self.shared.get(path) {
            return *route;
        }
        let route = self.insert(path);
        self.shared.insert(path.into(), route);
        route
    }

    /// Every route stored so far is below this; one stored later is not.
    pub(crate) fn end(&self) -> RouteId {
        RouteId(self.words.len() as u32)
    }

    /// The egress port of hop number `hop`.
    #[inline]
    pub(crate) fn port(&self, route: RouteId, hop: u8) -> PortId {
        PortId::new(self.words[route.0 as usize + usize::from(hop)])
    }

    /// All its egress ports in order.
    pub(crate) fn ports(&self, route: RouteId) -> impl DoubleEndedIterator<Item = PortId> + '_ {
        let start = route.0 as usize;
        self.words[start..start + self.len(route)].iter().map(|word| PortId::new(*word))
    }

    pub(crate) fn len(&self, route: RouteId) -> usize {
        self.words[route.0 as usize - 1] as usize
    }
}
