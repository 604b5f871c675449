//! A peer that ignores congestion control, and otherwise behaves as the transport expects, so that each of its packets is
//! handled in full. It numbers its ops, repeats unacknowledged ops, cancels refused ones, and acknowledges answers.

use std::collections::VecDeque;

use apus_units::{FlowId, OpId, PacketNumber, Span};
use apus_wire::{Ack, Body, Header, RegionKey, Segment, SegmentKind, decode_extended};

use super::{Abuse, packet};

/// Maximum number of outstanding ops: `max_ops` of the server.
const WINDOW: usize = 1024;
/// Number of packets whose ops are remembered: more than are in flight.
const PACKETS: usize = 1 << 14;
/// Minimum distance between acknowledgements of answers, in packets.
const PER_ACK: u64 = 4;

pub(super) struct Greedy {
    abuse: Abuse,
    region: RegionKey,
    /// The server's number of the flow.
    flow: FlowId,
    /// Number of the next packet.
    next: u64,
    /// The ops of the last packets, by packet number modulo [`PACKETS`].
    ops: Vec<Option<u64>>,
    /// The first op that is not acknowledged, and whether each op from there onwards is acknowledged.
    first: u64,
    done: VecDeque<bool>,
    /// The position in the window of the op that is sent next.
    at: usize,
    /// Ops to cancel.
    refused: VecDeque<u64>,
    /// The largest packet number of an answer, and whether an answer has arrived since the last acknowledgement.
    largest: u64,
    owed: bool,
    /// Number of the first packet that may be the next acknowledgement.
    next_ack: u64,
    /// Numbers of refusals and of bytes of answers that have arrived.
    pub(super) refusals: u64,
    pub(super) answered: u64,
}

impl Greedy {
    pub(super) fn new(abuse: Abuse, region: RegionKey, flow: FlowId) -> Self {
        Self {
            abuse,
            region,
            flow,
            next: 0,
            ops: vec![None; PACKETS],
            first: 0,
            done: [false; WINDOW].into(),
            at: 0,
            refused: VecDeque::new(),
            largest: 0,
            owed: false,
            next_ack: 0,
            refusals: 0,
            answered: 0,
        }
    }

    /// Returns the next packet.
    pub(super) fn packet(&mut self) -> Header {
        let seq = PacketNumber::new(self.next);
        let (op, body) = if self.owed && self.next >= self.next_ack {
            (self.owed, self.next_ack) = (false, self.next + PER_ACK);
            (None, Body::Ack(ack(self.largest)))
        } else if let Some(op) = self.refused.pop_front() {
            let kind = SegmentKind::Cancel;
            let op_id = OpId::new(op);
            let cancel =
                Segment { op: op_id, kind, offset: 0, length: 0, op_length: 0, attached: None };
            (Some(op), Body::Data(cancel))
        } else {
            // The next op that is not acknowledged. The first op in the window never is acknowledged.
            let free = |at: &usize| !self.done[*at];
            let at = (self.at..WINDOW).find(free).or_else(|| (0..self.at).find(free));
            let at = at.unwrap_or(0);
            self.at = (at + 1) % WINDOW;
            let op = self.first + at as u64;
            (Some(op), packet(self.abuse, op, self.region).body)
        };
        self.ops[self.next as usize % PACKETS] = op;
        self.next += 1;
        Header { flow: self.flow, seq, body }
    }

    /// Reads a datagram of the server, whose headers are not encrypted.
    pub(super) fn hear(&mut self, datagram: &[u8]) {
        let Ok(decoded) = decode_extended(datagram) else { return };
        match decoded.header.body {
            Body::Ack(ack) => {
                for back in (0..128).filter(|back| ack.bitmap >> back & 1 == 1) {
                    let seq = ack.largest.get().checked_sub(back);
                    let seq =
                        seq.filter(|&seq| seq < self.next && self.next - seq < PACKETS as u64);
                    if let Some(op) = seq.and_then(|seq| self.ops[seq as usize % PACKETS]) {
                        self.end(op);
                    }
                }
            }
            Body::Reject(reject) => {
                self.refusals += 1;
                let op = reject.op.get();
                if op >= self.first && !self.refused.contains(&op) {
                    self.refused.push_back(op);
                }
            }
            Body::Data(segment) => {
                self.answered += u64::from(segment.length);
                self.largest = self.largest.max(decoded.header.seq.get());
                self.owed = true;
            }
            _ => {}
        }
    }

    fn end(&mut self, op: u64) {
        if let Some(place) = op.checked_sub(self.first)
            && let Some(done) = self.done.get_mut(place as usize)
        {
            *done = true;
        }
        while self.done.front() == Some(&true) {
            self.done.pop_front();
            self.done.push_back(false);
            self.first += 1;
            self.at = self.at.saturating_sub(1);
        }
    }
}

/// Acknowledges this packet and the 127 before it, whether they arrived or not.
pub(super) fn ack(largest: u64) -> Ack {
    Ack {
        largest: PacketNumber::new(largest),
        bitmap: u128::MAX >> 127u64.saturating_sub(largest),
        echo: PacketNumber::new(largest),
        remote_queuing: Span::ZERO,
        hops: 1,
        marked: 0,
        receiver_level: 0,
        echo_marked: false,
        missing: None,
    }
}
