//! Packets of a link or of a class, oldest first, in a circle of `2^n` places: what every hop reads and
//! writes.

use alloc::boxed::Box;

use apus_units::prefetch;

/// A queue of packets that grows as needed. Beside a `VecDeque` it saves a fifth of a hop's
/// instructions: a place is found by a mask.
pub(crate) struct Ring<T> {
    /// A power of two of them.
    places: Box<[T]>,
    /// Fewer than 2^32 packets are on their way at once: half a word each.
    head: u32,
    len: u32,
}

/// Places of a new ring.
const FIRST: usize = 4;

impl<T: Copy + Default> Ring<T> {
    pub(crate) fn new() -> Self {
        Self { places: Box::new([T::default(); FIRST]), head: 0, len: 0 }
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    #[inline(always)]
    fn place(&self, index: usize) -> usize {
        (self.head as usize + index) & (self.places.len() - 1)
    }

    /// The `index`-th oldest.
    #[inline(always)]
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        if index < self.len() { self.places.get(self.place(index)) } else { None }
    }

    /// The same, to change it.
    #[inline(always)]
    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let place = self.place(index);
        if index < self.len() { self.places.get_mut(place) } else { None }
    }

    #[inline(always)]
    pub(crate) fn front(&self) -> Option<&T> {
        if self.len > 0 { self.places.get(self.head as usize) } else { None }
    }

    /// All from the `index`-th oldest on.
    pub(crate) fn from(&self, index: usize) -> impl Iterator<Item = &T> {
        (index..self.len()).filter_map(|index| self.get(index))
    }

    #[inline(always)]
    pub(crate) fn push_back(&mut self, entry: T) {
        if self.len() == self.places.len() {
            self.grow();
        }
        let place = self.place(self.len());
        if let Some(free) = self.places.get_mut(place) {
            *free = entry;
        }
        self.len += 1;
    }

    /// Brings the place near where the next one will be put.
    #[inline]
    pub(crate) fn prefetch_tail(&self) {
        if let Some(place) = self.places.get(self.place(self.len())) {
            prefetch(place);
        }
    }

    /// Takes the oldest. A ring that runs empty starts over at its first place, which is still in
    /// the cache.
    #[inline(always)]
    pub(crate) fn pop_front(&mut self) -> Option<T> {
        let entry = *self.front()?;
        self.len -= 1;
        self.head = if self.len == 0 { 0 } else { self.place(1) as u32 };
        Some(entry)
    }

    /// Forgets the `count` oldest.
    #[inline(always)]
    pub(crate) fn forget(&mut self, count: usize) {
        debug_assert!(count <= self.len(), "only what is there can be forgotten");
        self.head = self.place(count) as u32;
        self.len -= count as u32;
    }

    /// Doubles the places, the oldest first.
    #[cold]
    fn grow(&mut self) {
        let mut old = core::mem::take(&mut self.places).into_vec();
        old.rotate_left(self.head as usize);
        let places = 2 * old.len();
        old.resize(places, T::default());
        self.places = old.into_boxed_slice();
        self.head = 0;
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::VecDeque;
    use alloc::vec::Vec;

    use apus_units::Time;

    use super::*;
    use crate::port::InFlight;

    /// A ring is right if it agrees with a deque under every sequence of operations.
    #[test]
    fn agrees_with_a_deque() {
        let mut state = 3u64;
        let mut next = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 33
        };
        let (mut ring, mut model) = (Ring::new(), VecDeque::new());
        let bytes = |entry: Option<&InFlight>| entry.map(|entry| entry.bytes);
        for step in 0..100_000u32 {
            // Phases in which it mostly grows, then mostly shrinks.
            let pushes = if step / 1000 % 2 == 0 { 6 } else { 4 };
            match next() % 10 {
                draw if draw < pushes => {
                    ring.push_back(InFlight { bytes: step, ..InFlight::default() });
                    model.push_back(step);
                }
                9 if step % 8 == 0 => {
                    let count = (next() as usize) % (model.len() + 1);
                    ring.forget(count);
                    model.drain(..count);
                }
                _ => assert_eq!(bytes(ring.pop_front().as_ref()), model.pop_front()),
            }
            let index = (next() % 8) as usize;
            assert_eq!(bytes(ring.get(index)), model.get(index).copied());
            assert_eq!((ring.len(), bytes(ring.front())), (model.len(), model.front().copied()));
        }
        let rest: Vec<u32> = ring.from(2).map(|entry| entry.bytes).collect();
        assert_eq!(rest, model.range(2.min(model.len())..).copied().collect::<Vec<_>>());
        assert!(ring.from(0).all(|entry| entry.arrives == Time::ZERO));
    }
}
