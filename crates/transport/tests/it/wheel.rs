//! The timing wheel compared with a sorted map, with deadlines of all magnitudes.

use std::collections::{BTreeMap, BTreeSet};

use apus_transport::wheel::TimingWheel;
use apus_units::Time;
use proptest::prelude::*;

use crate::support::config;

/// The reference: (slot in which the entry must expire, key) and the deadline of each key.
struct Model {
    by_slot: BTreeSet<(u64, u32)>,
    deadlines: BTreeMap<u32, (u64, u64)>,
    granularity: u32,
}

impl Model {
    fn new(granularity: u32) -> Self {
        Self { by_slot: BTreeSet::new(), deadlines: BTreeMap::new(), granularity }
    }

    fn slot(&self, ps: u64) -> u64 {
        ps >> self.granularity << self.granularity
    }

    fn insert(&mut self, key: u32, at: u64, position: u64) {
        self.cancel(key);
        let slot = self.slot(at.max(position));
        self.by_slot.insert((slot, key));
        self.deadlines.insert(key, (slot, at));
    }

    fn cancel(&mut self, key: u32) -> bool {
        match self.deadlines.remove(&key) {
            Some((slot, _)) => self.by_slot.remove(&(slot, key)),
            None => false,
        }
    }

    /// Returns the start of the earliest slot.
    fn earliest(&self) -> Option<u64> {
        self.by_slot.first().map(|&(slot, _)| slot)
    }

    /// Removes the entries of the earliest slot, sorted, if it starts at or before `limit`.
    fn pop_slot(&mut self, limit: u64) -> Option<Vec<(Time, u32)>> {
        let slot = self.earliest().filter(|&slot| slot <= limit)?;
        let keys: Vec<u32> =
            self.by_slot.range((slot, 0)..=(slot, u32::MAX)).map(|&(_, key)| key).collect();
        let mut entries = Vec::new();
        for key in keys {
            self.by_slot.remove(&(slot, key));
            let (_, at) = self.deadlines.remove(&key).unwrap();
            entries.push((Time::from_ps(at), key));
        }
        entries.sort_unstable();
        Some(entries)
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// Key, and the deadline as a signed distance from the position.
    Insert(u32, i128),
    InsertAbsolute(u32, u64),
    Cancel(u32),
    /// Limit as a distance from the position.
    Pop(u64),
    /// Pop until no entry at or before the limit is left.
    PopAll(u64),
}

/// Distances of all magnitudes: a random bit length, then random bits.
fn distance() -> impl Strategy<Value = u64> {
    (0u32..=64, any::<u64>()).prop_map(|(bits, value)| match bits {
        0 => 0,
        bits => value >> (64 - bits),
    })
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0u32..40;
    prop_oneof![
        8 => (key.clone(), distance()).prop_map(|(key, d)| Step::Insert(key, i128::from(d))),
        1 => (key.clone(), distance()).prop_map(|(key, d)| Step::Insert(key, -i128::from(d))),
        1 => (key.clone(), any::<u64>()).prop_map(|(key, at)| Step::InsertAbsolute(key, at)),
        2 => key.prop_map(Step::Cancel),
        6 => distance().prop_map(Step::Pop),
        1 => distance().prop_map(Step::PopAll),
    ]
}

struct Pair<const L: u32> {
    wheel: TimingWheel<L>,
    model: Model,
}

impl<const L: u32> Pair<L> {
    fn new(granularity: u32, levels: u32) -> Self {
        Self { wheel: TimingWheel::new(granularity, levels), model: Model::new(granularity) }
    }

    fn insert(&mut self, key: u32, at: u64) {
        self.model.insert(key, at, self.wheel.position().as_ps());
        self.wheel.insert(key, Time::from_ps(at));
        assert_eq!(self.wheel.deadline(key), Some(Time::from_ps(at)));
    }

    fn pop(&mut self, limit: u64) -> bool {
        let before = self.wheel.position();
        let mut out = vec![(Time::MAX, u32::MAX)];
        let popped = self.wheel.pop_slot(Time::from_ps(limit), &mut out);
        assert_eq!(out.remove(0), (Time::MAX, u32::MAX), "it appends");
        out.sort_unstable();
        let slot = self.model.earliest();
        let expected = self.model.pop_slot(limit);
        assert_eq!(popped, expected.is_some(), "limit {limit}, earliest {slot:?}");
        assert_eq!(out, expected.unwrap_or_default());
        let position = self.wheel.position();
        assert!(position >= before, "it never turns back");
        if popped {
            assert_eq!(Some(position.as_ps()), slot);
        } else {
            assert!(position.as_ps() <= limit.max(before.as_ps()), "never past the limit");
        }
        popped
    }

    fn run(&mut self, steps: &[Step]) {
        for step in steps {
            let position = self.wheel.position().as_ps();
            match *step {
                Step::Insert(key, distance) => {
                    let at = i128::from(position) + distance;
                    self.insert(key, at.clamp(0, i128::from(u64::MAX)) as u64);
                }
                Step::InsertAbsolute(key, at) => self.insert(key, at),
                Step::Cancel(key) => {
                    assert_eq!(self.wheel.cancel(key), self.model.cancel(key));
                    assert_eq!(self.wheel.deadline(key), None);
                }
                Step::Pop(distance) => {
                    self.pop(position.saturating_add(distance));
                }
                Step::PopAll(distance) => while self.pop(position.saturating_add(distance)) {},
            }
            self.check();
        }
        while self.pop(u64::MAX) {
            self.check();
        }
        assert!(self.wheel.is_empty());
    }

