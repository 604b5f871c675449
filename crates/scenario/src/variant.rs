//! `[[variant]]` and `[sweep]`: the runs of an experiment.

use apus_units::{Bytes, Rate, Span};

use super::assignment::{Assignment, ReasonRule, read_reason, read_settings};
use super::assignment::{REASON, SET};
use super::declared::{Keys, Kind, key};
use super::label::{LABEL_RULE, is_label, label_from};
use super::overrides::Override;
use super::section::{Section, Setting};
use super::source::{Place, Problems};
use super::tree::{Node, Value};

/// Keys of `variant`.
pub(super) static VARIANT: Keys = Keys::of(&[
    key("name", Kind::Text, "Name of the variant"),
    key("value", Kind::Value, "A number or quantity with which checks can compare a metric"),
    SET,
    REASON,
    key("quick", Kind::Flag, "`false`: quick runs omit the variant"),
]);

/// Keys of `sweep`.
pub(super) static SWEEP: Keys = Keys::of(&[
    key("key", Kind::Text, "The dotted key that the variants set"),
    key("values", Kind::Values, "The values of the key, one for each variant"),
    key("quick", Kind::Values, "The values in quick runs. Default: all values"),
    REASON,
]);

/// A run of an experiment as the scenario describes it.
#[derive(Clone, Debug)]
pub(super) struct Variant {
    pub(super) name: String,
    /// The number with which checks can compare, and its unit.
    pub(super) value: Option<(f64, &'static str)>,
    pub(super) settings: Vec<Assignment>,
    /// Whether quick runs include the variant.
    pub(super) quick: bool,
    pub(super) place: Place,
}

/// Reads `[[variant]]` or `[sweep]`; adds the changes that need a reason to `overrides`.
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
    let quick = is_in_quick_runs(&section);
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
            name: label_from(&text),
            value: value_of(&node.value),
            settings: vec![assignment],
            quick: quick.is_empty() || quick.iter().any(|value| value.same(&node.value)),
            place: node.place,
        })
    });
    variants.collect()
}

/// Returns the values of a sweep for quick runs; an empty list means all of them.
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

/// Returns a value as a number with its unit: times in us, rates in Gb/s, sizes in bytes.
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

/// Reads `quick = false` of a check or a variant: whether it is part of quick runs.
pub(super) fn is_in_quick_runs(section: &Section<'_>) -> bool {
    match section.get("quick") {
        Some(false) => return false,
        Some(true) => section.problem("quick", "has no effect as `true`; remove it"),
        None => {}
    }
    true
}
