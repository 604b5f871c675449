//! A job as a graph of operations: the sends, receives and computations of each rank, and their order.

mod builder;
mod cycle;
mod edges;
mod labels;
mod program;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use apus_units::Span;
use thiserror::Error;

pub use builder::ProgramBuilder;
pub use program::Program;

/// Wildcard for the source or the tag of a receive, or the tag of a send.
pub const ANY: u32 = u32::MAX;

/// Kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Sends a message.
    Send {
        /// Receiving rank.
        to: u32,
        /// Size of the message in bytes.
        bytes: u64,
        /// Tag of the message, or [`ANY`].
        tag: u32,
    },
    /// Receives a message.
    Receive {
        /// Sending rank, or [`ANY`].
        from: u32,
        /// Size of the expected message in bytes. The matching ignores the size.
        bytes: u64,
        /// Tag of the message, or [`ANY`].
        tag: u32,
    },
    /// Occupies its stream for a time.
    Compute {
        /// The time.
        time: Span,
    },
}

/// An operation of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// Kind of the operation.
    pub action: Action,
    /// Stream on which the operation computes, or which must be free before it can send: GOAL's cpu.
    pub cpu: u8,
    /// NIC through which the operation sends or receives; 0 for a computation. Messages of one NIC wait for
    /// each other in the LogGOPS model, in [`ideal`](crate::ideal), and on simulated hosts that send one
    /// message after the other; messages of different NICs do not. The NIC does not select a port of a
    /// simulated host.
    pub nic: u8,
}

impl Op {
    /// Returns a send through NIC 0 on stream 0.
    #[must_use]
    pub const fn send(to: u32, bytes: u64, tag: u32) -> Self {
        Self { action: Action::Send { to, bytes, tag }, cpu: 0, nic: 0 }
    }

    /// Returns a receive through NIC 0 on stream 0.
    #[must_use]
    pub const fn receive(from: u32, bytes: u64, tag: u32) -> Self {
        Self { action: Action::Receive { from, bytes, tag }, cpu: 0, nic: 0 }
    }

    /// Returns a computation on stream 0.
    #[must_use]
    pub const fn compute(time: Span) -> Self {
        Self { action: Action::Compute { time }, cpu: 0, nic: 0 }
    }

    /// Returns the operation on another stream.
    #[must_use]
    pub const fn on_cpu(self, cpu: u8) -> Self {
        Self { cpu, ..self }
    }

    /// Returns the operation through another NIC.
    #[must_use]
    pub const fn on_nic(self, nic: u8) -> Self {
        Self { nic, ..self }
    }
}

/// Kind of a packed operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Send,
    Receive,
    Compute,
}

/// An operation in 24 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Packed {
    /// Number of bytes, or picoseconds of a computation.
    amount: u64,
    peer: u32,
    tag: u32,
    kind: Kind,
    cpu: u8,
    nic: u8,
}

impl From<Op> for Packed {
    fn from(op: Op) -> Self {
        let Op { action, cpu, nic } = op;
        let (kind, peer, tag, amount) = match action {
            Action::Send { to, bytes, tag } => (Kind::Send, to, tag, bytes),
            Action::Receive { from, bytes, tag } => (Kind::Receive, from, tag, bytes),
            Action::Compute { time } => (Kind::Compute, 0, 0, time.as_ps()),
        };
        Self { amount, peer, tag, kind, cpu, nic }
    }
}

impl From<Packed> for Op {
    #[inline]
    fn from(packed: Packed) -> Self {
        let Packed { amount: bytes, peer, tag, kind, cpu, nic } = packed;
        let action = match kind {
            Kind::Send => Action::Send { to: peer, bytes, tag },
            Kind::Receive => Action::Receive { from: peer, bytes, tag },
            Kind::Compute => Action::Compute { time: Span::from_ps(bytes) },
        };
        Self { action, cpu, nic }
    }
}

/// A part of a job whose time results report, such as one collective of a training step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Name of the part. Results add up the parts with the same name.
    pub name: &'static str,
    /// S of a collective, or the bytes of a message.
    pub bytes: u64,
    /// Number of ranks that take part.
    pub ranks: u32,
}

