//! Groups of ports: traffic and losses of their classes per time window.

use crate::columns::{gbps, summary};
use std::collections::BTreeMap;

use apus_fabric::{ClassCounters, Count};
use apus_units::{ClassId, PortId, Rate, Span, Time};
use serde::Serialize;

use super::buckets::{
    BUCKETS, ComparisonSummary, LossSummary, Losses, bucket_of, by_bucket, compare,
};
use super::groups::GroupTotals;
use super::plan::{Comparison, Measures, PortGroup, Sorting};

/// Time windows of the measured phase at all groups of ports.
#[derive(Debug)]
pub(crate) struct PortWindows {
    window: Span,
    next: Time,
    classes: Vec<String>,
    groups: Vec<Group>,
    comparisons: Vec<Comparison>,
}

#[derive(Debug)]
struct Group {
    name: String,
    ports: Vec<Port>,
    tallies: Vec<Tally>,
}

/// A port and the counters of its classes at the start of the window.
#[derive(Debug)]
struct Port {
    id: PortId,
    rate: Rate,
    before: Vec<ClassCounters>,
}

/// Counters of one class at the ports of a group.
#[derive(Debug, Default)]
struct Tally {
    sent_bytes: u64,
    all: Losses,
    by_port: [Losses; BUCKETS],
    by_class: [Losses; BUCKETS],
}

impl PortWindows {
    /// Returns windows from the end of the warm-up onwards; `None` without groups of ports. `rate` and
    /// `counters` return the rate and the counters of a port.
    pub(crate) fn new(
        measures: &Measures,
        now: Time,
        rate: impl Fn(PortId) -> Rate,
        counters: impl Fn(PortId, ClassId) -> ClassCounters,
    ) -> Option<Self> {
        let window = measures.window?;
        let classes = measures.classes.len();
        let port = |&id: &PortId| Port {
            id,
            rate: rate(id),
            before: class_ids(classes).map(|class| counters(id, class)).collect(),
        };
        let group = |group: &PortGroup| Group {
            name: group.name.clone(),
            ports: group.ports.iter().map(port).collect(),
            tallies: class_ids(classes).map(|_| Tally::default()).collect(),
        };
        Some(Self {
            window,
            next: now.saturating_add(window),
            classes: measures.classes.clone(),
            groups: measures.groups.iter().map(group).collect(),
            comparisons: measures.comparisons.clone(),
        })
    }

    /// Returns the end of the window.
    pub(crate) fn next(&self) -> Time {
        self.next
    }

    /// Ends the last window before its time.
    pub(crate) fn end(&mut self) {
        self.next = Time::MAX;
    }

    /// Ends a window.
    pub(crate) fn sample(&mut self, counters: impl Fn(PortId, ClassId) -> ClassCounters) {
        self.next = self.next.saturating_add(self.window);
        let seconds = self.window.as_secs_f64();
        for group in &mut self.groups {
            for port in &mut group.ports {
                let now = class_ids(port.before.len()).map(|class| counters(port.id, class));
                let now: Vec<ClassCounters> = now.collect();
                let capacity = port.rate.as_bps() as f64 * seconds / 8.0;
                let sent = |class: usize| now[class].sent.bytes - port.before[class].sent.bytes;
                let all: u64 = (0..now.len()).map(sent).sum();
                let bucket = bucket_of(all as f64 / capacity);
                for (class, tally) in group.tallies.iter_mut().enumerate() {
                    let offered = minus(now[class].offered, port.before[class].offered);
                    let dropped = minus(now[class].dropped, port.before[class].dropped);
                    let own = bucket_of(sent(class) as f64 / capacity);
                    tally.sent_bytes += sent(class);
                    tally.all.add(offered, dropped);
                    tally.by_port[bucket].add(offered, dropped);
                    tally.by_class[own].add(offered, dropped);
                }
                port.before = now;
            }
        }
    }

