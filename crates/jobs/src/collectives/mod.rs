//! Collectives as graphs of operations, and their ideal times.
//!
//! [`Collective::graph`] makes the graph of an [`Algorithm`] among N ranks; [`closed::time`] returns the
//! closed form of its completion time. Reductions take no time. A step of a rank follows the receive of the
//! previous step; receives are posted at once. If the number of bytes is not divisible, the sizes of blocks
//! differ by one byte.

mod all_to_all;
mod broadcast;
pub mod closed;
mod composer;
mod double_tree;
mod halving;
mod hierarchical;
mod pipeline;
mod ring;
pub mod training;
mod weave;

use alloc::string::String;

use apus_units::Span;
use thiserror::Error;

use crate::graph::{Graph, GraphError};
pub use composer::Composer;
pub use double_tree::{Tree, trees};
pub use weave::JOINS;
use weave::Weave;

/// Algorithm of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Reduce-scatter in a ring: N - 1 steps of a block; rank r ends with block r.
    RingReduceScatter,
    /// All-gather in a ring: N - 1 steps of a block; rank r begins with block r.
    RingAllGather,
    /// All-reduce in a ring: a reduce-scatter followed by an all-gather.
    RingAllReduce,
    /// All-reduce by recursive halving and doubling. M is the largest power of two that is at most N. If N is
    /// not a power of two, each rank r from M upwards first sends its data to rank r - M, and gets the result
    /// at the end.
    HalvingDoubling,
    /// All-reduce over NCCL's two binary trees, each for half of the data.
    DoubleBinaryTree {
        /// Number of pieces of the data of a tree, at least 1.
        chunks: u32,
    },
    /// All-reduce of nodes of `group` consecutive ranks: ring reduce-scatter in the node, ring all-reduce of
    /// a block among the ranks with the same place in all nodes, ring all-gather in the node.
    Hierarchical {
        /// Number of ranks of a node; it divides N.
        group: u32,
    },
    /// All-to-all by node and rail, as in NCCL's PXN: blocks go to the rank of the own node that is on the
    /// receiver's rail. That rank sends the blocks of its node in one message per node.
    AllToAllRail {
        /// Number of ranks of a node; it divides N.
        group: u32,
    },
    /// Broadcast from rank 0 over a binomial tree.
    BroadcastBinomial,
    /// Broadcast from rank 0 along a chain.
    BroadcastChain {
        /// Number of pieces of the data, at least 1.
        chunks: u32,
    },
    /// All-to-all in which every rank sends all its blocks at once, first to the next rank.
    AllToAllDirect,
    /// All-to-all in N - 1 steps: in step k to rank r + k, from rank r - k.
    AllToAllPairwise,
    /// All-to-all with several outstanding blocks, to r + 1, r + 2 and so on: the next block leaves when one is done.
    AllToAllWindow {
        /// Number of outstanding blocks, at least 1.
        window: u32,
    },
    /// All-to-all by Bruck: in step k to rank r + 2^k, all blocks whose distance has bit k.
    AllToAllBruck,
    /// Pipeline of N stages: first the activations of each micro-batch to the next stage, then the gradients back.
    Pipeline {
        /// Number of micro-batches, at least 1.
        micro_batches: u32,
        /// Time of a stage for a micro-batch, forward.
        forward: Span,
        /// Time of a stage for a micro-batch, backward.
        backward: Span,
    },
}

/// Maximum number of operations of a generated job. Rationale: at least 40 B each, so about 10 GB including
/// their executor.
const MAX_OPS: u64 = 1 << 27;

/// A collective, repeated with computations before each repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collective {
    /// Algorithm of the collective.
    pub algorithm: Algorithm,
    /// Number of ranks N, at least 2.
    pub ranks: u32,
    /// S in bytes: the whole array of a rank. All-gather: the whole result. Pipeline: a micro-batch at a
    /// boundary between stages.
    pub bytes: u64,
    /// Number of equal parts of the data that run in parallel, 1 to 256. The k-th part uses messages of NIC k
    /// ([`Op::nic`](crate::Op::nic)).
    pub channels: u32,
    /// Time that every rank computes before each repetition.
    pub compute: Span,
    /// Number of repetitions, at least 1.
    pub iterations: u32,
}

