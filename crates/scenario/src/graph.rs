//! `kind = "links"`: nodes and links listed one by one, in the scenario or in a file.

use crate::set::{LinkSpec, Tier, Topology};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use apus_fabric::{MAX_HOST_PORTS, Node, SwitchSpec, ports_of_hosts};
use apus_sim::plan::{LocalNetwork, Nics};
use apus_units::{Bytes, HostId, Rate, Span, SwitchId};

use super::declared::{Keys, Kind, key};
use super::links::{BUFFER, DELAY, RATE};
use super::links::{Links, Memory, check_holds_packet, read_links};
use super::memory::MAX_PATHS;
use super::section::{Section, Setting};
use crate::import::{End, Graph, Servers};

mod nics;

pub(super) use nics::read_scale_up;

/// A link of the topology `links`.
pub(super) static LINK: Keys = Keys::of(&[
    key("a", Kind::Text, "A node. Hosts are h0, h1 and so on; every other name is a switch"),
    key("b", Kind::Text, "The node at the other end"),
    RATE,
    DELAY,
    BUFFER,
]);

/// Maximum number of hosts of a topology: numbers in messages and tables stay readable, memory stays bounded.
pub(super) const MAX_HOSTS: u64 = 65_536;

/// Nodes and links.
#[derive(Clone, Debug)]
pub(super) struct GraphSpec {
    pub(super) hosts: u32,
    /// Names of the switches, in the order of their numbers.
    pub(super) switches: Vec<String>,
    pub(super) links: Vec<OneLink>,
    /// Number of each host in the file, in ascending order.
    pub(super) numbers: Vec<u32>,
    /// Pipeline latency stated by the file.
    pub(super) pipeline_latency: Span,
    /// Elements of the file that the topology leaves out, as a sentence.
    pub(super) left_out: Option<String>,
    /// NICs of each host that ranks of jobs have one of.
    pub(super) nics: Option<Nics>,
    /// Network within hosts.
    pub(super) scale_up: Option<LocalNetwork>,
}

/// A link, equal in both directions except for a host's buffer, which is unlimited.
#[derive(Clone, Copy, Debug)]
pub(super) struct OneLink {
    pub(super) a: End,
    pub(super) b: End,
    pub(super) links: Links,
}

impl GraphSpec {
    /// Returns an upper bound of the egress ports on the longest of all shortest paths between hosts: twice the
    /// distance of the farthest switch from the first one, and the links of the hosts.
    pub(super) fn longest_path(&self) -> u64 {
        let peers = self.peers();
        let (mut reached, mut farthest) = (vec![false; peers.len()], 0);
        let mut next = VecDeque::new();
        if let Some(first) = reached.first_mut() {
            *first = true;
            next.push_back((0_u32, 0));
        }
        while let Some((switch, distance)) = next.pop_front() {
            farthest = distance;
            for &peer in &peers[switch as usize] {
                if !std::mem::replace(&mut reached[peer as usize], true) {
                    next.push_back((peer, distance + 1));
                }
            }
        }
        2 * farthest + 2
    }

    /// Returns the switches behind the links of each switch.
    fn peers(&self) -> Vec<Vec<u32>> {
        let mut peers = vec![Vec::new(); self.switches.len()];
        for link in &self.links {
            if let (End::Switch(a), End::Switch(b)) = (link.a, link.b) {
                peers[a as usize].push(b);
                peers[b as usize].push(a);
            }
        }
        peers
    }

    /// Returns the mean number of stored shortest paths between two switches with hosts, over the pairs that
    /// have a path.
    pub(super) fn paths(&self) -> u64 {
        let peers = self.peers();
        let mut has_hosts = vec![false; peers.len()];
        for link in &self.links {
            if let (End::Host(_), End::Switch(edge)) | (End::Switch(edge), End::Host(_)) =
                (link.a, link.b)
            {
                has_hosts[edge as usize] = true;
            }
        }
        let (mut pairs, mut paths) = (0, 0_u64);
        for edge in (0..peers.len()).filter(|edge| has_hosts[*edge]) {
            // By switch: the distance, and the number of shortest paths.
            let mut of = vec![(u32::MAX, 0_u64); peers.len()];
            of[edge] = (0, 1);
            let mut next = VecDeque::from([edge]);
            while let Some(switch) = next.pop_front() {
                let (distance, count) = of[switch];
                if switch != edge && has_hosts[switch] {
                    pairs += 1;
                    paths = paths.saturating_add(count.min(MAX_PATHS));
                }
                for peer in peers[switch].iter().map(|peer| *peer as usize) {
                    if of[peer].0 == u32::MAX {
                        of[peer].0 = distance + 1;
                        next.push_back(peer);
                    }
                    if of[peer].0 == distance + 1 {
                        of[peer].1 = of[peer].1.saturating_add(count);
                    }
                }
            }
        }
        paths.div_ceil(pairs.max(1)).max(1)
    }

