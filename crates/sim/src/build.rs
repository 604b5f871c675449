//! Builds the network and the hosts of a plan, and reports errors of the plan.

use std::ops::Range;
use std::{fmt, io};

use apus_cc::{AlgorithmFactory, FlowInfo, PathPolicy, Signal};
use apus_fabric::{ControlError, Network, RouteError, Signalling, Terminal, TopologyError, Way};
use apus_transport::{Endpoint, EndpointConfig};
use apus_units::random::{INCREMENT, mix};
use apus_units::{FlowId, HostId, Span};
use apus_wire::{Body, Header, MAX_SIGNAL_QUEUE, Trimmed, link_rate_code};

use crate::application::Source;
use crate::clock::{Clock, HostClocks};
use crate::host::{FlowPaths, Host, HostFlow};
use crate::host_model::Nic;
use crate::plan::{ConnectionPlan, JobError, Load, Plan};
use crate::random::{Purpose, Stream};
use crate::service::Devices;
use crate::world::World;

/// A plan that cannot be simulated.
#[derive(Debug)]
pub enum PlanError {
    /// The topology is invalid.
    Topology(TopologyError),
    /// The two hosts of a connection cannot reach each other.
    Route(RouteError),
    /// Ports do not support the pauses that the plan requires.
    Pfc(ControlError),
    /// The system could not start a thread for a part of the network.
    Thread(io::Error),
    /// The ops of [`Plan::streamed`] cannot be read.
    Ops(String),
    /// A port with a fault is not built for faults.
    Fault(ControlError),
    /// [`Plan::ends_with_ops`] without [`Plan::trace_ops`] or a job.
    EndsWithOps,
    /// A job gets its messages from an external program, but the run has no such program.
    External(String),
    /// A job does not fit the host model.
    Job(JobError),
    /// A simulation for an external program does not have exactly one job for its messages.
    NotExternal,
    /// A path policy has fewer entropy values than its hosts have pairs of ports.
    FewValues {
        /// Index of the connection.
        connection: u32,
        /// Number of values.
        values: u32,
        /// Number of pairs.
        pairs: usize,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Topology(error) => error.fmt(f),
            Self::Route(error) => error.fmt(f),
            Self::Job(error) => error.fmt(f),
            Self::Pfc(error) | Self::Fault(error) => error.fmt(f),
            Self::EndsWithOps => f.write_str(
                "ends_with_ops needs a job, or trace_ops, the number of ops after which the run ends",
            ),
            Self::External(job) => write!(
                f,
                "job `{job}` has no operations of its own: a program sends its messages, through apus_sim.h or \
                 sim::live"
            ),
            Self::NotExternal => f.write_str(
                "a program needs exactly one workload of kind \"external\" for its messages",
            ),
            Self::FewValues { connection, values, pairs } => write!(
                f,
                "the path policy of connection {connection} has {values} entropy values for {pairs} pairs of ports, each \
                 of which needs one; set `evs` of the policy to {pairs} or more"
            ),
            Self::Thread(error) => {
                write!(f, "the system starts no thread ({error}); fewer threads may do")
            }
            Self::Ops(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for PlanError {}

/// Builds the network of a plan, without hosts.
pub(crate) fn build_network<F: AlgorithmFactory>(
    plan: &Plan<F>,
) -> Result<Network<Header, F::Switch>, PlanError> {
    if plan.ends_with_ops && plan.trace_ops.is_none() && plan.jobs.is_empty() {
        return Err(PlanError::EndsWithOps);
    }
    let network = plan.topology.build_at_least(plan.seed, plan.least_ports);
    let mut network = network.map_err(PlanError::Topology)?;
    network.answer_signals(signalling(plan));
    network.trim_packets(remove_payload);
    for spread in plan.connections.iter().filter_map(|connection| connection.spread.as_ref()) {
        if let Some(rule) = spread.policy.at_switches() {
            network.let_switches_choose(rule, plan.seed);
        }
    }
    if let Some(pfc) = &plan.pfc {
        network.enable_pfc(pfc.clone()).map_err(PlanError::Pfc)?;
    }
    for fault in &plan.faults {
        network.check_variable(fault.port).map_err(PlanError::Fault)?;
    }
    Ok(network)
}

/// Builds the hosts `ids` of a plan with the flows of its connections. `world` has all routes.
pub(crate) fn make_hosts<F: AlgorithmFactory>(
    plan: &Plan<F>,
    ids: Range<u32>,
    world: &mut World<F>,
) -> Result<Vec<Host<F>>, PlanError> {
    let reads_wait = plan.connections.iter().any(|connection| connection.service.is_some());
    let endpoint = EndpointConfig { reads_wait, ..plan.endpoint };
    let first_host = ids.start;
    let network = &world.network;
    let mut hosts: Vec<Host<F>> = ids
        .map(|host| {
            let host = HostId::new(host);
            let clocks = draw_clocks(plan, host);
            let port_rate = || network.rate(network.host_port(host));
            let flow_rate = (plan.host.nic == Nic::Queue).then(port_rate);
            let endpoint = Endpoint::new(EndpointConfig { flow_rate, ..endpoint });
            let mut made = Host::new(host, endpoint, plan.host, clocks, network, plan.seed);
            made.devices = reads_wait.then(|| Box::new(Devices::new(host, plan.seed)));
            made
        })
        .collect();
    reserve(&mut hosts, first_host, &plan.connections);
    for (job, one) in (0..).zip(&plan.jobs) {
        for (rank, host) in (0..).zip(one.hosts.iter()) {
            let local = host.get().checked_sub(first_host).map(|host| host as usize);
            if let Some(host) = local.and_then(|host| hosts.get_mut(host)) {
                host.jobs.get_or_insert_default().add_rank(job, rank, one);
            }
        }
    }
    let mut flows = vec![0; plan.topology.hosts as usize];
    for (index, connection) in plan.connections.iter().enumerate() {
        let ids = (plan.seed, index as u32);
        let ends = plan.terminals(connection);
        if connection.from != connection.to && (ends.0.ports.is_some() || ends.1.ports.is_some()) {
            world.terminals.insert(index as u32, ends);
        }
        open(world, &mut hosts, first_host, &mut flows, ids, (connection, ends))?;
    }
    Ok(hosts)
}

/// Returns the class and the size of signals of switches: those of acknowledgements.
fn signalling<F: AlgorithmFactory>(plan: &Plan<F>) -> Signalling<Header> {
    Signalling {
        payload: signal,
        class: plan.ack_class,
        wire_bytes: plan.sizes.control,
        instant: plan.instant_signals,
    }
}

/// Converts a data packet into the signal of a switch (Bolt Alg. 1 l. 6-9).
fn signal(header: &Header, signal: &Signal) -> Header {
    let body = Body::Signal(apus_wire::Signal {
        queue: u32::try_from(signal.queue.get()).unwrap_or(u32::MAX).min(MAX_SIGNAL_QUEUE),
        link_rate: link_rate_code(signal.link_rate),
        sent: signal.sent,
    });
    Header { flow: header.flow, seq: header.seq, body }
}

/// Trims a data packet to its header. Returns `false` if the packet has no payload to remove.
fn remove_payload(header: &mut Header, last_hop: bool) -> bool {
    let Body::Data(segment) = &header.body else { return false };
    let Some(trimmed) = Trimmed::of(segment, last_hop) else { return false };
    header.body = Body::Trimmed(trimmed);
    true
}

/// Draws the clocks of a host.
fn draw_clocks<F: AlgorithmFactory>(plan: &Plan<F>, id: HostId) -> HostClocks {
    let model = &plan.host;
    let mut random = Stream::new(plan.seed, Purpose::Clock, u64::from(id.get()));
    let mut draw = || Clock {
        offset: model.clock_offset.mul_f64(random.uniform()),
        drift_ppb: (f64::from(model.clock_drift_ppb) * (2.0 * random.uniform() - 1.0)) as i32,
    };
    HostClocks::new(draw(), draw(), model.clock_reading_interval)
}

/// Reserves exactly the capacity that the flows of all connections need.
fn reserve<F: AlgorithmFactory>(
    hosts: &mut [Host<F>],
    first_host: u32,
    connections: &[ConnectionPlan<F>],
) {
    let mut counts = vec![(0, 0); hosts.len()];
    let local = |host: HostId| host.get().checked_sub(first_host).map(|host| host as usize);
    for connection in connections {
        if let Some((flows, sources)) = local(connection.from).and_then(|h| counts.get_mut(h)) {
            *flows += 1;
            *sources += usize::from(!matches!(connection.load, Load::Job { .. }));
        }
        if let Some((flows, _)) = local(connection.to).and_then(|h| counts.get_mut(h)) {
            *flows += 1;
        }
    }
    for (host, (flows, sources)) in hosts.iter_mut().zip(counts) {
        host.reserve(flows, sources);
    }
}

/// Opens another connection of a plan that already runs in one part.
pub(crate) fn open_further<F: AlgorithmFactory>(
    plan: &Plan<F>,
    index: usize,
    world: &mut World<F>,
    hosts: &mut [Host<F>],
) -> Result<(), PlanError> {
    let connection = &plan.connections[index];
    let mut flows = vec![0; connection.from.index().max(connection.to.index()) + 1];
    for host in [connection.from, connection.to] {
        flows[host.index()] = hosts[host.index()].flows.len() as u32;
    }
    world.metrics.add_connection();
    let ends = plan.terminals(connection);
    if ends.0.ports.is_some() || ends.1.ports.is_some() {
        world.terminals.insert(index as u32, ends);
    }
    let opened = [connection.from, connection.to].map(|host| (host.index(), flows[host.index()]));
    open(world, hosts, 0, &mut flows, (plan.seed, index as u32), (connection, ends))?;
    if world.network.has_detours() {
        for (host, flow) in opened {
            hosts[host].avoid_by(flow as usize, world);
        }
    }
    Ok(())
}

/// Opens a connection: a flow and, if needed, a source of ops at each end that is one of `hosts`. `flows`
/// counts the flows of every host of the network.
fn open<F: AlgorithmFactory>(
    world: &mut World<F>,
    hosts: &mut [Host<F>],
    first_host: u32,
    flows: &mut [u32],
    (seed, connection): (u64, u32),
    (plan, ends): (&ConnectionPlan<F>, (Terminal, Terminal)),
) -> Result<(), PlanError> {
    let key = u64::from(connection);
    let mut ids = [plan.from, plan.to].map(|host| {
        let id = FlowId::new(flows[host.index()]);
        flows[host.index()] += 1;
        id
    });
    for (own, other) in [ends, (ends.1, ends.0)] {
        let (host, peer) = (own.host, other.host);
        // Every part resolves every route, so that route identifiers are the same in all parts.
        let route = world.network.route(own, other, key, 0).map_err(PlanError::Route)?;
        let spreads = plan.spread.is_some();
        let mut set = None;
        if spreads {
            set = Some(world.network.planned_path_set(own, other).map_err(PlanError::Route)?);
        }
        let local = host.get().checked_sub(first_host).and_then(|h| hosts.get_mut(h as usize));
        if let Some(local) = local {
            let is_spread = plan.spread.is_some();
            let class = plan.class;
            let mut ports = local.ports.bit_of(world.network.first_port(route));
            let mut flow = HostFlow { connection, peer, route, path_label: 0, class, is_spread };
            if let (Some(set), Some(spread)) = (set, &plan.spread) {
                flow.path_label = local.spreads.len() as u32; // fewer than flows
                let hash = mix(mix(seed.wrapping_add(INCREMENT)) ^ key);
                let forms = (spread.form, spread.ack_path);
                let way = spread
                    .policy
                    .at_switches()
                    .map_or(Way::FORWARD, |rule| world.network.let_switches_choose(rule, seed));
                let mut paths = FlowPaths::new(set, hash, forms, way);
                local.ports.bind(&mut paths, (host, peer), &world.network);
                ports = paths.ports();
                local.spreads.push(paths);
            }
            let side = u64::from(host != plan.from);
            let info = FlowInfo {
                // Ports of one NIC are alike.
                line_rate: {
                    let rate = world.network.rate(world.network.first_port(route));
                    rate.saturating_mul(u64::from(ports.count_ones()))
                },
                seed: Stream::new(seed, Purpose::Flow, 2 * key + side).bits(),
                ..world.sizes.flow_info()
            };
            let id = local.add_flow(ids[1], &plan.algorithm, (&info, ports), flow);
            if let Some(spread) = &plan.spread {
                let seed = Stream::new(seed, Purpose::Path, 2 * key + side).bits();
                local.endpoint.spread(id, spread.policy.clone(), spread.transport, seed);
                if let Some(paths) = local.spreads.last() {
                    let (values, pairs) = (spread.policy.values(), paths.pairs());
                    if (values as usize) < pairs {
                        return Err(PlanError::FewValues { connection, values, pairs });
                    }
                    local.endpoint.set_ports(id, ports.count_ones(), paths.pairs());
                }
            }
            if let (Load::Job { job, from, to }, Some(jobs)) = (&plan.load, &mut local.jobs) {
                let ranks = (*from, *to);
                if host == plan.from {
                    jobs.add_sending_flow(*job, ranks, ids[0]);
                } else {
                    let back = world.network.route_ports(route).into_iter();
                    let delay = back.map(|port| world.network.delay(port));
                    let delay = delay.fold(Span::ZERO, |sum, delay| sum + delay);
                    jobs.add_receiving_flow(*job, ranks, ids[0], (peer, delay));
                }
            }
            if host == plan.from {
                if let Some(source) = Source::of(plan, ids[0]) {
                    local.application.add(source);
                }
            } else {
                if let Some(source) = Source::of_peer(plan, ids[0]) {
                    local.application.add(source);
                }
                if let (Some(devices), Some(service)) = (&mut local.devices, &plan.service) {
                    devices.add(ids[0], **service);
                }
            }
        }
        ids.reverse();
    }
    Ok(())
}
