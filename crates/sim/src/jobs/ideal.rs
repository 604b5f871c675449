//! The ideal time of a job. It is the closed form, or the longest of three times: the critical path on the
//! fabric without other traffic, the time that the busiest NIC (or rank within its host) needs for its bytes,
//! and the computations of the busiest stream.

use std::collections::BTreeMap;
use std::sync::Arc;

use apus_cc::SwitchHalf;
use apus_fabric::{Network, Terminal};
use apus_jobs::collectives::Algorithm;
use apus_jobs::collectives::closed::{self, Form};
use apus_jobs::ideal::{self, Cost, Limits, Transfer};
use apus_jobs::loggops::Parameters;
use apus_jobs::{Action, Done, Program};
use apus_units::planted::{Bug, is_planted};
use apus_units::{Bytes, Rate, Span};
use apus_wire::Header;

use crate::packets::PacketSizes;
use crate::plan::{JobPlan, SendOrder};

/// Maximum number of operations for which the critical path is computed. deviation: no source; rationale:
/// about a microsecond and 150 B per operation, so several seconds and a gigabyte.
const MAX_OPS: u64 = 8_000_000;

/// The path between two hosts without other traffic.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Path {
    /// Rates of the links in order, as configured. For messages that use several ports of a NIC, these are
    /// the sums over the ports.
    rates: Vec<Rate>,
    delay: Span,
    /// Whether packets take several paths; then only the first and the last link carry all of them.
    spreads: bool,
    /// Number of messages that the ports of an end carry at the same time.
    shares: u64,
}

impl Path {
    fn of<W: SwitchHalf>(
        network: &Network<Header, W>,
        (from, to): (Terminal, Terminal),
        spreads: bool,
    ) -> Option<Self> {
        let ports = network.path(from, to, 0, 0).ok()?;
        let delay =
            ports.iter().fold(Span::ZERO, |sum, port| sum.saturating_add(network.delay(*port)));
        // If packets take several paths, they use all ports of the NICs.
        let planes = if spreads { network.common_ports(from, to) } else { 1 };
        let rate = |port| network.configured_rate(port).saturating_mul(u64::from(planes));
        let most = network.common_ports(from, from).max(network.common_ports(to, to));
        let shares = u64::from(most.div_ceil(planes));
        Some(Self { rates: ports.into_iter().map(rate).collect(), delay, spreads, shares })
    }

    /// Returns `true` if both NICs have the rate of the slowest link.
    fn is_bound_by_nics(&self) -> bool {
        let (Some(first), Some(last)) = (self.rates.first(), self.rates.last()) else {
            return true;
        };
        first == last && self.rates.iter().all(|rate| rate.as_bps() >= first.as_bps())
    }

    /// Returns the wire bytes of a message.
    fn wire(bytes: u64, sizes: PacketSizes) -> u64 {
        match bytes.div_ceil(u64::from(sizes.payload)) {
            0 => u64::from(sizes.control),
            packets => {
                let packets = packets + u64::from(is_planted(Bug::IdealTooLong));
                bytes + packets * u64::from(sizes.header)
            }
        }
    }

    /// Returns the times of a message without other traffic.
    fn cost(&self, bytes: u64, sizes: PacketSizes) -> Cost {
        let alone = if self.spreads {
            self.alone_over_paths(bytes, sizes)
        } else {
            self.alone_over_one_path(bytes, sizes)
        };
        self.cost_of(bytes, alone, sizes)
    }

    /// Returns the minimum times of a message whose sender has other messages outstanding. The last packet,
    /// which may be shorter than the others, may follow a packet of another message, and then does not wait
    /// for the previous packet of its own message.
    fn cost_among_others(&self, bytes: u64, sizes: PacketSizes) -> Cost {
        let alone =
            self.with_one_packet(0, Self::wire(bytes, sizes), Self::last_packet(bytes, sizes));
        self.cost_of(bytes, alone, sizes)
    }

    fn cost_of(&self, bytes: u64, alone: Span, sizes: PacketSizes) -> Cost {
        let first = self.rates.iter().take(1);
        let all = Self::sum(first.map(|rate| (rate, Self::wire(bytes, sizes))));
        // The packets of a message with one path leave through one port.
        let ports = if self.spreads { self.shares } else { 1 };
        let occupies = Span::from_ps(all.as_ps() / ports);
        let back = self.rates.iter().map(|rate| (rate, u64::from(sizes.control)));
        let acknowledgement = self.delay.saturating_add(Self::sum(back));
        Cost { occupies, latency: alone.saturating_sub(occupies), acknowledgement }
    }

