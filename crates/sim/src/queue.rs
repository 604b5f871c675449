//! The event queue: what happens next, in one total order.
//!
//! Every entity (a link, a port, a host) has at most one pending event, so (time, entity) is unique
//! and orders all events whatever the order in which they were pushed. That is what makes a run a
//! function of its scenario and seed alone.

use apus_transport::wheel::TimingWheel;
use apus_units::Time;

/// 4096 slots of 2^11 ps: what is due within 8 us, as most events of a fabric are, is found without
/// cascading.
const LOG2_SLOTS: u32 = 12;
const GRANULARITY_LOG2_PS: u32 = 11;
/// 2^(11 + 3 * 12) ps = 140 s before the far list.
const LEVELS: u32 = 3;

/// Pending events, at most one per entity.
#[derive(Debug)]
pub(crate) struct EventQueue {
    wheel: TimingWheel<LOG2_SLOTS>,
    /// The slot being worked off, latest first.
    batch: Vec<(Time, u32)>,
    /// Events before this belong into the batch.
    batch_end: Time,
}

impl EventQueue {
    pub(crate) fn new(entities: u32) -> Self {
        let mut wheel = TimingWheel::new(GRANULARITY_LOG2_PS, LEVELS);
        wheel.reserve(entities);
        Self { wheel, batch: Vec::with_capacity(64), batch_end: Time::ZERO }
    }

    /// Schedules the entity's event, in place of the one that it may have pending.
    #[inline]
    pub(crate) fn push(&mut self, entity: u32, at: Time) {
        if at < self.batch_end {
            self.push_into_batch(entity, at);
        } else {
            if !self.batch.is_empty() {
                self.batch.retain(|&(_, e)| e != entity);
            }
            self.wheel.insert(entity, at);
        }
    }

    #[cold]
    fn push_into_batch(&mut self, entity: u32, at: Time) {
        self.wheel.cancel(entity);
        self.batch.retain(|&(_, e)| e != entity);
        let place = self.batch.partition_point(|&event| event > (at, entity));
        self.batch.insert(place, (at, entity));
    }

    /// A lower bound of the next event's time; [`Time::MAX`] if there is none.
    pub(crate) fn next_at(&self) -> Time {
        match self.batch.last() {
            Some(&(at, _)) => at,
            None => self.wheel.next_at().unwrap_or(Time::MAX),
        }
    }

    /// The next event before `limit`, if there is one.
    #[inline]
    pub(crate) fn pop_before(&mut self, limit: Time) -> Option<(Time, u32)> {
        while self.batch.is_empty() {
            if !self.wheel.pop_slot(limit, &mut self.batch) {
                return None;
            }
            self.batch_end = self
                .wheel
                .position()
                .saturating_add(apus_units::Span::from_ps(1 << GRANULARITY_LOG2_PS));
            if self.batch.len() > 1 {
                self.batch.sort_unstable_by(|a, b| b.cmp(a));
            }
        }
        if self.batch.last().is_some_and(|&(at, _)| at < limit) { self.batch.pop() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// A queue is right if it agrees with a sorted map under every sequence of operations.
    #[test]
    fn agrees_with_a_sorted_map() {
        let mut state = 1u64;
        let mut next = move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        let mut queue = EventQueue::new(50);
        let mut model: BTreeMap<u32, Time> = BTreeMap::new();
        let mut now = Time::ZERO;
        for _ in 0..200_000 {
            if next() % 3 > 0 {
                let entity = (next() % 50) as u32;
                let magnitude = 1 << (next() % 40);
                let at = Time::from_ps(now.as_ps() + next() % magnitude);
                queue.push(entity, at);
                model.insert(entity, at);
            } else {
                let expected = model.iter().map(|(&e, &t)| (t, e)).min();
                assert_eq!(queue.pop_before(Time::MAX), expected);
                if let Some((at, entity)) = expected {
                    model.remove(&entity);
                    now = at;
                }
            }
        }
    }

    #[test]
    fn nothing_at_or_after_the_limit_comes_out() {
        let mut queue = EventQueue::new(2);
        queue.push(0, Time::from_ps(100));
        assert_eq!(queue.pop_before(Time::from_ps(100)), None);
        queue.push(1, Time::from_ps(50));
        assert_eq!(queue.pop_before(Time::from_ps(100)), Some((Time::from_ps(50), 1)));
        assert_eq!(queue.pop_before(Time::from_ps(101)), Some((Time::from_ps(100), 0)));
    }
}
