//! The set of algorithms that scenarios run with: the simulator's types with their halves.

use apus_algorithms::{AlgorithmConfig, BuiltInSwitch};

/// A plan with the algorithms of a registry.
pub type Plan = apus_sim::plan::Plan<AlgorithmConfig>;
/// A connection of a [`Plan`].
pub type ConnectionPlan = apus_sim::plan::ConnectionPlan<AlgorithmConfig>;
/// A simulation of a [`Plan`].
pub type Simulation = apus_sim::Simulation<AlgorithmConfig>;
/// A topology whose ports can have the switch halves of the built-in algorithms.
pub type Topology = apus_fabric::Topology<BuiltInSwitch>;
/// A tier of links of a [`Topology`].
pub type Tier = apus_fabric::Tier<BuiltInSwitch>;
/// A link of a [`Topology`].
pub type LinkSpec = apus_fabric::LinkSpec<BuiltInSwitch>;
/// A port of a [`Topology`].
pub type PortConfig = apus_fabric::PortConfig<BuiltInSwitch>;
/// A traffic class of a port.
pub type ClassConfig = apus_fabric::ClassConfig<BuiltInSwitch>;
