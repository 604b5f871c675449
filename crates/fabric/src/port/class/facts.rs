//! Read access to a class port.

use apus_cc::SwitchHalf;
use apus_units::{Bytes, ClassId, Rate, Time};

use super::ClassPort;
use crate::counters::{ClassCounters, Count, PortCounters};

impl<W: SwitchHalf> ClassPort<W> {
    pub(crate) fn rate(&self) -> Rate {
        self.rate
    }

    /// Returns `true` if its classes may be paused.
    pub(crate) fn is_pausable(&self) -> bool {
        self.pausable
    }

    /// Returns `true` if its link may fail, lose packets and change its rate.
    pub(crate) fn is_variable(&self) -> bool {
        self.variable
    }

    pub(crate) fn class_count(&self) -> usize {
        self.classes.classes.len()
    }

    /// Returns when the last packet in the port departs if no class is paused or limited.
    pub(crate) fn busy_until(&self) -> Time {
        let free = self.in_service.map_or(self.integrated_to, |served| served.departs);
        self.classes.waiting().fold(free, |time, waiting| {
            time + self.rate.serialization_time(Bytes::new(u64::from(waiting.bytes)))
        })
    }

    pub(crate) fn queued(&self, now: Time) -> Count {
        let mut queued = self.queued;
        if let Some(served) = self.in_service.filter(|served| served.departs <= now) {
            queued.sub(served.bytes);
        }
        queued
    }

    /// Bytes of one class in the port.
    pub(crate) fn class_bytes(&self, class: ClassId, now: Time) -> u64 {
        let due = self
            .in_service
            .filter(|served| served.departs <= now && served.class == class.index())
            .map_or(0, |served| u64::from(served.bytes));
        self.classes.bytes(class.index()) - due
    }

    /// The most bytes of packets sent in a class that it has held.
    pub(crate) fn max_own_bytes(&self, class: ClassId) -> Bytes {
        Bytes::new(self.classes.classes[class.index()].max_own_bytes)
    }

    /// The most bytes of packets sent in a class that the port does not have that have joined this
    /// one while it was never empty.
    pub(crate) fn max_foreign_bytes(&self, class: ClassId) -> Bytes {
        Bytes::new(self.classes.classes[class.index()].max_foreign_bytes)
    }

    /// Returns the counters of one class.
    pub(crate) fn class_counters(&self, class: ClassId, now: Time) -> ClassCounters {
        let own = &self.classes.classes[class.index()];
        let served = self.in_service.filter(|s| s.departs > now && s.class == class.index());
        let queued = Count {
            packets: own.waiting_packets() + u64::from(served.is_some()),
            bytes: self.class_bytes(class, now),
        };
        ClassCounters::new(own.offered, own.dropped, queued)
    }

    pub(crate) fn counters(&self, now: Time) -> PortCounters {
        let mut counters = self.tally.counters(self.queued(now));
        // A departure that no event was for leaves an empty port.
        let due = self.in_service.filter(|served| served.departs <= now);
        let until = due.map_or(now, |served| served.departs);
        let span = u128::from(until.since(self.integrated_to).as_ps());
        counters.byte_time += span * u128::from(self.queued.bytes);
        counters.packet_time += span * u128::from(self.queued.packets);
        counters
    }

    /// Packets in the port and on the link behind it.
    pub(crate) fn held(&self) -> u64 {
        // The packet in service may already be in the link's ring.
        let twice = u64::from(self.certain && self.in_service.is_some());
        self.queued.packets + (self.held_back.len() + self.link.held()) as u64 - twice
    }
}
