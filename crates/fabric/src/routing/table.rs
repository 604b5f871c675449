//! The resolved routes in one flat table: a hop costs one load.

use alloc::vec::Vec;

use apus_units::PortId;

/// A resolved route: where its egress ports start in the table of the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteId(u32);

/// Routes one after the other, each preceded by a word that holds its length and whether it is free.
#[derive(Default)]
pub(crate) struct RouteTable {
    words: Vec<u32>,
    /// Released routes by length, for reuse.
    free: Vec<Vec<RouteId>>,
}

/// Flag in the word before a route that was released.
const RELEASED: u32 = 1 << 31;

impl RouteTable {
    /// # Panics
    /// If the table outgrows 2^32 words, or the path 255 hops (which [`super::Paths`] never gives).
    pub(crate) fn insert(&mut self, path: &[PortId]) -> RouteId {
        assert!(path.len() <= usize::from(u8::MAX) + 1, "a packet counts hops in 8 bits");
        if let Some(route) = self.free.get_mut(path.len()).and_then(Vec::pop) {
            let start = route.0 as usize;
            self.words[start - 1] = path.len() as u32;
            for (word, port) in self.words[start..start + path.len()].iter_mut().zip(path) {
                *word = port.get();
            }
            return route;
        }
        self.words.push(path.len() as u32);
        let start = u32::try_from(self.words.len()).expect("fewer than 2^32 words of routes");
        self.words.extend(path.iter().map(|port| port.get()));
        RouteId(start)
    }

    /// Every route stored so far is below this; one stored later that reuses no released one is not.
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
        (self.words[route.0 as usize - 1] & !RELEASED) as usize
    }

    /// # Panics
    /// If it was released before.
    pub(crate) fn release(&mut self, route: RouteId) {
        let len = self.len(route);
        let word = &mut self.words[route.0 as usize - 1];
        assert!(*word & RELEASED == 0, "{route:?} was released twice");
        *word |= RELEASED;
        if self.free.len() <= len {
            self.free.resize_with(len + 1, Vec::new);
        }
        self.free[len].push(route);
    }
}
