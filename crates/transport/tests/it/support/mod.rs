//! Two endpoints in virtual time, joined by a network that can lose, duplicate, reorder and corrupt
//! packets.
#![allow(dead_code)] // each test binary uses its own part

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use apus_algorithms::registry::AlgorithmConfig;
use apus_cc::FlowInfo;
use apus_transport::{
    Arrival, Completion, Endpoint, EndpointConfig, Handled, Op, OpKind, RttSample,
};
use apus_units::{FlowId, Span, Time};
use apus_wire::{Body, Header, RejectReason, Segment, SegmentKind, Trimmed};
use proptest::prelude::ProptestConfig;

/// Returns the settings of a property test with this number of cases, unless `PROPTEST_CASES` states
/// another one (`tools/check-arithmetic`).
pub fn config(cases: u32) -> ProptestConfig {
    let given = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { given.cases } else { cases };
    ProptestConfig { failure_persistence: None, cases, ..given }
}

/// SplitMix64: every run is a function of its seed.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }
}

/// Faults of the network, in thousandths of packets.
#[derive(Clone, Copy, Default)]
pub struct Faults {
    pub loss: u64,
    pub duplication: u64,
    pub corruption: u64,
    /// A switch removes the payload of data packets.
    pub trimming: u64,
    /// Maximum extra delay, uniformly distributed, so that packets overtake each other.
    pub reorder: Span,
}

/// One side: an endpoint and the records of its application.
pub struct Side {
    pub endpoint: Endpoint<AlgorithmConfig>,
    pub completions: Vec<Completion>,
    /// Bytes stored by the peer's writes and messages, and by answers to our reads, per op.
    pub stored: BTreeMap<(bool, u64), Vec<u8>>,
    /// The word that atomic ops of the peer change: each adds 1.
    pub word: u64,
    /// Number of times that an inbound op was reported finished, or executed.
    pub finished: BTreeMap<u64, u32>,
    pub samples: Vec<RttSample>,
    pub acks_sent: u64,
    pub nacks_sent: u64,
    /// Trimmed packets whose payload was missing, and reports of them that named a packet in flight.
    pub trimmed: u64,
    pub nacks_handled: u64,
    pub data_sent: u64,
    pub duplicates: u64,
    pub refused: u64,
    /// Packets dropped behind a gap.
    pub out_of_order: u64,
    /// Reason for which the application refuses a segment, if any.
    pub rejects: fn(&Segment) -> Option<RejectReason>,
    /// Number of the peer's ops that the side has room for.
    pub room: usize,
    /// Ops that the peer cancelled.
    pub cancelled: BTreeMap<u64, u32>,
}

impl Side {
    fn new(config: EndpointConfig) -> Self {
        Self {
            endpoint: Endpoint::new(config),
            completions: Vec::new(),
            stored: BTreeMap::new(),
            word: 0,
            finished: BTreeMap::new(),
            samples: Vec::new(),
            acks_sent: 0,
            nacks_sent: 0,
            trimmed: 0,
            nacks_handled: 0,
            data_sent: 0,
            duplicates: 0,
            refused: 0,
            out_of_order: 0,
            rejects: |_| None,
            room: usize::MAX,
            cancelled: BTreeMap::new(),
        }
    }
}

/// Returns the byte at `offset` of op `op`, as side `owner` holds it.
pub fn byte(owner: usize, answer: bool, op: u64, offset: u64) -> u8 {
    let mixed = (op * 31 + offset).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    (mixed as u8) ^ (owner as u8) ^ (u8::from(answer) << 7)
}

/// Arrival time of a datagram, its order among equals, the receiving side, and its bytes.
type Flight = Reverse<(Time, u64, usize, Vec<u8>)>;