    /// Returns the total time that these links take for their bytes.
    fn sum<'a>(links: impl Iterator<Item = (&'a Rate, u64)>) -> Span {
        let times = links.map(|(rate, bytes)| rate.serialization_time(Bytes::new(bytes)));
        times.fold(Span::ZERO, Span::saturating_add)
    }

    /// Returns the time if the `place`-th link carries `bytes`, and every other link carries one packet of
    /// `packet` bytes.
    fn with_one_packet(&self, place: usize, bytes: u64, packet: u64) -> Span {
        let on = |at: usize| if at == place { bytes } else { packet };
        let links = self.rates.iter().enumerate().map(|(at, rate)| (rate, on(at)));
        self.delay.saturating_add(Self::sum(links))
    }

    /// Returns the wire bytes of the last packet of a message.
    fn last_packet(bytes: u64, sizes: PacketSizes) -> u64 {
        let payload = u64::from(sizes.payload);
        Self::wire(bytes - bytes.saturating_sub(1) / payload * payload, sizes)
    }

    /// Returns the time at which the last packet of a message arrives if all packets take one path. On each
    /// link it follows the previous packet. Full packets are spaced by the slowest link so far.
    fn alone_over_one_path(&self, bytes: u64, sizes: PacketSizes) -> Span {
        let full = Bytes::new(u64::from(sizes.payload + sizes.header));
        let last = Bytes::new(Self::last_packet(bytes, sizes));
        let others = bytes.div_ceil(u64::from(sizes.payload)).saturating_sub(1);
        let (mut first_arrives, mut apart, mut arrives) = (Span::ZERO, Span::ZERO, Span::ZERO);
        for rate in &self.rates {
            let time = rate.serialization_time(full);
            (first_arrives, apart) = (first_arrives.saturating_add(time), apart.max(time));
            if others > 0 {
                let before = Span::from_ps(apart.as_ps().saturating_mul(others - 1));
                arrives = arrives.max(first_arrives.saturating_add(before));
            }
            arrives = arrives.saturating_add(rate.serialization_time(last));
        }
        self.delay.saturating_add(arrives)
    }

    /// Returns the minimum time of a message whose packets take several paths. The slower one of the first
    /// and the last link, which carry all packets, carries them without a pause. The other links add the time
    /// of one packet: the last one, which may be short and overtake others, or a full one.
    fn alone_over_paths(&self, bytes: u64, sizes: PacketSizes) -> Span {
        let (wire, last) = (Self::wire(bytes, sizes), Self::last_packet(bytes, sizes));
        let end = self.rates.len().saturating_sub(1);
        let is_last_slower = self.rates.last().map(|rate| rate.as_bps())
            < self.rates.first().map(|rate| rate.as_bps());
        let slower = if is_last_slower { end } else { 0 };
        let all = self.with_one_packet(slower, wire, last);
        let full = u64::from(sizes.payload + sizes.header);
        match wire - last {
            0 => all,
            others => all.max(self.with_one_packet(slower, others, full)),
        }
    }

    /// Returns the time at which the first packet of a message arrives.
    fn first_byte(&self, bytes: u64, sizes: PacketSizes) -> Span {
        let first = Self::wire(bytes.min(u64::from(sizes.payload)), sizes);
        let first = self.with_one_packet(0, first, first);
        if self.spreads { first.min(self.cost_among_others(bytes, sizes).alone()) } else { first }
    }
}

/// Adds a time to the sum of a stream, or of one direction of a NIC or rank.
fn add<K: Ord>(busy: &mut BTreeMap<K, Span>, key: K, time: Span) {
    let sum = busy.entry(key).or_default();
    *sum = sum.saturating_add(time);
}

/// The ideal time of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JobIdeal {
    pub(super) time: Span,
    /// Origin of the time.
    pub(super) source: &'static str,
}

/// Times of the messages of a job on the fabric without other traffic.
pub(super) struct Costs<'a> {
    job: &'a JobPlan,
    sizes: PacketSizes,
    /// Parameters of hosts of the LogGOPS model.
    loggops: Option<Parameters>,
    /// Indices into [`Costs::kinds`], because most pairs have equal paths.
    paths: BTreeMap<(Terminal, Terminal), u32>,
    kinds: Vec<Path>,
    /// Whether ranks of one host exchange messages.
    is_local: bool,
    /// Whether several ranks send or receive through one NIC.
    shares_nics: bool,
    /// Whether operations of the job are on several streams. A message occupies the sender's stream at the
    /// receiver too.
    has_streams: bool,
}

