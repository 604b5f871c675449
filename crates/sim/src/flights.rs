//! Packets on links in a part that runs window by window: a list per window of arrival.
//!
//! Lists are chains of chunks of one arena. All lists together therefore take only the memory of the packets
//! in them, and a window reads its packets in sequence.

use apus_fabric::{Flight, PacketRef};
use apus_units::{PortId, reserve_more};

/// Packets per chunk: 1 KiB.
const CHUNK: usize = 64;
/// Number of lists.
pub(crate) const LISTS: usize = 128;
const NIL: u32 = u32::MAX;

/// A chain of chunks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    /// First chunk.
    first: u32,
    /// Slot after the last packet; 0 without packets.
    end: u32,
}

impl List {
    const EMPTY: Self = Self { first: NIL, end: 0 };
}

/// Lists of packets on links.
#[derive(Debug)]
pub(crate) struct Flights {
    /// Slots of all chunks.
    slots: Vec<Flight>,
    /// By chunk: the next chunk of its list, or the next free chunk.
    next: Vec<u32>,
    /// First free chunk.
    free: u32,
    lists: Box<[List; LISTS]>,
}

impl Flights {
    pub(crate) fn new() -> Self {
        let lists = Box::new([List::EMPTY; LISTS]);
        Self { slots: Vec::new(), next: Vec::new(), free: NIL, lists }
    }

    /// Appends a packet to a list. Returns `true` if the list may have been empty.
    #[inline(always)]
    pub(crate) fn push(&mut self, list: usize, flight: Flight) -> bool {
        let needs_chunk = (self.lists[list].end as usize).is_multiple_of(CHUNK);
        if needs_chunk {
            self.extend(list, flight);
        }
        let end = &mut self.lists[list].end;
        self.slots[*end as usize] = flight;
        *end += 1;
        needs_chunk
    }

    /// Appends a chunk to a list that is empty or whose last chunk is full.
    #[inline(never)]
    fn extend(&mut self, list: usize, filler: Flight) {
        let chunk = if self.free == NIL {
            reserve_more(&mut self.slots, CHUNK);
            self.slots.resize(self.slots.len() + CHUNK, filler);
            self.next.push(NIL);
            // 2^32 packets do not fit into memory.
            self.next.len() as u32 - 1
        } else {
            let chunk = self.free;
            self.free = self.next[chunk as usize];
            chunk
        };
        let list = &mut self.lists[list];
        match list.end as usize / CHUNK {
            0 if list.first == NIL => list.first = chunk,
            last => self.next[last - 1] = chunk,
        }
        list.end = chunk * CHUNK as u32;
    }

    /// Takes a list and leaves an empty one.
    pub(crate) fn take(&mut self, list: usize) -> List {
        core::mem::replace(&mut self.lists[list], List::EMPTY)
    }

    /// Moves the next packets of a list that was taken into `chunk`. Returns `false` if there are none left.
    #[inline]
    pub(crate) fn take_chunk(&mut self, list: &mut List, chunk: &mut Vec<Flight>) -> bool {
        chunk.clear();
        if list.first == NIL {
            return false;
        }
        let (first, begin) = (list.first as usize, list.first as usize * CHUNK);
        let is_last = (list.end as usize - 1) / CHUNK == first;
        let end = if is_last { list.end as usize } else { begin + CHUNK };
        chunk.extend_from_slice(&self.slots[begin..end]);
        list.first = if is_last { NIL } else { self.next[first] };
        self.next[first] = self.free;
        self.free = first as u32;
        true
    }

    /// Removes all packets on a link from all lists and passes them to `lose`.
    pub(crate) fn cut(&mut self, link: PortId, lose: &mut dyn FnMut(PacketRef)) {
        let mut chunk = Vec::new();
        for index in 0..LISTS {
            let mut list = self.take(index);
            while self.take_chunk(&mut list, &mut chunk) {
                for &flight in &chunk {
                    if flight.link == link {
                        lose(flight.packet);
                    } else {
                        self.push(index, flight);
                    }
                }
            }
        }
    }

    /// Returns the number of packets.
    pub(crate) fn len(&self) -> u64 {
        let chunks_from = |first: u32| {
            let next = |chunk: &u32| Some(self.next[*chunk as usize]);
            core::iter::successors(Some(first), next)
        };
        let len = |list: &List| {
            let last = (list.end as usize).checked_sub(1)? / CHUNK;
            let full = chunks_from(list.first).take_while(|chunk| *chunk as usize != last).count();
            Some((full * CHUNK + list.end as usize - last * CHUNK) as u64)
        };
        self.lists.iter().filter_map(len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus_units::Time;

    /// Lists hold the packets in the order in which they were pushed, independent of how lists grow, and
    /// cutting a link keeps the packets of other links.
    #[test]
    fn lists_keep_their_packets_in_order() {
        let lose_none = &mut |packet: PacketRef| panic!("{packet:?} is not on the link");
        let mut flights = Flights::new();
        let mut model: [Vec<(u64, u32)>; 3] = Default::default();
        let (mut state, mut number) = (1u64, 0);
        for step in 0..2000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (list, count) = ((state >> 33) as usize % 3, (state >> 40) as usize % 150);
            for _ in 0..count {
                number += 1;
                let link = PortId::new(number as u32 % 5);
                let arrives = Time::from_ps(number);
                flights.push(list, Flight { arrives, link, packet: PacketRef::default() });
                model[list].push((number, link.get()));
            }
            if step % 50 == 7 {
                flights.cut(PortId::new(9), lose_none);
                let mut lost = 0;
                flights.cut(PortId::new(2), &mut |_| lost += 1);
                let before: usize = model.iter().map(Vec::len).sum();
                model.iter_mut().for_each(|list| list.retain(|(_, link)| *link != 2));
                assert_eq!(before - model.iter().map(Vec::len).sum::<usize>(), lost);
            }
            assert_eq!(flights.len(), model.iter().map(|list| list.len() as u64).sum::<u64>());
            if step % 4 == 0 {
                let (mut taken, mut chunk, mut found) =
                    (flights.take(list), Vec::new(), Vec::new());
                while flights.take_chunk(&mut taken, &mut chunk) {
                    assert!(!chunk.is_empty());
                    found.extend(chunk.iter().map(|f| (f.arrives.as_ps(), f.link.get())));
                }
                assert_eq!(found, core::mem::take(&mut model[list]));
            }
        }
        // Without reuse of chunks, all of the about 240,000 packets would have a slot.
        assert!(flights.slots.len() < 40_000, "{} slots", flights.slots.len());
    }
}
