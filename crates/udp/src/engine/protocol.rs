//! The protocol state of an engine: sessions, connections, ops and regions, without sockets and clocks.
//!
//! [`Protocol`] combines the components for each packet: [`Protocol::handle_datagram`] for a received one,
//! [`Protocol::seal`] for one to send.

use std::sync::Arc;

use apus_cc::{Ecn, FieldLayout, Fields};
use apus_traces::qlog::PacketPath;
use apus_transport::{Arrival, Handled, Observed, OpKind, Path, Transmit, extension_of, fields_of};
use apus_units::planted::{Bug, is_planted};
use apus_units::{FlowId, Time};
use apus_wire::{Body, Extension, Header, RejectReason, Segment, SegmentKind, WORD_BYTES};

use super::connections::{Connections, Owner, Probe, Route};
use super::inbox::Admission;
use super::network::Network;
use super::op_table::OpTable;
use super::outbox::{Envelope, MAX_BURST_PACKETS, Outbox};
use super::regions::RegionAccess;
use crate::atomic::AtomicOp;
use crate::config::CLASSES;
use crate::grant::Access;
use crate::region::LockedRegion;
use crate::session::{Extended, Peer, Received, SessionId};
use crate::stats::add;
use crate::status::EngineStatus;
use crate::sys::{Meta, TTL};

/// The ECN codepoint of congestion (RFC 3168 §5).
const CONGESTED: u8 = 0b11;
/// Maximum length in bytes of a datagram.
const MAX_DATAGRAM_BYTES: usize = 65_507;

/// The protocol state of an engine.
pub(super) struct Protocol {
    pub(super) connections: Connections,
    pub(super) ops: OpTable,
    pub(super) regions: RegionAccess,
    pub(super) status: Arc<EngineStatus>,
    /// DSCP of each traffic class.
    pub(super) dscp: [u8; CLASSES],
    /// Layout of the algorithm's own fields on packets, if it has any.
    pub(super) layout: Option<FieldLayout>,
    /// Whether an op of the peer has arrived since the last poll began. The peer's application may wait for its
    /// acknowledgement.
    pub(super) urgent: bool,
}

/// A data packet as it was received.
struct DataPacket<'p> {
    owner: Owner,
    flow: FlowId,
    segment: &'p Segment,
    payload: &'p [u8],
}

/// The context of a received datagram: its control messages, and the region that is locked for its aggregate.
pub(super) struct Delivery<'d, 'r> {
    pub(super) meta: &'d Meta,
    pub(super) locked: &'d mut LockedRegion<'r>,
    /// Outbox for acknowledgements that must be sent before the packet is handled.
    pub(super) outbox: &'d mut Outbox,
}

impl Protocol {
    /// Returns `true` if there may be packets to send.
    #[inline]
    pub(super) fn has_transmit(&self) -> bool {
        self.connections.sessions.has_transmit() || self.ops.endpoint.has_transmit()
    }

    /// Handles the events of sessions: connections that open and end.
    #[inline]
    pub(super) fn handle_session_events<N: Network>(&mut self, now: Time, network: &N) {
        while let Some(event) = self.connections.sessions.poll_event() {
            self.connections.on_event(now, event, &mut self.ops, network);
        }
    }

