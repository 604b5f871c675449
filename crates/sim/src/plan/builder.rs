//! Plans without a scenario: a topology, connections, and defaults for everything else.

use std::fmt;
use std::sync::Arc;

use apus_cc::{AlgorithmFactory, CreditLimit, SwitchHalf};
use apus_fabric::{Node, PortKind, Topology};
use apus_transport::EndpointConfig;
use apus_units::{Bytes, ClassId, HostId, Span, Time};

use super::{ConnectionPlan, JobPlan, Load, OpArrival, OpType, Plan, Rerouting};
use crate::credits::divide_ports;
use crate::host_model::{HostModel, Nic};
use crate::measure::Measures;
use crate::packets::PacketSizes;
use crate::switch_halves::{has_switch_half, have_same_switch_half, place_switch_halves};

/// Slot of the timer wheel for algorithms that depend on short gaps, as log2 of picoseconds: 8 ns. A packet
/// of 1538 B takes 123 ns at 100 Gb/s, and the gap between two credits varies by 13 ns. With the transport's
/// slot of 131 ns a rate would be up to half too low, and all credits would leave in step: a port that drops
/// the last credit of a step would always drop those of the same flow.
pub const FINE_TIMERS_LOG2_PS: u32 = 13;

/// A plan that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidPlan(String);

impl fmt::Display for InvalidPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidPlan {}

/// Builds a [`Plan`] from a topology and connections, see [`Plan::builder`].
///
/// Ports of switches get the switch halves of the algorithms, and a traffic class for credits.
#[derive(Clone, Debug)]
#[must_use]
pub struct PlanBuilder<F: AlgorithmFactory> {
    plan: Plan<F>,
}

impl<F: AlgorithmFactory> Plan<F> {
    /// Begins a plan of a run of length `duration`, with ideal hosts, packets of the default sizes, no
    /// warm-up and the seed 1.
    pub fn builder(topology: Topology<F::Switch>, duration: Span) -> PlanBuilder<F> {
        let plan = Self {
            topology,
            least_ports: PortKind::Fifo,
            sizes: PacketSizes::default(),
            host: HostModel::IDEAL,
            endpoint: EndpointConfig::default(),
            ack_class: None,
            credits: None,
            pfc: None,
            instant_signals: false,
            faults: Vec::new(),
            rerouting: Rerouting::default(),
            connections: Vec::new(),
            jobs: Vec::new(),
            demands: Vec::new(),
            duration,
            warmup: Span::ZERO,
            streamed: None,
            further: None,
            trace_ops: None,
            ends_with_ops: false,
            drain: Span::ZERO,
            sample_interval: None,
            fair_share_after: None,
            measures: Measures::default(),
            seed: 1,
        };
        PlanBuilder { plan }
    }
}

impl<F: AlgorithmFactory> PlanBuilder<F> {
    /// Adds connections.
    pub fn connections(mut self, more: impl IntoIterator<Item = ConnectionPlan<F>>) -> Self {
        self.plan.connections.extend(more);
        self
    }

    /// Adds a job whose connections have this algorithm. The run ends with the last job and op.
    ///
    /// # Errors
    /// See [`Plan::add_job`].
    pub fn job(mut self, job: JobPlan, algorithm: &F) -> Result<Self, InvalidPlan> {
        let (host, load) = (HostId::new(0), Load::Open(Arc::default()));
        let like = ConnectionPlan::with_load(host, host, algorithm, load);
        self.plan.add_job(job, &like).map_err(|error| InvalidPlan(error.to_string()))?;
        self.plan.ends_with_ops = true;
        Ok(self)
    }

    /// Sets the model of all hosts.
    pub fn host(mut self, model: HostModel) -> Self {
        self.plan.host = model;
        self
    }

    /// Sets the sizes of packets.
    pub fn packets(mut self, sizes: PacketSizes) -> Self {
        self.plan.sizes = sizes;
        self
    }

    /// Sets the end of the warm-up; measurements count from this time.
    pub fn warmup(mut self, warmup: Span) -> Self {
        self.plan.warmup = warmup;
        self
    }

    /// Sets the limit of the drain, in which outstanding ops can still end.
    pub fn drain(mut self, drain: Span) -> Self {
        self.plan.drain = drain;
        self
    }

    /// Sets the seed of all random streams.
    pub fn seed(mut self, seed: u64) -> Self {
        self.plan.seed = seed;
        self
    }

