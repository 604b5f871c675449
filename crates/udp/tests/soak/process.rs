//! One process of the soak test: its sessions, its endpoint and its application.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use apus_algorithms::registry::{AlgorithmConfig, build};
use apus_cc::FlowInfo;
use apus_transport::{Arrival, Endpoint, EndpointConfig, Handled, Op, OpKind, Outcome};
use apus_udp::session::{
    Cipher, Config, Event, KeyRing, MAX_HANDSHAKE_BYTES, Received, SessionId, Sessions,
};
use apus_units::{FlowId, Time};
use apus_wire::{Body, Header, RegionKey, Segment, SegmentKind};

/// Bytes that are written to. The same number of bytes follows, from which reads are made.
pub const MEMORY_BYTES: usize = SLOTS * 4096;
/// Maximum number of outstanding ops of one side. Each has its own slot.
pub const SLOTS: usize = 128;

const REGION: RegionKey = RegionKey::new(7);

/// Returns byte `i` of the content that belongs to `seed`.
pub fn byte_of(seed: u64, i: u64) -> u8 {
    if i < 8 {
        return seed.to_be_bytes()[i as usize];
    }
    (seed.wrapping_mul(31) ^ i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// State that outlives a process.
pub struct Shared {
    /// The registered region: written in its first half, read in its second.
    pub memory: Vec<u8>,
    /// Slots of the peer's memory that no op uses.
    pub free: Vec<usize>,
}

impl Shared {
    pub fn new() -> Self {
        let mut memory = vec![0; 2 * MEMORY_BYTES];
        for (i, byte) in memory[MEMORY_BYTES..].iter_mut().enumerate() {
            *byte = byte_of(99, i as u64);
        }
        Self { memory, free: (0..SLOTS).collect() }
    }
}

/// An outstanding or ended op.
#[derive(Clone, Debug)]
pub struct Ended {
    pub user: u64,
    pub kind: u64,
    pub slot: usize,
    pub length: u64,
    /// The bytes that a read has fetched.
    pub read: Vec<u8>,
    pub outcome: Outcome,
}

/// The session in use and its flow.
struct Connection {
    session: SessionId,
    flow: FlowId,
    /// Messages that have begun to arrive, by op.
    inbound: BTreeMap<u64, Vec<u8>>,
}

pub struct Process {
    side: usize,
    sessions: Sessions,
    endpoint: Endpoint<AlgorithmConfig>,
    algorithm: AlgorithmConfig,
    connection: Option<Connection>,
    /// A connection that was accepted, and is not confirmed by the peer yet.
    offered: Option<Connection>,
    /// The flow number that the next `open` returns, which the initiator tells its peer.
    next_flow: u32,
    under_way: BTreeMap<u64, Ended>,
    pub ended: Vec<Ended>,
    /// Messages delivered to this application, by number.
    pub messages: Vec<u64>,
    buffer: Vec<u8>,
}

fn address(side: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, side as u8 + 1], 48_700))
}

impl Process {
    pub fn new(side: usize, ring: &KeyRing, cipher: Cipher, start: u64) -> Self {
        let mut seed = [side as u8; 32];
        seed[..8].copy_from_slice(&start.to_be_bytes());
        let sessions = Config { cipher, ..Config::default() };
        let config = EndpointConfig { max_payload: 1000, ..EndpointConfig::default() };
        Self {
            side,
            sessions: Sessions::new(sessions, ring.clone(), seed).expect("sound settings"),
            endpoint: Endpoint::new(config),
            algorithm: build("swift", None, &[]).expect("swift"),
            connection: None,
            offered: None,
            next_flow: 0,
            under_way: BTreeMap::new(),
            ended: Vec::new(),
            messages: Vec::new(),
            buffer: vec![0; 2048],
        }
    }

    pub fn is_busy(&self) -> bool {
        !self.under_way.is_empty()
    }

    pub fn has_room(&self) -> bool {
        self.connection.is_some() && self.under_way.len() < SLOTS
    }

