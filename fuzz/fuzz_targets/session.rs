//! Two session tables with an adversary between them. Whatever arrives, in any order and shape, there is no panic,
//! memory is bounded, and each packet is delivered at most once and exactly as it was sent. Keys are replaced while
//! sessions are open; a session that has ended delivers nothing.
#![no_main]

use std::collections::BTreeSet;
use std::net::SocketAddr;

use apus_udp::session::{
    Cipher, Config, Entry, EntryKey, Event, Extended, KeyError, KeyPair, KeyRing,
    MAX_HANDSHAKE_BYTES, Peer, Received, SessionId, Sessions, SharedKey,
};
use apus_units::{FlowId, OpId, PacketNumber, Span, Time};
use apus_wire::{
    Ack, Attached, Body, Control, Credit, CreditEcho, Extension, Header, MAX_OWN_BYTES, OwnFields,
    Received as Arrived, RegionKey, Reject, RejectReason, Segment, SegmentKind,
};
use libfuzzer_sys::fuzz_target;

/// Content that was sent with a packet number, for comparison with the received content.
struct Sent {
    header: Header,
    extension: Extension<'static>,
    payload: Vec<u8>,
}

/// Bytes from which extension fields are made.
static BYTES: [u8; 64 + MAX_OWN_BYTES] = {
    let mut bytes = [0; 64 + MAX_OWN_BYTES];
    let mut i = 0;
    while i < bytes.len() {
        bytes[i] = i as u8;
        i += 1;
    }
    bytes
};

/// Returns the algorithm fields of a packet that can have them, with any identifier and lengths.
fn fields(body: &Body, x: u64) -> Extension<'static> {
    let some = |shift: u32| {
        let length = (x >> shift) as usize % (MAX_OWN_BYTES + 1);
        &BYTES[(x >> (shift + 5)) as usize % 64..][..length]
    };
    let (id, writable, authenticated) = (1 + (x >> 1) as u8 % 125, some(9), some(20));
    match body {
        Body::Data(_) if x & 1 == 0 => {
            Extension::Own(OwnFields { id, is_echo: false, writable, authenticated })
        }
        Body::Ack(_) if x & 1 == 0 => {
            Extension::Own(OwnFields { id, is_echo: true, writable: &[], authenticated })
        }
        _ => Extension::None,
    }
}

/// Returns the part of the fields that switches do not write: all bytes except the writable ones, whose number is kept.
fn authentic(extension: Extension<'_>) -> (usize, Extension<'_>) {
    let authenticated = match extension {
        Extension::Own(own) => Extension::Own(OwnFields { writable: &[], ..own }),
        other => other,
    };
    (extension.writable_len(), authenticated)
}

struct World {
    now: Time,
    rings: [KeyRing; 2],
    tables: [Sessions; 2],
    configs: [Config; 2],
    sessions: [Option<SessionId>; 2],
    /// Number of starts of each process.
    starts: [u8; 2],
    /// Decision of each application about incoming connections: accept, refuse, or no answer.
    answers: [Answer; 2],
    /// All datagrams sent, each with its sender and bytes. They are kept, because any of them may arrive any number of
    /// times.
    datagrams: Vec<(usize, Vec<u8>)>,
    /// Sent content by packet number.
    sent: Vec<Sent>,
    /// Bytes of each datagram in [`World::datagrams`] that is a probe, by sender.
    probed: BTreeSet<(usize, usize)>,
    /// The same for requests to accept a port.
    joined: BTreeSet<(usize, u8, usize)>,
    hellos: BTreeSet<Vec<u8>>,
    delivered: BTreeSet<(usize, u8, SessionId, u64)>,
    /// Sessions that have ended, by side and start.
    ended: BTreeSet<(usize, u8, SessionId)>,
    /// Mode of [`World::new`].
    mode: u8,
}

#[derive(Clone, Copy)]
enum Answer {
    Accept,
    Refuse,
    Nothing,
}

/// Ports of each side.
const PORTS: u16 = 4;

const CONFIG: fn() -> Config = || Config { max_sessions: 8, max_pending: 4, ..Config::default() };

