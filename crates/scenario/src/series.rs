//! `[[measure.settle]]` and `[[measure.span]]`: quantities over time.

use apus_units::{Bytes, Rate, Span, Time};

use super::declared::{Key, Keys, Kind, key, words_of};
use super::label::{PART_RULE, is_part_name};
use super::moment::LEAD;
use super::moment::Moments;
use super::section::Section;
use super::tree::Value;
use apus_sim::measure::{Moment, Quantity, Question, SeriesPlan, Subject, Threshold};

pub(super) const SERIES_NAME: Key = key("name", Kind::Text, "Name of the measurement");

pub(super) const SERIES_OF: Key =
    key("of", Kind::Table(&SUBJECT), "What is measured: a group of ports, a workload or a flow");

pub(super) const QUANTITY: Key = key(
    "quantity",
    Kind::Word(&words_of(&Quantity::ALL)),
    "For ports: \"throughput\" of all ports of the group together, or \"queue\" (as a time) or \"queue_bytes\" of the port with the longest queue. For workloads and flows: \"goodput\", or its \"share\" of the goodput of all flows",
);

pub(super) const INTERVAL: Key =
    key("interval", Kind::Time, "Length of the intervals over which the quantity is averaged")
        .at_least(1);

/// Keys of `settle`.
pub(super) static SETTLE: Keys = Keys::of(&[
    SERIES_NAME,
    SERIES_OF,
    QUANTITY,
    INTERVAL,
    key("after", Kind::Moment, "Start of the search").or("0s"),
    key("above", Kind::Threshold, "The quantity must be at least this"),
    key("below", Kind::Threshold, "The quantity must be at most this"),
    key(
        "hold",
        Kind::Time,
        "Minimum time for which the quantity must stay above or below the threshold",
    ),
    LEAD,
]);

/// Keys of `span`.
pub(super) static SPAN: Keys = Keys::of(&[
    SERIES_NAME,
    SERIES_OF,
    QUANTITY,
    INTERVAL,
    key("from", Kind::Moment, "Start of the span").or("0s"),
    key("to", Kind::Moment, "End of the span. Default: the end of the run"),
    LEAD,
]);

/// Keys of `subject`.
pub(super) static SUBJECT: Keys = Keys::of(&[
    key("ports", Kind::Text, "A group of `[measure.ports]`"),
    key("workload", Kind::Text, "A workload with a `name`"),
    key("flow", Kind::Count, "A flow by its number"),
]);

/// The subjects to which a series can belong.
pub(super) struct Subjects<'a> {
    /// Groups of ports and named workloads, in order.
    pub(super) groups: Vec<&'a str>,
    pub(super) workloads: Vec<&'a str>,
    /// Maximum number of connections.
    pub(super) flows: u64,
    pub(super) duration: Span,
}

/// Reads the series. `None` means that an error was reported.
pub(super) fn read(section: &Section<'_>, subjects: &Subjects<'_>) -> Option<Vec<SeriesPlan>> {
    let mut all = Vec::new();
    for (key, settles) in [("settle", true), ("span", false)] {
        let start = all.len();
        for table in section.sections(key) {
            let one = read_one(&table, subjects, settles);
            table.finish();
            let one = one?;
            let twice = all[start..].iter().any(|other: &SeriesPlan| other.name == one.name);
            section.check(!twice, key, format_args!("has two named `{}`; rename one", one.name));
            all.push(one);
        }
    }
    Some(all)
}

fn read_one(table: &Section<'_>, subjects: &Subjects<'_>, settles: bool) -> Option<SeriesPlan> {
    let name: Option<String> = table.require("name");
    if let Some(name) = &name {
        table.check(is_part_name(name), "name", format_args!("must be {PART_RULE}"));
    }
    let of = read_subject(table, subjects);
    let quantity = of.and_then(|of| read_quantity(table, of));
    let interval: Option<Span> = table.require("interval");
    let question = if settles {
        read_settle(table, quantity, interval, subjects)
    } else {
        read_span(table, interval, subjects)
    };
    let (of, quantity, interval) = (of?, quantity?, interval?);
    Some(SeriesPlan { name: name?, of, quantity, interval, question: question? })
}

const SUBJECTS: &str = "{ ports = \"GROUP\" }, { workload = \"NAME\" } or { flow = 0 }";

