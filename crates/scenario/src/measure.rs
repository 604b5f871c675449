//! `[measure]`: measurements in addition to those of the whole run.

use apus_units::{Bytes, Span};

use super::declared::{Keys, Kind, key};
use super::measure_ports::{self, Ports};
use super::measure_ports::{COMPARE, PORTS};
use super::parts::Parts;
use super::section::{Section, Setting, list_of};
use super::series::{self, Subjects};
use super::series::{SETTLE, SPAN};
use super::tree::Value;
use apus_sim::measure::{SeriesPlan, SizeRange};

/// Keys of `measure`.
pub(super) static MEASURE: Keys = Keys::of(&[
    key(
        "interval",
        Kind::Time,
        "Length of the intervals in which the rate of each connection is compared with its max-min fair share",
    )
    .at_least(1),
    key(
        "fair_share_after",
        Kind::Time,
        "Time after each start or stop of a connection during which rates are not compared",
    ),
    key(
        "sizes",
        Kind::Texts,
        "Ranges of op sizes, such as [\"0B..10kB\", \"10kB..\"], for which each named workload reports latency and slowdown. The upper end of a range is excluded; ranges must not overlap",
    ),
    key(
        "ports",
        Kind::Table(&PORTS),
        "Groups of switch ports by name, such as `edge = [\"leaf * -> host *\"]`; `*` stands for any text. The results of each group are throughput, utilisation, loss and queues, and the loss of each class in time windows sorted by utilisation",
    ),
    key("window", Kind::Time, "Length of the time windows in which the classes of ports are measured")
        .at_least(1)
        .or("1ms"),
    key("queue_interval", Kind::Time, "Time between two samples of the queues of ports")
        .at_least(1)
        .or("10us"),
    key(
        "compare",
        Kind::Tables(&COMPARE),
        "The loss of one class divided by that of another: the largest ratio over the buckets of utilisation",
    ),
    key(
        "settle",
        Kind::Tables(&SETTLE),
        "Time until a quantity stays above or below a threshold. The whole run counts, including the warm-up",
    ),
    key("span", Kind::Tables(&SPAN), "Value of a quantity between two times"),
]);

/// The measurements of a scenario.
#[derive(Clone, Debug, Default)]
pub(super) struct Measure {
    pub(super) fair_share: Option<FairShare>,
    pub(super) sizes: Vec<SizeRange>,
    /// Groups of ports, if there are any.
    pub(super) ports: Option<Ports>,
    /// Quantities over time.
    pub(super) series: Vec<SeriesPlan>,
}

/// Comparison of rates over intervals with the fair share.
#[derive(Clone, Copy, Debug)]
pub(super) struct FairShare {
    pub(super) interval: Span,
    pub(super) after: Span,
}

/// Maximum number of ranges of sizes.
const MAX_SIZES: usize = 32;

/// Reads `[measure]`.
pub(super) fn read(root: &Section<'_>, parts: &Parts<'_>) -> Option<Measure> {
    let Some(section) = root.section("measure") else {
        return Some(Measure::default());
    };
    let fair_share = read_fair_share(&section, parts);
    let sizes = read_sizes(&section);
    let ports = measure_ports::read(&section, parts);
    let series = ports.as_ref().and_then(|ports| {
        let groups = ports.iter().flat_map(|ports| &ports.groups);
        let subjects = Subjects {
            groups: groups.map(|group| group.name.as_str()).collect(),
            workloads: parts.named.iter().map(String::as_str).collect(),
            flows: parts.flows,
            duration: parts.duration,
        };
        series::read(&section, &subjects)
    });
    if parts.named.is_empty() {
        section.no_effect("sizes", "without a workload that has a `name`");
    }
    let keys = section.keys().count();
    section.check(keys > 0, "interval", "and all others are missing; remove `[measure]`");
    section.finish();
    Some(Measure { fair_share: fair_share?, sizes: sizes?, ports: ports?, series: series? })
}

/// Reads the comparison; the outer `None` means that an error was reported.
fn read_fair_share(section: &Section<'_>, parts: &Parts<'_>) -> Option<Option<FairShare>> {
    if section.node("interval").is_none() && section.node("fair_share_after").is_none() {
        return Some(None);
    }
    let interval: Option<Span> = section.require("interval");
    let after = section.require("fair_share_after");
    if let Some(interval) = interval {
        let measured = parts.duration.saturating_sub(parts.warmup);
        let message = format_args!("is {interval}, but only {measured} are measured");
        section.check(interval <= measured, "interval", message);
    }
    Some(Some(FairShare { interval: interval?, after: after? }))
}

fn read_sizes(section: &Section<'_>) -> Option<Vec<SizeRange>> {
    let Some(node) = section.node("sizes") else { return Some(Vec::new()) };
    let Value::List(list) = &node.value else {
        section.problem("sizes", "must be a list of ranges, like [\"0B..10kB\", \"10kB..\"]");
        return None;
    };
    let holds = (1..=MAX_SIZES).contains(&list.len());
    section.check(holds, "sizes", format_args!("must have 1 to {MAX_SIZES} ranges"));
    let sizes: Option<Vec<SizeRange>> =
        list.iter().map(|node| section.read_node("sizes", node)).collect();
    let sizes = sizes?;
    for (index, range) in sizes.iter().enumerate() {
        if let Some(other) = sizes[..index].iter().find(|other| overlap(other, range)) {
            let remedy = apart(other, range);
            section.problem("sizes", format!("counts ops twice in {other} and {range}; {remedy}"));
        }
    }
    section.record("sizes", list_of(&sizes));
    Some(sizes)
}

/// Returns `true` if an op may belong to both ranges.
fn overlap(a: &SizeRange, b: &SizeRange) -> bool {
    let begins_within = |a: &SizeRange, b: &SizeRange| b.holds(a.from.get());
    begins_within(a, b) || begins_within(b, a)
}

/// Describes the change that ends the overlap of two ranges.
fn apart(a: &SizeRange, b: &SizeRange) -> String {
    let (first, second) = if a.from <= b.from { (a, b) } else { (b, a) };
    if first.from < second.from {
        return format!("end {first} at {}", second.from);
    }
    match (first.to, second.to) {
        (Some(end), other) if other.is_none_or(|other| end < other) => {
            format!("begin {second} at {end}")
        }
        (other, Some(end)) if other != Some(end) => format!("begin {first} at {end}"),
        _ => "remove one".to_owned(),
    }
}

impl Setting for SizeRange {
    const KIND: &'static str = "a range of sizes like \"1kB..100kB\" or \"100kB..\"";

    fn read(value: &Value) -> Result<Self, Option<String>> {
        let Value::Text(text) = value else { return Err(None) };
        let Some((from, to)) = text.split_once("..") else { return Err(None) };
        let size = |text: &str| {
            text.trim().parse::<Bytes>().map_err(|error| Some(format!("\"{text}\": {error}")))
        };
        let range = Self {
            from: size(from)?,
            to: if to.trim().is_empty() { None } else { Some(size(to)?) },
        };
        if range.to.is_some_and(|to| to <= range.from) {
            return Err(Some(format!("{text} holds no size; its end is not part of it")));
        }
        Ok(range)
    }

    fn value(&self) -> Value {
        Value::Text(self.to_string())
    }
}