fn address(side: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 7000 + side as u16))
}

/// Returns the random seed of a process, which differs after each start.
fn seed(side: usize, starts: u8) -> [u8; 32] {
    let mut seed = [1 + side as u8; 32];
    seed[31] = starts;
    seed
}

/// Returns a header of every kind that a host sends, with the length of its payload.
fn body(kind: u8, x: u64, length: u32) -> Body {
    let (region, address) = (RegionKey::new(x), x >> 32);
    let received = Arrived { largest: PacketNumber::new(x | 1 << 20), bitmap: u128::from(x) | 1 };
    let segment = |kind, length: u32, credit: Option<CreditEcho>| {
        let op_length = u64::from(length) + (x & 0xffff);
        Body::Data(Segment {
            op: OpId::new(x),
            kind,
            offset: x & 0xff,
            length,
            op_length,
            attached: credit.map(Attached::Credit),
        })
    };
    let echo = CreditEcho { number: x as u32, sent_at_ns: !x as u32 };
    // An op in a single packet, with numbers near the packet's and far from it.
    let whole = |kind, credit: Option<CreditEcho>| {
        let op_length = u64::from(length);
        Body::Data(Segment {
            op: OpId::new(x >> 24),
            kind,
            offset: 0,
            length,
            op_length,
            attached: credit.map(Attached::Credit),
        })
    };
    let word = address & !7;
    // An atomic op, with numbers near the packet's and far from it.
    let operands = |kind, length| {
        let (op, op_length) = (OpId::new(x >> 24), u64::from(length));
        Body::Data(Segment { op, kind, offset: 0, length, op_length, attached: None })
    };
    match kind % 17 {
        0 => segment(SegmentKind::Write { region, address }, length, None),
        1 => segment(SegmentKind::Message, length, None),
        2 => segment(SegmentKind::Message, length, Some(echo)),
        3 => segment(SegmentKind::ReadRequest { region, address }, 0, None),
        4 => segment(SegmentKind::ReadResponse, length, None),
        5 => segment(SegmentKind::Cancel, 0, None),
        6 => Body::Ack(Ack {
            largest: received.largest,
            bitmap: received.bitmap,
            echo: PacketNumber::new(x & 0xff),
            remote_queuing: Span::from_ns(x & 0xffff_ffff),
            hops: x as u8,
            marked: x as u32,
            receiver_level: x as u8 % 32,
            echo_marked: false,
            missing: None,
        }),
        7 => Body::Reject(Reject { op: OpId::new(x), reason: RejectReason::OutOfBounds }),
        8 => Body::Control(Control::CreditRequest { packets: x as u32 }),
        9 => Body::Control(Control::Credit(Credit {
            number: x as u32,
            sent_at_ns: x as u32,
            received: Some(received).filter(|_| x & 1 == 0),
            padding: x as u8 % 17,
        })),
        10 => Body::Control(Control::CreditStop),
        11 => whole(SegmentKind::Write { region, address }, None),
        12 => whole(SegmentKind::Message, Some(echo)),
        13 => whole(SegmentKind::ReadResponse, None),
        14 => operands(SegmentKind::CompareAndSwap { region, address: word }, 16),
        15 => operands(SegmentKind::FetchAdd { region, address: word }, 8),
        _ => Body::Control(Control::Notification),
    }
}

