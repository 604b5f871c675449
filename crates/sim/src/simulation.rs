//! One run: the engine loop and what surrounds it.

use std::fmt;
use std::time::Instant;

use apus_fabric::{Count, Node, Outcome, PortCounters, RouteError, TopologyError};
use apus_transport::Endpoint;
use apus_units::{FlowId, HostId, PortId, Span, Time};

use crate::application::ClosedLoop;
use crate::clock::{Clock, HostClocks};
use crate::fairness::FairShare;
use crate::host::{Host, HostFlow};
use crate::metrics::Metrics;
use crate::plan::{ConnectionPlan, Plan};
use crate::queue::EventQueue;
use crate::random::{Purpose, Stream};
use crate::summary::{
    Conservation, Cost, DistributionSummary, PhaseSummary, PortSummary, Summary, jain,
};
use crate::world::{Entities, Entity, World};

/// A plan that cannot be simulated.
#[derive(Debug)]
pub enum PlanError {
    /// The topology is wrong.
    Topology(TopologyError),
    /// Two hosts of a connection cannot reach each other.
    Route(RouteError),
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Topology(error) => error.fmt(f),
            Self::Route(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PlanError {}

/// A run whose results cannot be trusted.
#[derive(Debug)]
pub struct RunError(String);

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RunError {}

/// How far a run has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Simulated so far.
    pub simulated: Span,
    /// To be simulated in all.
    pub duration: Span,
    /// Events so far.
    pub events: u64,
}

/// A run about to start.
pub struct Simulation {
    world: World,
    hosts: Vec<Host>,
    plan: Plan,
    events: u64,
}

/// How often a run reports progress.
const PROGRESS_STEPS: u64 = 200;

impl Simulation {
    /// Builds the network, the hosts and their flows.
    ///
    /// # Errors
    /// If the topology is wrong or two hosts of a connection cannot reach each other.
    pub fn new(plan: &Plan) -> Result<Self, PlanError> {
        let network = if plan.force_class_ports {
            plan.topology.build_forcing_class_ports(plan.seed)
        } else {
            plan.topology.build(plan.seed)
        }
        .map_err(PlanError::Topology)?;
        let entities = Entities::new(network.ports().count() as u32);
        let mut world = World {
            queue: EventQueue::new(entities.count(network.hosts())),
            entities,
            metrics: Metrics::new(plan.connections.len(), !plan.warmup.is_zero()),
            sizes: plan.sizes,
            now: Time::ZERO,
            network,
        };
        let mut hosts: Vec<Host> = (0..plan.topology.hosts)
            .map(|id| {
                let id = HostId::new(id);
                let clocks = draw_clocks(plan, id);
                Host::new(id, Endpoint::new(plan.endpoint), plan.host, clocks, plan.seed)
            })
            .collect();
        for (index, connection) in plan.connections.iter().enumerate() {
            open(&mut world, &mut hosts, index as u32, connection).map_err(PlanError::Route)?;
        }
        for host in &mut hosts {
            host.start(&mut world);
        }
        Ok(Self { world, hosts, plan: plan.clone(), events: 0 })
    }

