//! State that the ports of a network share.

use alloc::boxed::Box;
use alloc::vec::Vec;

use apus_units::{ClassId, PortId};

use super::signals::Signals;
use crate::counters::{Counters, DropLog, DropReason};
use crate::packet::{PacketPool, PacketRef, Way};
use crate::pfc::Pfc;
use crate::port::SharedBuffer;
use crate::routing::RouteTable;

/// The state outside a port that its operations use.
pub(crate) struct Common<P> {
    pub(crate) pool: PacketPool<P>,
    pub(super) routes: RouteTable,
    pub(super) counters: Counters,
    pub(super) drops: DropLog,
    /// Shared buffer of each switch.
    pub(crate) shared: Vec<SharedBuffer>,
    pub(crate) signals: Signals<P>,
    /// Bytes that switches hold per ingress link, if they may pause ports.
    pub(super) pfc: Option<Box<Pfc>>,
    /// See [`Network::trim_packets`](crate::Network::trim_packets).
    pub(super) trim: Option<RemovePayload<P>>,
}

/// Removes the payload of a packet; the argument says whether the port leads to a host. Returns
/// `false`, without effect, if the packet has no payload.
pub type RemovePayload<P> = fn(&mut P, bool) -> bool;

impl<P> Common<P> {
    pub(super) fn new(shared: Vec<SharedBuffer>) -> Self {
        Self {
            pool: PacketPool::new(),
            routes: RouteTable::default(),
            counters: Counters::default(),
            drops: DropLog::default(),
            shared,
            signals: Signals::default(),
            pfc: None,
            trim: None,
        }
    }

    /// Drops a packet and counts the drop at `port`. That is the egress port that refuses or loses
    /// the packet, or the port by which it arrived at the switch where its TTL reaches 0.
    #[cold]
    pub(crate) fn discard(&mut self, port: PortId, packet: PacketRef, reason: DropReason) {
        self.counters.note_drop(reason);
        self.drops.note(port, reason);
        self.pool.take(packet);
    }

    /// Removes the payload of a packet, which becomes a header of `bytes` wire bytes in `class`.
    /// Returns `false`, without effect, if the packet is not longer than that or has no payload.
    pub(crate) fn trim(
        &mut self,
        packet: PacketRef,
        (class, bytes): (ClassId, u32),
        last_hop: bool,
    ) -> bool {
        let Some(remove) = self.trim else { return false };
        let (fields, payload) = self.pool.for_trim(packet);
        if fields.wire_bytes <= bytes || !remove(payload, last_hop) {
            return false;
        }
        (fields.wire_bytes, fields.class) = (bytes, class);
        self.counters.trimmed += 1;
        true
    }

    /// Counts a header that was dropped for lack of room.
    pub(crate) fn note_header_lost(&mut self) {
        self.counters.headers_lost += 1;
    }

    /// Returns the egress port over whose link a packet arrived at its current switch; `None` if the
    /// packet was made there or is in its source host.
    fn ingress(&self, packet: PacketRef) -> Option<PortId> {
        let fields = self.pool.fields(packet);
        let before = fields.hop.checked_sub(1).filter(|_| fields.way != Way::BACK)?;
        Some(self.routes.port(fields.route, before))
    }

    /// Counts a packet that arrived at a switch, if the switch has room for it.
    #[cold]
    pub(super) fn enter_switch(&mut self, packet: PacketRef) -> Result<(), DropReason> {
        let Some(ingress) = self.ingress(packet) else { return Ok(()) };
        let Some(pfc) = &mut self.pfc else { return Ok(()) };
        let fields = self.pool.fields(packet);
        if !pfc.admits(ingress, fields.class, fields.wire_bytes) {
            return Err(DropReason::Buffer);
        }
        pfc.enter(ingress, fields.class, fields.wire_bytes);
        Ok(())
    }

    /// Removes a packet from the count of the switch that it leaves.
    pub(crate) fn leave_switch(&mut self, packet: PacketRef) {
        if self.pfc.is_none() {
            return;
        }
        let Some(ingress) = self.ingress(packet) else { return };
        if let Some(pfc) = &mut self.pfc {
            let fields = self.pool.fields(packet);
            pfc.leave(ingress, fields.class, fields.wire_bytes);
        }
    }
}
