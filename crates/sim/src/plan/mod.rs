//! Description of a simulation, as plain data. [`Plan::builder`] makes a plan from a topology and
//! connections.

mod builder;
mod job;
mod steps;
mod threads;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use apus_cc::{AlgorithmFactory, CreditLimit};
use apus_fabric::{PfcConfig, PortKind, Rehash, Topology};
use apus_transport::{EndpointConfig, OpKind, SpreadConfig};
use apus_units::{Bytes, ClassId, HostId, PortId, Span, Time};
use apus_wire::RegionKey;

use crate::host_model::HostModel;
use crate::measure::Measures;
use crate::packets::PacketSizes;

pub use builder::{FINE_TIMERS_LOG2_PS, InvalidPlan, PlanBuilder};
pub use job::{JobError, JobPlan, LocalNetwork, Nics, SendOrder};
pub use steps::step_length;

/// A run.
#[derive(Clone, Debug)]
pub struct Plan<F: AlgorithmFactory> {
    /// The fabric.
    pub topology: Topology<F::Switch>,
    /// Minimum kind of port to use, even if a simpler kind would do: for tests and benchmarks.
    pub least_ports: PortKind,
    /// Sizes of packets on the wire.
    pub sizes: PacketSizes,
    /// Model of every host.
    pub host: HostModel,
    /// Configuration of every transport endpoint.
    pub endpoint: EndpointConfig,
    /// Traffic class of acknowledgements and read requests; `None`: the class of their connection.
    pub ack_class: Option<ClassId>,
    /// Limit of credits at ports; `None` if no flow is credit-based. If set, [`Plan::topology`] already has
    /// classes for credits.
    pub credits: Option<CreditLimit>,
    /// Priority flow control (PFC): switches pause the ports that fill their memory. Every port must be pausable.
    pub pfc: Option<PfcConfig>,
    /// Whether signals of switches reach their source without delay.
    pub instant_signals: bool,
    /// Faults of links. The affected ports must be `variable`.
    pub faults: Vec<Fault>,
    /// Reaction of switches to links that are down.
    pub rerouting: Rerouting,
    /// The connections, in the order in which results list them.
    pub connections: Vec<ConnectionPlan<F>>,
    /// The jobs, in the order in which results list them.
    pub jobs: Vec<Arc<JobPlan>>,
    /// Workloads to which the connections belong, for the offered load.
    pub demands: Vec<Demand>,
    /// Simulated time from the start to the end.
    pub duration: Span,
    /// End of the warm-up; measurements count from this time.
    pub warmup: Span,
    /// Ops of open loops that are not in their [`Load`] because they are read during the run.
    pub streamed: Option<Arc<dyn FurtherOps<F>>>,
    /// Ops that open loops submit during the drain; `None`: no further ops.
    pub further: Option<Arc<dyn FurtherOps<F>>>,
    /// Number of ops if all workloads are traces, so that the run has a makespan.
    pub trace_ops: Option<u64>,
    /// Whether the measured phase ends with the last op if all ops and jobs end before `duration`.
    pub ends_with_ops: bool,
    /// Limit of the drain, in which ops submitted in the measured phase can still end.
    pub drain: Span,
    /// Length of the intervals in which each connection's rate is measured.
    pub sample_interval: Option<Span>,
    /// Settling time after each change of the set of active connections; afterwards rates are compared with
    /// the fair share.
    pub fair_share_after: Option<Span>,
    /// Measurements of parts of the run.
    pub measures: Measures,
    /// Seed of all random streams.
    pub seed: u64,
}

/// One workload of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Name of the workload, or its kind.
    pub label: String,
    /// Label of its algorithm.
    pub algorithm: String,
    /// Name of its traffic class, if the topology has classes.
    pub class: Option<String>,
    /// Its connections in [`Plan::connections`].
    pub connections: Range<usize>,
    /// Interval in which the ops of an open loop arrive; `None` for a closed loop.
    pub open: Option<(Time, Time)>,
    /// Whether the ops are the messages of a trace: their number is fixed, and the drain waits for each of them.
    pub is_trace: bool,
}

/// One connection: a flow with the ops that one host submits over it to another.
#[derive(Clone, Debug)]
pub struct ConnectionPlan<F: AlgorithmFactory> {
    /// The host that submits ops.
    pub from: HostId,
    /// Its peer.
    pub to: HostId,
    /// Time at which the first ops are submitted.
    pub start: Time,
    /// End of submission.
    pub stop: Time,
    /// Type of the ops.
    pub kind: OpType,
    /// Number, sizes and times of the ops.
    pub load: Load,
    /// Whether an empty packet and its acknowledgement are exchanged before the first op of an open loop. The
    /// latency of that op includes the exchange.
    pub handshake: bool,
    /// Algorithm of both directions.
    pub algorithm: F,
    /// Traffic class.
    pub class: ClassId,
    /// Index into [`Measures::workloads`] if the connection belongs to a named workload.
    pub workload: Option<u32>,
    /// Device on which its reads are queued at the peer; `None`: reads are answered at once.
    pub service: Option<Arc<Service>>,
    /// Changes of its path.
    pub reroute: Option<Box<Reroute>>,
    /// Policy that chooses the path of each packet; `None`: one path, by a hash of the connection.
    pub spread: Option<Arc<Spreading<F::Path>>>,
}

/// Type of the ops of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpType {
    /// One-sided writes.
    Write,
    /// One-sided reads.
    Read,
    /// Messages.
    Message,
}

