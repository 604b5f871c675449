//! Memory of flows, for estimates before any flow is opened.

use core::mem::size_of;

use apus_cc::AlgorithmFactory;

use crate::flow::Flow;
use crate::send::BYTES_PER_PACKET;
use crate::streams::Stream;
use crate::wheel;

/// Packets in flight of a typical busy flow. deviation: no source; among many flows windows are
/// small, and a ring of 8 packets is the smallest that a few of them need.
const PACKETS_IN_FLIGHT: usize = 8;

/// Returns the bytes of memory of one open flow at one of its two endpoints, with its timer, while it is idle.
#[must_use]
pub const fn idle_flow_bytes<F: AlgorithmFactory>() -> usize {
    size_of::<Flow<F>>() + wheel::BYTES_PER_KEY
}

/// Returns the bytes that the sending endpoint of a flow takes in addition while `ops` ops and a
/// few packets are outstanding.
#[must_use]
pub const fn busy_flow_bytes(ops: u32) -> u64 {
    // The capacity of a ring is a power of two.
    let places = (ops as u64).next_power_of_two();
    places * size_of::<Stream>() as u64 + (PACKETS_IN_FLIGHT * BYTES_PER_PACKET) as u64
}
