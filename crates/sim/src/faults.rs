//! Schedule of the faults of links, applied between the events of a run, and their list in the
//! results.

use apus_cc::AlgorithmFactory;
use apus_fabric::{Impairment, Network};
use apus_units::{PortId, Time};
use apus_wire::Header;
use serde::Serialize;

use crate::columns::row;
use crate::plan::{Fault, FaultKind, Plan};
use crate::random::{Purpose, Stream};
use crate::world::World;

row! {
    "faults.csv"
    /// One row per fault of a link in one direction and per flow that changes its path, in the
    /// order in which they begin.
    #[derive(Clone, Debug, PartialEq, Serialize)]
    pub struct FaultRecord {
        /// down, loss, corrupt, reorder, or reroute of a flow
        pub kind: &'static str = "-",
        /// the link by its egress port, or the flow
        pub subject: String = "key column",
        /// when it begins
        pub at_us: f64 = "-",
        /// when it is due to end, which may be in the drain; empty if it does not end
        pub until_us: Option<f64> = "-",
        /// probability that a packet is lost, corrupted or held back
        pub probability: Option<f64> = "per packet",
        /// by how long packets are held back
        pub delay_us: Option<f64> = "-",
        /// the switches on the new path of a flow
        pub through: Option<String> = "-",
        ;
        /// Egress port of the link.
        #[serde(skip)]
        pub port: Option<PortId>,
    }
}

/// The faults of a plan that begin within the run, in the order in which they begin.
pub(crate) fn of_plan<F: AlgorithmFactory>(
    plan: &Plan<F>,
    network: &Network<Header, F::Switch>,
) -> Vec<FaultRecord> {
    let us = |time: Time| time.as_ps() as f64 * 1e-6;
    let end = Time::ZERO + plan.duration;
    let fault = |fault: &Fault| {
        let (kind, probability, delay) = match fault.kind {
            FaultKind::Down => ("down", None, None),
            FaultKind::Loss(p) => ("loss", Some(p), None),
            FaultKind::Corrupt(p) => ("corrupt", Some(p), None),
            FaultKind::Reorder(p, delay) => ("reorder", Some(p), Some(delay)),
        };
        FaultRecord {
            kind,
            subject: network.port_name(fault.port),
            at_us: us(fault.at),
            until_us: (fault.until < Time::MAX).then(|| us(fault.until)),
            probability,
            delay_us: delay.map(|delay| delay.as_us_f64()),
            through: None,
            port: Some(fault.port),
        }
    };
    let faults = plan.faults.iter().filter(|fault| fault.at < end).map(fault);
    let reroutes = plan.connections.iter().enumerate().filter_map(|(index, connection)| {
        let reroute = connection.reroute.as_ref().filter(|reroute| reroute.at < end)?;
        let switches = reroute.path.iter().skip(1);
        let switches: Vec<String> =
            switches.map(|&port| network.node_name(network.port_ends(port).0)).collect();
        Some(FaultRecord {
            kind: "reroute",
            subject: format!("flow {index} ({} -> {})", connection.from, connection.to),
            at_us: us(reroute.at),
            until_us: None,
            probability: None,
            delay_us: None,
            through: Some(switches.join(" / ")),
            port: None,
        })
    });
    let mut all: Vec<FaultRecord> = faults.chain(reroutes).collect();
    all.sort_by(|a, b| a.at_us.total_cmp(&b.at_us));
    all
}

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