    /// Handles a datagram that was taken from the socket at `now` (t3, t6). If the datagram is a probe of the path,
    /// returns the probe for its answer.
    #[inline]
    pub(super) fn handle_datagram<N: Network>(
        &mut self,
        now: Time,
        delivery: Delivery<'_, '_>,
        datagram: &mut [u8],
        network: &N,
    ) -> Option<Probe> {
        let Delivery { meta, locked, outbox } = delivery;
        let datagram_length = datagram.len();
        let received = self.connections.sessions.receive(now, meta.peer(), datagram);
        // The packet may have connected its session, so that the session's flows learn the peer's numbers now. Any
        // datagram, even a dropped one, may have ended another session, whose slot is then free for the next one.
        if self.connections.sessions.has_event() {
            locked.release();
            self.handle_session_events(now, network);
        }
        match received {
            Received::Packet { session, path, header, extension, payload } => {
                // A peer with a key must not affect the flows of another peer.
                let owner = self.connections.owner(header.flow).filter(|o| o.session == session)?;
                if self.connections.records() {
                    self.connections.record_packet(
                        now,
                        false,
                        header.flow,
                        &header,
                        datagram_length,
                        Some(PacketPath { port: meta.from.port(), ev: None }),
                    );
                }
                let arrival = arrival(now, meta, network);
                let (fields, telemetry);
                let observed = match &extension {
                    Extension::None => Observed { path: path.into(), ..Observed::default() },
                    extension => {
                        (fields, telemetry) = fields_of(extension, self.layout);
                        Observed { fields, telemetry: telemetry.as_ref(), path: path.into() }
                    }
                };
                if self.connections.spreads() {
                    self.before_spread(now, &header, owner, path, (outbox, network));
                }
                if let Body::Data(segment) = &header.body {
                    let data = DataPacket { owner, flow: header.flow, segment, payload };
                    self.handle_data(&arrival, &header, &observed, data, locked);
                } else {
                    self.handle_control(&arrival, &header, &observed);
                }
            }
            Received::Signal { session, header } => {
                let arrival = arrival(now, meta, network);
                self.handle_signal(&arrival, session, header);
            }
            Received::Probe { session, from, length } => {
                return Some(Probe { session, to: from, joins: false, length });
            }
            Received::Joined { session, number, length } => {
                let endpoint = &mut self.ops.endpoint;
                self.connections.on_joined(now, session, (number, length), endpoint);
            }
            Received::ProbeAnswer { session, length } => {
                self.connections.on_probe_answer(now, session, length, &mut self.ops);
            }
            Received::Own => {}
            Received::Dropped(why) => self.connections.on_dropped(now, meta.from, why),
        }
        None
    }

    /// Prepares the handling of a packet that one of several ports of the peer may have sent. Sends the due
    /// acknowledgements if no acknowledgement can report both their packets and this one.
    fn before_spread<N: Network>(
        &mut self,
        now: Time,
        header: &Header,
        owner: Owner,
        path: u8,
        (outbox, network): (&mut Outbox, &N),
    ) {
        if let Body::Ack(ack) = &header.body
            && let Some(sent) = self.ops.endpoint.sent_by(header.flow, ack.echo)
        {
            self.connections.on_heard(now, owner.session, sent, &mut self.ops.endpoint);
        }
        if !self.ops.endpoint.must_ack_before(header, path.into()) {
            return;
        }
        while outbox.has_room()
            && self.ops.endpoint.has_ack()
            && let Some(transmit) = self.ops.endpoint.poll_ack(now)
        {
            self.seal(now, &transmit, outbox, network.has_segmentation());
        }
    }

    /// Handles a packet without data, such as an acknowledgement or a refusal.
    #[inline]
    fn handle_control(&mut self, arrival: &Arrival, header: &Header, observed: &Observed<'_>) {
        let handled = self.ops.handle_control(arrival, header, observed);
        if self.connections.records()
            && let Handled::Ack(sample) = &handled
        {
            let (now, endpoint) = (arrival.now, &self.ops.endpoint);
            self.connections.record_ack(now, header.flow, sample.as_ref(), endpoint);
        }
        if let Handled::Ack(Some(sample)) = handled {
            let stats = &self.status.stats;
            stats.end_to_end_rtt.record(sample.end_to_end_rtt);
            stats.fabric_rtt.record(sample.fabric_rtt);
            stats.endpoint_delay.record(sample.endpoint_delay);
        }
    }

    /// Handles a switch's signal (Bolt's SRC). The signal identifies the flow by the peer's number.
    #[cold]
    fn handle_signal(&mut self, arrival: &Arrival, session: SessionId, mut header: Header) {
        let Some(flow) = self.connections.flow_at_peer(session, header.flow) else { return };
        header.flow = flow;
        self.ops.endpoint.handle_packet(arrival, &header);
    }

