//! Calls a switch half for a packet that joins a queue, and applies its verdict.

use alloc::vec::Vec;

use apus_cc::{Ecn, PortView, Signal, SwitchHalf, Verdict};
use apus_units::Bytes;

use crate::counters::DropReason;
use crate::packet::{Fields, PacketRef};

/// Reports to a half that a packet found no room.
#[cold]
pub(super) fn on_refused<W: SwitchHalf>(half: &mut W, bytes: u32) -> DropReason {
    half.on_refused(Bytes::new(u64::from(bytes)));
    DropReason::Buffer
}

/// Passes a packet that has room in the queue to a half, which may change it, drop it or signal its
/// source. Returns whether the half marked the packet (ECN), or the reason of the drop.
pub(super) fn on_enqueue<W: SwitchHalf>(
    half: &mut W,
    packet: PacketRef,
    fields: &mut Fields,
    view: &PortView<'_>,
    signals: &mut Vec<(PacketRef, Signal)>,
) -> Result<bool, DropReason> {
    let before = fields.congestion.ecn;
    let size = Bytes::new(u64::from(fields.wire_bytes));
    match half.on_enqueue(&mut fields.congestion, size, view) {
        Verdict::Drop => return Err(DropReason::SwitchHalf),
        Verdict::Signal(signal) => signals.push((packet, signal)),
        Verdict::Forward => {}
    }
    Ok(fields.congestion.ecn == Ecn::Congested && before != Ecn::Congested)
}
