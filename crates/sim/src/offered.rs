//! Offered load of the links on the paths of open loops.
//!
//! A closed loop submits an op when another one ends, at the rate of the network. Therefore it has no offered load.

use std::collections::BTreeMap;

use apus_cc::{AlgorithmFactory, SwitchHalf};
use apus_fabric::{Network, Node, Terminal};
use apus_units::{PortId, Span, Time};
use apus_wire::Header;
use serde::Serialize;

use crate::build::PlanError;
use crate::columns::{gbps, summary};
use crate::packets::PacketSizes;
use crate::plan::{Demand, Load, OpArrival, Plan};

/// Scope of the load of links.
const LINK_LOAD: &str =
    "over the time in which ops of open loops arrive, within the measured phase";

summary! {
    /// The offered load of a run: wire bytes of data packets without retransmissions over what a link
    /// carries in the same time. Acknowledgements do not count. The time is that in which ops of open loops
    /// arrive, within the measured phase. Paths are those that flows start with. Flows that choose a path per packet load
    /// all of their paths alike.
    #[derive(Clone, Debug, Default, PartialEq, Serialize)]
    pub struct OfferedLoad {
        /// name of the egress port of the link with the largest offered load; null without open loops
        pub max_link: Option<String> = fact("-"),
        /// largest offered load of a link
        pub max_link_load: Option<f64> = fraction(LINK_LOAD),
        /// largest offered load of a link between a host and a switch
        pub host_link_load: Option<f64> = fraction(LINK_LOAD),
        /// largest offered load of a link between switches
        pub switch_link_load: Option<f64> = fraction(LINK_LOAD),
        /// mean offered load of the links between switches: the load of the bisection
        pub mean_switch_link_load: Option<f64> = fraction(LINK_LOAD),
        /// By workload.
        pub workload: BTreeMap<String, WorkloadLoad> = parts("<name>"),
    }
}

summary! {
    /// The offered load of one workload.
    #[derive(Clone, Debug, Default, PartialEq, Serialize)]
    pub struct WorkloadLoad {
        /// whether ops arrive independently of the completion of other ops; a closed loop submits an op when another
        /// op ends
        pub open_loop: bool = fact("-"),
        /// number of ops that arrive; null for a closed loop
        pub ops: Option<u64> = fact("sum over the measured phase"),
        /// payload bytes of `ops` * 8 / the time in which they arrive; null for a closed loop, or if all ops arrive
        /// at the same time
        pub offered_gbps: Option<f64> = fact("sum over its flows"),
        /// largest offered load of a link by this workload alone; null if `offered_gbps` is null
        pub max_link_load: Option<f64> =
            fact("over the time in which its ops arrive, within the measured phase"),
    }
}

impl OfferedLoad {
    /// Computes the offered load of a plan on its network.
    ///
    /// # Errors
    /// If the hosts of a connection cannot reach each other, or ops cannot be read.
    pub(crate) fn new<F: AlgorithmFactory>(
        plan: &Plan<F>,
        network: &mut Network<Header, F::Switch>,
    ) -> Result<Self, PlanError> {
        let mut groups: BTreeMap<&str, Vec<&Demand>> = BTreeMap::new();
        for demand in &plan.demands {
            groups.entry(&demand.label).or_default().push(demand);
        }
        let measured = (Time::ZERO + plan.warmup, Time::ZERO + plan.duration);
        let streamed = streamed(plan, measured)?;
        let mut all = LinkBytes::new(network);
        let mut hull = None;
        let mut workload = BTreeMap::new();
        for (label, demands) in groups {
            let Some(times) = demands.iter().filter_map(|d| d.open).reduce(joined) else {
                workload.insert(label.to_owned(), WorkloadLoad::default());
                continue;
            };
            let times = (times.0.max(measured.0), times.1.min(measured.1));
            hull = Some(hull.map_or(times, |hull| joined(hull, times)));
            let mut own = LinkBytes::new(network);
            // Grouped by pair, because a pair may have many flows.
            let mut spread: BTreeMap<(Terminal, Terminal), u64> = BTreeMap::new();
            let (mut ops, mut payload) = (0, 0);
            for index in demands.iter().flat_map(|demand| demand.connections.clone()) {
                let connection = &plan.connections[index];
                let Load::Open(arrivals) = &connection.load else { continue };
                let mut sum = streamed.get(&(index as u32)).copied().unwrap_or_default();
                arrivals.iter().for_each(|arrival| sum.add(arrival, measured, plan.sizes));
                ops += sum.ops;
                payload += sum.payload;
                if sum.wire == 0 {
                    continue;
                }
                let (source, sink) = plan.data_terminals(connection);
                if connection.spread.is_some() {
                    *spread.entry((source, sink)).or_default() += sum.wire;
                } else {
                    let path = network.path(source, sink, index as u64, 0);
                    let path = path.map_err(PlanError::Route)?.into_iter();
                    path.for_each(|port| own.add(port, sum.wire));
                }
            }
            for ((source, sink), wire) in spread {
                let set = network.path_set(source, sink).map_err(PlanError::Route)?;
                let count = u64::from(set.count());
                for number in 0..set.count() {
                    // The first paths take the remainder of the division.
                    let share = wire / count + u64::from(u64::from(number) < wire % count);
                    let path = network.route_ports(set.route(number)).into_iter();
                    path.for_each(|port| own.add(port, share));
                }
            }
            let network = &*network;
            let seconds = seconds(times);
            let load = WorkloadLoad {
                open_loop: true,
                ops: Some(ops),
                offered_gbps: seconds.map(|seconds| gbps(payload, seconds)),
                max_link_load: seconds
                    .and_then(|seconds| own.largest(network, seconds, |_| true))
                    .map(|(_, load)| load),
            };
            workload.insert(label.to_owned(), load);
            all.join(&own);
        }
        let Some(seconds) = hull.and_then(seconds) else {
            return Ok(Self { workload, ..Self::default() });
        };
        let between_switches = |port: PortId| match network.port_ends(port) {
            (Node::Switch(_), Node::Switch(_)) => true,
            (Node::Host(_), _) | (_, Node::Host(_)) => false,
        };
        let largest = all.largest(network, seconds, |_| true);
        let load_of = |link: Option<(PortId, f64)>| link.map(|(_, load)| load);
        Ok(Self {
            max_link: largest.map(|(port, _)| network.port_name(port)),
            max_link_load: load_of(largest),
            host_link_load: load_of(all.largest(network, seconds, |port| !between_switches(port))),
            switch_link_load: load_of(all.largest(network, seconds, between_switches)),
            mean_switch_link_load: all.mean(network, seconds, between_switches),
            workload,
        })
    }

