//! `kind = "job"` and `kind = "collective"`: ranks on hosts that run the operations of a graph.

use std::sync::Arc;

use apus_jobs::collectives::{Algorithm, Collective};
use apus_jobs::{Done, Graph, goal};
use apus_sim::plan::{JobPlan, LocalNetwork, SendOrder};
use apus_sim::random::Stream;
use apus_units::{Bytes, HostId, Rate, Span, Time};

use super::declared::{Key, Kind, key, words_of};
use super::frame::Frame;
use super::hosts::read_hosts;
use super::section::Section;
use super::tree::Value;

pub(super) const FILE: Key = key(
    "file",
    Kind::Text,
    "A schedule in the text form of GOAL; `apus convert` makes it of the binary form",
);
pub(super) const OPERATIONS: Key = key("operations", Kind::Text, "The text of such a file");
pub(super) const PATTERN: Key = key(
    "pattern",
    Kind::Word(&PATTERNS),
    "The collective and its algorithm; rank r is the r-th in the ring or tree, and broadcasts are from rank 0",
)
.or("ring-all-reduce");
pub(super) const SIZE: Key = key(
    "size",
    Kind::Size,
    "The whole array of a rank; of an all-gather the whole result, of a pipeline what a micro-batch sends to the next stage",
)
.at_least(1);
pub(super) const RANKS: Key = key(
    "ranks",
    Kind::Count,
    "Number of ranks; `ranks_per_host` on each of the `hosts` if not given",
)
.at_least(2);
pub(super) const CHUNKS: Key = key(
    "chunks",
    Kind::Count,
    "For `double-binary-tree` and `chain-broadcast`: pieces of the data, of each tree or of the chain",
)
.at_least(1)
.or("8");
pub(super) const WINDOW: Key =
    key("window", Kind::Count, "For `window-all-to-all`: blocks that a rank sends at a time")
        .at_least(1)
        .or("4");
pub(super) const GROUP: Key = key(
    "group",
    Kind::Count,
    "For `hierarchical-all-reduce`: consecutive ranks that reduce among themselves first; `ranks_per_host` if not given",
)
.at_least(2);
pub(super) const MICRO_BATCHES: Key = key(
    "micro_batches",
    Kind::Count,
    "For `pipeline`: micro-batches, all forward and then all backward",
)
.at_least(1)
.or("8");
pub(super) const FORWARD: Key =
    key("forward", Kind::Time, "For `pipeline`: time of a stage for a micro-batch, forward");
pub(super) const BACKWARD: Key =
    key("backward", Kind::Time, "For `pipeline`: time of a stage for a micro-batch, backward");
pub(super) const COMPUTE: Key =
    key("compute", Kind::Time, "Time that every rank computes before each iteration").or("0s");
pub(super) const ITERATIONS: Key =
    key("iterations", Kind::Count, "How often the collective takes place").at_least(1).or("1");
pub(super) const PLACEMENT: Key = key(
    "placement",
    Kind::Word(&words_of(&PLACEMENTS)),
    "Hosts of the ranks: each host takes `ranks_per_host` ranks in order (`block`), the hosts take ranks in turn \
     (`round-robin`), or the ranks of `block` in an order drawn from the seed (`random`)",
)
.or("block");
pub(super) const JOB_HOSTS: Key =
    key("hosts", Kind::Hosts, "The hosts that ranks are placed on; all if not given");
pub(super) const RANKS_PER_HOST: Key =
    key("ranks_per_host", Kind::Count, "Ranks of a host, which share its NIC").at_least(1).or("1");
pub(super) const LOCAL_RATE: Key = key(
    "local_rate",
    Kind::Rate,
    "With several ranks per host: rate of a rank in each direction in the network within its host, such as NVLink",
)
.at_least(1);
pub(super) const LOCAL_DELAY: Key =
    key("local_delay", Kind::Time, "With several ranks per host: delay of that network").or("0s");
