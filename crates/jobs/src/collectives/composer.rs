//! Jobs of single operations and of collectives among some of the ranks.

use alloc::vec::Vec;

use super::weave::Weave;
use super::{Algorithm, Collective, CollectiveError};
use crate::graph::{Graph, GraphError, Op};

/// Builder of the programs of all ranks at once, for readers of traces with collectives.
pub struct Composer(Weave);

impl Composer {
    /// Begins a job of `ranks` ranks.
    #[must_use]
    pub fn new(ranks: u32) -> Self {
        Self(Weave::new(ranks))
    }

    /// Gives messages of collectives the tags from `first` on; those of other operations must be below. A collective needs a few
    /// tags per rank between `first` and [`ANY`](crate::graph::ANY).
    #[must_use]
    pub fn with_tags_from(self, first: u32) -> Self {
        Self(self.0.with_tags_from(first))
    }

    /// Adds an operation of a rank after others of it, and returns its number.
    ///
    /// # Errors
    /// If the peer is no rank, or if there are too many operations.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn op(&mut self, rank: u32, op: Op, after: &[u32]) -> Result<u32, GraphError> {
        self.0.add(rank, op, after)
    }

    /// Adds a collective of some ranks, whose sends are on stream `cpu`. `after` has the operations that each of
    /// them waits for, before any part of the collective; afterwards it has those that the collective ends with.
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
