//! `[measure.ports]` and `[[measure.compare]]`: groups of ports, and comparisons of classes at these ports.

use crate::set::Topology;
use apus_fabric::Node;
use apus_units::{ClassId, PortId, Span};

use super::declared::{Keys, Kind, key, words_of};
use super::label::{PART_RULE, is_part_name};
use super::parts::Parts;
use super::pattern::matches_pattern;
use super::section::Section;
use super::tree::{Node as Entry, Value};
use apus_sim::measure::{Comparison, PortGroup, Sorting};

/// Keys of `ports`.
pub(super) static PORTS: Keys = Keys::named(Kind::Texts);

/// Keys of `compare`.
pub(super) static COMPARE: Keys = Keys::of(&[
    key("name", Kind::Text, "Name of the comparison"),
    key("ports", Kind::Text, "A group of `[measure.ports]`"),
    key("class", Kind::Text, "Class whose loss is divided by that of `with`"),
    key("with", Kind::Text, "Class whose loss is the divisor"),
    key("floor", Kind::Number, "Only buckets in which `with` loses at least this share of its packets are compared").above_0_to(1.0).or("1e-4"),
    key("by", Kind::Word(&words_of(&Sorting::WORDS)), "What sorts the time windows into buckets: the utilisation of the port (\"port\") or of the class (\"class\"). \"nothing\": all time windows are in one bucket").or(Sorting::WORDS[0].0),
]);

// Rationale of defaults: at 50 Gb/s a window has about 1500 packets, and 15 packets pass between two samples.

/// Measurements of ports.
#[derive(Clone, Debug)]
pub(super) struct Ports {
    pub(super) window: Span,
    /// Time between samples of the queues.
    pub(super) queue_interval: Span,
    pub(super) groups: Vec<PortGroup>,
    pub(super) comparisons: Vec<Comparison>,
}

/// Reads both tables. The outer `None` means that an error was reported.
pub(super) fn read(section: &Section<'_>, parts: &Parts<'_>) -> Option<Option<Ports>> {
    let Some(Entry { value: Value::Table(table), .. }) = section.node("ports") else {
        let well = section.section("ports").is_none() && section.node("ports").is_none();
        for key in ["window", "queue_interval", "compare"] {
            section.no_effect(key, "without `[measure.ports]`");
        }
        return well.then_some(None);
    };
    let window = section.get_or_default::<Span>("window");
    let measured = parts.duration.saturating_sub(parts.warmup);
    let message = format_args!("is {window}, but only {measured} are measured");
    section.check(window <= measured, "window", message);
    let queue_interval = section.get_or_default::<Span>("queue_interval");
    section.record("ports", Value::Table(table.clone()));
    let names = switch_ports(parts.topology?);
    let mut groups = Vec::new();
    for (name, entry) in &table.entries {
        groups.push(read_group(section, name, &entry.node, &names)?);
    }
    section.check(!groups.is_empty(), "ports", "is empty; add `edge = [\"leaf * -> host *\"]`");
    let classes: Vec<String> = parts.classes.iter().map(|class| class.name.clone()).collect();
    for class in &classes {
        let message = format_args!(
            "measures the class `{class}`, whose name must then be {PART_RULE}; rename it"
        );
        section.check(is_part_name(class), "ports", message);
    }
    let mut comparisons: Vec<Comparison> = Vec::new();
    for table in section.sections("compare") {
        let one = read_comparison(&table, &groups, &classes);
        table.finish();
        let one = one?;
        let twice = comparisons.iter().any(|other| other.name == one.name);
        section.check(!twice, "compare", format_args!("has two named `{}`", one.name));
        comparisons.push(one);
    }
    Some(Some(Ports { window, queue_interval, groups, comparisons }))
}

/// Returns every egress port of a switch, with its name.
fn switch_ports(topology: &Topology) -> Vec<(PortId, String)> {
    let mut ports = Vec::new();
    for (index, link) in (0u32..).zip(&topology.links) {
        for (side, from, to) in [(0, link.a, link.b), (1, link.b, link.a)] {
            if matches!(from, Node::Switch(_)) {
                let name = format!("{} -> {}", topology.node_name(from), topology.node_name(to));
                ports.push((PortId::new(2 * index + side), name));
            }
        }
    }
    ports
}

fn read_group(
    section: &Section<'_>,
    name: &str,
    node: &Entry,
    names: &[(PortId, String)],
) -> Option<PortGroup> {
    let key = format!("ports.{name}");
    let problem = |message: String| section.problem("ports", message);
    if !is_part_name(name) {
        problem(format!("has a group `{name}`, whose name must be {PART_RULE}"));
    }
    let list = match &node.value {
        Value::List(list) if !list.is_empty() => list.as_slice(),
        other => {
            let other = other.describe();
            problem(format!(
                "`{name}` must be a list of names of ports, like [\"leaf * -> host *\"], not {other}"
            ));
            return None;
        }
    };
    let mut ports = Vec::new();
    for node in list {
        let pattern: String = section.read_node(&key, node)?;
        let found = names.iter().filter(|(_, name)| matches_pattern(name, &pattern));
        let before = ports.len();
        ports.extend(found.map(|(port, _)| *port));
        if ports.len() == before {
            let known = names.iter().map(|(_, name)| name.as_str());
            let hint = apus_units::suggestion(&pattern, known);
            problem(format!("`{name}` names no port of a switch by \"{pattern}\"{hint}"));
        }
    }
    ports.sort_unstable();
    ports.dedup();
    Some(PortGroup { name: name.to_owned(), ports })
}

fn read_comparison(
    table: &Section<'_>,
    groups: &[PortGroup],
    classes: &[String],
) -> Option<Comparison> {
    let name: String = table.require("name")?;
    table.check(is_part_name(&name), "name", format_args!("must be {PART_RULE}"));
    let group: String = table.require("ports")?;
    let known = || groups.iter().map(|known| known.name.as_str());
    let found = known().position(|known| known == group);
    let hint = || apus_units::suggestion(&group, known());
    table.check(found.is_some(), "ports", format_args!("names no group of ports{}", hint()));
    let class = |key| {
        let name: String = table.require(key)?;
        let found = classes.iter().position(|known| *known == name);
        let hint = || apus_units::suggestion(&name, classes.iter().map(String::as_str));
        table.check(found.is_some(), key, format_args!("names no class{}", hint()));
        // At most 8 classes.
        found.map(|index| ClassId::new(index as u8))
    };
    let (class, with) = (class("class"), class("with"));
    let floor = table.get_or_default("floor");
    let by = table.meaning("by", &Sorting::WORDS)?;
    let (class, with) = (class?, with?);
    table.check(class != with, "with", "is the same class; name another");
    Some(Comparison { name, group: found?, class, with, floor, by })
}
