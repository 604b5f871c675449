//! Measurements of parts of a run.

use crate::columns::{Columns, Declared, Kind};
use crate::distribution::DistributionSummary;
use std::collections::BTreeMap;
use std::fmt;

use apus_units::{Bytes, ClassId, PortId, Span, Time};

/// Measurements in addition to those of the whole run.
#[derive(Clone, Debug, Default)]
pub struct Measures {
    /// Workloads with a name; connections name them by index.
    pub workloads: Vec<NamedWorkload>,
    /// Ranges of op sizes, for which each named workload has separate slowdowns.
    pub sizes: Vec<SizeRange>,
    /// Length of the time windows of measurements at groups of ports; `None` without groups.
    pub window: Option<Span>,
    /// Time between samples of the queues of groups; `None` without samples.
    pub queue_interval: Option<Span>,
    /// Groups of ports.
    pub groups: Vec<PortGroup>,
    /// Names of the traffic classes, by number; none if there is only one.
    pub classes: Vec<String>,
    /// Classes whose loss is compared.
    pub comparisons: Vec<Comparison>,
    /// Quantities over time.
    pub series: Vec<SeriesPlan>,
}

/// A workload that is measured individually.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedWorkload {
    /// Its name, part of the names of its metrics.
    pub name: String,
    /// Latency above which an op is late.
    pub deadline: Option<Span>,
}

/// Sizes of ops, in payload bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeRange {
    /// Lower end, inclusive.
    pub from: Bytes,
    /// Exclusive upper end; `None` for no limit.
    pub to: Option<Bytes>,
}

impl fmt::Display for SizeRange {
    /// Returns the range as a scenario writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..", self.from)?;
        self.to.map_or(Ok(()), |to| to.fmt(f))
    }
}

impl SizeRange {
    /// Returns `true` if an op of `size` bytes belongs to the range.
    #[must_use]
    pub fn holds(&self, size: u64) -> bool {
        self.from.get() <= size && self.to.is_none_or(|to| size < to.get())
    }
}

/// Ports that are measured together.
#[derive(Clone, Debug)]
pub struct PortGroup {
    /// Its name, part of the names of its metrics.
    pub name: String,
    /// Its ports.
    pub ports: Vec<PortId>,
}

/// Two classes whose loss at a group of ports is compared bucket by bucket.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Its name, part of the names of its metrics.
    pub name: String,
    /// Index of the group.
    pub group: usize,
    /// Class whose loss is the dividend.
    pub class: ClassId,
    /// Class whose loss is the divisor.
    pub with: ClassId,
    /// Minimum loss of `with` in a bucket; buckets with a smaller loss are not compared.
    pub floor: f64,
    /// Criterion by which windows are sorted into buckets.
    pub by: Sorting,
}

/// Criterion by which windows are sorted into buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sorting {
    /// The utilisation of the port, all classes together.
    Port,
    /// Each class's own utilisation of the link.
    Class,
    /// None: all windows are in one bucket.
    Together,
}

impl Sorting {
    /// Names in scenarios.
    pub const WORDS: [(&str, Self); 3] =
        [("port", Self::Port), ("class", Self::Class), ("nothing", Self::Together)];
}

/// A quantity that is measured per interval.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesPlan {
    /// Its name, part of the names of its metrics.
    pub name: String,
    /// Subject of the quantity.
    pub of: Subject,
    /// The quantity itself.
    pub quantity: Quantity,
    /// Length of an interval.
    pub interval: Span,
    /// Result of the series.
    pub question: Question,
}

/// Subject of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A group of ports, index into [`Measures::groups`](Measures::groups).
    Ports(usize),
    /// A named workload, index into [`Measures::workloads`](Measures::workloads).
    Workload(u32),
    /// A connection, by its number.
    Flow(u32),
}

/// Quantity of each interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Wire bytes that all ports of a group sent, Gb/s.
    Throughput,
    /// Mean occupancy over the interval, for the port of the group with the largest one, as the time that the
    /// link takes for these bytes, in microseconds.
    Queue,
    /// Mean occupancy of the same port in wire bytes.
    QueueBytes,
    /// Payload bytes delivered once, Gb/s.
    Goodput,
    /// Goodput over that of all connections together.
    Share,
}

impl Quantity {
    /// All quantities, by their names in scenarios.
    pub const ALL: [(&'static str, Self); 5] = [
        ("throughput", Self::Throughput),
        ("queue", Self::Queue),
        ("queue_bytes", Self::QueueBytes),
        ("goodput", Self::Goodput),
        ("share", Self::Share),
    ];

    /// Returns the name in metrics, which states the unit, and the definition.
    const fn declared(self) -> (&'static str, &'static str) {
        match self {
            Self::Throughput => ("throughput_gbps", "wire bytes sent per time by a group of ports"),
            Self::Queue => (
                "queue_us",
                "mean `queue_us` over an interval, at the group's port with the largest mean",
            ),
            Self::QueueBytes => (
                "queue_bytes",
                "mean `queue_bytes` over an interval, at the group's port with the largest mean",
            ),
            Self::Goodput => {
                ("goodput_gbps", "payload bytes delivered once per time, of a workload or a flow")
            }
            Self::Share => ("share", "goodput of a workload or a flow / goodput of all flows"),
        }
    }

    /// Returns the name in metrics, which states the unit.
    #[must_use]
    pub const fn metric(self) -> &'static str {
        self.declared().0
    }
}

/// Values of a quantity in a span of time, by the name of the quantity.
impl Declared for BTreeMap<&'static str, DistributionSummary> {
    fn declare(to: &mut Columns) {
        for (_, quantity) in Quantity::ALL {
            let (name, definition) = quantity.declared();
            let kind = if quantity == Quantity::Share { Kind::Fraction } else { Kind::Number };
            let over = "over the whole intervals between `from` and `to`; all numbers are exact";
            to.push(kind, &format!("{name}.<stat>"), definition, over);
        }
    }
}

/// Result of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Question {
    /// Time from which the quantity stays beyond a threshold.
    Settle {
        /// Start of the search.
        after: Moment,
        /// Minimum time beyond the threshold.
        hold: Span,
        /// Threshold in the unit of the quantity.
        threshold: Threshold,
    },
    /// Value between two times.
    Span {
        /// Start of the span.
        from: Moment,
        /// End of the span.
        to: Moment,
    },
}

/// A time of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A given time.
    At(Time),
    /// Time at which an op of a workload ends at its sender; known when the run is over.
    End {
        /// Index into [`Measures::workloads`](Measures::workloads).
        workload: u32,
        /// The op of the workload.
        op: Which,
        /// Time by which the measurement ends earlier. If the last packet at a port counts, that is the time
        /// of the acknowledgement.
        lead: Span,
    },
}

impl Moment {
    /// Returns the time if it is given.
    #[must_use]
    pub const fn set(self) -> Option<Time> {
        match self {
            Self::At(time) => Some(time),
            Self::End { .. } => None,
        }
    }
}

/// One of the ops of a workload that end within a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The op that ends first.
    First,
    /// The op that ends last.
    Last,
}

/// Side of a threshold. The threshold itself belongs to both sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// At least this value.
    Above(f64),
    /// At most this value.
    Below(f64),
}
