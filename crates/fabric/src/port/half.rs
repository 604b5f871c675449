//! Calls of switch halves for packets that join a port or are about to leave it.

use apus_cc::{Ecn, PortView, Signal, SwitchHalf, Verdict};
use apus_units::{Bytes, ClassId, Time};

use super::Port;
use super::class::Waiting;
use crate::counters::DropReason;
use crate::network::Common;
use crate::packet::PacketRef;

impl<W: SwitchHalf> Port<W> {
    /// Shows a packet for which there is room to the switch half of its class, and applies the
    /// verdict: the half may change the packet, drop it or signal its source.
    pub(super) fn show_joining<P>(
        &mut self,
        now: Time,
        packet: PacketRef,
        class: usize,
        common: &mut Common<P>,
    ) -> Result<(), DropReason> {
        if self.classes[class].algorithm.is_plain() {
            return Ok(());
        }
        let fields = common.pool.fields_mut(packet);
        let (before, bytes) = (fields.congestion.ecn, fields.wire_bytes);
        let size = Bytes::new(u64::from(bytes));
        let verdict = self.show(now, class, (bytes, 0), |half, view| {
            half.on_enqueue(&mut fields.congestion, size, view)
        });
        if verdict == Verdict::Drop {
            return Err(DropReason::SwitchHalf);
        }
        self.note_mark(before, fields.congestion.ecn);
        note_signal(verdict, packet, &mut common.signals.due);
        Ok(())
    }

    /// Shows a packet that is about to leave to the switch half of its class.
    pub(super) fn show_leaving<P>(
        &mut self,
        now: Time,
        class: usize,
        Waiting { packet, bytes }: Waiting,
        common: &mut Common<P>,
    ) {
        let (fields, telemetry) = common.pool.for_switch(packet);
        let before = fields.congestion.ecn;
        let size = Bytes::new(u64::from(bytes));
        let verdict = self.show(now, class, (0, bytes), |half, view| {
            half.on_dequeue(&mut fields.congestion, telemetry, size, view)
        });
        self.note_mark(before, fields.congestion.ecn);
        note_signal(verdict, packet, &mut common.signals.due);
    }

    /// Calls the switch half of a class with a view of the port. The view excludes the last
    /// `joining` bytes offered and the `leaving` bytes.
    fn show<R>(
        &mut self,
        now: Time,
        class: usize,
        (joining, leaving): (u32, u32),
        call: impl FnOnce(&mut W, &PortView<'_>) -> R,
    ) -> R {
        let leaving = u64::from(leaving);
        let class_bytes = self.bytes_of(class) - leaving;
        let class_waiting = class_bytes - self.served_bytes(class);
        let sent = self.sent_bytes(joining);
        for number in 0..self.views.len() {
            self.views[number].bytes = Bytes::new(self.bytes_of(number));
        }
        let view = PortView {
            now,
            link_rate: self.rate,
            // A port has at most 256 classes (`PortConfig::check`).
            class: ClassId::new(class as u8),
            class_bytes: Bytes::new(class_bytes),
            queue_bytes: Bytes::new(self.queue_bytes - leaving),
            class_waiting: Bytes::new(class_waiting),
            sent,
            classes: &self.views,
        };
        call(&mut self.classes[class].algorithm, &view)
    }

    /// Counts a packet that the switch half marked.
    fn note_mark(&mut self, before: Ecn, after: Ecn) {
        self.tally.marked += u64::from(after == Ecn::Congested && before != Ecn::Congested);
    }
}

/// Stores a signal that a switch half sends to the source of a packet.
fn note_signal(
    verdict: Verdict,
    packet: PacketRef,
    due: &mut alloc::vec::Vec<(PacketRef, Signal)>,
) {
    if let Verdict::Signal(signal) = verdict {
        due.push((packet, signal));
    }
}
