//! What to simulate, as plain data: what a scenario says once it is read and checked.

use apus_cc::registry::AlgorithmConfig;
use apus_fabric::Topology;
use apus_transport::{EndpointConfig, OpKind};
use apus_units::{Bytes, ClassId, HostId, Span, Time};

use crate::host_model::HostModel;
use crate::world::PacketSizes;

/// A run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The fabric.
    pub topology: Topology,
    /// Give every port a service event per packet, also where one event per hop would do.
    pub force_class_ports: bool,
    /// Sizes of packets on the wire.
    pub sizes: PacketSizes,
    /// Every host.
    pub host: HostModel,
    /// Every transport endpoint.
    pub endpoint: EndpointConfig,
    /// The connections, in the order in which results list them.
    pub connections: Vec<ConnectionPlan>,
    /// Simulated time from the start to the end.
    pub duration: Span,
    /// Measurements count from here.
    pub warmup: Span,
    /// Measure each connection's rate over intervals of this length.
    pub sample_interval: Option<Span>,
    /// Compare rates with the fair share from this long after each change of the set of active
    /// connections.
    pub fair_share_after: Option<Span>,
    /// Fixes everything that is random.
    pub seed: u64,
}

/// One connection: a closed loop of ops from one host to another.
#[derive(Clone, Debug)]
pub struct ConnectionPlan {
    /// The host that submits ops.
    pub from: HostId,
    /// Its peer.
    pub to: HostId,
    /// When the first ops are submitted.
    pub start: Time,
    /// No op is submitted from here on.
    pub stop: Time,
    /// What an op does.
    pub kind: OpKind,
    /// Payload of an op.
    pub size: Bytes,
    /// Ops under way at a time.
    pub outstanding: u32,
    /// Algorithm of both directions.
    pub algorithm: AlgorithmConfig,
    /// Traffic class.
    pub class: ClassId,
}
