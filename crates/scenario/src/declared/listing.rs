//! The declarations as JSON, from which other languages generate their classes.

use apus_algorithms::Registry;
use apus_cc::{AlgorithmInfo, ParamInfo};
use serde_json::{Value, json};

use super::schema::kind_of;
use super::{Key, Keys, Kind};
use crate::algorithm::ALGORITHM;

/// Returns the keys of `roots` and of all tables below them, and the algorithms of `registry`.
///
/// `tables` lists each table once. A key with a table names it by its index there; the roots are the first
/// entries, in their order, and `algorithm` is the index of the keys that all algorithms share.
pub(crate) fn listing(roots: &[&'static Keys], registry: Registry) -> Value {
    let mut known: Vec<&'static Keys> = roots.to_vec();
    known.push(&ALGORITHM);
    let mut tables = Vec::new();
    // Tables below are appended while those above are written.
    while let Some(&keys) = known.get(tables.len()) {
        tables.push(table(keys, &mut known));
    }
    json!({
        "tables": tables,
        "algorithm": roots.len(),
        "algorithms": registry.algorithms().map(|info| algorithm(info, registry)).collect::<Vec<_>>(),
    })
}

fn table(keys: &Keys, known: &mut Vec<&'static Keys>) -> Value {
    let own: Vec<Value> = keys.own.iter().map(|one| key(one, known)).collect();
    let kinds: Vec<Value> = keys
        .kinds
        .iter()
        .map(|kind| {
            let keys: Vec<Value> = kind.keys.iter().map(|one| key(one, known)).collect();
            json!({ "name": kind.name, "doc": kind.doc, "keys": keys })
        })
        .collect();
    let others = keys.others.as_ref().map(|kind| name(*kind));
    json!({ "keys": own, "kinds": kinds, "others": others })
}

fn key(key: &Key, known: &mut Vec<&'static Keys>) -> Value {
    let table = key.kind.keys().map(|keys| {
        let place = known.iter().position(|other| std::ptr::eq(*other, keys));
        place.unwrap_or_else(|| {
            known.push(keys);
            known.len() - 1
        })
    });
    json!({
        "name": key.name,
        "type": name(key.kind),
        "words": key.words(),
        "table": table,
        "default": (!key.default.is_empty()).then_some(key.default),
        "form": key.kind.words(),
        "range": key.range.words(&key.kind),
        "doc": key.doc,
    })
}

/// The name of a kind of value.
fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Time => "time",
        Kind::Rate => "rate",
        Kind::Size => "size",
        Kind::SizeOrUnlimited => "size or unlimited",
        Kind::Drift => "drift",
        Kind::Count => "count",
        Kind::Number => "number",
        Kind::Flag => "flag",
        Kind::Text => "text",
        Kind::Word(_) => "word",
        Kind::Discriminant => "kind",
        Kind::Texts => "texts",
        Kind::TextOrTexts => "text or texts",
        Kind::Hosts | Kind::HostOrHosts => "hosts",
        Kind::Moment => "moment",
        Kind::Threshold => "threshold",
        Kind::Value => "value",
        Kind::Values => "values",
        Kind::Settings => "settings",
        Kind::Table(_) => "table",
        Kind::TextOrTable(_) => "text or table",
        Kind::Tables(_) => "tables",
        Kind::Algorithms => "algorithms",
    }
}

fn algorithm(info: &AlgorithmInfo, registry: Registry) -> Value {
    let parameters = info.parameters.iter().map(|one| parameter(one, info, registry));
    let profiles = info.profiles.iter().map(|one| json!({ "name": one.name, "doc": one.doc }));
    json!({
        "name": info.name,
        "doc": info.summary,
        "source": info.source,
        "profiles": profiles.collect::<Vec<_>>(),
        "parameters": parameters.collect::<Vec<_>>(),
    })
}

fn parameter(parameter: &ParamInfo, info: &AlgorithmInfo, registry: Registry) -> Value {
    let kind = kind_of(&parameter.kind);
    let words = if let Kind::Word(words) = kind { words } else { &[] };
    let defaults = parameter.defaults().map(|default| {
        let profiles: Vec<&str> = info.profiles_with(default).collect();
        json!({ "profiles": profiles, "value": default.value })
    });
    let derived = registry.derivations(info.name).iter();
    let derived = derived.filter(|rule| rule.parameter == parameter.name);
    let derived = derived.map(|rule| json!({ "profiles": rule.profiles, "rule": rule.rule }));
    let must = parameter.limits.must;
    json!({
        "name": parameter.name,
        "type": name(kind),
        "words": words,
        "form": kind.words(),
        "range": (!must.is_empty()).then_some(must),
        "doc": parameter.doc,
        "defaults": defaults.collect::<Vec<_>>(),
        "derived": derived.collect::<Vec<_>>(),
    })
}