pub(super) const DONE: Key = key(
    "done",
    Kind::Word(&words_of(&DONES)),
    "When a send is done: its message has arrived (`delivered`; the sender hears of it after the propagation delay of \
     the path), its last byte has left (`local`), or the sender has the acknowledgement (`acknowledged`)",
)
.or("delivered");
pub(super) const SEND_ORDER: Key = key(
    "send_order",
    Kind::Word(&words_of(&SendOrder::ALL)),
    "Whether a host sends packets of all messages in turn (`interleaved`), or a rank sends one message after the other \
     (`sequential`), as closed forms of trees assume",
)
.or("interleaved");
pub(super) const JOB_FLOWS: Key = key(
    "flows_per_pair",
    Kind::Count,
    "Flows from one rank to another, which its messages take in turn",
)
.at_least(1)
.or("1");

/// Order in which the reference lists them: the default first.
const DONES: [(&str, Done); 3] =
    [("delivered", Done::Delivered), ("local", Done::Local), ("acknowledged", Done::Acknowledged)];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placement {
    Block,
    RoundRobin,
    Random,
}

const PLACEMENTS: [(&str, Placement); 3] = [
    ("block", Placement::Block),
    ("round-robin", Placement::RoundRobin),
    ("random", Placement::Random),
];

const PATTERNS: [&str; 13] = [
    "ring-all-reduce",
    "ring-reduce-scatter",
    "ring-all-gather",
    "halving-doubling",
    "double-binary-tree",
    "hierarchical-all-reduce",
    "binomial-broadcast",
    "chain-broadcast",
    "direct-all-to-all",
    "pairwise-all-to-all",
    "window-all-to-all",
    "bruck-all-to-all",
    "pipeline",
];

/// A job as a scenario describes it.
#[derive(Clone, Debug)]
pub(super) struct JobSpec {
    pub(super) graph: Arc<Graph>,
    collective: Option<Collective>,
    hosts: Vec<u32>,
    ranks_per_host: u32,
    placement: Placement,
    done: Done,
    order: SendOrder,
    local: Option<LocalNetwork>,
    flows_per_pair: u32,
    /// Largest number of connections for any placement.
    pub(super) connections: u64,
}

impl JobSpec {
    /// Reads a job from a file or, if `is_collective`, one that is generated.
    pub(super) fn read(
        section: &Section<'_>,
        frame: &Frame<'_>,
        is_collective: bool,
    ) -> Option<Self> {
        section.no_effect("stop", "on a job, which ends with its last operation");
        section.no_effect("every", "on a job; use `iterations`, or several jobs");
        let hosts = read_hosts(section, "hosts", frame.hosts, 1);
        let ranks_per_host: u32 = section.get_or_default("ranks_per_host");
        let local = read_local(section, ranks_per_host);
        let placement = section.meaning("placement", &PLACEMENTS);
        let done = section.meaning("done", &DONES);
        let order = section.meaning("send_order", &SendOrder::ALL);
        let flows_per_pair: u32 = section.get_or_default("flows_per_pair");
        let hosts = hosts?;
        let places = (hosts.len() as u32).saturating_mul(ranks_per_host);
        let (graph, collective) = if is_collective {
            let collective = read_collective(section, places, ranks_per_host)?;
            (collective.graph().map_err(|e| section.problem("pattern", e)).ok()?, Some(collective))
        } else {
            (read_file(section)?, None)
        };
        let ranks = graph.ranks();
        if ranks > places {
            let key = if is_collective { "ranks" } else { "hosts" };
            let per_host = ranks_per_host;
            section.problem(
                key,
                format_args!(
                    "leaves {ranks} ranks without room: {} hosts take {per_host} each; use more hosts or ranks_per_host",
                    hosts.len()
                ),
            );
            return None;
        }
        let (placement, done, order, local) = (placement?, done?, order?, local?);
        let mut spec = Self {
            graph: Arc::new(graph),
            collective,
            hosts,
            ranks_per_host,
            placement,
            done,
            order,
            local,
            flows_per_pair,
            connections: 0,
        };
        // As if each rank had a host of its own.
        let apart: Vec<HostId> = (0..ranks).map(HostId::new).collect();
        spec.connections = spec.on("", Span::ZERO, apart.into()).connection_count();
        Some(spec)
    }

    fn on(&self, name: &str, start: Span, hosts: Arc<[HostId]>) -> JobPlan {
        JobPlan {
            name: name.to_owned(),
            graph: Arc::clone(&self.graph),
            collective: self.collective,
            hosts,
            start: Time::ZERO + start,
            done: self.done,
            order: self.order,
            local: self.local,
            flows_per_pair: self.flows_per_pair,
            connections: 0..0,
        }
    }