    /// Returns a warning if a link has an offered load above 1.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let after = "queues and latencies grow as long as the load lasts, and the results depend on \
                     the length of the run";
        let mut warnings = Vec::new();
        if let (Some(link), Some(load)) = (&self.max_link, self.max_link_load.filter(|l| *l > 1.0))
        {
            warnings.push(format!(
                "offered load {load:.3} is above 1 at the link {link}, headers included: {after}"
            ));
        }
        for (name, workload) in &self.workload {
            let Some(load) = workload.max_link_load.filter(|load| *load > 1.0) else { continue };
            if warnings.is_empty() {
                warnings.push(format!(
                    "offered load {load:.3} of the workload `{name}` is above 1 at a link while its \
                     ops arrive, headers included: {after}"
                ));
            }
        }
        warnings
    }
}

/// Ops of a connection within the measured phase.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    ops: u64,
    payload: u64,
    wire: u64,
}

impl Sum {
    fn add(&mut self, op: &OpArrival, measured: (Time, Time), sizes: PacketSizes) {
        if measured.0 <= op.at && op.at < measured.1 {
            self.ops += 1;
            self.payload += op.size.get();
            self.wire += wire_bytes(op.size.get(), sizes);
        }
    }
}

/// Number of intervals in which streamed ops are added up, so that memory holds the ops of one interval only.
const PIECES: u64 = 256;

/// Returns the sums of the connections whose ops are read during the run.
fn streamed<F: AlgorithmFactory>(
    plan: &Plan<F>,
    measured: (Time, Time),
) -> Result<BTreeMap<u32, Sum>, PlanError> {
    let mut sums: BTreeMap<u32, Sum> = BTreeMap::new();
    let Some(ops) = &plan.streamed else { return Ok(sums) };
    let mut next = ops.begin(&plan.connections);
    let end = Span::from_ps(measured.1.as_ps());
    for piece in (1..PIECES).map(|piece| end / PIECES * piece).chain([end]) {
        for (connection, op) in next(Time::ZERO + piece).map_err(PlanError::Ops)? {
            sums.entry(connection).or_default().add(&op, measured, plan.sizes);
        }
    }
    Ok(sums)
}

/// Bytes by port.
struct LinkBytes(Vec<u64>);

impl LinkBytes {
    fn new<W: SwitchHalf>(network: &Network<Header, W>) -> Self {
        Self(vec![0; network.ports().count()])
    }

    fn add(&mut self, port: PortId, bytes: u64) {
        self.0[port.index()] += bytes;
    }

    fn join(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(bytes, more)| *bytes += more);
    }

    /// Returns the loads of the links of `which`, over `seconds`.
    fn loads<W: SwitchHalf>(
        &self,
        network: &Network<Header, W>,
        seconds: f64,
        which: impl Fn(PortId) -> bool,
    ) -> Vec<(PortId, f64)> {
        let ports = network.ports().filter(|port| which(*port));
        let load = |port: PortId| {
            self.0[port.index()] as f64 * 8.0 / seconds / network.rate(port).as_bps() as f64
        };
        ports.map(|port| (port, load(port))).collect()
    }

    /// Returns the first link of `which` with the largest load; `None` without links.
    fn largest<W: SwitchHalf>(
        &self,
        network: &Network<Header, W>,
        seconds: f64,
        which: impl Fn(PortId) -> bool,
    ) -> Option<(PortId, f64)> {
        let loads = self.loads(network, seconds, which).into_iter();
        loads.reduce(|first, other| if other.1 > first.1 { other } else { first })
    }

    /// Returns the mean load of the links of `which`; `None` without links.
    fn mean<W: SwitchHalf>(
        &self,
        network: &Network<Header, W>,
        seconds: f64,
        which: impl Fn(PortId) -> bool,
    ) -> Option<f64> {
        let loads = self.loads(network, seconds, which);
        let sum: f64 = loads.iter().map(|(_, load)| load).sum();
        (!loads.is_empty()).then(|| sum / loads.len() as f64)
    }
}

/// Returns the wire bytes of the data packets of an op.
fn wire_bytes(size: u64, sizes: PacketSizes) -> u64 {
    size + size.div_ceil(u64::from(sizes.payload)).max(1) * u64::from(sizes.header)
}

/// Returns the smallest interval that contains both intervals.
fn joined(a: (Time, Time), b: (Time, Time)) -> (Time, Time) {
    (a.0.min(b.0), a.1.max(b.1))
}

/// Returns the length of an interval; `None` if it is empty.
fn seconds((from, to): (Time, Time)) -> Option<f64> {
    (to > from).then(|| to.since(from).as_secs_f64())
}
