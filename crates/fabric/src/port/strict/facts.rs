//! Read access to a port of strict priorities, which may not have caught up with `now`.

use apus_cc::SwitchHalf;
use apus_units::{ClassId, Rate, Time};

use super::StrictPort;
use super::class::{StrictClass, Waiting};
use crate::counters::{ClassCounters, Count, PortCounters, Tally};

impl<W: SwitchHalf> StrictPort<W> {
    pub(crate) fn rate(&self) -> Rate {
        self.rate
    }

    pub(crate) fn class_count(&self) -> usize {
        self.classes.len()
    }

    /// Returns every queued packet with the index of its class, in the order of service without
    /// further arrivals.
    fn waiting(&self) -> impl Iterator<Item = (usize, &Waiting)> {
        let classes = self.classes.iter().enumerate();
        classes.flat_map(|(place, class)| class.queue.iter().map(move |packet| (place, packet)))
    }

    /// Queued packets that depart by `now`, with their departure times.
    fn leaving(&self, now: Time) -> impl Iterator<Item = (usize, &Waiting, Time)> {
        let mut free_at = self.free_at;
        self.waiting().map_while(move |(place, packet)| {
            free_at += self.serialization_time(packet.bytes);
            (free_at <= now).then_some((place, packet, free_at))
        })
    }

    /// Returns `true` if a packet is in service that the port has caught up with and that has left
    /// by `now`.
    fn is_over(&self, now: Time) -> bool {
        self.in_service.bytes > 0 && self.free_at <= now
    }

    pub(crate) fn busy_until(&self) -> Time {
        self.waiting()
            .fold(self.free_at, |time, (_, packet)| time + self.serialization_time(packet.bytes))
    }

    pub(crate) fn queued(&self, now: Time) -> Count {
        let mut queued = Count {
            packets: self.waiting_packets() + u64::from(self.in_service.bytes > 0),
            bytes: self.queue_bytes,
        };
        if self.is_over(now) {
            queued.sub(self.in_service.bytes);
        }
        for (_, packet, _) in self.leaving(now) {
            queued.sub(packet.bytes);
        }
        queued
    }

    fn waiting_packets(&self) -> u64 {
        self.classes.iter().map(|class| class.queue.len() as u64).sum()
    }

    fn class(&self, class: ClassId) -> (usize, &StrictClass<W>) {
        let place = usize::from(self.places[class.index()]);
        (place, &self.classes[place])
    }

    fn class_queued(&self, class: ClassId, now: Time) -> Count {
        let (place, class) = self.class(class);
        let served = self.in_service.bytes > 0 && usize::from(self.in_service.place) == place;
        let mut queued =
            Count { packets: class.queue.len() as u64 + u64::from(served), bytes: class.bytes };
        if served && self.is_over(now) {
            queued.sub(self.in_service.bytes);
        }
        for (_, packet, _) in self.leaving(now).filter(|(of, ..)| *of == place) {
            queued.sub(packet.bytes);
        }
        queued
    }

    /// Bytes of one class in the port.
    pub(crate) fn class_bytes(&self, class: ClassId, now: Time) -> u64 {
        self.class_queued(class, now).bytes
    }

    /// Returns the counters of one class.
    pub(crate) fn class_counters(&self, class: ClassId, now: Time) -> ClassCounters {
        let (_, own) = self.class(class);
        ClassCounters::new(own.offered, own.dropped, self.class_queued(class, now))
    }

    pub(crate) fn counters(&self, now: Time) -> PortCounters {
        let sum = |count: fn(&StrictClass<W>) -> Count| {
            self.classes.iter().map(count).fold(Count::default(), |sum, count| Count {
                packets: sum.packets + count.packets,
                bytes: sum.bytes + count.bytes,
            })
        };
        let (mut packet_time, mut byte_time) = (self.packet_time, self.byte_time_sum);
        let mut add = |time: u128, bytes: u32| {
            packet_time = packet_time.wrapping_add(time);
            byte_time = byte_time.wrapping_add(time.wrapping_mul(u128::from(bytes)));
        };
        // The sums contain only the arrivals of queued packets: these stay until now, or until they
        // depart.
        for (_, packet) in self.waiting() {
            add(u128::from(now.as_ps()), packet.bytes);
        }
        for (_, packet, departs) in self.leaving(now) {
            add(0_u128.wrapping_sub(u128::from(now.since(departs).as_ps())), packet.bytes);
        }
        // The time of the packet in service was added when its service began; the part after now is
        // subtracted.
        let rest = u128::from(self.free_at.since(now).as_ps());
        if self.in_service.bytes > 0 {
            add(0_u128.wrapping_sub(rest), self.in_service.bytes);
        }
        let tally = Tally {
            packet_time,
            byte_time,
            offered: sum(|class| class.offered),
            max_queue_bytes: self.max_queue_bytes,
            marked: self.marked,
            dropped: sum(|class| class.dropped),
        };
        tally.counters(self.queued(now))
    }

    /// The largest occupancy counts from `bytes` on.
    pub(crate) fn set_max_queue(&mut self, bytes: u64) {
        self.max_queue_bytes = bytes;
    }

    /// Packets in the port and on the link behind it, where the one in service is already.
    pub(crate) fn held(&self) -> u64 {
        self.waiting_packets() + self.link.held() as u64
    }
}
