//! Jobs of a plan: graphs of operations whose ranks run on hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use apus_cc::AlgorithmFactory;
use apus_fabric::{MAX_HOST_PORTS, Terminal};
use apus_jobs::collectives::Collective;
use apus_jobs::loggops::Parameters;
use apus_jobs::{Action, Done, Graph, Op};
use apus_units::{Bytes, HostId, Rate, Span, Time};

use super::{ConnectionPlan, Load, Plan};

/// A job. Its messages are ops of the connections [`JobPlan::connections`]; messages between ranks of one
/// host cross the network within the host instead.
#[derive(Clone, Debug)]
pub struct JobPlan {
    /// Name in results.
    pub name: String,
    /// Operations of all ranks.
    pub graph: Arc<Graph>,
    /// Collective from which the graph was generated, for its closed form and its bandwidth.
    pub collective: Option<Collective>,
    /// Host of each rank.
    pub hosts: Arc<[HostId]>,
    /// Time at which all ranks start.
    pub start: Time,
    /// Condition for a send to be done.
    pub done: Done,
    /// Order in which a rank sends several messages.
    pub order: SendOrder,
    /// Network between ranks of one host; `None` if every rank has a host of its own.
    pub local: Option<LocalNetwork>,
    /// Whether a program that drives the simulation ([`Live`](crate::live::Live)) sends the messages; the
    /// graph then has ranks only.
    pub is_external: bool,
    /// Number of flows from one rank to another, which messages use in turn; at least 1.
    pub flows_per_pair: u32,
    /// NICs of hosts that the ranks use. `None`: messages may leave and reach a host through any of its ports.
    pub nics: Option<Nics>,
    /// By rank: number of its NIC at its host. [`Plan::add_job`] sets this list if [`JobPlan::nics`] is set.
    pub nic_of: Arc<[u8]>,
    /// Connections of the job in [`Plan::connections`].
    pub connections: Range<usize>,
}

/// The NICs of each host of a cluster. Each rank of a host has one NIC, in the order of the ranks; if there
/// are more ranks than NICs, they take the NICs in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nics {
    /// Number of NICs of a host, at least 1.
    pub count: u8,
    /// Number of ports of a NIC, at least 1. The ports of NIC n are n times this number and the following ones.
    pub ports: u8,
    /// Whether NICs of different numbers can reach each other. If not, as in a rail-only network, a message
    /// between them first crosses the network within the sender's host, to the rank whose NIC has the
    /// receiver's NIC number.
    pub are_joined: bool,
}

impl Nics {
    /// Returns the ports of a NIC of a host.
    fn terminal(&self, host: HostId, nic: u8) -> Terminal {
        Terminal { host, ports: Some((nic * self.ports, self.ports)) }
    }
}

/// Order in which a rank sends messages to several peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SendOrder {
    /// The host sends packets of all flows in turn, as a NIC serves its queue pairs.
    #[default]
    Interleaved,
    /// A message leaves in full before the next message of the same rank and NIC begins: the NIC of the LogGP
    /// model (Alexandrov et al., SPAA 1995, §2), and the assumption of closed forms.
    Sequential,
}

impl SendOrder {
    /// All values with their names in files.
    pub const ALL: [(&'static str, Self); 2] =
        [("interleaved", Self::Interleaved), ("sequential", Self::Sequential)];
}

/// A network between the ranks of one host, without congestion inside. A message occupies its sender and its
/// receiver for its bytes over the rate, and arrives a delay later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalNetwork {
    /// Rate of a rank in each direction, greater than 0.
    pub rate: Rate,
    /// Delay of a message.
    pub delay: Span,
}

impl LocalNetwork {
    /// Returns the time for which a message occupies its sender.
    #[must_use]
    pub fn occupies(&self, bytes: u64) -> Span {
        self.rate.serialization_time(Bytes::new(bytes))
    }
}

/// Error of a job that no plan can contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobError {
    job: String,
    why: String,
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job `{}`: {}", self.job, self.why)
    }
}

impl std::error::Error for JobError {}

impl JobPlan {
    /// Maximum number of bytes of a message, 2^40. Rationale: same limit as for sizes in scenarios; more than
    /// 10 s on a link of 800 Gb/s.
    pub const MAX_MESSAGE: u64 = 1 << 40;

