//! Signals of switches to the sources of packets, sent as separate packets.
//!
//! The switch makes a small packet and sends it back along the path that the original packet has
//! taken so far (Bolt §3.1, §4.1: the mirrored packet is trimmed, its addresses are swapped, and it
//! leaves by the port at which the original arrived).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use apus_cc::{CongestionHeader, Signal, SwitchHalf};
use apus_units::{ClassId, HostId, Time};

use super::Network;
use super::mail::Mail;
use crate::event::Schedule;
use crate::packet::{Packet, PacketRef, Way};
use crate::port::InFlight;
use crate::routing::opposite;
use crate::topology::Node;

/// How signals are sent.
pub struct Signalling<P> {
    /// Makes the payload of a signal from the payload of the packet that met congestion.
    pub payload: fn(&P, &Signal) -> P,
    /// Class of a signal; the class of the packet if `None`.
    pub class: Option<ClassId>,
    /// Wire bytes of a signal.
    pub wire_bytes: u32,
    /// Whether the signal reaches the source at once and uses no bandwidth, for studies of the cost
    /// of its delay (Bolt §2.1.1). Source and switch must belong to the same part.
    pub instant: bool,
}

impl<P> Clone for Signalling<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Signalling<P> {}

/// Signals due, and how they are sent.
pub(crate) struct Signals<P> {
    /// Due signals; the call that adds them also removes them.
    pub(crate) due: Vec<(PacketRef, Signal)>,
    /// Signals of a host's own port, to be delivered to that host: the destination of the data
    /// packet, and the payload.
    own: VecDeque<(HostId, P)>,
    travel: Option<Signalling<P>>,
}

impl<P> Default for Signals<P> {
    fn default() -> Self {
        Self { due: Vec::new(), own: VecDeque::new(), travel: None }
    }
}

impl<P, W: SwitchHalf> Network<P, W> {
    /// Sets how signals of switches are sent. Without this call, a network whose switch halves
    /// signal panics.
    pub fn answer_signals(&mut self, signalling: Signalling<P>) {
        self.common.signals.travel = Some(signalling);
    }

    /// Returns a signal that the port of a host made for a packet that the host has just sent, with
    /// the destination of that packet. Such a signal is not sent as a packet: call this after each
    /// [`Network::send`].
    #[inline]
    pub fn take_own_signal(&mut self) -> Option<(HostId, P)> {
        self.common.signals.own.pop_front()
    }

    /// Sends the signals and the pauses that the last port requested.
    #[inline]
    pub(super) fn answer_now<S: Schedule>(&mut self, now: Time, schedule: &mut S) {
        if !self.common.signals.due.is_empty() {
            self.send_signals(now, schedule);
        }
        if self.common.pfc.is_some() {
            self.send_pauses(now, schedule);
        }
    }

    #[cold]
    fn send_signals<S: Schedule>(&mut self, now: Time, schedule: &mut S) {
        // In the order of the signals. A signal that joins a port may let another packet leave it,
        // whose signal is sent first. The signal itself causes no further signal: halves ignore
        // packets without fields of their algorithm.
        let mut due = core::mem::take(&mut self.common.signals.due);
        for (packet, signal) in due.drain(..) {
            self.send_signal(now, packet, &signal, schedule);
        }
        debug_assert!(self.common.signals.due.is_empty(), "a port has answered");
        self.common.signals.due = due; // keeps its memory for reuse
    }

    fn send_signal<S: Schedule>(
        &mut self,
        now: Time,
        packet: PacketRef,
        signal: &Signal,
        schedule: &mut S,
    ) {
        let travel = self.common.signals.travel.expect("`answer_signals` says how signals travel");
        let fields = *self.common.pool.fields(packet);
        debug_assert!(
            fields.way != Way::BACK,
            "only data meets congestion, and it is not reversed"
        );
        let payload = (travel.payload)(self.common.pool.payload(packet), signal);
        let Some(back) = fields.hop.checked_sub(1) else {
            // A port of the packet's own host: the host learns of it without a packet.
            self.common.signals.own.push_back((fields.dst, payload));
            return;
        };
        let port = opposite(self.common.routes.port(fields.route, back));
        debug_assert!(matches!(self.port_ends(port).0, Node::Switch(_)));
        let made = Packet {
            wire_bytes: travel.wire_bytes,
            route: fields.route,
            src: fields.dst,
            dst: fields.src,
            hop: back,
            ttl: Packet::<P>::DEFAULT_TTL,
            way: Way::BACK,
            class: travel.class.unwrap_or(fields.class),
            congestion: CongestionHeader::default(),
            payload,
        };
        self.common.counters.sent += 1;
        self.common.counters.signals += 1;
        self.common.counters.signal_bytes += u64::from(travel.wire_bytes);
        let made = self.common.pool.insert(made);
        if travel.instant {
            let to_source = opposite(self.common.routes.port(fields.route, 0));
            self.mail.send(now, to_source, Mail::Signal(made), schedule);
            return;
        }
        // A signal that finds no room is counted as a drop; the next data packet causes another
        // one.
        let made = InFlight { arrives: now, packet: made, bytes: travel.wire_bytes };
        _ = self.enter_slowly(port, &made, schedule);
    }
}