impl Collective {
    /// Returns a collective without repetition, with one channel.
    #[must_use]
    pub const fn new(algorithm: Algorithm, ranks: u32, bytes: u64) -> Self {
        Self { algorithm, ranks, bytes, channels: 1, compute: Span::ZERO, iterations: 1 }
    }

    /// Returns the graph of the collective.
    ///
    /// # Errors
    /// If a value is out of range, or if a message would be empty.
    pub fn graph(&self) -> Result<Graph, CollectiveError> {
        self.check()?;
        let mut weave = Weave::new(self.ranks);
        for iteration in 0..self.iterations {
            weave.begin_iteration(iteration, self.compute)?;
            weave.begin_part(self.algorithm.name(), self.bytes);
            for channel in 0..self.channels {
                let bytes = share(self.bytes, channel, self.channels);
                weave.begin_channel(channel as u8);
                self.algorithm.weave(bytes, &mut weave)?;
            }
        }
        Ok(weave.finish()?)
    }

    fn check(&self) -> Result<(), CollectiveError> {
        let bad = |what, value, range| Err(CollectiveError::Range { what, value, range });
        if self.ranks < 2 {
            return bad("ranks", u64::from(self.ranks), String::from("at least 2"));
        }
        if self.iterations == 0 {
            return bad("iterations", 0, String::from("at least 1"));
        }
        if !(1..=256).contains(&self.channels) {
            return bad("channels", u64::from(self.channels), String::from("1 to 256"));
        }
        let pieces = self.algorithm.check(self.ranks)?;
        let least = pieces.saturating_mul(u64::from(self.channels));
        if self.bytes < least {
            let range = alloc::format!("at least {least}, one byte per message");
            return bad("bytes", self.bytes, range);
        }
        let repeated = u64::from(self.channels) * u64::from(self.iterations);
        let each = self.algorithm.messages(self.ranks).saturating_mul(repeated);
        let ops = each.saturating_mul(2 * u64::from(self.ranks));
        if ops > MAX_OPS {
            return bad("operations", ops, alloc::format!("at most {MAX_OPS}"));
        }
        Ok(())
    }
}

/// Reason why a collective has no graph.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CollectiveError {
    /// A value out of range.
    #[error("{what}: {value}; it must be {range}")]
    Range {
        /// Name of the value.
        what: &'static str,
        /// The value.
        value: u64,
        /// Valid values.
        range: String,
    },
    /// Too many operations.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