    /// Returns the groups by name, over the windows of the measured phase; `totals` has the totals
    /// of each group.
    pub(crate) fn summarize(
        &self,
        measured: Span,
        totals: Vec<GroupTotals>,
    ) -> BTreeMap<String, PortGroupSummary> {
        let windows = measured.as_ps() / self.window.as_ps().max(1);
        let seconds = self.window.as_secs_f64() * windows as f64;
        let group = |(group, totals): (&Group, GroupTotals)| {
            let classes = self.classes.iter().zip(&group.tallies);
            let class = |(name, tally): (&String, &Tally)| (name.clone(), tally.summary(seconds));
            let class = classes.map(class).collect();
            (group.name.clone(), PortGroupSummary { totals, class })
        };
        self.groups.iter().zip(totals).map(group).collect()
    }

    /// Returns the comparisons by name.
    pub(crate) fn compare(&self) -> BTreeMap<String, ComparisonSummary> {
        let one = |comparison: &Comparison| {
            let tallies = &self.groups[comparison.group].tallies;
            let losses = |class: ClassId| {
                let tally = &tallies[class.index()];
                match comparison.by {
                    Sorting::Port => tally.by_port.iter(),
                    Sorting::Class => tally.by_class.iter(),
                    Sorting::Together => std::slice::from_ref(&tally.all).iter(),
                }
            };
            let (own, others) = (losses(comparison.class), losses(comparison.with));
            (comparison.name.clone(), compare(own, others, comparison.floor))
        };
        self.comparisons.iter().map(one).collect()
    }
}

impl Tally {
    fn summary(&self, seconds: f64) -> ClassSummary {
        let LossSummary { windows, loss_rate, loss_rate_p99_9 } = self.all.summary();
        ClassSummary {
            throughput_gbps: gbps(self.sent_bytes, seconds),
            windows,
            loss_rate,
            loss_rate_p99_9,
            by_port: by_bucket(&self.by_port, Losses::summary),
            by_class: by_bucket(&self.by_class, Losses::summary),
        }
    }
}

summary! {
    /// Results of a group of ports.
    #[derive(Clone, Debug, Serialize)]
    pub struct PortGroupSummary {
        /// All classes together, over the measured phase.
        #[serde(flatten)]
        pub totals: GroupTotals = flat(),
        /// Traffic classes by name, over whole windows of the measured phase.
        pub class: BTreeMap<String, ClassSummary> = parts("<class>"),
    }
}

summary! {
    /// Results of a traffic class at a group of ports. Buckets are named by their lower ends.
    #[derive(Clone, Debug, Serialize)]
    pub struct ClassSummary {
        /// wire bytes of the class that the group's ports sent in the whole time windows of the measured phase * 8 /
        /// total length of these windows
        pub throughput_gbps: f64 = number("sum over ports"),
        /// time windows, counted per port, in which the class was offered a packet
        pub windows: u64 = number("all ports, measured phase"),
        /// packets of the class dropped / packets of the class sent into the ports' queues
        pub loss_rate: Option<f64> = fraction("all ports and windows"),
        /// 99.9th percentile (nearest rank) of `loss_rate` over single time windows of single ports; with up to 1000
        /// windows, the largest value
        pub loss_rate_p99_9: Option<f64> = fraction("over windows"),
        /// By the port's utilisation in the window, all classes together.
        pub by_port: BTreeMap<String, LossSummary> = parts("<bucket>"),
        /// By the class's own utilisation of the link in the window.
        pub by_class: BTreeMap<String, LossSummary> = parts("<bucket>"),
    }
}

fn class_ids(count: usize) -> impl Iterator<Item = ClassId> {
    // At most 8 classes.
    (0..count).map(|class| ClassId::new(class as u8))
}

/// Returns the difference `a` - `b` of two counts.
pub(crate) fn minus(a: Count, b: Count) -> Count {
    Count { packets: a.packets - b.packets, bytes: a.bytes - b.bytes }
}