    /// Reads the links; `default` contains the topology's settings for all of them.
    pub(super) fn read(section: &Section<'_>, shared: bool, packet: u64) -> Option<Arc<Self>> {
        let given = ["file", "text"].into_iter().find(|key| section.node(key).is_some());
        let (graph, servers) = if let Some(given) = given {
            section.no_effect("link", &format!("with a `{given}`"));
            for key in ["rate", "delay"] {
                section.no_effect(key, &format!("with a `{given}`, which states it for each link"));
            }
            Self::import(section, shared, packet)?
        } else {
            section.no_effect("servers", "without `file` or `text`; use `nics`");
            (Self::list(section, shared, packet)?, None)
        };
        if let Err(why) = graph.check() {
            section.problem(given.unwrap_or("link"), why);
            return None;
        }
        nics::read(section, graph, servers).map(Arc::new)
    }

    /// Reads a file. Also returns the servers, if the hosts are servers.
    fn import(section: &Section<'_>, shared: bool, packet: u64) -> Option<(Self, Option<Servers>)> {
        // No format states the size of buffers.
        let buffer = if shared { Bytes::MAX } else { read_buffer(section, packet)? };
        let (key, name, text) =
            section.text_or_file("text", ".topo of htsim, topology.txt or InfraGraph")?;
        let graph = match Graph::parse(&text) {
            Ok(graph) => graph,
            Err(why) => {
                section.problem(key, format_args!("{name}{why}"));
                return None;
            }
        };
        let (graph, servers) = if section.peek("servers").unwrap_or(false) {
            let servers = graph.servers.clone().and_then(Result::ok);
            match graph.of_servers() {
                Ok(graph) => (graph, servers),
                Err(why) => {
                    let name = name.trim_end_matches(" line ").trim_end_matches(':');
                    section.problem("servers", format_args!("cannot be: {name} {why}"));
                    return None;
                }
            }
        } else {
            (graph, None)
        };
        let links = graph.links.iter().map(|link| OneLink {
            a: link.a,
            b: link.b,
            links: Links { rate: link.rate, delay: link.delay, buffer },
        });
        let graph = Self {
            hosts: graph.hosts.len() as u32,
            links: links.collect(),
            numbers: if servers.is_some() { Vec::new() } else { graph.hosts },
            switches: graph.switches,
            pipeline_latency: graph.pipeline_latency,
            left_out: graph.left_out,
            nics: None,
            scale_up: None,
        };
        for OneLink { a, b, links } in &graph.links {
            let link = section.effective().append("link");
            link.set("a", graph.name(*a).value());
            link.set("b", graph.name(*b).value());
            link.set("rate", links.rate.value());
            link.set("delay", links.delay.value());
            if !shared {
                link.set("buffer", Memory(links.buffer).value());
            }
        }
        Some((graph, servers))
    }

