//! Schedule of the faults of links, applied between the events of a run.

use apus_cc::AlgorithmFactory;
use apus_fabric::Impairment;
use apus_units::Time;

use crate::plan::{Fault, FaultKind};
use crate::random::{Purpose, Stream};
use crate::world::World;

/// Pending changes, the next one last.
#[derive(Debug)]
pub(crate) struct Faults {
    changes: Vec<Change>,
    seed: u64,
}

/// Begin or end of a fault.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    at: Time,
    begins: bool,
    index: usize,
    pub(crate) fault: Fault,
}

impl Faults {
    pub(crate) fn new(faults: &[Fault], seed: u64) -> Self {
        let mut changes: Vec<Change> = faults
            .iter()
            .enumerate()
            .flat_map(|(index, &fault)| {
                let change = |at, begins| Change { at, begins, index, fault };
                [change(fault.at, true), change(fault.until, false)]
            })
            .collect();
        // Of changes at the same time, ends come first: another fault of the link may follow.
        changes.sort_by_key(|c| (c.at, c.begins, c.index));
        changes.reverse();
        Self { changes, seed }
    }

    /// Returns the time of the next change, if there is one.
    pub(crate) fn next(&self) -> Option<Time> {
        self.changes.last().map(|change| change.at)
    }

    /// Returns the next change if it is due at `now`.
    pub(crate) fn pop(&mut self, now: Time) -> Option<Change> {
        self.changes.pop_if(|change| change.at <= now)
    }

    /// Applies a change in the part of the network that simulates the port.
    pub(crate) fn apply<F: AlgorithmFactory>(&self, change: &Change, world: &mut World<F>) {
        let port = change.fault.port;
        // A stream per fault.
        let seed = Stream::new(self.seed, Purpose::Fault, change.index as u64).below(u64::MAX);
        let impairment = match change.fault.kind {
            FaultKind::Down => None,
            FaultKind::Loss(p) => Some(Impairment::loss(p, seed)),
            FaultKind::Corrupt(p) => Some(Impairment::corruption(p, seed)),
            FaultKind::Reorder(p, delay) => Some(Impairment::reordering(p, delay, seed)),
        };
        let (now, is_down) = (change.at, impairment.is_none());
        let (network, mut scheduler) = world.network();
        let changed = if is_down {
            network.set_link_up(now, port, !change.begins, &mut scheduler)
        } else {
            let impairment = impairment.filter(|_| change.begins);
            network.set_impairment(now, port, impairment, &mut scheduler)
        };
        debug_assert!(
            changed.is_ok(),
            "a plan whose faults its ports cannot have is no run: {changed:?}"
        );
    }
}
