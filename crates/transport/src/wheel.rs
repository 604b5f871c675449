//! A hierarchical timing wheel.
//!
//! Timers of a flow (pacing, retransmission) are set and cancelled far more often than they fire,
//! and a packet-level simulation does little else than insert and remove events. Both need a
//! schedule whose operations have constant cost, independent of the number of entries. The
//! structure is scheme 7 of Varghese and Lauck, "Hashed and Hierarchical Timing Wheels" (SOSP '87);
//! pacing millions of flows with one such wheel is Carousel's idea (Saeed et al., SIGCOMM '17).
//!
//! # Layout
//!
//! A tick is 2^g ps. Written in base `2^LOG2_SLOTS`, the tick of a deadline is a sequence of
//! digits. The level of an entry is that of the highest digit in which its tick differs from the
//! position's, and its slot is the value of that digit:
//!
//! ```text
//! level 0   [ | | |x| | |x]   one slot per tick, at or after the position
//! level 1   [ | | | | |x| ]   one slot per 2^LOG2_SLOTS ticks, strictly after the position's slot
//! ...
//! far list  x x x             deadlines that differ above the top level
//! ```
//!
//! Three properties follow, on which the code relies:
//!
//! * every entry of a level is earlier than every entry of the levels above, so the earliest slot
//!   is the first occupied one of the lowest occupied level, found in bitmaps without wrapping;
//! * the slot of an entry can be computed from its deadline and the position, so a node needs no
//!   slot field and takes 16 bytes, four to a cache line;
//! * the position may move to anywhere before the earliest slot without touching an entry.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::mem::size_of;

use apus_units::{Time, prefetch};

/// End of a list.
const NIL: u32 = u32::MAX;
/// In `Node::prev`: the key is not pending.
const IDLE: u32 = u32::MAX - 1;

/// Number of slots ahead of the current one whose lists are prefetched, each list one step at a
/// time from both ends. This suffices for lists of twice as many entries.
const SLOTS_AHEAD: usize = 7;
/// Number of entries from which prefetching pays off: fewer nodes stay in the second-level cache
/// without it.
const MIN_PREFETCH_ENTRIES: usize = 1 << 17;

/// Links of one key in the list of its slot.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// Deadline in picoseconds, as given.
    at: u64,
    /// Previous key of the slot's list: [`NIL`] for its first key, [`IDLE`] if the key is not
    /// pending.
    prev: u32,
    /// Next key of the slot's list: [`NIL`] for its last key.
    next: u32,
}

impl Node {
    const IDLE: Self = Self { at: 0, prev: IDLE, next: NIL };
}

/// Bytes of memory that a key takes.
pub(crate) const BYTES_PER_KEY: usize = size_of::<Node>();

/// A slot of the wheel or, with `level == levels`, the far list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    level: u32,
    index: u32,
}

/// The keys of a slot.
#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
}

impl List {
    const EMPTY: Self = Self { head: NIL, tail: NIL };
}

