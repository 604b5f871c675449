//! From the socket: datagrams, what they are, and where their bytes go.

use std::mem;
use std::sync::atomic::Ordering;

use apus_transport::{Arrival, Handled, Observed, fields_of};
use apus_units::{FlowId, Time};
use apus_wire::{Body, Extension, Header, RejectReason, Segment, SegmentKind};
use bytes::Bytes;

use super::Engine;
use crate::capture::unix_ns;
use crate::connection::{Message, Shared};
use crate::pcapng::{Captured, Direction};
use crate::region::{Held, Want};
use crate::session::{Dropped, Received, SessionId};
use crate::stats::add;
use crate::sys::{Meta, ReceiveBuffers, TTL};

/// The ECN codepoint that says congestion (RFC 3168 §5).
const CONGESTED: u8 = 0b11;

/// Datagrams since the last acknowledgement after which what has come is acknowledged, though more is there: an acknowledgement names the
/// newest 128 packets, and takes all others of its flow for lost. deviation: no source; an aggregate of 64 more
/// still fits.
const ANSWER_AFTER: u64 = 32;

/// Whether a data packet may be handed to the transport.
enum Admission {
    /// It may.
    Yes,
    /// It may; room for its message has been reserved.
    Reserved,
    /// There is no room for its message now.
    NotReady,
    /// The op is not allowed.
    No(RejectReason),
}

/// What a packet carries, and the region that holds it if it is a write.
struct Payload<'p, 'r> {
    bytes: &'p [u8],
    held: &'p mut Held<'r>,
}

impl Engine {
    pub(super) fn handle_batch(&mut self, buffers: &mut ReceiveBuffers) -> bool {
        let mut datagrams = 0;
        for (meta, bytes) in buffers.received() {
            // What comes as one is mostly one op's.
            let likely = if meta.segment < bytes.len() { self.last_region.kept() } else { None };
            let mut held = Held::new(likely.as_deref());
            for datagram in bytes.chunks_mut(meta.segment.max(1)) {
                datagrams += 1;
                self.unanswered += 1;
                if self.capture.is_some() {
                    self.capture_received(meta, datagram);
                }
                let now = self.clock.now(); // t3, t6
                self.handle_datagram(now, meta, datagram, &mut held);
            }
            drop(held);
            if self.unanswered >= ANSWER_AFTER {
                self.acknowledge();
            }
        }
        self.count_received(datagrams);
        datagrams > 0
    }

    fn count_received(&mut self, datagrams: u64) {
        add(&self.shared.stats.datagrams_received, datagrams);
        self.held_off.on_read(datagrams);
        self.unpublished |= datagrams > 0;
    }

    #[inline]
    fn handle_datagram(
        &mut self,
        now: Time,
        meta: &Meta,
        datagram: &mut [u8],
        held: &mut Held<'_>,
    ) {
        match self.sessions.receive(now, meta.peer(), datagram) {
            Received::Packet { session, header, extension, payload } => {
                // It may be what shows that its session is open: its flows know their peers from then on.
                if self.sessions.has_event() {
                    held.release();
                    self.take_session_events(now);
                }
                let payload = Payload { bytes: payload, held };
                self.handle_packet(now, session, meta, (&header, &extension), payload);
            }
            Received::Signal { session, header } => self.handle_signal(now, session, meta, header),
            Received::Probe { session, length } => self.put_probe_answer(now, session, length),
            Received::ProbeAnswer { session, length } => self.on_probe_answer(now, session, length),
            Received::Own => {
                held.release();
                self.take_session_events(now);
            }
            Received::Dropped(Dropped::Stray) => self.on_stray(meta.from),
            Received::Dropped(why) => self.note_dropped(now, meta.from, why),
        }
    }

    #[cold]
    fn capture_received(&mut self, meta: &Meta, datagram: &[u8]) {
        let at = meta.received_at.and_then(|ns| u64::try_from(ns).ok());
        self.capture(&Captured {
            unix_ns: at.unwrap_or_else(unix_ns),
            direction: Direction::In,
            from: meta.from,
            to: self.local_address(meta.to),
            traffic_class: meta.tos,
            ttl: meta.ttl.unwrap_or(0),
            datagram,
        });
    }

    /// Writes a datagram to the capture, which ends with the first that cannot be written.
    pub(super) fn capture(&mut self, packet: &Captured<'_>) {
        if self.capture.as_ref().is_some_and(|capture| capture.write(packet).is_err()) {
            self.capture = None;
            add(&self.shared.stats.capture_failures, 1);
        }
    }

