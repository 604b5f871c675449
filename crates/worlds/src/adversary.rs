//! Adversaries: outsiders, which replay, forge and flood, and insiders, which have a key and break the protocol.

use std::net::SocketAddr;

use apus_units::{FlowId, OpId, PacketNumber, Span};
use apus_wire::{
    Ack, Body, Control, Header, RegionKey, Reject, RejectReason, Segment, SegmentKind,
};

use crate::fault::Trouble;
use crate::network::Flight;
use crate::world::{Event, World};

/// Maximum number of actions per fault.
const MAX_ACTS: u32 = 300;

/// Packet kinds that sessions use themselves (`apus_udp::session`). Outsiders imitate them.
const OWN_KINDS: [u8; 7] = [0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46];

impl World<'_> {
    /// Performs one action of a fault's adversary and schedules the next one.
    pub(crate) fn act(&mut self, number: usize) {
        if !self.active[number] || self.acts[number] >= MAX_ACTS {
            return;
        }
        self.acts[number] += 1;
        let pause = match self.plan.faults[number].what {
            Trouble::Forge(every) => {
                self.forge();
                every
            }
            Trouble::Flood(host, datagrams) => {
                (0..datagrams).for_each(|_| self.flood(host));
                Span::from_ms(20)
            }
            Trouble::Insider(from, to) => {
                self.betray(from, to);
                self.random.span(Span::from_us(20), Span::from_ms(10))
            }
            _ => return,
        };
        self.push(self.now + pause, Event::Act(number));
    }

    /// Sends a datagram with the address of a host: a recorded datagram, a modified one, or one with the end
    /// of another datagram.
    fn forge(&mut self) {
        if self.captured.is_empty() {
            return;
        }
        let count = self.captured.len();
        let mut flight = self.captured[self.random.index(count)].clone();
        let other = self.captured[self.random.index(count)].clone();
        match self.random.range(0, 5) {
            0 => self.corrupt(&mut flight.bytes),
            1 => {
                let length = self.random.index(flight.bytes.len().max(1));
                flight.bytes.truncate(length);
            }
            2 => {
                let end = flight.bytes.len().min(other.bytes.len()).min(8);
                let (to, from) = (flight.bytes.len() - end, other.bytes.len() - end);
                flight.bytes[to..].copy_from_slice(&other.bytes[from..]);
            }
            // Unmodified, but to another host or from another host.
            3 => flight.to = other.to,
            4 => flight.from = other.from,
            // A claim that the session of a recorded packet is unknown.
            _ => {
                let numbers = flight.bytes.len().saturating_sub(8);
                let mut bytes = vec![0, 1, 0x45, u8::from(self.plan.sealed)];
                bytes.extend(flight.bytes.get(numbers..).unwrap_or_default());
                bytes.extend([0; 4]);
                std::mem::swap(&mut flight.from, &mut flight.to);
                flight.bytes = bytes;
            }
        }
        self.push(self.now + Span::from_us(5), Event::Arrive(flight));
    }

    /// Sends a handshake request, or a datagram that resembles one, from a random address.
    fn flood(&mut self, host: usize) {
        let bits = self.random.bits().to_be_bytes();
        let from: SocketAddr = ([192, 168, bits[0], bits[1]], 1024).into();
        let own =
            |flight: &&Flight| flight.bytes.get(2).is_some_and(|kind| OWN_KINDS.contains(kind));
        let recorded: Vec<&Flight> = self.captured.iter().filter(own).collect();
        let bytes = if recorded.is_empty() || self.random.chance(300) {
            let mut bytes = vec![0, 1, self.random.pick(&OWN_KINDS), 1];
            let length = self.random.range(0, 100);
            bytes.extend((0..length).map(|_| self.random.bits() as u8));
            bytes
        } else {
            let place = self.random.index(recorded.len());
            recorded[place].bytes.clone()
        };
        let to = self.machines[host].address;
        self.push(self.now, Event::Arrive(Flight { from, to, tos: 0, ttl: 60, bytes }));
    }

    /// Sends a packet with random content from an insider on its connection to a host.
    fn betray(&mut self, from: usize, to: usize) {
        let Some(connection) = self.connection(from, to) else { return self.wake_commanded(from) };
        let header = self.any_header();
        let length = header.payload_len();
        let payload: Vec<u8> = (0..length).map(|_| self.random.bits() as u8).collect();
        let machine = &mut self.machines[from];
        let source = machine.source();
        let address = machine.address;
        let Some(up) = &mut machine.host else { return };
        let Some((_, bytes)) = up.forge(&connection, &header, &payload) else { return };
        // The connections that the insider accepted lead to the address of its peer.
        let peer = connection.peer();
        let from_address = if peer == self.machines[to].address { source } else { address };
        let flight = Flight { from: from_address, to: peer, tos: 0, ttl: 60, bytes };
        self.send(from, flight);
    }

    /// Returns a number that is small, close to a power of two, or arbitrary.
    fn any_number(&mut self) -> u64 {
        match self.random.range(0, 4) {
            0 | 1 => self.random.range(0, 40),
            2 => self.random.range(0, 3000),
            3 => (1 << self.random.range(0, 63)) - self.random.range(0, 1),
            _ => self.random.bits(),
        }
    }

    fn any_header(&mut self) -> Header {
        let flow = FlowId::new(self.random.range(0, 9) as u32);
        let seq = PacketNumber::new(self.any_number());
        let body = match self.random.range(0, 9) {
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

    fn any_segment(&mut self) -> Segment {
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
}