/// Deadlines of dense `u32` keys, at most one per key, in a hierarchy of wheels of `2^LOG2_SLOTS`
/// slots (1 to 12).
///
/// Insert and cancel take constant time; an entry is moved at most once per level before it
/// expires. After [`TimingWheel::new`] and [`TimingWheel::reserve`], memory is allocated only if a
/// larger key is inserted or a level is used for the first time.
///
/// ```
/// use apus_transport::wheel::TimingWheel;
/// use apus_units::Time;
///
/// // Slots of 2^20 ps (about 1 us), three levels of 64: about 0.27 s before the far list.
/// let mut wheel = TimingWheel::<6>::new(20, 3);
/// wheel.insert(7, Time::from_ps(25_000_000));
/// let mut due = Vec::new();
/// assert!(!wheel.pop_slot(Time::from_ps(20_000_000), &mut due));
/// assert!(wheel.pop_slot(Time::from_ps(30_000_000), &mut due));
/// assert_eq!(due, [(Time::from_ps(25_000_000), 7)]);
/// ```
#[derive(Clone, Debug)]
pub struct TimingWheel<const LOG2_SLOTS: u32> {
    /// Nodes, one per key.
    nodes: Vec<Node>,
    /// First and last key of each slot: the far list, then the levels that have been used so far.
    /// Not all levels, because among many wheels most have few timers, all of them close. The last
    /// key of an empty slot is meaningless; a list can be walked from both ends.
    lists: Box<[List]>,
    /// One bit per occupied slot, `WORDS` words per level.
    occupied: Box<[u64]>,
    /// Per level, one bit per word of `occupied` that is not zero.
    summary: Box<[u64]>,
    /// One bit per level that has an entry (not the far list).
    occupied_levels: u64,
    /// The lists of the slots after the current one, the nearest last, with the positions up to
    /// which they were prefetched from both ends. These are only hints: the lists may have changed
    /// since.
    near: [(u32, u32); SLOTS_AHEAD],
    /// A lower bound of the deadlines in the far list, in picoseconds: cancelling does not raise it.
    far_min: u64,
    /// Start of the current level-0 slot, in picoseconds; no entry is in an earlier slot.
    position: u64,
    /// Number of pending keys.
    len: usize,
    /// A level-0 slot is `2^granularity` ps wide.
    granularity: u32,
    levels: u32,
}

impl<const LOG2_SLOTS: u32> TimingWheel<LOG2_SLOTS> {
    const SLOTS: u32 = {
        assert!(LOG2_SLOTS >= 1 && LOG2_SLOTS <= 12, "a level has 2 to 4096 slots");
        1 << LOG2_SLOTS
    };
    /// Words of 64 slots per level.
    const WORDS: usize = Self::SLOTS.div_ceil(64) as usize;

    /// Returns an empty wheel at the epoch, with `levels` levels and level-0 slots of
    /// `2^granularity_log2_ps` picoseconds. Deadlines that differ from the position in bit
    /// `granularity_log2_ps + levels * LOG2_SLOTS` or above wait in the far list, which is examined
    /// as a whole each time the position passes that bit: choose `levels` so that this is rare.
    ///
    /// # Panics
    /// If `levels` is 0, or if the top level would be beyond the 64 bits of a time.
    #[must_use]
    pub fn new(granularity_log2_ps: u32, levels: u32) -> Self {
        assert!(levels >= 1, "a wheel needs at least one level");
        assert!(
            granularity_log2_ps + (levels - 1) * LOG2_SLOTS < u64::BITS,
            "the top level is beyond the 64 bits of a time"
        );
        Self {
            nodes: Vec::new(),
            lists: vec![List::EMPTY].into_boxed_slice(),
            occupied: vec![0; levels as usize * Self::WORDS].into_boxed_slice(),
            summary: vec![0; levels as usize].into_boxed_slice(),
            occupied_levels: 0,
            near: [(NIL, NIL); SLOTS_AHEAD],
            far_min: u64::MAX,
            position: 0,
            len: 0,
            granularity: granularity_log2_ps,
            levels,
        }
    }

    /// Reserves memory for the keys `0..keys`, 16 bytes each, so that inserting them does not
    /// allocate.
    pub fn reserve(&mut self, keys: u32) {
        if keys as usize > self.nodes.len() {
            self.nodes.resize(keys as usize, Node::IDLE);
        }
    }

    /// Sets the deadline of `key`, and replaces the earlier deadline if the key is pending. A
    /// deadline before [`TimingWheel::position`] is kept as it is and put into the current slot: it
    /// expires next.
    ///
    /// # Panics
    /// If `key` is one of the two largest `u32`.
    #[inline]
    pub fn insert(&mut self, key: u32, at: Time) {
        assert!(key < IDLE, "the largest keys are reserved");
        if key as usize >= self.nodes.len() {
            self.nodes.resize(key as usize + 1, Node::IDLE);
        }
        if self.nodes[key as usize].prev == IDLE {
            self.len += 1;
        } else {
            self.unlink(key);
        }
        self.link(key, at.as_ps());
    }

