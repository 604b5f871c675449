//! Messages to and from the two processes of a measurement.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Bytes of a round trip and of a small write.
pub const SMALL: usize = 64;
/// Bytes of a bulk write.
pub const BULK: usize = 1 << 20;
/// Bytes of the region of an Apus server.
pub const REGION: usize = 16 << 20;

/// Waiting mode of both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Waiting {
    /// Blocks in the kernel: blocking sockets, and Apus in its default mode (shared).
    Blocking,
    /// Never sleeps: non-blocking sockets, and Apus in spinning mode.
    Spinning,
    /// Never sleeps, and each end of Apus has one thread (inline mode).
    Inline,
}

impl Waiting {
    /// Returns `true` if the ends never sleep.
    pub fn polls(self) -> bool {
        self != Self::Blocking
    }
}

/// Ops of Apus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OpName {
    /// A message, and the message with which the peer's application answers.
    Message,
    /// A one-sided write and its acknowledgement.
    Write,
    /// A one-sided read.
    Read,
    /// A remote procedure call and its answer.
    Call,
}

/// The transport and op that are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contestant {
    /// UDP sockets of the standard library; the server echoes datagrams.
    Udp(Waiting),
    /// TCP sockets of the standard library with `TCP_NODELAY`.
    Tcp,
    /// Apus with its default settings.
    Apus {
        /// Op of the contestant.
        op: OpName,
        /// Waiting mode of both ends.
        waiting: Waiting,
        /// `true` if packets are encrypted and authenticated.
        sealed: bool,
    },
}

impl fmt::Display for Contestant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp(waiting) => {
                f.write_str(if waiting.polls() { "UDP, spinning" } else { "UDP, blocking" })
            }
            Self::Tcp => f.write_str("TCP, blocking"),
            Self::Apus { op, waiting, sealed } => {
                let op = match op {
                    OpName::Message => "message",
                    OpName::Write => "write",
                    OpName::Read => "read",
                    OpName::Call => "call",
                };
                let security = if *sealed { "sealed" } else { "insecure" };
                let mode = match waiting {
                    Waiting::Blocking => "",
                    Waiting::Spinning => ", spinning",
                    Waiting::Inline => ", inline",
                };
                write!(f, "Apus {op}, {security}{mode}")
            }
        }
    }
}

/// Load of the clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// Successive round trips of 64 B in each thread.
    RoundTrips {
        /// Pause between the end of a round trip and the start of the next.
        gap: Duration,
        /// Client processes. Each has one socket or, with Apus, one connection.
        clients: u32,
        /// Threads of each client. With Apus they share the connection; each has its own socket otherwise.
        threads: u32,
        /// Threads of another process that compute during the measurement.
        busy: u32,
    },
    /// Writes without pauses.
    Writes {
        /// Bytes of each write.
        bytes: usize,
        /// Number of outstanding writes; with TCP the kernel's buffers limit them instead.
        outstanding: usize,
    },
    /// Messages or calls of 64 B that the server's application answers.
    Answered {
        /// Number of outstanding messages or calls.
        outstanding: usize,
    },
    /// Connections without ops; one client process owns all of them.
    Idle {
        /// Number of connections.
        connections: u32,
    },
}

impl Load {
    /// Returns the number of client processes.
    pub fn clients(self) -> u32 {
        match self {
            Self::RoundTrips { clients, .. } => clients,
            Self::Writes { .. } | Self::Answered { .. } | Self::Idle { .. } => 1,
        }
    }
}

/// Specification of a measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Spec {
    /// Address to which the socket of this end binds.
    pub bind: IpAddr,
    /// The contestant.
    pub contestant: Contestant,
    /// Load of the clients.
    pub load: Load,
    /// Duration of the measurement.
    pub duration: Duration,
    /// Text of a key file, for sealed contestants. A remote server uses its own.
    pub key: String,
    /// Cipher of sealed packets.
    pub cipher: String,
    /// Maximum length of IP packets, bytes.
    pub mtu: u32,
}

/// First line that a process receives.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Serve until the input ends.
    Server(Spec),
    /// Connect, measure once and end.
    Client(Spec, Serving),
}

/// First answer of the server: where it serves.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Serving {
    /// Address of the server.
    pub address: SocketAddr,
    /// Key of its region; 0 for sockets.
    pub region: u64,
}

/// Resources that a process has used since its start.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time of all threads.
    pub cpu: Duration,
    /// Scheduler statistics of its threads; `None` if the kernel does not report them.
    pub scheduler: Option<Scheduler>,
}

/// Sums over the threads of a process that have not ended.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Scheduler {
    /// Time in which threads were runnable but had no core.
    pub queued: Duration,
    /// Number of times that a thread got a core.
    pub runs: u64,
}

/// The server's state.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct ServerState {
    /// Resources that the server has used.
    pub usage: Usage,
    /// Payload bytes received.
    pub bytes: u64,
    /// Open connections; 0 for sockets.
    pub connections: u64,
}

/// Measurements of a client.
#[derive(Default, Serialize, Deserialize)]
pub struct ClientResult {
    /// Durations of the counted round trips, microseconds.
    pub times_us: Vec<f64>,
    /// Ops that ended in the measured time.
    pub ops: u64,
    /// All ops, including those of the warm-up and the drain.
    pub all_ops: u64,
    /// Measured time, seconds.
    pub seconds: f64,
    /// Payload bytes received by an Apus client, over all ops.
    pub bytes: u64,
    /// Resources used in the measured time.
    pub usage: Usage,
}
