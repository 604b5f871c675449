//! The network: every port, link, packet and route of one topology.

mod ahead;
mod control;
mod facts;
pub(crate) mod mail;
mod parts;
mod signals;
mod windows;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use apus_cc::{SwitchHalf, Telemetry};
use apus_units::{HostId, PortId, Time};

use crate::config::PortKind;
use crate::counters::{Counters, DropLog, DropReason};
use crate::event::{FabricEvent, Schedule};
use crate::packet::{Packet, PacketPool, PacketRef};
use crate::pfc::Pfc;
use crate::port::{ClassPort, Env, Port, SharedBuffer};
use crate::routing::{Paths, RouteError, RouteId, RouteTable, opposite};
use crate::topology::Node;

pub use control::ControlError;
use mail::Mailboxes;
pub use signals::Signalling;
use signals::Signals;
pub use windows::Arrived;

/// The result of sending a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The packet is in the host's egress port.
    Accepted,
    /// The packet was dropped.
    Dropped(DropReason),
}

/// The result of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A packet reached its host, which must [`Network::take`] it.
    Delivered {
        /// The host.
        host: HostId,
        /// The packet.
        packet: PacketRef,
    },
    /// A packet moved on, or a port served its queue: no action is required.
    Forwarded,
    /// The packet that arrived at a switch is gone.
    Dropped(DropReason),
}

/// A network of one topology, built by [`Topology::build`](crate::Topology::build). `P` is the
/// user's part of a packet.
///
/// `now` never goes back from one call to the next, and every event due before `now` has been
/// handled.
pub struct Network<P, W> {
    ports: Vec<Port<W>>,
    routes: RouteTable,
    pool: PacketPool<P>,
    counters: Counters,
    drops: DropLog,
    /// By switch.
    shared: Vec<SharedBuffer>,
    paths: Paths,
    /// By link: its ends a and b.
    ends: Vec<(Node, Node)>,
    /// By switch.
    names: Vec<String>,
    /// Buffer in which a path is assembled before it is stored.
    scratch: Vec<PortId>,
    signals: Signals<P>,
    has_class_ports: bool,
    mail: Mailboxes,
    pfc: Option<Box<Pfc>>,
}

impl<P, W: SwitchHalf> Network<P, W> {
    pub(crate) fn assemble(
        ports: Vec<Port<W>>,
        shared: Vec<SharedBuffer>,
        paths: Paths,
        ends: Vec<(Node, Node)>,
        names: Vec<String>,
    ) -> Self {
        Self {
            has_class_ports: ports.iter().any(|port| port.kind() == PortKind::Class),
            ports,
            routes: RouteTable::default(),
            pool: PacketPool::new(),
            counters: Counters::default(),
            drops: DropLog::default(),
            shared,
            paths,
            ends,
            names,
            scratch: Vec::new(),
            signals: Signals::default(),
            mail: Mailboxes::default(),
            pfc: None,
        }
    }

    /// Host `host` hands `packet`, which has a route from that host, to its NIC's egress port.
    #[inline]
    pub fn send<S: Schedule>(
        &mut self,
        now: Time,
        host: HostId,
        packet: Packet<P>,
        schedule: &mut S,
    ) -> Sent {
        self.send_with(now, host, packet, None, schedule)
    }

    /// Sends a packet like [`Network::send`], with the telemetry that an acknowledgement returns if
    /// its fields say so.
    #[inline(always)]
    pub fn send_with<S: Schedule>(
        &mut self,
        now: Time,
        host: HostId,
        mut packet: Packet<P>,
        telemetry: Option<&Telemetry>,
        schedule: &mut S,
    ) -> Sent {
        packet.hop = 0;
        packet.reversed = false;
        let port = self.routes.port(packet.route, 0);
        debug_assert_eq!(port, self.paths.nic(host), "the route of a packet starts at its host");
        self.counters.sent += 1;
        let (bytes, class) = (packet.wire_bytes, packet.class);
        let carries_telemetry = packet.carries_telemetry();
        let packet = self.pool.insert(packet);
        if carries_telemetry {
            self.pool.set_telemetry(packet, telemetry);
        }
        let egress = &mut self.ports[port.index()];
        let offered = match egress.offer_plain(now, packet, bytes, || class, schedule) {
            Some(Ok(())) => Ok(()),
            Some(Err(reason)) => {
                self.discard(port, packet, reason);
                Err(reason)
            }
            None => self.offer(now, port, packet, schedule),
        };
        match offered {
            Ok(()) => Sent::Accepted,
            Err(reason) => Sent::Dropped(reason),
        }
    }

