//! Closed forms of the completion time of collectives.
//!
//! Every rank has a NIC of its own; ranks share no other resource. The forms for rings, halving-doubling and
//! all-to-all are those of Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication
//! Operations in MPICH", IJHPCA 2005, with reductions that take no time. The form for pipelines is that of
//! Huang et al., "GPipe", NeurIPS 2019, plus the time of the first and the last messages.

use apus_units::Span;

use crate::ideal::Cost;

use super::all_to_all::bruck_step;
use super::{Algorithm, Collective};

fn times(n: u64, span: Span) -> Span {
    Span::from_ps(span.as_ps().saturating_mul(n))
}

fn sum(spans: impl IntoIterator<Item = Span>) -> Span {
    Span::from_ps(spans.into_iter().fold(0, |sum, span| sum.saturating_add(span.as_ps())))
}

/// A closed form of a completion time, from the start to the last receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The completion time.
    Exact(Span),
    /// A lower bound. It equals the completion time unless messages meet at a receiver.
    AtLeast(Span),
    /// An approximation of the completion time.
    About(Span),
}

impl Form {
    /// Returns the time.
    #[must_use]
    pub const fn span(self) -> Span {
        match self {
            Self::Exact(span) | Self::AtLeast(span) | Self::About(span) => span,
        }
    }

    fn map(self, f: impl FnOnce(Span) -> Span) -> Self {
        match self {
            Self::Exact(span) => Self::Exact(f(span)),
            Self::AtLeast(span) => Self::AtLeast(f(span)),
            Self::About(span) => Self::About(f(span)),
        }
    }
}

/// Returns the closed form for a collective; `cost` gives the times of a message of a number of bytes.
/// Returns `None` if there is no closed form: with several channels, if blocks differ in size, or if the
/// messages of a pipeline take longer than its computations. Repeated broadcasts also have none, because the
/// next one begins before the previous one has ended on all ranks.
pub fn time(collective: &Collective, cost: impl Fn(u64) -> Cost) -> Option<Form> {
    let Collective { algorithm, ranks, bytes, channels, compute, iterations } = *collective;
    let is_broadcast =
        matches!(algorithm, Algorithm::BroadcastBinomial | Algorithm::BroadcastChain { .. });
    let overlaps = iterations > 1 && is_broadcast;
    if channels != 1 || ranks < 2 || overlaps {
        return None;
    }
    let once = once(algorithm, ranks, bytes, cost)?;
    Some(once.map(|once| times(u64::from(iterations), sum([compute, once]))))
}

fn once(algorithm: Algorithm, ranks: u32, bytes: u64, cost: impl Fn(u64) -> Cost) -> Option<Form> {
    let n = u64::from(ranks);
    let alone = |bytes: u64| cost(bytes).alone();
    let block = |parts: u64| bytes.is_multiple_of(parts).then(|| bytes / parts);
    let exact = |span| Some(Form::Exact(span));
    match algorithm {
        Algorithm::RingReduceScatter | Algorithm::RingAllGather => {
            exact(times(n - 1, alone(block(n)?)))
        }
        Algorithm::RingAllReduce => exact(times(2 * (n - 1), alone(block(n)?))),
        Algorithm::HalvingDoubling => {
            let steps = ranks.ilog2();
            let paired = 1u64 << steps;
            block(paired)?;
            let halves = times(2, sum((1..=steps).map(|k| alone(bytes >> k))));
            if paired == n {
                return exact(halves);
            }
            // A rank that gets the data of another rank may get its first half at the same time.
            Some(Form::AtLeast(sum([halves, times(2, alone(bytes))])))
        }
        Algorithm::DoubleBinaryTree { chunks } => {
            let chunk = alone(block(2 * u64::from(chunks))?);
            let depth = u64::from((ranks - 1).ilog2() + 1);
            Some(Form::About(sum([times(2 * depth, chunk), times(2, cost(bytes).occupies)])))
        }
        Algorithm::Hierarchical { group } => {
            let group = u64::from(group);
            let nodes = n / group;
            let rail = block(n)?;
            let within = times(2 * (group - 1), alone(bytes / group));
            exact(sum([within, times(2 * (nodes - 1), alone(rail))]))
        }
        Algorithm::AllToAllRail { .. } => None,
        // A rank sends its messages one after the other without a pause. If N is a power of two, rank N - 1
        // is the last, and its message was the first one of each sender on the path: log2 N messages.
        Algorithm::BroadcastBinomial => {
            let depth = |rank: u32| {
                let waits = times(u64::from(rank.ilog2() + 1), cost(bytes).occupies);
                sum([waits, times(u64::from(rank.count_ones()), cost(bytes).latency)])
            };
            (1..ranks).map(depth).max().map(Form::Exact)
        }
        // The first chunk takes N - 1 messages; the other chunks follow without a pause.
        Algorithm::BroadcastChain { chunks } => {
            let chunks = u64::from(chunks);
            let chunk = block(chunks)?;
            let others = times(chunks - 1, cost(chunk).occupies);
            exact(sum([times(n - 1, alone(chunk)), others]))
        }
        Algorithm::AllToAllDirect => {
            let Cost { occupies, latency, .. } = cost(block(n)?);
            exact(sum([latency, times(n - 1, occupies)]))
        }
        Algorithm::AllToAllPairwise => exact(times(n - 1, alone(block(n)?))),
        Algorithm::AllToAllWindow { window } => {
            let Cost { occupies, latency, .. } = cost(block(n)?);
            let rounds = (n - 1).div_ceil(u64::from(window.max(1)));
            Some(Form::About(sum([times(rounds, latency), times(n - 1, occupies)])))
        }
        Algorithm::AllToAllBruck => {
            block(n)?;
            let steps = (ranks - 1).ilog2() + 1;
            exact(sum((0..steps).map(|k| alone(bruck_step(bytes, ranks, k)))))
        }
        Algorithm::Pipeline { micro_batches, forward, backward } => {
            if micro_batches > 1 && cost(bytes).occupies > forward.min(backward) {
                return None;
            }
            let stages = n - 1 + u64::from(micro_batches);
            let computed = times(stages, sum([forward, backward]));
            exact(sum([computed, times(2 * (n - 1), alone(bytes))]))
        }
    }
}

/// Returns the bus bandwidth of a collective in bit/s: the bandwidth of a NIC if data takes up all of its
/// time (nccl-tests, `doc/PERFORMANCE.md`). Returns `None` for a pipeline, and if no time has passed.
#[must_use]
pub fn bus_bandwidth(collective: &Collective, time: Span) -> Option<f64> {
    let n = f64::from(collective.ranks);
    let factor = match collective.algorithm.name() {
        "all-reduce" => 2.0 * (n - 1.0) / n,
        "reduce-scatter" | "all-gather" | "all-to-all" => (n - 1.0) / n,
        "broadcast" => 1.0,
        _ => return None,
    };
    let bits = collective.bytes as f64 * 8.0 * f64::from(collective.iterations);
    (!time.is_zero()).then(|| bits / time.as_secs_f64() * factor)
}
