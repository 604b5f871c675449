//! Labels of operations.

use alloc::string::String;
use alloc::vec::Vec;

/// Labels of the first operations of a rank; an operation may have none.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Labels {
    text: String,
    /// End of each label in `text`. An operation without label has an empty label.
    ends: Vec<u32>,
}

impl Labels {
    /// Sets the label of an operation. Operations must be labelled in ascending order. Returns `false` if the
    /// labels take 4 GiB or more.
    pub(super) fn push(&mut self, op: u32, label: &str) -> bool {
        let Ok(end) = u32::try_from(self.text.len() + label.len()) else { return false };
        let before = self.text.len() as u32;
        self.ends.resize(op as usize, before);
        self.text.push_str(label);
        self.ends.push(end);
        true
    }

    pub(super) fn of(&self, op: u32) -> Option<&str> {
        let end = *self.ends.get(op as usize)?;
        let start = op.checked_sub(1).map_or(0, |before| self.ends[before as usize]);
        let label = self.text.get(start as usize..end as usize)?;
        (!label.is_empty()).then_some(label)
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn shrink(&mut self) {
        self.text.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}