    fn check(&self) {
        assert_eq!(self.wheel.len(), self.model.deadlines.len());
        assert_eq!(self.wheel.is_empty(), self.model.deadlines.is_empty());
        match (self.wheel.next_at(), self.model.earliest()) {
            (None, None) => {}
            (Some(next), Some(slot)) => {
                assert!(next >= self.wheel.position());
                assert!(next.as_ps() <= slot, "{next} is not a lower bound of {slot} ps");
            }
            other => panic!("{other:?}"),
        }
        for (&key, &(_, at)) in &self.model.deadlines {
            assert_eq!(self.wheel.deadline(key), Some(Time::from_ps(at)));
        }
    }
}

proptest! {
    #![proptest_config(config(1000))]

    #[test]
    fn behaves_like_a_sorted_map_with_64_slots(
        granularity in 0u32..24,
        levels in 1u32..=6,
        steps in prop::collection::vec(step(), 1..200),
    ) {
        Pair::<6>::new(granularity, levels).run(&steps);
    }

    #[test]
    fn behaves_like_a_sorted_map_with_4096_slots(
        granularity in 0u32..24,
        levels in 1u32..=4,
        steps in prop::collection::vec(step(), 1..200),
    ) {
        Pair::<12>::new(granularity, levels).run(&steps);
    }

    #[test]
    fn behaves_like_a_sorted_map_with_2_slots(
        steps in prop::collection::vec(step(), 1..100),
    ) {
        Pair::<1>::new(0, 3).run(&steps);
    }

    #[test]
    fn behaves_like_a_sorted_map_when_levels_cover_every_time(
        steps in prop::collection::vec(step(), 1..200),
    ) {
        Pair::<6>::new(4, 10).run(&steps);
        Pair::<12>::new(4, 5).run(&steps);
    }
}

#[test]
fn next_at_is_exact_at_level_0_and_pops() {
    let mut wheel = TimingWheel::<6>::new(10, 2);
    wheel.insert(3, Time::from_ps(5 * 1024 + 17));
    assert_eq!(wheel.next_at(), Some(Time::from_ps(5 * 1024)));
    assert_eq!(wheel.next_key(), Some(3));
    let mut out = Vec::new();
    assert!(!wheel.pop_slot(Time::from_ps(5 * 1024 - 1), &mut out));
    assert!(wheel.pop_slot(Time::from_ps(5 * 1024), &mut out));
    assert_eq!(out, [(Time::from_ps(5 * 1024 + 17), 3)]);
    assert_eq!((wheel.next_at(), wheel.next_key()), (None, None));
}

#[test]
fn next_deadline_is_exact_at_every_level_for_short_lists() {
    let mut wheel = TimingWheel::<2>::new(0, 3);
    assert_eq!(wheel.next_deadline(8), None);
    // Levels 2 and 1, and two entries beyond the top level.
    for (key, at) in [(1, 40), (2, 7), (3, 100), (4, 90)] {
        wheel.insert(key, Time::from_ps(at));
    }
    for (key, at) in [(2, 7), (1, 40), (4, 90), (3, 100)] {
        assert!(wheel.next_at() <= Some(Time::from_ps(at)));
        assert_eq!(wheel.next_deadline(2), Some(Time::from_ps(at)));
        assert!(wheel.cancel(key));
    }
    (0..3).for_each(|key| wheel.insert(key, Time::from_ps(39 + u64::from(key))));
    assert_eq!(wheel.next_deadline(2), wheel.next_at(), "three entries in one slot");
}

#[test]
fn an_entry_in_the_past_expires_next_with_its_own_deadline() {
    let mut wheel = TimingWheel::<6>::new(10, 2);
    let mut out = Vec::new();
    wheel.insert(0, Time::from_ps(1 << 20));
    assert!(wheel.pop_slot(Time::MAX, &mut out));
    wheel.insert(1, Time::from_ps(3));
    assert_eq!(wheel.next_at(), Some(wheel.position()));
    assert!(wheel.pop_slot(wheel.position(), &mut out));
    assert_eq!(out[1], (Time::from_ps(3), 1));
}

#[test]
fn forever_as_limit_leaves_an_empty_wheel_where_it_is() {
    let mut wheel = TimingWheel::<6>::new(10, 2);
    assert!(!wheel.pop_slot(Time::MAX, &mut Vec::new()));
    assert_eq!(wheel.position(), Time::ZERO);
}

#[test]
fn the_end_of_time_is_a_deadline_like_any_other() {
    let mut wheel = TimingWheel::<12>::new(0, 2);
    let mut out = Vec::new();
    wheel.insert(9, Time::MAX);
    wheel.insert(8, Time::from_ps(1));
    assert!(wheel.pop_slot(Time::MAX, &mut out));
    assert!(wheel.pop_slot(Time::MAX, &mut out));
    assert_eq!(out, [(Time::from_ps(1), 8), (Time::MAX, 9)]);
}

#[test]
#[should_panic(expected = "at least one level")]
fn a_wheel_without_levels_is_refused() {
    let _ = TimingWheel::<6>::new(10, 0);
}
