//! The transport that engines run.

/// The transport endpoint of an engine.
pub(super) type Endpoint = apus_transport::Endpoint<apus_algorithms::AlgorithmConfig>;