    #[inline]
    fn handle_data(
        &mut self,
        arrival: &Arrival,
        header: &Header,
        observed: &Observed<'_>,
        data: DataPacket<'_>,
        locked: &mut LockedRegion<'_>,
    ) {
        let DataPacket { owner, flow, segment, .. } = data;
        self.urgent |= segment.kind != SegmentKind::ReadResponse;
        // Holds the peer's right to the region until the packet has been handled.
        let region = segment.kind.region().and_then(|key| self.regions.restricted(key));
        let right = region.as_ref().map(|region| {
            // A change of the grant waits for engines that hold the right, and these engines may wait for the lock of
            // this region. Therefore the lock is released before the right is taken.
            locked.release();
            let caller = self.connections.caller(owner.session);
            caller.map_or(Err(RejectReason::NoRegion), |caller| region.hold(&caller))
        });
        let admission = match &right {
            Some(Err(reason)) => Admission::Refused(*reason),
            _ => self.admit(&data),
        };
        let dropped = match admission {
            Admission::Refused(reason) => {
                self.connections.on_op_refused(arrival.now, owner.session, segment.kind, reason);
                self.ops.endpoint.reject(flow, segment.op, reason)
            }
            Admission::NotReady => self.ops.endpoint.not_ready(flow, segment.op),
            Admission::Yes | Admission::Reserved => false,
        };
        if dropped {
            return;
        }
        if segment.kind == SegmentKind::Cancel {
            self.ops.refusals.on_cancelled(flow, segment.op);
        }
        // This lookup precedes the transport's handling of the packet: the last bytes of an answer end the op, a read
        // or an atomic op.
        let read = match segment.kind {
            SegmentKind::ReadResponse => self.ops.index(flow, segment.op),
            _ => None,
        };
        match self.ops.endpoint.handle_observed(arrival, header, observed) {
            Handled::Data { bytes, finished } => {
                add(&self.status.stats.payload_received, bytes);
                let late = is_planted(Bug::ReadTail) && segment.kind == SegmentKind::ReadResponse;
                let read = if late { self.ops.index(flow, segment.op) } else { read };
                self.store(&data, read, finished, locked);
            }
            Handled::Atomic => self.execute(arrival.now, &data, locked),
            Handled::Cancelled => {
                if let Some(inbox) = self.connections.inbox(owner.session) {
                    inbox.discard(flow, segment.op);
                }
            }
            _ if admission == Admission::Reserved => {
                if let Some(inbox) = self.connections.inbox(owner.session) {
                    inbox.release(segment.op_length);
                }
            }
            _ => {}
        }
    }

    /// Checks whether a data packet may be handed to the transport.
    #[inline]
    fn admit(&mut self, data: &DataPacket<'_>) -> Admission {
        let segment = data.segment;
        match segment.kind {
            SegmentKind::Write { region, address } => {
                self.regions.admit(region, Access::WRITE, address, segment.op_length)
            }
            SegmentKind::ReadRequest { region, address } => {
                self.regions.admit(region, Access::READ, address, segment.op_length)
            }
            SegmentKind::CompareAndSwap { region, address }
            | SegmentKind::FetchAdd { region, address } => {
                self.regions.admit(region, Access::ATOMIC, address, u64::from(WORD_BYTES))
            }
            SegmentKind::ReadResponse | SegmentKind::Cancel => Admission::Yes,
            SegmentKind::Message => match self.connections.inbox(data.owner.session) {
                Some(inbox) => inbox.admit(data.flow, segment.op, segment.op_length),
                None => Admission::NotReady,
            },
        }
    }

    /// Stores new bytes at their target. `read` is the index of the op that an answer belongs to.
    #[inline]
    fn store(
        &mut self,
        data: &DataPacket<'_>,
        read: Option<usize>,
        finished: bool,
        locked: &mut LockedRegion<'_>,
    ) {
        let &DataPacket { owner, flow, segment, payload } = data;
        match segment.kind {
            SegmentKind::Write { region, address } => {
                if let Some(region) = self.regions.get(region) {
                    locked.store(region, address + segment.offset, payload);
                }
            }
            SegmentKind::ReadResponse => {
                let target = read.and_then(|read| self.ops.target(read));
                let range = target.and_then(|t| t.get_mut(segment.offset as usize..));
                if let Some(range) = range.and_then(|r| r.get_mut(..payload.len())) {
                    range.copy_from_slice(payload);
                }
            }
            SegmentKind::Message => {
                // The application's receiver of the message may access the region at once.
                locked.release();
                if let Some(inbox) = self.connections.inbox(owner.session) {
                    inbox.store(owner.index, flow, segment, payload, finished);
                }
            }
            SegmentKind::ReadRequest { .. }
            | SegmentKind::Cancel
            | SegmentKind::CompareAndSwap { .. }
            | SegmentKind::FetchAdd { .. } => {}
        }
    }