    /// Handles a requested event at its time.
    ///
    /// # Panics
    /// If the fabric did not request the event.
    #[inline(always)]
    pub fn handle<S: Schedule>(
        &mut self,
        now: Time,
        event: FabricEvent,
        schedule: &mut S,
    ) -> Outcome {
        match event {
            FabricEvent::Arrival(port) => return self.arrive(now, port, schedule),
            FabricEvent::Service(port) => {
                let (port, mut env) = self.class_port(port, schedule);
                port.on_service(now, &mut env);
                self.answer_now(now, schedule);
            }
            FabricEvent::Mail(port) => return self.open_mail(now, port, schedule),
            FabricEvent::Held(port) => {
                let (port, mut env) = self.class_port(port, schedule);
                port.on_held(now, &mut env);
            }
            FabricEvent::Wake(port) => {
                let (port, mut env) = self.class_port(port, schedule);
                port.on_wake(now, &mut env);
                self.answer_now(now, schedule);
            }
        }
        Outcome::Forwarded
    }

    #[inline(always)]
    fn arrive<S: Schedule>(&mut self, now: Time, port: PortId, schedule: &mut S) -> Outcome {
        let (packet, peer) = self.ports[port.index()].pop_arrived(now, schedule);
        match peer {
            Node::Host(host) => {
                self.counters.delivered += 1;
                Outcome::Delivered { host, packet }
            }
            Node::Switch(_) => {
                let Some((next, bytes)) = self.pass(packet) else {
                    return Outcome::Dropped(DropReason::Ttl);
                };
                let class = || self.pool.fields(packet).class;
                // Almost all hops.
                let egress = &mut self.ports[next.index()];
                let offered = match egress.offer_plain(now, packet, bytes, class, schedule) {
                    Some(Ok(())) => return Outcome::Forwarded,
                    Some(Err(reason)) => {
                        self.discard(next, packet, reason);
                        Err(reason)
                    }
                    None => self.offer_at_switch(now, next, packet, schedule),
                };
                match offered {
                    Ok(()) => Outcome::Forwarded,
                    Err(reason) => Outcome::Dropped(reason),
                }
            }
        }
    }

    /// A packet passes a switch: the egress port by which it leaves and its wire bytes; `None` if it
    /// was dropped, because it has visited too many.
    #[inline(always)]
    pub fn pass(&mut self, packet: PacketRef) -> Option<(PortId, u32)> {
        let fields = self.pool.fields_mut(packet);
        let bytes = fields.wire_bytes;
        fields.ttl = fields.ttl.saturating_sub(1);
        if fields.ttl == 0 {
            let ingress = if fields.reversed {
                opposite(self.routes.port(fields.route, fields.hop))
            } else {
                self.routes.port(fields.route, fields.hop)
            };
            self.discard(ingress, packet, DropReason::Ttl);
            return None;
        }
        let next = if fields.reversed {
            fields.hop -= 1;
            opposite(self.routes.port(fields.route, fields.hop))
        } else {
            fields.hop += 1;
            self.routes.port(fields.route, fields.hop)
        };
        Some((next, bytes))
    }

