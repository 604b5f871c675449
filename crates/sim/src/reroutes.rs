//! Schedule of connections that change their path, applied between the events of a run.

use apus_cc::AlgorithmFactory;
use apus_fabric::opposite;
use apus_units::{HostId, PortId, Time};

use crate::part::Part;
use crate::plan::{Plan, Reroute};

/// Pending changes; the next change is the last entry.
#[derive(Debug)]
pub(crate) struct Reroutes {
    changes: Vec<(u32, HostId, Reroute)>,
}

impl Reroutes {
    pub(crate) fn new<F: AlgorithmFactory>(plan: &Plan<F>) -> Self {
        let changes = (0..).zip(&plan.connections).filter_map(|(connection, of)| {
            of.reroute.as_ref().map(|reroute| (connection, of.from, (**reroute).clone()))
        });
        let mut changes: Vec<_> = changes.collect();
        changes.sort_by_key(|(connection, _, reroute)| (reroute.at, *connection));
        changes.reverse();
        Self { changes }
    }

    /// Returns the time of the next change, if there is one.
    pub(crate) fn next(&self) -> Option<Time> {
        self.changes.last().map(|(.., reroute)| reroute.at)
    }

    /// Applies the changes that are due at `now`.
    pub(crate) fn apply<F: AlgorithmFactory>(&mut self, now: Time, parts: &mut [Part<F>]) {
        while let Some((connection, from, reroute)) =
            self.changes.pop_if(|(.., reroute)| reroute.at <= now)
        {
            let back: Vec<PortId> = reroute.path.iter().rev().copied().map(opposite).collect();
            for part in &mut *parts {
                part.reroute(connection, from, &reroute.path, &back);
            }
        }
    }
}
