//! The memory of a simulation, for estimates before a run.

use std::mem::size_of;

use apus_cc::AlgorithmFactory;
use apus_transport::memory::idle_flow_bytes;

use crate::application::BYTES_PER_SOURCE;
use crate::host::HostFlow;
use crate::metrics::Connection;
use crate::plan::ConnectionPlan;

/// Bytes of a connection without ops on both of its hosts, in its plan and in the metrics. The memory
/// of its algorithm, of its measurements and of its routes is not included.
#[must_use]
pub const fn idle_connection_bytes<F: AlgorithmFactory>() -> usize {
    size_of::<ConnectionPlan<F>>()
        + 2 * (idle_flow_bytes::<F>() + size_of::<HostFlow>())
        + BYTES_PER_SOURCE
        + size_of::<Connection>()
}
