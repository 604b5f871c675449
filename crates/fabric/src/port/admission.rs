//! Admission of packets to a port.

use apus_cc::SwitchHalf;
use apus_units::{Bytes, Time};

use super::class::{Level, Waiting};
use super::{InFlight, Port};
use crate::config::PortKind;
use crate::counters::{Count, DropReason};
use crate::event::Schedule;
use crate::network::Common;
use crate::packet::PacketRef;

impl<W: SwitchHalf> Port<W> {
    /// Accepts the packet or returns the reason for the drop; in that case the caller frees the
    /// packet.
    #[inline]
    pub(crate) fn offer<P, S: Schedule>(
        &mut self,
        now: Time,
        packet: PacketRef,
        bytes: u32,
        common: &mut Common<P>,
        schedule: &mut S,
    ) -> Result<(), DropReason> {
        match self.kind {
            PortKind::Fifo => {
                self.settle(now);
                self.admit(now, packet, 0, bytes, common)?;
                self.note_occupancy(bytes);
                let packet = InFlight { arrives: now, packet, bytes };
                self.append(&packet, self.free_at.since(now), schedule);
                Ok(())
            }
            PortKind::Lazy => self.offer_class::<false, P, S>(now, packet, bytes, common, schedule),
            PortKind::Event => self.offer_class::<true, P, S>(now, packet, bytes, common, schedule),
        }
    }

    /// Offers a packet to a port that serves several classes; `EVENTS` as in
    /// [`service`](super::service).
    #[inline(always)]
    fn offer_class<const EVENTS: bool, P, S: Schedule>(
        &mut self,
        now: Time,
        packet: PacketRef,
        bytes: u32,
        common: &mut Common<P>,
        schedule: &mut S,
    ) -> Result<(), DropReason> {
        // A departure at exactly now counts as departed, independent of the order of simultaneous
        // events.
        self.serve_until::<EVENTS, P, S>(now, common, schedule);
        let mut sent_in = common.pool.fields(packet).class.index();
        let mut class = sent_in.min(self.classes.len() - 1);
        let mut bytes = bytes;
        if self.classes[class].trims && !self.classes[class].has_room(bytes) {
            (class, bytes) = self.make_room(now, packet, (class, bytes), common);
            sent_in = common.pool.fields(packet).class.index();
        }
        self.classes[class].offered.add(bytes);
        self.admit(now, packet, class, bytes, common)?;
        let own = EVENTS && sent_in == class;
        self.join::<EVENTS, P, S>(now, class, (Waiting { packet, bytes }, own), common, schedule);
        Ok(())
    }

    /// Accepts a packet like [`Port::accept`] at a port that is served by events, if only a limit
    /// can stop the packet and no earlier service is due. Otherwise returns `false`, and the packet
    /// must be [offered](Port::offer). In that case the port may already have handled the end of
    /// the last service, which the offer would do first.
    #[inline(always)]
    pub(crate) fn accept_unhindered<P, S: Schedule>(
        &mut self,
        &InFlight { arrives: now, packet, bytes }: &InFlight,
        common: &Common<P>,
        schedule: &mut S,
    ) -> bool {
        let idle = self.free_at <= now;
        if !self.unhindered || idle && self.waiting != 0 {
            return false;
        }
        if idle {
            let served = self.in_service;
            self.in_service.bytes = 0;
            let before = &mut self.classes[usize::from(served.class)];
            before.bytes -= u64::from(served.bytes);
            before.own_bytes -= u64::from(served.bytes) * u64::from(served.own);
            self.queue_bytes = 0;
        }
        let sent_in = common.pool.fields(packet).class.index();
        let number = sent_in.min(self.classes.len() - 1);
        let class = &mut self.classes[number];
        let has_room = self.queue_bytes + u64::from(bytes) <= self.limit
            && (!self.limited || class.has_room(bytes));
        if !has_room || idle && !class.prompt {
            return false;
        }
        let (joining, own) = (Waiting { packet, bytes }, sent_in == number);
        class.offered.add(bytes);
        class.note_joining(bytes, own);
        self.tally.offered.add(bytes);
        if idle {
            class.bytes += u64::from(bytes);
            self.note_occupancy_of_classes(bytes);
            self.serve_alone(now, number, (joining, own), schedule);
        } else {
            self.note_occupancy_of_classes(bytes);
            self.tally.joins(now, bytes);
            self.enqueue(number, joining);
            self.announce(schedule);
        }
        true
    }

    /// Accepts a packet like [`Port::accept`] at a lazy port without switch halves, whose classes have no limits.
    #[inline(always)]
    pub(crate) fn accept_lazily<P, S: Schedule>(
        &mut self,
        &InFlight { arrives: now, packet, bytes }: &InFlight,
        common: &mut Common<P>,
        schedule: &mut S,
    ) -> bool {
        self.serve_until::<false, P, S>(now, common, schedule);
        if self.queue_bytes + u64::from(bytes) > self.limit {
            return false;
        }
        let class = common.pool.fields(packet).class.index().min(self.classes.len() - 1);
        self.classes[class].offered.add(bytes);
        self.tally.offered.add(bytes);
        self.join::<false, P, S>(now, class, (Waiting { packet, bytes }, false), common, schedule);
        true
    }

