//! Insiders that know the flows of their connections: they send packets of every kind for them, with fields that their
//! algorithms do not use, and commands of sessions that nobody expects.

use apus_udp::session::Extended;
use apus_units::{FlowId, PacketNumber, Span};
use apus_wire::{
    Ack, Attached, Body, Control, Credit, CreditEcho, Extension, HOP_BYTES, Header, Hops, MAX_HOPS,
    MAX_OWN_BYTES, MAX_PADDING, MAX_RECEIVER_LEVEL, Nack, Order, OwnFields, Received, Segment,
    Trimmed,
};

use crate::world::World;

/// Commands of the session layer with content, by their numbers (`apus_udp::session::packet`).
mod command {
    pub(super) const CLOSE: u8 = 3;
    pub(super) const PROBE: u8 = 4;
    pub(super) const PROBE_ANSWER: u8 = 5;
    pub(super) const JOIN: u8 = 8;
    pub(super) const CHALLENGE: u8 = 9;
    pub(super) const PROVE: u8 = 10;
    pub(super) const JOINED: u8 = 11;
    pub(super) const ALL: u8 = 11;
}

/// Fields of algorithms: identifier, and their bytes that switches may write, that are authenticated, and of an
/// acknowledgement. Those of Bolt, RCP and RCCC (crate `algorithms`).
const LAYOUTS: [(u8, usize, usize, usize); 3] = [(1, 1, 5, 4), (2, 3, 2, 3), (3, 0, 4, 0)];

/// Number of codes of link rates (`apus_wire::link_rate_code`).
const LINK_RATES: u64 = 10;

/// Maximum number of random bytes of a command. deviation: no source; more than any command needs, and less than an MTU.
const CONTENT: u64 = 1200;

