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
    /// One row per fault of a link in one direction, per link that switches avoid, and per flow that changes its path. Rows
    /// are in the order in which these begin.
    #[derive(Clone, Debug, Default, PartialEq, Serialize)]
    pub struct FaultRecord {
        /// `down`, `slow`, `loss`, `corrupt` or `reorder` for a fault of a link; `avoided-local` for a link that the
        /// switches at its ends avoid; `avoided-global` for a link that all switches avoid; `reroute` for a flow that
        /// changes its path
        pub kind: &'static str = "-",
        /// egress port of the faulty link, both ends of an avoided link, or the flow
        pub subject: String = "key column",
        /// time at which the fault, the avoidance or the reroute begins
        pub at_us: f64 = "-",
        /// time of the scheduled end, which may be in the drain; empty if there is no end
        pub until_us: Option<f64> = "-",
        /// probability that the fault loses, corrupts or holds back a packet
        pub probability: Option<f64> = "per packet",
        /// time for which the fault holds back a packet
        pub delay_us: Option<f64> = "-",
        /// rate of a slow link / rate of this link without the fault
        pub rate_fraction: Option<f64> = "-",
        /// packets lost at the port during the fault, up to the end of the measured phase. For `down`, `loss` and
        /// `corrupt`: packets that the fault itself lost; for `slow` and `reorder`: packets dropped for lack of
        /// buffer memory. If a packet is in service when the link fails, it counts at once, but the port drops it
        /// when its last bit would leave
        pub lost_packets: Option<u64> = "-",
        /// time from which the load of the parallel ports was even again. These are the ports of the same switch, the
        /// faulty port included, whose links are up and lead to nodes of the same tier. The load is even from the
        /// start of the first 3 consecutive sample intervals in which the relative difference of the ports' bytes,
        /// (maximum - minimum) / mean, is at most its largest value before the fault, or at most 10 % if that is
        /// larger. Only in a recorded run that samples these ports, and only for `down` and `slow` in the first 256
        /// rows
        pub even_again_us: Option<f64> = "-",
        /// flows with an op that was outstanding during the fault and either had at least twice the median slowdown
        /// of the ops outside these faults, or had not ended. If there are no ops outside these faults, the median
        /// counts as 1. Only in a recorded run, and only for the first 64 faults that do not last the whole measured
        /// phase
        pub slowed_flows: Option<u64> = "-",
        /// the most slowed flow of `slowed_flows`, named by its hosts: that of the op with the largest slowdown. Ops
        /// that were as slow already when the fault began rank last
        pub slowed_most: Option<String> = "-",
        /// time at which the last of the slow ops that define `slowed_flows` ended; end of the run if such an op had
        /// not ended
        pub slowed_until_us: Option<f64> = "-",
        /// switches on the new path of a flow
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