    /// Serves a packet that has joined the idle port.
    #[inline(always)]
    fn serve_alone<S: Schedule>(
        &mut self,
        now: Time,
        class: usize,
        (joined, own): (Waiting, bool),
        schedule: &mut S,
    ) {
        if self.has_schedulers {
            self.levels.iter_mut().for_each(Level::on_idle);
            self.levels[usize::from(self.classes[class].level)].note_sole(class, joined.bytes);
        }
        self.serve(now, class, joined, own, schedule);
        self.tally.stays(self.free_at.since(now), joined.bytes);
    }

    /// Counts a packet that joins a port with several classes.
    #[inline(always)]
    fn note_occupancy_of_classes(&mut self, bytes: u32) {
        self.queue_bytes += u64::from(bytes);
        self.tally.max_queue_bytes = self.tally.max_queue_bytes.max(self.queue_bytes);
    }

    /// Adds a packet to a class that has room for it. `own` is set if the packet was sent in that
    /// class.
    #[inline(always)]
    fn join<const EVENTS: bool, P, S: Schedule>(
        &mut self,
        now: Time,
        class: usize,
        (joining, own): (Waiting, bool),
        common: &mut Common<P>,
        schedule: &mut S,
    ) {
        let bytes = joining.bytes;
        self.note_occupancy_of_classes(bytes);
        if EVENTS {
            self.classes[class].note_joining(bytes, own);
        }
        let idle = self.in_service.bytes == 0 && (!EVENTS || self.waiting == 0);
        if idle && (!EVENTS || self.certain && self.classes[class].prompt) {
            self.classes[class].bytes += u64::from(bytes);
            return self.serve_alone(now, class, (joining, own), schedule);
        }
        if idle && self.has_schedulers {
            self.levels.iter_mut().for_each(Level::on_idle);
        }
        self.tally.joins(now, bytes);
        if let Some(stops) = self.stops.as_ref().filter(|_| EVENTS) {
            stops.reserve(bytes, &mut common.shared);
        }
        self.enqueue(class, joining);
        if !EVENTS {
            self.ask_to_be_served(schedule);
        } else if self.in_service.bytes == 0 {
            self.begin_service::<EVENTS, P, S>(now, common, schedule);
        } else {
            self.announce(schedule);
        }
    }

    /// Counts a packet that was offered. It may join if a class has room for it and the switch half
    /// does not drop it; otherwise it is counted as dropped.
    #[inline(always)]
    fn admit<P>(
        &mut self,
        now: Time,
        packet: PacketRef,
        class: usize,
        bytes: u32,
        common: &mut Common<P>,
    ) -> Result<(), DropReason> {
        self.tally.offered.add(bytes);
        let mut admitted = self.find_room(class, bytes, common);
        if admitted.is_ok() && !self.plain {
            admitted = self.show_joining(now, packet, class, common);
        }
        if admitted.is_err() {
            self.count_drop(class, bytes);
        }
        admitted
    }

    /// Returns `true` if a class has room for a packet.
    #[inline(always)]
    fn find_room<P>(
        &mut self,
        class: usize,
        bytes: u32,
        common: &Common<P>,
    ) -> Result<(), DropReason> {
        let mut room = self.queue_bytes + u64::from(bytes) <= self.limit;
        if let Some(stops) = &self.stops {
            if !stops.up {
                return Err(DropReason::LinkDown);
            }
            room &= stops.has_room(self.classes[class].bytes, bytes, &common.shared);
        }
        if room && (!self.limited || self.classes[class].has_room(bytes)) {
            return Ok(());
        }
        Err(self.classes[class].refuse(bytes, room))
    }

    /// Counts the drop of a packet that was about to join a class or had joined it.
    #[cold]
    pub(super) fn count_drop(&mut self, class: usize, bytes: u32) {
        self.tally.dropped.add(bytes);
        self.classes[class].dropped.add(bytes);
    }

    /// Returns the bytes of a class in the port, a packet in service included.
    #[inline]
    pub(super) fn bytes_of(&self, class: usize) -> u64 {
        if self.kind == PortKind::Fifo { self.queue_bytes } else { self.classes[class].bytes }
    }

    /// Returns the bytes of a class that are in service.
    pub(super) fn served_bytes(&self, class: usize) -> u64 {
        if self.kind == PortKind::Fifo {
            let first = self.link.departure(self.departed as usize);
            return first.map_or(0, |(_, bytes)| u64::from(bytes));
        }
        let served = self.in_service;
        if usize::from(served.class) == class { u64::from(served.bytes) } else { 0 }
    }

    /// Returns the number of wire bytes that have left the port. Excludes the last `joining` bytes
    /// offered, which are not in the port yet.
    pub(super) fn sent_bytes(&self, joining: u32) -> Bytes {
        let Count { bytes, .. } = self.tally.offered;
        let lost = self.stops.as_ref().map_or(0, |stops| stops.lost().bytes);
        Bytes::new(bytes + lost - self.tally.dropped.bytes - u64::from(joining) - self.queue_bytes)
    }
}
