//! Columns of `faults.csv`.

use apus_cc::AlgorithmFactory;
use apus_fabric::Network;
use apus_units::{PortId, Time};
use apus_wire::Header;
use serde::Serialize;

use super::declare::{row, us};
use crate::plan::{Fault, FaultKind, Plan};

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

/// Returns the faults of a plan that begin within the run, in the order in which they begin.
pub(crate) fn faults_of_plan<F: AlgorithmFactory>(
    plan: &Plan<F>,
    network: &Network<Header, F::Switch>,
) -> Vec<FaultRecord> {
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
