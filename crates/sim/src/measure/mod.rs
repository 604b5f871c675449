//! What is measured of parts of a run: of workloads that have a name, of groups of ports, and of
//! spans of time.
//!
//! A run that asks for none of it has no accumulators, and the packet path only finds that there
//! are none.

mod buckets;
mod groups;
mod ports;
mod series;
mod workload;

use std::fmt;

use apus_units::{Bytes, Span};

pub use buckets::{ComparisonSummary, LossSummary};
pub(crate) use groups::GroupQueues;
pub use groups::GroupTotals;
pub(crate) use ports::PortWindows;
pub use ports::{ClassSummary, Comparison, PortGroup, PortGroupSummary, Sorting};
pub(crate) use series::{Look, SeriesSampler};
pub use series::{Quantity, Question, SeriesPlan, SettleSummary, Subject, Threshold};
pub use workload::{SizeSummary, WorkloadSummary};
pub(crate) use workload::{WorkloadMetrics, summarize};

/// What to measure besides the whole run.
#[derive(Clone, Debug, Default)]
pub struct Measures {
    /// Workloads with a name; connections name them by index.
    pub workloads: Vec<NamedWorkload>,
    /// Sizes of ops whose slowdown each named workload reports apart.
    pub sizes: Vec<SizeRange>,
    /// Length of the windows in which groups of ports are looked at; `None` if there are none.
    pub window: Option<Span>,
    /// Time between samples of their queues; `None` if none are taken.
    pub queue_interval: Option<Span>,
    /// Groups of ports.
    pub groups: Vec<PortGroup>,
    /// Names of the traffic classes, by number; none if there is but one.
    pub classes: Vec<String>,
    /// Classes whose loss is compared.
    pub comparisons: Vec<Comparison>,
    /// Quantities over time.
    pub series: Vec<SeriesPlan>,
}

/// A workload that is measured by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedWorkload {
    /// Its name, part of the names of its metrics.
    pub name: String,
    /// Ops that take longer are late.
    pub deadline: Option<Span>,
}

/// Sizes of ops, in payload bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeRange {
    /// From here on.
    pub from: Bytes,
    /// Up to here, exclusive; `None` if there is no upper end.
    pub to: Option<Bytes>,
}

impl fmt::Display for SizeRange {
    /// As a scenario writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..", self.from)?;
        self.to.map_or(Ok(()), |to| to.fmt(f))
    }
}

impl SizeRange {
    /// Whether an op of `size` bytes belongs to it.
    #[must_use]
    pub fn holds(&self, size: u64) -> bool {
        self.from.get() <= size && self.to.is_none_or(|to| size < to.get())
    }
}
