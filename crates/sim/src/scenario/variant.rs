//! `[[variant]]` and `[sweep]`: the runs of an experiment, and `[[override]]`: what differs from the
//! testbed.

use apus_units::{Bytes, Rate, Span};

use super::section::{Section, Setting};
use super::source::{Place, Problems};
use super::tree::{Node, Table, Value};
use super::{LABEL_RULE, is_label};

/// A setting that differs from the testbed or from the algorithm's own, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The setting.
    pub key: String,
    /// Why.
    pub reason: String,
    /// The variant that it belongs to; all of them if `None`.
    pub variant: Option<String>,
}

/// One run of an experiment as the scenario describes it.
#[derive(Clone, Debug)]
pub(super) struct Variant {
    pub(super) name: String,
    /// The number that checks can compare with, and its unit.
    pub(super) value: Option<(f64, &'static str)>,
    pub(super) settings: Vec<Assignment>,
    /// Whether quick runs have it.
    pub(super) quick: bool,
    pub(super) place: Place,
}

/// One setting by dotted key.
#[derive(Clone, Debug)]
pub(super) struct Assignment {
    pub(super) key: String,
    pub(super) place: Place,
    pub(super) node: Node,
}

/// Which settings need a reason: those of the testbed, of the algorithm and of the host.
pub(super) struct ReasonRule<'a> {
    /// `None`: the scenario has no testbed, and needs no reasons.
    pub(super) testbed: Option<&'a Table>,
}

impl ReasonRule<'_> {
    /// Whether a setting may differ only with a reason.
    pub(super) fn applies(&self, key: &str) -> bool {
        let Some(testbed) = self.testbed else { return false };
        let last = key.rsplit('.').next().unwrap_or(key);
        let parameter = key.starts_with("algorithm.") && last != "name" && last != "profile";
        parameter || key.starts_with("host.") || testbed.at_path(key).is_some()
    }
}

/// Reads `[[override]]` and applies them.
pub(super) fn apply_overrides(
    root: &Section<'_>,
    rule: &ReasonRule<'_>,
    table: &mut Table,
    problems: &Problems,
) -> Vec<Override> {
    let mut overrides = Vec::new();
    for section in root.sections("override") {
        let assignments = read_settings(&section, problems);
        let reason = read_reason(&section, true).unwrap_or_default();
        if rule.testbed.is_none() {
            let message = "`override` has no effect without a `testbed`; set the keys themselves";
            problems.add(section.place(), message);
        }
        for assignment in assignments {
            let key = assignment.key.clone();
            if table.at_path(&key).is_some_and(|old| old.value.same(&assignment.node.value)) {
                let message = format!("`{key}` has this value already; remove it");
                problems.add(assignment.place, message);
            }
            assign(table, &assignment, problems);
            overrides.push(Override { key, reason: reason.clone(), variant: None });
        }
        section.finish();
    }
    overrides
}

/// Puts a setting into the tree.
pub(super) fn assign(table: &mut Table, assignment: &Assignment, problems: &Problems) {
    let Assignment { key, place, node } = assignment;
    let first = key.split('.').next().unwrap_or(key);
    if !super::setup::KEYS.contains(&first) {
        let hint = apus_cc::suggestion(first, super::setup::KEYS.iter().copied());
        problems.add(*place, format!("`{key}` is no setting of a run{hint}"));
    } else if let Err(message) = table.set(key, *place, node.clone()) {
        problems.add(*place, message);
    }
}

/// Reads `[[variant]]` or `[sweep]`; adds to `overrides` what needs a reason.
pub(super) fn read_variants(
    root: &Section<'_>,
    rule: &ReasonRule<'_>,
    overrides: &mut Vec<Override>,
    problems: &Problems,
) -> Vec<Variant> {
    let tables = root.sections("variant");
    let sweep = root.section("sweep");
    if let (Some(sweep), false) = (&sweep, tables.is_empty()) {
        let message = "`sweep` makes the variants itself; remove it or the `[[variant]]` tables";
        problems.add(sweep.place(), message);
    }
    let mut variants: Vec<Variant> = Vec::new();
    for section in tables {
        variants.extend(read_variant(section, rule, overrides, problems));
    }
    if let Some(section) = sweep {
        variants.extend(read_sweep(section, rule, overrides, problems));
    }
    for (index, variant) in variants.iter().enumerate() {
        if variants[..index].iter().any(|other| other.name == variant.name) {
            let message = format!("there are two variants `{}`; rename one", variant.name);
            problems.add(variant.place, message);
        }
    }
    variants
}

