//! A queue that takes little room while it is empty, and one step to index.

use alloc::boxed::Box;

use apus_units::prefetch;

/// A queue in a circle of `2^n` places that grows as needed. 24 bytes and no memory of its own while
/// nothing was ever in it: every flow has several, and most flows of a large run are idle.
#[derive(Clone, Debug)]
pub(crate) struct Ring<T> {
    /// A power of two of them, or none.
    places: Box<[T]>,
    head: u32,
    len: u32,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Self { places: Box::default(), head: 0, len: 0 }
    }
}

impl<T: Default> Ring<T> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    /// Where the `index`-th oldest is, which need not exist. The mask keeps it within the places, if
    /// there are any.
    #[inline]
    fn place(&self, index: usize) -> usize {
        (self.head as usize + index) & self.places.len().wrapping_sub(1)
    }

    /// The `index`-th oldest.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        if index >= self.len() {
            return None;
        }
        self.places.get(self.place(index))
    }

    /// The `index`-th oldest.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        if index >= self.len() {
            return None;
        }
        let place = self.place(index);
        self.places.get_mut(place)
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<&T> {
        self.get(0)
    }

    /// Brings near the place of the value that is pushed next.
    #[inline]
    pub(crate) fn prefetch_free(&self) {
        if let Some(place) = self.places.get(self.place(self.len())) {
            prefetch(place);
        }
    }

    #[inline]
    pub(crate) fn push_back(&mut self, value: T) {
        if self.len() == self.places.len() {
            self.grow();
        }
        let place = self.place(self.len());
        self.places[place] = value;
        self.len += 1;
    }

    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<T> {
        if self.len == 0 {
            return None;
        }
        let place = self.place(0);
        self.head = place as u32 + 1;
        self.len -= 1;
        self.places.get_mut(place).map(core::mem::take)
    }

    /// Adds empty values until there are `len`.
    pub(crate) fn extend_to(&mut self, len: usize) {
        while self.len() < len {
            self.push_back(T::default());
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// The oldest that `wanted` says yes to.
    pub(crate) fn find_mut(&mut self, wanted: impl Fn(&T) -> bool) -> Option<&mut T> {
        let index = self.iter().position(wanted)?;
        self.get_mut(index)
    }

    /// Gives back its memory if it is empty.
    pub(crate) fn release(&mut self) {
        if self.len == 0 {
            *self = Self::default();
        }
    }

    /// Doubles the places, the oldest first.
    #[cold]
    fn grow(&mut self) {
        let places = (2 * self.places.len()).max(1);
        // Half of 2^32 values would be tens of gigabytes.
        assert!(
            u32::try_from(places).is_ok(),
            "a flow has fewer than 2^32 packets or ops under way"
        );
        let mut old = core::mem::take(&mut self.places);
        let head = self.head as usize & old.len().wrapping_sub(1);
        old.rotate_left(head.min(old.len()));
        let mut grown = old.into_vec();
        grown.resize_with(places, T::default);
        self.places = grown.into_boxed_slice();
        self.head = 0;
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::VecDeque;
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn an_empty_ring_takes_three_words() {
        assert_eq!(size_of::<Ring<[u64; 9]>>(), 24);
    }

    #[test]
    fn agrees_with_a_deque() {
        let mut state = 7u64;
        let mut next = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 33
        };
        let (mut ring, mut model) = (Ring::<u64>::default(), VecDeque::new());
        for step in 0..100_000 {
            // Phases in which it mostly grows, then mostly shrinks.
            let pushes = if step / 1000 % 2 == 0 { 6 } else { 4 };
            if next() % 10 < pushes {
                ring.push_back(step);
                model.push_back(step);
            } else {
                assert_eq!(ring.pop_front(), model.pop_front());
            }
            if next() % 16 == 0 {
                ring.release();
            }
            let index = (next() % 8) as usize;
            assert_eq!(ring.get(index), model.get(index));
            assert_eq!(ring.get_mut(index), model.get_mut(index));
            assert_eq!(ring.len(), model.len());
            assert_eq!(ring.front(), model.front());
        }
        assert_eq!(ring.iter().collect::<Vec<_>>(), model.iter().collect::<Vec<_>>());
        ring.extend_to(model.len() + 5);
        assert_eq!(ring.get(model.len() + 4), Some(&0));
        let wanted = *model.back().unwrap_or(&0);
        assert_eq!(ring.find_mut(|value| *value == wanted).copied(), Some(wanted));
    }
}