impl OpType {
    /// Returns the op of the transport. A simulation stores no bytes, so one region serves all ops.
    #[inline]
    #[must_use]
    pub const fn op(self) -> OpKind {
        let (region, address) = (RegionKey::new(1), 0);
        match self {
            Self::Write => OpKind::Write { region, address },
            Self::Read => OpKind::Read { region, address },
            Self::Message => OpKind::Message,
        }
    }
}

/// How a connection spreads its packets over the shortest paths.
#[derive(Clone, Debug)]
pub struct Spreading<P> {
    /// Initial state of the policy of a flow.
    pub policy: P,
    /// Loss detection and range of packet numbers.
    pub transport: SpreadConfig,
    /// Meaning of entropy values.
    pub form: EvForm,
    /// Paths of acknowledgements.
    pub ack_path: AckPath,
}

/// Meaning of an entropy value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvForm {
    /// Switches hash the value together with the flow: several values may lead to the same path.
    Hashed,
    /// The value modulo the number of paths is the index of the path.
    Indexed,
}

/// Path of acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckPath {
    /// The reverse of the path of the data packet.
    Symmetric,
    /// A path chosen by a hash of the acknowledgement's packet number.
    Own,
}

/// A device behind a host, such as a disk, on which reads are queued. It serves `parallel` reads at a time,
/// in order of arrival.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Service {
    /// Number of the device. Connections with the same number share the device of the host that answers them.
    pub device: u32,
    /// Mean time that one read takes, above 0.
    pub time: Span,
    /// Share of that time that is exponentially distributed, from 0 to 1; the rest is constant.
    pub noise: f64,
    /// Number of reads that are served at a time, at least 1.
    pub parallel: u32,
}

/// A change of a connection's path: later packets take the new path, in both directions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reroute {
    /// Time of the change.
    pub at: Time,
    /// The egress ports from the connection's `from` to its `to`.
    pub path: Arc<[PortId]>,
}

impl<F: AlgorithmFactory> ConnectionPlan<F> {
    /// Returns the hosts in the direction of the data: of a read's answer, or of the larger half of a round.
    pub(crate) fn data_ends(&self) -> (HostId, HostId) {
        let answered = match (&self.load, self.kind) {
            (Load::Round { request, answer, .. }, _) => answer > request,
            (_, kind) => kind == OpType::Read,
        };
        if answered { (self.to, self.from) } else { (self.from, self.to) }
    }
}

/// Rule for the ops of a connection.
#[derive(Clone, Debug, PartialEq)]
pub enum Load {
    /// Messages of a job from rank `from` to rank `to`, which the job submits.
    Job {
        /// Index into [`Plan::jobs`].
        job: u32,
        /// The sending rank, on the first host of the connection.
        from: u32,
        /// The receiving rank, on its peer.
        to: u32,
    },
    /// A closed loop: a constant number of outstanding ops; each completion submits the next one.
    Closed {
        /// Payload of an op.
        size: Bytes,
        /// Number of outstanding ops.
        outstanding: u32,
    },
    /// An open loop: each op arrives at its time, independent of earlier ops. An op that its flow cannot
    /// accept yet is queued; its latency counts from its arrival.
    Open(Arc<[OpArrival]>),
    /// Rounds of requests and answers. The master at `from` sends a request, and the worker at `to` answers
    /// after the whole request has arrived. The next round begins when the last answer of the group has
    /// arrived in full.
    Round {
        /// Payload of a request.
        request: Bytes,
        /// Payload of an answer.
        answer: Bytes,
        /// Number of the group: connections of one master form a group if they have the same number. No other
        /// group may use it.
        group: u32,
    },
}

/// One op of an open loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpArrival {
    /// Time of its arrival, not before that of the previous op.
    pub at: Time,
    /// Its payload.
    pub size: Bytes,
}

/// Ops of open loops that are read during the run.
pub trait FurtherOps<F: AlgorithmFactory>: fmt::Debug + Send + Sync {
    /// Starts to read the ops of these connections. Each call of the returned function takes a time and
    /// returns the ops that arrive before it and that no earlier call returned. Each op comes with its
    /// connection; the ops of a connection are in order of time. An error gives the reason why the ops cannot
    /// be read.
    fn begin(&self, connections: &[ConnectionPlan<F>]) -> NextOps;
}

/// See [`FurtherOps::begin`].
pub type NextOps = Box<dyn FnMut(Time) -> Result<Vec<(u32, OpArrival)>, String> + Send>;

/// A fault of a link in one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fault {
    /// Egress port of the link.
    pub port: PortId,
    /// Begin of the fault.
    pub at: Time,
    /// End of the fault; [`Time::MAX`] is the end of the run.
    pub until: Time,
    /// Kind of the fault.
    pub kind: FaultKind,
}

/// Reaction of switches to links that are down. Paths change some time after a link has failed, and after it
/// has been repaired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rerouting {
    /// Time after which the switches at the ends of the link react; `None`: never.
    pub local: Option<Span>,
    /// Time after which all switches avoid paths through the link; `None`: never.
    pub global: Option<Span>,
    /// How a group of ports that has lost a member distributes the flows over the remaining members.
    pub rehash: Rehash,
}

/// Kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultKind {
    /// The link is down: packets that are queued, on the link or arriving are lost. If faults overlap, the
    /// last one to end repairs the link.
    Down,
    /// The link has this fraction of its rate, and its port this fraction of its own memory and marking thresholds.
    Slow(f64),
    /// The link loses packets with this probability.
    Loss(f64),
    /// The link corrupts packets with this probability.
    Corrupt(f64),
    /// The link delays packets with this probability by this time, so that later packets overtake them.
    Reorder(f64, Span),
}
