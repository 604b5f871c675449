//! Accumulators of named workloads in a divided network.

use std::sync::Arc;

use apus_cc::AlgorithmFactory;
use apus_fabric::RouteError;

use super::workload::{Member, WorkloadMetrics};
use crate::groups::GroupPlan;
use crate::op_times::{Groups, OpTimes};
use crate::part::Part;
use crate::plan::Plan;
use crate::slowdown::Ideal;

impl WorkloadMetrics {
    /// Gives every part of the network the accumulators for the times of its ops and, if there are named
    /// workloads, for these.
    ///
    /// # Errors
    /// If the hosts of a connection cannot reach each other.
    pub(crate) fn attach<F: AlgorithmFactory>(
        plan: &Plan<F>,
        parts: &mut [Part<F>],
    ) -> Result<(), RouteError> {
        let (groups, workloads) = (Groups::of(plan), GroupPlan::new(plan));
        if plan.measures.workloads.is_empty() {
            for part in parts {
                *part.world.op_times = OpTimes::new(plan, Arc::new([]), &groups, &workloads);
            }
            return Ok(());
        }
        let members = plan.connections.iter().enumerate().map(|(index, connection)| {
            let ideal = Ideal::of(
                &parts[0].world.network,
                plan.data_terminals(connection),
                (index as u64, connection.spread.is_some()),
                plan.sizes,
            )?;
            Ok(Member { workload: connection.workload, ideal })
        });
        let members: Arc<[Member]> = members.collect::<Result<_, _>>()?;
        for part in parts {
            *part.world.op_times = OpTimes::new(plan, Arc::clone(&members), &groups, &workloads);
            part.world.observes_sent = true;
            part.world.workloads = Some(Box::new(Self::new(plan, Arc::clone(&members))));
        }
        Ok(())
    }
}
