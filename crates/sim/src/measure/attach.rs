//! Where the accumulators of named workloads are in a network in parts.

use std::sync::Arc;

use apus_fabric::{Network, RouteError};
use apus_wire::Header;

use super::workload::{Member, WorkloadMetrics};
use crate::part::Part;
use crate::plan::Plan;
use crate::slowdown::Ideal;

impl WorkloadMetrics {
    /// Gives every part of the network its accumulators, if any workload has a name.
    ///
    /// # Errors
    /// If the hosts of a connection cannot reach each other.
    pub(crate) fn attach(
        plan: &Plan,
        network: &mut Network<Header>,
        parts: &mut [Part],
    ) -> Result<(), RouteError> {
        if plan.measures.workloads.is_empty() {
            return Ok(());
        }
        let members = plan.connections.iter().enumerate().map(|(index, connection)| {
            let ideal = Ideal::of(network, connection.data_ends(), index as u64, plan.sizes)?;
            Ok(Member { workload: connection.workload, ideal })
        });
        let members: Arc<[Member]> = members.collect::<Result<_, _>>()?;
        for part in parts {
            part.world.workloads = Some(Box::new(Self::new(plan, Arc::clone(&members))));
        }
        Ok(())
    }
}
