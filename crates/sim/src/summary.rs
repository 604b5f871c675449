//! The results of a run, as they are printed and written.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::columns::{FaultRecord, StallSummary, ratio, summary};
use crate::credits::CreditSummary;
use crate::distribution::DistributionSummary;
use crate::groups::{Group, GroupTimes, GroupTotal};
use crate::jobs::JobSummary;
use crate::losses::Losses;
use crate::measure::{ComparisonSummary, PortGroupSummary, SettleSummary, WorkloadSummary};
use crate::metrics::Counts;
use crate::offered::OfferedLoad;
use crate::record::Recording;

const WHOLE_RUN: &str = "sum over the warm-up and the measured phase";
const HOSTS: &str = "sum over hosts";
const ITS_ACKS: &str = "over acknowledgements of the measured phase";

summary! {
    /// One egress port.
    #[derive(Clone, Debug, Serialize)]
    pub struct PortSummary {
        /// name of the port; it is the switch port that sent the most wire bytes in the measured phase
        pub name: String = fact("-"),
        /// wire bytes sent * 8 / length of the measured phase
        pub throughput_gbps: f64 = number("mean over the measured phase"),
        /// throughput / rate of the link without faults
        pub utilisation: f64 = fraction("mean over the measured phase"),
        /// packets dropped / packets sent into the port's queue
        pub loss_rate: f64 = fraction("over the measured phase"),
        /// packets dropped at the port
        pub drops: u64 = number("sum over the measured phase"),
        /// wire bytes in the port: (integral of occupancy over time) / time
        pub mean_queue_bytes: f64 = number("time average over the measured phase"),
        /// wire bytes in the port, the arriving packet included
        pub max_queue_bytes: u64 = number("maximum over the measured phase"),
        /// wire bytes in the port, the arriving packet included
        pub startup_max_queue_bytes: u64 = number("maximum over the warm-up"),
    }
}

summary! {
    /// Packets of the whole run: sent = delivered + dropped + in flight, or the run fails.
    #[derive(Clone, Debug, Serialize)]
    pub struct Conservation {
        /// packets that hosts handed to the fabric, and signals that switches generated
        pub sent: u64 = number(WHOLE_RUN),
        /// signals that switches sent to sources (Bolt's SRC)
        pub signals: u64 = number(WHOLE_RUN),
        /// packets that reached the NIC of their host
        pub delivered: u64 = number(WHOLE_RUN),
        /// packets that the fabric dropped
        pub dropped: u64 = number(WHOLE_RUN),
        /// packets whose payload a port removed for lack of room
        pub trimmed: u64 = number(WHOLE_RUN),
        /// headers of trimmed packets that the trimming port dropped for lack of room; `packets.dropped` includes
        /// them
        pub headers_lost: u64 = number(WHOLE_RUN),
        /// packets in ports and on links at the end of the measured phase: sent - delivered - dropped
        pub in_flight: u64 = number(WHOLE_RUN),
        /// delivered packets that were dropped because the receive queue of the NIC was full
        pub dropped_at_nic: u64 = number(WHOLE_RUN),
    }
}

summary! {
    /// Counts of one phase.
    #[derive(Clone, Debug, Serialize)]
    pub struct PhaseSummary {
        /// simulated length of the phase
        pub seconds: f64 = number("-"),
        /// data packets that hosts sent, retransmissions included
        pub data_packets_sent: u64 = number(HOSTS),
        /// acknowledgements and NACKs that hosts sent
        pub acks_sent: u64 = number(HOSTS),
        /// data packets that reached a stack
        pub data_packets_delivered: u64 = number(HOSTS),
        /// data packets that reached a stack and held nothing new: unnecessary retransmissions
        pub duplicates_delivered: u64 = number(HOSTS),
        /// packets dropped at switch ports
        pub drops: u64 = number("sum over switch ports"),
        /// packets dropped / packets sent into switch ports' queues
        pub loss_rate: f64 = fraction("all switch ports together"),
        /// ops that completed, with any outcome
        pub ops: u64 = number("sum over flows"),
        /// ops submitted in the phase that had not ended after the drain; distributions include only those of the
        /// measured phase
        pub unfinished_ops: u64 = number("sum over flows"),
        /// age of the oldest unfinished op of the phase; 0 if there are none
        pub oldest_unfinished_us: f64 = number("maximum over flows"),
    }
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
            loss_rate: ratio(drops, offered),
            ops: counts.ops,
            unfinished_ops: 0,
            oldest_unfinished_us: 0.0,
        }
    }
}

