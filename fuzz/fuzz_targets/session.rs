//! Two session tables and what an adversary can do between them: whatever arrives, in whatever order
//! and shape, no panic, bounded memory, and each packet delivered at most once and as it was sent.
#![no_main]

use std::collections::BTreeSet;
use std::net::SocketAddr;

use apus_udp::session::{
    Config, Event, KeyRing, MAX_HANDSHAKE_BYTES, Received, SessionId, Sessions, SharedKey,
};
use apus_units::{FlowId, OpId, PacketNumber, Span, Time};
use apus_wire::{Body, Header, Segment, SegmentKind};
use libfuzzer_sys::fuzz_target;

struct World {
    now: Time,
    tables: [Sessions; 2],
    sessions: [Option<SessionId>; 2],
    /// Datagrams sent: by whom, and their bytes. They stay: any may come any number of times.
    sent: Vec<(usize, Vec<u8>)>,
    next: u64,
    delivered: BTreeSet<(usize, SessionId, u64)>,
}

fn address(side: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 7000 + side as u16))
}

impl World {
    fn new(sealed: bool) -> Self {
        let ring = if sealed {
            KeyRing::new([SharedKey::new([3; 32])]).expect("one key")
        } else {
            KeyRing::insecure()
        };
        let config = Config { max_sessions: 8, max_pending: 4, ..Config::default() };
        let table = |n| Sessions::new(config, ring.clone(), [n; 32]).expect("sound settings");
        Self {
            now: Time::from_ps(0) + Span::from_secs(100),
            tables: [table(1), table(2)],
            sessions: [None; 2],
            sent: Vec::new(),
            next: 0,
            delivered: BTreeSet::new(),
        }
    }

    fn poll(&mut self) {
        for side in 0..2 {
            while let Some(event) = self.tables[side].poll_event() {
                match event {
                    Event::Incoming { session, .. } => {
                        let _ = self.tables[side].accept(self.now, session, b"hello");
                    }
                    Event::Connected { session, .. } => self.sessions[side] = Some(session),
                    Event::Ended { session, .. } => {
                        if self.sessions[side] == Some(session) {
                            self.sessions[side] = None;
                        }
                    }
                }
            }
            let mut out = [0; MAX_HANDSHAKE_BYTES];
            while let Some((_, length)) = self.tables[side].poll_transmit(self.now, &mut out) {
                if self.sent.len() < 256 {
                    self.sent.push((side, out[..length].to_vec()));
                }
            }
            assert!(self.tables[side].len() <= 8);
        }
    }

    fn send(&mut self, side: usize, length: usize) {
        let Some(session) = self.sessions[side] else { return };
        let header = Header {
            flow: FlowId::new(side as u32),
            seq: PacketNumber::new(self.next),
            body: Body::Data(Segment {
                op: OpId::new(0),
                kind: SegmentKind::Message,
                offset: 0,
                length: length as u32,
                op_length: length as u64,
                credit: None,
            }),
        };
        let mut buffer = vec![self.next as u8; header.encoded_len() + length + 24];
        if let Ok(length) = self.tables[side].seal(self.now, session, &header, &mut buffer) {
            buffer.truncate(length);
            self.sent.push((side, buffer));
            self.next += 1;
        }
    }

    fn deliver(&mut self, to: usize, from: SocketAddr, mut bytes: Vec<u8>) {
        if let Received::Packet { session, header, payload } =
            self.tables[to].receive(self.now, from, &mut bytes)
        {
            let seq = header.seq.get();
            assert!(payload.iter().all(|&byte| byte == seq as u8), "not as it was sent");
            assert!(self.delivered.insert((to, session, seq)), "delivered twice");
        }
    }
}

fuzz_target!(|script: &[u8]| {
    let Some((&mode, mut script)) = script.split_first() else { return };
    let mut world = World::new(mode & 1 == 0);
    while let Some((&[step, a, b, c], rest)) = script.split_first_chunk::<4>() {
        script = rest;
        let side = usize::from(step >> 7);
        match step & 7 {
            0 => {
                let key = world.tables[side].key_ids().next().expect("a key");
                let _ = world.tables[side].connect(world.now, address(1 - side), key, b"hi");
            }
            1 => world.send(side, usize::from(a)),
            // As it was sent, to whom it was meant or back.
            2 | 3 if !world.sent.is_empty() => {
                let (from, bytes) = world.sent[usize::from(a) % world.sent.len()].clone();
                let (to, claimed) = if b & 1 == 0 { (1 - from, from) } else { (from, 1 - from) };
                world.deliver(to, address(claimed), bytes);
            }
            // Damaged or cut; the congestion extension is anybody's. A checksum is no proof, so
            // only sealed packets are damaged on purpose.
            4 if !world.sent.is_empty() && mode & 1 == 0 => {
                let (from, mut bytes) = world.sent[usize::from(a) % world.sent.len()].clone();
                let at = usize::from(b) % bytes.len();
                if c == 0 {
                    bytes.truncate(at);
                } else if at > 0 {
                    bytes[at] ^= c;
                }
                world.deliver(1 - from, address(from), bytes);
            }
            5 => {
                let length = usize::from(a).min(script.len());
                let (bytes, rest) = script.split_at(length);
                script = rest;
                if mode & 1 == 0 {
                    world.deliver(side, address(usize::from(b & 1)), bytes.to_vec());
                }
            }
            6 => {
                world.now += Span::from_ms(u64::from(a) * u64::from(b));
                for table in &mut world.tables {
                    table.handle_timeout(world.now);
                }
            }
            7 => {
                if let Some(session) = world.sessions[side].take() {
                    world.tables[side].close(world.now, session);
                }
            }
            _ => {}
        }
        world.poll();
    }
});
