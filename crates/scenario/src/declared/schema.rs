//! The JSON Schema of scenarios, for editors.

use apus_algorithms::Registry;
use apus_cc::ParamKind;
use serde_json::{Map, Value, json};

use super::{Key, Keys, Kind};
use crate::algorithm::ALGORITHM;
use crate::tree;

/// Returns the JSON Schema (draft 2020-12) of a file with the keys `root`.
///
/// The schema describes names and types of keys, and ranges of numbers. Ranges of quantities with units,
/// missing keys and contradictions are errors of the reader only, since a testbed or a variant can set any
/// key.
#[must_use]
pub(crate) fn schema(root: &[&Keys], registry: Registry) -> Value {
    let mut schema = object(root.iter().flat_map(|keys| keys.own), registry);
    schema.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    schema.insert("title".to_owned(), json!("Apus scenario"));
    Value::Object(schema)
}

/// A table with these keys and no others.
fn object<'a>(keys: impl Iterator<Item = &'a Key>, registry: Registry) -> Map<String, Value> {
    let properties: Map<String, Value> =
        keys.map(|key| (key.name.to_owned(), property(key, registry))).collect();
    let mut object = Map::new();
    object.insert("type".to_owned(), json!("object"));
    object.insert("properties".to_owned(), Value::Object(properties));
    object.insert("additionalProperties".to_owned(), json!(false));
    object
}

/// A table; the `kind` decides which of the keys it may have.
fn table(keys: &Keys, registry: Registry) -> Value {
    let of_kinds = keys.kinds.iter().flat_map(|kind| kind.keys);
    let mut table = object(keys.own.iter().chain(of_kinds), registry);
    if let Some(others) = &keys.others {
        table.insert("additionalProperties".to_owned(), value(others, registry));
    }
    if keys.kinds.is_empty() {
        return Value::Object(table);
    }
    let words =
        keys.kinds.iter().map(|kind| json!({ "const": kind.name, "description": kind.doc }));
    table["properties"]["kind"]["oneOf"] = words.collect();
    let rules = keys.kinds.iter().map(|kind| {
        let names: Vec<&str> = keys.own.iter().chain(kind.keys).map(|key| key.name).collect();
        json!({
            "if": { "properties": { "kind": { "const": kind.name } }, "required": ["kind"] },
            "then": { "propertyNames": { "enum": names } },
        })
    });
    table.insert("allOf".to_owned(), rules.collect());
    Value::Object(table)
}

fn property(key: &Key, registry: Registry) -> Value {
    let mut property = value(&key.kind, registry);
    property["description"] = match (key.kind, key.range.words(&key.kind)) {
        (Kind::Count | Kind::Number, Some(_)) => {
            property.as_object_mut().into_iter().for_each(|own| own.extend(key.range.schema()));
            json!(key.doc)
        }
        // A schema has no ranges of quantities with units.
        (_, Some(range)) => json!(format!("{} ({range})", key.doc)),
        (_, None) => json!(key.doc),
    };
    match key.default_value() {
        Some(tree::Value::Text(text)) => property["default"] = json!(text),
        Some(tree::Value::Integer(n)) => property["default"] = json!(n),
        Some(tree::Value::Float(x)) => property["default"] = json!(x),
        Some(tree::Value::Flag(flag)) => property["default"] = json!(flag),
        _ => {}
    }
    property
}

/// A text that is a decimal number with one of these units.
fn quantity(units: &str) -> Value {
    json!({ "type": "string", "pattern": format!("^\\s*([0-9]+\\.?[0-9]*|\\.[0-9]+)\\s*({units})\\s*$") })
}

const TIMES: &str = "ps|ns|us|ms|s";
const RATES: &str = "bps|kbps|Mbps|Gbps|Tbps";
const SIZE_UNITS: &str = "B|kB|MB|GB|TB|KiB|MiB|GiB|TiB";