impl<'a> Costs<'a> {
    /// Returns the times for a job; `None` if hosts have no path. `spreads`: whether packets take several paths.
    pub(super) fn new<W: SwitchHalf>(
        job: &'a JobPlan,
        network: &Network<Header, W>,
        (sizes, spreads): (PacketSizes, bool),
        loggops: Option<Parameters>,
    ) -> Option<Self> {
        let (paths, kinds) = (BTreeMap::new(), Vec::new());
        let mut streams = job.graph.programs().flat_map(|program| program.ops()).map(|op| op.cpu);
        let first = streams.next();
        let has_streams = streams.any(|cpu| Some(cpu) != first);
        let (is_local, shares_nics) = (false, false);
        let mut costs =
            Self { job, sizes, loggops, paths, kinds, is_local, shares_nics, has_streams };
        let mut numbers: BTreeMap<Path, u32> = BTreeMap::new();
        // The rank that sends through each NIC, and the rank that receives.
        let mut users: [BTreeMap<Terminal, u32>; 2] = Default::default();
        for (from, program) in (0..).zip(job.graph.programs()) {
            for op in program.ops() {
                let Action::Send { to, .. } = op.action else { continue };
                let pair = job.terminals(from, to);
                let is_within = pair.0.host == pair.1.host;
                costs.is_local |= is_within || job.other_nic(from, to).is_some();
                if !is_within && !costs.paths.contains_key(&pair) {
                    let path = Path::of(network, pair, spreads)?;
                    let kind = *numbers.entry(path).or_insert_with_key(|path| {
                        costs.kinds.push(path.clone());
                        costs.kinds.len() as u32 - 1
                    });
                    costs.paths.insert(pair, kind);
                }
                let [senders, receivers] = &mut users;
                costs.shares_nics |= *senders.entry(pair.0).or_insert(from) != from;
                costs.shares_nics |= *receivers.entry(pair.1).or_insert(to) != to;
            }
        }
        Some(costs)
    }

    /// Returns the path between two hosts.
    fn path(&self, pair: &(Terminal, Terminal)) -> Option<&Path> {
        self.kinds.get(*self.paths.get(pair)? as usize)
    }

    /// Returns the times of a message, including the times of the hosts.
    pub(super) fn of(&self, from: u32, to: u32, bytes: u64) -> Cost {
        let cost = self.on_fabric(from, to, bytes);
        let Some(model) = &self.loggops else { return cost };
        let last = cost.alone();
        let path = self.path(&self.job.terminals(from, to));
        let first = path.map_or(cost.latency, |path| {
            // Time before and after the fabric is part of the latency.
            let own = path.cost(bytes, self.sizes).alone();
            path.first_byte(bytes, self.sizes).saturating_add(last.saturating_sub(own))
        });
        let latency = match self.has_streams {
            true => model.at_least((first, last)),
            false => model.alone(bytes, (first, last)),
        };
        Cost { occupies: Span::ZERO, latency, acknowledgement: Span::ZERO }
    }

    fn on_fabric(&self, from: u32, to: u32, bytes: u64) -> Cost {
        let pair = self.job.terminals(from, to);
        let none = Cost { occupies: Span::ZERO, latency: Span::ZERO, acknowledgement: Span::ZERO };
        match (self.path(&pair), self.job.local) {
            (Some(path), local) => {
                let mut cost = path.cost(bytes, self.sizes);
                if let (Some(local), Some(_)) = (local, self.job.other_nic(from, to)) {
                    let within = local.delay.saturating_add(local.occupies(bytes));
                    cost.latency = cost.latency.saturating_add(within);
                }
                cost
            }
            (None, Some(local)) if from != to => {
                Cost { occupies: local.occupies(bytes), latency: local.delay, ..none }
            }
            _ => none,
        }
    }

    /// Returns the ideal time of the job; `None` if the job is too large for the computation, or not all of
    /// its operations can end.
    pub(super) fn ideal(&self) -> Option<JobIdeal> {
        let job = self.job;
        let form = self.closed_form();
        if let Some((ideal, false)) = form {
            return Some(ideal);
        }
        let form = form.map(|(ideal, _)| ideal);
        if job.graph.ops() > MAX_OPS {
            return form;
        }
        let cost = |transfer: Transfer| self.of(transfer.from, transfer.to, transfer.bytes);
        // In the LogGOPS model sends take no time on the critical path.
        let done = if job.done == Done::LogGops { Done::Local } else { job.done };
        let outcome = ideal::run(&job.graph, done, Limits::None, cost);
        let path = JobIdeal { time: outcome.completion, source: "critical path" };
        let nic = JobIdeal { time: self.busiest_nic(), source: "bytes of the busiest NIC" };
        let stream =
            JobIdeal { time: self.busiest_stream(), source: "computations of the busiest stream" };
        let local = JobIdeal {
            time: self.busiest_within_hosts(),
            source: "bytes of the busiest rank within its host",
        };
        let bounds = [nic, local, stream].into_iter().chain(form);
        let longest = bounds.fold(path, |a, b| if b.time > a.time { b } else { a });
        (outcome.unfinished() == 0).then_some(longest)
    }