impl Algorithm {
    /// Returns the name of the collective.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RingReduceScatter => "reduce-scatter",
            Self::RingAllGather => "all-gather",
            Self::RingAllReduce
            | Self::HalvingDoubling
            | Self::DoubleBinaryTree { .. }
            | Self::Hierarchical { .. } => "all-reduce",
            Self::AllToAllDirect
            | Self::AllToAllPairwise
            | Self::AllToAllWindow { .. }
            | Self::AllToAllBruck
            | Self::AllToAllRail { .. } => "all-to-all",
            Self::BroadcastBinomial | Self::BroadcastChain { .. } => "broadcast",
            Self::Pipeline { .. } => "pipeline",
        }
    }

    /// Checks the algorithm among `ranks` ranks, at least 2. Returns the number of messages into which a
    /// channel's data is divided.
    fn check(self, ranks: u32) -> Result<u64, CollectiveError> {
        let bad = |what, value, range| Err(CollectiveError::Range { what, value, range });
        let (pieces, name) = self.pieces(ranks);
        if pieces == 0 {
            return bad(name, 0, String::from("at least 1"));
        }
        if let Self::Hierarchical { group } | Self::AllToAllRail { group } = self
            && (group < 2 || group >= ranks || !ranks.is_multiple_of(group))
        {
            let range = alloc::format!("a divisor of {ranks} between 1 and it");
            return bad("ranks of a group", u64::from(group), range);
        }
        Ok(pieces)
    }

    /// Returns the maximum number of messages that a rank sends per channel and repetition. A single rank sends none.
    #[must_use]
    pub fn messages(self, ranks: u32) -> u64 {
        if ranks < 2 {
            return 0;
        }
        let (n, log) = (u64::from(ranks), u64::from((ranks - 1).ilog2() + 1));
        let nodes = |group: u32| n / u64::from(group.max(1));
        match self {
            Self::RingAllReduce => 2 * (n - 1),
            Self::RingReduceScatter
            | Self::RingAllGather
            | Self::AllToAllDirect
            | Self::AllToAllPairwise
            | Self::AllToAllWindow { .. } => n - 1,
            Self::HalvingDoubling => 2 * log + 1,
            Self::DoubleBinaryTree { chunks } => 6 * u64::from(chunks),
            Self::Hierarchical { group } => 2 * (u64::from(group) + nodes(group)),
            Self::AllToAllRail { group } => n + nodes(group),
            Self::BroadcastBinomial | Self::AllToAllBruck => log,
            Self::BroadcastChain { chunks } => u64::from(chunks),
            Self::Pipeline { micro_batches, .. } => 2 * u64::from(micro_batches),
        }
    }

    /// Returns the number of messages into which a channel's data is divided, and the name of that number.
    fn pieces(self, ranks: u32) -> (u64, &'static str) {
        let ranks = u64::from(ranks);
        match self {
            Self::RingReduceScatter
            | Self::RingAllGather
            | Self::RingAllReduce
            | Self::Hierarchical { .. }
            | Self::AllToAllDirect
            | Self::AllToAllPairwise
            | Self::AllToAllRail { .. }
            | Self::AllToAllBruck => (ranks, "ranks"),
            Self::HalvingDoubling => (1 << ranks.ilog2(), "ranks"),
            Self::AllToAllWindow { window } => (ranks * u64::from(window.min(1)), "window"),
            Self::DoubleBinaryTree { chunks } => (2 * u64::from(chunks), "chunks"),
            Self::BroadcastBinomial => (1, "ranks"),
            Self::BroadcastChain { chunks } => (u64::from(chunks), "chunks"),
            Self::Pipeline { micro_batches, .. } => {
                (u64::from(micro_batches.min(1)), "micro-batches")
            }
        }
    }

    /// Adds the operations for `bytes` bytes to those of all ranks.
    fn weave(self, bytes: u64, weave: &mut Weave) -> Result<(), GraphError> {
        match self {
            Self::RingReduceScatter => ring::reduce_scatter(weave, bytes),
            Self::RingAllGather => ring::all_gather(weave, bytes),
            Self::RingAllReduce => ring::all_reduce(weave, bytes),
            Self::HalvingDoubling => halving::all_reduce(weave, bytes),
            Self::DoubleBinaryTree { chunks } => double_tree::all_reduce(weave, bytes, chunks),
            Self::Hierarchical { group } => hierarchical::all_reduce(weave, bytes, group),
            Self::BroadcastBinomial => broadcast::binomial(weave, bytes),
            Self::BroadcastChain { chunks } => broadcast::chain(weave, bytes, chunks),
            Self::AllToAllDirect => all_to_all::direct(weave, bytes),
            Self::AllToAllPairwise => all_to_all::pairwise(weave, bytes),
            Self::AllToAllWindow { window } => all_to_all::window(weave, bytes, window),
            Self::AllToAllBruck => all_to_all::bruck(weave, bytes),
            Self::AllToAllRail { group } => hierarchical::all_to_all(weave, bytes, group),
            Self::Pipeline { micro_batches, forward, backward } => {
                pipeline::steps(weave, bytes, micro_batches, forward, backward)
            }
        }
    }
}

/// Returns the size of the `index`-th of `parts` parts of `bytes`; sizes differ by at most one byte.
pub(crate) fn share(bytes: u64, index: u32, parts: u32) -> u64 {
    let end = |index: u64| (u128::from(bytes) * u128::from(index) / u128::from(parts)) as u64;
    end(u64::from(index) + 1) - end(u64::from(index))
}
