//! Columns of `faults.csv`.

use apus_cc::AlgorithmFactory;
use apus_fabric::Network;
use apus_units::{PortId, Time};
use apus_wire::Header;
use serde::Serialize;

use super::declare::{row, us};
use crate::detours::detours;
use crate::plan::{Fault, FaultKind, Plan};

row! {
    "faults.csv"
    /// One row per fault of a link in one direction, per link that switches avoid, and per flow that
    /// changes its path, in the order in which they begin.
    #[derive(Clone, Debug, Default, PartialEq, Serialize)]
    pub struct FaultRecord {
        /// down, slow, loss, corrupt, reorder; avoided-local or avoided-global for a link that the switches at
        /// its ends, or all, avoid; or reroute of a flow
        pub kind: &'static str = "-",
        /// the link by its egress port, both ends of an avoided link, or the flow
        pub subject: String = "key column",
        /// when it begins
        pub at_us: f64 = "-",
        /// when it is due to end, which may be in the drain; empty if it does not end
        pub until_us: Option<f64> = "-",
        /// probability that a packet is lost, corrupted or held back
        pub probability: Option<f64> = "per packet",
        /// by how long packets are held back
        pub delay_us: Option<f64> = "-",
        /// rate of a slow link over its own
        pub rate_fraction: Option<f64> = "-",
        /// packets lost at the port for this reason while it lasted, to the end of the measured phase: `down`, `loss`
        /// and `corrupt` themselves, of a slow link those without room. A packet in service when the link fails counts
        /// at once; it is dropped when its last bit would leave
        pub lost_packets: Option<u64> = "-",
        /// when the load of the ports beside was even again: those of the same switch whose links lead as far
        /// from the hosts and are up. It is that of the first of 3 intervals of samples in which their bytes
        /// differ, over their mean, by no more than in any before the fault, or 10 %. Only of a recorded run
        /// that samples these ports, and of the first 256 faults, if they are down or slow
        pub even_again_us: Option<f64> = "-",
        /// flows of which an op that was outstanding while it lasted was at least twice as slow, by its slowdown, as the median of
        /// the ops outside these faults (a slowdown of 1 if there is none), or had not ended. Only of a recorded run, and of the first
        /// 64 faults that do not last the whole measured phase
        pub slowed_flows: Option<u64> = "-",
        /// the flow with the slowest of these ops, by its hosts; ops that were as slow already when it began come last
        pub slowed_most: Option<String> = "-",
        /// when the last of these ops ended, or the run
        pub slowed_until_us: Option<f64> = "-",
        /// the switches on the new path of a flow
        pub through: Option<String> = "-",
        ;
        /// Egress port of the link.
        #[serde(skip)]
        pub port: Option<PortId>,
        /// The slowed flows, that of `slowed_most` first; at most 64.
        #[serde(skip)]
        pub slowed: Vec<SlowedFlow>,
        /// Those of `slowed_flows` whose op was as slow already when the fault began.
        #[serde(skip)]
        pub slowed_before: u64,
        /// Index in the faults of the plan.
        #[serde(skip)]
        pub fault: Option<usize>,
    }
}

/// A flow with an op that was slow during a fault.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowedFlow {
    /// Number of the flow.
    pub flow: u32,
    /// Slowdown of the op; infinite if it had not ended.
    pub slowdown: f64,
    /// Whether the op was as slow already when the fault began, for example because it waited for earlier ops of its flow.
    pub before: bool,
}

/// Adds the packets that each fault of the plan has cost.
pub(crate) fn note_lost(records: &mut [FaultRecord], lost: &[Option<u64>]) {
    for record in records {
        record.lost_packets = record.fault.and_then(|fault| lost.get(fault).copied().flatten());
    }
}

/// Returns the faults of a plan that begin within the run, in the order in which they begin.
pub(crate) fn faults_of_plan<F: AlgorithmFactory>(
    plan: &Plan<F>,
    network: &Network<Header, F::Switch>,
) -> Vec<FaultRecord> {
    let end = Time::ZERO + plan.duration;
    let until_us = |until: Time| (until < Time::MAX).then(|| us(until));
    let fault = |(index, fault): (usize, &Fault)| {
        let mut record = FaultRecord {
            subject: network.port_name(fault.port),
            at_us: us(fault.at),
            until_us: until_us(fault.until),
            port: Some(fault.port),
            fault: Some(index),
            ..FaultRecord::default()
        };
        record.kind = match fault.kind {
            FaultKind::Down => "down",
            FaultKind::Slow(fraction) => {
                record.rate_fraction = Some(fraction);
                "slow"
            }
            FaultKind::Loss(p) => {
                record.probability = Some(p);
                "loss"
            }
            FaultKind::Corrupt(p) => {
                record.probability = Some(p);
                "corrupt"
            }
            FaultKind::Reorder(p, delay) => {
                (record.probability, record.delay_us) = (Some(p), Some(delay.as_us_f64()));
                "reorder"
            }
        };
        record
    };
    let faults = plan.faults.iter().enumerate().filter(|(_, fault)| fault.at < end).map(fault);
    let avoided = detours(plan).into_iter().filter(|detour| detour.from < end).map(|detour| {
        let (a, b) = network.port_ends(detour.link);
        FaultRecord {
            kind: if detour.is_global { "avoided-global" } else { "avoided-local" },
            subject: format!("{} <-> {}", network.node_name(a), network.node_name(b)),
            at_us: us(detour.from),
            until_us: until_us(detour.until),
            port: Some(detour.link),
            ..FaultRecord::default()
        }
    });
    let reroutes = plan.connections.iter().enumerate().filter_map(|(index, connection)| {
        let reroute = connection.reroute.as_ref().filter(|reroute| reroute.at < end)?;
        let switches = reroute.path.iter().skip(1);
        let switches: Vec<String> =
            switches.map(|&port| network.node_name(network.port_ends(port).0)).collect();
        Some(FaultRecord {
            kind: "reroute",
            subject: format!("flow {index} ({} -> {})", connection.from, connection.to),
            at_us: us(reroute.at),
            through: Some(switches.join(" / ")),
            ..FaultRecord::default()
        })
    });
    let mut all: Vec<FaultRecord> = faults.chain(avoided).chain(reroutes).collect();
    all.sort_by(|a, b| a.at_us.total_cmp(&b.at_us));
    all
}
