//! Event queue, in one total order.
//!
//! Every entity (a link, a port, a host) has at most one pending event, so (time, entity) is unique and
//! orders all events, independent of the order in which they were entered. Therefore a run depends only on
//! its scenario and its seed.
//!
//! Almost all events of a fabric are due within microseconds. They are in a calendar (Brown, CACM
//! 1988): a circle of slots of two nanoseconds, each a list through the entities' nodes, with a
//! bitmap of occupied slots. Later events, mostly timers of hosts, are in a timing wheel and move
//! into the circle when they are close.

use apus_transport::wheel::TimingWheel;
use apus_units::Time;
use apus_units::planted::{Bug, is_planted};

/// Slots of the circle: 64 words of 64 bits, so that one word summarises the bitmap.
const SLOTS: usize = 4096;
const WORD_BITS: usize = 64;
const WORDS: usize = SLOTS / WORD_BITS;
/// A slot is 2^11 ps: about four events in a fabric of a thousand ports at 100 Gb/s, enough for
/// prefetching.
const SLOT_LOG2_PS: u32 = 11;
/// Slots of the timing wheel: 16 ns each. Six levels of 64 cover 18 minutes; the wheel has its own list of
/// later events.
const FAR_LOG2_PS: u32 = 14;
const FAR_LEVELS: u32 = 6;
const NIL: u32 = u32::MAX;

/// Location of an entity's event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Nowhere,
    Circle,
    Batch,
    Far,
}

/// The event of an entity.
#[derive(Clone, Copy, Debug)]
struct Node {
    at: u64,
    /// Next entity in the same slot.
    next: u32,
    place: Place,
}

/// Pending events, at most one per entity.
#[derive(Debug)]
pub(crate) struct EventQueue {
    nodes: Vec<Node>,
    heads: Box<[u32; SLOTS]>,
    /// One bit per slot with a list, and one bit per word that is not zero.
    occupied: [u64; WORDS],
    summary: u64,
    /// Current slot; the circle has the `SLOTS` slots from here onwards.
    cursor: u64,
    /// Remaining events of the current slot, latest first: [`key`]s.
    batch: Vec<u64>,
    far: TimingWheel<6>,
    /// Lower bound of the earliest event in `far`.
    far_next: u64,
    moved: Vec<(Time, u32)>,
}

const fn slot_of(at: u64) -> u64 {
    at >> SLOT_LOG2_PS
}

/// Returns an event of the current slot as one number for ordering: the time within the slot, then
/// the entity.
const fn key(at: u64, entity: u32) -> u64 {
    (at % (1 << SLOT_LOG2_PS)) << u32::BITS | entity as u64
}

impl EventQueue {
    pub(crate) fn new(entities: u32) -> Self {
        let mut far = TimingWheel::new(FAR_LOG2_PS, FAR_LEVELS);
        far.reserve(entities);
        Self {
            nodes: vec![Node { at: 0, next: NIL, place: Place::Nowhere }; entities as usize],
            heads: Box::new([NIL; SLOTS]),
            occupied: [0; WORDS],
            summary: 0,
            cursor: 0,
            batch: Vec::with_capacity(64),
            far,
            far_next: u64::MAX,
            moved: Vec::new(),
        }
    }

    /// Schedules the entity's event and replaces its pending one. `at` must not be before the event popped last.
    #[inline(always)]
    pub(crate) fn push(&mut self, entity: u32, at: Time) {
        let at = at.as_ps();
        debug_assert!(slot_of(at) >= self.cursor, "an event lies before the one popped last");
        let ahead = slot_of(at) - self.cursor;
        let node = &mut self.nodes[entity as usize];
        if node.place != Place::Nowhere || ahead.wrapping_sub(1) >= SLOTS as u64 - 1 {
            self.push_elsewhere(entity, at);
            return;
        }
        // Almost all events are those of links, within the circle.
        let index = slot_of(at) as usize % SLOTS;
        let head = &mut self.heads[index];
        *node = Node { at, next: *head, place: Place::Circle };
        *head = entity;
        let word = index / WORD_BITS;
        self.occupied[word] |= 1 << (index % WORD_BITS);
        self.summary |= 1 << word;
    }

    /// Removes the entity's event, if there is one.
    pub(crate) fn cancel(&mut self, entity: u32) {
        self.remove(entity);
        self.nodes[entity as usize].place = Place::Nowhere;
    }

    #[inline(never)]
    fn push_elsewhere(&mut self, entity: u32, at: u64) {
        if self.nodes[entity as usize].place != Place::Nowhere {
            self.remove(entity);
            self.nodes[entity as usize].place = Place::Nowhere;
            self.push(entity, Time::from_ps(at));
        } else if slot_of(at) == self.cursor {
            self.push_into_batch(entity, at);
        } else {
            self.push_far(entity, at);
        }
    }

    fn push_into_batch(&mut self, entity: u32, at: u64) {
        self.nodes[entity as usize] = Node { at, next: NIL, place: Place::Batch };
        let key = key(at, entity);
        let place = self.batch.partition_point(|&event| event > key);
        self.batch.insert(place, key);
    }