    /// Completes the plan.
    ///
    /// # Errors
    /// If nothing is measured, if a connection does not have two different hosts of the topology or has a
    /// class that ports do not have, or if the algorithms of a class need different ports.
    pub fn build(self) -> Result<Plan<F>, InvalidPlan> {
        let mut plan = self.plan;
        check_times(&plan)?;
        plan.connections.iter().enumerate().try_for_each(|(i, c)| check_connection(&plan, i, c))?;
        let algorithms = || plan.connections.iter().map(|connection| &connection.algorithm);
        plan.endpoint.max_payload = plan.sizes.payload;
        plan.endpoint.header_bytes = plan.sizes.header;
        if algorithms().any(F::fine_timers) {
            plan.endpoint.timer_granularity_log2_ps = FINE_TIMERS_LOG2_PS;
        }
        let halves = halves(&plan.connections, classes(&plan.topology))?;
        let queues = plan.host.nic == Nic::Queue;
        let takes_part = |_: &Topology<F::Switch>, node| queues || matches!(node, Node::Switch(_));
        place_switch_halves(&mut plan.topology, &halves, &plan.sizes, plan.seed, &takes_part);
        plan.credits = credit_limit(&plan)?;
        if let Some(limit) = plan.credits {
            divide_ports(&mut plan.topology, limit, &plan.sizes);
        }
        Ok(plan)
    }
}

/// Returns the number of traffic classes of the ports of switches.
fn classes<W: SwitchHalf>(topology: &Topology<W>) -> usize {
    let ports = topology.links.iter().flat_map(|link| [&link.ab, &link.ba]);
    ports.map(|port| port.classes.len()).max().unwrap_or(1)
}

fn check_times<F: AlgorithmFactory>(plan: &Plan<F>) -> Result<(), InvalidPlan> {
    if plan.warmup < plan.duration {
        return Ok(());
    }
    Err(InvalidPlan(format!(
        "the warm-up is {}, but the run ends at {}: nothing is measured",
        plan.warmup, plan.duration
    )))
}

fn check_connection<F: AlgorithmFactory>(
    plan: &Plan<F>,
    i: usize,
    connection: &ConnectionPlan<F>,
) -> Result<(), InvalidPlan> {
    let (hosts, classes) = (plan.topology.hosts, classes(&plan.topology));
    for host in [connection.from, connection.to] {
        if host.get() >= hosts {
            return Err(InvalidPlan(format!(
                "connection {i} names {host}, but the topology has {hosts}, numbered from 0"
            )));
        }
    }
    if connection.from == connection.to {
        return Err(InvalidPlan(format!(
            "connection {i} is from {} to itself; name two hosts",
            connection.from
        )));
    }
    if connection.class.index() >= classes {
        return Err(InvalidPlan(format!(
            "connection {i} is in {}, but the classes of ports are numbered from 0 to {}",
            connection.class,
            classes - 1
        )));
    }
    Ok(())
}

/// Returns the algorithm of each class that has a switch half.
fn halves<F: AlgorithmFactory>(
    connections: &[ConnectionPlan<F>],
    classes: usize,
) -> Result<Vec<Option<&F>>, InvalidPlan> {
    let mut halves: Vec<Option<&F>> = vec![None; classes];
    for connection in connections.iter().filter(|one| has_switch_half(&one.algorithm)) {
        let half = &mut halves[connection.class.index()];
        let first = *half.get_or_insert(&connection.algorithm);
        if !have_same_switch_half(first, &connection.algorithm) {
            let (a, b) = (first.name(), connection.algorithm.name());
            return Err(InvalidPlan(format!(
                "`{a}` and `{b}` are in one class, but differ in what switches do; give each a class"
            )));
        }
    }
    Ok(halves)
}

/// Returns the limit of credits of all credit-based algorithms.
fn credit_limit<F: AlgorithmFactory>(plan: &Plan<F>) -> Result<Option<CreditLimit>, InvalidPlan> {
    let mut limits = plan.connections.iter().filter_map(|c| c.algorithm.credit_limit());
    let Some(first) = limits.next() else { return Ok(None) };
    if limits.any(|limit| limit != first) {
        let why = "two algorithms have different limits of credits, but a port has one";
        return Err(InvalidPlan(why.to_owned()));
    }
    if classes(&plan.topology) > 1 {
        let why = "ports have classes, but an algorithm with credits divides every port itself";
        return Err(InvalidPlan(why.to_owned()));
    }
    Ok(Some(first))
}

impl<F: AlgorithmFactory> ConnectionPlan<F> {
    /// Returns a closed loop of writes of `size`, one outstanding at a time, from the start to the end of the run.
    #[must_use]
    pub fn closed(from: HostId, to: HostId, algorithm: &F, size: Bytes) -> Self {
        Self::with_load(from, to, algorithm, Load::Closed { size, outstanding: 1 })
    }

    /// Returns writes that are submitted at the given times, in this order.
    #[must_use]
    pub fn open(
        from: HostId,
        to: HostId,
        algorithm: &F,
        ops: impl IntoIterator<Item = OpArrival>,
    ) -> Self {
        let ops: Arc<[OpArrival]> = ops.into_iter().collect();
        Self::with_load(from, to, algorithm, Load::Open(ops))
    }

    fn with_load(from: HostId, to: HostId, algorithm: &F, load: Load) -> Self {
        Self {
            from,
            to,
            start: Time::ZERO,
            stop: Time::MAX,
            kind: OpType::Write,
            load,
            handshake: false,
            algorithm: algorithm.clone(),
            class: ClassId::new(0),
            workload: None,
            service: None,
            reroute: None,
            spread: None,
        }
    }
}
