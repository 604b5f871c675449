//! Bound of the data queues by network calculus.
//!
//! The data that reaches an egress port was scheduled by credits that left the port at the other end of its
//! link, at most at their limited rate. The time from the departure of a credit there to the arrival of its
//! data is between `least` and `most`. Therefore data that arrives within a time T was scheduled within T +
//! (most - least). Consider a time at which the port has data, and let T be the time since the port was last
//! empty. Of the arrivals within T,
//!
//! ```text
//! data called for by credits   <= data * burst + data rate * (T + most - least)
//! requests, stops and the like <= unscheduled
//! ```
//!
//! and the link, on which only credits have priority, has carried at least `data rate * T`, except for
//! indivisible packets: the packet in service and the burst of credits before it, together less than one data
//! packet. The rest in the port is therefore at most
//!
//! ```text
//! bound = data * (burst + 1) + data rate * (most - least) + unscheduled
//! ```
//!
//! Requests, stops and acknowledgements are not scheduled by credits, so they have no bound in advance. Each
//! port records the maximum number of their bytes that arrived while it was never empty, and the check at the
//! end of a run uses this maximum. Before a run it is 0.
//!
//! The times follow from those of the previous hop, from the sender's NIC outward. Each hop adds a full
//! credit queue at most (none at least), and the worst data queue of the previous hop (ExpressPass §2:
//! differences in path length and in the hosts' processing are the only causes of queues). Credits count with
//! their nominal size: if sizes are random, short and long credits are assumed to balance.

use std::collections::BTreeMap;
use std::fmt;

use apus_cc::AlgorithmFactory;
use apus_fabric::{Network, RouteError};
use apus_units::{Bytes, PortId, Rate, Span};
use apus_wire::Header;

use super::credit_rate;
use crate::plan::{ConnectionPlan, Fault, FaultKind, Plan};

/// Reason why there is no bound.
#[derive(Debug)]
pub(crate) enum BoundError {
    /// Data queues of ports depend on each other in a cycle.
    Cycle,
    /// A host's engine has costs without an upper limit.
    Engine,
    /// Faults change rates, delays or paths, or flows change their paths.
    Changes,
    /// Two hosts cannot reach each other.
    Route(RouteError),
}

impl fmt::Display for BoundError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cycle => f.write_str("the paths of flows form a cycle"),
            Self::Engine => f.write_str("the hosts' engines take times without a limit"),
            Self::Changes => f.write_str("rates, delays or paths change during the run"),
            Self::Route(error) => error.fmt(f),
        }
    }
}

/// Bounds of the time from the departure of a credit from its last port to the arrival of its data in the queue.
#[derive(Clone, Copy, Debug)]
struct Delay {
    least: Span,
    most: Span,
}

/// Input of the bounds: the ports on the paths of data, each with its previous ports.
#[derive(Debug)]
pub(crate) struct DataBounds {
    before: BTreeMap<PortId, Vec<PortId>>,
}

impl DataBounds {
    /// Collects the paths of the connections of `plan` through `network`.
    ///
    /// # Errors
    /// If there is no bound.
    pub(crate) fn new<F: AlgorithmFactory>(
        plan: &Plan<F>,
        network: &Network<Header, F::Switch>,
    ) -> Result<Self, BoundError> {
        if plan.host.engine.is_some() {
            return Err(BoundError::Engine);
        }
        let reroutes = plan.rerouting.local.is_some() || plan.rerouting.global.is_some();
        let changes = |fault: &Fault| match fault.kind {
            FaultKind::Slow(_) | FaultKind::Reorder(..) => true,
            FaultKind::Down => reroutes,
            FaultKind::Loss(_) | FaultKind::Corrupt(_) => false,
        };
        let is_rerouted = |connection: &ConnectionPlan<F>| connection.reroute.is_some();
        if plan.faults.iter().any(changes) || plan.connections.iter().any(is_rerouted) {
            return Err(BoundError::Changes);
        }
        let mut before: BTreeMap<PortId, Vec<PortId>> = BTreeMap::new();
        for (key, connection) in (0..).zip(&plan.connections) {
            let ends = plan.terminals(connection);
            for (from, to) in [ends, (ends.1, ends.0)] {
                let ports = network.path(from, to, key, 0).map_err(BoundError::Route)?;
                before.entry(ports[0]).or_default();
                for pair in ports.windows(2) {
                    let list = before.entry(pair[1]).or_default();
                    if !list.contains(&pair[0]) {
                        list.push(pair[0]);
                    }
                }
            }
        }
        let bounds = Self { before };
        bounds.solve(plan, network, &|_| 0)?;
        Ok(bounds)
    }