fn read_subject(table: &Section<'_>, subjects: &Subjects<'_>) -> Option<Subject> {
    if table.node("of").is_none() {
        table.missing("of", SUBJECTS);
        return None;
    }
    let of = table.section("of")?;
    let find = |key, known: &[&str], what: &str| -> Option<usize> {
        let name: String = of.get(key)?;
        let found = known.iter().position(|known| *known == name);
        let hint = apus_units::suggestion(&name, known.iter().copied());
        of.check(found.is_some(), key, format_args!("names no {what}{hint}"));
        found
    };
    let keys: Vec<&str> = of.keys().collect();
    let found = match keys[..] {
        ["ports"] => {
            find("ports", &subjects.groups, "group of `[measure.ports]`").map(Subject::Ports)
        }
        ["workload"] => find("workload", &subjects.workloads, "workload with a `name`")
            .map(|index| Subject::Workload(index as u32)),
        ["flow"] => {
            let flow: u32 = of.get("flow")?;
            let message = format_args!("is {flow}, but there are at most {}", subjects.flows);
            of.check(u64::from(flow) < subjects.flows, "flow", message);
            Some(Subject::Flow(flow))
        }
        _ => {
            table.problem("of", format_args!("must be one of {SUBJECTS}"));
            return None;
        }
    };
    of.finish();
    found
}

fn read_quantity(table: &Section<'_>, of: Subject) -> Option<Quantity> {
    let of_ports = matches!(of, Subject::Ports(_));
    let words: &[&'static str] =
        if of_ports { &["throughput", "queue", "queue_bytes"] } else { &["goodput", "share"] };
    if table.node("quantity").is_none() {
        table.missing("quantity", &format!("one of {}", words.join(", ")));
        return None;
    }
    let word = table.one_of("quantity", words)?;
    Quantity::ALL.iter().find(|(name, _)| *name == word).map(|(_, quantity)| *quantity)
}

fn read_settle(
    table: &Section<'_>,
    quantity: Option<Quantity>,
    interval: Option<Span>,
    subjects: &Subjects<'_>,
) -> Option<Question> {
    let moments = Moments::new(table, &subjects.workloads, &["after"]);
    let after = moments.read("after", Span::ZERO);
    let hold: Option<Span> = table.require("hold");
    if let (Some(hold), Some(interval)) = (hold, interval) {
        let message = format_args!("is {hold}, shorter than an interval, which is {interval}");
        table.check(hold >= interval, "hold", message);
        let after = after.and_then(Moment::set).unwrap_or(Time::ZERO).since(Time::ZERO);
        let duration = subjects.duration;
        let message = format_args!("of {hold} after {after} does not fit into {duration}");
        table.check(after.saturating_add(hold) <= duration, "hold", message);
    }
    let threshold = match (table.node("above"), table.node("below")) {
        (Some(_), None) => Threshold::Above(read_value(table, "above", quantity?)?),
        (None, Some(_)) => Threshold::Below(read_value(table, "below", quantity?)?),
        (None, None) => {
            table.missing("above", "the threshold, in the unit of the quantity; or `below`");
            return None;
        }
        (Some(_), Some(_)) => {
            table.problem("below", "contradicts `above`; remove one");
            return None;
        }
    };
    Some(Question::Settle { after: after?, hold: hold?, threshold })
}

fn read_span(
    table: &Section<'_>,
    interval: Option<Span>,
    subjects: &Subjects<'_>,
) -> Option<Question> {
    let moments = Moments::new(table, &subjects.workloads, &["from", "to"]);
    let duration = subjects.duration;
    let (from, to) = (moments.read("from", Span::ZERO), moments.read("to", duration));
    let (from, to) = (from?, to?);
    if let Some(to) = to.set().map(|to| to.since(Time::ZERO)) {
        table.check(to <= duration, "to", format_args!("is {to}, but the run ends at {duration}"));
        let from = from.set().unwrap_or(Time::ZERO).since(Time::ZERO);
        if let Some(interval) = interval {
            let message = format_args!("is {to}; it must be an interval ({interval}) after {from}");
            table.check(from.saturating_add(interval) <= to, "to", message);
        }
    }
    Some(Question::Span { from, to })
}

/// Reads a threshold in the unit of the quantity's metric.
fn read_value(table: &Section<'_>, key: &'static str, quantity: Quantity) -> Option<f64> {
    match quantity {
        Quantity::Throughput | Quantity::Goodput => Some(table.get::<Rate>(key)?.as_gbps_f64()),
        Quantity::Queue => Some(table.get::<Span>(key)?.as_us_f64()),
        Quantity::QueueBytes => Some(table.get::<Bytes>(key)?.get() as f64),
        Quantity::Share => {
            let share: f64 = table.get(key)?;
            let message = format_args!("is {share}; a share is from 0 to 1");
            table.check((0.0..=1.0).contains(&share), key, message);
            Some(share)
        }
    }
}

/// Returns the names of a scenario's spans, each with the name of its quantity in metrics.
pub(super) fn span_names(list: &[super::tree::Node]) -> Vec<(String, &'static str)> {
    let span = |node: &super::tree::Node| {
        let Value::Table(table) = &node.value else { return None };
        let text = |key| match table.get(key).map(|node| &node.value) {
            Some(Value::Text(text)) => Some(text.as_str()),
            _ => None,
        };
        let quantity = Quantity::ALL.iter().find(|(word, _)| Some(*word) == text("quantity"))?;
        Some((text("name")?.to_owned(), quantity.1.metric()))
    };
    list.iter().filter_map(span).collect()
}
