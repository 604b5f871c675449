//! A port of one class, which knows the departure of a packet when the packet arrives.
//!
//! Packets enter the link's ring when they are accepted; a cursor into the ring
//! ([`Port::departed`]) separates the packets on the link from those still in the port.

use apus_cc::SwitchHalf;
use apus_units::{Bytes, Span, Time};

use super::Port;
use crate::config::PortKind;
use crate::event::Schedule;
use crate::packet::PacketRef;

impl<W: SwitchHalf> Port<W> {
    /// Returns `true` if the port is a FIFO port without switch half and a packet of `bytes` neither
    /// meets the limit nor makes the queue longer than it was before: then the cursor may lag. The
    /// packets queued completely take the time until `free_at` on the link; in addition there are at
    /// most the packet in service and the new packet, each no larger than the largest so far.
    #[inline(always)]
    fn is_calm(&self, now: Time, bytes: u32) -> bool {
        self.free_at.since(now) < self.calm && bytes <= self.largest
    }

    /// Accepts a packet if the port is a FIFO port without switch half and has room for it: almost
    /// all packets of most runs. Otherwise returns `false`, and the packet must be
    /// [offered](Port::offer).
    #[inline(always)]
    pub(crate) fn accept<S: Schedule>(
        &mut self,
        now: Time,
        packet: PacketRef,
        bytes: u32,
        schedule: &mut S,
    ) -> bool {
        if !self.simple {
            return false;
        }
        if !self.is_calm(now, bytes) {
            self.settle(now);
            if self.queue_bytes + u64::from(bytes) > self.limit {
                return false;
            }
            self.note_occupancy(bytes);
        }
        self.tally.offered.add(bytes);
        self.append(now, packet, bytes, schedule);
        true
    }

    /// Adds an accepted packet to the ring.
    #[inline(always)]
    pub(super) fn append<S: Schedule>(
        &mut self,
        now: Time,
        packet: PacketRef,
        bytes: u32,
        schedule: &mut S,
    ) {
        let departs = now.max(self.free_at) + self.serialization_time(bytes);
        self.free_at = departs;
        self.queue_bytes += u64::from(bytes);
        self.tally.stays(departs.since(now), bytes);
        self.link.push(departs, packet, bytes, schedule);
    }

    /// Moves the cursor past every packet that has departed.
    #[inline(always)]
    pub(super) fn settle(&mut self, now: Time) {
        if self.free_at <= now {
            self.departed = self.link.len() as u32;
            self.queue_bytes = 0;
        } else {
            while let Some((departs, bytes)) = self.link.departure(self.departed as usize)
                && departs <= now
            {
                self.departed += 1;
                self.queue_bytes -= u64::from(bytes);
            }
        }
        if self.link.is_shared() {
            self.forget_handed_over();
        }
    }

    /// A packet is about to be accepted, which may be the largest, or make the queue the longest.
    #[inline(always)]
    pub(super) fn note_occupancy(&mut self, bytes: u32) {
        let queue_bytes = self.queue_bytes + u64::from(bytes);
        if queue_bytes > self.tally.max_queue_bytes || bytes > self.largest {
            self.note_largest(self.tally.max_queue_bytes.max(queue_bytes), bytes);
        }
    }

    /// Sets the largest occupancy so far, or records that a packet is the largest so far, and
    /// computes how long the port is calm.
    #[inline(never)]
    pub(super) fn note_largest(&mut self, queue_bytes: u64, bytes: u32) {
        self.tally.max_queue_bytes = queue_bytes;
        if self.kind != PortKind::Fifo {
            return;
        }
        self.largest = self.largest.max(bytes);
        let room = queue_bytes.saturating_sub(2 * u64::from(self.largest));
        // Of a shared link the cursor moves with every packet.
        let calm = room > 0 && !self.link.is_shared() && self.simple;
        // Rounded up: less than this is less than `room` bytes take.
        let time = self.rate.serialization_time(Bytes::new(room));
        self.calm = if calm { time } else { Span::ZERO };
    }
}