/// Returns the ring of a side. With `keys` 0 it has the first shared key and, if `mode` says so, a key pair and the keys of
/// the peer. Bits of `keys`: 0 and 1 retire the first and the second shared key, 2 removes the first, 3 adds the second;
/// 4 removes the first key pair, 5 adds a second one and retires the first; 6 retires the first key of the peer, 7 removes
/// the keys of the peer.
fn ring(mode: u8, side: usize, keys: u8) -> Result<KeyRing, KeyError> {
    if mode & 1 != 0 {
        return Ok(KeyRing::insecure());
    }
    let (identified, unlisted) = (mode & 0x20 != 0, mode & 0x60 == 0x60);
    let bit = |number: u8| keys >> number & 1 == 1;
    let pair = |side: usize, version: u8| {
        KeyPair::new([20 + side as u8 + 10 * version; 32]).expect("not zeros")
    };
    let entry = |key, retired| Entry { key, retired };
    let mut entries = Vec::new();
    if bit(3) {
        entries.push(entry(EntryKey::Shared(SharedKey::new([4; 32])), bit(1)));
    }
    if !bit(2) {
        entries.push(entry(EntryKey::Shared(SharedKey::new([3; 32])), bit(0)));
    }
    if identified {
        if bit(5) {
            entries.push(entry(EntryKey::Own("new".to_owned(), pair(side, 1)), false));
        }
        if !bit(4) {
            entries.push(entry(EntryKey::Own(format!("side-{side}"), pair(side, 0)), bit(5)));
        }
        if !bit(7) && !(unlisted && side == 1) {
            let peer = pair(1 - side, 0).public();
            entries.push(entry(EntryKey::Peer(format!("side-{}", 1 - side), peer), bit(6)));
            let peer = pair(1 - side, 1).public();
            entries.push(entry(EntryKey::Peer("new-peer".to_owned(), peer), false));
        }
    }
    KeyRing::of(entries)
}

impl World {
    /// Bit 0 of `mode`: insecure; 1 and 2: the ciphers that the sides propose; 3 and 4: sides that accept AES-256-GCM
    /// only; 5: both sides have their own keys; 6: side 1 does not list side 0; 7: side 1 accepts unlisted peers.
    fn new(mode: u8) -> Self {
        let rings = [0, 1].map(|side| ring(mode, side, 0).expect("a sound ring"));
        let configs = [0, 1].map(|side| {
            let cipher = Cipher::ALL[usize::from(mode >> (1 + side) & 1)];
            let few = mode >> (3 + side) & 1 == 1;
            let accept_ciphers =
                if few { vec![Cipher::Aes256Gcm] } else { Cipher::available().collect() };
            let accept_unlisted = mode & 0x80 != 0;
            Config { cipher, accept_ciphers, accept_unlisted, ..CONFIG() }
        });
        let table = |side: usize| {
            let (config, ring) = (configs[side].clone(), rings[side].clone());
            Sessions::new(config, ring, seed(side, 0)).expect("sound settings")
        };
        Self {
            now: Time::from_ps(0) + Span::from_secs(100),
            tables: [table(0), table(1)],
            configs,
            rings,
            sessions: [None; 2],
            starts: [0; 2],
            answers: [Answer::Accept; 2],
            datagrams: Vec::new(),
            sent: Vec::new(),
            probed: BTreeSet::new(),
            joined: BTreeSet::new(),
            hellos: BTreeSet::from([b"answer".to_vec()]),
            delivered: BTreeSet::new(),
            ended: BTreeSet::new(),
            mode,
        }
    }

    /// Replaces the ring of a running process, and of its later starts.
    fn replace_keys(&mut self, side: usize, keys: u8) {
        let Ok(ring) = ring(self.mode, side, keys) else { return };
        self.tables[side].set_keys(self.now, ring.clone()).expect("the same mode");
        self.rings[side] = ring;
    }

    fn poll(&mut self) {
        for side in 0..2 {
            while let Some(event) = self.tables[side].poll_event() {
                match event {
                    Event::Incoming { session, hello, .. } => {
                        assert!(self.hellos.contains(&hello[..]), "words that nobody said");
                        match self.answers[side] {
                            Answer::Accept => {
                                let _ = self.tables[side].accept(self.now, session, b"answer");
                            }
                            Answer::Refuse if hello.len() % 2 == 0 => {
                                self.tables[side].refuse(session);
                            }
                            Answer::Refuse => {
                                let reason = String::from_utf8_lossy(&hello);
                                self.tables[side].refuse_because(session, &reason);
                            }
                            Answer::Nothing => {}
                        }
                    }
                    Event::Connected { session, hello } => {
                        assert!(self.hellos.contains(&hello[..]), "words that nobody said");
                        self.tables[side].use_ports(session, PORTS, PORTS);
                        self.sessions[side] = Some(session);
                    }
                    Event::Ended { session, .. } => {
                        self.ended.insert((side, self.starts[side], session));
                        if self.sessions[side] == Some(session) {
                            self.sessions[side] = None;
                        }
                    }
                    Event::Refused { session, .. } => {
                        if self.sessions[side] == Some(session) {
                            self.sessions[side] = None;
                        }
                    }
                    Event::PeerDraining { session } => self.tables[side].announce_idle(session),
                    Event::PeerIdle { .. } | Event::KeyChanged { .. } => {}
                }
            }
            let mut out = [0; MAX_HANDSHAKE_BYTES];
            while let Some((_, length)) = self.tables[side].poll_transmit(self.now, &mut out) {
                self.keep(side, out[..length].to_vec());
            }
            assert!(self.tables[side].len() <= 8);
        }
    }