    pub fn slots_under_way(&self) -> impl Iterator<Item = usize> + '_ {
        self.under_way.values().map(|op| op.slot)
    }

    pub fn submit(&mut self, now: Time, user: u64, kind: u64, slot: usize, length: u64) {
        let connection = self.connection.as_ref().expect("has_room");
        let address = (slot * MEMORY_BYTES / SLOTS) as u64;
        let op_kind = match kind {
            0 => OpKind::Write { region: REGION, address },
            1 => OpKind::Read { region: REGION, address: address + MEMORY_BYTES as u64 },
            _ => OpKind::Message,
        };
        let op = Op { kind: op_kind, length, user };
        self.endpoint.submit(now, connection.flow, op).expect("fewer than max_ops");
        let read = if kind == 1 { vec![0; length as usize] } else { Vec::new() };
        let ended = Ended { user, kind, slot, length, read, outcome: Outcome::Unknown };
        self.under_way.insert(user, ended);
    }

    pub fn next_timeout(&self) -> Option<Time> {
        self.sessions.next_timeout().into_iter().chain(self.endpoint.next_timeout()).min()
    }

    pub fn handle_timeout(&mut self, now: Time) {
        self.sessions.handle_timeout(now);
        self.endpoint.handle_timeout(now);
    }

    fn open(&mut self, session: SessionId, peer: FlowId) -> Connection {
        let flow = self.endpoint.open(peer, &self.algorithm, &FlowInfo::default());
        assert_eq!(flow.get(), self.next_flow, "flows are given in turn, and none is released");
        self.next_flow += 1;
        Connection { session, flow, inbound: BTreeMap::new() }
    }

    fn on_event(&mut self, now: Time, event: Event) {
        let flow_of =
            |hello: &[u8]| FlowId::new(u32::from_be_bytes(hello.try_into().expect("4 bytes")));
        match event {
            Event::Incoming { session, hello, .. } => {
                if let Some(old) = self.offered.take() {
                    self.endpoint.abort(now, old.flow);
                }
                let connection = self.open(session, flow_of(&hello));
                let ours = connection.flow.get().to_be_bytes();
                self.sessions.accept(now, session, &ours).expect("it waits");
                self.offered = Some(connection);
            }
            Event::Connected { session, hello } => {
                let offered = self.offered.take_if(|c| c.session == session);
                let connection = offered.unwrap_or_else(|| self.open(session, flow_of(&hello)));
                if let Some(old) = self.connection.replace(connection) {
                    self.endpoint.abort(now, old.flow);
                }
            }
            Event::Ended { session, .. } | Event::Refused { session, .. } => {
                for ours in [&mut self.connection, &mut self.offered] {
                    if let Some(old) = ours.take_if(|c| c.session == session) {
                        self.endpoint.abort(now, old.flow);
                    }
                }
            }
            Event::PeerDraining { .. } | Event::PeerIdle { .. } | Event::KeyChanged { .. } => {}
        }
    }

    fn on_events(&mut self, now: Time) {
        while let Some(event) = self.sessions.poll_event() {
            self.on_event(now, event);
        }
    }

    pub fn receive(&mut self, now: Time, bytes: &mut [u8], memory: &mut [u8]) {
        let from = address(1 - self.side);
        let received = self.sessions.receive(now, from, bytes);
        let Received::Packet { session, header, payload, .. } = received else { return };
        // The first packet of a session may be the one that confirms the session.
        while let Some(event) = self.sessions.poll_event() {
            self.on_event(now, event);
        }
        let Some(connection) = self.connection.as_mut() else { return };
        if connection.session != session || connection.flow != header.flow {
            return;
        }
        let arrival =
            Arrival { now, nic_received_at: now, hops: 0, marked: false, receiver_level: 0 };
        // The op to which an answer belongs must be looked up now, because the answer may end it.
        let answers = match &header.body {
            Body::Data(segment) if segment.kind == SegmentKind::ReadResponse => {
                self.endpoint.op(connection.flow, segment.op).map(|op| op.user)
            }
            _ => None,
        };
        let handled = self.endpoint.handle_packet(&arrival, &header);
        if let (Handled::Data { finished, .. }, Body::Data(segment)) = (handled, &header.body) {
            let place = segment.offset as usize..segment.offset as usize + payload.len();
            match segment.kind {
                SegmentKind::Write { address, .. } => {
                    memory[address as usize..][place].copy_from_slice(payload);
                }
                SegmentKind::Message => {
                    let op = segment.op.get();
                    let message = connection.inbound.entry(op).or_default();
                    message.resize(segment.op_length as usize, 0);
                    message[place].copy_from_slice(payload);
                    if finished {
                        let message = connection.inbound.remove(&op).expect("it is there");
                        self.messages.push(number_of(&message));
                    }
                }
                SegmentKind::ReadResponse => {
                    let user = answers.expect("an op of ours");
                    self.under_way.get_mut(&user).expect("under way").read[place]
                        .copy_from_slice(payload);
                }
                _ => {}
            }
        }
    }

    /// Sends packets that are due, and takes completions.
    pub fn poll(&mut self, now: Time, memory: &[u8], mut send: impl FnMut(&[u8])) {
        self.on_events(now);
        if self.side == 0 && self.connection.is_none() && self.sessions.is_empty() {
            let key = self.sessions.key_ids().next().expect("a key");
            let hello = self.next_flow.to_be_bytes();
            self.sessions.connect(now, address(1), key, &hello).expect("room");
        }
        let mut out = [0; MAX_HANDSHAKE_BYTES];
        while let Some((_, length)) = self.sessions.poll_transmit(now, &mut out) {
            send(&out[..length]);
        }
        while let Some(transmit) = self.endpoint.poll_transmit(now) {
            let connection = self.connection.as_ref().filter(|c| c.flow == transmit.flow);
            let Some(session) = connection.map(|c| c.session) else { continue };
            let header = &transmit.header;
            let payload = self.payload(transmit.flow, header, memory);
            let sealed = self.sessions.seal(now, session, header, &payload, &mut self.buffer);
            send(&self.buffer[..sealed.expect("connected")]);
        }
        while let Some(completion) = self.endpoint.poll_completion() {
            let user = completion.submitted.user;
            let op = self.under_way.remove(&user).expect("an op completes once");
            self.ended.push(Ended { outcome: completion.outcome, ..op });
        }
    }

    /// Returns the payload of a packet.
    fn payload(&self, flow: FlowId, header: &Header, memory: &[u8]) -> Vec<u8> {
        let Body::Data(segment) = &header.body else { return Vec::new() };
        let Segment { offset, length, .. } = *segment;
        match segment.kind {
            SegmentKind::ReadResponse => {
                let asked = self.endpoint.source(flow, segment).expect("asked for").kind;
                let OpKind::Read { address, .. } = asked else { panic!("{asked:?}") };
                let start = (address + offset) as usize;
                memory[start..start + length as usize].to_vec()
            }
            SegmentKind::Write { .. } | SegmentKind::Message => {
                let user = self.endpoint.source(flow, segment).expect("under way").user;
                (offset..offset + u64::from(length)).map(|i| byte_of(user, i)).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Returns the number of a message, and checks that every byte is as it was sent.
fn number_of(message: &[u8]) -> u64 {
    let user = u64::from_be_bytes(message[..8].try_into().expect("8 bytes"));
    assert!(message.iter().zip(0..).all(|(&byte, i)| byte == byte_of(user, i)), "{user}");
    user
}