summary! {
    /// The results of a run. Unless a name says otherwise they count from the end of the warm-up.
    #[derive(Clone, Debug, Serialize)]
    pub struct Summary {
        /// name of the scenario and its variant
        pub name: String = fact("-"),
        /// seed of all random number streams
        pub seed: u64 = fact("-"),
        /// simulated time up to the end of the measured phase, warm-up included; less than `duration` if the run was
        /// interrupted, or if the phase ended with the ops (`ends_with_ops`)
        pub simulated_s: f64 = number("-"),
        /// start of the first message to the end of the last op; null if an op has not ended, or if the run has other
        /// workloads than traces and jobs, or no trace
        pub makespan_us: Option<f64> = number("over the whole run, drain included"),
        /// lower bound of `makespan_us`, if each unfinished op ended at the end of the run
        pub makespan_lower_us: Option<f64> = fact("over the whole run, drain included"),
        /// whether the run ended early
        pub interrupted: bool = fact("-"),
        /// reason for the early end; null if the run did not end early
        pub stop_reason: Option<String> = fact("-"),
        /// Phase before the measurement.
        pub startup: PhaseSummary = part("warm-up: "),
        /// Measured phase.
        pub measured: PhaseSummary = part("measured phase: "),
        /// at the busiest switch port: wire bytes sent * 8 / length of the measured phase
        pub throughput_gbps: f64 = number("mean over the measured phase"),
        /// payload bytes delivered once * 8 / length of the measured phase
        pub goodput_gbps: f64 = number("sum over all flows"),
        /// payload bytes delivered again * 8 / length of the measured phase
        pub duplicate_gbps: f64 = number("sum over all flows"),
        /// work of the hosts' engines, stalls not included / payload bytes delivered once, times 1000; null if the
        /// engines have no costs, or if no payload was delivered
        pub engine_ns_per_kb: Option<f64> = number("all hosts, over the measured phase"),
        /// acknowledgements sent / data packets that reached a stack
        pub acks_per_packet: Option<f64> = number("all hosts, over the measured phase"),
        /// wire bytes of signals that switches sent to sources (Bolt's SRC) * 8 / length of the warm-up and the
        /// measured phase
        pub signals_gbps: f64 = number(
            "sum over the warm-up, the measured phase and all switches; each signal counts once, independent of its links"
        ),
        /// at the busiest switch port: packets dropped / packets sent into its queue
        pub loss_rate: f64 = fraction("over the measured phase"),
        /// packets dropped / packets sent into the ports' queues, all switch ports together
        pub startup_loss_rate: f64 = fraction("over the warm-up"),
        /// RTT between the NICs, as Swift computes it (§3.3): t6 - t1 - endpoint delay
        pub fabric_rtt_us: DistributionSummary = stats(ITS_ACKS),
        /// RTT from the sending stack back to the same stack: t6 - t1 (Swift Fig. 2)
        pub end_to_end_rtt_us: DistributionSummary = stats(ITS_ACKS),
        /// remote_queuing + (t6 - t5) (Swift §3.3)
        pub endpoint_delay_us: DistributionSummary = stats(ITS_ACKS),
        /// time from reception by the NIC to processing by the stack: t3 - t2 of data, t6 - t5 of acknowledgements
        /// (Swift Fig. 2); no values if the engines of hosts have no costs
        pub nic_rx_delay_us: DistributionSummary = stats("over packets received in the measured phase"),
        /// Credits.
        pub credits: CreditSummary = part(""),
        /// time from submission to completion; null if it is censored: if the bounds that unfinished ops set differ
        /// by more than 1 %
        pub op_latency_us: DistributionSummary = op_stats("over ops of the measured phase"),
        /// Jain's index of the goodput x of flows: (sum x)^2 / (n * sum x^2); 1 if all flows are equal, 1/n if one
        /// flow has all goodput
        pub jain: f64 = fraction("over all flows, measured phase"),
        /// |rate / max-min fair share - 1|; the rate is the goodput plus the headers of full packets. An interval
        /// counts if no flow starts or stops in it or within `fair_share_after` before it; null without `interval` in
        /// `[measure]`
        pub fair_share_deviation: Option<f64> = fraction("maximum over flows and intervals that count"),
        /// Jain's index of rate / max-min fair share, as `fair_share_deviation`; null without `interval` in
        /// `[measure]`
        pub fair_share_jain: Option<f64> = fraction("minimum over intervals that count"),
        /// The switch port that sent most.
        pub busiest_port: PortSummary = part("busiest switch port: "),
        /// Named workloads.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        pub workload: BTreeMap<String, WorkloadSummary> = parts("<name>"),
        /// the workloads, each with `workload` (its name, or a label derived from its kind) and the columns of
        /// workloads.csv up to `goodput_share`; `oldest_unfinished_us` is 0 if all ops ended; the latencies are in
        /// `workload`
        pub groups: Vec<Group> = list("over the measured phase"),
        /// sums over two or more `groups` with a common property: `by` is the property (workload, algorithm or
        /// class), `name` is its value, `groups` is the number of groups; `oldest_unfinished_us` is the maximum
        pub totals: Vec<GroupTotal> = list("over the measured phase"),
        /// Groups of ports.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        pub ports: BTreeMap<String, PortGroupSummary> = parts("<name>"),
        /// Times at which quantities settled.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        pub settle: BTreeMap<String, SettleSummary> = parts("<name>"),
        /// Values of quantities in spans of time, by the name of the quantity.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        pub span: BTreeMap<String, BTreeMap<&'static str, DistributionSummary>> = parts("<name>"),
        /// Comparisons of the loss of classes.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        pub compare: BTreeMap<String, ComparisonSummary> = parts("<name>"),
        /// Packets of the whole run.
        pub packets: Conservation = part(""),
        /// Load that the ops of open loops offer to the links.
        pub offered: OfferedLoad = part(""),
        /// Losses of the whole run by cause and port.
        pub losses: Losses = part(""),
        /// faults, avoided links and reroutes, each with the columns of faults.csv
        pub faults: Vec<FaultRecord> = list("-"),
        /// Jobs, in the order of the plan.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub jobs: Vec<JobSummary> = parts("<n>"),
        /// The drain, which follows the measured phase.
        pub drain: DrainSummary = part(""),
        /// Flows that made no progress for a time.
        pub stalled: StallSummary = part(""),
        /// Work of the simulator.
        pub work: Work = part(""),
        /// sentences: warnings, and data that the tables omit
        pub notes: Vec<String> = list("-"),
        ;
        /// Cost of the run on this machine; written apart, so that equal runs have equal summaries.
        #[serde(skip)]
        pub cost: Cost,
        /// The tables, if the run was recorded; they are written apart.
        #[serde(skip)]
        pub recording: Option<Arc<Recording>>,
    }
}

