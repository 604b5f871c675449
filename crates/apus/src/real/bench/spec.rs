//! What the two processes of a measurement are told, and what they answer.

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

/// How both ends wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Waiting {
    /// In the kernel: blocking sockets, and Apus in its default mode (shared).
    Blocking,
    /// Never: sockets that are read without blocking, and Apus in spinning mode.
    Spinning,
    /// Never, and each end of Apus has one thread (inline mode).
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
    /// A message and the message with which the peer's application answers.
    Message,
    /// A one-sided write and its acknowledgement.
    Write,
    /// A one-sided read.
    Read,
    /// A remote procedure call and its answer.
    Call,
}

/// Whose round trips or bytes are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contestant {
    /// Sockets of std: datagrams, and the server's echo.
    Udp(Waiting),
    /// Sockets of std with `TCP_NODELAY`.
    Tcp,
    /// Apus with its default settings; `sealed` packets are encrypted and authenticated.
    Apus {
        /// What it does.
        op: OpName,
        /// How both ends wait.
        waiting: Waiting,
        /// Whether packets are encrypted and authenticated.
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

/// What clients do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// Round trips of 64 B one after the other, in each thread.
    RoundTrips {
        /// Pause between the end of one and the start of the next.
        gap: Duration,
        /// Client processes, each with one socket and, of Apus, one connection.
        clients: u32,
        /// Threads of each client; of Apus they share the connection, sockets are their own.
        threads: u32,
        /// Threads of another process that compute meanwhile.
        busy: u32,
    },
    /// Writes.
    Writes {
        /// Bytes of each.
        bytes: usize,
        /// Number of outstanding writes; of TCP the kernel's buffers limit them.
        outstanding: usize,
    },
    /// Messages or calls of 64 B that the server's application answers.
    Answered {
        /// Number of those that are outstanding.
        outstanding: usize,
    },
    /// Connections without ops; one client process has all of them.
    Idle {
        /// Their number.
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

/// A measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Spec {
    /// Address of the end's socket.
    pub bind: IpAddr,
    /// Who.
    pub contestant: Contestant,
    /// What.
    pub load: Load,
    /// How long.
    pub duration: Duration,
    /// Text of a key file, for sealed contestants. A remote server has its own.
    pub key: String,
    /// Cipher of sealed packets.
    pub cipher: String,
    /// Maximum length of IP packets, bytes.
    pub mtu: u32,
}

/// The first line for a process.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Serves until its input ends.
    Server(Spec),
    /// Connects, measures once and ends.
    Client(Spec, Serving),
}

/// The server's first answer: it serves here.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Serving {
    /// Its address.
    pub address: SocketAddr,
    /// Key of its region; 0 for sockets.
    pub region: u64,
}

/// What a process has used since its start.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time of all threads.
    pub cpu: Duration,
    /// What the kernel's scheduler knows of its threads; `None` if the kernel does not tell.
    pub scheduler: Option<Scheduler>,
}

/// Sums over the threads of a process that have not ended.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Scheduler {
    /// Time in which threads were runnable and had no core.
    pub queued: Duration,
    /// Number of times that a thread got a core.
    pub runs: u64,
}

/// The server's state.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct ServerState {
    /// What it has used.
    pub usage: Usage,
    /// Payload bytes received.
    pub bytes: u64,
    /// Open connections; 0 for sockets.
    pub connections: u64,
}

/// What a client has measured.
#[derive(Default, Serialize, Deserialize)]
pub struct ClientResult {
    /// Durations of the counted round trips, microseconds.
    pub times_us: Vec<f64>,
    /// Ops that ended in the measured time.
    pub ops: u64,
    /// All ops, with those of the warm-up and the drain.
    pub all_ops: u64,
    /// Measured time, seconds.
    pub seconds: f64,
    /// Payload bytes received by an Apus client, over all ops.
    pub bytes: u64,
    /// Used in the measured time.
    pub usage: Usage,
}
