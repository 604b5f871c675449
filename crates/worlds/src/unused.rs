//! Insiders that send what their connections do not use: packets and fields of other algorithms, and commands of
//! sessions that nobody expects.

use apus_udp::session::Extended;
use apus_units::PacketNumber;
use apus_wire::{
    Attached, Body, Control, Credit, CreditEcho, Extension, HOP_BYTES, Header, Hops, MAX_HOPS,
    MAX_OWN_BYTES, MAX_PADDING, Nack, Order, OwnFields, Received,
};

use crate::world::World;

/// Highest number of a command of the session layer.
const COMMANDS: u64 = 11;
/// Maximum number of random bytes of a command. deviation: no source; more than any command needs, and less than an MTU.
const CONTENT: u64 = 1200;

impl World<'_> {
    /// Sends a packet or a command from an insider that its connection to a host does not use.
    pub(crate) fn send_unused(&mut self, from: usize, to: usize) {
        let Some(connection) = self.connection(from, to) else { return self.wake_commanded(from) };
        if self.random.chance(300) {
            let (command, content) = self.any_command();
            let sent = self.send_forged(from, to, &connection, |up| {
                up.forge_command(&connection, command, &content)
            });
            self.counts.unused += u64::from(sent);
            return;
        }
        let header = self.unused_header(to, connection.flows());
        let payload = self.any_bytes(header.payload_len());
        let fields = self.any_bytes(MAX_HOPS * HOP_BYTES);
        let extension = self.any_extension(&header, &fields);
        let sent = self.send_forged(from, to, &connection, |up| {
            up.forge(&connection, Extended { header: &header, extension }, &payload)
        });
        self.counts.unused += u64::from(sent);
    }

    fn any_bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.random.bits() as u8).collect()
    }

    /// Returns a command of the session layer, and content that it may have. Commands that end the session are rare,
    /// so that the others reach it.
    fn any_command(&mut self) -> (u8, Vec<u8>) {
        let command = match self.random.range(1, COMMANDS) as u8 {
            3 if self.random.chance(900) => 4,
            command => command,
        };
        let length = match command {
            4 | 8 => self.random.range(9, CONTENT),
            5 => 2,
            9 | 10 => 9,
            11 => 3,
            _ => 0,
        };
        // Content of another length is malformed.
        let length = if self.random.chance(50) { self.random.range(0, CONTENT) } else { length };
        let mut content = self.any_bytes(length as usize);
        // Numbers of ports are small.
        if let Some(port) = content.first_mut().filter(|_| command >= 8) {
            *port %= 9;
        }
        (command, content)
    }

    /// Returns a header with a body, or with fields, that belong to algorithms and path policies. Half of the packets
    /// have the next numbers of the victim's flows.
    fn unused_header(&mut self, victim: usize, flows: usize) -> Header {
        let mut header = self.any_header(victim, flows);
        let random = self.any_number();
        header.body = match (header.body, self.random.range(0, 9)) {
            (Body::Data(mut segment), 0..6) => {
                segment.attached = Some(match self.random.chance(500) {
                    true => Attached::Credit(CreditEcho {
                        number: random as u32,
                        sent_at_ns: self.random.bits() as u32,
                    }),
                    false => Attached::Order(Order {
                        awaited_behind: random as u16,
                        ack_now: self.random.chance(500),
                    }),
                });
                Body::Data(segment)
            }
            (Body::Ack(mut ack), 0..6) => {
                ack.missing = Some(random as u16);
                ack.echo_marked = self.random.chance(500);
                Body::Ack(ack)
            }
            (_, 0 | 1) => Body::Control(Control::Grant { total: random as u32 }),
            (_, 2 | 3) => Body::Control(Control::Credit(self.any_credit())),
            (_, 4) => Body::Control(Control::CreditRequest { packets: random as u32 }),
            (_, 5) => Body::Control(Control::CreditStop),
            (_, 6) => Body::Control(Control::Probe { number: random as u32 }),
            (_, 7) => Body::Control(Control::ProbeAnswer { number: random as u32 }),
            (_, 8) => Body::Control(Control::Notification),
            _ => Body::Nack(Nack {
                packet: PacketNumber::new(random),
                last_hop: self.random.chance(500),
                marked: self.random.chance(500),
            }),
        };
        header
    }

    fn any_credit(&mut self) -> Credit {
        let received = self.random.chance(700).then(|| {
            let largest = self.any_number();
            // Bits of packets before the first one would be malformed.
            let bits = u128::from(self.random.bits()) << 64 | u128::from(self.random.bits());
            let known = largest.min(127) as u32;
            Received {
                largest: PacketNumber::new(largest),
                bitmap: bits & (u128::MAX >> (127 - known)) | 1,
            }
        });
        Credit {
            number: self.any_number() as u32,
            sent_at_ns: self.random.bits() as u32,
            received,
            padding: self.random.range(0, u64::from(MAX_PADDING)) as u8,
        }
    }

    /// Returns fields of an algorithm, or none; `bytes` are their content.
    fn any_extension<'b>(&mut self, header: &Header, bytes: &'b [u8]) -> Extension<'b> {
        let is_echo = matches!(header.body, Body::Ack(_));
        let hops = self.random.range(0, MAX_HOPS as u64) as usize;
        let (writable, authenticated) = bytes.split_at(MAX_OWN_BYTES);
        match self.random.range(0, 2) {
            0 => Extension::None,
            1 if is_echo => Extension::TelemetryEcho(Hops::noted(0, &bytes[..hops * HOP_BYTES])),
            1 => Extension::Telemetry(Hops::noted(0, &bytes[..hops * HOP_BYTES])),
            _ => {
                let length = |draw: &mut Self| draw.random.range(0, MAX_OWN_BYTES as u64) as usize;
                Extension::Own(OwnFields {
                    id: self.random.range(1, 125) as u8,
                    is_echo,
                    writable: if is_echo { &[] } else { &writable[..length(self)] },
                    authenticated: &authenticated[..length(self)],
                })
            }
        }
    }
}
