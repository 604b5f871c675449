//! Insiders: hosts that have a valid key, know regions of their peers, and break the protocol.

use apus_udp::Connection;
use apus_udp::virtual_host::VirtualHost;
use apus_units::{FlowId, OpId, PacketNumber, Span};
use apus_wire::{
    Ack, Body, Control, Header, RegionKey, Reject, RejectReason, Segment, SegmentKind,
};

use crate::content::{OWN_BYTES, SECRET_BYTES};
use crate::network::Flight;
use crate::plan::PATTERN_BYTES;
use crate::world::World;

impl World<'_> {
    /// Sends a packet with random content from an insider on its connection to a host.
    pub(crate) fn betray(&mut self, from: usize, to: usize) {
        let Some(connection) = self.connection(from, to) else { return self.wake_commanded(from) };
        let header = self.any_header(to, connection.flows());
        let length = header.payload_len();
        let payload = self.any_bytes(length);
        self.send_forged(from, to, &connection, |up| up.forge(&connection, &header, &payload));
    }

    /// Sends a datagram that an insider seals for its connection to a host. Returns `false` if it cannot be sealed.
    pub(crate) fn send_forged(
        &mut self,
        from: usize,
        to: usize,
        connection: &Connection,
        seal: impl FnOnce(&mut VirtualHost) -> Option<(usize, Vec<u8>)>,
    ) -> bool {
        let machine = &mut self.machines[from];
        let source = machine.source();
        let address = machine.address;
        let Some((_, bytes)) = machine.host.as_mut().and_then(seal) else { return false };
        // The connections that the insider accepted lead to the address of its peer.
        let peer = connection.peer();
        let from_address = if peer == self.machines[to].address { source } else { address };
        let flight = Flight { from: from_address, to: peer, tos: 0, ttl: 60, bytes };
        self.send(from, flight);
        true
    }

    /// Returns a number that is small, close to a power of two, or arbitrary.
    pub(crate) fn any_number(&mut self) -> u64 {
        match self.random.range(0, 4) {
            0 | 1 => self.random.range(0, 40),
            2 => self.random.range(0, 3000),
            3 => (1 << self.random.range(0, 63)) - self.random.range(0, 1),
            _ => self.random.bits(),
        }
    }

    /// Returns a header for a victim. Half of the data packets are of the victim's flows and name its regions.
    pub(crate) fn any_header(&mut self, victim: usize, flows: usize) -> Header {
        let flow = FlowId::new(self.random.range(0, 9) as u32);
        let seq = PacketNumber::new(self.any_number());
        let body = match self.random.range(0, 9) {
            0..6 if self.random.chance(500) => {
                if let Some(segment) = self.aimed_segment(victim) {
                    // Most of these packets are new to the victim.
                    let flow = FlowId::new(self.random.index(flows) as u32);
                    let seq = PacketNumber::new(self.random.range(0, 200));
                    return Header { flow, seq, body: Body::Data(segment) };
                }
                Body::Data(self.any_segment())
            }
            0..6 => Body::Data(self.any_segment()),
            6 | 7 => Body::Ack(Ack {
                largest: PacketNumber::new(self.any_number()),
                bitmap: u128::from(self.random.bits()) << 64 | u128::from(self.random.bits()) | 1,
                echo: PacketNumber::new(self.any_number()),
                remote_queuing: Span::from_ns(self.random.range(0, u64::from(u32::MAX))),
                hops: self.random.bits() as u8,
                marked: self.random.bits() as u32,
                receiver_level: self.random.range(0, 31) as u8,
                echo_marked: false,
                missing: None,
            }),
            8 => {
                let reasons = [
                    RejectReason::NoRegion,
                    RejectReason::NotAllowed,
                    RejectReason::OutOfBounds,
                    RejectReason::TooLong,
                    RejectReason::Withdrawn,
                ];
                let op = OpId::new(self.any_number());
                Body::Reject(Reject { op, reason: self.random.pick(&reasons) })
            }
            _ => match self.random.range(0, 2) {
                0 => {
                    let packets = self.any_number() as u32;
                    Body::Control(Control::CreditRequest { packets })
                }
                1 => Body::Control(Control::CreditStop),
                _ => Body::Control(Control::Notification),
            },
        };
        Header { flow, seq, body }
    }

    pub(crate) fn any_segment(&mut self) -> Segment {
        let region = RegionKey::new(self.any_number());
        let address = self.any_number();
        let kind = match self.random.range(0, 6) {
            0 => SegmentKind::Write { region, address },
            1 | 2 => SegmentKind::Message,
            3 => SegmentKind::ReadRequest { region, address },
            4 => SegmentKind::ReadResponse,
            5 => SegmentKind::Cancel,
            _ => SegmentKind::FetchAdd { region, address: address & !7 },
        };
        let length = match kind {
            SegmentKind::ReadRequest { .. } | SegmentKind::Cancel => 0,
            SegmentKind::FetchAdd { .. } => 8,
            _ => self.random.range(0, 1200) as u32,
        };
        let atomic = matches!(kind, SegmentKind::FetchAdd { .. });
        let offset = if atomic || length == 0 { 0 } else { self.any_number() };
        let end = offset.saturating_add(u64::from(length));
        let op_length = match self.random.range(0, 2) {
            _ if atomic => 8,
            0 => end,
            _ => end.saturating_add(self.any_number()),
        };
        Segment {
            op: OpId::new(self.any_number()),
            kind,
            offset,
            length,
            op_length,
            attached: None,
        }
    }

    /// Returns a region key of a victim that the insider may know, or one with a wrong secret, and the length
    /// of the region.
    fn aim(&mut self, victim: usize) -> Option<(RegionKey, u64)> {
        let keys = self.machines[victim].keys?;
        let own = (keys.own?, OWN_BYTES);
        let slots = (keys.slots, self.ledger.slots_bytes(victim));
        let pattern = (keys.pattern, PATTERN_BYTES);
        // Without rights, every peer may write to the slots of others.
        let barred = self.plan.rights.is_some();
        Some(match self.random.range(0, 9) {
            0..4 => own,
            4 | 5 if barred => slots,
            4..8 => pattern,
            _ => {
                let all = [slots, pattern, own, (keys.secret, SECRET_BYTES as u64)];
                let (key, bytes) = self.random.pick(&all);
                // The lower 16 bits are the number of the region.
                (RegionKey::new(key.get() ^ 1 << self.random.range(16, 63)), bytes)
            }
        })
    }

    /// Returns a segment of an op on a region of the victim; `None` if the victim has not started yet.
    fn aimed_segment(&mut self, victim: usize) -> Option<Segment> {
        let (region, bytes) = self.aim(victim)?;
        let address = match self.random.range(0, 9) {
            0..6 => self.random.range(0, bytes),
            6 | 7 => bytes - self.random.range(0, bytes.min(2000)),
            8 => u64::MAX - self.random.range(0, 2000),
            _ => self.any_number(),
        };
        let word = address & !7;
        let kind = match self.random.range(0, 6) {
            0..3 => SegmentKind::Write { region, address },
            3 | 4 => SegmentKind::ReadRequest { region, address },
            5 => SegmentKind::FetchAdd { region, address: word },
            _ => SegmentKind::CompareAndSwap { region, address: word },
        };
        let of_read = matches!(kind, SegmentKind::ReadRequest { .. });
        let length = match kind.operand_bytes() {
            Some(operands) => operands,
            None if of_read => 0,
            None => self.random.range(0, 1200) as u32,
        };
        let is_part = kind.operand_bytes().is_none() && !of_read && self.random.chance(400);
        let offset = if is_part { self.random.range(0, 3000) } else { 0 };
        let op_length = match () {
            () if of_read => self.random.range(1, 4000),
            () if is_part => offset + u64::from(length) + self.random.range(0, 3000),
            () => u64::from(length),
        };
        let op = OpId::new(self.random.range(0, 60));
        Some(Segment { op, kind, offset, length, op_length, attached: None })
    }
}
