//! Dependencies of the operations of a rank.

use alloc::boxed::Box;
use alloc::vec;

/// By operation: the operations that wait for it, in the order in which they were added.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Edges {
    /// First target of each operation, then the number of all targets; empty if there are no targets.
    first: Box<[u32]>,
    targets: Box<[u32]>,
}

impl Edges {
    /// Returns the edges of `ops` operations. Each pair has an operation that waits and the operation for
    /// which it waits, both below `ops`.
    pub(super) fn new(ops: usize, pairs: &[(u32, u32)]) -> Self {
        if pairs.is_empty() {
            return Self::default();
        }
        let mut first = vec![0u32; ops + 1];
        for (_, awaited) in pairs {
            first[*awaited as usize + 1] += 1;
        }
        for op in 0..ops {
            first[op + 1] += first[op];
        }
        let mut next = first.clone();
        let mut targets = vec![0u32; pairs.len()];
        for (waits, awaited) in pairs {
            let slot = &mut next[*awaited as usize];
            targets[*slot as usize] = *waits;
            *slot += 1;
        }
        Self { first: first.into_boxed_slice(), targets: targets.into_boxed_slice() }
    }

    #[inline]
    pub(super) fn of(&self, op: u32) -> &[u32] {
        let op = op as usize;
        match self.first.get(op..op + 2) {
            Some(&[from, to]) => &self.targets[from as usize..to as usize],
            _ => &[],
        }
    }

    pub(super) fn len(&self) -> usize {
        self.targets.len()
    }
}