    /// Returns the bound at every port on a path of data, in wire bytes. `unscheduled` returns the
    /// unscheduled bytes that may precede the data at a port.
    ///
    /// # Errors
    /// [`BoundError::Cycle`].
    pub(crate) fn solve<F: AlgorithmFactory>(
        &self,
        plan: &Plan<F>,
        network: &Network<Header, F::Switch>,
        unscheduled: &dyn Fn(PortId) -> u64,
    ) -> Result<BTreeMap<PortId, u64>, BoundError> {
        let before = &self.before;
        let mut solver = Solver { plan, network, before, unscheduled, delays: BTreeMap::new() };
        let mut bounds = BTreeMap::new();
        for port in before.keys() {
            let delay = solver.delay(*port)?;
            bounds.insert(*port, solver.bound(*port, delay));
        }
        Ok(bounds)
    }
}

struct Solver<'a, F: AlgorithmFactory> {
    plan: &'a Plan<F>,
    network: &'a Network<Header, F::Switch>,
    /// By port: ports from which its data may come.
    before: &'a BTreeMap<PortId, Vec<PortId>>,
    unscheduled: &'a dyn Fn(PortId) -> u64,
    /// By port: its delay; `None` while the delay is being computed.
    delays: BTreeMap<PortId, Option<Delay>>,
}

/// Returns the port at the other end of a link.
fn opposite(port: PortId) -> PortId {
    PortId::new(port.get() ^ 1)
}

impl<F: AlgorithmFactory> Solver<'_, F> {
    fn delay(&mut self, port: PortId) -> Result<Delay, BoundError> {
        match self.delays.get(&port) {
            Some(Some(delay)) => return Ok(*delay),
            Some(None) => return Err(BoundError::Cycle),
            None => {}
        }
        self.delays.insert(port, None);
        let arrives = self.network.delay(opposite(port));
        let mut delay = Delay { least: Span::MAX, most: Span::ZERO };
        for previous in &self.before[&port] {
            let hop = self.hop(*previous)?;
            delay.least = delay.least.min(hop.least);
            delay.most = delay.most.max(hop.most);
        }
        if self.before[&port].is_empty() {
            // The previous port is a NIC: its host answers a credit at once, apart from interference between
            // stack and wire.
            delay = Delay { least: Span::ZERO, most: self.plan.host.jitter };
        }
        delay = Delay { least: arrives + delay.least, most: arrives + delay.most };
        self.delays.insert(port, Some(delay));
        Ok(delay)
    }

    /// Returns the bounds of the time from the arrival of a credit in the queue towards `previous` to the
    /// arrival of its data from there.
    fn hop(&mut self, previous: PortId) -> Result<Delay, BoundError> {
        let beyond = self.delay(previous)?;
        let sizes = &self.plan.sizes;
        let rate = self.network.rate(previous);
        let credit_port = self.network.rate(opposite(previous));
        let time = |rate: Rate, bytes: u64| rate.serialization_time(Bytes::new(bytes));
        let packet = u64::from(sizes.payload + sizes.header);
        let wire = self.network.delay(previous);
        let (shortest, longest) = sizes.credit_range();
        let (shortest, longest) = (u64::from(shortest), u64::from(longest));
        let queue = u64::from(self.plan.credits.map_or(0, |limit| limit.queue)) * longest;
        let credit_waits = time(credit_rate(credit_port, sizes), queue) + time(credit_port, packet);
        let queued = self.bound(previous, beyond);
        let data_waits = self.data_rate(previous).serialization_time(Bytes::new(queued));
        Ok(Delay {
            least: time(credit_port, shortest)
                + beyond.least
                + time(rate, u64::from(sizes.header) + 1)
                + wire,
            most: credit_waits
                + time(credit_port, longest)
                + beyond.most
                + data_waits
                + time(rate, packet)
                + wire,
        })
    }

    /// Returns the rate of a link that remains for data.
    fn data_rate(&self, port: PortId) -> Rate {
        let rate = self.network.rate(port);
        Rate::from_bps(rate.as_bps() - credit_rate(rate, &self.plan.sizes).as_bps())
    }

    fn bound(&self, port: PortId, delay: Delay) -> u64 {
        let sizes = &self.plan.sizes;
        let packet = u64::from(sizes.payload + sizes.header);
        let burst = u64::from(self.plan.credits.map_or(0, |limit| limit.burst));
        let spread = delay.most.saturating_sub(delay.least);
        (self.unscheduled)(port)
            + packet * (burst + 1)
            + self.data_rate(port).bytes_in(spread).get()
    }
}
