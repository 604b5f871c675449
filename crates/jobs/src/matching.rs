//! Matching of messages with receives by source and tag, in the order of arrival and posting.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use crate::graph::{ANY, Program};

/// Neither a slot nor a channel.
const NONE: u32 = u32::MAX;

/// A message or a receive that waits for its counterpart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) source: u32,
    pub(crate) tag: u32,
    /// Data of the owner.
    pub(crate) item: (u32, u64),
}

impl Waiting {
    fn fits(&self, other: &Self) -> bool {
        let equal = |a: u32, b: u32| a == b || a == ANY || b == ANY;
        equal(self.source, other.source) && equal(self.tag, other.tag)
    }

    fn is_wild(&self) -> bool {
        self.source == ANY || self.tag == ANY
    }
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    waiting: Waiting,
    channel: u32,
    /// Neighbours in the order of all waiting entries.
    before: u32,
    after: u32,
    /// Next entry of the same channel, or next free slot.
    next: u32,
}

/// A queue of slots.
#[derive(Clone, Copy, Debug)]
struct Queue {
    first: u32,
    last: u32,
}

const EMPTY: Queue = Queue { first: NONE, last: NONE };

/// Waiting entries: either messages or receives.
#[derive(Clone, Debug)]
struct Side {
    slots: Vec<Slot>,
    free: u32,
    all: Queue,
    channels: Box<[Queue]>,
    /// Number of entries that have a wildcard or no channel of their own.
    odd: u32,
}

impl Side {
    fn new(channels: usize) -> Self {
        let channels = vec![EMPTY; channels].into_boxed_slice();
        Self { slots: Vec::new(), free: NONE, all: EMPTY, channels, odd: 0 }
    }

    fn push(&mut self, waiting: Waiting, channel: u32) {
        let slot = Slot { waiting, channel, before: self.all.last, after: NONE, next: NONE };
        let index = if self.free == NONE {
            self.slots.push(slot);
            self.slots.len() as u32 - 1
        } else {
            let index = self.free;
            self.free = self.slots[index as usize].next;
            self.slots[index as usize] = slot;
            index
        };
        match self.all.last {
            NONE => self.all.first = index,
            last => self.slots[last as usize].after = index,
        }
        self.all.last = index;
        match self.channels.get_mut(channel as usize) {
            None => self.odd += 1,
            Some(queue) => {
                let last = core::mem::replace(&mut queue.last, index);
                if last == NONE {
                    queue.first = index;
                } else {
                    self.slots[last as usize].next = index;
                }
            }
        }
    }

    /// Removes and returns the first entry that matches.
    fn take(&mut self, wanted: &Waiting, channel: u32) -> Option<Waiting> {
        let index = if self.odd == 0 && !wanted.is_wild() {
            // Every entry that matches has the same channel.
            self.channels.get(channel as usize)?.first
        } else {
            let mut index = self.all.first;
            while index != NONE && !self.slots[index as usize].waiting.fits(wanted) {
                index = self.slots[index as usize].after;
            }
            index
        };
        if index == NONE {
            return None;
        }
        let Slot { waiting, channel, before, after, next } = self.slots[index as usize];
        match before {
            NONE => self.all.first = after,
            before => self.slots[before as usize].after = after,
        }
        match after {
            NONE => self.all.last = before,
            after => self.slots[after as usize].before = before,
        }
        match self.channels.get_mut(channel as usize) {
            None => self.odd -= 1,
            // Earlier entries of its channel would also have matched, so it is the first one of the channel.
            Some(queue) => {
                queue.first = next;
                if next == NONE {
                    queue.last = NONE;
                }
            }
        }
        self.slots[index as usize].next = self.free;
        self.free = index;
        Some(waiting)
    }

    fn iter(&self) -> impl Iterator<Item = Waiting> + '_ {
        let mut index = self.all.first;
        core::iter::from_fn(move || {
            let slot = self.slots.get(index as usize)?;
            index = slot.after;
            Some(slot.waiting)
        })
    }
}

