//! `kind = "poisson"`: an open loop of ops of random sizes at random times.

use apus_units::Rate;

use super::declared::{Key, Kind, key, words_of};
use super::frame::{Frame, Times};
use super::hosts::{read_host, read_hosts, read_senders};
use super::section::Section;
use super::sizes_of::{OpSizes, read_sizes};

pub(super) const LOAD: Key = key(
    "load",
    Kind::Number,
    "Offered payload bytes per time, divided by the rate of a link. Without a `receiver`, it is the load of each \
     sender on its own link; with a `receiver`, the load of all senders together on the link of the receiver",
)
.above_0_to(10.0);
pub(super) const TO: Key = key(
    "to",
    Kind::Word(&["other-hosts", "other-racks"]),
    "\"other-racks\": hosts send only to hosts of other racks",
)
.or("other-hosts");
pub(super) const FLOWS: Key = key(
    "flows",
    Kind::Word(&words_of(&FLOW_PER_OP)),
    "\"per-pair\": the ops of a pair of hosts use its `flows_per_pair` flows in turn. If a flow cannot accept an op \
     yet, the op is queued, and its latency counts from its arrival. \"per-op\": each op has its own flow",
)
.or(FLOW_PER_OP[0].0);

/// Whether each op has a separate flow.
const FLOW_PER_OP: [(&str, bool); 2] = [("per-pair", false), ("per-op", true)];

/// Maximum number of ops of a workload: they are drawn before the run, 16 bytes each.
const MAX_OPS: f64 = 20e6;

/// The workload. Ops arrive at each sender as an independent Poisson process.
#[derive(Clone, Debug)]
pub(super) struct Poisson {
    /// Offered payload bytes per time over the link rate: the link of each sender with random pairs; the link
    /// of the receiver, for all senders together, with a fixed receiver.
    pub(super) load: f64,
    pub(super) sizes: OpSizes,
    pub(super) pairs: Pairs,
    /// Number of flows per pair; `None` for a separate flow for each op.
    pub(super) flows_per_pair: Option<u32>,
    /// Expected number of ops.
    pub(super) expected: f64,
}

/// The pairs of senders and receivers.
#[derive(Clone, Debug)]
pub(super) enum Pairs {
    /// Each host sends each op to a random other host.
    Random(Vec<u32>),
    /// Each host sends each op to a random host of another rack; the second list has the rack of
    /// each host of the topology.
    OtherRacks(Vec<u32>, Vec<u32>),
    /// Several senders and one receiver.
    To { senders: Vec<u32>, receiver: u32 },
}

impl Poisson {
    pub(super) fn read(section: &Section<'_>, frame: &Frame<'_>, times: &Times) -> Option<Self> {
        let load: Option<f64> = section.require("load");
        let sizes = read_sizes(section);
        let pairs = read_pairs(section, frame);
        let flows_per_pair = if section.meaning("flows", &FLOW_PER_OP)? {
            section.no_effect("flows_per_pair", "with flows = \"per-op\"");
            None
        } else {
            Some(section.get_or_default("flows_per_pair"))
        };
        let (load, sizes, pairs) = (load?, sizes?, pairs?);
        let end = times.stop.unwrap_or(frame.duration).min(frame.duration);
        let seconds = end.saturating_sub(times.start).as_secs_f64();
        let rates = frame.topology.host_rates();
        let poisson = Self { load, sizes, pairs, flows_per_pair, expected: 0.0 };
        let expected = poisson.senders().iter().map(|s| seconds / poisson.gap_s(*s, &rates)).sum();
        let message = format_args!(
            "gives some {expected:.0} ops, but a run has at most {MAX_OPS}; shorten the run or lower \
             the load"
        );
        section.check(expected <= MAX_OPS, "load", message);
        (expected <= MAX_OPS).then_some(Self { expected, ..poisson })
    }

    /// Returns an upper bound of the ops that are drawn: six standard deviations above the mean number.
    pub(super) fn most_ops(&self) -> u64 {
        (self.expected + 6.0 * self.expected.sqrt()).ceil() as u64
    }

    /// Returns the maximum number of connections that the workload opens.
    pub(super) fn connections(&self) -> u64 {
        let ops = self.most_ops();
        let pairs = match &self.pairs {
            Pairs::Random(hosts) | Pairs::OtherRacks(hosts, _) => {
                hosts.len() as u64 * (hosts.len() as u64 - 1)
            }
            Pairs::To { senders, .. } => senders.len() as u64,
        };
        match self.flows_per_pair {
            None => ops,
            Some(flows) => ops.min(pairs.saturating_mul(u64::from(flows))),
        }
    }

    pub(super) fn senders(&self) -> &[u32] {
        match &self.pairs {
            Pairs::Random(hosts) | Pairs::OtherRacks(hosts, _) => hosts,
            Pairs::To { senders, .. } => senders,
        }
    }

    /// Returns the mean time between two ops of a sender, in seconds.
    pub(super) fn gap_s(&self, sender: u32, rates: &[Rate]) -> f64 {
        let rate = |host: u32| rates.get(host as usize).map_or(1.0, |r| r.as_bps() as f64);
        let offered = match &self.pairs {
            Pairs::Random(_) | Pairs::OtherRacks(..) => self.load * rate(sender),
            Pairs::To { senders, receiver } => self.load * rate(*receiver) / senders.len() as f64,
        };
        self.sizes.mean() * 8.0 / offered
    }
}

fn read_pairs(section: &Section<'_>, frame: &Frame<'_>) -> Option<Pairs> {
    let hosts = frame.hosts;
    if section.node("receiver").is_none() {
        section
            .no_effect("senders", "without a `receiver`; name `hosts`, which all send and receive");
        let named = read_hosts(section, "hosts", hosts, 2)?;
        let remote = section.word("to")? == "other-racks";
        return if remote { read_racks(section, frame, named) } else { Some(Pairs::Random(named)) };
    }
    section.no_effect("to", "with a `receiver`");
    section.no_effect("hosts", "with a `receiver`; name the `senders`");
    let receiver = read_host(section, "receiver", hosts)?;
    Some(Pairs::To { senders: read_senders(section, "senders", &[receiver], hosts)?, receiver })
}

fn read_racks(section: &Section<'_>, frame: &Frame<'_>, hosts: Vec<u32>) -> Option<Pairs> {
    let racks = frame.topology.racks();
    let rack = |host: &u32| racks.get(*host as usize);
    let several = hosts.iter().any(|host| rack(host) != rack(&hosts[0]));
    let message = "is \"other-racks\", but all these hosts are in one: a rack is the hosts of a \
                   switch of a leaf-spine, fat tree, parking lot or dumbbell";
    section.check(several, "to", message);
    several.then_some(Pairs::OtherRacks(hosts, racks))
}
