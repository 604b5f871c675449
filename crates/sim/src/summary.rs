//! The results of a run, as they are printed and written.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::credits::CreditSummary;
use crate::distribution::DistributionSummary;
use crate::faults::FaultRecord;
use crate::groups::{Group, GroupTotal};
use crate::losses::Losses;
use crate::measure::{ComparisonSummary, PortGroupSummary, SettleSummary, WorkloadSummary};
use crate::metrics::Counts;
use crate::offered::OfferedLoad;
use crate::record::Recording;
use crate::stalls::StallSummary;

/// One egress port.
#[derive(Clone, Debug, Serialize)]
pub struct PortSummary {
    /// Where it leads, as "switch 0 -> host 3".
    pub name: String,
    /// Wire bytes sent per time, Gb/s.
    pub throughput_gbps: f64,
    /// Throughput over the rate of the link.
    pub utilisation: f64,
    /// Packets dropped over packets sent into the port's queue.
    pub loss_rate: f64,
    /// Packets dropped.
    pub drops: u64,
    /// Time average of the bytes in the port, the packet in service included.
    pub mean_queue_bytes: f64,
    /// Most bytes in the port at a time.
    pub max_queue_bytes: u64,
    /// The same before the end of the warm-up.
    pub startup_max_queue_bytes: u64,
}

/// Packets of the whole run: sent = delivered + dropped + in flight, or the run fails.
#[derive(Clone, Debug, Serialize)]
pub struct Conservation {
    /// Packets that hosts handed to the fabric, and signals that switches made.
    pub sent: u64,
    /// Of these, the signals.
    pub signals: u64,
    /// Packets that reached their host's NIC.
    pub delivered: u64,
    /// Packets that the fabric dropped.
    pub dropped: u64,
    /// Packets still on their way at the end.
    pub in_flight: u64,
    /// Delivered packets that a NIC's full receive queue dropped.
    pub dropped_at_nic: u64,
}

/// Host-side counts of one phase.
#[derive(Clone, Debug, Serialize)]
pub struct PhaseSummary {
    /// Length of the phase in simulated seconds.
    pub seconds: f64,
    /// Data packets that hosts sent, retransmissions included.
    pub data_packets_sent: u64,
    /// Acknowledgements that hosts sent.
    pub acks_sent: u64,
    /// Data packets that reached a stack.
    pub data_packets_delivered: u64,
    /// Of these, packets that held nothing new: needless retransmissions.
    pub duplicates_delivered: u64,
    /// Packets dropped at switch ports.
    pub drops: u64,
    /// Drops over packets sent into switch ports' queues, all ports together.
    pub loss_rate: f64,
    /// Ops that completed.
    pub ops: u64,
    /// Ops submitted in the phase that had not ended when the run was over, its drain included.
    pub unfinished_ops: u64,
    /// Age of the oldest of them; 0 if there are none.
    pub oldest_unfinished_us: f64,
}

impl PhaseSummary {
    pub(crate) fn new(seconds: f64, counts: &Counts, drops: u64, offered: u64) -> Self {
        Self {
            seconds,
            data_packets_sent: counts.data_packets,
            acks_sent: counts.acks,
            data_packets_delivered: counts.delivered_packets,
            duplicates_delivered: counts.duplicate_packets,
            drops,
            loss_rate: if offered == 0 { 0.0 } else { drops as f64 / offered as f64 },
            ops: counts.ops,
            unfinished_ops: 0,
            oldest_unfinished_us: 0.0,
        }
    }
}

