//! Tables of a run in addition to its summary: ops, flows, ports, and samples over time.
//!
//! Recording is optional and bounded: entries beyond a limit are omitted and counted, and a note
//! reports them. The tables are the same for any number of threads.

mod around;
mod even;
mod fold;
mod ports;
mod quantity;
mod recorder;
mod sampler;
mod seats;
mod slowed;
mod trace;

use apus_cc::FieldLayout;
use apus_transport::{FlowCounters, OpKind, Outcome};
use apus_units::{Bytes, HostId, PortId, Rate, Span, Time};

pub(crate) use around::CloseUp;
pub use around::{Around, Passed, Passings, QueueSeen};
pub use fold::{Cell, NetworkOverTime, Place, PortGroup};
pub(crate) use ports::drops_at;
pub use quantity::{FlowSample, FlowState, Quantity};
pub(crate) use recorder::Recorder;
pub(crate) use sampler::{Sampler, spread};
pub use trace::{FlowEvent, FlowEventKind, PacketRecord, Trace, Traced};
pub(crate) use trace::{FlowTracer, Tap};

use std::sync::Arc;

use crate::columns::FaultRecord;
use crate::losses::Causes;
use crate::plan::JobPlan;
use crate::slowdown::Ideal;

/// Settings of a recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record {
    /// Time between two samples.
    pub interval: Span,
    /// Number of flows whose individual samples are kept, evenly spaced.
    pub flows: u32,
    /// Number of ports whose samples are kept: those with the most traffic.
    pub ports: u32,
    /// Number of ops that are kept: those that completed first.
    pub ops: u64,
    /// Whether the ports of hosts' NICs are also sampled.
    pub nics: bool,
}

/// Number of samples of a run, unless the scenario sets an interval.
const SAMPLES: u64 = 200;

impl Record {
    /// Returns the default recording of a run of this length.
    #[must_use]
    pub fn of_duration(duration: Span) -> Self {
        let interval = (duration / SAMPLES).max(Span::from_ps(1));
        Self { interval, flows: 64, ports: 32, ops: 1_000_000, nics: false }
    }
}

/// An op that ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OpRecord {
    /// Its connection.
    pub flow: u32,
    /// Its number within the flow.
    pub op: u64,
    /// Kind of the op.
    pub kind: OpKind,
    /// Payload bytes.
    pub size: u64,
    /// Time of its submission.
    pub submitted: Time,
    /// Time of its end.
    pub completed: Time,
    /// Outcome.
    pub outcome: Outcome,
}

impl OpRecord {
    /// Returns the time from submission to completion.
    #[must_use]
    pub fn latency(&self) -> Span {
        self.completed.since(self.submitted)
    }

    /// Returns the kind of the op as a word.
    #[must_use]
    pub fn kind_name(&self) -> &'static str {
        kind_name(self.kind)
    }

    /// Returns the outcome as a word.
    #[must_use]
    pub fn outcome_name(&self) -> &'static str {
        match self.outcome {
            Outcome::Done => "done",
            Outcome::Failed => "failed",
            Outcome::Rejected(_) => "rejected",
            Outcome::Unknown => "unknown",
        }
    }
}

/// Returns the kind of an op as a word.
fn kind_name(kind: OpKind) -> &'static str {
    match kind {
        OpKind::Write { .. } => "write",
        OpKind::Read { .. } => "read",
        OpKind::Message => "message",
        OpKind::CompareAndSwap { .. } => "compare-and-swap",
        OpKind::FetchAdd { .. } => "fetch-add",
    }
}

/// An op that had not ended when the run was over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OpenOpRecord {
    /// Its connection.
    pub flow: u32,
    /// Payload bytes.
    pub size: u64,
    /// Time of its submission, or of its arrival if it was queued.
    pub submitted: Time,
    /// Time since then.
    pub age: Span,
}

/// Start and end of an operation of a job; [`Time::MAX`] if it has not started or ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JobOpRecord {
    /// Index into [`Recording::jobs`].
    pub job: u32,
    /// Its rank.
    pub rank: u32,
    /// Its number within the rank.
    pub op: u32,
    /// For a receive that took a message: the sending rank.
    pub source: Option<u32>,
    /// Its start.
    pub start: Time,
    /// Its end.
    pub end: Time,
}

/// A connection over the run.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowRecord {
    /// The host that submits ops.
    pub from: HostId,
    /// Its peer.
    pub to: HostId,
    /// Its workload: index into `groups` of the summary; the number of groups if it has none.
    pub group: u32,
    /// Kind of its ops.
    pub kind: OpKind,
    /// Its algorithm.
    pub algorithm: &'static str,
    /// Layout of the algorithm's fields on packets.
    pub fields: Option<FieldLayout>,
    /// Best performance of the pair of hosts, in the direction of the data.
    pub ideal: Ideal,
    /// Payload bytes delivered once in the measured phase.
    pub delivered: u64,
    /// Counters of the side that sends the data, over the measured phase.
    pub counters: FlowCounters,
    /// Fabric RTT samples of the measured phase.
    pub rtt: RttSum,
}

impl FlowRecord {
    /// Returns the kind of its ops as a word.
    #[must_use]
    pub fn kind_name(&self) -> &'static str {
        kind_name(self.kind)
    }
}

