//! Counters of the ops of a connection by kind and outcome.

use std::sync::atomic::{AtomicU64, Ordering};

use apus_transport::OpKind;

use crate::stats::add;

/// Names of the kinds of ops in metrics, by index.
pub(crate) const KINDS: [&str; 5] = ["write", "read", "message", "compare_and_swap", "fetch_add"];

/// Names of the outcomes of ops in metrics, by index.
pub(crate) const OUTCOMES: [&str; 2] = ["done", "failed"];

/// Counters of the ended ops of a connection. The engine is the only writer.
#[derive(Debug, Default)]
pub(crate) struct OpCounters {
    ops: [[AtomicU64; OUTCOMES.len()]; KINDS.len()],
    bytes: [AtomicU64; KINDS.len()],
}

/// The values of [`OpCounters`], or sums of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpCounts {
    /// Number of ended ops, by kind and outcome.
    pub(crate) ops: [[u64; OUTCOMES.len()]; KINDS.len()],
    /// Bytes moved by the ops that are done, by kind.
    pub(crate) bytes: [u64; KINDS.len()],
}

/// Returns the index of a kind in [`KINDS`].
fn index(kind: OpKind) -> usize {
    match kind {
        OpKind::Write { .. } => 0,
        OpKind::Read { .. } => 1,
        OpKind::Message => 2,
        OpKind::CompareAndSwap { .. } => 3,
        OpKind::FetchAdd { .. } => 4,
    }
}

impl OpCounters {
    /// Counts the end of an op of `bytes` bytes.
    #[inline]
    pub(crate) fn count(&self, kind: OpKind, bytes: u64, done: bool) {
        let kind = index(kind);
        add(&self.ops[kind][usize::from(!done)], 1);
        if done {
            add(&self.bytes[kind], bytes);
        }
    }

    /// Returns the values.
    pub(crate) fn counts(&self) -> OpCounts {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        OpCounts {
            ops: self.ops.each_ref().map(|ends| ends.each_ref().map(load)),
            bytes: self.bytes.each_ref().map(load),
        }
    }
}

impl OpCounts {
    /// Adds other counts.
    pub(crate) fn add(&mut self, other: &Self) {
        for (sum, more) in self.ops.iter_mut().flatten().zip(other.ops.iter().flatten()) {
            *sum += more;
        }
        for (sum, more) in self.bytes.iter_mut().zip(other.bytes) {
            *sum += more;
        }
    }
}

#[cfg(test)]
mod tests {
    use apus_wire::RegionKey;

    use super::*;

    #[test]
    fn ops_are_counted_by_kind_and_end_and_bytes_of_done_ones() {
        let region = RegionKey::new(1);
        let counters = OpCounters::default();
        counters.count(OpKind::Read { region, address: 0 }, 10, true);
        counters.count(OpKind::Read { region, address: 0 }, 20, true);
        counters.count(OpKind::Message, 5, false);
        counters.count(OpKind::FetchAdd { region, address: 0 }, 8, true);
        let mut counts = counters.counts();
        let ops = [[0, 0], [2, 0], [0, 1], [0, 0], [1, 0]];
        assert_eq!(counts, OpCounts { ops, bytes: [0, 30, 0, 0, 8] });
        counts.add(&OpCounts { ops: [[1; 2]; 5], bytes: [1; 5] });
        let ops = [[1, 1], [3, 1], [1, 2], [1, 1], [2, 1]];
        assert_eq!(counts, OpCounts { ops, bytes: [1, 31, 1, 1, 9] });
    }
}
