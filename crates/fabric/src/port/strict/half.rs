//! The view of a port of strict priorities for switch halves.

use alloc::boxed::Box;
use alloc::vec::Vec;

use apus_cc::{ClassView, PortView, Signal, SwitchHalf};
use apus_units::{Bytes, ClassId, Time};

use super::StrictPort;
use crate::config::ClassConfig;
use crate::counters::DropReason;
use crate::packet::{Fields, PacketRef};
use crate::port::half;

/// Returns the views of empty classes.
pub(super) fn views<W>(classes: &[ClassConfig<W>]) -> Box<[ClassView]> {
    let view = |class: &ClassConfig<W>| ClassView {
        bytes: Bytes::ZERO,
        weight: class.weight,
        priority: class.priority,
    };
    classes.iter().map(view).collect()
}

impl<W: SwitchHalf> StrictPort<W> {
    /// Shows the half of its class a packet that was admitted.
    pub(super) fn show(
        &mut self,
        now: Time,
        packet: PacketRef,
        fields: &mut Fields,
        signals: &mut Vec<(PacketRef, Signal)>,
    ) -> Result<(), DropReason> {
        let (number, place) = self.class_of(fields.class);
        if self.classes[place].algorithm.is_plain() {
            return Ok(());
        }
        for (view, &place) in self.views.iter_mut().zip(&self.places) {
            view.bytes = Bytes::new(self.classes[usize::from(place)].bytes);
        }
        let bytes = fields.wire_bytes;
        let came = |class: &super::StrictClass<W>| class.offered.bytes - class.dropped.bytes;
        // The packet itself was offered already.
        let sent = self.classes.iter().map(came).sum::<u64>() - u64::from(bytes) - self.queue_bytes;
        let class_bytes = self.classes[place].bytes;
        let serving = self.free_at > now && usize::from(self.in_service.place) == place;
        let served = if serving { u64::from(self.in_service.bytes) } else { 0 };
        let view = PortView {
            now,
            link_rate: self.rate,
            class: ClassId::new(number),
            class_bytes: Bytes::new(class_bytes),
            queue_bytes: Bytes::new(self.queue_bytes),
            class_waiting: Bytes::new(class_bytes - served),
            sent: Bytes::new(sent),
            classes: &self.views,
        };
        let class = &mut self.classes[place];
        let marked = half::on_enqueue(&mut class.algorithm, packet, fields, &view, signals)
            .inspect_err(|_| class.dropped.add(bytes))?;
        self.marked += u64::from(marked);
        Ok(())
    }
}
