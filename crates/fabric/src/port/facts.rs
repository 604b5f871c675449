//! Read access to a port, which may not have been updated to `now` yet.

use alloc::vec::Vec;

use apus_cc::SwitchHalf;
use apus_units::{Bytes, ClassId, Rate, Span, Time};

use super::Port;
use super::shared::SharedBuffer;
use crate::config::PortKind;
use crate::counters::{ClassCounters, Count, PortCounters};
use crate::scheduler::Head;

impl<W: SwitchHalf> Port<W> {
    pub(crate) fn kind(&self) -> PortKind {
        self.kind
    }

    pub(crate) fn rate(&self) -> Rate {
        self.rate
    }

    /// Returns the configured rate of the link, without faults.
    pub(crate) fn configured_rate(&self) -> Rate {
        self.stops.as_ref().map_or(self.rate, |stops| stops.configured_rate())
    }

    /// Returns the time from a packet's departure to its arrival at the peer.
    pub(crate) fn delay(&self) -> Span {
        self.link.delay()
    }

    pub(crate) fn class_count(&self) -> usize {
        self.classes.len()
    }

    /// Returns `true` if classes of the port may be paused.
    pub(crate) fn is_pausable(&self) -> bool {
        self.stops.as_ref().is_some_and(|stops| stops.pausable)
    }

    /// Returns `true` if this class is paused; the last one if the port has fewer classes.
    pub(crate) fn is_paused(&self, class: ClassId) -> bool {
        let own = self.classes.get(class.index()).or(self.classes.last());
        own.is_some_and(|class| class.paused)
    }

    pub(crate) fn has_paused_class(&self) -> bool {
        self.classes.iter().any(|class| class.paused)
    }

    /// Returns `true` if the link may fail, lose packets and change its rate.
    pub(crate) fn is_variable(&self) -> bool {
        self.stops.as_ref().is_some_and(|stops| stops.variable)
    }

    /// Returns `true` if no event at this port affects another port: the port shares no memory, and
    /// no switch half sends signals.
    pub(crate) fn is_independent(&self) -> bool {
        self.stops.as_ref().is_none_or(|stops| !stops.shares_memory())
            && !self.classes.iter().any(|class| class.algorithm.signals())
    }

    /// Returns the time at which the last packet in the port departs, if no class is paused or
    /// rate-limited.
    pub(crate) fn busy_until(&self) -> Time {
        let waiting = self.classes.iter().flat_map(|class| class.queue.iter());
        waiting.fold(self.free_at, |time, packet| time + self.serialization_time(packet.bytes))
    }

    /// Returns the fraction of the available room that these bytes take. The room is the limit of
    /// `class`, or the fair share of a shared memory if that is lower; without a limit the fraction
    /// is about 0.
    pub(crate) fn fill(&self, class: ClassId, bytes: u64, shared: &[SharedBuffer]) -> f64 {
        let own = self.classes.get(class.index()).or(self.classes.last());
        let limit = own.map_or(self.limit, |own| own.limit().min(self.limit)) as f64;
        let share = self.stops.as_ref().and_then(|stops| stops.fair_share(shared));
        bytes as f64 / share.map_or(limit, |share| limit.min(share))
    }

    /// Returns `true` if the link is up.
    pub(crate) fn is_up(&self) -> bool {
        self.stops.as_ref().is_none_or(|stops| stops.up)
    }

    /// Returns the packets in the port.
    pub(crate) fn queued(&self, now: Time) -> Count {
        let of_link = (self.link.len() as u64) - u64::from(self.departed);
        let mut queued = Count {
            packets: of_link + self.waiting_packets() + u64::from(self.in_service.bytes > 0),
            bytes: self.queue_bytes,
        };
        self.left_by(now, |_, bytes| queued.sub(bytes));
        queued
    }

    fn waiting_packets(&self) -> u64 {
        self.classes.iter().map(|class| class.queue.len() as u64).sum()
    }

    /// Calls `each` with the class number and the bytes of each packet that has left by `now` but
    /// is still counted by the port.
    fn left_by(&self, now: Time, mut each: impl FnMut(usize, u32)) {
        let departures = self.link.departures_from(self.departed as usize);
        for (_, bytes) in departures.take_while(|(departs, _)| *departs <= now) {
            each(0, bytes);
        }
        // A packet in service that is lost by a failure of the link is dropped when its service
        // ends.
        if self.in_service.bytes > 0 && !self.in_service.lost && self.free_at <= now {
            each(usize::from(self.in_service.class), self.in_service.bytes);
        }
        for (class, bytes, _) in self.served_by(now) {
            each(class, bytes);
        }
    }