pub struct Pair {
    pub now: Time,
    pub sides: [Side; 2],
    pub flow: FlowId,
    pub faults: Faults,
    pub one_way: Span,
    /// Data packets, by side and number, that the network loses.
    pub lose: Vec<(usize, u64)>,
    /// Returns `true` for packets that the peer does not accept, as if it had no room for their op.
    pub refuses: fn(usize, &Header) -> bool,
    pub random: Random,
    wire: BinaryHeap<Flight>,
    sent: u64,
    /// Every packet in the order of departure, for tests that check this order.
    pub log: Vec<(Time, usize, Header)>,
}

impl Pair {
    pub fn new(algorithm: &AlgorithmConfig, config: EndpointConfig, seed: u64) -> Self {
        let mut sides = [Side::new(config), Side::new(config)];
        let flow = FlowId::new(0);
        for side in &mut sides {
            assert_eq!(side.endpoint.open(flow, algorithm, &FlowInfo::default()), flow);
        }
        Self {
            now: Time::ZERO,
            sides,
            flow,
            faults: Faults::default(),
            one_way: Span::from_us(5),
            lose: Vec::new(),
            refuses: |_, _| false,
            random: Random(seed),
            wire: BinaryHeap::new(),
            sent: 0,
            log: Vec::new(),
        }
    }

    pub fn submit(&mut self, side: usize, kind: OpKind, length: u64) {
        let op = Op { kind, length, user: 0 };
        self.sides[side].endpoint.submit(self.now, self.flow, op).expect("submit");
        self.flush(side);
    }

    /// Sends all packets that `side` may send, and collects its completions.
    pub fn flush(&mut self, side: usize) {
        while let Some(transmit) = self.sides[side].endpoint.poll_transmit(self.now) {
            self.put_on_wire(side, &transmit.header);
        }
        while let Some(completion) = self.sides[side].endpoint.poll_completion() {
            self.sides[side].completions.push(completion);
        }
    }

    fn put_on_wire(&mut self, side: usize, header: &Header) {
        let mut header = header;
        self.log.push((self.now, side, *header));
        let mut payload = Vec::new();
        match &header.body {
            Body::Nack(_) => self.sides[side].nacks_sent += 1,
            Body::Ack(_)
            | Body::Control(_)
            | Body::Reject(_)
            | Body::Signal(_)
            | Body::Trimmed(_) => self.sides[side].acks_sent += 1,
            Body::Data(segment) => {
                self.sides[side].data_sent += 1;
                let answer = segment.kind == SegmentKind::ReadResponse;
                let source = self.sides[side].endpoint.source(self.flow, segment);
                match source.filter(|op| answer && op.kind.is_atomic()) {
                    Some(op) => payload.extend(op.user.to_le_bytes()),
                    None => payload.extend(
                        (0..u64::from(segment.length))
                            .map(|i| byte(side, answer, segment.op.get(), segment.offset + i)),
                    ),
                }
            }
        }
        let trimmed;
        if let Body::Data(segment) = &header.body
            && self.faults.trimming > 0
            && self.random.chance(self.faults.trimming)
            && let Some(rest) = Trimmed::of(segment, self.random.chance(500))
        {
            trimmed = Header { body: Body::Trimmed(rest), ..*header };
            header = &trimmed;
            payload.clear();
        }
        let mut datagram = vec![0; 128 + payload.len()];
        let length = apus_wire::seal(header, &payload, &mut datagram).expect("seal");
        datagram.truncate(length);
        let data = matches!(header.body, Body::Data(_));
        if self.random.chance(self.faults.loss)
            || (data && self.lose.contains(&(side, header.seq.get())))
            || (self.refuses)(side, header)
        {
            return;
        }
        let copies = 1 + u64::from(self.random.chance(self.faults.duplication));
        for _ in 0..copies {
            let mut datagram = datagram.clone();
            if self.random.chance(self.faults.corruption) {
                let bit = self.random.below(datagram.len() as u64 * 8);
                datagram[(bit / 8) as usize] ^= 1 << (bit % 8);
            }
            let extra = Span::from_ps(self.random.below(self.faults.reorder.as_ps() + 1));
            let at = self.now + self.one_way + extra;
            self.sent += 1;
            self.wire.push(Reverse((at, self.sent, 1 - side, datagram)));
        }
    }