/// The results of a run. Unless a name says otherwise they count from the end of the warm-up.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The scenario's name.
    pub name: String,
    /// The seed that fixed everything random.
    pub seed: u64,
    /// Simulated seconds, the start-up included: less than the scenario's duration if the run was
    /// interrupted.
    pub simulated_s: f64,
    /// Start of the first message to the end of the last op, the drain included; `null` if ops have not
    /// ended, and if not all workloads are traces.
    pub makespan_us: Option<f64>,
    /// Lower bound of the makespan: the unfinished ops had ended with the run.
    pub makespan_lower_us: Option<f64>,
    /// Whether the run ended before its time.
    pub interrupted: bool,
    /// Why it did.
    pub stop_reason: Option<String>,
    /// What came before the measurement, start-up loss included.
    pub startup: PhaseSummary,
    /// The measured phase.
    pub measured: PhaseSummary,
    /// Wire bytes per time at the busiest switch port, Gb/s.
    pub throughput_gbps: f64,
    /// Payload bytes delivered once per time, all connections together, Gb/s.
    pub goodput_gbps: f64,
    /// Payload bytes delivered again per time, Gb/s.
    pub duplicate_gbps: f64,
    /// Work of all hosts' engines per 1000 payload bytes delivered once, nanoseconds, stalls apart;
    /// `null` if engines cost nothing or nothing was delivered.
    pub engine_ns_per_kb: Option<f64>,
    /// Acknowledgements sent over data packets that reached a stack; `null` without any.
    pub acks_per_packet: Option<f64>,
    /// Wire bytes of the signals that switches sent to sources, over the whole run's time.
    pub signals_gbps: f64,
    /// Drops over packets sent into the busiest port's queue.
    pub loss_rate: f64,
    /// Drops over packets sent into switch ports' queues, before the end of the warm-up.
    pub startup_loss_rate: f64,
    /// NIC-to-NIC RTT as Swift computes it, per acknowledgement.
    pub fabric_rtt_us: DistributionSummary,
    /// t6 - t1, per acknowledgement.
    pub end_to_end_rtt_us: DistributionSummary,
    /// `remote_queuing` + (t6 - t5), per acknowledgement.
    pub endpoint_delay_us: DistributionSummary,
    /// From the NIC's receipt of a packet to its stack's processing it: t3 - t2 of data, t6 - t5 of
    /// acknowledgements (Swift Fig. 2), per packet. No values with hosts whose engine costs nothing.
    pub nic_rx_delay_us: DistributionSummary,
    /// What became of credits.
    pub credits: CreditSummary,
    /// Submission to completion, per op.
    pub op_latency_us: DistributionSummary,
    /// Jain's index of the connections' goodput over the measured phase.
    pub jain: f64,
    /// Largest deviation of a connection's rate from its max-min fair share, over windows of the
    /// sample interval, where the scenario asks for it.
    pub fair_share_deviation: Option<f64>,
    /// Lowest Jain's index of the connections' rates over their fair shares, over the same windows.
    pub fair_share_jain: Option<f64>,
    /// The switch port that carried most.
    pub busiest_port: PortSummary,
    /// Named workloads.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub workload: BTreeMap<String, WorkloadSummary>,
    /// The workloads of the run with their algorithms and traffic classes.
    pub groups: Vec<Group>,
    /// Groups that have a name, an algorithm or a class in common, together.
    pub totals: Vec<GroupTotal>,
    /// Groups of ports.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub ports: BTreeMap<String, PortGroupSummary>,
    /// When quantities settled.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub settle: BTreeMap<String, SettleSummary>,
    /// What quantities were in spans of time, by the name of the quantity.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub span: BTreeMap<String, BTreeMap<&'static str, DistributionSummary>>,
    /// Classes whose loss is compared.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub compare: BTreeMap<String, ComparisonSummary>,
    /// Packets of the whole run.
    pub packets: Conservation,
    /// Load that the ops of open loops offer to the links.
    pub offered: OfferedLoad,
    /// The losses of the whole run by cause and port.
    pub losses: Losses,
    /// Faults of links and flows that changed their path, in the order in which they began.
    pub faults: Vec<FaultRecord>,
    /// The drain, which follows the measured phase.
    pub drain: DrainSummary,
    /// Flows that made no progress for a time.
    pub stalled: StallSummary,
    /// Work of the simulator.
    pub work: Work,
    /// Cost of the run on this machine; written apart, so that equal runs have equal summaries.
    #[serde(skip)]
    pub cost: Cost,
    /// Warnings, and the rows left out of the tables, in sentences.
    pub notes: Vec<String>,
    /// The tables, if the run was recorded; they are written apart.
    #[serde(skip)]
    pub recording: Option<Arc<Recording>>,
}

/// The drain: simulated time after the measured phase in which its ops may end.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DrainSummary {
    /// Simulated seconds of the drain.
    pub seconds: f64,
    /// Limit of that time.
    pub limit_s: f64,
    /// Reason of its end: `complete`, `limit`, `stuck` or `interrupted`.
    pub ended_by: &'static str,
}

/// Work of the simulator, which does not depend on the machine or the number of threads.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Work {
    /// Events of the queue.
    pub events: u64,
    /// Packets times links they crossed.
    pub packet_hops: u64,
    /// Hash of all events: when each entity had one.
    pub event_hash: String,
}

/// Cost of a run on this machine.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Cost {
    /// Real seconds.
    pub wall_s: f64,
    /// Threads that took part.
    pub threads: u32,
    /// Events per real second.
    pub events_per_s: f64,
    /// Packet-hops per real second.
    pub packet_hops_per_s: f64,
}

impl Cost {
    /// The cost of `work` that took `wall_s` seconds.
    #[must_use]
    pub fn of(work: &Work, wall_s: f64, threads: u32) -> Self {
        let per_s = |count: u64| count as f64 / wall_s.max(1e-9);
        Self {
            wall_s,
            threads,
            events_per_s: per_s(work.events),
            packet_hops_per_s: per_s(work.packet_hops),
        }
    }
}