    fn keep(&mut self, side: usize, bytes: Vec<u8>) {
        if self.datagrams.len() < 256 {
            self.datagrams.push((side, bytes));
        }
    }

    fn connect(&mut self, side: usize, hello: &[u8]) {
        let Ok(key) = self.rings[side].towards(None) else { return };
        if self.tables[side].connect(self.now, address(1 - side), key, hello).is_ok() {
            self.hellos.insert(hello.to_vec());
        }
    }

    fn send(&mut self, side: usize, kind: u8, x: u64, length: u32) {
        let Some(session) = self.sessions[side] else { return };
        let number = self.sent.len();
        let body = body(kind, x, length);
        let header =
            Header { flow: FlowId::new(x as u32), seq: PacketNumber::new(number as u64), body };
        let payload = vec![number as u8; header.payload_len()];
        let extension = fields(&body, x);
        let packet = Extended { header: &header, extension };
        let overhead = self.tables[side].overhead() + extension.encoded_len();
        let mut buffer = vec![0; header.encoded_len() + payload.len() + overhead];
        let table = &mut self.tables[side];
        if let Ok(length) = table.seal(self.now, session, packet, &payload, &mut buffer) {
            buffer.truncate(length);
            self.keep(side, buffer);
            self.sent.push(Sent { header, extension, payload });
        }
    }

    fn probe(&mut self, side: usize, length: usize) {
        let Some(session) = self.sessions[side] else { return };
        let mut packet = vec![0xee; length];
        if self.tables[side].seal_probe(self.now, session, &mut packet) {
            self.probed.insert((side, length));
            self.keep(side, packet);
        }
    }

    fn join(&mut self, side: usize, number: u8, length: usize) {
        let Some(session) = self.sessions[side] else { return };
        let mut packet = vec![0xee; length];
        if self.tables[side].seal_join(self.now, session, number, &mut packet) {
            self.joined.insert((side, number, length));
            self.keep(side, packet);
        }
    }

    /// Kills a process and starts it again.
    fn restart(&mut self, side: usize) {
        self.starts[side] = self.starts[side].wrapping_add(1);
        let (config, ring) = (self.configs[side].clone(), self.rings[side].clone());
        let seed = seed(side, self.starts[side]);
        self.tables[side] = Sessions::new(config, ring, seed).expect("sound settings");
        self.sessions[side] = None;
    }

    fn deliver(&mut self, to: usize, from: impl Into<Peer>, mut bytes: Vec<u8>) {
        match self.tables[to].receive(self.now, from, &mut bytes) {
            Received::Packet { session, path, header, extension, payload } => {
                assert!(u16::from(path) < PORTS, "a port that nobody has");
                let number = header.seq.get();
                let sent = self.sent.get(number as usize).expect("somebody sent it");
                assert!(sent.header == header && sent.payload == payload, "not as it was sent");
                assert_eq!(
                    authentic(sent.extension),
                    authentic(extension),
                    "not a switch's to write"
                );
                let ended = self.ended.contains(&(to, self.starts[to], session));
                assert!(!ended, "delivered after the end of the session");
                let first = self.delivered.insert((to, self.starts[to], session, number));
                assert!(first, "delivered twice");
            }
            Received::Probe { session, length, .. } => {
                assert!(self.probed.contains(&(1 - to, length)), "a probe of nobody's");
                let mut answer = [0; MAX_HANDSHAKE_BYTES];
                let table = &mut self.tables[to];
                if let Some(used) = table.seal_probe_answer(self.now, session, length, &mut answer)
                {
                    self.keep(to, answer[..used].to_vec());
                }
            }
            Received::ProbeAnswer { length, .. } => {
                assert!(self.probed.contains(&(to, length)), "an answer to no probe");
            }
            Received::Joined { number, length, .. } => {
                assert!(self.joined.contains(&(to, number, length)), "an answer to no request");
            }
            // A signal cannot be authenticated, and it changes nothing here.
            Received::Signal { header, .. } => assert!(matches!(header.body, Body::Signal(_))),
            Received::Own | Received::Dropped(_) => {}
        }
    }
}

