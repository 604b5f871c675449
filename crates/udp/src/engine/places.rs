//! A table by small numbers: as quick as an index, and as long as the largest number in use.

/// Values by their places.
#[derive(Debug)]
pub(super) struct Places<T> {
    /// Boxed, as most places may be empty.
    slots: Vec<Option<Box<T>>>,
    used: usize,
}

impl<T> Places<T> {
    pub(super) const fn new() -> Self {
        Self { slots: Vec::new(), used: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.used == 0
    }

    #[inline]
    pub(super) fn get(&self, place: usize) -> Option<&T> {
        self.slots.get(place)?.as_deref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        self.slots.get_mut(place)?.as_deref_mut()
    }

    /// Puts a value into a place, in place of what is there.
    pub(super) fn insert(&mut self, place: usize, value: T) {
        if self.slots.len() <= place {
            self.slots.resize_with(place + 1, || None);
        }
        if self.slots[place].replace(Box::new(value)).is_none() {
            self.used += 1;
        }
    }

    pub(super) fn remove(&mut self, place: usize) -> Option<T> {
        let value = self.slots.get_mut(place)?.take()?;
        self.used -= 1;
        if self.used == 0 {
            self.slots = Vec::new();
        }
        Some(*value)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().flatten().map(|value| &**value)
    }

    pub(super) fn into_values(self) -> impl Iterator<Item = T> {
        self.slots.into_iter().flatten().map(|value| *value)
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().flatten().map(|value| &mut **value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_into_a_place_is_found_there_until_it_is_taken() {
        let mut places = Places::new();
        assert!(places.is_empty() && places.remove(3).is_none());
        for (place, value) in [(3, 'a'), (0, 'b'), (3, 'c')] {
            places.insert(place, value);
        }
        assert_eq!((places.get(3), places.get(1), places.get(9)), (Some(&'c'), None, None));
        assert_eq!(places.values().collect::<String>(), "bc");
        places.values_mut().for_each(|value| *value = value.to_ascii_uppercase());
        assert_eq!(
            (places.remove(3), places.remove(3), places.is_empty()),
            (Some('C'), None, false)
        );
        assert_eq!(places.get_mut(0), Some(&mut 'B'));
        assert_eq!(places.remove(0), Some('B'));
        assert!(places.is_empty());
        places.insert(2, 'd');
        assert_eq!(places.into_values().collect::<String>(), "d");
    }
}