    fn list(section: &Section<'_>, shared: bool, packet: u64) -> Option<Self> {
        let rate: Option<Rate> = section.peek("rate");
        let delay: Option<Span> = section.peek("delay");
        let tables = section.sections("link");
        if tables.is_empty() {
            let example = "one table `[[topology.link]]` per link, with a = \"h0\" and b = \"s0\"; \
                           or `file`, a .topo of htsim, a topology.txt of the HPCC simulator, or InfraGraph";
            section.missing("link", example);
            return None;
        }
        let buffer_given = section.node("buffer").is_some();
        let base = Links { rate: Rate::from_gbps(1), delay: Span::ZERO, buffer: Bytes::MAX };
        let buffer = if buffer_given { Some(read_buffer(section, packet)?) } else { None };
        let mut nodes = Nodes::default();
        let mut links = Vec::new();
        for table in tables {
            let (a, b) = (table.require::<String>("a"), table.require::<String>("b"));
            let mut default = base;
            for (key, given) in [("rate", rate.is_some()), ("delay", delay.is_some())] {
                if !given && table.node(key).is_none() {
                    table.missing(key, "of each link, or of all as a key of `[topology]`");
                }
            }
            if !shared && !buffer_given && table.node("buffer").is_none() {
                table.missing("buffer", "of each link, or of all as a key of `[topology]`");
            }
            default.rate = rate.unwrap_or(default.rate);
            default.delay = delay.unwrap_or(default.delay);
            default.buffer = buffer.unwrap_or(default.buffer);
            let read = read_links(&table, Some(default), shared, packet);
            table.finish();
            if let (Some(a), Some(b), Some(read)) = (a, b, read) {
                let ends = [("a", a), ("b", b)].map(|(key, name)| {
                    let end = nodes.end(&name);
                    if end.is_none() {
                        let must = "must be a name of 1 to 64 letters, digits, spaces, `-`, `_` or \
                                    `.`; hosts are h0, h1 and so on";
                        table_problem(section, key, &name, must);
                    }
                    end
                });
                if let [Some(a), Some(b)] = ends {
                    links.push(OneLink { a, b, links: read });
                }
            }
        }
        let hosts = nodes.hosts;
        let mut switches = vec![String::new(); nodes.switches.len()];
        for (name, place) in nodes.switches {
            switches[place as usize] = name;
        }
        let numbers = Vec::new();
        let pipeline_latency = Span::ZERO;
        let (left_out, nics, scale_up) = (None, None, None);
        Some(Self { hosts, switches, links, numbers, pipeline_latency, left_out, nics, scale_up })
    }

    /// Checks that every host has at least one link, and every pair of hosts a path.
    fn check(&self) -> Result<(), String> {
        if let Some(link) = self.links.iter().find(|link| link.a == link.b) {
            return Err(format!("connects {} to itself", self.name(link.a)));
        }
        let of_host = self.ports();
        let allowed = 1..=u32::from(MAX_HOST_PORTS);
        if let Some(host) = of_host.iter().position(|links| !allowed.contains(links)) {
            return Err(format!(
                "gives host {host} {} links; every host, h0 to h{}, must have 1 to {MAX_HOST_PORTS}",
                of_host[host],
                self.hosts.saturating_sub(1)
            ));
        }
        self.check_paths()
    }

    /// Returns the number of links of each host.
    fn ports(&self) -> Vec<u32> {
        let ends = self.links.iter().flat_map(|link| [link.a, link.b]);
        ports_of_hosts(self.hosts, ends.map(node_of))
    }

    /// Returns the smallest number of links of a host.
    pub(super) fn min_ports(&self) -> u32 {
        self.ports().into_iter().min().unwrap_or(1)
    }

    /// Returns the rate of each host: the sum over its links.
    pub(super) fn host_rates(&self) -> Vec<Rate> {
        let mut rates = vec![0; self.hosts as usize];
        for link in &self.links {
            for end in [link.a, link.b] {
                if let End::Host(host) = end {
                    rates[host as usize] += link.links.rate.as_bps();
                }
            }
        }
        rates.into_iter().map(Rate::from_bps).collect()
    }

    /// Returns the number of each switch's group: a group consists of switches that links between switches
    /// join.
    fn joined_switches(&self) -> Vec<usize> {
        let mut groups: Vec<usize> = (0..self.switches.len()).collect();
        fn root(groups: &mut [usize], mut node: usize) -> usize {
            while groups[node] != node {
                groups[node] = groups[groups[node]];
                node = groups[node];
            }
            node
        }
        for link in &self.links {
            if let (End::Switch(a), End::Switch(b)) = (link.a, link.b) {
                let (a, b) = (root(&mut groups, a as usize), root(&mut groups, b as usize));
                groups[a] = b;
            }
        }
        (0..groups.len()).map(|switch| root(&mut groups, switch)).collect()
    }

