//! What the processes of an emulation tell each other, as JSON on their pipes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The port that every host listens on, in a network of its own.
pub const PORT: u16 = 48_700;

/// Who moves the data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stack {
    /// Our engine, with the scenario's algorithm.
    Apus,
    /// The kernel's TCP with this congestion control.
    Tcp(String),
}

/// One network with its traffic.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Spec {
    /// Name of the run.
    pub name: String,
    /// Who moves the data.
    pub stack: Stack,
    /// How many hosts: nodes `h0`, `h1` and so on.
    pub hosts: u32,
    /// How many switches: nodes `s0`, `s1` and so on.
    pub switches: u32,
    /// The links.
    pub links: Vec<Link>,
    /// Of each switch: host number and the switch by which it is reached; hosts of its own links
    /// are left out.
    pub routes: Vec<Vec<Route>>,
    /// Longest IP packet, bytes.
    pub mtu: u32,
    /// What each host does.
    pub agents: Vec<AgentSpec>,
}

/// A link, in both directions.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Link {
    /// One end.
    pub a: Node,
    /// The other end.
    pub b: Node,
    /// The port of `a` towards `b`.
    pub ab: Port,
    /// The port of `b` towards `a`.
    pub ba: Port,
    /// What netem adds to it in each direction, ns; 0 if the kernel's own delay is all there is.
    pub delay_ns: u64,
}

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Node {
    /// A host by number.
    Host(u32),
    /// A switch by number.
    Switch(u32),
}

impl Node {
    /// The name of its network namespace.
    pub fn namespace(self) -> String {
        match self {
            Self::Host(n) => format!("h{n}"),
            Self::Switch(n) => format!("s{n}"),
        }
    }
}

/// An egress port. Only a switch's is shaped.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Port {
    /// What people call it: "switch 0 -> host 3".
    pub name: String,
    /// Bit/s.
    pub rate: u64,
    /// Bytes; `None` is unlimited.
    pub buffer: Option<u64>,
}

/// How a switch reaches a host behind another switch.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Route {
    /// The host.
    pub host: u32,
    /// The next switch.
    pub next: u32,
    /// Index of the link to it.
    pub link: usize,
}

/// What the process of one host does.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct AgentSpec {
    /// Its number.
    pub host: u32,
    /// The cores that its threads run on; any if empty.
    pub cores: Vec<usize>,
    /// A congestion control of the kernel's TCP, if that is to move the data.
    pub tcp: Option<String>,
    /// A line of a key file.
    pub key: String,
    /// Name of the cipher that seals packets.
    pub cipher: String,
    /// Name, profile and parameters of the algorithm.
    pub algorithm: (String, String, Vec<(String, String)>),
    /// Longest IP packet, bytes.
    pub mtu: u32,
    /// Rate of its link, bit/s.
    pub line_rate: u64,
    /// Ops per flow, at most.
    pub max_ops: u32,
    /// Largest op of anybody, bytes.
    pub largest_op: u64,
    /// Nanoseconds that its engine spends on each packet it receives; it has a thread for that.
    pub receive_packet_ns: u64,
    /// What it sends.
    pub flows: Vec<FlowSpec>,
    /// Of the start-up, not measured, ns.
    pub warmup_ns: u64,
    /// From start to end, ns.
    pub duration_ns: u64,
    /// Longest time after the end in which ops of the measured time can end, ns.
    pub drain_ns: u64,
}

/// A flow and its ops.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FlowSpec {
    /// Number among all flows of the run.
    pub index: usize,
    /// The peer.
    pub to: u32,
    /// What the ops do.
    pub op: OpName,
    /// How many of what size, and when.
    pub load: LoadSpec,
    /// First op, ns after the start.
    pub start_ns: u64,
    /// No op begins from here on, ns after the start.
    pub stop_ns: u64,
}

/// Which ops a flow has.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum LoadSpec {
    /// A closed loop: so many ops of `size` bytes are under way, each followed by the next.
    Closed {
        /// Payload of each, bytes.
        size: u64,
        /// Ops under way.
        outstanding: u32,
    },
    /// An open loop: ops by their times, ns after the start, and sizes, bytes.
    Open(Vec<(u64, u64)>),
}

impl LoadSpec {
    /// Its largest op, bytes.
    pub fn largest(&self) -> u64 {
        match self {
            Self::Closed { size, .. } => *size,
            Self::Open(ops) => ops.iter().map(|&(_, size)| size).max().unwrap_or(0),
        }
    }
}

/// What an op does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OpName {
    /// Into the peer's region.
    Write,
    /// From the peer's region.
    Read,
    /// To the peer's application.
    Message,
}

/// Values with how often each occurred, in microseconds.
pub type Buckets = Vec<(f64, u64)>;

/// What one host has measured after the warm-up.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct HostResult {
    /// Payload bytes of completed ops, by the flow's number in the run.
    pub bytes: BTreeMap<usize, u64>,
    /// Of the measured time.
    pub seconds: f64,
    /// Packets that the engine declared lost.
    pub losses: u64,
    /// Ops that failed, and why the first did.
    pub failed: Option<String>,
    /// NIC-to-NIC RTT.
    pub fabric_rtt: Buckets,
    /// t6 - t1.
    pub end_to_end_rtt: Buckets,
    /// Time in hosts.
    pub endpoint_delay: Buckets,
    /// Of ops submitted in the measured time, as the engine sees them.
    pub op_latency: Buckets,
    /// Ages of the ops submitted in the measured time that had not ended after the drain.
    pub unfinished_us: Vec<f64>,
    /// Of all samples of all flows that send.
    pub samples: Samples,
}

/// Sums over samples of algorithms' states; divide by `count`.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Samples {
    /// How many.
    pub count: u64,
    /// Packets; 0 if the algorithm has no such window.
    pub fabric_cwnd: f64,
    /// Packets; 0 if the algorithm has no such window.
    pub endpoint_cwnd: f64,
    /// Microseconds; 0 if the algorithm has no target.
    pub target_us: f64,
}

/// One port of a switch over the measured time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PortResult {
    /// What people call it.
    pub name: String,
    /// Its rate, bit/s.
    pub rate: u64,
    /// Bytes sent in the measured time.
    pub sent_bytes: u64,
    /// Packets dropped from the start to the end.
    pub drops: u64,
    /// Bytes waiting, per sample.
    pub backlog: Vec<u64>,
}

/// What came out of a network.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// By host.
    pub hosts: Vec<HostResult>,
    /// Ports of switches.
    pub ports: Vec<PortResult>,
    /// Time over which the ports sent what they have sent, from the first look at them to the last one, seconds.
    pub watched_seconds: f64,
    /// RTTs that the kernel's TCP states, microseconds, per sample and connection.
    pub tcp_rtt_us: Vec<f64>,
}