/// The programs of all ranks.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    programs: Vec<Arc<Program>>,
    parts: Vec<Part>,
}

/// Jobs are equal if their programs are equal.
impl PartialEq for Graph {
    fn eq(&self, other: &Self) -> bool {
        self.programs == other.programs
    }
}

impl Eq for Graph {}

impl Graph {
    /// Returns the job in which rank `r` runs the `r`-th program.
    ///
    /// # Errors
    /// If a program has a peer that is no rank of the job, or if there are 2^32 - 1 programs or more.
    pub fn new(programs: Vec<Program>) -> Result<Self, GraphError> {
        let ranks = programs.len();
        let Some(ranks) = u32::try_from(ranks).ok().filter(|ranks| *ranks < ANY) else {
            return Err(GraphError { rank: None, op: None, what: Flaw::Ranks { ranks } });
        };
        for (rank, program) in programs.iter().enumerate() {
            for (op, packed) in program.ops.iter().enumerate() {
                builder::check_peer(ranks, rank as u32, op as u32, packed)?;
            }
        }
        let parts = Vec::new();
        Ok(Self { programs: programs.into_iter().map(Arc::new).collect(), parts })
    }

    /// Returns the job with these parts, which its programs reference.
    #[must_use]
    pub fn with_parts(self, parts: Vec<Part>) -> Self {
        Self { parts, ..self }
    }

    /// Returns the parts. A job that was read from a file of operations has none.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Returns the number of ranks.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.programs.len() as u32
    }

    /// Returns the program of a rank.
    ///
    /// # Panics
    /// If there is no such rank.
    #[must_use]
    pub fn program(&self, rank: u32) -> &Arc<Program> {
        &self.programs[rank as usize]
    }

    /// Returns the programs in the order of ranks.
    pub fn programs(&self) -> impl ExactSizeIterator<Item = &Arc<Program>> {
        self.programs.iter()
    }

    /// Returns the number of operations of all ranks.
    #[must_use]
    pub fn ops(&self) -> u64 {
        self.programs.iter().map(|program| program.len() as u64).sum()
    }

    /// Returns the bytes that all ranks send.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let sends = self.programs.iter().flat_map(|program| program.ops.iter());
        let bytes = sends.filter(|op| op.kind == Kind::Send).map(|op| op.amount);
        bytes.fold(0, u64::saturating_add)
    }
}

/// Reason why operations form no job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{}{what}", Prefix(*rank, *op))]
pub struct GraphError {
    /// Rank with the error, if it concerns one rank.
    pub rank: Option<u32>,
    /// Operation with the error, if it concerns one operation.
    pub op: Option<u32>,
    /// Kind of the error.
    pub what: Flaw,
}

/// Kind of error in a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Flaw {
    /// Too many ranks.
    #[error("the job has {ranks} ranks; there must be fewer than 4294967295")]
    Ranks {
        /// Number of ranks.
        ranks: usize,
    },
    /// Too many operations, dependencies or labels.
    #[error("there are more than 4294967294 operations, dependencies or bytes of labels")]
    TooMany,
    /// The peer of an operation is no rank.
    #[error("the peer is rank {peer}; it must be below {ranks}")]
    Peer {
        /// The peer.
        peer: u32,
        /// Number of ranks.
        ranks: u32,
    },
    /// A dependency on an operation that does not exist.
    #[error("it waits for op {other}, which does not exist")]
    NoOp {
        /// Operation for which it waits.
        other: u32,
    },
    /// An operation that waits for itself.
    #[error("it waits for itself, through {length} dependencies")]
    Cycle {
        /// Number of dependencies of the cycle. The operation of the error is the lowest one of the cycle.
        length: u32,
    },
}

/// Rank and operation at the start of a message.
pub(crate) struct Prefix(pub(crate) Option<u32>, pub(crate) Option<u32>);

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0, self.1) {
            (Some(rank), Some(op)) => write!(f, "rank {rank}, op {op}: "),
            (Some(rank), None) => write!(f, "rank {rank}: "),
            (None, _) => Ok(()),
        }
    }
}
