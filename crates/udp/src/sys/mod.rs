//! Linux interfaces that the standard library lacks: batches of datagrams with their control messages, segmentation
//! offload in both directions, and timestamps.
//!
//! This folder is the only place of the crate with `unsafe`: system calls take pointers. Each call is wrapped so that
//! its callers need no `unsafe`.

mod address;
mod control;
mod departures;
mod forks;
mod reach;
mod receive;
mod send;
mod socket;
mod sockets;

pub(crate) use departures::Departure;
pub use forks::forks;
pub(crate) use reach::{Reach, Unreachable};
pub(crate) use receive::{Meta, ReceiveBuffers};
pub(crate) use send::Outgoing;
pub(crate) use socket::{Families, Socket, SocketOptions, TTL, has_ipv6, source_to};
pub(crate) use sockets::Sockets;