    /// Offers a packet that arrived at a switch like [`Network::offer`]; the switch may have to
    /// delay it behind other packets.
    #[inline]
    fn offer_at_switch<S: Schedule>(
        &mut self,
        now: Time,
        port: PortId,
        packet: PacketRef,
        schedule: &mut S,
    ) -> Result<(), DropReason> {
        if self.pfc.is_some()
            && let Err(reason) = self.admit_by_pfc(packet)
        {
            self.discard(port, packet, reason);
            return Err(reason);
        }
        self.offer(now, port, packet, schedule)
    }

    #[inline(never)]
    fn offer<S: Schedule>(
        &mut self,
        now: Time,
        port: PortId,
        packet: PacketRef,
        schedule: &mut S,
    ) -> Result<(), DropReason> {
        let mut env = Env {
            pool: &mut self.pool,
            shared: &mut self.shared,
            counters: &mut self.counters,
            drops: &mut self.drops,
            signals: &mut self.signals.due,
            routes: &self.routes,
            pfc: &mut self.pfc,
            schedule,
        };
        let accepted = self.ports[port.index()].offer(now, packet, &mut env);
        if let Err(reason) = accepted {
            self.refused_by_port(packet);
            self.discard(port, packet, reason);
        }
        self.answer_now(now, schedule);
        accepted
    }

    /// Drops a packet at `port`: the egress port that refuses it, or the one by which it arrived at
    /// the switch where its TTL reaches 0.
    #[cold]
    fn discard(&mut self, port: PortId, packet: PacketRef, reason: DropReason) {
        self.counters.note_drop(reason);
        self.drops.note(port, reason);
        self.pool.take(packet);
    }

    /// Returns the class port and its environment.
    fn class_port<'a, S: Schedule>(
        &'a mut self,
        port: PortId,
        schedule: &'a mut S,
    ) -> (&'a mut ClassPort<W>, Env<'a, P, S>) {
        let env = Env {
            pool: &mut self.pool,
            shared: &mut self.shared,
            counters: &mut self.counters,
            drops: &mut self.drops,
            signals: &mut self.signals.due,
            routes: &self.routes,
            pfc: &mut self.pfc,
            schedule,
        };
        match &mut self.ports[port.index()] {
            Port::Class(port) => (port, env),
            Port::Fifo(_) | Port::Strict(_) => {
                panic!("{port} is not a class port and never requests this event")
            }
        }
    }

    /// Takes a delivered packet out and frees its slot.
    ///
    /// # Panics
    /// If it was already taken out.
    #[inline]
    pub fn take(&mut self, packet: PacketRef) -> Packet<P> {
        self.pool.take(packet)
    }

    /// Frees a delivered packet that its host has read where it is.
    ///
    /// # Panics
    /// If it was already taken out.
    #[inline]
    pub fn release(&mut self, packet: PacketRef) {
        self.pool.release(packet);
    }

    /// Returns the packets in flight and those delivered but not yet taken out.
    #[inline]
    #[must_use]
    pub const fn pool(&self) -> &PacketPool<P> {
        &self.pool
    }

    /// Stores the path of a flow. `key` identifies the flow, the same in both directions; another
    /// `label` draws another path (which may turn out to be the same).
    ///
    /// # Errors
    /// If no path exists.
    pub fn route(
        &mut self,
        src: HostId,
        dst: HostId,
        key: u64,
        label: u32,
    ) -> Result<RouteId, RouteError> {
        self.paths.find(src, dst, key, label, &mut self.scratch)?;
        Ok(self.routes.insert(&self.scratch))
    }

    /// Stores the path of a flow like [`Network::route`], for flows that change their path during a
    /// simulation: equal paths are stored once, so that the memory of routes is bounded.
    ///
    /// # Errors
    /// If no path exists.
    pub fn reroute(
        &mut self,
        src: HostId,
        dst: HostId,
        key: u64,
        label: u32,
    ) -> Result<RouteId, RouteError> {
        self.paths.find(src, dst, key, label, &mut self.scratch)?;
        Ok(self.routes.insert_shared(&self.scratch))
    }
}