    /// Handles the next event; returns `false` if no event is left before `limit`.
    pub fn step(&mut self, limit: Time) -> bool {
        let arrival = self.wire.peek().map(|Reverse((at, ..))| *at);
        let timers = [0, 1].map(|s| self.sides[s].endpoint.next_timeout());
        let Some(next) = [arrival, timers[0], timers[1]].into_iter().flatten().min() else {
            return false;
        };
        if next >= limit {
            return false;
        }
        self.now = self.now.max(next);
        if arrival == Some(next) {
            let Some(Reverse((_, _, side, datagram))) = self.wire.pop() else { return false };
            self.deliver(side, &datagram);
            self.flush(side);
        } else {
            let side = usize::from(timers[0] != Some(next));
            self.sides[side].endpoint.handle_timeout(self.now);
            self.flush(side);
        }
        true
    }

    /// Passes a datagram to `side` without letting it answer.
    pub fn deliver(&mut self, to: usize, datagram: &[u8]) {
        let Ok((header, payload)) = apus_wire::open(datagram) else { return };
        let arrival = Arrival {
            now: self.now,
            nic_received_at: self.now,
            hops: 1,
            marked: false,
            receiver_level: 0,
        };
        let side = &mut self.sides[to];
        if let Body::Data(segment) = &header.body
            && let Some(reason) = (side.rejects)(segment)
            && side.endpoint.reject(header.flow, segment.op, reason)
        {
            return;
        }
        if let Body::Data(segment) = &header.body
            && side.finished.len() >= side.room
            && side.endpoint.not_ready(header.flow, segment.op)
        {
            return;
        }
        match side.endpoint.handle_packet(&arrival, &header) {
            Handled::Data { bytes, finished } => {
                let Body::Data(segment) = header.body else { unreachable!() };
                let answer = segment.kind == SegmentKind::ReadResponse;
                if bytes > 0 {
                    let stored = side
                        .stored
                        .entry((answer, segment.op.get()))
                        .or_insert_with(|| vec![0; segment.op_length as usize]);
                    stored[segment.offset as usize..][..payload.len()].copy_from_slice(payload);
                }
                if finished && !answer {
                    *side.finished.entry(segment.op.get()).or_default() += 1;
                }
            }
            Handled::Atomic => {
                let Body::Data(segment) = header.body else { unreachable!() };
                let operands =
                    (0..payload.len() as u64).map(|i| byte(1 - to, false, segment.op.get(), i));
                assert!(payload.iter().copied().eq(operands), "the operands that were sent");
                *side.finished.entry(segment.op.get()).or_default() += 1;
                assert!(side.endpoint.answer_atomic(self.now, header.flow, &segment, side.word));
                side.word += 1;
            }
            Handled::Ack(sample) => side.samples.extend(sample),
            Handled::Credit { .. } | Handled::Control => {}
            Handled::Duplicate => side.duplicates += 1,
            Handled::OutOfOrder { .. } => side.out_of_order += 1,
            Handled::Refused => side.refused += 1,
            Handled::Cancelled => {
                let Body::Data(segment) = header.body else { unreachable!() };
                *side.cancelled.entry(segment.op.get()).or_default() += 1;
            }
            Handled::Trimmed => side.trimmed += 1,
            Handled::Nack { outstanding } => side.nacks_handled += u64::from(outstanding),
            Handled::Rejected | Handled::Signal => {}
        }
    }

    /// Removes the next datagram from the wire, for tests that deliver in batches.
    pub fn take_from_wire(&mut self) -> Option<(Time, usize, Vec<u8>)> {
        self.wire.pop().map(|Reverse((at, _, side, datagram))| (at, side, datagram))
    }

    pub fn run_until(&mut self, limit: Time) {
        while self.step(limit) {}
        self.now = self.now.max(limit);
    }
}
