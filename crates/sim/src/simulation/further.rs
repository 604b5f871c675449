//! Ops of open loops that are not in the plan. Their hosts get them in stretches of time: ops of streamed
//! traces during the run, ops of other loops during the drain.

use std::collections::BTreeMap;

use apus_cc::AlgorithmFactory;
use apus_units::Time;

use super::Simulation;
use crate::error::RunError;
use crate::plan::{FurtherOps, NextOps, OpArrival};

/// Position of the source of a connection's ops: part, host of the part, source of the host.
type Seat = (u32, u32, u32);

/// Remaining ops of open loops.
pub(super) struct Further {
    next: NextOps,
    /// By connection: its source.
    seats: Vec<Seat>,
}

impl<F: AlgorithmFactory> Simulation<F> {
    /// Returns the reader of the further ops of all connections, with the sources that submit them.
    pub(super) fn begin_further(&self, ops: &dyn FurtherOps<F>) -> Further {
        let next = ops.begin(&self.plan.connections);
        let mut seats = vec![(0, 0, 0); self.plan.connections.len()];
        for (part, in_part) in (0..).zip(&self.parts) {
            for (place, host) in (0..).zip(&in_part.hosts) {
                for source in 0..host.application.sources() {
                    let flow = host.application.flow_of(source);
                    let connection = host.flows[flow.index()].connection as usize;
                    // The source of answers is at the other end and is no open loop.
                    if self.plan.connections[connection].from == host.id {
                        seats[connection] = (part, place, source as u32);
                    }
                }
            }
        }
        Further { next, seats }
    }

    /// Passes the ops that arrive before `until` to their hosts.
    ///
    /// # Errors
    /// If the ops cannot be read.
    pub(super) fn extend_loops(
        &mut self,
        further: &mut Further,
        until: Time,
    ) -> Result<(), RunError> {
        let mut of_source: BTreeMap<Seat, Vec<OpArrival>> = BTreeMap::new();
        for (connection, arrival) in (further.next)(until).map_err(RunError::new)? {
            of_source.entry(further.seats[connection as usize]).or_default().push(arrival);
        }
        let now = self.now();
        for ((part, host, source), more) in of_source {
            let part = &mut self.parts[part as usize];
            part.hosts[host as usize].extend(now, source as usize, more, &mut part.world);
        }
        Ok(())
    }
}
