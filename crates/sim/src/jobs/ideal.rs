//! The ideal time of a job: its closed form, or the length of its critical path on the fabric without other
//! traffic.

use std::collections::BTreeMap;

use apus_cc::SwitchHalf;
use apus_fabric::Network;
use apus_jobs::Action;
use apus_jobs::collectives::closed::{self, Form};
use apus_jobs::ideal::{self, Cost, Limits, Transfer};
use apus_units::{Bytes, HostId, Rate, Span};
use apus_wire::Header;

use crate::packets::PacketSizes;
use crate::plan::JobPlan;

/// Number of operations up to which the critical path is computed. deviation: no source; rationale: about a
/// microsecond and 150 B per operation, so some seconds and a gigabyte.
const MAX_OPS: u64 = 8_000_000;

/// The path between two hosts without other traffic.
#[derive(Clone, Debug, PartialEq)]
struct Path {
    /// Rates of the links in order.
    rates: Vec<Rate>,
    delay: Span,
}

impl Path {
    fn of<W: SwitchHalf>(
        network: &mut Network<Header, W>,
        from: HostId,
        to: HostId,
    ) -> Option<Self> {
        let route = network.route(from, to, 0, 0).ok()?;
        let ports = network.route_ports(route);
        let delay = ports.iter().fold(Span::ZERO, |sum, port| sum + network.delay(*port));
        Some(Self { rates: ports.into_iter().map(|port| network.rate(port)).collect(), delay })
    }

    /// Times of a message: its packets follow each other without a pause on the slowest link, and one packet takes
    /// its time on each other link.
    fn cost(&self, bytes: u64, sizes: PacketSizes) -> Cost {
        let packets = bytes.div_ceil(u64::from(sizes.payload));
        let wire = match packets {
            0 => u64::from(sizes.control),
            packets => bytes + packets * u64::from(sizes.header),
        };
        let packet = if packets > 1 { u64::from(sizes.payload + sizes.header) } else { wire };
        let slowest = self.rates.iter().min_by_key(|rate| rate.as_bps());
        let (Some(slowest), Some(first)) = (slowest, self.rates.first()) else {
            return Cost { occupies: Span::ZERO, latency: Span::ZERO, acknowledgement: Span::ZERO };
        };
        let time = |rate: &Rate, bytes: u64| rate.serialization_time(Bytes::new(bytes));
        let all = self.rates.iter().fold(Span::ZERO, |sum, rate| sum + time(rate, packet));
        let alone = self.delay + time(slowest, wire) + (all - time(slowest, packet));
        let back = self.rates.iter().map(|rate| time(rate, u64::from(sizes.control)));
        let acknowledgement = back.fold(self.delay, |sum, time| sum + time);
        let occupies = time(first, wire);
        Cost { occupies, latency: alone - occupies, acknowledgement }
    }
}

/// The ideal time of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JobIdeal {
    pub(super) time: Span,
    /// How it was found.
    pub(super) source: &'static str,
}

/// Times of the messages of a job on the fabric without other traffic.
pub(super) struct Costs<'a> {
    job: &'a JobPlan,
    sizes: PacketSizes,
    paths: BTreeMap<(HostId, HostId), Path>,
    /// Whether ranks of one host exchange messages.
    is_local: bool,
}

impl<'a> Costs<'a> {
    /// Returns the times for a job; `None` if hosts have no path.
    pub(super) fn new<W: SwitchHalf>(
        job: &'a JobPlan,
        network: &mut Network<Header, W>,
        sizes: PacketSizes,
    ) -> Option<Self> {
        let mut costs = Self { job, sizes, paths: BTreeMap::new(), is_local: false };
        for (from, program) in (0..).zip(job.graph.programs()) {
            for op in program.ops() {
                let Action::Send { to, .. } = op.action else { continue };
                let pair = (job.hosts[from as usize], job.hosts[to as usize]);
                costs.is_local |= pair.0 == pair.1;
                if pair.0 != pair.1 && !costs.paths.contains_key(&pair) {
                    costs.paths.insert(pair, Path::of(network, pair.0, pair.1)?);
                }
            }
        }
        Some(costs)
    }

    /// Returns the times of a message.
    pub(super) fn of(&self, from: u32, to: u32, bytes: u64) -> Cost {
        let pair = (self.job.hosts[from as usize], self.job.hosts[to as usize]);
        let none = Cost { occupies: Span::ZERO, latency: Span::ZERO, acknowledgement: Span::ZERO };
        match (self.paths.get(&pair), self.job.local) {
            (Some(path), _) => path.cost(bytes, self.sizes),
            (None, Some(local)) if from != to => {
                Cost { occupies: local.occupies(bytes), latency: local.delay, ..none }
            }
            _ => none,
        }
    }

    /// Returns the ideal time of the job; `None` if it is too large to compute, or not all of its operations can end.
    pub(super) fn ideal(&self) -> Option<JobIdeal> {
        let job = self.job;
        let first = self.paths.values().next();
        let is_uniform = !self.is_local && self.paths.values().all(|path| Some(path) == first);
        if let (true, Some(path), Some(collective)) = (is_uniform, first, &job.collective) {
            let form = closed::time(collective, |bytes| path.cost(bytes, self.sizes));
            if let Some(Form::Exact(time) | Form::AtLeast(time)) = form {
                return Some(JobIdeal { time, source: "closed form" });
            }
        }
        if job.graph.ops() > MAX_OPS {
            return None;
        }
        let cost = |transfer: Transfer| self.of(transfer.from, transfer.to, transfer.bytes);
        let outcome = ideal::run(&job.graph, job.done, Limits::None, cost);
        (outcome.unfinished() == 0)
            .then_some(JobIdeal { time: outcome.completion, source: "critical path" })
    }
}