    fn handle_packet(
        &mut self,
        now: Time,
        session: SessionId,
        meta: &Meta,
        (header, extension): (&Header, &Extension<'_>),
        payload: Payload<'_, '_>,
    ) {
        // A peer with a key must not touch the flows of another.
        let owner = self.owners.get(header.flow.index()).copied().flatten();
        let Some(owner) = owner.filter(|owner| owner.session == session) else { return };
        let place = owner.place;
        let arrival = self.arrival(now, meta);
        let seen;
        let observed = match extension {
            Extension::None => Observed::default(),
            extension => {
                seen = fields_of(extension);
                Observed { fields: seen.0, telemetry: seen.1.as_ref() }
            }
        };
        match &header.body {
            Body::Data(segment) => {
                let arrival = (&arrival, &observed);
                self.handle_data(arrival, session, place, header, segment, payload);
            }
            _ => {
                let handled = self.endpoint.handle_observed(&arrival, header, &observed);
                if let Handled::Ack(Some(sample)) = handled {
                    let stats = &self.shared.stats;
                    stats.end_to_end_rtt.record(sample.end_to_end_rtt);
                    stats.fabric_rtt.record(sample.fabric_rtt);
                    stats.endpoint_delay.record(sample.endpoint_delay);
                }
            }
        }
    }

    fn arrival(&self, now: Time, meta: &Meta) -> Arrival {
        Arrival {
            now,
            nic_received_at: self.clock.received(meta, now),
            hops: meta.ttl.map_or(0, |ttl| TTL.saturating_sub(ttl)),
            marked: meta.tos & CONGESTED == CONGESTED,
            receiver_level: 0,
        }
    }

    /// A switch's word (Bolt's SRC), which names the flow by the peer's index.
    #[cold]
    fn handle_signal(&mut self, now: Time, session: SessionId, meta: &Meta, mut header: Header) {
        let Some(connection) = self.connections.get(session.index()) else { return };
        let theirs = Some(header.flow);
        let ours = connection.flows.iter().find(|&&flow| self.endpoint.peer(flow) == theirs);
        let Some(&flow) = ours else { return };
        header.flow = flow;
        let arrival = self.arrival(now, meta);
        self.endpoint.handle_packet(&arrival, &header);
    }

    fn handle_data(
        &mut self,
        (arrival, observed): (&Arrival, &Observed<'_>),
        session: SessionId,
        place: usize,
        header: &Header,
        segment: &Segment,
        payload: Payload<'_, '_>,
    ) {
        let admission = self.admit(session, header.flow, segment);
        match admission {
            Admission::No(reason) => {
                if self.endpoint.reject(header.flow, segment.op, reason) {
                    return;
                }
            }
            Admission::NotReady => {
                if self.endpoint.not_ready(header.flow, segment.op) {
                    return;
                }
            }
            Admission::Yes | Admission::Reserved => {}
        }
        if segment.kind == SegmentKind::Cancel {
            let (flow, op) = (header.flow, segment.op);
            self.refusals.forget(|of, refused| (of, refused) == (flow, op));
        }
        // Looked up before: the last bytes of an answer end the op.
        let own_op = match segment.kind {
            SegmentKind::ReadResponse => {
                self.endpoint.op(header.flow, segment.op).map(|op| op.user as usize)
            }
            _ => None,
        };
        let handled = self.endpoint.handle_observed(arrival, header, observed);
        match handled {
            Handled::Data { bytes, finished } => {
                add(&self.shared.stats.payload_received, bytes);
                self.store(session, place, header.flow, segment, payload, own_op, finished);
            }
            Handled::Cancelled => self.drop_message(session, header.flow, segment),
            _ if matches!(admission, Admission::Reserved) => {
                if let Some(shared) = self.shared_of(session) {
                    release(shared, segment.op_length);
                }
            }
            _ => {}
        }
    }

    fn admit(&mut self, session: SessionId, flow: FlowId, segment: &Segment) -> Admission {
        let (last, regions) = (&mut self.last_region, &self.regions);
        let mut region = |key, want, address| {
            let region = last.get(regions, key).ok_or(RejectReason::NoRegion);
            match region.and_then(|r| r.admit(want, address, segment.op_length)) {
                Ok(()) => Admission::Yes,
                Err(reason) => Admission::No(reason),
            }
        };
        match segment.kind {
            SegmentKind::Write { region: key, address } => region(key, Want::Write, address),
            SegmentKind::ReadRequest { region: key, address } => region(key, Want::Read, address),
            SegmentKind::ReadResponse | SegmentKind::Cancel => Admission::Yes,
            SegmentKind::Message => {
                let Some(connection) = self.connections.get(session.index()) else {
                    return Admission::NotReady;
                };
                if segment.op_length > self.config.max_message {
                    return Admission::No(RejectReason::TooLong);
                }
                if connection.partial.contains_key(&(flow, segment.op.get())) {
                    return Admission::Yes;
                }
                let reserved = connection.shared.as_ref().is_some_and(|shared| {
                    let bytes = self.config.max_queued_bytes;
                    reserve(shared, segment.op_length, bytes, self.config.max_queued_messages)
                });
                if reserved { Admission::Reserved } else { Admission::NotReady }
            }
        }
    }

    fn shared_of(&self, session: SessionId) -> Option<&Shared> {
        self.connections.get(session.index())?.shared.as_deref()
    }

    /// Puts new bytes where they belong.
    #[expect(clippy::too_many_arguments, reason = "what a packet says and where it came from")]
    fn store(
        &mut self,
        session: SessionId,
        place: usize,
        flow: FlowId,
        segment: &Segment,
        Payload { bytes: payload, held }: Payload<'_, '_>,
        own_op: Option<usize>,
        finished: bool,
    ) {
        match segment.kind {
            SegmentKind::Write { region, address } => {
                if let Some(region) = self.last_region.get(&self.regions, region) {
                    held.store(region, address + segment.offset, payload);
                }
            }
            SegmentKind::ReadResponse => {
                let entry = own_op.and_then(|op| self.ops.get_mut(op));
                let target = entry.map(|entry| entry.pending.buffers.target());
                let range = target.and_then(|t| t.get_mut(segment.offset as usize..));
                if let Some(range) = range.and_then(|r| r.get_mut(..payload.len())) {
                    range.copy_from_slice(payload);
                }
            }
            SegmentKind::Message => {
                // Whoever is told may look at the region at once.
                held.release();
                self.store_message(session, place, flow, segment, payload, finished);
            }
            SegmentKind::ReadRequest { .. } | SegmentKind::Cancel => {}
        }
    }

    fn store_message(
        &mut self,
        session: SessionId,
        place: usize,
        flow: FlowId,
        segment: &Segment,
        payload: &[u8],
        finished: bool,
    ) {
        let Some(connection) = self.connections.get_mut(session.index()) else { return };
        let key = (flow, segment.op.get());
        let bytes = if payload.len() as u64 == segment.op_length {
            Bytes::copy_from_slice(payload)
        } else {
            let message = connection
                .partial
                .entry(key)
                .or_insert_with(|| vec![0; segment.op_length as usize]);
            let range = message.get_mut(segment.offset as usize..);
            if let Some(range) = range.and_then(|r| r.get_mut(..payload.len())) {
                range.copy_from_slice(payload);
            }
            if !finished {
                return;
            }
            Bytes::from(mem::take(message))
        };
        connection.partial.remove(&key);
        if let Some(incoming) = &connection.incoming {
            // Room was reserved; a channel that is closed has nobody who wants the message.
            let _ = incoming.try_send(Message { flow: place, bytes });
        }
    }

    /// The peer gave up one of its ops.
    fn drop_message(&mut self, session: SessionId, flow: FlowId, segment: &Segment) {
        let Some(connection) = self.connections.get_mut(session.index()) else { return };
        if let Some(message) = connection.partial.remove(&(flow, segment.op.get()))
            && let Some(shared) = &connection.shared
        {
            release(shared, message.len() as u64);
        }
    }
}

/// Reserves room for a message until the application takes it.
fn reserve(shared: &Shared, bytes: u64, max_bytes: u64, max_messages: u32) -> bool {
    let messages = shared.queued_messages.load(Ordering::Acquire);
    let queued = shared.queued_bytes.load(Ordering::Acquire);
    // Only this engine adds, so what is free stays free.
    if messages >= max_messages || queued + bytes > max_bytes {
        return false;
    }
    shared.queued_messages.fetch_add(1, Ordering::AcqRel);
    shared.queued_bytes.fetch_add(bytes, Ordering::AcqRel);
    true
}

fn release(shared: &Shared, bytes: u64) {
    shared.queued_messages.fetch_sub(1, Ordering::AcqRel);
    shared.queued_bytes.fetch_sub(bytes, Ordering::AcqRel);
}
