//! The ordered lanes of a connection. The calls of a lane run one by one, in the order of their numbers.

use std::collections::BTreeMap;

use crate::envelope::LanePlace;

/// A lane of calls of type `T`.
struct Lane<T> {
    /// Number of the next call.
    next: u32,
    runs: bool,
    /// Calls that have arrived before their turn.
    held: BTreeMap<u32, T>,
    /// Calls that have arrived before their turn and will not run, as rows of consecutive numbers: the first number of each
    /// row, and the number after the row.
    skipped: BTreeMap<u32, u32>,
}

/// The lanes of a connection.
pub(super) struct Lanes<T> {
    lanes: Vec<Lane<T>>,
    /// Maximum number of calls of the connection, which is also the maximum number of requests that a client may have in
    /// flight.
    calls: usize,
}

impl<T> Lanes<T> {
    pub(super) fn new(count: u16, calls: u16) -> Self {
        let lane =
            || Lane { next: 0, runs: false, held: BTreeMap::new(), skipped: BTreeMap::new() };
        Self { lanes: (0..count).map(|_| lane()).collect(), calls: calls.into() }
    }

    /// Returns `true` if there is such a lane.
    pub(super) fn has(&self, lane: u16) -> bool {
        usize::from(lane) < self.lanes.len()
    }

    /// Adds a call, or `None` for a call that will not run. Returns the call that must run now, if there is one.
    ///
    /// # Errors
    /// If no client of this protocol numbers its calls like this. The error contains the call, unless it was stored.
    pub(super) fn add(
        &mut self,
        place: LanePlace,
        call: Option<T>,
    ) -> Result<Option<T>, Option<T>> {
        let calls = self.calls;
        let Some(lane) = self.lanes.get_mut(usize::from(place.lane)) else { return Err(call) };
        if !lane.expects(place.sequence) {
            return Err(call);
        }
        match call {
            Some(call) => _ = lane.held.insert(place.sequence, call),
            None => lane.skip(place.sequence),
        }
        // Between two rows there is a held call, or a call that has not arrived.
        if lane.skipped.len() > lane.held.len() + calls + 1 {
            return Err(None);
        }
        Ok(lane.next_call())
    }

    /// Records that the running call of a lane has ended. Returns the call that must run now, if there is one.
    pub(super) fn ended(&mut self, lane: u16) -> Option<T> {
        let lane = self.lanes.get_mut(usize::from(lane))?;
        lane.runs = false;
        lane.next_call()
    }

    /// Removes all calls that have not run.
    pub(super) fn clear(&mut self) -> Vec<T> {
        self.lanes
            .iter_mut()
            .flat_map(|lane| std::mem::take(&mut lane.held).into_values())
            .collect()
    }
}

impl<T> Lane<T> {
    /// Returns `true` if a call with this number can arrive: its turn has not come yet, and it has not arrived.
    fn expects(&self, sequence: u32) -> bool {
        let row = self.skipped.range(..=sequence).next_back();
        sequence.wrapping_sub(self.next) < 1 << 31
            && !self.held.contains_key(&sequence)
            && row.is_none_or(|(_, &end)| end != 0 && end <= sequence)
    }

    /// Records a call that will not run.
    fn skip(&mut self, sequence: u32) {
        let mut end = sequence.wrapping_add(1);
        // A row ends with the last number before 0.
        if end != 0
            && let Some(further) = self.skipped.remove(&end)
        {
            end = further;
        }
        match self.skipped.range_mut(..sequence).next_back() {
            Some((_, before)) if *before == sequence => *before = end,
            _ => _ = self.skipped.insert(sequence, end),
        }
    }

    fn next_call(&mut self) -> Option<T> {
        while !self.runs {
            if let Some(end) = self.skipped.remove(&self.next) {
                self.next = end;
                continue;
            }
            let call = self.held.remove(&self.next)?;
            self.next = self.next.wrapping_add(1);
            self.runs = true;
            return Some(call);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(lane: u16, sequence: u32) -> LanePlace {
        LanePlace { lane, sequence }
    }

    #[test]
    fn calls_run_one_by_one_in_the_order_of_their_numbers() {
        let mut lanes = Lanes::new(2, 8);
        assert!(lanes.has(1) && !lanes.has(2));
        assert_eq!(lanes.add(at(0, 2), Some("c")), Ok(None));
        assert_eq!(lanes.add(at(1, 0), Some("other lane")), Ok(Some("other lane")));
        assert_eq!(lanes.add(at(0, 0), Some("a")), Ok(Some("a")));
        assert_eq!(lanes.add(at(0, 1), None), Ok(None), "`a` runs");
        assert_eq!(lanes.ended(0), Some("c"), "the call before does not run");
        assert_eq!(lanes.ended(0), None);
        assert_eq!(lanes.add(at(0, 3), None), Ok(None));
        assert_eq!(lanes.add(at(0, 4), Some("e")), Ok(Some("e")));
    }

    #[test]
    fn numbers_wrap() {
        let mut lanes = Lanes::new(1, 8);
        lanes.lanes[0].next = u32::MAX - 1;
        assert_eq!(lanes.add(at(0, 0), None), Ok(None));
        assert_eq!(lanes.add(at(0, 2), Some(2)), Ok(None));
        assert_eq!(lanes.add(at(0, 1), None), Ok(None));
        assert_eq!(lanes.add(at(0, u32::MAX), None), Ok(None));
        assert_eq!(lanes.add(at(0, u32::MAX), Some(9)), Err(Some(9)), "it has arrived");
        assert_eq!(lanes.add(at(0, u32::MAX - 1), Some(1)), Ok(Some(1)));
        assert_eq!(lanes.ended(0), Some(2));
    }

    #[test]
    fn number_that_has_arrived_or_had_its_turn_is_refused() {
        let mut lanes = Lanes::new(1, 8);
        assert_eq!(lanes.add(at(0, 0), Some("a")), Ok(Some("a")));
        assert_eq!(lanes.add(at(0, 0), Some("b")), Err(Some("b")));
        assert_eq!(lanes.add(at(0, 2), Some("c")), Ok(None));
        assert_eq!(lanes.add(at(0, 2), None), Err(None));
        assert_eq!(lanes.add(at(0, 3), None), Ok(None));
        assert_eq!(lanes.add(at(0, 3), Some("d")), Err(Some("d")));
        assert_eq!(lanes.add(at(1, 0), Some("d")), Err(Some("d")), "no such lane");
    }

    /// Calls that the server refuses while one runs are stored as rows, in whatever order they arrive, so they take no memory
    /// each.
    #[test]
    fn refused_calls_are_kept_as_rows() {
        let mut lanes = Lanes::new(1, 4);
        assert_eq!(lanes.add(at(0, 0), Some("runs")), Ok(Some("runs")));
        for first in (1..10_000).step_by(4) {
            for sequence in [first + 3, first + 1, first, first + 2] {
                assert_eq!(lanes.add(at(0, sequence), None), Ok(None));
            }
            assert_eq!(lanes.lanes[0].skipped.len(), 1);
        }
        assert_eq!(lanes.add(at(0, 10_001), Some("next")), Ok(None));
        assert_eq!(lanes.ended(0), Some("next"));
        assert!(lanes.lanes[0].skipped.is_empty());
    }

    #[test]
    fn more_gaps_than_calls_on_their_way_are_refused() {
        let mut lanes = Lanes::<()>::new(1, 4);
        let gaps = (1..).step_by(2).take_while(|&n| lanes.add(at(0, n), None).is_ok());
        assert_eq!(gaps.count(), 5);
    }
}
