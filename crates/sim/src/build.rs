//! From a plan to a network, and what can be wrong with it.

use std::{fmt, io};

use apus_fabric::{ControlError, Network, RouteError, TopologyError};
use apus_wire::Header;

use crate::plan::Plan;

/// A plan that cannot be simulated.
#[derive(Debug)]
pub enum PlanError {
    /// The topology is wrong.
    Topology(TopologyError),
    /// Two hosts of a connection cannot reach each other.
    Route(RouteError),
    /// Ports cannot pause as the plan says.
    Pfc(ControlError),
    /// The system starts no thread for a part of the network.
    Thread(io::Error),
    /// A port with a fault is not made for it.
    Fault(ControlError),
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Topology(error) => error.fmt(f),
            Self::Route(error) => error.fmt(f),
            Self::Pfc(error) | Self::Fault(error) => error.fmt(f),
            Self::Thread(error) => {
                write!(f, "the system starts no thread ({error}); fewer threads may do")
            }
        }
    }
}

impl std::error::Error for PlanError {}

/// The network of a plan, without hosts.
pub(crate) fn build_network(plan: &Plan) -> Result<Network<Header>, PlanError> {
    let network = plan.topology.build_at_least(plan.seed, plan.least_ports);
    let mut network = network.map_err(PlanError::Topology)?;
    if let Some(pfc) = &plan.pfc {
        network.enable_pfc(pfc.clone()).map_err(PlanError::Pfc)?;
    }
    for fault in &plan.faults {
        network.check_variable(fault.port).map_err(PlanError::Fault)?;
    }
    Ok(network)
}