    /// Executes an atomic op of the peer and queues its answer.
    #[inline]
    fn execute(&mut self, now: Time, data: &DataPacket<'_>, locked: &mut LockedRegion<'_>) {
        let &DataPacket { flow, segment, payload, .. } = data;
        add(&self.status.stats.payload_received, payload.len() as u64);
        let old = match segment.kind {
            SegmentKind::CompareAndSwap { region, address }
            | SegmentKind::FetchAdd { region, address } => {
                let op = AtomicOp::decode(segment.kind, payload);
                let region = self.regions.get(region);
                op.zip(region).and_then(|(op, region)| locked.execute(region, address, op))
            }
            _ => None,
        };
        match old {
            Some(old) => {
                add(&self.status.stats.atomics_executed, 1);
                self.ops.endpoint.answer_atomic(now, flow, segment, old);
            }
            // The memory of the region has shrunk.
            None => self.ops.refuse_read(now, flow, segment.op, RejectReason::OutOfBounds),
        }
    }

    /// Seals a packet into a burst of `outbox`. With `segmentation`, bursts of several packets can be sent.
    #[inline]
    pub(super) fn seal(
        &mut self,
        now: Time,
        transmit: &Transmit,
        outbox: &mut Outbox,
        segmentation: bool,
    ) {
        let Some(mut route) = self.connections.route(transmit.flow) else { return };
        let header = &transmit.header;
        let mut hops;
        let extension = match transmit.congestion.fields {
            Fields::NONE => Extension::None,
            fields => {
                hops = [0; _];
                let telemetry = self.ops.endpoint.telemetry(transmit.flow);
                extension_of(fields, self.layout, telemetry, &mut hops)
            }
        };
        let packet = Extended { header, extension };
        let start = header.encoded_len() + extension.encoded_len();
        let length = start + header.payload_len() + self.connections.sessions.overhead();
        if length > MAX_DATAGRAM_BYTES {
            return self.on_unsealed(now, transmit);
        }
        if !matches!(transmit.path, Path::Label(_)) {
            route.to = self.choose_port(now, &route, transmit);
        }
        let tos = self.dscp[usize::from(route.class)] << 2 | ecn_bits(transmit.congestion.ecn);
        let limit = match header.payload_len() {
            _ if !(segmentation && route.segmentation) => 1,
            0 => MAX_BURST_PACKETS,
            _ => burst_limit(self.ops.endpoint.cwnd(transmit.flow).unwrap_or(1.0)),
        };
        let burst = outbox.burst(&Envelope { to: route.to, tos, length }, limit);
        let space = burst.space(length);
        let Self { connections, ops, regions, .. } = self;
        let session = route.session;
        // A peer that has lost its right to the region gets no answer to its read.
        let region = match &header.body {
            Body::Data(segment) if regions.any_restricted() => {
                match ops.endpoint.source(transmit.flow, segment).map(|op| op.kind) {
                    Some(OpKind::Read { region, .. })
                        if segment.kind == SegmentKind::ReadResponse =>
                    {
                        regions.restricted(region)
                    }
                    _ => None,
                }
            }
            _ => None,
        };
        let right = region.as_ref().map(|region| {
            let caller = connections.caller(session);
            caller.map_or(Err(RejectReason::NoRegion), |caller| region.hold(&caller))
        });
        if matches!(right, Some(Err(_))) {
            outbox.remove_empty();
            return self.on_right_lost(now, transmit);
        }
        let sessions = &mut connections.sessions;
        let sealed = match &header.body {
            Body::Data(segment) if segment.length > 0 => {
                add(&self.status.stats.payload_sent, u64::from(segment.length));
                let payload = header.payload_len();
                let seal =
                    |payload: &[u8]| sessions.seal(now, session, packet, payload, space).is_ok();
                match (segment.kind, ops.endpoint.source(transmit.flow, segment)) {
                    (SegmentKind::ReadResponse, Some(op)) => match op.kind {
                        OpKind::Read { region, address } => {
                            let region = regions.get(region);
                            region.and_then(|r| r.read(address + segment.offset, payload, seal))
                        }
                        OpKind::CompareAndSwap { .. } | OpKind::FetchAdd { .. } => {
                            op.user.to_le_bytes().get(..payload).map(seal)
                        }
                        OpKind::Write { .. } | OpKind::Message => None,
                    },
                    (_, Some(op)) => {
                        let from = segment.offset as usize;
                        ops.payload(op).and_then(|all| all.get(from..from + payload)).map(seal)
                    }
                    (_, None) => None,
                }
                .unwrap_or(false)
            }
            _ => sessions.seal(now, session, packet, &[], space).is_ok(),
        };
        if !sealed {
            outbox.remove_empty();
            return self.on_unsealed(now, transmit);
        }
        if connections.records() {
            let port = self.status.port(route.to.port);
            let ev = match transmit.path {
                Path::Spread(_) => ops.endpoint.latest_ev(transmit.flow),
                Path::Label(_) | Path::Back(_) => None,
            };
            let path = Some(PacketPath { port, ev: ev.map(|ev| ev.get()) });
            connections.record_packet(now, true, transmit.flow, header, length, path);
        }
        match header.body {
            Body::Data(_) => burst.commit_data(length, transmit.flow, header.seq),
            _ => burst.commit(length),
        }
    }