fn read_variant(
    section: Section<'_>,
    rule: &ReasonRule<'_>,
    overrides: &mut Vec<Override>,
    problems: &Problems,
) -> Option<Variant> {
    let name: Option<String> = section.require("name");
    if let Some(name) = &name {
        let message = format_args!("must be {LABEL_RULE}, and not \"all\"");
        section.check(is_label(name) && name != "all", "name", message);
    }
    let value = section.node("value").and_then(|node| {
        let value = value_of(&node.value);
        if value.is_none() {
            section.problem("value", "must be a number or a quantity, like \"25us\"");
        }
        value
    });
    let settings = match section.node("set") {
        Some(_) => read_settings(&section, problems),
        None => Vec::new(),
    };
    let ruled: Vec<_> = settings.iter().filter(|s| rule.applies(&s.key)).collect();
    let reason = read_reason(&section, !ruled.is_empty()).unwrap_or_default();
    for setting in ruled {
        let (key, reason) = (setting.key.clone(), reason.clone());
        overrides.push(Override { key, reason, variant: name.clone() });
    }
    let quick = super::quick::is_part(&section);
    let place = section.place();
    section.finish();
    Some(Variant { name: name?, value, settings, quick, place })
}

fn read_sweep(
    section: Section<'_>,
    rule: &ReasonRule<'_>,
    overrides: &mut Vec<Override>,
    problems: &Problems,
) -> Vec<Variant> {
    let key: Option<String> = section.require("key");
    let values = match section.node("values") {
        Some(Node { value: Value::List(list), .. }) if list.len() > 1 => list.as_slice(),
        Some(_) => {
            section.problem("values", "must be a list of two values or more");
            &[]
        }
        None => {
            section.missing("values", "a list like [\"25us\", \"50us\"]");
            &[]
        }
    };
    let quick = read_quick_values(&section, values, problems);
    let needed = key.as_deref().is_some_and(|key| rule.applies(key));
    let reason = read_reason(&section, needed).unwrap_or_default();
    section.finish();
    let Some(key) = key else { return Vec::new() };
    if needed {
        overrides.push(Override { key: key.clone(), reason, variant: None });
    }
    let variants = values.iter().filter_map(|node| {
        let text = match &node.value {
            Value::Text(text) => text.clone(),
            Value::Integer(n) => n.to_string(),
            Value::Float(x) => x.to_string(),
            Value::Flag(flag) => flag.to_string(),
            other => {
                let message = format!("a sweep cannot set {}; it sets values", other.describe());
                problems.add(node.place, message);
                return None;
            }
        };
        let assignment = Assignment { key: key.clone(), place: node.place, node: node.clone() };
        Some(Variant {
            name: super::label_from(&text),
            value: value_of(&node.value),
            settings: vec![assignment],
            quick: quick.is_empty() || quick.iter().any(|value| value.same(&node.value)),
            place: node.place,
        })
    });
    variants.collect()
}

/// The values of a sweep that quick runs have; all of them if it is empty.
fn read_quick_values<'a>(
    section: &Section<'a>,
    values: &[Node],
    problems: &Problems,
) -> Vec<&'a Value> {
    let Some(node) = section.node("quick") else { return Vec::new() };
    let Value::List(list) = &node.value else {
        section.problem("quick", "must be a list of some of the `values`, those of quick runs");
        return Vec::new();
    };
    section.check(!list.is_empty(), "quick", "is empty; list some of the `values`");
    for one in list {
        if !values.iter().any(|value| value.value.same(&one.value)) {
            let message = format!("{} is none of the `values`", one.value.describe());
            problems.add(one.place, message);
        }
    }
    let fewer = list.len() < values.len();
    section.check(fewer, "quick", "has no effect if it lists all `values`; remove it");
    list.iter().map(|one| &one.value).collect()
}

/// A value as a number with its unit: times in us, rates in Gb/s, sizes in bytes.
fn value_of(value: &Value) -> Option<(f64, &'static str)> {
    if let Ok(span) = Span::read(value) {
        Some((span.as_us_f64(), "us"))
    } else if let Ok(rate) = Rate::read(value) {
        Some((rate.as_gbps_f64(), "Gb/s"))
    } else if let Ok(size) = Bytes::read(value) {
        Some((size.get() as f64, "B"))
    } else {
        f64::read(value).ok().map(|number| (number, ""))
    }
}

/// Reads `set = { "algorithm.base_target" = "25us" }`, with quotes or without.
pub(super) fn read_settings(section: &Section<'_>, problems: &Problems) -> Vec<Assignment> {
    let kind = "a table of settings, like { \"algorithm.base_target\" = \"25us\" }";
    let Some(node) = section.node("set") else {
        section.missing("set", kind);
        return Vec::new();
    };
    let Value::Table(table) = &node.value else {
        section.problem("set", format_args!("must be {kind}"));
        return Vec::new();
    };
    let leaves = table.leaves();
    if leaves.is_empty() {
        problems.add(node.place, "`set` is empty; remove it or set something");
    }
    let assignments =
        leaves.into_iter().map(|(key, place, node)| Assignment { key, place, node: node.clone() });
    assignments.collect()
}

fn read_reason(section: &Section<'_>, needed: bool) -> Option<String> {
    let reason: Option<String> = if needed && section.node("reason").is_none() {
        let why =
            "a sentence that says why this differs from what all scenarios of the testbed use";
        section.missing("reason", why);
        None
    } else {
        section.get("reason")
    };
    if let Some(reason) = &reason {
        section.check(!reason.trim().is_empty(), "reason", "is empty; say why");
    }
    reason
}
