//! A table by small numbers: a lookup takes one index, and the table is as long as the largest number in use.

/// Values by their numbers.
#[derive(Debug)]
pub(super) struct Table<T> {
    /// Boxed, since most slots may be empty.
    slots: Vec<Option<Box<T>>>,
    used: usize,
}

impl<T> Table<T> {
    pub(super) const fn new() -> Self {
        Self { slots: Vec::new(), used: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.used == 0
    }

    #[inline]
    pub(super) fn get(&self, number: usize) -> Option<&T> {
        self.slots.get(number)?.as_deref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: usize) -> Option<&mut T> {
        self.slots.get_mut(number)?.as_deref_mut()
    }

    /// Inserts a value; replaces the value of the same number.
    pub(super) fn insert(&mut self, number: usize, value: T) {
        if self.slots.len() <= number {
            self.slots.resize_with(number + 1, || None);
        }
        if self.slots[number].replace(Box::new(value)).is_none() {
            self.used += 1;
        }
    }

    pub(super) fn remove(&mut self, number: usize) -> Option<T> {
        let value = self.slots.get_mut(number)?.take()?;
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
    fn an_inserted_value_is_found_by_its_number_until_it_is_removed() {
        let mut table = Table::new();
        assert!(table.is_empty() && table.remove(3).is_none());
        for (number, value) in [(3, 'a'), (0, 'b'), (3, 'c')] {
            table.insert(number, value);
        }
        assert_eq!((table.get(3), table.get(1), table.get(9)), (Some(&'c'), None, None));
        assert_eq!(table.values().collect::<String>(), "bc");
        table.values_mut().for_each(|value| *value = value.to_ascii_uppercase());
        assert_eq!((table.remove(3), table.remove(3), table.is_empty()), (Some('C'), None, false));
        assert_eq!(table.get_mut(0), Some(&mut 'B'));
        assert_eq!(table.remove(0), Some('B'));
        assert!(table.is_empty());
        table.insert(2, 'd');
        assert_eq!(table.into_values().collect::<String>(), "d");
    }
}
