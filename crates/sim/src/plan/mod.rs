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
    /// Simplest kind of port to use, even if a simpler one would do: for tests and benchmarks.
    pub least_ports: PortKind,
    /// Sizes of packets on the wire.
    pub sizes: PacketSizes,
    /// Every host.
    pub host: HostModel,
    /// Every transport endpoint.
    pub endpoint: EndpointConfig,
    /// Class of acknowledgements and read requests; `None`: that of their connection.
    pub ack_class: Option<ClassId>,
    /// Limit of credits at ports, if any flow is credit-based. [`Plan::topology`] is divided already.
    pub credits: Option<CreditLimit>,
    /// Switches pause ports that fill their memory. Every port must be pausable.
    pub pfc: Option<PfcConfig>,
    /// Signals of switches reach their source without delay.
    pub instant_signals: bool,
    /// Faults of links. The ports concerned must be `variable`.
    pub faults: Vec<Fault>,
    /// What switches do about links that are down.
    pub rerouting: Rerouting,
    /// The connections, in the order in which results list them.
    pub connections: Vec<ConnectionPlan<F>>,
    /// The jobs, in the order in which results list them.
    pub jobs: Vec<Arc<JobPlan>>,
    /// The workloads that the connections belong to, for the offered load.
    pub demands: Vec<Demand>,
    /// Simulated time from the start to the end.
    pub duration: Span,
    /// End of the warm-up, from which measurements count.
    pub warmup: Span,
    /// Ops of open loops that are not in their [`Load`], because the run reads them as it goes.
    pub streamed: Option<Arc<dyn FurtherOps<F>>>,
    /// Ops that open loops submit during the drain; `None`: no more ops.
    pub further: Option<Arc<dyn FurtherOps<F>>>,
    /// Number of ops if all workloads are traces, so that the run has a makespan.
    pub trace_ops: Option<u64>,
    /// The measured phase ends with the last op if all ops and jobs end before `duration`.
    pub ends_with_ops: bool,
    /// Limit of the drain, in which ops submitted in the measured phase can end.
    pub drain: Span,
    /// Length of the intervals in which each connection's rate is measured.
    pub sample_interval: Option<Span>,
    /// Time after each change of the set of active connections from which rates are compared with
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
    /// Its name, or its kind.
    pub label: String,
    /// Label of its algorithm.
    pub algorithm: String,
    /// Name of its traffic class, if the topology has classes.
    pub class: Option<String>,
    /// Connections in [`Plan::connections`].
    pub connections: Range<usize>,
    /// Interval in which the ops of an open loop arrive; `None` for a closed loop.
    pub open: Option<(Time, Time)>,
    /// `true` if the ops are the messages of a trace: their number is fixed, and the drain waits for each.
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
    /// Whether an empty packet and its acknowledgement are exchanged before the first op of an open
    /// loop, whose latency includes the exchange.
    pub handshake: bool,
    /// Algorithm of both directions.
    pub algorithm: F,
    /// Traffic class.
    pub class: ClassId,
    /// Index into [`Measures::workloads`], if it belongs to a named workload.
    pub workload: Option<u32>,
    /// Device on which its reads wait at the peer; `None`: they are answered at once.
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
    /// Returns the op of the transport. No byte is stored in a simulation, so that one region serves all ops.
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
    /// State of the policy of a flow that has not begun.
    pub policy: P,
    /// Loss detection, and the range of packet numbers.
    pub transport: SpreadConfig,
    /// Meaning of entropy values.
    pub form: EvForm,
    /// Paths of acknowledgements.
    pub ack_path: AckPath,
}

/// Meaning of an entropy value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvForm {
    /// Switches hash it with the flow: several values may lead to the same path.
    Hashed,
    /// The value modulo the number of paths is the number of the path.
    Indexed,
}

/// Path of acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckPath {
    /// The reverse of the path of the data packet.
    Symmetric,
    /// A path by a hash of the number of the acknowledgement.
    Own,
}

/// A device behind a host, such as a disk, for which reads wait: it serves `parallel` reads at a
/// time, the others in order of arrival.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Service {
    /// Connections with the same number share the device of the host that answers them.
    pub device: u32,
    /// Mean time that one read takes, above 0.
    pub time: Span,
    /// Share of that time that is exponentially distributed, from 0 to 1; the rest is constant.
    pub noise: f64,
    /// Reads that are served at a time, at least 1.
    pub parallel: u32,
}

/// A change of a connection's path: later packets take the new one, in both directions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reroute {
    /// From here on.
    pub at: Time,
    /// The egress ports from the connection's `from` to its `to`.
    pub path: Arc<[PortId]>,
}

impl<F: AlgorithmFactory> ConnectionPlan<F> {
    /// Returns its hosts in the direction of its data: that of a read's answer, and of the larger
    /// half of a round.
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
    /// An open loop: each op arrives at its time, independent of earlier ones. An op for which the
    /// flow has no room is queued; its latency counts from its arrival.
    Open(Arc<[OpArrival]>),
    /// Rounds of requests and answers: the master at `from` sends a request, the worker at `to`
    /// answers it when all of it has arrived, and the next round begins when the last of the group's
    /// answers has arrived in full.
    Round {
        /// Payload of a request.
        request: Bytes,
        /// Payload of an answer.
        answer: Bytes,
        /// Which connections of the master belong together: the same number, used by no other.
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

/// Ops of open loops that a run asks for while it goes.
pub trait FurtherOps<F: AlgorithmFactory>: fmt::Debug + Send + Sync {
    /// Begins with these connections. Each call of the function returns the ops that arrive before a
    /// time and after those returned before, each with its connection, in order of time per
    /// connection; or why they cannot be read.
    fn begin(&self, connections: &[ConnectionPlan<F>]) -> NextOps;
}

/// See [`FurtherOps::begin`].
pub type NextOps = Box<dyn FnMut(Time) -> Result<Vec<(u32, OpArrival)>, String> + Send>;

/// A fault of a link in one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fault {
    /// Egress port of the link.
    pub port: PortId,
    /// From here on.
    pub at: Time,
    /// End; [`Time::MAX`] is the end of the run.
    pub until: Time,
    /// What.
    pub kind: FaultKind,
}

/// What switches do about links that are down: paths change some time after a link has failed, and after it
/// has been repaired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rerouting {
    /// Time after which the switches at the ends of the link notice; `None`: never.
    pub local: Option<Span>,
    /// Time after which all switches avoid paths through the link; `None`: never.
    pub global: Option<Span>,
    /// How a group of ports that has lost a member spreads the flows over the others.
    pub rehash: Rehash,
}

/// Kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultKind {
    /// The link is down: queued, flying and arriving packets are lost. Of faults that overlap, the last one
    /// to end repairs the link.
    Down,
    /// The link has this fraction of its rate, its port that of its own memory and marking thresholds.
    Slow(f64),
    /// The link loses packets with this probability.
    Loss(f64),
    /// The link corrupts packets with this probability.
    Corrupt(f64),
    /// The link delays packets with this probability, by this time, so that others overtake them.
    Reorder(f64, Span),
}
