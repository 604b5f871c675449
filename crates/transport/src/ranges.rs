//! Sets of the bytes of an op that have arrived.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// A set of byte ranges that mostly grows from the front. Bytes that arrive in order cost one
/// comparison and no memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    /// All bytes below this are in the set.
    contiguous: u64,
    /// Further ranges, if bytes have arrived out of order.
    rest: Option<Box<Rest>>,
}

/// Ranges as (start, end), sorted, disjoint and not touching.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Rest(Vec<(u64, u64)>);

/// Maximum number of ranges, in addition to the first, in the set of the oldest op of a flow.
/// Further ranges out of order are refused until gaps fill, so that a peer cannot make a set
/// expensive.
const MAX_RANGES: usize = 1024;

/// Minimum number of ranges that each set has room for. Rationale: the smallest capacity of a
/// vector.
const MIN_RANGES: usize = 4;

/// Returns the maximum number of ranges in the set of an op behind `place` other ops of its flow.
/// It halves with each doubling of the position, so that a flow with 1024 ops has room for 11 times
/// [`MAX_RANGES`]. An op only moves towards the front, so no set exceeds its limit. deviation: no
/// source; packets in flight belong to the oldest ops.
fn max_ranges(place: usize) -> usize {
    (MAX_RANGES >> place.saturating_add(1).ilog2().min(16)).max(MIN_RANGES)
}

impl RangeSet {
    /// Returns `true` if a range that starts at `start` may be inserted into the set of an op
    /// behind `place` other ops of its flow.
    #[must_use]
    pub fn has_room_for(&self, start: u64, place: usize) -> bool {
        start <= self.contiguous || self.rest().len() < max_ranges(place)
    }

    /// Adds `[start, start + length)`; returns the number of its bytes that were not yet in the
    /// set.
    #[inline]
    pub fn insert(&mut self, start: u64, length: u64) -> u64 {
        let end = start + length;
        if start <= self.contiguous && self.rest().is_empty() {
            let new = end.saturating_sub(self.contiguous);
            self.contiguous += new;
            return new;
        }
        self.insert_out_of_order(start.max(self.contiguous), end)
    }

    fn rest(&self) -> &[(u64, u64)] {
        self.rest.as_ref().map_or(&[], |rest| &rest.0)
    }

    fn insert_out_of_order(&mut self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        let rest = &mut self.rest.get_or_insert_default().0;
        // The ranges that overlap or touch [start, end) are rest[first..last].
        let first = rest.partition_point(|&(_, e)| e < start);
        let last = rest.partition_point(|&(s, _)| s <= end);
        let touched = &rest[first..last];
        let covered: u64 =
            touched.iter().map(|&(s, e)| e.min(end).saturating_sub(s.max(start))).sum();
        let merged = match (touched.first(), touched.last()) {
            (Some(&(s, _)), Some(&(_, e))) => (s.min(start), e.max(end)),
            _ => (start, end),
        };
        if merged.0 <= self.contiguous {
            // Merged directly: inserting the range first would make a full vector grow.
            self.contiguous = merged.1;
            rest.drain(first..last);
        } else {
            rest.splice(first..last, [merged]);
        }
        end - start - covered
    }

    /// Returns the number of bytes from the start that are in the set without a gap.
    #[inline]
    #[must_use]
    pub fn contiguous(&self) -> u64 {
        self.contiguous
    }

    /// Returns `true` if all bytes of `[start, start + length)` are in the set.
    #[must_use]
    pub fn contains(&self, start: u64, length: u64) -> bool {
        let end = start.saturating_add(length);
        end <= self.contiguous || self.rest().iter().any(|&(s, e)| s <= start && end <= e)
    }

    /// Returns `true` if all bytes below `length` are in the set.
    #[must_use]
    pub fn is_complete(&self, length: u64) -> bool {
        self.contiguous >= length
    }
}
