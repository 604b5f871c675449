//! What to simulate, as plain data. [`Plan::builder`] makes a plan from a topology and connections.

mod builder;

use std::fmt;
use std::sync::Arc;

use apus_cc::{AlgorithmFactory, CreditLimit};
use apus_fabric::{PfcConfig, PortKind, Topology};
use apus_transport::{EndpointConfig, OpKind};
use apus_units::{Bytes, ClassId, HostId, PortId, Span, Time};

use crate::host_model::HostModel;
use crate::measure::Measures;
use crate::offered::Demand;
use crate::packets::PacketSizes;

pub use builder::{FINE_TIMERS_LOG2_PS, InvalidPlan, PlanBuilder};

/// A run.
#[derive(Clone, Debug)]
pub struct Plan<F: AlgorithmFactory> {
    /// The fabric.
    pub topology: Topology<F::Switch>,
    /// No port is of a simpler kind than this, also where one would do: for tests and benchmarks.
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
    /// Switches pause what fills their memory. Every port must be pausable.
    pub pfc: Option<PfcConfig>,
    /// Signals of switches are with their source at once.
    pub instant_signals: bool,
    /// What happens to links, when. The ports concerned must be `variable`.
    pub faults: Vec<Fault>,
    /// The connections, in the order in which results list them.
    pub connections: Vec<ConnectionPlan<F>>,
    /// The workloads that the connections belong to, for the offered load.
    pub demands: Vec<Demand>,
    /// Simulated time from the start to the end.
    pub duration: Span,
    /// Measurements count from here.
    pub warmup: Span,
    /// Ops that open loops submit during the drain; `None`: no more ops.
    pub further: Option<Arc<dyn FurtherOps<F>>>,
    /// Number of ops if all workloads are traces, so that the run has a makespan.
    pub trace_ops: Option<u64>,
    /// The measured phase ends with the last op if all ops end before `duration`.
    pub ends_with_ops: bool,
    /// How much longer the run may go on so that ops submitted in the measured phase can end.
    pub drain: Span,
    /// Measure each connection's rate over intervals of this length.
    pub sample_interval: Option<Span>,
    /// Compare rates with the fair share from this long after each change of the set of active
    /// connections.
    pub fair_share_after: Option<Span>,
    /// What is measured of parts of the run.
    pub measures: Measures,
    /// Fixes everything that is random.
    pub seed: u64,
}

/// One connection: a flow with the ops that one host submits over it to another.
#[derive(Clone, Debug)]
pub struct ConnectionPlan<F: AlgorithmFactory> {
    /// The host that submits ops.
    pub from: HostId,
    /// Its peer.
    pub to: HostId,
    /// When the first ops are submitted.
    pub start: Time,
    /// No op is submitted from here on.
    pub stop: Time,
    /// What an op does.
    pub kind: OpKind,
    /// How many ops of what size, and when.
    pub load: Load,
    /// Algorithm of both directions.
    pub algorithm: F,
    /// Traffic class.
    pub class: ClassId,
    /// Which of [`Measures::workloads`] it belongs to, if any.
    pub workload: Option<u32>,
    /// What its reads take at the peer before they are answered; `None`: nothing.
    pub service: Option<Arc<Service>>,
    /// When it takes another path, if it does.
    pub reroute: Option<Box<Reroute>>,
}

/// A device behind a host, like a disk, that its reads have to wait for: `parallel` of them at a time,
/// the others in the order in which their requests came.
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

/// A connection changes its path: packets sent from then on take the new one, in both directions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reroute {
    /// From here on.
    pub at: Time,
    /// The egress ports from the connection's `from` to its `to`.
    pub path: Arc<[PortId]>,
}

impl<F: AlgorithmFactory> ConnectionPlan<F> {
    /// Its hosts in the direction of its data: that of a read's answer, and of the larger half of a
    /// round.
    pub(crate) fn data_ends(&self) -> (HostId, HostId) {
        let answered = match (&self.load, self.kind) {
            (Load::Round { request, answer, .. }, _) => answer > request,
            (_, OpKind::Read { .. }) => true,
            (_, OpKind::Write { .. } | OpKind::Message) => false,
        };
        if answered { (self.to, self.from) } else { (self.from, self.to) }
    }
}

/// Which ops a connection submits.
#[derive(Clone, Debug, PartialEq)]
pub enum Load {
    /// A closed loop: so many ops are under way, each followed by the next when it completes.
    Closed {
        /// Payload of an op.
        size: Bytes,
        /// Ops under way at a time.
        outstanding: u32,
    },
    /// An open loop: each op comes at its time, whatever became of those before. An op that the flow
    /// has no room for waits for its turn; its latency counts from its time on.
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
    /// When it comes; never earlier than the one before.
    pub at: Time,
    /// Its payload.
    pub size: Bytes,
}

/// Ops of open loops that come after the end of a run, for its drain.
pub trait FurtherOps<F: AlgorithmFactory>: fmt::Debug + Send + Sync {
    /// Begins at the end of the run, whose connections these are. Each call of the function gives the ops
    /// that come before a time and after those given before, each with the connection that submits it; in
    /// order of time for each connection.
    fn begin(&self, connections: &[ConnectionPlan<F>]) -> NextOps;
}

/// See [`FurtherOps::begin`].
pub type NextOps = Box<dyn FnMut(Time) -> Vec<(u32, OpArrival)>>;

/// Something that happens to a link in one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fault {
    /// The egress port in front of the link.
    pub port: PortId,
    /// From here on.
    pub at: Time,
    /// Until here; [`Time::MAX`] is the end of the run.
    pub until: Time,
    /// What.
    pub kind: FaultKind,
}

/// What happens to a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultKind {
    /// It is down: what is in the port when it fails and what comes meanwhile is lost.
    Down,
    /// It loses packets with this probability.
    Loss(f64),
    /// It corrupts packets with this probability.
    Corrupt(f64),
    /// It holds packets back with this probability, by this long, so that others overtake them.
    Reorder(f64, Span),
}
