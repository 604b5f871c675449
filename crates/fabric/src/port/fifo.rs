//! A port of one class, which knows the departure of a packet when the packet arrives.

use alloc::vec::Vec;

use apus_cc::{ClassView, PortView, Signal, SwitchHalf};
use apus_units::{Bytes, ClassId, PortId, Rate, Span, Time};

use super::half;
use super::link::{InFlight, Link};
use crate::config::{Buffer, PortConfig};
use crate::counters::{Count, DropReason, PortCounters, Tally};
use crate::event::Schedule;
use crate::packet::{Fields, PacketRef};
use crate::topology::Node;

/// One class, own buffer, constant rate. Packets enter the link's ring when they are accepted; a
/// cursor into the ring separates the packets on the link from those still in the port. Fields that
/// every packet needs come first.
#[repr(C, align(64))]
pub(crate) struct FifoPort<W> {
    pub(crate) link: Link,
    /// Departure of the packet accepted last.
    busy_until: Time,
    /// While the port is busy for less than this, a packet of at most `largest` bytes neither meets the
    /// limit nor is the queue with it longer than it was before: the cursor may lag.
    calm: Span,
    /// Bytes of the ring's entries from `departed` on.
    queue_bytes: u64,
    /// The cursor: the number of oldest packets of the ring that are known to have departed. The
    /// cursor lags behind the clock and passes every packet once.
    departed: usize,
    /// Picoseconds per byte if that is a whole number, as for most rates in use; otherwise 0.
    /// Avoids the division. (Storing the time of the last size also avoids it, but data and
    /// acknowledgements alternate, and the processor mispredicts 0.4 branches per hop.)
    byte_time: u64,
    /// The largest packet so far, in bytes.
    largest: u32,
    /// No switch half sees its packets.
    plain: bool,
    pub(crate) tally: Tally,
    rate: Rate,
    /// Most bytes in the port.
    limit: u64,
    algorithm: W,
}

impl<W: SwitchHalf> FifoPort<W> {
    /// # Panics
    /// If the configuration needs a class port.
    pub(crate) fn new(config: &PortConfig<W>, port: PortId, link: Link) -> Self {
        let Buffer::Own(buffer) = config.buffer else {
            panic!("{port} shares a buffer, so it is a class port");
        };
        let algorithm = config.classes[0].algorithm.clone();
        Self {
            link,
            busy_until: Time::ZERO,
            calm: Span::ZERO,
            queue_bytes: 0,
            departed: 0,
            byte_time: config.rate.whole_byte_time(),
            largest: 0,
            plain: algorithm.is_plain(),
            tally: Tally::default(),
            rate: config.rate,
            limit: buffer.min(config.classes[0].limit).get(),
            algorithm,
        }
    }

    pub(crate) fn rate(&self) -> Rate {
        self.rate
    }

    #[inline]
    pub(crate) fn busy_until(&self) -> Time {
        self.busy_until
    }

    /// Returns `true` if a packet of `bytes` cannot increase the largest occupancy. The packets
    /// queued completely take the time until `busy_until` on the link; in addition there are at
    /// most the packet in service and the new packet, each no larger than the largest so far.
    #[inline(always)]
    fn is_calm(&self, now: Time, bytes: u32) -> bool {
        self.busy_until.since(now) < self.calm && bytes <= self.largest
    }

    /// The largest occupancy or packet has changed: how long is the port calm?
    #[inline(never)]
    pub(crate) fn set_max_queue(&mut self, max_queue_bytes: u64) {
        self.tally.max_queue_bytes = max_queue_bytes;
        let room = max_queue_bytes.saturating_sub(2 * u64::from(self.largest));
        // Of a shared link the cursor moves with every packet: see `settle`.
        let calm = room > 0 && !self.link.is_shared() && self.is_plain();
        // Rounded up: less than this is less than `room` bytes take.
        let time = self.rate.serialization_time(Bytes::new(room));
        self.calm = if calm { time } else { Span::ZERO };
    }

