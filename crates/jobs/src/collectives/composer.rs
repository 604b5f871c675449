//! Jobs of single operations and of collectives among some of the ranks.

use alloc::vec::Vec;

use super::weave::Weave;
use super::{Algorithm, Collective, CollectiveError};
use crate::graph::{Graph, GraphError, Op};

/// Builder of the programs of all ranks together, for readers of traces with collectives.
pub struct Composer(Weave);

impl Composer {
    /// Begins a job of `ranks` ranks.
    #[must_use]
    pub fn new(ranks: u32) -> Self {
        Self(Weave::new(ranks))
    }

    /// Assigns tags from `first` upwards to messages of collectives. Tags of other operations must be
    /// smaller. A collective needs several tags per rank between `first` and [`ANY`](crate::graph::ANY).
    #[must_use]
    pub fn with_tags_from(self, first: u32) -> Self {
        Self(self.0.with_tags_from(first))
    }

    /// Adds an operation of a rank that waits for the operations `after` of the same rank, and returns its number.
    ///
    /// # Errors
    /// If the peer is no rank, or if there are too many operations.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn op(&mut self, rank: u32, op: Op, after: &[u32]) -> Result<u32, GraphError> {
        self.0.add(rank, op, after)
    }

    /// Adds a collective of some ranks with its sends on stream `cpu`. On entry, `after` has the operations
    /// for which each of the ranks waits before it starts any part of the collective. On return, it has the
    /// operations with which the collective ends.
    ///
    /// # Errors
    /// If a message would be empty, or if there are too many operations.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn collective(
        &mut self,
        members: &[u32],
        algorithm: Algorithm,
        bytes: u64,
        cpu: u8,
        after: &mut [Vec<u32>],
    ) -> Result<(), CollectiveError> {
        Collective::new(algorithm, members.len() as u32, bytes).check()?;
        self.0.set_cpu(cpu);
        self.0.within(members, |weave| {
            for (place, after) in (0..).zip(after.iter()) {
                weave.set_before(place, after);
            }
            weave.collective(algorithm.name(), algorithm, bytes)?;
            for (place, after) in (0..).zip(after.iter_mut()) {
                after.clear();
                after.extend_from_slice(weave.before(place));
            }
            Ok(())
        })
    }

    /// Returns the job.
    ///
    /// # Errors
    /// If operations wait for each other.
    pub fn finish(self) -> Result<Graph, GraphError> {
        self.0.finish()
    }
}