    /// Returns the class number, bytes and departure of each packet that is still queued in the
    /// state of the port but will have left by `now`. Changes nothing: the services are computed on
    /// a copy.
    fn served_by(&self, now: Time) -> Vec<(usize, u32, Time)> {
        let mut served = Vec::new();
        if self.kind != PortKind::Lazy || self.waiting == 0 || self.free_at > now {
            return served;
        }
        let mut departs = self.free_at;
        let mut levels = self.levels.clone();
        let mut taken = alloc::vec![0; self.classes.len()];
        while departs <= now {
            let head = |class: usize| {
                let waiting = self.classes[class].queue.get(taken[class])?;
                Some(Head { bytes: waiting.bytes })
            };
            let Some(class) = levels.iter_mut().find_map(|level| level.choose(head)) else { break };
            let Some(packet) = self.classes[class].queue.get(taken[class]) else { break };
            taken[class] += 1;
            departs += self.serialization_time(packet.bytes);
            served.push((class, packet.bytes, departs));
        }
        served.retain(|&(_, _, departs)| departs <= now);
        served
    }

    /// Returns the packets of one class in the port.
    ///
    /// # Panics
    /// If there is no such class. A FIFO port has one class and ignores the argument.
    pub(crate) fn class_queued(&self, class: ClassId, now: Time) -> Count {
        if self.kind == PortKind::Fifo {
            return self.queued(now);
        }
        let own = &self.classes[class.index()];
        let in_service = self.served_bytes(class.index()) > 0;
        let mut queued =
            Count { packets: own.queue.len() as u64 + u64::from(in_service), bytes: own.bytes };
        self.left_by(now, |of, bytes| {
            if of == class.index() {
                queued.sub(bytes);
            }
        });
        queued
    }

    /// Returns the counters of one class.
    pub(crate) fn class_counters(&self, class: ClassId, now: Time) -> ClassCounters {
        let queued = self.class_queued(class, now);
        if self.kind == PortKind::Fifo {
            return ClassCounters::new(
                self.tally.offered,
                [self.tally.dropped, Count::default()],
                queued,
            );
        }
        let own = &self.classes[class.index()];
        let lost = self.stops.as_ref().map_or(Count::default(), |stops| stops.lost_of(class));
        ClassCounters::new(own.offered, [own.dropped, lost], queued)
    }

    /// Returns the maximum number of bytes of packets sent in a class that the class has held, if
    /// the port counts them.
    pub(crate) fn max_own_bytes(&self, class: ClassId) -> Option<Bytes> {
        self.stops.as_ref().map(|_| Bytes::new(self.classes[class.index()].max_own_bytes))
    }

    /// Returns the maximum number of bytes, of packets sent in a class that the port does not have,
    /// that have joined this class while it was never empty; `None` if the port does not count
    /// them.
    pub(crate) fn max_foreign_bytes(&self, class: ClassId) -> Option<Bytes> {
        self.stops.as_ref().map(|_| Bytes::new(self.classes[class.index()].max_foreign_bytes))
    }

    pub(crate) fn counters(&self, now: Time) -> PortCounters {
        let mut tally = self.tally.clone();
        if self.kind == PortKind::Fifo {
            // The whole time of a packet in the port was added when it arrived; the part after now
            // is subtracted.
            for (departs, bytes) in self.link.departures_from(self.departed as usize) {
                tally.stays_less(departs.since(now), bytes);
            }
        } else {
            // Queued packets stay until now, or until they left.
            for packet in self.classes.iter().flat_map(|class| class.queue.iter()) {
                tally.leaves(now, packet.bytes);
            }
            for (_, bytes, departs) in self.served_by(now) {
                tally.stays_less(now.since(departs), bytes);
            }
            // The time of the packet in service was added when its service began; the part after
            // now is subtracted.
            tally.stays_less(self.free_at.since(now), self.in_service.bytes);
        }
        let lost = self.stops.as_ref().map_or(Count::default(), |stops| stops.lost());
        let mut counters = tally.counters(self.queued(now), lost);
        counters.pauses = self.classes.iter().map(|class| u64::from(class.pauses)).sum();
        if let Some(trimmer) = &self.trimmer {
            (counters.trimmed, counters.headers_lost) = trimmer.counts();
        }
        counters
    }

    /// Restarts the largest occupancy at `now`.
    pub(crate) fn restart_max_queue(&mut self, now: Time) {
        self.note_largest(self.queued(now).bytes, 0);
    }

    /// Returns the number of packets in the port and on the link behind it.
    pub(crate) fn held(&self) -> u64 {
        let held_back = self.stops.as_ref().map_or(0, |stops| stops.held());
        // A packet in service may already be in the link's ring.
        let served = u64::from(self.in_service.bytes > 0 && !self.certain);
        self.waiting_packets() + served + (held_back + self.link.held()) as u64
    }
}
