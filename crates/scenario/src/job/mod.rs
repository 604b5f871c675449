//! Jobs: ranks on hosts that run the operations of a graph, which is read from a file or generated.

mod collective;
mod file;
pub(super) mod keys;
mod training;

use std::collections::BTreeMap;
use std::sync::Arc;

use apus_jobs::collectives::Collective;
use apus_jobs::{Graph, ProgramBuilder};
use apus_sim::plan::{JobPlan, LocalNetwork, Nics, SendOrder};
use apus_sim::random::Stream;
use apus_units::{HostId, Rate, Span, Time};

use super::frame::Frame;
use super::hosts::read_hosts;
use super::import::MAX_RANKS;
use super::section::Section;
use super::tree::{Table, Value};
use apus_jobs::Done;
use keys::DONES;
pub(super) use training::{MODEL_KEYS, STEP_KEYS};

/// Kinds of workload that are jobs; `all-to-all` is a job if it has a `pattern`.
const KINDS: [&str; 8] = [
    "job",
    "all-reduce",
    "reduce-scatter",
    "all-gather",
    "broadcast",
    "pipeline",
    "training",
    "external",
];

/// Returns `true` if a workload is a job.
pub(super) fn is_job(table: &Table) -> bool {
    match table.get("kind").map(|node| &node.value) {
        Some(Value::Text(kind)) if kind == "all-to-all" => table.get("pattern").is_some(),
        Some(Value::Text(kind)) => KINDS.contains(&kind.as_str()),
        _ => false,
    }
}

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

/// The hosts on which ranks may be placed.
#[derive(Clone, Debug)]
enum Places {
    /// The host of each rank.
    Listed(Vec<u32>),
    /// Each host takes several ranks.
    Hosts { hosts: Vec<u32>, per_host: u32, placement: Placement },
}

impl Places {
    /// Reads the hosts and the number of ranks per host.
    fn read(section: &Section<'_>, frame: &Frame<'_>) -> Option<Self> {
        let Some(table) = section.section("places") else {
            section.node("places");
            let hosts = read_hosts(section, "hosts", frame.hosts, 1);
            let nics = frame.topology.nics();
            let default = nics.map_or(1, |(nics, _): (Nics, _)| u32::from(nics.count));
            let per_host: u32 = section.get_or("ranks_per_host", default);
            let placement = section.meaning("placement", &PLACEMENTS);
            return Some(Self::Hosts { hosts: hosts?, per_host, placement: placement? });
        };
        for key in ["hosts", "ranks_per_host", "placement"] {
            section.no_effect(key, "with `places`, which names the host of each rank");
        }
        let (key, name, text) = table.text_or_file("ranks", "the host of each rank")?;
        let hosts = read_places(&text, frame.hosts);
        if let Err(why) = &hosts {
            table.problem(key, format_args!("{name}{why}"));
        }
        table.record("ranks", Value::Text(text));
        table.finish();
        hosts.ok().map(Self::Listed)
    }

    /// Returns the number of ranks that the hosts can take.
    fn room(&self) -> u32 {
        match self {
            Self::Listed(hosts) => hosts.len() as u32,
            Self::Hosts { hosts, per_host, .. } => (hosts.len() as u32).saturating_mul(*per_host),
        }
    }

    /// Returns the largest number of ranks of a host.
    fn most_per_host(&self) -> u32 {
        match self {
            Self::Listed(hosts) => {
                let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
                hosts.iter().for_each(|host| *counts.entry(*host).or_default() += 1);
                counts.values().max().copied().unwrap_or(1)
            }
            Self::Hosts { per_host, .. } => *per_host,
        }
    }

    /// Returns the number of consecutive ranks of each host; `None` if the number differs between hosts, or if
    /// the ranks of a host are not consecutive.
    fn node(&self) -> Option<u32> {
        match self {
            Self::Listed(hosts) => {
                let most = self.most_per_host();
                let is_host = |run: &[u32]| {
                    run.len() as u64 == u64::from(most) && run.iter().all(|host| *host == run[0])
                };
                hosts.chunks(most as usize).all(is_host).then_some(most)
            }
            Self::Hosts { per_host, placement, .. } => {
                (*placement == Placement::Block).then_some(*per_host)
            }
        }
    }

    /// Returns the host of each rank.
    fn hosts(&self, ranks: u32, random: &mut Stream) -> Arc<[HostId]> {
        let (hosts, per_host, placement) = match self {
            Self::Listed(hosts) => return hosts.iter().copied().map(HostId::new).collect(),
            Self::Hosts { hosts, per_host, placement } => (hosts, *per_host, placement),
        };
        let used = ranks.div_ceil(per_host);
        let host = |place: u32| HostId::new(hosts[place as usize]);
        match placement {
            Placement::Block => (0..ranks).map(|rank| host(rank / per_host)).collect(),
            Placement::RoundRobin => (0..ranks).map(|rank| host(rank % used)).collect(),
            Placement::Random => {
                let order = random.permutation(ranks);
                order.into_iter().map(|place| host(place / per_host)).collect()
            }
        }
    }
}

/// Reads the number of the host of each rank. The error begins with its line.
fn read_places(text: &str, hosts: u32) -> Result<Vec<u32>, String> {
    let mut all = Vec::new();
    for (line, row) in (1..).zip(text.lines()) {
        let row = row.split('#').next().unwrap_or_default();
        for word in row.split_whitespace() {
            match word.parse::<u32>() {
                Ok(host) if host < hosts => all.push(host),
                Ok(host) => {
                    return Err(format!(
                        "{line}: host {host}, but the topology has {hosts}, numbered from 0"
                    ));
                }
                Err(_) => {
                    let word = apus_units::shorten(word);
                    return Err(format!("{line}: `{word}` is not the number of a host"));
                }
            }
        }
    }
    if all.is_empty() { Err("1: no host is named; write one per rank".to_owned()) } else { Ok(all) }
}