fn value(kind: &Kind, registry: Registry) -> Value {
    let texts = || json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 });
    let counts = || json!({ "type": "integer", "minimum": 0 });
    match kind {
        Kind::Time => quantity(TIMES),
        Kind::Rate => quantity(RATES),
        Kind::Size => quantity(SIZE_UNITS),
        Kind::SizeOrUnlimited => {
            json!({ "anyOf": [quantity(SIZE_UNITS), { "const": "unlimited" }] })
        }
        Kind::Drift => json!({ "type": "string", "pattern": "^[0-9]+\\s*pp[mb]$" }),
        Kind::Count => counts(),
        Kind::Number => json!({ "type": "number" }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Text | Kind::Discriminant => json!({ "type": "string" }),
        Kind::Word(words) => json!({ "enum": words }),
        Kind::Texts => texts(),
        Kind::TextOrTexts => json!({ "anyOf": [{ "type": "string" }, texts()] }),
        Kind::Hosts | Kind::HostOrHosts => {
            json!({ "anyOf": [counts(), { "type": "array", "items": counts() }] })
        }
        Kind::Moment => json!({
            "anyOf": [quantity(TIMES), { "type": "string", "pattern": "^(first|last) end of ." }],
        }),
        Kind::Threshold => json!({
            "anyOf": [quantity(&format!("{TIMES}|{RATES}|{SIZE_UNITS}")), { "type": "number" }],
        }),
        Kind::Value => json!({ "type": ["string", "number", "boolean"] }),
        Kind::Values => {
            json!({ "type": "array", "items": { "type": ["string", "number", "boolean"] } })
        }
        Kind::Settings => json!({ "type": "object", "minProperties": 1 }),
        Kind::Table(keys) => table(keys, registry),
        Kind::TextOrTable(keys) => {
            json!({ "anyOf": [{ "type": "string" }, table(keys, registry)] })
        }
        Kind::Tables(keys) => {
            json!({ "type": "array", "items": table(keys, registry), "minItems": 1 })
        }
        Kind::Algorithms => {
            let label = json!({ "type": "object", "additionalProperties": algorithm(registry) });
            json!({ "anyOf": [algorithm(registry), label] })
        }
    }
}

/// The table of an algorithm: its `name` decides which parameters it may have.
fn algorithm(registry: Registry) -> Value {
    let own: Vec<&str> = ALGORITHM.own.iter().map(|key| key.name).collect();
    let mut table = object(ALGORITHM.own.iter(), registry);
    let names = registry
        .algorithms()
        .map(|info| json!({ "const": info.name, "description": info.summary }));
    table["properties"]["name"]["oneOf"] = names.collect();
    for parameter in registry.algorithms().flat_map(|info| info.parameters) {
        let mut one = value(&kind_of(&parameter.kind), registry);
        one["description"] = json!(parameter.doc);
        let known = &mut table["properties"][parameter.name];
        *known = match known.take() {
            Value::Null => one,
            // Algorithms share the name: either of them.
            other if other == one => other,
            other => json!({ "anyOf": [other, one] }),
        };
    }
    let rules = registry.algorithms().map(|info| {
        let parameters = info.parameters.iter().map(|parameter| parameter.name);
        let names: Vec<&str> = own.iter().copied().chain(parameters).collect();
        json!({
            "if": { "properties": { "name": { "const": info.name } }, "required": ["name"] },
            "then": { "propertyNames": { "enum": names } },
        })
    });
    table.insert("allOf".to_owned(), rules.collect());
    Value::Object(table)
}

pub(super) fn kind_of(kind: &ParamKind) -> Kind {
    match kind {
        ParamKind::Number => Kind::Number,
        ParamKind::Count => Kind::Count,
        ParamKind::Time => Kind::Time,
        ParamKind::Size => Kind::Size,
        ParamKind::Rate => Kind::Rate,
        ParamKind::Flag => Kind::Flag,
        ParamKind::Choice(words) => Kind::Word(words),
    }
}