/// Fabric RTTs of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RttSum {
    /// Number of samples.
    pub count: u64,
    /// Their sum in picoseconds.
    pub sum_ps: u64,
    /// The largest.
    pub max: Span,
}

impl RttSum {
    /// Returns the mean in microseconds.
    #[must_use]
    pub fn mean_us(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ps as f64 / self.count as f64 * 1e-6)
    }
}

/// An egress port over the measured phase.
#[derive(Clone, Debug, PartialEq)]
pub struct PortRecord {
    /// Its number.
    pub port: PortId,
    /// Its node: index into [`Recording::nodes`].
    pub from: usize,
    /// Node at the other end of its link.
    pub to: usize,
    /// Rate of the link without faults.
    pub rate: Rate,
    /// Packets sent into its queue.
    pub offered_packets: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Wire bytes sent.
    pub sent_bytes: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Packets dropped by cause over the whole run.
    pub causes: Causes,
    /// Packets marked.
    pub marked: u64,
    /// Packets trimmed.
    pub trimmed: u64,
    /// Headers of trimmed packets that were dropped.
    pub headers_lost: u64,
    /// Time average of the wire bytes in the port.
    pub mean_queue_bytes: f64,
    /// Maximum wire bytes in the port.
    pub max_queue: Bytes,
}

/// A host or switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRecord {
    /// Display name.
    pub name: String,
    /// Number of links to the nearest host; 0 is a host.
    pub tier: u32,
}

/// Percentiles over flows for [`Band::percentiles`].
pub const BAND: [u32; 5] = [5, 25, 50, 75, 95];

/// One quantity over all active flows at one time.
#[derive(Clone, Copy, Debug)]
pub struct Band {
    /// Number of flows.
    pub flows: u32,
    /// Mean; NaN without flows.
    pub mean: f64,
    /// By [`BAND`], nearest rank.
    pub percentiles: [f64; BAND.len()],
}

/// Sample of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PortSample {
    /// Wire bytes sent over the interval.
    pub sent_bytes: u64,
    /// Wire bytes in the port at the end of the interval.
    pub queue_bytes: u64,
    /// Time average of these bytes over the interval.
    pub mean_queue_bytes: f64,
    /// Packets dropped in the interval.
    pub drops: u64,
    /// Packets marked in the interval.
    pub marked: u64,
    /// Number of times that the port was paused in the interval.
    pub pauses: u64,
}

/// A distribution as points: a value in microseconds and the fraction of values at or below.
pub type Cdf = Vec<(f64, f64)>;

/// Content of a recorded run.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Settings of the recording.
    pub record: Record,
    /// End of the warm-up.
    pub warmup: Time,
    /// Simulated time.
    pub duration: Span,
    /// Payload, header and control bytes of packets.
    pub sizes: crate::packets::PacketSizes,
    /// Ops in order of completion: the first ones, up to the limit of [`Record::ops`].
    pub ops: Vec<OpRecord>,
    /// Number of all ops that completed.
    pub ops_seen: u64,
    /// Ops that had not ended, in order of submission.
    pub open_ops: Vec<OpenOpRecord>,
    /// The jobs.
    pub jobs: Vec<Arc<JobPlan>>,
    /// Operations of jobs.
    pub job_ops: Vec<JobOpRecord>,
    /// All connections.
    pub flows: Vec<FlowRecord>,
    /// Hosts, then switches.
    pub nodes: Vec<NodeRecord>,
    /// All ports.
    pub ports: Vec<PortRecord>,
    /// Sample times.
    pub times: Vec<Time>,
    /// The flows whose samples were kept.
    pub sampled_flows: Vec<u32>,
    /// By time and sampled flow.
    pub samples: Vec<Vec<FlowSample>>,
    /// By time and [`Quantity`], over all active flows.
    pub bands: Vec<[Band; Quantity::ALL.len()]>,
    /// The ports whose samples were kept, the busiest first.
    pub sampled_ports: Vec<PortId>,
    /// By time and sampled port.
    pub port_samples: Vec<Vec<PortSample>>,
    /// The links over time, folded and one by one.
    pub network: NetworkOverTime,
    /// Fabric RTT per acknowledgement of the measured phase.
    pub fabric_rtt: Cdf,
    /// End-to-end RTT per acknowledgement.
    pub end_to_end_rtt: Cdf,
    /// Latency per op.
    pub op_latency: Cdf,
    /// Faults of links and flows that changed their path.
    pub faults: Vec<FaultRecord>,
    /// Packets and events of the trace.
    pub traced: Traced,
    /// Omissions, as sentences.
    pub notes: Vec<String>,
}

impl Recording {
    /// Returns the length of the measured phase; infinite if the run ended in its warm-up.
    #[must_use]
    pub fn measured_seconds(&self) -> f64 {
        let measured = self.duration.as_secs_f64() - self.warmup.as_secs_f64();
        if measured > 0.0 { measured } else { f64::INFINITY }
    }

    /// Returns the slowdown of an op.
    #[must_use]
    pub fn slowdown(&self, op: &OpRecord) -> f64 {
        self.flows[op.flow as usize].ideal.slowdown(op.latency(), op.size, self.sizes)
    }

    /// Returns the name of a port.
    #[must_use]
    pub fn port_name(&self, port: PortId) -> String {
        let record = &self.ports[port.index()];
        format!("{} -> {}", self.nodes[record.from].name, self.nodes[record.to].name)
    }
}
