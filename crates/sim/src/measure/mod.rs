//! Measurements of parts of a run: of named workloads, of groups of ports, and of spans of time.
//!
//! A run without such measurements has no accumulators; the packet path only checks that there are none.

mod attach;
mod buckets;
mod groups;
mod plan;
mod ports;
mod series;
mod workload;
mod workload_summary;

pub use buckets::{ComparisonSummary, LossSummary};
pub(crate) use groups::GroupQueues;
pub use groups::GroupTotals;
pub use plan::{
    Comparison, Measures, Moment, NamedWorkload, PortGroup, Quantity, Question, SeriesPlan,
    SizeRange, Sorting, Subject, Threshold, Which,
};
pub use ports::{ClassSummary, PortGroupSummary};
pub(crate) use ports::{PortWindows, minus};
pub use series::SettleSummary;
pub(crate) use series::{Look, SeriesSampler};
pub(crate) use workload::{Member, WorkloadMetrics};
pub use workload_summary::{SizeSummary, WorkloadSummary};
pub(crate) use workload_summary::{note_times, summarize};