    /// Checks the messages of a graph.
    ///
    /// # Errors
    /// The first message of more than [`JobPlan::MAX_MESSAGE`] bytes, with its rank and operation.
    pub fn check_messages(graph: &Graph) -> Result<(), String> {
        for (rank, program) in (0..).zip(graph.programs()) {
            let size = |op: Op| if let Action::Send { bytes, .. } = op.action { bytes } else { 0 };
            if let Some(op) = program.ops().map(size).position(|bytes| bytes > Self::MAX_MESSAGE) {
                let (what, most) = (program.describe(op as u32), Self::MAX_MESSAGE);
                return Err(format!(
                    "rank {rank}, {what}: a message has at most {most} B (2^40); divide it"
                ));
            }
        }
        Ok(())
    }

    /// Returns a job that starts at time 0, with one flow per pair of ranks and interleaved messages. A send
    /// is done when its message is delivered.
    #[must_use]
    pub fn new(name: &str, graph: Graph, hosts: impl IntoIterator<Item = HostId>) -> Self {
        Self {
            name: name.to_owned(),
            graph: Arc::new(graph),
            collective: None,
            hosts: hosts.into_iter().collect(),
            start: Time::ZERO,
            done: Done::Delivered,
            order: SendOrder::Interleaved,
            local: None,
            is_external: false,
            flows_per_pair: 1,
            nics: None,
            nic_of: Arc::new([]),
            connections: 0..0,
        }
    }

    /// Returns the pairs (sender, receiver) of ranks on different hosts that exchange messages, in ascending order.
    fn pairs(&self) -> BTreeSet<(u32, u32)> {
        let mut pairs = BTreeSet::new();
        for (from, program) in (0..).zip(self.graph.programs()) {
            for op in program.ops() {
                if let Action::Send { to, .. } = op.action
                    && self.hosts[from as usize] != self.hosts[to as usize]
                {
                    pairs.insert((from, to));
                }
            }
        }
        pairs
    }

    /// Returns the number of connections that the job needs.
    #[must_use]
    pub fn connection_count(&self) -> u64 {
        self.pairs().len() as u64 * u64::from(self.flows_per_pair)
    }

    /// Returns, by rank, the number of its NIC at its host.
    fn number_nics(&self, nics: Nics) -> Arc<[u8]> {
        let mut ranks: BTreeMap<HostId, u32> = BTreeMap::new();
        let mut number = |host: &HostId| {
            let ranks = ranks.entry(*host).or_default();
            *ranks += 1;
            ((*ranks - 1) % u32::from(nics.count)) as u8
        };
        self.hosts.iter().map(&mut number).collect()
    }

    /// Returns the ports between which messages from one rank to another travel.
    pub(crate) fn terminals(&self, from: u32, to: u32) -> (Terminal, Terminal) {
        let hosts = [from, to].map(|rank| self.hosts[rank as usize]);
        let Some(nics) = self.nics else { return (hosts[0].into(), hosts[1].into()) };
        let numbers = [from, to].map(|rank| self.nic_of[rank as usize]);
        let leaves = if nics.are_joined { numbers[0] } else { numbers[1] };
        (nics.terminal(hosts[0], leaves), nics.terminal(hosts[1], numbers[1]))
    }

    /// Returns the number of the NIC through which a message leaves if that is not the NIC of its sender;
    /// such a message first crosses the network within the host.
    pub(crate) fn other_nic(&self, from: u32, to: u32) -> Option<u8> {
        let nic_of = |rank: u32| self.nic_of[rank as usize];
        self.nics.filter(|nics| !nics.are_joined)?;
        (nic_of(from) != nic_of(to)).then_some(nic_of(to))
    }

    pub(crate) fn error(&self, why: String) -> JobError {
        JobError { job: self.name.clone(), why }
    }

    /// Checks the job against the host model: LogGOPS with these parameters, or another model.
    pub(crate) fn check_model(&self, loggops: Option<&Parameters>) -> Result<(), JobError> {
        match (loggops, self.done == Done::LogGops) {
            (Some(_), false) => Err(self.error(
                "hosts of the LogGOPS model decide when a send is done; set `done` to LogGops".to_owned(),
            )),
            (None, true) => Err(self.error(
                "sends are done by the rules of the LogGOPS model, but the hosts have another model".to_owned(),
            )),
            (Some(_), true) if self.is_external => Err(self.error(
                "a program sends its messages, and hosts of the LogGOPS model run operations of a graph alone".to_owned(),
            )),
            (Some(_), true) | (None, false) => Ok(()),
        }
    }