    /// Removes the deadline of `key`; returns `true` if it had one.
    #[inline]
    pub fn cancel(&mut self, key: u32) -> bool {
        if self.nodes.get(key as usize).is_none_or(|node| node.prev == IDLE) {
            return false;
        }
        self.unlink(key);
        self.nodes[key as usize].prev = IDLE;
        self.len -= 1;
        true
    }

    /// Returns the deadline of `key`, unrounded, if it is pending.
    #[inline]
    #[must_use]
    pub fn deadline(&self, key: u32) -> Option<Time> {
        let node = self.nodes.get(key as usize)?;
        (node.prev != IDLE).then(|| Time::from_ps(node.at))
    }

    /// Returns the number of pending keys.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if no key is pending.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the start of the current level-0 slot. It never decreases, and every slot before it has been
    /// popped.
    #[inline]
    #[must_use]
    pub fn position(&self) -> Time {
        Time::from_ps(self.position)
    }

    /// Returns a lower bound of the earliest deadline, never before [`TimingWheel::position`], `None` if
    /// the wheel is empty. If the earliest entry is at level 0, this is the exact start of its
    /// slot: `pop_slot` with this limit pops it. Otherwise it is the start of a wider slot, and
    /// `pop_slot` with this limit may only move entries down. Changes with `insert`, `cancel` and
    /// `pop_slot`.
    #[inline]
    #[must_use]
    pub fn next_at(&self) -> Option<Time> {
        self.earliest().map(|(_, start)| Time::from_ps(start))
    }

    /// Returns a lower bound of the earliest deadline like [`TimingWheel::next_at`]; it is exact if
    /// the earliest slot has at most `entries` entries.
    #[must_use]
    pub fn next_deadline(&self, entries: usize) -> Option<Time> {
        let (slot, start) = self.earliest()?;
        let (mut key, mut least) = (self.lists[self.place(slot)].head, u64::MAX);
        for _ in 0..entries {
            let Some(node) = self.nodes.get(key as usize) else { break };
            least = least.min(node.at);
            key = node.next;
        }
        let exact = if key == NIL { least.max(start) } else { start };
        Some(Time::from_ps(exact))
    }

    /// Returns a key of the slot of [`TimingWheel::next_at`].
    #[inline]
    #[must_use]
    pub fn next_key(&self) -> Option<u32> {
        self.earliest().map(|(slot, _)| self.lists[self.place(slot)].head)
    }

    /// Pops the earliest occupied level-0 slot that starts at or before `limit`: moves the position
    /// to its start, appends its entries to `out` in no particular order, with their exact
    /// deadlines, and returns `true`. Deadlines in the slot of `limit` may be later than `limit`.
    ///
    /// Returns `false` if no such slot exists. If entries remain, the position has then moved to
    /// the slot of `limit`, so that later insertions go to a low level. If none remain, the
    /// position stays, so that a very late `limit` has no effect.
    ///
    /// To avoid early expiry, round deadlines up to the start of a slot. A caller that pops in a
    /// loop must not insert popped entries at or before `limit` again: the loop would not end.
    pub fn pop_slot(&mut self, limit: Time, out: &mut Vec<(Time, u32)>) -> bool {
        if self.len >= MIN_PREFETCH_ENTRIES {
            self.prefetch_ahead();
        }
        while let Some((slot, start)) = self.earliest() {
            if start > limit.as_ps() {
                self.position = self.position.max(align_down(limit.as_ps(), self.granularity));
                return false;
            }
            debug_assert!(start >= self.position, "the wheel never turns back");
            self.position = start;
            let ends = self.take(slot);
            if slot.level == 0 {
                self.for_each(ends, |wheel, key, at| {
                    wheel.nodes[key as usize].prev = IDLE;
                    wheel.len -= 1;
                    out.push((Time::from_ps(at), key));
                });
                return true;
            }
            self.for_each(ends, Self::link);
        }
        false
    }