    /// Returns the plan of the job.
    pub(super) fn plan(&self, name: &str, start: Span, random: &mut Stream) -> JobPlan {
        let (ranks, per_host) = (self.graph.ranks(), self.ranks_per_host);
        let used = ranks.div_ceil(per_host);
        let host = |place: u32| HostId::new(self.hosts[place as usize]);
        let hosts: Arc<[HostId]> = match self.placement {
            Placement::Block => (0..ranks).map(|rank| host(rank / per_host)).collect(),
            Placement::RoundRobin => (0..ranks).map(|rank| host(rank % used)).collect(),
            Placement::Random => {
                let order = random.permutation(ranks);
                order.into_iter().map(|place| host(place / per_host)).collect()
            }
        };
        self.on(name, start, hosts)
    }
}

/// Reads the network within hosts; the outer `None` means that an error was reported.
fn read_local(section: &Section<'_>, ranks_per_host: u32) -> Option<Option<LocalNetwork>> {
    if ranks_per_host == 1 {
        for key in ["local_rate", "local_delay"] {
            section.no_effect(key, "with one rank per host");
        }
        return Some(None);
    }
    let rate: Rate = section.require("local_rate")?;
    Some(Some(LocalNetwork { rate, delay: section.get_or_default("local_delay") }))
}

fn read_file(section: &Section<'_>) -> Option<Graph> {
    let (key, name, text) = section.text_or_file("operations", "GOAL as text")?;
    match goal::read(text.as_bytes()) {
        Ok(graph) => {
            let mut written = String::new();
            if !matches!(goal::write_text(&graph, &mut written), Ok(Ok(()))) {
                written = text;
            }
            section.record("operations", Value::Text(written));
            Some(graph)
        }
        Err(why) => {
            section.problem(key, format_args!("{name} {why}"));
            None
        }
    }
}

fn read_collective(section: &Section<'_>, places: u32, per_host: u32) -> Option<Collective> {
    let pattern = section.word("pattern")?;
    let only = |key: &'static str, of: &[&str]| -> bool {
        let used = of.contains(&pattern);
        if !used {
            section.no_effect(key, &format!("on the pattern `{pattern}`"));
        }
        used
    };
    let chunks = only("chunks", &["double-binary-tree", "chain-broadcast"])
        .then(|| section.get_or_default::<u32>("chunks"));
    let window =
        only("window", &["window-all-to-all"]).then(|| section.get_or_default::<u32>("window"));
    let group = only("group", &["hierarchical-all-reduce"]);
    let is_pipeline = only("micro_batches", &["pipeline"]);
    only("forward", &["pipeline"]);
    only("backward", &["pipeline"]);
    let algorithm = match pattern {
        "ring-reduce-scatter" => Algorithm::RingReduceScatter,
        "ring-all-gather" => Algorithm::RingAllGather,
        "halving-doubling" => Algorithm::HalvingDoubling,
        "double-binary-tree" => Algorithm::DoubleBinaryTree { chunks: chunks? },
        "hierarchical-all-reduce" if group => {
            if section.node("group").is_none() && per_host < 2 {
                section.missing("group", "the number of ranks of a group");
                return None;
            }
            Algorithm::Hierarchical { group: section.get_or("group", per_host) }
        }
        "binomial-broadcast" => Algorithm::BroadcastBinomial,
        "chain-broadcast" => Algorithm::BroadcastChain { chunks: chunks? },
        "direct-all-to-all" => Algorithm::AllToAllDirect,
        "pairwise-all-to-all" => Algorithm::AllToAllPairwise,
        "window-all-to-all" => Algorithm::AllToAllWindow { window: window? },
        "bruck-all-to-all" => Algorithm::AllToAllBruck,
        "pipeline" if is_pipeline => Algorithm::Pipeline {
            micro_batches: section.get_or_default("micro_batches"),
            forward: section.require("forward")?,
            backward: section.require("backward")?,
        },
        _ => Algorithm::RingAllReduce,
    };
    let size: Bytes = section.require("size")?;
    let ranks: u32 = section.get_or("ranks", places);
    let mut collective = Collective::new(algorithm, ranks, size.get());
    collective.compute = section.get_or_default("compute");
    collective.iterations = section.get_or_default("iterations");
    Some(collective)
}