    /// Checks the paths between hosts. Hosts do not forward, so two hosts need a link, or links to switches of
    /// one group.
    fn check_paths(&self) -> Result<(), String> {
        let groups = self.joined_switches();
        // By host: the groups of switches to which it has a port, and its links to hosts.
        let mut reached = vec![BTreeSet::new(); self.hosts as usize];
        for (index, link) in self.links.iter().enumerate() {
            match (link.a, link.b) {
                (End::Host(host), End::Switch(switch)) | (End::Switch(switch), End::Host(host)) => {
                    reached[host as usize].insert(groups[switch as usize]);
                }
                (End::Host(a), End::Host(b)) => {
                    let link = self.switches.len() + index;
                    for host in [a, b] {
                        reached[host as usize].insert(link);
                    }
                }
                (End::Switch(_), End::Switch(_)) => {}
            }
        }
        // Hosts on the same networks are alike.
        let mut first_of = BTreeMap::new();
        for (host, networks) in reached.iter().enumerate() {
            first_of.entry(networks).or_insert(host);
        }
        let mut kinds: Vec<_> = first_of.into_iter().collect();
        kinds.sort_by_key(|(_, host)| *host);
        for (index, (networks, host)) in kinds.iter().enumerate() {
            let cut = |(other, _): &&(&BTreeSet<usize>, usize)| networks.is_disjoint(other);
            if let Some((_, other)) = kinds[index + 1..].iter().find(cut) {
                return Err(format!("leaves no path from host {host} to host {other}; add a link"));
            }
        }
        Ok(())
    }

    /// Returns the name of a link's end.
    pub(super) fn name(&self, end: End) -> String {
        match end {
            End::Host(host) => format!("h{host}"),
            End::Switch(switch) => self.switches.get(switch as usize).cloned().unwrap_or_default(),
        }
    }

    /// The topology.
    pub(super) fn build(&self) -> Topology {
        let links = self.links.iter().map(|link| {
            let Links { rate, delay, buffer } = link.links;
            let tier = Tier::switches(rate, delay, buffer);
            let port = |end| match end {
                End::Host(_) => Tier::hosts(rate, delay, buffer).up,
                End::Switch(_) => tier.up.clone(),
            };
            LinkSpec {
                a: node_of(link.a),
                b: node_of(link.b),
                delay,
                ab: port(link.a),
                ba: port(link.b),
            }
        });
        Topology {
            hosts: self.hosts,
            switches: self.switches.iter().cloned().map(SwitchSpec::new).collect(),
            links: links.collect(),
        }
    }
}

fn table_problem(section: &Section<'_>, key: &str, name: &str, must: &str) {
    section.problem("link", format_args!("has {key} = {name:?}, but it {must}"));
}

/// Reads the buffer of all links.
fn read_buffer(section: &Section<'_>, packet: u64) -> Option<Bytes> {
    if section.node("buffer").is_none() {
        section.missing("buffer", Memory::KIND);
    }
    let Memory(buffer) = section.peek("buffer")?;
    check_holds_packet(section, "buffer", buffer, packet);
    Some(buffer)
}

/// The nodes named so far.
#[derive(Default)]
struct Nodes {
    hosts: u32,
    switches: BTreeMap<String, u32>,
}

impl Nodes {
    fn end(&mut self, name: &str) -> Option<End> {
        let digits = name.strip_prefix('h').filter(|d| !d.is_empty());
        if let Some(digits) = digits.filter(|d| d.bytes().all(|b| b.is_ascii_digit())) {
            let host = digits.parse().ok().filter(|host| *host < MAX_HOSTS as u32)?;
            self.hosts = self.hosts.max(host + 1);
            return Some(End::Host(host));
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_. ".contains(c);
        if name.trim() != name || !(1..=64).contains(&name.len()) || !name.chars().all(allowed) {
            return None;
        }
        let next = self.switches.len() as u32;
        Some(End::Switch(*self.switches.entry(name.to_owned()).or_insert(next)))
    }
}

/// Returns the node at a link's end.
fn node_of(end: End) -> Node {
    match end {
        End::Host(host) => Node::Host(HostId::new(host)),
        End::Switch(switch) => Node::Switch(SwitchId::new(switch)),
    }
}