    /// Runs to the end and sums up.
    ///
    /// # Errors
    /// If packets were not conserved: then no number of the run means anything.
    pub fn run(
        mut self,
        name: &str,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Summary, RunError> {
        let started = Instant::now();
        let end = Time::ZERO + self.plan.duration;
        let warmup = Time::ZERO + self.plan.warmup;
        let mut fair_share = FairShare::new(&self.plan, &mut self.world.network);
        self.run_until(warmup, &mut fair_share, progress);
        self.world.metrics.end_warmup();
        let ports_at_warmup = self.port_counters(warmup);
        self.run_until(end, &mut fair_share, progress);
        self.check_conservation()?;
        let hops: u64 = self.port_counters(end).iter().map(|c| c.sent.packets).sum();
        let cost = Cost {
            wall_s: started.elapsed().as_secs_f64(),
            events: self.events,
            packet_hops: hops,
        };
        Ok(self.sum_up(name, &ports_at_warmup, &fair_share, cost))
    }

    /// Runs all events before `end`, stopping on the way for samples and progress.
    fn run_until(
        &mut self,
        end: Time,
        fair_share: &mut FairShare,
        progress: &mut dyn FnMut(Progress),
    ) {
        let step = (self.plan.duration / PROGRESS_STEPS).max(Span::from_ps(1));
        loop {
            let (stop, sample) = match fair_share.next_sample() {
                Some(at) if at <= end => (at, true),
                _ => (end, false),
            };
            let mut reached = Time::ZERO;
            while reached < stop {
                reached = next_multiple(self.now(), step).min(stop);
                self.run_events(reached);
                let simulated = reached.since(Time::ZERO);
                progress(Progress { simulated, duration: self.plan.duration, events: self.events });
            }
            if !sample {
                return;
            }
            fair_share.sample(stop, &mut self.world.metrics);
        }
    }

    /// The event loop: everything before `end`.
    fn run_events(&mut self, end: Time) {
        let world = &mut self.world;
        while let Some((now, entity)) = world.queue.pop_before(end) {
            self.events += 1;
            match world.entities.of(entity) {
                Entity::Fabric(event) => {
                    if let Outcome::Delivered { host, packet } = world.handle(now, event) {
                        self.hosts[host.index()].on_arrival(now, packet, world);
                    }
                }
                Entity::Host(host) => self.hosts[host.index()].on_wake(now, world),
            }
        }
        world.now = end;
    }

    fn now(&self) -> Time {
        self.world.now
    }

    /// Packets sent = delivered + dropped + in flight, at every port and in all.
    fn check_conservation(&self) -> Result<(), RunError> {
        self.world.network.check_conservation().map_err(|why| {
            RunError(format!("packets were not conserved, which is a bug of the simulator: {why}"))
        })
    }

    fn port_counters(&self, now: Time) -> Vec<PortCounters> {
        let network = &self.world.network;
        network.ports().map(|port| network.port_counters(port, now)).collect()
    }

    fn is_switch_port(&self, port: PortId) -> bool {
        matches!(self.world.network.port_ends(port).0, Node::Switch(_))
    }

    fn sum_up(
        &self,
        name: &str,
        before: &[PortCounters],
        fair_share: &FairShare,
        cost: Cost,
    ) -> Summary {
        let plan = &self.plan;
        let network = &self.world.network;
        let metrics = &self.world.metrics;
        let after = self.port_counters(Time::ZERO + plan.duration);
        let measured = plan.duration - plan.warmup;
        let seconds = measured.as_secs_f64();
        let gbps = |bytes: u64| bytes as f64 * 8e-9 / seconds;

        let mut startup = Totals::default();
        let mut steady = Totals::default();
        let mut busiest = (PortId::default(), 0);
        for port in network.ports().filter(|&port| self.is_switch_port(port)) {
            let (old, new) = (&before[port.index()], &after[port.index()]);
            startup.add(old.dropped, old.offered);
            steady.add(minus(new.dropped, old.dropped), minus(new.offered, old.offered));
            let sent = new.sent.bytes - old.sent.bytes;
            if sent > busiest.1 {
                busiest = (port, sent);
            }
        }
        let port = {
            let (port, bytes) = busiest;
            let (old, new) = (&before[port.index()], &after[port.index()]);
            let drops = new.dropped.packets - old.dropped.packets;
            let offered = new.offered.packets - old.offered.packets;
            PortSummary {
                name: network.port_name(port),
                throughput_gbps: gbps(bytes),
                utilisation: gbps(bytes) / network.rate(port).as_gbps_f64(),
                loss_rate: ratio(drops, offered),
                drops,
                mean_queue_bytes: (new.byte_time - old.byte_time) as f64 / measured.as_ps_f64(),
                max_queue_bytes: new.max_queue.get(),
            }
        };
        let counters = network.counters();
        let rates: Vec<f64> = metrics.connections.iter().map(|c| c.new_bytes as f64).collect();
        Summary {
            name: name.to_owned(),
            seed: plan.seed,
            startup: PhaseSummary::new(
                plan.warmup.as_secs_f64(),
                &metrics.startup,
                startup.drops,
                startup.offered,
            ),
            startup_loss_rate: ratio(startup.drops, startup.offered),
            measured: PhaseSummary::new(seconds, &metrics.warm, steady.drops, steady.offered),
            throughput_gbps: port.throughput_gbps,
            goodput_gbps: gbps(metrics.warm.new_bytes),
            duplicate_gbps: gbps(metrics.warm.duplicate_bytes),
            loss_rate: port.loss_rate,
            fabric_rtt_us: DistributionSummary::from(&metrics.fabric_rtt),
            end_to_end_rtt_us: DistributionSummary::from(&metrics.end_to_end_rtt),
            endpoint_delay_us: DistributionSummary::from(&metrics.endpoint_delay),
            op_latency_us: DistributionSummary::from(&metrics.op_latency),
            jain: jain(&rates),
            fair_share_deviation: fair_share.worst(),
            busiest_port: port,
            packets: Conservation {
                sent: counters.sent,
                delivered: counters.delivered,
                dropped: counters.dropped_total(),
                in_flight: counters.in_flight(),
                dropped_at_nic: metrics.nic_drops,
            },
            cost,
        }
    }
}

/// Drops and offers of several ports.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    drops: u64,
    offered: u64,
}

impl Totals {
    fn add(&mut self, dropped: Count, offered: Count) {
        self.drops += dropped.packets;
        self.offered += offered.packets;
    }
}

fn minus(a: Count, b: Count) -> Count {
    Count { packets: a.packets - b.packets, bytes: a.bytes - b.bytes }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// The first multiple of `step` after `now`.
fn next_multiple(now: Time, step: Span) -> Time {
    Time::from_ps((now.as_ps() / step.as_ps() + 1).saturating_mul(step.as_ps()))
}

fn draw_clocks(plan: &Plan, id: HostId) -> HostClocks {
    let model = &plan.host;
    let mut random = Stream::new(plan.seed, Purpose::Clock, u64::from(id.get()));
    let mut draw = || Clock {
        offset: model.clock_offset.mul_f64(random.uniform()),
        drift_ppb: (f64::from(model.clock_drift_ppb) * (2.0 * random.uniform() - 1.0)) as i32,
    };
    HostClocks::new(draw(), draw(), model.clock_reading_interval)
}

/// Opens a connection: a flow at either end and a closed loop at the first.
fn open(
    world: &mut World,
    hosts: &mut [Host],
    connection: u32,
    plan: &ConnectionPlan,
) -> Result<(), RouteError> {
    let key = u64::from(connection);
    let (from, to) = (plan.from.index(), plan.to.index());
    let ids = [from, to].map(|host| FlowId::new(hosts[host].flows.len() as u32));
    for (host, peer, peer_flow) in [(plan.from, plan.to, ids[1]), (plan.to, plan.from, ids[0])] {
        let route = world.network.route(host, peer, key, 0)?;
        let flow = HostFlow { connection, peer, route, path_label: 0, class: plan.class };
        hosts[host.index()].add_flow(peer_flow, plan.algorithm.sender(), flow);
    }
    hosts[from].application.add(ClosedLoop {
        flow: ids[0],
        start: plan.start,
        stop: plan.stop,
        kind: plan.kind,
        size: plan.size,
        outstanding: plan.outstanding,
    });
    Ok(())
}