    /// Moves the cursor past every packet that has departed.
    #[inline(always)]
    fn settle(&mut self, now: Time) {
        if self.busy_until <= now {
            self.departed = self.link.len();
            self.queue_bytes = 0;
        } else {
            while let Some((departs, bytes)) = self.link.departure(self.departed)
                && departs <= now
            {
                self.departed += 1;
                self.queue_bytes -= u64::from(bytes);
            }
        }
        if self.link.is_shared() {
            // No event removes the handed-over packets, so they are removed once they have
            // departed.
            self.departed -= self.link.forget(self.departed);
        }
    }

    /// Adds a packet that the port's other half sent; here it has departed long ago.
    pub(crate) fn receive<S: Schedule>(
        &mut self,
        arrives: Time,
        packet: PacketRef,
        bytes: u32,
        schedule: &mut S,
    ) {
        self.link.receive(arrives, packet, bytes, schedule);
        self.departed += 1;
    }

    #[inline(always)]
    fn serialization_time(&self, bytes: u32) -> Span {
        self.rate.packet_time(bytes, self.byte_time)
    }

    #[inline]
    pub(crate) fn offer<S: Schedule>(
        &mut self,
        now: Time,
        packet: PacketRef,
        fields: &mut Fields,
        signals: &mut Vec<(PacketRef, Signal)>,
        schedule: &mut S,
    ) -> Result<(), DropReason> {
        let bytes = fields.wire_bytes;
        if self.is_plain() {
            return self.offer_plain(now, packet, bytes, schedule);
        }
        let queue_bytes = self.admit(now, bytes)?;
        self.show(now, packet, fields, signals)?;
        self.accept(now, packet, (bytes, queue_bytes), schedule);
        Ok(())
    }

    /// Returns `true` if no switch half is called for its packets.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }

    /// Offers a packet like [`FifoPort::offer`], for a plain port, given its wire bytes.
    #[inline(always)]
    pub(crate) fn offer_plain<S: Schedule>(
        &mut self,
        now: Time,
        packet: PacketRef,
        bytes: u32,
        schedule: &mut S,
    ) -> Result<(), DropReason> {
        if self.is_calm(now, bytes) {
            self.tally.offered.add(bytes);
            let queue_bytes = self.queue_bytes + u64::from(bytes);
            self.put(now, packet, (bytes, queue_bytes), schedule);
            return Ok(());
        }
        let queue_bytes = self.admit(now, bytes)?;
        self.accept(now, packet, (bytes, queue_bytes), schedule);
        Ok(())
    }

    /// Returns the bytes in the port including a new packet, if there is room for it.
    #[inline(always)]
    fn admit(&mut self, now: Time, bytes: u32) -> Result<u64, DropReason> {
        self.settle(now);
        self.tally.offered.add(bytes);
        let queue_bytes = self.queue_bytes + u64::from(bytes);
        if queue_bytes > self.limit {
            self.tally.dropped.add(bytes);
            return Err(half::on_refused(&mut self.algorithm, bytes));
        }
        Ok(queue_bytes)
    }

    #[inline(always)]
    fn accept<S: Schedule>(
        &mut self,
        now: Time,
        packet: PacketRef,
        (bytes, queue_bytes): (u32, u64),
        schedule: &mut S,
    ) {
        if queue_bytes > self.tally.max_queue_bytes || bytes > self.largest {
            self.largest = self.largest.max(bytes);
            self.set_max_queue(self.tally.max_queue_bytes.max(queue_bytes));
        }
        self.put(now, packet, (bytes, queue_bytes), schedule);
    }

    /// Adds an accepted packet to the queue, whose size at the cursor is `queue_bytes`.
    #[inline(always)]
    fn put<S: Schedule>(
        &mut self,
        now: Time,
        packet: PacketRef,
        (bytes, queue_bytes): (u32, u64),
        schedule: &mut S,
    ) {
        let departs = now.max(self.busy_until) + self.serialization_time(bytes);
        self.busy_until = departs;
        self.queue_bytes = queue_bytes;
        let stay = u128::from(departs.since(now).as_ps());
        self.tally.packet_time += stay;
        self.tally.byte_time += stay * u128::from(bytes);
        self.link.push(departs, packet, bytes, schedule);
    }

