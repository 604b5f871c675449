//! The ordered lanes of a connection: their calls run one by one, in the order of their numbers.

use std::collections::BTreeMap;

use crate::envelope::LanePlace;

/// A lane of calls of type `T`.
struct Lane<T> {
    /// Number of the next call.
    next: u32,
    runs: bool,
    /// Calls that have arrived before their turn; `None` for those that will not run.
    held: BTreeMap<u32, Option<T>>,
}

/// The lanes of a connection.
pub(super) struct Lanes<T>(Vec<Lane<T>>);

impl<T> Lanes<T> {
    pub(super) fn new(count: u16) -> Self {
        let lane = || Lane { next: 0, runs: false, held: BTreeMap::new() };
        Self((0..count).map(|_| lane()).collect())
    }

    /// Returns `true` if there is such a lane.
    pub(super) fn has(&self, lane: u16) -> bool {
        usize::from(lane) < self.0.len()
    }

    /// Adds a call, or `None` for a call that will not run. Returns the call that is to run now, if there is one.
    pub(super) fn add(&mut self, place: LanePlace, call: Option<T>) -> Option<T> {
        let lane = self.0.get_mut(usize::from(place.lane))?;
        lane.held.insert(place.sequence, call);
        lane.next_call()
    }

    /// Records that the running call of a lane has ended. Returns the call that is to run now, if there is one.
    pub(super) fn ended(&mut self, lane: u16) -> Option<T> {
        let lane = self.0.get_mut(usize::from(lane))?;
        lane.runs = false;
        lane.next_call()
    }

    /// Removes all calls that have not run.
    pub(super) fn clear(&mut self) -> Vec<T> {
        self.0
            .iter_mut()
            .flat_map(|lane| std::mem::take(&mut lane.held).into_values())
            .flatten()
            .collect()
    }
}

impl<T> Lane<T> {
    fn next_call(&mut self) -> Option<T> {
        while !self.runs {
            let call = self.held.remove(&self.next)?;
            self.next = self.next.wrapping_add(1);
            if call.is_some() {
                self.runs = true;
                return call;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_run_one_by_one_in_the_order_of_their_numbers() {
        let mut lanes = Lanes::new(2);
        let at = |lane, sequence| LanePlace { lane, sequence };
        assert!(lanes.has(1) && !lanes.has(2));
        assert_eq!(lanes.add(at(0, 2), Some("c")), None);
        assert_eq!(lanes.add(at(1, 0), Some("other lane")), Some("other lane"));
        assert_eq!(lanes.add(at(0, 0), Some("a")), Some("a"));
        assert_eq!(lanes.add(at(0, 1), None), None, "`a` runs");
        assert_eq!(lanes.ended(0), Some("c"), "the call before does not run");
        assert_eq!(lanes.ended(0), None);
        assert_eq!(lanes.add(at(0, 3), None), None);
        assert_eq!(lanes.add(at(0, 4), Some("e")), Some("e"));
    }

    #[test]
    fn numbers_wrap() {
        let mut lanes = Lanes::new(1);
        lanes.0[0].next = u32::MAX;
        assert_eq!(lanes.add(LanePlace { lane: 0, sequence: 0 }, Some(1)), None);
        assert_eq!(lanes.add(LanePlace { lane: 0, sequence: u32::MAX }, Some(0)), Some(0));
        assert_eq!(lanes.ended(0), Some(1));
    }
}