/// A job as a scenario describes it.
#[derive(Clone, Debug)]
pub(super) struct JobSpec {
    pub(super) graph: Arc<Graph>,
    collective: Option<Collective>,
    places: Places,
    done: Done,
    order: SendOrder,
    local: Option<LocalNetwork>,
    nics: Option<Nics>,
    /// Whether an external program sends the messages.
    is_external: bool,
    flows_per_pair: u32,
    /// Sentences about the elements of the file that the job leaves out.
    pub(super) skipped: Vec<String>,
    /// Largest number of connections for any placement.
    pub(super) connections: u64,
}

impl JobSpec {
    /// Reads a job of a kind.
    pub(super) fn read(section: &Section<'_>, frame: &Frame<'_>, kind: &str) -> Option<Self> {
        section.no_effect("stop", "on a job, which ends with its last operation");
        section.no_effect("every", "on a job; use `iterations`, or several jobs");
        if kind == "all-to-all" {
            for key in ["outstanding", "start_spread"] {
                section.no_effect(key, "with a `pattern`, which makes it a job");
            }
        }
        let places = Places::read(section, frame);
        let most = places.as_ref().map_or(1, Places::most_per_host);
        let node = places.as_ref().and_then(Places::node).unwrap_or(1);
        let (nics, scale_up) = frame.topology.nics().unzip();
        let local = read_local(section, most, scale_up.flatten());
        let done = if frame.loggops.is_some() {
            section.no_effect(
                "done",
                "with `host.model = \"loggops\"`, whose rules say when a send is done",
            );
            Some(Done::LogGops)
        } else {
            section.meaning("done", &DONES)
        };
        if frame.loggops.is_some() && kind == "external" {
            let why = "is a program's, which hosts with `host.model = \"loggops\"` do not run; use another model";
            section.problem("kind", why);
        }
        let order = section.meaning("send_order", &SendOrder::ALL);
        let flows_per_pair: u32 = section.get_or_default("flows_per_pair");
        let places = places?;
        let room = places.room();
        let mut skipped = Vec::new();
        let (graph, collective) = match kind {
            "job" => (file::read(section, &mut skipped)?, None),
            "training" => (training::read(section, room)?, None),
            "external" => {
                let ranks = section.get_or("ranks", room);
                check_room(section, kind, &places, ranks)?;
                if ranks > MAX_RANKS {
                    section.problem(
                        "ranks",
                        format_args!("is {ranks}; a job has at most {MAX_RANKS} ranks"),
                    );
                    return None;
                }
                (ranks_alone(ranks)?, None)
            }
            _ => {
                let collective = collective::read(section, kind, room, node)?;
                (collective.graph().map_err(|e| section.problem("size", e)).ok()?, Some(collective))
            }
        };
        let ranks = graph.ranks();
        check_room(section, kind, &places, ranks)?;
        let (done, order, local) = (done?, order?, local?);
        let mut spec = Self {
            graph: Arc::new(graph),
            collective,
            places,
            done,
            order,
            local,
            nics,
            is_external: kind == "external",
            flows_per_pair,
            skipped,
            connections: 0,
        };
        // The upper bound assumes a separate host for each rank.
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
            nics: self.nics,
            nic_of: Arc::new([]),
            is_external: self.is_external,
            flows_per_pair: self.flows_per_pair,
            connections: 0..0,
        }
    }

    /// Returns the plan of the job.
    pub(super) fn plan(&self, name: &str, start: Span, random: &mut Stream) -> JobPlan {
        self.on(name, start, self.places.hosts(self.graph.ranks(), random))
    }
}

/// Reports ranks without a place, and places without a rank.
fn check_room(section: &Section<'_>, kind: &str, places: &Places, ranks: u32) -> Option<()> {
    let key = match kind {
        "job" | "training" => "kind",
        _ => "ranks",
    };
    match places {
        Places::Listed(hosts) if hosts.len() as u64 != u64::from(ranks) => {
            let named = hosts.len();
            let why = format_args!("names the hosts of {named} ranks, but the job has {ranks}");
            section.problem("places", why);
            None
        }
        Places::Hosts { hosts, per_host, .. } if ranks > places.room() => {
            let why = format_args!(
                "leaves {ranks} ranks without room: {} hosts take {per_host} each; use more hosts or ranks_per_host",
                hosts.len()
            );
            section.problem(key, why);
            None
        }
        _ => Some(()),
    }
}

/// Returns a graph of ranks without operations.
fn ranks_alone(ranks: u32) -> Option<Graph> {
    let programs = (0..ranks).map(|rank| ProgramBuilder::new(rank, ranks).finish().ok());
    Graph::new(programs.collect::<Option<_>>()?).ok()
}

/// Reads the network within hosts; the outer `None` means that an error was reported.
fn read_local(
    section: &Section<'_>,
    ranks_per_host: u32,
    scale_up: Option<LocalNetwork>,
) -> Option<Option<LocalNetwork>> {
    if ranks_per_host == 1 {
        for key in ["local_rate", "local_delay"] {
            section.no_effect(key, "with one rank per host");
        }
        return Some(None);
    }
    let rate: Rate = match scale_up {
        Some(network) => section.get_or("local_rate", network.rate),
        None => section.require("local_rate")?,
    };
    let delay = scale_up.map_or(Span::ZERO, |network| network.delay);
    Some(Some(LocalNetwork { rate, delay: section.get_or("local_delay", delay) }))
}
