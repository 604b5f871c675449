//! The memory of a simulation, for estimates before a run.

use std::mem::size_of;

use apus_cc::AlgorithmFactory;
use apus_transport::memory::idle_flow_bytes;

use crate::application::BYTES_PER_SOURCE;
use crate::host::HostFlow;
use crate::metrics::Connection;
use crate::plan::ConnectionPlan;

/// Bytes that a connection without ops takes on both of its hosts, in its plan and in the metrics. The memory
/// of its algorithm, its measurements and its routes is not included.
#[must_use]
pub const fn idle_connection_bytes<F: AlgorithmFactory>() -> usize {
    size_of::<ConnectionPlan<F>>()
        + 2 * (idle_flow_bytes::<F>() + size_of::<HostFlow>())
        + BYTES_PER_SOURCE
        + size_of::<Connection>()
}

#[cfg(test)]
mod tests {
    use apus_algorithms::AlgorithmConfig;

    use super::*;

    /// A million connections are a million plans and sources, and two million flows.
    #[test]
    fn a_connection_without_ops_takes_little_beside_its_flows() {
        let sizes =
            [size_of::<ConnectionPlan<AlgorithmConfig>>(), BYTES_PER_SOURCE, size_of::<HostFlow>()];
        assert!(
            sizes.iter().zip([96, 88, 20]).all(|(size, most)| *size <= most),
            "{sizes:?} bytes"
        );
    }
}