    /// Prefetches the entries of the level-0 slots after the current one, one more entry from
    /// either end of each list. A list is a chain of dependent loads, and the processor cannot load
    /// beyond the end of the current slot's list because it does not know where that list ends.
    #[cold]
    fn prefetch_ahead(&mut self) {
        let index = (self.position >> self.granularity) as usize;
        let first = (index + 1 + SLOTS_AHEAD) % Self::SLOTS as usize;
        let ends = match self.lists.get(1 + first) {
            Some(list) if list.head != NIL => (list.head, list.tail),
            _ => (NIL, NIL),
        };
        for place in (1..SLOTS_AHEAD).rev() {
            let (front, back) = self.near[place - 1];
            let next =
                |key: u32, step: fn(&Node) -> u32| self.nodes.get(key as usize).map_or(NIL, step);
            self.near[place] =
                self.bring((next(front, |node| node.next), next(back, |node| node.prev)));
        }
        self.near[0] = self.bring(ends);
    }

    #[inline]
    fn bring(&self, (front, back): (u32, u32)) -> (u32, u32) {
        for key in [front, back] {
            if let Some(node) = self.nodes.get(key as usize) {
                prefetch(node);
            }
        }
        (front, back)
    }

    /// Returns the earliest occupied slot and its start in picoseconds.
    #[inline]
    fn earliest(&self) -> Option<(Slot, u64)> {
        if self.occupied_levels == 0 {
            if self.lists[self.place(self.far())].head == NIL {
                return None;
            }
            // Not before the position, because ticks in the far list differ from it above the top
            // level.
            let start = align_down(self.far_min, self.granularity + self.levels * LOG2_SLOTS);
            return Some((self.far(), start));
        }
        let level = self.occupied_levels.trailing_zeros();
        let word = self.summary[level as usize].trailing_zeros();
        let bit = self.occupied[level as usize * Self::WORDS + word as usize].trailing_zeros();
        let index = word * 64 + bit;
        let shift = self.granularity + level * LOG2_SLOTS;
        let start =
            align_down(self.position, (shift + LOG2_SLOTS).min(64)) | (u64::from(index) << shift);
        Some((Slot { level, index }, start))
    }

    /// Returns the far list, represented as the slot behind the last level.
    #[inline]
    fn far(&self) -> Slot {
        Slot { level: self.levels, index: 0 }
    }

    /// Returns the index into `lists`.
    #[inline]
    fn place(&self, slot: Slot) -> usize {
        if slot.level == self.levels {
            return 0;
        }
        1 + ((slot.level << LOG2_SLOTS) | slot.index) as usize
    }

    /// Allocates lists for the levels up to this one.
    #[cold]
    fn grow(&mut self, level: u32) {
        let mut lists = core::mem::take(&mut self.lists).into_vec();
        let len = 1 + ((level + 1) * Self::SLOTS) as usize;
        lists.reserve_exact(len - lists.len());
        lists.resize(len, List::EMPTY);
        self.lists = lists.into_boxed_slice();
    }

    /// Returns the slot of a deadline, relative to the position.
    #[inline]
    fn slot_of(&self, at: u64) -> Slot {
        let tick = at.max(self.position) >> self.granularity;
        let differing = tick ^ (self.position >> self.granularity);
        let level = (63 - (differing | 1).leading_zeros()) / LOG2_SLOTS;
        if level >= self.levels {
            return self.far();
        }
        let index = (tick >> (level * LOG2_SLOTS)) as u32 & (Self::SLOTS - 1);
        Slot { level, index }
    }