impl Summary {
    /// Returns the latencies and slowdowns of a group; none if several groups of the same name are measured
    /// together, or if the workload is not measured individually.
    #[must_use]
    pub fn times_of_group(&self, group: &Group) -> GroupTimes<'_> {
        if let [_] = self.groups[..]
            && !self.workload.contains_key(&group.workload)
        {
            // The group is the whole run.
            return GroupTimes { op_latency_us: Some(&self.op_latency_us), slowdown: None };
        }
        let namesakes = self.groups.iter().filter(|other| other.workload == group.workload);
        if namesakes.count() > 1 { GroupTimes::default() } else { self.times_of(&group.workload) }
    }

    /// Returns the latencies and slowdowns of the ops of all workloads of a name.
    #[must_use]
    pub fn times_of(&self, workload: &str) -> GroupTimes<'_> {
        let own = self.workload.get(workload);
        GroupTimes {
            op_latency_us: own.map(|own| &own.op_latency_us),
            slowdown: own.map(|own| &own.slowdown),
        }
    }
}

summary! {
    /// The drain: simulated time after the measured phase in which its ops may end.
    #[derive(Clone, Debug, Default, Serialize)]
    pub struct DrainSummary {
        /// length of the drain: simulated time after the measured phase, until its ops had ended
        pub seconds: f64 = number("-"),
        /// limit of `drain.seconds`: `drain` in the scenario
        pub limit_s: f64 = number("-"),
        /// `complete`: every op and job that the drain waits for had ended; `limit`: `drain` was over; `stuck`: no
        /// packet was delivered any more; `interrupted`: the run ended early
        pub ended_by: &'static str = fact("-"),
    }
}

summary! {
    /// Work of the simulator, which does not depend on the machine or the number of threads.
    #[derive(Clone, Debug, Default, Serialize)]
    pub struct Work {
        /// events that the simulator processed
        pub events: u64 = fact("sum over the whole run, drain included"),
        /// number of packet-hops: one per packet and link that it crossed
        pub packet_hops: u64 = fact("sum over the whole run, drain included"),
        /// hash of the times at which each entity had an event; equal for any number of threads
        pub event_hash: String = fact("-"),
    }
}

summary! {
    /// Cost of a run on this machine.
    #[derive(Clone, Copy, Debug, Default, Serialize)]
    pub struct Cost {
        /// wall time to build the network, its hosts and its flows, before the run
        pub setup_s: f64 = fact("-"),
        /// wall time of the run, drain included
        pub wall_s: f64 = fact("-"),
        /// threads that simulated the network
        pub threads: u32 = fact("-"),
        /// `work.events` / `wall_s`
        pub events_per_s: f64 = fact("-"),
        /// `work.packet_hops` / `wall_s`
        pub packet_hops_per_s: f64 = fact("-"),
    }
}

impl Cost {
    /// Returns the cost of `work` that took `wall_s` seconds, after a set-up of `setup_s`.
    #[must_use]
    pub fn of(work: &Work, setup_s: f64, wall_s: f64, threads: u32) -> Self {
        let per_s = |count: u64| count as f64 / wall_s.max(1e-9);
        Self {
            setup_s,
            wall_s,
            threads,
            events_per_s: per_s(work.events),
            packet_hops_per_s: per_s(work.packet_hops),
        }
    }
}