    /// Checks the job for a topology of `hosts` hosts.
    pub(crate) fn check(&self, hosts: u32) -> Result<(), JobError> {
        let (ranks, placed) = (self.graph.ranks(), self.hosts.len());
        if placed != ranks as usize {
            return Err(self.error(format!(
                "{placed} hosts are given for its {ranks} ranks; give each rank one"
            )));
        }
        if let Some(host) = self.hosts.iter().find(|host| host.get() >= hosts) {
            let why = format!("a rank is on {host}, but the topology has {hosts}, numbered from 0");
            return Err(self.error(why));
        }
        Self::check_messages(&self.graph).map_err(|why| self.error(why))?;
        if self.flows_per_pair == 0 {
            return Err(
                self.error("0 flows per pair of ranks carry nothing; give at least 1".to_owned())
            );
        }
        if self.local.is_some_and(|local| local.rate.as_bps() == 0) {
            return Err(self.error("the network within hosts has the rate 0".to_owned()));
        }
        if let Some(nics) = self.nics
            && (nics.count == 0
                || nics.ports == 0
                || nics.count.checked_mul(nics.ports).is_none_or(|all| all > MAX_HOST_PORTS))
        {
            let (count, ports) = (nics.count, nics.ports);
            return Err(self.error(format!(
                "hosts have {count} NICs of {ports} ports; a host has 1 to {MAX_HOST_PORTS} ports"
            )));
        }
        if self.nics.is_some_and(|nics| !nics.are_joined && nics.count > 1) && self.local.is_none()
        {
            return Err(self.error(
                "NICs of different numbers do not reach each other, and no network within hosts is given".to_owned(),
            ));
        }
        for (from, program) in (0..).zip(self.graph.programs()) {
            for op in program.ops() {
                let Action::Send { to, .. } = op.action else { continue };
                let host = self.hosts[from as usize];
                if self.local.is_none() && to != from && host == self.hosts[to as usize] {
                    return Err(self.error(format!(
                        "ranks {from} and {to} are both on {host}, but no network within hosts is given"
                    )));
                }
            }
        }
        Ok(())
    }
}

impl<F: AlgorithmFactory> Plan<F> {
    /// Adds a job whose connections are copies of `like`, except for their hosts and their load.
    ///
    /// # Errors
    /// If a rank has no host of the topology, if a message has more than [`JobPlan::MAX_MESSAGE`] bytes, or
    /// if two ranks of a host exchange messages without a network between them.
    pub fn add_job(&mut self, mut job: JobPlan, like: &ConnectionPlan<F>) -> Result<(), JobError> {
        job.check(self.topology.hosts)?;
        if let Some(nics) = job.nics {
            job.nic_of = job.number_nics(nics);
        }
        let number = self.jobs.len() as u32;
        let first = self.connections.len();
        let pairs = job.pairs();
        self.connections.reserve(pairs.len() * job.flows_per_pair as usize);
        for (from, to) in pairs {
            for _ in 0..job.flows_per_pair {
                self.connections.push(ConnectionPlan {
                    from: job.hosts[from as usize],
                    to: job.hosts[to as usize],
                    start: job.start,
                    load: Load::Job { job: number, from, to },
                    ..like.clone()
                });
            }
        }
        job.connections = first..self.connections.len();
        self.jobs.push(Arc::new(job));
        Ok(())
    }

    /// Returns the ends of a connection in the direction of its data ([`ConnectionPlan::data_ends`]).
    pub(crate) fn data_terminals(&self, connection: &ConnectionPlan<F>) -> (Terminal, Terminal) {
        let (from, to) = self.terminals(connection);
        if connection.data_ends().0 == from.host { (from, to) } else { (to, from) }
    }

    /// Returns the ends of a connection: its hosts, or the ports of the NICs of its ranks.
    pub(crate) fn terminals(&self, connection: &ConnectionPlan<F>) -> (Terminal, Terminal) {
        match connection.load {
            Load::Job { job, from, to } => self.jobs[job as usize].terminals(from, to),
            Load::Closed { .. } | Load::Open(_) | Load::Round { .. } => {
                (connection.from.into(), connection.to.into())
            }
        }
    }
}
