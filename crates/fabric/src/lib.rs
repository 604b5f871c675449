//! Links, ports, switches, routing and topologies as passive components.
//!
//! The fabric does no I/O, reads no clock, uses random numbers only from seeded streams and holds
//! no queue of events. Its user (the simulator, later a software switch) owns the clock. The user
//! hands packets in with [`Network::send`], stores the events that the fabric requests through
//! [`Schedule`], and returns each one through [`Network::handle`] at its time. The payload `P` of a
//! packet belongs to the user; the fabric never reads it.
//!
//! # Ports
//!
//! Every egress port has one link behind it, with a rate and a propagation delay. Ports store and
//! forward: a packet accepted at `now` has its last bit on the link at
//! `max(now, busy_until) + rate.serialization_time(wire_bytes)` (its *departure*) and is handled by
//! the peer at departure + propagation delay, plus the pipeline latency of the peer if that is a
//! switch (its *arrival*).
//!
//! The *occupancy* of a port consists of whole packets: every accepted packet whose departure is
//! later than now, the packet in service included. A packet that departs at exactly now is not
//! counted.
//!
//! There is one type of port: a link, its counters, a buffer, and classes with their order of
//! service. The kind of a port ([`PortKind`]) follows from its [`PortConfig`] and determines how
//! the port finds the departures of packets:
//!
//! * a FIFO port has one class, its own buffer, and nothing that could change a departure once it
//!   is known. It computes the departure when the packet arrives and needs one event per hop;
//! * a lazy port has several classes, in strict priority or with weights, may trim packets, and is
//!   otherwise like a FIFO port. The order of departures depends on later arrivals. The port therefore
//!   chooses packets when it is next used: when a packet arrives, or reaches the end of the link. It
//!   also needs one event per hop;
//! * a port served by events supports every option: pausing, a rate limit, a shared buffer, switch
//!   halves that act on dequeue, a variable rate or failures. It needs an additional service event for
//!   each packet behind which another is queued, or for every packet if its link can be stopped or its
//!   memory is shared.
//!
//! Where several kinds are possible, they give equal results to the picosecond
//! (`tests/it/differential.rs`).
//!
//! # Events
//!
//! For each port and kind of event at most one event is pending at any time. A pending event is
//! never moved to another time, and cancelled only when a link loses the packets on it; see
//! [`FabricEvent`].
//!
//! # Example
//!
//! One packet through a switch; the event queue is a sorted map:
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
mod scheduler;
mod topology;

pub use config::{Buffer, ClassConfig, PortConfig, PortKind, RateLimit, Trim};
pub use counters::{ClassCounters, Count, Counters, DropReason, Drops, PortCounters};
pub use event::{FabricEvent, Flight, Leads, Schedule};
pub use impairment::Impairment;
pub use network::{ControlError, Network, Outcome, RemovePayload, Sent, Signalling};
pub use packet::{Fields, Packet, PacketPool, PacketRef, Transit, Way};
pub use pfc::PfcConfig;
pub use port::InFlight;
pub use routing::{Avoided, PathSet, Rehash, RouteError, RouteId, Terminal, opposite};
pub use scheduler::SchedulerKind;
pub use topology::{
    LinkSpec, MAX_HOST_PORTS, Node, Rails, SwitchSpec, Tier, Topology, TopologyError,
    ports_of_hosts,
};