    fn push_far(&mut self, entity: u32, at: u64) {
        self.nodes[entity as usize] = Node { at, next: NIL, place: Place::Far };
        self.far.insert(entity, Time::from_ps(at));
        self.far_next = self.far_next.min(at);
    }

    fn remove(&mut self, entity: u32) {
        let Node { at, next, place } = self.nodes[entity as usize];
        match place {
            Place::Nowhere => {}
            Place::Batch => self.batch.retain(|&key| key as u32 != entity),
            Place::Far => _ = self.far.cancel(entity),
            Place::Circle => {
                let index = slot_of(at) as usize % SLOTS;
                if self.heads[index] == entity {
                    self.heads[index] = next;
                    if next == NIL {
                        self.clear_bit(index);
                    }
                } else {
                    let mut before = self.heads[index];
                    while self.nodes[before as usize].next != entity {
                        before = self.nodes[before as usize].next;
                    }
                    self.nodes[before as usize].next = next;
                }
            }
        }
    }

    #[inline]
    fn clear_bit(&mut self, index: usize) {
        let word = index / WORD_BITS;
        self.occupied[word] &= !(1 << (index % WORD_BITS));
        if self.occupied[word] == 0 {
            self.summary &= !(1 << word);
        }
    }

    /// Returns the first occupied slot from the cursor onwards.
    #[inline]
    fn next_slot(&self) -> Option<u64> {
        let start = self.cursor as usize % SLOTS;
        let (word, bit) = (start / WORD_BITS, start % WORD_BITS);
        let here = self.occupied[word] >> bit;
        if here != 0 {
            return Some(self.cursor + u64::from(here.trailing_zeros()));
        }
        // The words after this one in circular order; the lower bits of this word come last.
        let others = self.summary.rotate_right(word as u32) & !1;
        let distance = if others != 0 {
            others.trailing_zeros() as usize
        } else if self.occupied[word] != 0 {
            WORDS
        } else {
            return None;
        };
        let found = (word + distance) % WORDS;
        let index = found * WORD_BITS + self.occupied[found].trailing_zeros() as usize;
        Some(self.cursor + ((index + SLOTS - start) % SLOTS) as u64)
    }

    /// Returns a lower bound of the time of the next event; [`Time::MAX`] if there is none.
    pub(crate) fn next_at(&self) -> Time {
        let near = match self.batch.last() {
            Some(&key) => self.time_of(key),
            None => self.next_slot().map_or(u64::MAX, |slot| slot << SLOT_LOG2_PS),
        };
        Time::from_ps(near.min(self.far_next))
    }

    /// Removes and returns the next event before `limit`, if there is one.
    #[inline(always)] // the event loop calls it for every event; traced runs have two more calls
    pub(crate) fn pop_before(&mut self, limit: Time) -> Option<(Time, u32)> {
        let limit = limit.as_ps();
        while self.batch.is_empty() {
            let slot = self.next_slot();
            let starts = slot.map_or(u64::MAX, |slot| slot << SLOT_LOG2_PS);
            let rest = if is_planted(Bug::FarEventLate) { 0 } else { (1 << SLOT_LOG2_PS) - 1 };
            if self.far_next <= starts.saturating_add(rest) {
                let is_late = is_planted(Bug::LateEvents) && self.far_next >= limit;
                if starts.min(self.far_next) >= limit || is_late {
                    return None;
                }
                // The event is fetched even if it is not before the limit: it may precede other events of the
                // slot, which is opened now.
                self.fetch(starts);
                continue;
            }
            if starts >= limit {
                return None;
            }
            self.cursor = slot_of(starts);
            if let Some(event) = self.pop_only(limit) {
                return Some(event);
            }
            self.open_slot();
        }
        let &key = self.batch.last()?;
        let (at, entity) = (self.time_of(key), key as u32);
        if at >= limit {
            return None;
        }
        self.batch.pop();
        self.nodes[entity as usize].place = Place::Nowhere;
        Some((Time::from_ps(at), entity))
    }

    /// Returns the entity whose event is the n-th after the next one, if it is known.
    #[inline]
    pub(crate) fn upcoming(&self, n: usize) -> Option<u32> {
        let index = self.batch.len().checked_sub(1 + n)?;
        Some(self.batch[index] as u32)
    }

    /// Returns the time of an event of the batch.
    #[inline]
    fn time_of(&self, key: u64) -> u64 {
        (self.cursor << SLOT_LOG2_PS) | (key >> u32::BITS)
    }

    /// Takes the event of the current slot if it is the only one in the slot and before `limit`. In a run
    /// with few events, most slots have one event.
    #[inline]
    fn pop_only(&mut self, limit: u64) -> Option<(Time, u32)> {
        let index = self.cursor as usize % SLOTS;
        let entity = self.heads[index];
        let node = &mut self.nodes[entity as usize];
        let at = node.at;
        if node.next != NIL || at >= limit {
            return None;
        }
        node.place = Place::Nowhere;
        self.heads[index] = NIL;
        self.clear_bit(index);
        Some((Time::from_ps(at), entity))
    }