    /// Returns the closed form of the job, if it has one, and whether other bounds may be longer.
    fn closed_form(&self) -> Option<(JobIdeal, bool)> {
        let is_plain = !self.is_local && self.loggops.is_none();
        let (true, [path], Some(collective)) = (is_plain, &self.kinds[..], &self.job.collective)
        else {
            return None;
        };
        // A closed form assumes NICs at the rate of one message; hosts with further ports carry several
        // messages at the same time.
        if path.shares != 1 {
            return None;
        }
        // Whether a rank sends packets of several messages in turn. A direct all-to-all with one path is an
        // exception: all but the first packet to a rank follow each other on that rank's link, so the form is
        // exact if no link is slower.
        let among_others = self.job.order == SendOrder::Interleaved
            && match collective.algorithm {
                Algorithm::BroadcastBinomial => true,
                Algorithm::BroadcastChain { .. } => self.job.flows_per_pair > 1,
                Algorithm::AllToAllDirect => path.spreads || !path.is_bound_by_nics(),
                _ => false,
            };
        let form = closed::time(collective, |bytes| match among_others {
            true => path.cost_among_others(bytes, self.sizes),
            false => path.cost(bytes, self.sizes),
        });
        let (Form::Exact(time) | Form::AtLeast(time)) = form? else { return None };
        let others_may_be_longer = among_others || self.shares_nics;
        Some((JobIdeal { time, source: "closed form" }, others_may_be_longer))
    }

    /// Returns the time that the rank with the most bytes in the network within its host needs for them, in
    /// one direction.
    fn busiest_within_hosts(&self) -> Span {
        let Some(local) = self.job.local.filter(|_| self.is_local) else { return Span::ZERO };
        let mut busy: BTreeMap<(u32, bool), Span> = BTreeMap::new();
        for (from, program) in (0..).zip(self.job.graph.programs()) {
            for op in program.ops() {
                let Action::Send { to, bytes, .. } = op.action else { continue };
                if from == to {
                    continue;
                }
                let (source, target) = self.job.terminals(from, to);
                let time = local.occupies(bytes);
                if source.host == target.host {
                    add(&mut busy, (to, false), time);
                } else if self.job.other_nic(from, to).is_none() {
                    continue;
                }
                add(&mut busy, (from, true), time);
            }
        }
        busy.into_values().max().unwrap_or_default()
    }

    /// Returns the longest total time of the computations of a stream, which run one after the other. The
    /// critical path does not limit the computations that a stream runs at the same time.
    fn busiest_stream(&self) -> Span {
        let of_rank = |program: &Arc<Program>| {
            let mut busy: BTreeMap<u8, Span> = BTreeMap::new();
            for op in program.ops() {
                if let Action::Compute { time } = op.action {
                    add(&mut busy, op.cpu, time);
                }
            }
            busy.into_values().max().unwrap_or_default()
        };
        self.job.graph.programs().map(of_rank).max().unwrap_or_default()
    }

    /// Returns the time that the NIC with the most bytes needs for them, in one direction. The critical path
    /// does not limit the messages that a NIC sends at the same time.
    fn busiest_nic(&self) -> Span {
        let mut busy: BTreeMap<(Terminal, bool), Span> = BTreeMap::new();
        for (from, program) in (0..).zip(self.job.graph.programs()) {
            for op in program.ops() {
                let Action::Send { to, bytes, .. } = op.action else { continue };
                let ends = self.job.terminals(from, to);
                let Some(path) = self.path(&ends) else { continue };
                let wire = Bytes::new(Path::wire(bytes, self.sizes));
                let links = [path.rates.first(), path.rates.last()];
                for ((end, is_out), rate) in
                    [(ends.0, true), (ends.1, false)].into_iter().zip(links)
                {
                    let time = rate.map_or(Span::ZERO, |rate| rate.serialization_time(wire));
                    let time = Span::from_ps(time.as_ps() / path.shares);
                    add(&mut busy, (end, is_out), time);
                }
            }
        }
        busy.into_values().max().unwrap_or_default()
    }
}
