//! The pending events of a world, in order of time.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use apus_units::Time;

use crate::world::Event;

/// Time of an event and the index of the event.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Due {
    key: u128,
    place: usize,
}

impl Ord for Due {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key) // keys are unique
    }
}

impl PartialOrd for Due {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The pending events. Events of the same instant are in the order in which they were added.
#[derive(Default)]
pub(crate) struct Agenda {
    /// Keys and indices of the events. A key combines the time and the number of an event, so that one
    /// comparison orders two events.
    order: BinaryHeap<Reverse<Due>>,
    /// The events by index, so that sorting moves no datagrams.
    events: Vec<Option<Event>>,
    /// Indices without an event.
    free: Vec<usize>,
    added: u64,
}

impl Agenda {
    pub(crate) fn push(&mut self, at: Time, event: Event) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.events.push(None);
            self.events.len() - 1
        });
        self.events[place] = Some(event);
        self.added += 1;
        let key = u128::from(at.as_ps()) << 64 | u128::from(self.added);
        self.order.push(Reverse(Due { key, place }));
    }

    /// Removes and returns the next event if its time is at most `end`.
    pub(crate) fn pop(&mut self, end: Time) -> Option<(Time, Event)> {
        let Reverse(Due { key, place }) = *self.order.peek()?;
        let at = Time::from_ps((key >> 64) as u64);
        if at > end {
            return None;
        }
        self.order.pop();
        self.free.push(place);
        self.events[place].take().map(|event| (at, event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_the_order_of_their_times_and_of_one_time_as_they_were_added() {
        let at = |s| Time::ZERO + apus_units::Span::from_secs(s);
        let mut agenda = Agenda::default();
        for (second, host) in [(2, 0), (1, 1), (2, 2), (3, 3)] {
            agenda.push(at(second), Event::Start(host));
        }
        let mut hosts = Vec::new();
        while let Some((_, Event::Start(host))) = agenda.pop(at(2)) {
            hosts.push(host);
        }
        assert_eq!(hosts, [1, 0, 2]);
        agenda.push(at(1), Event::Start(4));
        assert!(matches!(agenda.pop(at(3)), Some((_, Event::Start(4)))));
        assert!(matches!(agenda.pop(at(3)), Some((_, Event::Start(3)))));
        assert!(agenda.pop(Time::MAX).is_none());
    }
}