    /// Calls the switch half for a packet that has room.
    fn show(
        &mut self,
        now: Time,
        packet: PacketRef,
        fields: &mut Fields,
        signals: &mut Vec<(PacketRef, Signal)>,
    ) -> Result<(), DropReason> {
        let queue_bytes = Bytes::new(self.queue_bytes);
        let in_service = self.link.departure(self.departed).map_or(0, |(_, bytes)| bytes);
        let sent = self.tally.offered.bytes
            - self.tally.dropped.bytes
            - u64::from(fields.wire_bytes)
            - self.queue_bytes;
        let view = PortView {
            now,
            link_rate: self.rate,
            class: ClassId::new(0),
            class_bytes: queue_bytes,
            queue_bytes,
            class_waiting: Bytes::new(self.queue_bytes - u64::from(in_service)),
            sent: Bytes::new(sent),
            classes: &[ClassView { bytes: queue_bytes, weight: 1, priority: 0 }],
        };
        let bytes = fields.wire_bytes;
        let marked = half::on_enqueue(&mut self.algorithm, packet, fields, &view, signals)
            .inspect_err(|_| self.tally.dropped.add(bytes))?;
        self.tally.marked += u64::from(marked);
        Ok(())
    }

    /// Takes the packets that arrive before `limit`, which all have departed; when the next one does.
    #[inline(always)]
    pub(crate) fn pop_before(&mut self, limit: Time, mut take: impl FnMut(InFlight)) -> Time {
        let (departed, queue_bytes) = (&mut self.departed, &mut self.queue_bytes);
        let mut leave = |entry: InFlight| {
            let lags = *departed == 0;
            *queue_bytes -= u64::from(entry.bytes) * u64::from(lags);
            *departed -= usize::from(!lags);
        };
        if self.link.is_shared() {
            return self.link.pop_kept_before(limit, |entry| {
                leave(entry);
                if entry.packet != PacketRef::NONE {
                    take(entry);
                }
            });
        }
        self.link.pop_before(limit, |entry| {
            leave(entry);
            take(entry);
        })
    }

    /// Returns `true` if no event at this port affects another port: no switch half sends signals.
    pub(crate) fn is_independent(&self) -> bool {
        !self.algorithm.signals()
    }

    #[inline(always)]
    pub(crate) fn pop_arrived<S: Schedule>(
        &mut self,
        now: Time,
        schedule: &mut S,
    ) -> (PacketRef, Node) {
        if self.link.is_shared() {
            // Packets handed over before this packet have departed before it.
            self.settle(now);
        }
        let (entry, peer) = self.link.pop(now, schedule);
        if self.departed > 0 {
            self.departed -= 1;
        } else {
            self.queue_bytes -= u64::from(entry.bytes);
        }
        (entry.packet, peer)
    }

    /// Packets in the port: the cursor's view, less the packets that have departed since it last
    /// moved.
    pub(crate) fn queued(&self, now: Time) -> Count {
        let mut queued =
            Count { packets: (self.link.len() - self.departed) as u64, bytes: self.queue_bytes };
        if self.busy_until <= now {
            return Count::default();
        }
        for (_, bytes) in
            self.link.departures_from(self.departed).take_while(|(departs, _)| *departs <= now)
        {
            queued.sub(bytes);
        }
        queued
    }

    pub(crate) fn counters(&self, now: Time) -> PortCounters {
        let mut counters = self.tally.counters(self.queued(now));
        // The whole time of a packet in the port was added when it arrived; the part after now is
        // subtracted.
        for (departs, bytes) in self.link.departures_from(self.departed) {
            let rest = u128::from(departs.since(now).as_ps());
            counters.packet_time -= rest;
            counters.byte_time -= rest * u128::from(bytes);
        }
        counters
    }
}
