//! What to measure of a run besides the whole.

use crate::columns::{Columns, Declared, Kind};
use crate::distribution::DistributionSummary;
use std::collections::BTreeMap;
use std::fmt;

use apus_units::{Bytes, ClassId, PortId, Span, Time};

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
    /// The class whose loss is divided.
    pub class: ClassId,
    /// The class by whose loss it is divided.
    pub with: ClassId,
    /// Buckets in which `with` loses less than this are left out.
    pub floor: f64,
    /// What sorts windows into buckets.
    pub by: Sorting,
}

/// What sorts windows into buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sorting {
    /// The utilisation of the port, all classes together.
    Port,
    /// Each class's own utilisation of the link.
    Class,
    /// Nothing: all windows are in one bucket.
    Together,
}

impl Sorting {
    /// As scenarios name them.
    pub const WORDS: [(&str, Self); 3] =
        [("port", Self::Port), ("class", Self::Class), ("nothing", Self::Together)];
}

/// A quantity that is looked at interval by interval.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesPlan {
    /// Its name, part of the names of its metrics.
    pub name: String,
    /// Of what.
    pub of: Subject,
    /// What.
    pub quantity: Quantity,
    /// Length of an interval.
    pub interval: Span,
    /// What is asked of it.
    pub question: Question,
}

/// What a series is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A group of ports, index into [`Measures::groups`](Measures::groups).
    Ports(usize),
    /// A named workload, index into [`Measures::workloads`](Measures::workloads).
    Workload(u32),
    /// A connection, by its number.
    Flow(u32),
}

/// What is looked at in each interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Wire bytes that the ports of a group sent, all together, Gb/s.
    Throughput,
    /// Mean occupancy over the interval as the time that the link takes for it, of the group's port
    /// that has most, microseconds.
    Queue,
    /// The same in wire bytes.
    QueueBytes,
    /// Payload bytes delivered once, Gb/s.
    Goodput,
    /// Goodput over that of all connections together.
    Share,
}

impl Quantity {
    /// All, by the words of scenarios.
    pub const ALL: [(&'static str, Self); 5] = [
        ("throughput", Self::Throughput),
        ("queue", Self::Queue),
        ("queue_bytes", Self::QueueBytes),
        ("goodput", Self::Goodput),
        ("share", Self::Share),
    ];

    /// Returns the name in metrics, which states the unit, and the definition there.
    const fn declared(self) -> (&'static str, &'static str) {
        match self {
            Self::Throughput => ("throughput_gbps", "wire bytes sent per time by a group of ports"),
            Self::Queue => {
                ("queue_us", "mean `queue_us` over an interval, of the group's port that has most")
            }
            Self::QueueBytes => (
                "queue_bytes",
                "mean `queue_bytes` over an interval, of the group's port that has most",
            ),
            Self::Goodput => {
                ("goodput_gbps", "payload bytes delivered once per time, of a workload or a flow")
            }
            Self::Share => ("share", "goodput of a workload or a flow over that of all flows"),
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
            let over = "over the intervals between `from` and `to`; exact";
            to.push(kind, &format!("{name}.<stat>"), definition, over);
        }
    }
}

/// What is asked of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Question {
    /// From when on it stays beyond a threshold.
    Settle {
        /// Looked at from here on.
        after: Moment,
        /// For at least this long.
        hold: Span,
        /// The threshold in the unit of the quantity.
        threshold: Threshold,
    },
    /// What it is between two times.
    Span {
        /// From here on.
        from: Moment,
        /// Until here.
        to: Moment,
    },
}

/// A time of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A set time.
    At(Time),
    /// When an op of a workload is done, as its sender learns; known once the run is over.
    End {
        /// Index into [`Measures::workloads`](Measures::workloads).
        workload: u32,
        /// Which of its ops.
        op: Which,
        /// So long before it: what the acknowledgement needs, if the last packet at a port counts.
        lead: Span,
    },
}

impl Moment {
    /// The time, if it is set.
    #[must_use]
    pub const fn set(self) -> Option<Time> {
        match self {
            Self::At(time) => Some(time),
            Self::End { .. } => None,
        }
    }
}

/// One of the ops of a workload that are done within a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The one that is done first.
    First,
    /// The one that is done last.
    Last,
}

/// Where a quantity shall be; the threshold itself is on both sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// At least this.
    Above(f64),
    /// At most this.
    Below(f64),
}
