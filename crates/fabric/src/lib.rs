//! Links, ports, switches, routing and topologies as passive parts.
//!
//! The fabric does no I/O, reads no clock, draws no random number and holds no queue of events. Its
//! user (the simulator, later a software switch) owns the clock: it hands packets in with
//! [`Network::send`], keeps the events that the fabric asks for through [`Schedule`], and gives each
//! back through [`Network::handle`] when its time has come. The payload `P` of a packet belongs to
//! the user; the fabric never looks at it.
//!
//! # What a port does
//!
//! Every egress port has one link behind it, with a rate and a propagation delay. Ports store and
//! forward: a packet accepted at `now` has its last bit on the link at
//! `max(now, busy_until) + rate.serialization_time(wire_bytes)` (its *departure*) and is handled by
//! the peer at departure + propagation delay, plus the pipeline latency of the peer if that is a
//! switch (its *arrival*).
//!
//! The *occupancy* of a port is made of whole packets: every accepted packet whose departure lies
//! after now, the packet in service included. A departure at exactly now counts as gone.
//!
//! There are three kinds of port, chosen from the [`PortConfig`] and never by hand ([`PortKind`]):
//!
//! * a FIFO port has one class, its own buffer, and nothing that could change a departure once it is
//!   known. It computes the departure when the packet comes and needs one event per hop;
//! * a strict port is the same with several classes, each of another priority. What departs depends on
//!   what comes meanwhile, so it decides when it is touched next: when a packet comes, or reaches the
//!   end of the link. It needs one event per hop too;
//! * a class port has all that can be configured: classes that share a priority, pausing, a rate
//!   limit, a shared buffer, switch halves that see packets leave, a variable rate or failures. It needs
//!   a service event besides for each packet behind which another waits, or for every packet if its
//!   link can be stopped or its memory is shared.
//!
//! Where several apply they agree to the picosecond (`tests/it/differential.rs`).
//!
//! # Events
//!
//! For each port and kind of event at most one is pending at any time, it is never moved to another
//! time and never cancelled; see [`FabricEvent`].
//!
//! # Example
//!
//! ```
#![doc = include_str!("../examples/star.rs")]
//! ```
#![no_std]

extern crate alloc;

mod config;
mod counters;
mod event;
mod impairment;
mod network;
mod packet;
mod pfc;
mod port;
mod routing;
mod topology;

pub use config::{Buffer, ClassConfig, PortConfig, PortKind, RateLimit};
pub use counters::{ClassCounters, Count, Counters, DropReason, Drops, PortCounters};
pub use event::{FabricEvent, Schedule};
pub use impairment::Impairment;
pub use network::{Arrived, ControlError, Network, Outcome, Sent, Signalling};
pub use packet::{Fields, Packet, PacketPool, PacketRef, Transit};
pub use pfc::PfcConfig;
pub use routing::{RouteError, RouteId, opposite};
pub use topology::{LinkSpec, Node, SwitchSpec, Tier, Topology, TopologyError};