    /// Returns the peer, with ports, to which a packet of a flow with several ports is sent.
    fn choose_port(&mut self, now: Time, route: &Route, transmit: &Transmit) -> Peer {
        let (to, replaced) = self.connections.choose(
            now,
            route,
            (transmit.flow, transmit.path),
            &mut self.ops.endpoint,
        );
        if let Some(ev) = replaced
            && matches!(transmit.header.body, Body::Data(_))
        {
            self.ops.endpoint.replace_ev(transmit.flow, transmit.header.seq, ev);
        }
        to
    }

    /// Handles an answer to a read of a peer that has lost its right to the region.
    #[cold]
    fn on_right_lost(&mut self, now: Time, transmit: &Transmit) {
        if let Body::Data(segment) = &transmit.header.body {
            self.ops.endpoint.take_back(now, transmit.flow, transmit.header.seq);
            self.ops.refuse_read(now, transmit.flow, segment.op, RejectReason::Withdrawn);
        }
    }

    /// Handles a packet that could not be sealed. If it carries no data, it is built again when the event that caused
    /// it recurs.
    #[cold]
    fn on_unsealed(&mut self, now: Time, transmit: &Transmit) {
        if let Body::Data(segment) = &transmit.header.body {
            self.ops.on_unsealed(now, transmit.flow, transmit.header.seq, segment);
        }
    }
}

#[inline]
fn arrival<N: Network>(now: Time, meta: &Meta, network: &N) -> Arrival {
    Arrival {
        now,
        nic_received_at: network.received_at(meta, now),
        hops: meta.ttl.map_or(0, |ttl| TTL.saturating_sub(ttl)),
        marked: meta.tos & CONGESTED == CONGESTED,
        receiver_level: 0,
    }
}

/// Returns the number of packets of a burst under a congestion window of `cwnd` packets: about a quarter of the window,
/// so that pacing and the ACK clock stay fine-grained. deviation: no source; a quarter keeps the variation of a queue
/// near a quarter of the window. The number is rounded to the nearest integer. If it were rounded down, the packets of
/// a window of 7 would be sent one by one, with twice the system calls.
fn burst_limit(cwnd: f64) -> usize {
    ((cwnd / 4.0).round() as usize).clamp(1, MAX_BURST_PACKETS)
}

fn ecn_bits(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotCapable => 0,
        Ecn::Capable => 0b10,
        Ecn::Congested => 0b11,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_holds_about_a_quarter_of_the_window() {
        for (cwnd, packets) in [(0.01, 1), (5.9, 1), (6.1, 2), (7.1, 2), (31.0, 8), (1000.0, 64)] {
            assert_eq!(burst_limit(cwnd), packets, "{cwnd}");
        }
    }
}
