//! Messages between the processes of an emulation, as JSON on their pipes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Port on which every host listens in its own network.
pub const PORT: u16 = 48_700;

/// The transport that moves the data.
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
    /// The transport that moves the data.
    pub stack: Stack,
    /// Number of hosts: nodes `h0`, `h1` and so on.
    pub hosts: u32,
    /// Number of switches: nodes `s0`, `s1` and so on.
    pub switches: u32,
    /// The links.
    pub links: Vec<Link>,
    /// For each switch: the number of a host and the switch through which it is reached. Hosts on the switch's own
    /// links are left out.
    pub routes: Vec<Vec<Route>>,
    /// Longest IP packet, bytes.
    pub mtu: u32,
    /// Specification of each host.
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
    /// Delay that netem adds in each direction, ns; 0 if the kernel's own delay suffices.
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
    /// Returns the name of the node's network namespace.
    pub fn namespace(self) -> String {
        match self {
            Self::Host(n) => format!("h{n}"),
            Self::Switch(n) => format!("s{n}"),
        }
    }
}

/// An egress port. Only ports of switches are shaped.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Port {
    /// Name for people: "switch 0 -> host 3".
    pub name: String,
    /// Rate, bit/s.
    pub rate: u64,
    /// Buffer, bytes; `None` is unlimited.
    pub buffer: Option<u64>,
}

/// Route of a switch to a host behind another switch.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Route {
    /// The host.
    pub host: u32,
    /// The next switch.
    pub next: u32,
    /// Index of the link to it.
    pub link: usize,
}

/// Specification of the process of one host.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct AgentSpec {
    /// Number of the host.
    pub host: u32,
    /// Cores on which its threads run; any core if empty.
    pub cores: Vec<usize>,
    /// Congestion control of the kernel's TCP, if TCP moves the data.
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
    /// Maximum number of outstanding ops per flow.
    pub max_ops: u32,
    /// Largest op of any host, bytes.
    pub largest_op: u64,
    /// Nanoseconds that the engine spends on each received packet; if not 0, the engine has its own thread for that.
    pub receive_packet_ns: u64,
    /// Flows that the host sends.
    pub flows: Vec<FlowSpec>,
    /// Duration of the warm-up, which is not measured, ns.
    pub warmup_ns: u64,
    /// Time from the start to the end, ns.
    pub duration_ns: u64,
    /// Longest time after the end in which ops of the measured time may end, ns.
    pub drain_ns: u64,
}

/// A flow and its ops.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FlowSpec {
    /// Number of the flow among all flows of the run.
    pub index: usize,
    /// The peer.
    pub to: u32,
    /// Kind of the ops.
    pub op: OpName,
    /// Number, sizes and times of the ops.
    pub load: LoadSpec,
    /// Time of the first op, ns after the start.
    pub start_ns: u64,
    /// Time from which no op is submitted, ns after the start.
    pub stop_ns: u64,
}

/// The ops of a flow.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum LoadSpec {
    /// A closed loop: `outstanding` ops of `size` bytes are outstanding, and each completion is followed by the next
    /// op.
    Closed {
        /// Payload of each, bytes.
        size: u64,
        /// Number of outstanding ops.
        outstanding: u32,
    },
    /// An open loop: ops with their times, ns after the start, and sizes, bytes.
    Open(Vec<(u64, u64)>),
}

impl LoadSpec {
    /// Returns the largest op of the flow, bytes.
    pub fn largest(&self) -> u64 {
        match self {
            Self::Closed { size, .. } => *size,
            Self::Open(ops) => ops.iter().map(|&(_, size)| size).max().unwrap_or(0),
        }
    }
}

/// Kind of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OpName {
    /// A write to the peer's region.
    Write,
    /// A read from the peer's region.
    Read,
    /// A message to the peer's application.
    Message,
}

/// Values in microseconds, each with its number of occurrences.
pub type Buckets = Vec<(f64, u64)>;

/// Measurements of one host after the warm-up.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct HostResult {
    /// Payload bytes of completed ops, by the flow's number in the run.
    pub bytes: BTreeMap<usize, u64>,
    /// Duration of the measured time.
    pub seconds: f64,
    /// Packets that the engine declared lost.
    pub losses: u64,
    /// Number of failed ops, and the reason of the first failure.
    pub failed: Option<String>,
    /// NIC-to-NIC RTT.
    pub fabric_rtt: Buckets,
    /// t6 - t1.
    pub end_to_end_rtt: Buckets,
    /// Time in the hosts.
    pub endpoint_delay: Buckets,
    /// Latencies of the ops submitted in the measured time, as the engine measures them.
    pub op_latency: Buckets,
    /// Ages of the ops submitted in the measured time that had not ended after the drain.
    pub unfinished_us: Vec<f64>,
    /// Samples of all flows that send.
    pub samples: Samples,
}

/// Sums over the samples of the algorithms' states; divide by `count` for the mean.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Samples {
    /// Number of samples.
    pub count: u64,
    /// Fabric window, packets; 0 if the algorithm has no such window.
    pub fabric_cwnd: f64,
    /// Endpoint window, packets; 0 if the algorithm has no such window.
    pub endpoint_cwnd: f64,
    /// Target delay, microseconds; 0 if the algorithm has no target.
    pub target_us: f64,
}

/// A switch port over the measured time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PortResult {
    /// Name for people.
    pub name: String,
    /// Rate, bit/s.
    pub rate: u64,
    /// Bytes sent in the measured time.
    pub sent_bytes: u64,
    /// Packets dropped from the start to the end.
    pub drops: u64,
    /// Queued bytes, per sample.
    pub backlog: Vec<u64>,
}

/// Results of a network.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// Results by host.
    pub hosts: Vec<HostResult>,
    /// Results by switch port.
    pub ports: Vec<PortResult>,
    /// Time over which the ports' bytes were counted, from the first read to the last one, seconds.
    pub watched_seconds: f64,
    /// RTTs that the kernel's TCP reports, microseconds, per sample and connection.
    pub tcp_rtt_us: Vec<f64>,
}
