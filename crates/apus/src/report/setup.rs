//! What was run, in a line each: topology, load, algorithms and time.

use apus_scenario::Setup;
use serde_json::{Value, json};
use toml::Table;

/// Settings of a table that its line names, after its kind.
const MOST: usize = 7;
/// Settings that say nothing at these values.
const USUAL: [(&str, &str); 5] = [
    ("planes", "1"),
    ("flows_per_pair", "1"),
    ("flows", "per-pair"),
    ("signals", "packets"),
    ("op", "write"),
];
/// Settings that come first.
const FIRST: [&str; 16] = [
    "name",
    "k",
    "leaves",
    "hosts_per_leaf",
    "spines",
    "hosts",
    "rate",
    "delay",
    "buffer",
    "size",
    "sizes",
    "load",
    "outstanding",
    "senders",
    "receiver",
    "flows_per_pair",
];

/// Returns the lines of a run, and all of its settings as a scenario.
pub(super) fn describe(setup: &Setup) -> Value {
    let text = setup.to_annotated_toml();
    let all: Table = toml::from_str(&text).unwrap_or_default();
    let table = |key: &str| all.get(key).and_then(toml::Value::as_table);
    let loads = all.get("workload").and_then(toml::Value::as_array).into_iter().flatten();
    // A single algorithm has a line of its own.
    let single = setup.algorithms().count() == 1;
    let load = |load: &toml::Value| {
        let mut load = load.as_table()?.clone();
        if single {
            load.remove("algorithm");
        }
        Some(line(&load))
    };
    let loads: Vec<String> = loads.filter_map(load).collect();
    let algorithms: Vec<String> = setup
        .algorithms()
        .map(|(label, config)| {
            let (name, profile) = (config.info().name, config.profile());
            let own = if label == name { String::new() } else { format!("{label}: ") };
            format!("{own}{name} (parameters: {profile})")
        })
        .collect();
    let warmup = match setup.warmup() {
        span if span.is_zero() => "no warm-up".to_owned(),
        span => format!("warm-up {span}"),
    };
    let drain = match setup.drain() {
        span if span.is_zero() => String::new(),
        span => format!(", then up to {span} to finish"),
    };
    json!({
        "topology": table("topology").map(line),
        "load": several(loads),
        "algorithms": several(algorithms),
        "time": format!("load for {}, {warmup}{drain}", setup.duration()),
        "settings": text,
    })
}

/// Returns at most three texts, and the number of the others.
fn several(all: Vec<String>) -> String {
    let more = all.len().saturating_sub(3);
    let mut text = all.into_iter().take(3).collect::<Vec<_>>().join("; ");
    if more > 0 {
        text += &format!("; and {more} more");
    }
    text
}

/// Returns the kind of a table and its settings: "star, hosts 4, rate 100Gbps".
fn line(table: &Table) -> String {
    let text = |value: &toml::Value| match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        toml::Value::Array(all) => match &all[..] {
            [one] => Some(format!("{one}").trim_matches('"').to_owned()),
            [] => None,
            all => Some(format!("{} values", all.len())),
        },
        _ => None,
    };
    let kind = table.get("kind").and_then(text).unwrap_or_default();
    let mut others: Vec<(&String, &toml::Value)> =
        table.iter().filter(|(key, _)| *key != "kind").collect();
    let place = |key: &String| FIRST.iter().position(|first| first == key).unwrap_or(FIRST.len());
    others.sort_by_key(|(key, _)| place(key));
    let others = others.into_iter().filter_map(|(key, value)| {
        let value = text(value).filter(|value| value != "0s")?;
        if USUAL.contains(&(key.as_str(), value.as_str())) {
            return None;
        }
        Some(format!("{} {value}", key.replace('_', " ")))
    });
    let mut parts = vec![kind];
    parts.extend(others.take(MOST));
    parts.retain(|part| !part.is_empty());
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::{line, several};

    #[test]
    fn a_line_names_the_kind_and_its_settings() {
        let table =
            "hosts = 4\nkind = \"star\"\nrate = \"100Gbps\"\nsenders = [1, 2]\nclass = [{}]\n";
        let table = toml::from_str(table).expect("TOML");
        let line = line(&table);
        assert!(line.starts_with("star, ") && line.contains("rate 100Gbps"), "{line}");
        assert!(line.contains("senders 2 values"), "{line}");
        let four = several(["a", "b", "c", "d"].map(str::to_owned).to_vec());
        assert_eq!(four, "a; b; c; and 1 more");
    }
}