    /// Turns the list of the current slot into the batch.
    #[inline]
    fn open_slot(&mut self) {
        let index = self.cursor as usize % SLOTS;
        let mut entity = core::mem::replace(&mut self.heads[index], NIL);
        self.clear_bit(index);
        while entity != NIL {
            let node = &mut self.nodes[entity as usize];
            node.place = Place::Batch;
            self.batch.push(key(node.at, entity));
            entity = node.next;
        }
        sort_descending(&mut self.batch);
    }

    /// Moves the next due events of the wheel into the circle. The first list of the circle starts at `starts`.
    #[cold]
    fn fetch(&mut self, starts: u64) {
        if starts == u64::MAX {
            // The circle is empty, so it may start at the earliest possible event of the wheel.
            self.cursor = self.cursor.max(slot_of(self.far_next));
        }
        let mut moved = core::mem::take(&mut self.moved);
        self.far.pop_slot(Time::from_ps(self.far_next), &mut moved);
        self.far_next = self.far.next_at().map_or(u64::MAX, Time::as_ps);
        for (at, entity) in moved.drain(..) {
            self.nodes[entity as usize].place = Place::Nowhere;
            self.push(entity, at);
        }
        self.moved = moved;
    }
}

/// Slots have few events, for which insertion sort is fastest.
#[inline]
fn sort_descending(keys: &mut [u64]) {
    const FEW: usize = 16;
    if keys.len() > FEW {
        keys.sort_unstable_by(|a, b| b.cmp(a));
        return;
    }
    for end in 1..keys.len() {
        let key = keys[end];
        let mut place = end;
        while place > 0 && keys[place - 1] < key {
            keys[place] = keys[place - 1];
            place -= 1;
        }
        keys[place] = key;
    }
}

#[cfg(test)]
mod tests {
    // Each test imports the names that it uses: the benchmark includes this file without tests, so a common
    // import would be unused.

    /// The queue agrees with a sorted map under every sequence of operations.
    #[test]
    fn agrees_with_a_sorted_map() {
        use super::{EventQueue, Time};
        use std::collections::BTreeMap;

        for magnitudes in [12, 24, 26, 40] {
            let mut state = 1u64;
            let mut next = move || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                state >> 33
            };
            let mut queue = EventQueue::new(50);
            let mut model: BTreeMap<u32, Time> = BTreeMap::new();
            let mut now = Time::ZERO;
            for _ in 0..300_000 {
                if next() % 3 > 0 {
                    let entity = (next() % 50) as u32;
                    let magnitude = 1 << (next() % magnitudes);
                    let at = Time::from_ps(now.as_ps() + next() % magnitude);
                    queue.push(entity, at);
                    model.insert(entity, at);
                    continue;
                }
                // The limit is anywhere, in the same slot or the next one, or at an event.
                let limit = match next() % 3 {
                    0 => Time::from_ps(now.as_ps() + (next() << (next() % 20))),
                    1 => Time::from_ps(now.as_ps() + next() % 4096),
                    _ => model.values().nth(next() as usize % 50).map_or(now, |&at| at.max(now)),
                };
                let expected = model.iter().map(|(&e, &t)| (t, e)).min();
                assert!(queue.next_at() <= expected.map_or(Time::MAX, |(at, _)| at));
                let expected = expected.filter(|&(at, _)| at < limit);
                assert_eq!(queue.pop_before(limit), expected);
                match expected {
                    Some((at, entity)) => {
                        model.remove(&entity);
                        now = at;
                    }
                    // As in a run, no event after a phase is pushed before the end of the phase.
                    None if limit < Time::MAX => now = now.max(limit),
                    None => {}
                }
            }
        }
    }

    /// The far event was entered before its slot was in the circle; the limit is its time.
    #[test]
    fn events_before_the_limit_come_out_though_a_far_event_in_their_slot_does_not() {
        use super::{EventQueue, Time};

        let [first, second, near, far] =
            [61_000_000, 65_000_000, 69_999_288, 70_000_000].map(Time::from_ps);
        let mut queue = EventQueue::new(3);
        queue.push(1, first);
        assert_eq!(queue.pop_before(far), Some((first, 1)));
        queue.push(0, far);
        queue.push(1, second);
        assert_eq!(queue.pop_before(far), Some((second, 1)));
        queue.push(1, near);
        queue.push(2, far);
        assert_eq!(queue.pop_before(far), Some((near, 1)));
        assert_eq!(queue.pop_before(far), None);
        assert_eq!(queue.pop_before(Time::MAX), Some((far, 0)));
        assert_eq!(queue.pop_before(Time::MAX), Some((far, 2)));
    }

    #[test]
    fn nothing_at_or_after_the_limit_comes_out() {
        use super::{EventQueue, Time};

        let mut queue = EventQueue::new(2);
        queue.push(0, Time::from_ps(100));
        assert_eq!(queue.pop_before(Time::from_ps(100)), None);
        queue.push(1, Time::from_ps(50));
        assert_eq!(queue.pop_before(Time::from_ps(100)), Some((Time::from_ps(50), 1)));
        assert_eq!(queue.pop_before(Time::from_ps(101)), Some((Time::from_ps(100), 0)));
    }
}