/// Messages and receives of a rank that wait for each other.
///
/// Without wildcards, an operation takes a binary search among the pairs of source and tag that the rank's
/// receives name. With wildcards, it may search all waiting entries.
#[derive(Clone, Debug)]
pub(crate) struct Matching {
    /// Sources and tags of the receives without wildcards, ascending.
    keys: Box<[(u32, u32)]>,
    messages: Side,
    receives: Side,
}

impl Matching {
    pub(crate) fn new(program: &Program) -> Self {
        let keys = program.channels().into_boxed_slice();
        let (messages, receives) = (Side::new(keys.len()), Side::new(keys.len()));
        Self { keys, messages, receives }
    }

    fn channel(&self, waiting: &Waiting) -> u32 {
        if waiting.is_wild() {
            return NONE;
        }
        let key = (waiting.source, waiting.tag);
        self.keys.binary_search(&key).map_or(NONE, |index| index as u32)
    }

    /// Processes the arrival of a message: returns the matching receive, or stores the message.
    pub(crate) fn arrive(&mut self, message: Waiting) -> Option<Waiting> {
        let channel = self.channel(&message);
        let met = self.receives.take(&message, channel);
        if met.is_none() {
            self.messages.push(message, channel);
        }
        met
    }

    /// Posts a receive: returns the matching message, or stores the receive.
    pub(crate) fn post(&mut self, receive: Waiting) -> Option<Waiting> {
        let channel = self.channel(&receive);
        let met = self.messages.take(&receive, channel);
        if met.is_none() {
            self.receives.push(receive, channel);
        }
        met
    }

    /// Returns the messages that no receive has matched, in order of arrival.
    pub(crate) fn unexpected(&self) -> impl Iterator<Item = Waiting> + '_ {
        self.messages.iter()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::{Matching, Waiting};
    use crate::graph::{ANY, Op, ProgramBuilder};
    use apus_units::random::SplitMix64;

    /// Reference: lists that are searched from the first to the last entry, as LogGOPSim does.
    #[derive(Default)]
    struct Lists {
        messages: Vec<Waiting>,
        receives: Vec<Waiting>,
    }

    fn take(from: &mut Vec<Waiting>, into: &mut Vec<Waiting>, new: Waiting) -> Option<Waiting> {
        let equal = |a: u32, b: u32| a == b || a == ANY || b == ANY;
        let fits = |w: &Waiting| equal(w.source, new.source) && equal(w.tag, new.tag);
        match from.iter().position(fits) {
            Some(index) => Some(from.remove(index)),
            None => {
                into.push(new);
                None
            }
        }
    }

    #[test]
    fn matching_equals_a_search_of_lists_with_and_without_wildcards() {
        for seed in 0..200 {
            let mut random = SplitMix64::new(seed);
            let wild = if seed % 2 == 0 { 0 } else { 10 };
            let mut number = |limit| {
                if random.below(100) < wild { ANY } else { random.below(limit) as u32 }
            };
            let (mut receives, mut messages) = (Vec::new(), Vec::new());
            for item in 0..200u32 {
                let (source, tag, of) = (number(3), number(3), number(2));
                if of == 0 {
                    receives.push(Waiting { source, tag, item: (item, 0) });
                } else {
                    let source = if source == ANY { 0 } else { source };
                    messages.push(Waiting { source, tag, item: (item, 0) });
                }
            }
            let mut builder = ProgramBuilder::new(0, 3);
            for receive in &receives {
                builder.push(Op::receive(receive.source, 1, receive.tag)).expect("op");
            }
            let mut matching = Matching::new(&builder.finish().expect("program"));
            let mut lists = Lists::default();
            let mut all: Vec<(bool, Waiting)> = receives.into_iter().map(|w| (true, w)).collect();
            all.extend(messages.into_iter().map(|w| (false, w)));
            all.sort_by_key(|(_, waiting)| waiting.item.0);
            for (is_receive, new) in all {
                let Lists { messages, receives } = &mut lists;
                let (found, expected) = if is_receive {
                    (matching.post(new), take(messages, receives, new))
                } else {
                    (matching.arrive(new), take(receives, messages, new))
                };
                assert_eq!(found, expected, "seed {seed}");
            }
            assert!(matching.unexpected().eq(lists.messages.iter().copied()), "seed {seed}");
        }
    }
}
