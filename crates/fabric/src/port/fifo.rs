//! A port with one class, which computes the departure of a packet when the packet arrives.
//!
//! Packets enter the link's ring when they are accepted. A cursor into the ring
//! ([`Port::departed`]) separates the packets on the link from those still in the port. If the
//! simulator keeps the packets on links, the ring contains only the departures of those still in
//! the port.

use apus_cc::SwitchHalf;
use apus_units::{Bytes, Span, Time};

use super::{InFlight, Port};
use crate::config::PortKind;
use crate::event::Schedule;

impl<W: SwitchHalf> Port<W> {
    /// Accepts a packet if the port is a FIFO port without switch half and has room for the packet:
    /// almost all packets of most runs. Otherwise returns `false`, and the packet must be
    /// [offered](Port::offer).
    #[inline(always)]
    pub(crate) fn accept<S: Schedule>(&mut self, packet: &InFlight, schedule: &mut S) -> bool {
        let bytes = packet.bytes;
        let wait = self.free_at.since(packet.arrives);
        // In a calm port the cursor need not be exact.
        if wait >= self.calm || bytes > self.largest {
            if !self.simple {
                return false;
            }
            self.settle(packet.arrives);
            if self.queue_bytes + u64::from(bytes) > self.limit {
                return false;
            }
            self.note_occupancy(bytes);
        }
        self.append(packet, wait, schedule);
        self.tally.offered.add(bytes);
        true
    }

    /// Adds an accepted packet, which waits for the link for this long, to the ring.
    #[inline(always)]
    pub(super) fn append<S: Schedule>(
        &mut self,
        &InFlight { arrives: now, packet, bytes }: &InFlight,
        wait: Span,
        schedule: &mut S,
    ) {
        if self.link.is_full() {
            self.settle(now);
        }
        let stay = wait + self.serialization_time(bytes);
        self.free_at = now + stay;
        self.queue_bytes += u64::from(bytes);
        self.tally.stays(stay, bytes);
        self.link.push(self.free_at, packet, (bytes, true), schedule);
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
        if self.link.flies() {
            self.link.forget(core::mem::take(&mut self.departed) as usize);
        }
    }

    /// Updates the maxima for a packet that is about to be accepted. It may be the largest so far,
    /// or make the queue the longest so far.
    #[inline(always)]
    pub(super) fn note_occupancy(&mut self, bytes: u32) {
        let queue_bytes = self.queue_bytes + u64::from(bytes);
        if queue_bytes > self.tally.max_queue_bytes || bytes > self.largest {
            self.note_largest(self.tally.max_queue_bytes.max(queue_bytes), bytes);
        }
    }

    /// Sets the largest occupancy so far, or records that a packet is the largest so far. Then
    /// computes the limit of the wait below which the port is calm.
    #[inline(never)]
    pub(super) fn note_largest(&mut self, queue_bytes: u64, bytes: u32) {
        self.tally.max_queue_bytes = queue_bytes;
        if self.kind != PortKind::Fifo {
            return;
        }
        self.largest = self.largest.max(bytes);
        // The packets that wait for the link need the time until `free_at`. In addition the port
        // holds at most the packet in service and the new packet, each no larger than the largest
        // so far.
        let largest = u64::from(self.largest);
        let calm = self.simple && queue_bytes >= largest;
        let room = queue_bytes.saturating_sub(2 * largest);
        // Rounded up, so that a shorter wait corresponds to fewer than `room` bytes. Without room,
        // the port is calm only while its link is idle.
        let time = self.rate.serialization_time(Bytes::new(room)).max(Span::from_ps(1));
        self.calm = if calm { time } else { Span::ZERO };
    }
}
