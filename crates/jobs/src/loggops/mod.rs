//! The host and network model of LogGOPSim (Hoefler, Schneider and Lumsdaine, "LogGOPSim: Simulating
//! Large-Scale Applications in the LogGOPS Model", LSAP 2010), as the program computes it.
//!
//! A message of s bytes occupies the stream of its sender for o + (s-1)O and its NIC for g + (s-1)G. It
//! arrives o + L after its start. At the receiver it waits for the stream and the NIC. It then occupies the
//! stream for o + max((s-1)O, (s-1)G) and the NIC for g + (s-1)G, whether a receive is posted or not. A
//! receive is posted when its stream is free; it does not hold the stream. A send of at most S bytes is done
//! when its stream is free again. A larger send is done when the receiver begins to handle the message and
//! has a receive for it. Operations that become possible at the same time start in the order sends, receives,
//! computations, then by their number in the graph. A message of 0 bytes counts as -1 byte beyond the first.
//!
//! [`run`] computes a job in this model alone. A [`Model`] leaves the messages to its owner, for example a
//! simulated fabric. The first byte then arrives when the fabric has carried it, but not before L has passed.
//! A receive ends at the earliest o after the last byte has arrived. On a fabric that is faster than L and G
//! the times are those of [`run`].
//!
//! Differences from LogGOPSim 76451de:
//!
//! * LogGOPSim lets an operation on another stream than the operation for which it waits start as soon as its own stream
//!   is free, before its dependency ends. Here it waits.
//! * If a message arrives before its receive, LogGOPSim compares the size of the receive with S, and holds the stream and
//!   the NIC of the sender that have the numbers of the receive. Here both are those of the send, as if the receive came
//!   first.
//! * LogGOPSim counts whole nanoseconds. Here times are in picoseconds, so that G may be a fraction.

mod model;

use alloc::sync::Arc;
use alloc::vec::Vec;

use apus_units::{Span, Time};
use thiserror::Error;

use crate::graph::{Graph, Program};
use crate::rank::{Done, Rank, Unexpected};
pub use model::{Departure, Model, Ranks, Step};

/// Parameters of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// L: latency of the network.
    pub latency: Span,
    /// o: time of a stream per message.
    pub overhead: Span,
    /// O: time of a stream per byte.
    pub overhead_per_byte: Span,
    /// g: time of a NIC per message.
    pub gap: Span,
    /// G: time of a NIC per byte.
    pub gap_per_byte: Span,
    /// S: the largest message in bytes that is sent before its receiver is ready.
    pub eager: u64,
}

impl Default for Parameters {
    /// Returns the parameters of LogGOPSim.
    fn default() -> Self {
        Self {
            latency: Span::from_ns(2500),
            overhead: Span::from_ns(1500),
            overhead_per_byte: Span::ZERO,
            gap: Span::from_ns(1000),
            gap_per_byte: Span::from_ns(6),
            eager: 65535,
        }
    }
}

/// Returns `fixed` plus `per_byte` for each byte beyond the first. 0 bytes count as one byte less.
fn time(fixed: Span, per_byte: Span, bytes: u64) -> Span {
    match bytes.checked_sub(1) {
        Some(further) => {
            let further = per_byte.as_ps().saturating_mul(further);
            Span::from_ps(fixed.as_ps().saturating_add(further))
        }
        None => fixed.saturating_sub(per_byte),
    }
}

impl Parameters {
    /// Returns the time for which a message occupies the stream of its sender.
    #[must_use]
    pub fn sending(&self, bytes: u64) -> Span {
        time(self.overhead, self.overhead_per_byte, bytes)
    }

    /// Returns the time for which a message occupies the stream of its receiver.
    #[must_use]
    pub fn receiving(&self, bytes: u64) -> Span {
        let (stream, nic) = (self.overhead_per_byte, self.gap_per_byte);
        // As in LogGOPSim, which uses unsigned numbers, -1 byte counts as the smaller of the two times that is not 0.
        let per_byte = match bytes {
            0 if !stream.is_zero() && !nic.is_zero() => stream.min(nic),
            _ => stream.max(nic),
        };
        time(self.overhead, per_byte, bytes)
    }

    /// Returns the time for which a message occupies a NIC.
    #[must_use]
    pub fn occupies(&self, bytes: u64) -> Span {
        time(self.gap, self.gap_per_byte, bytes)
    }

    /// Returns the time of a message without other messages, from its start to the end of its receive.
    /// `fabric` has the times from the moment at which the message enters the fabric to the arrival of its
    /// first byte and of its last byte.
    #[must_use]
    pub fn alone(&self, bytes: u64, fabric: (Span, Span)) -> Span {
        let taken = self.latency.max(fabric.0).saturating_add(self.receiving(bytes));
        self.overhead.saturating_add(taken).max(self.at_least(fabric))
    }

    /// Returns the minimum time of a message from its start to the end of its receive. If another stream of
    /// the rank posts the receive while the message is being handled, the receive ends at once.
    #[must_use]
    pub fn at_least(&self, (first, last): (Span, Span)) -> Span {
        let complete = last.saturating_add(self.overhead);
        self.overhead.saturating_add(self.latency.max(first).max(complete))
    }
}

/// Error of a job that takes longer than the range of [`Time`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the job takes longer than 2^64 ps (213 days)")]
pub struct TooLongError;

/// The result of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// By rank: time at which its last stream is free.
    pub ends: Vec<Time>,
    /// Operations that are not done, by rank and number.
    pub stuck: Vec<(u32, u32)>,
    /// Messages that no receive took, each with its receiver.
    pub unexpected: Vec<(u32, Unexpected)>,
}

impl Outcome {
    /// Returns the time of the rank that ends last.
    #[must_use]
    pub fn completion(&self) -> Time {
        self.ends.iter().copied().max().unwrap_or(Time::ZERO)
    }

    /// Returns `true` if all operations are done and all messages are taken.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.stuck.is_empty() && self.unexpected.is_empty()
    }
}

/// Runs a job.
///
/// # Errors
/// If it takes longer than the range of [`Time`].
pub fn run(graph: &Graph, parameters: &Parameters) -> Result<Outcome, TooLongError> {
    let rank = |program: &Arc<Program>| Rank::new(Arc::clone(program), Done::LogGops);
    let mut ranks: Vec<Rank> = graph.programs().map(rank).collect();
    let mut model = Model::new(graph, parameters);
    model.start(Time::ZERO, &mut ranks);
    while let Some(step) = model.step(&mut ranks) {
        if let Some(departure) = step.departure {
            model.arrive(&departure);
        }
    }
    let ends: Vec<Time> = (0..graph.ranks()).map(|rank| model.free_at(rank)).collect();
    // Times beyond the range belong to operations and messages, and all of these occupy a stream.
    if ends.contains(&Time::MAX) {
        return Err(TooLongError);
    }
    let (mut stuck, mut unexpected) = (Vec::new(), Vec::new());
    for (number, rank) in (0..).zip(&ranks) {
        stuck.extend(rank.stuck().map(|op| (number, op)));
        unexpected.extend(rank.unexpected().map(|message| (number, message)));
    }
    Ok(Outcome { ends, stuck, unexpected })
}
