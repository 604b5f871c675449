//! The memory of a simulation, for estimates before a run.

use std::mem::size_of;

use apus_transport::memory::IDLE_FLOW_BYTES;

use crate::application::BYTES_PER_SOURCE;
use crate::host::HostFlow;
use crate::metrics::Connection;
use crate::plan::ConnectionPlan;

/// Bytes of a connection without ops on both of its hosts, in its plan and in the metrics. The memory
/// of its algorithm, of its measurements and of its routes is not included.
pub const IDLE_CONNECTION_BYTES: usize = size_of::<ConnectionPlan>()
    + 2 * (IDLE_FLOW_BYTES + size_of::<HostFlow>())
    + BYTES_PER_SOURCE
    + size_of::<Connection>();
