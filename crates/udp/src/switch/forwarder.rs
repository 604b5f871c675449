//! The logic of a switch between clients and a server: two ports and the signals between them, in virtual time.

use apus_cc::{FieldLayout, SwitchHalf};
use apus_units::{Bytes, Rate, Span, Time};

use super::counters::{Cause, Direction, PortCounters};
use super::datagram::Datagram;
use super::port::Port;
use crate::sys::{Meta, TTL};

/// DSCP of the traffic class of an IP packet, without ECN.
const DSCP: u8 = !3;
/// Smallest packet on an Ethernet link: a frame of 64 B, with preamble and gap (IEEE 802.3).
const MIN_WIRE_BYTES: u32 = 64 + 8 + 12;

/// A datagram as it was received.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received<'a> {
    pub(super) at: Time,
    pub(super) direction: Direction,
    pub(super) client: u32,
    pub(super) tos: u8,
    pub(super) ttl: u8,
    pub(super) bytes: &'a [u8],
}

impl<'a> Received<'a> {
    /// Returns a received datagram from a client or for a client, with its direction.
    pub(super) fn new(
        meta: &Meta,
        at: Time,
        (direction, client): (Direction, u32),
        bytes: &'a [u8],
    ) -> Self {
        Self { at, direction, client, tos: meta.tos, ttl: meta.ttl.unwrap_or(TTL), bytes }
    }
}

/// The two ports of a switch, and the datagrams between them.
pub(super) struct Forwarder<W> {
    ports: [Port<W>; 2],
    /// Bytes that a datagram occupies on a link in addition to its payload.
    overhead: u32,
    /// Datagrams that have been received but not yet offered to a port.
    arrivals: Vec<(Time, Direction, Datagram)>,
    /// Memory of datagrams that have left, for reuse.
    free: Vec<Vec<u8>>,
}

impl<W: SwitchHalf> Forwarder<W> {
    /// Returns a forwarder whose two ports have this rate, buffer and delay.
    pub(super) fn new(
        port: (Rate, Bytes, Span),
        halves: [W; 2],
        layout: Option<FieldLayout>,
        overhead: u32,
    ) -> Self {
        let ports = halves.map(|half| Port::new(port, half, layout));
        Self { ports, overhead, arrivals: Vec::new(), free: Vec::new() }
    }

    fn port(&mut self, direction: Direction) -> &mut Port<W> {
        &mut self.ports[direction as usize]
    }

    /// Counts a datagram that was received and dropped at once.
    pub(super) fn drop_received(&mut self, direction: Direction, cause: Cause) {
        let counters = &mut self.port(direction).counters;
        counters.received += 1;
        counters.drop_one(cause);
    }

    /// Counts datagrams that the kernel dropped before the switch could receive them.
    pub(super) fn not_received(&mut self, direction: Direction, count: u64) {
        self.port(direction).counters.drops[Cause::NotReceived as usize] += count;
    }

    /// Adds a datagram that arrives. It takes effect with the next [`Forwarder::advance`], so that the datagrams of
    /// several sockets can be received in any order.
    pub(super) fn receive(&mut self, received: &Received<'_>) {
        let Received { at, direction, client, tos, ttl, bytes } = *received;
        let Some(ttl) = ttl.checked_sub(1).filter(|ttl| *ttl > 0) else {
            self.drop_received(direction, Cause::Ttl);
            return;
        };
        self.port(direction).counters.received += 1;
        let datagram = self.datagram(client, tos, ttl, bytes);
        self.arrivals.push((at, direction, datagram));
    }

    fn datagram(&mut self, client: u32, tos: u8, ttl: u8, bytes: &[u8]) -> Datagram {
        let mut memory = self.free.pop().unwrap_or_default();
        memory.clear();
        memory.extend_from_slice(bytes);
        // A datagram is shorter than 2^16 bytes.
        let wire_bytes = (bytes.len() as u32 + self.overhead).max(MIN_WIRE_BYTES);
        Datagram { bytes: memory, client, tos, ttl, wire_bytes }
    }

    /// Advances both ports to `now`. First offers the arrivals to the ports, in the order of their times.
    pub(super) fn advance(&mut self, now: Time) {
        let mut arrivals = std::mem::take(&mut self.arrivals);
        arrivals.sort_by_key(|(at, ..)| *at);
        for (at, direction, datagram) in arrivals.drain(..) {
            self.offer(at, direction, datagram);
        }
        self.arrivals = arrivals;
        for direction in Direction::ALL {
            self.port(direction).advance(now);
            self.send_signals(direction);
        }
    }

    fn offer(&mut self, at: Time, direction: Direction, datagram: Datagram) {
        if let Err(dropped) = self.port(direction).offer(at, datagram) {
            self.recycle(dropped);
        }
        self.send_signals(direction);
    }

    /// Sends the signals of a port through the other port to the sources of its packets. Signals have no congestion
    /// fields, so they cause no further signals.
    fn send_signals(&mut self, direction: Direction) {
        while let Some(made) = self.port(direction).signals.pop() {
            let back = direction.opposite();
            let signal = self.datagram(made.client, made.tos & DSCP, TTL, &made.bytes);
            if let Err(dropped) = self.port(back).offer(made.at, signal) {
                self.recycle(dropped);
            }
        }
    }

    /// Returns the latest time for the next [`Forwarder::advance`] if nothing is received until then.
    pub(super) fn next_event(&self) -> Option<Time> {
        self.ports.iter().filter_map(Port::next_event).min()
    }

    /// Takes the next datagram that has reached the end of its link by `now`, with the time at which it did.
    pub(super) fn depart(&mut self, now: Time) -> Option<(Direction, Time, Datagram)> {
        let arrival = |direction: &Direction| self.ports[*direction as usize].next_arrival();
        let due = Direction::ALL.into_iter().filter(|it| arrival(it).is_some_and(|at| at <= now));
        let first = due.min_by_key(|it| arrival(it))?;
        let (at, datagram) = self.port(first).pop()?;
        Some((first, at, datagram))
    }

    /// Records that a departed datagram was sent.
    pub(super) fn on_sent(&mut self, direction: Direction, datagram: Datagram) {
        let counters = &mut self.port(direction).counters;
        counters.sent += 1;
        counters.sent_bytes += u64::from(datagram.wire_bytes);
        self.recycle(datagram);
    }

    /// Records that a departed datagram could not be sent.
    pub(super) fn on_lost(&mut self, direction: Direction, datagram: Datagram, cause: Cause) {
        self.port(direction).counters.drop_one(cause);
        self.recycle(datagram);
    }

    /// Takes back the memory of a datagram for reuse.
    fn recycle(&mut self, datagram: Datagram) {
        self.free.push(datagram.bytes);
    }

    /// Returns the counters since the last call.
    pub(super) fn take_counters(&mut self, now: Time) -> [PortCounters; 2] {
        Direction::ALL.map(|direction| self.port(direction).take_counters(now))
    }
}