impl World<'_> {
    /// Sends a packet or a command from an insider on its connection to a host.
    pub(crate) fn betray_informed(&mut self, from: usize, to: usize) {
        let Some(connection) = self.connection(from, to) else { return self.wake_commanded(from) };
        if self.random.chance(300) {
            let (command, content) = self.any_command();
            let sent = self.send_forged(from, to, &connection, |up| {
                up.forge_command(&connection, command, &content)
            });
            self.counts.informed += u64::from(sent);
            return;
        }
        let host = self.machines[from].host.as_ref();
        let flows = host.map_or(Vec::new(), |up| up.flows_at_peer(&connection));
        let header = self.header_for(to, &flows);
        let payload = self.any_bytes(header.payload_len());
        let fields = self.any_bytes(MAX_HOPS * HOP_BYTES);
        let extension = self.any_extension(&header, fields);
        let sent = self.send_forged(from, to, &connection, |up| {
            let extension = extension.borrowed();
            up.forge(&connection, Extended { header: &header, extension }, &payload)
        });
        self.counts.informed += u64::from(sent);
    }

    pub(crate) fn any_bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.random.bits() as u8).collect()
    }

    /// Returns a command of the session layer, and content that it may have. Commands that end the session are rare,
    /// so that the others reach it. A proof has a random token, so it is rejected.
    fn any_command(&mut self) -> (u8, Vec<u8>) {
        let command = match self.random.range(1, command::ALL.into()) as u8 {
            command::CLOSE if self.random.chance(900) => command::PROBE,
            command => command,
        };
        let length = match command {
            command::PROBE => self.random.range(0, CONTENT),
            command::PROBE_ANSWER => 2,
            command::JOIN => self.random.range(9, CONTENT),
            command::CHALLENGE | command::PROVE => 9,
            command::JOINED => 3,
            _ => 0,
        };
        // Content of another length is malformed.
        let length = if self.random.chance(50) { self.random.range(0, CONTENT) } else { length };
        let mut content = self.any_bytes(length as usize);
        let port = match command {
            command::CHALLENGE if self.random.chance(800) => 0,
            _ => self.random.range(0, 8) as u8,
        };
        if let Some(first) = content.first_mut().filter(|_| command >= command::JOIN) {
            *first = port;
        }
        (command, content)
    }

    /// Returns a header for one of these flows of a victim, most often with a number that is new or was used lately.
    fn header_for(&mut self, victim: usize, flows: &[FlowId]) -> Header {
        let known = !flows.is_empty() && self.random.chance(900);
        let flow =
            if known { self.random.pick(flows) } else { FlowId::new(self.any_number() as u32) };
        let seq = self.small_number();
        let body = match self.random.range(0, 13) {
            0..4 => Body::Data(self.segment_with_attachment(victim, flows.len())),
            4..6 => Body::Ack(self.any_ack()),
            6 => Body::Control(Control::Grant { total: self.any_number() as u32 }),
            7 => Body::Control(Control::Credit(self.any_credit())),
            8 => Body::Control(Control::CreditRequest { packets: self.any_number() as u32 }),
            9 => Body::Control(Control::Probe { number: self.any_number() as u32 }),
            10 => Body::Control(Control::ProbeAnswer { number: self.any_number() as u32 }),
            11 => self
                .random
                .pick(&[Body::Control(Control::CreditStop), Body::Control(Control::Notification)]),
            12 => Body::Nack(Nack {
                packet: self.small_number(),
                last_hop: self.random.chance(500),
                marked: self.random.chance(500),
            }),
            _ => {
                let segment = self.segment_with_attachment(victim, flows.len());
                Body::Trimmed(Trimmed {
                    op: segment.op,
                    is_answer: self.random.chance(500),
                    offset: segment.offset,
                    length: segment.length.max(1),
                    last_hop: self.random.chance(500),
                })
            }
        };
        Header { flow, seq, body }
    }

    /// Returns a number of a packet: small, as those of short connections are, or any.
    fn small_number(&mut self) -> PacketNumber {
        let small = self.random.chance(800);
        PacketNumber::new(if small { self.random.range(0, 200) } else { self.any_number() })
    }

    fn segment_with_attachment(&mut self, victim: usize, flows: usize) -> Segment {
        let mut segment = match self.any_header(victim, flows.max(1)).body {
            Body::Data(segment) => segment,
            _ => self.any_segment(),
        };
        segment.attached = match self.random.range(0, 2) {
            0 => None,
            1 => Some(Attached::Credit(CreditEcho {
                number: self.any_number() as u32,
                sent_at_ns: self.random.bits() as u32,
            })),
            _ => Some(Attached::Order(Order {
                awaited_behind: self.any_number() as u16,
                ack_now: self.random.chance(500),
            })),
        };
        segment
    }

    /// Returns a largest packet number, and bits of packets that are not below 0.
    fn any_received(&mut self) -> (PacketNumber, u128) {
        let largest = self.small_number();
        let bits = u128::from(self.random.bits()) << 64 | u128::from(self.random.bits());
        let known = largest.get().min(127) as u32;
        (largest, bits & (u128::MAX >> (127 - known)) | 1)
    }

    fn any_ack(&mut self) -> Ack {
        let (largest, bitmap) = self.any_received();
        let behind = self.random.range(0, 40).min(largest.get());
        Ack {
            largest,
            bitmap,
            echo: PacketNumber::new(largest.get() - behind),
            remote_queuing: Span::from_ns(self.random.range(0, u64::from(u32::MAX))),
            hops: self.random.bits() as u8,
            marked: self.random.bits() as u32,
            receiver_level: self.random.range(0, u64::from(MAX_RECEIVER_LEVEL)) as u8,
            echo_marked: self.random.chance(500),
            missing: self.random.chance(500).then(|| self.any_number() as u16),
        }
    }

    fn any_credit(&mut self) -> Credit {
        let received = self.random.chance(700).then(|| {
            let (largest, bitmap) = self.any_received();
            Received { largest, bitmap }
        });
        Credit {
            number: self.any_number() as u32,
            sent_at_ns: self.random.bits() as u32,
            received,
            padding: self.random.range(0, u64::from(MAX_PADDING)) as u8,
        }
    }

    /// Returns fields of an algorithm for a packet that may have some, or none; `bytes` are their content.
    fn any_extension(&mut self, header: &Header, mut bytes: Vec<u8>) -> Fields {
        let is_echo = match header.body {
            Body::Data(_) => false,
            Body::Ack(_) => true,
            _ => return Fields::None,
        };
        match self.random.range(0, 2) {
            0 => Fields::None,
            1 => {
                bytes.truncate(self.random.range(0, MAX_HOPS as u64) as usize * HOP_BYTES);
                for hop in bytes.chunks_exact_mut(HOP_BYTES) {
                    hop[0] = self.random.range(0, LINK_RATES) as u8;
                }
                Fields::Telemetry { is_echo, path: self.random.bits() as u16, bytes }
            }
            _ => {
                let (id, writable, authenticated, echo) = self.random.pick(&LAYOUTS);
                let (mut writable, mut authenticated) =
                    if is_echo { (0, echo) } else { (writable, authenticated) };
                // Fields of another length are not those of the algorithm.
                if self.random.chance(200) {
                    let most = MAX_OWN_BYTES as u64;
                    writable = if is_echo { 0 } else { self.random.range(0, most) as usize };
                    authenticated = self.random.range(0, most) as usize;
                }
                bytes.truncate(writable + authenticated);
                Fields::Own { id, is_echo, writable, bytes }
            }
        }
    }
}

/// Fields of an algorithm, with their bytes.
enum Fields {
    None,
    Telemetry { is_echo: bool, path: u16, bytes: Vec<u8> },
    Own { id: u8, is_echo: bool, writable: usize, bytes: Vec<u8> },
}

impl Fields {
    fn borrowed(&self) -> Extension<'_> {
        match self {
            Self::None => Extension::None,
            Self::Telemetry { is_echo: true, path, bytes } => {
                Extension::TelemetryEcho(Hops::noted(*path, bytes))
            }
            Self::Telemetry { is_echo: false, path, bytes } => {
                Extension::Telemetry(Hops::noted(*path, bytes))
            }
            Self::Own { id, is_echo, writable, bytes } => {
                let (writable, authenticated) = bytes.split_at(*writable);
                Extension::Own(OwnFields { id: *id, is_echo: *is_echo, writable, authenticated })
            }
        }
    }
}