    /// Inserts a key that is in no list at the front of the list of its slot.
    #[inline]
    fn link(&mut self, key: u32, at: u64) {
        let slot = self.slot_of(at);
        let place = self.place(slot);
        if place >= self.lists.len() {
            self.grow(slot.level);
        }
        let list = &mut self.lists[place];
        let next = core::mem::replace(&mut list.head, key);
        self.nodes[key as usize] = Node { at, prev: NIL, next };
        if next != NIL {
            self.nodes[next as usize].prev = key;
        } else {
            list.tail = key;
            if slot.level < self.levels {
                self.mark(slot);
            }
        }
        if slot.level == self.levels {
            self.far_min = self.far_min.min(at);
        }
    }

    /// Removes a pending key from its list; the caller sets the key's own node.
    #[inline]
    fn unlink(&mut self, key: u32) {
        let Node { at, prev, next } = self.nodes[key as usize];
        if next != NIL {
            self.nodes[next as usize].prev = prev;
        }
        if prev != NIL {
            self.nodes[prev as usize].next = next;
        }
        if next != NIL && prev != NIL {
            return;
        }
        let slot = self.slot_of(at);
        let place = self.place(slot);
        let list = &mut self.lists[place];
        if prev == NIL {
            debug_assert_eq!(list.head, key, "a first node is its slot's head");
            list.head = next;
        }
        if next == NIL {
            debug_assert_eq!(list.tail, key, "a last node is its slot's tail");
            list.tail = prev;
        }
        if list.head == NIL {
            self.unmark(slot);
        }
    }

    /// Empties a slot and returns the first and the last key of its list.
    #[inline]
    fn take(&mut self, slot: Slot) -> (u32, u32) {
        let place = self.place(slot);
        let list = core::mem::replace(&mut self.lists[place], List::EMPTY);
        self.unmark(slot);
        (list.head, list.tail)
    }

    /// Sets the occupancy bits of a slot of the wheel.
    #[inline]
    fn mark(&mut self, slot: Slot) {
        let (level, word) = (slot.level as usize, (slot.index / 64) as usize);
        self.occupied[level * Self::WORDS + word] |= 1 << (slot.index % 64);
        self.summary[level] |= 1 << word;
        self.occupied_levels |= 1 << level;
    }

    /// Clears the occupancy bits of a slot that became empty, or the bound of the far list.
    #[inline]
    fn unmark(&mut self, slot: Slot) {
        if slot.level == self.levels {
            self.far_min = u64::MAX;
            return;
        }
        let (level, word) = (slot.level as usize, (slot.index / 64) as usize);
        let bits = &mut self.occupied[level * Self::WORDS + word];
        *bits &= !(1 << (slot.index % 64));
        if *bits == 0 {
            self.summary[level] &= !(1 << word);
            if self.summary[level] == 0 {
                self.occupied_levels &= !(1 << level);
            }
        }
    }

    /// Calls `visit` with each key and deadline of a list that was taken from its slot; `visit` may
    /// set the key's own node. The list is walked from both ends at once. With a million keys each
    /// step waits for memory, and the waits of the two chains overlap: half the time, measured.
    #[inline]
    fn for_each(&mut self, ends: (u32, u32), mut visit: impl FnMut(&mut Self, u32, u64)) {
        let (mut front, mut back) = ends;
        loop {
            let (first, last) = (self.nodes[front as usize], self.nodes[back as usize]);
            visit(self, front, first.at);
            if front == back {
                return;
            }
            visit(self, back, last.at);
            if first.next == back {
                return;
            }
            (front, back) = (first.next, last.prev);
        }
    }
}

/// Returns `ps` with its low `bits` bits cleared; `bits` may be 64.
#[inline]
const fn align_down(ps: u64, bits: u32) -> u64 {
    match u64::MAX.checked_shl(bits) {
        Some(mask) => ps & mask,
        None => 0,
    }
}