fuzz_target!(|script: &[u8]| {
    let Some((&mode, mut script)) = script.split_first() else { return };
    let mut world = World::new(mode);
    while let Some((&[step, a, b, c], rest)) = script.split_first_chunk::<4>() {
        script = rest;
        let side = usize::from(step >> 7);
        let mut take = |length: u8| {
            let (bytes, rest) = script.split_at(usize::from(length).min(script.len()));
            script = rest;
            bytes
        };
        match step & 15 {
            0 => world.connect(side, b"hi"),
            1 => world.connect(side, take(a)),
            2 => {
                let bytes = take(8).iter().fold(0, |x, &byte| x << 8 | u64::from(byte));
                world.send(side, a, bytes, u32::from(b) << (c % 8));
            }
            3 => world.probe(side, usize::from(a) << (b % 6)),
            // Delivers a datagram unchanged, to its destination or back to its sender.
            4..=6 if !world.datagrams.is_empty() => {
                let at = usize::from(a) % world.datagrams.len();
                let (from, bytes) = world.datagrams[at].clone();
                let (to, claimed) = if b & 1 == 0 { (1 - from, from) } else { (from, 1 - from) };
                world.deliver(to, address(claimed), bytes);
            }
            // Damages or truncates a datagram. The bytes that switches write are not authenticated. A checksum is no
            // proof against an attacker, so only sealed packets are damaged.
            7 if !world.datagrams.is_empty() && mode & 1 == 0 => {
                let at = usize::from(a) % world.datagrams.len();
                let (from, mut bytes) = world.datagrams[at].clone();
                let at = usize::from(b) % bytes.len();
                if c == 0 {
                    bytes.truncate(at);
                } else {
                    bytes[at] ^= c;
                }
                world.deliver(1 - from, address(from), bytes);
            }
            8 => {
                let bytes = take(a).to_vec();
                if mode & 1 == 0 {
                    world.deliver(side, address(usize::from(b & 1)), bytes);
                }
            }
            9 => {
                world.now += Span::from_ms(u64::from(a) * u64::from(b));
                for table in &mut world.tables {
                    table.handle_timeout(world.now);
                }
            }
            10 => {
                if let Some(session) = world.sessions[side].take() {
                    world.tables[side].close(world.now, session);
                }
            }
            11 if step & 0x40 != 0 => world.replace_keys(side, a),
            11 => world.restart(side),
            12 => {
                world.answers[side] = match a % 3 {
                    0 => Answer::Accept,
                    1 => Answer::Refuse,
                    _ => Answer::Nothing,
                }
            }
            13 => world.join(side, a % 5, usize::from(b)),
            // Delivers a datagram unchanged, from and to further ports.
            14 if !world.datagrams.is_empty() => {
                let at = usize::from(a) % world.datagrams.len();
                let (from, bytes) = world.datagrams[at].clone();
                let mut claimed = address(from);
                claimed.set_port(7100 + u16::from(b % 4));
                let peer = if b & 4 == 0 { claimed } else { address(from) };
                world.deliver(1 - from, Peer { port: c % 5, ..Peer::from(peer) }, bytes);
            }
            // Delivers the latest datagram, which is the most frequent event.
            _ => {
                if let Some((from, bytes)) = world.datagrams.last().cloned() {
                    world.deliver(1 - from, address(from), bytes);
                }
            }
        }
        world.poll();
    }
});
