//! Set-up of a run, one line each: topology, load, algorithms and time.

use apus_algorithms::registry::AlgorithmConfig;
use apus_scenario::Setup;
use serde_json::{Value, json};
use toml::Table;

use super::load;

/// Maximum number of workloads with their own line.
const MAX_LOADS: usize = 6;
/// Maximum number of settings in the line of a table, after its kind.
const MOST: usize = 7;
/// Settings that are not shown if they have these values.
const USUAL: [(&str, &str); 5] = [
    ("planes", "1"),
    ("flows_per_pair", "1"),
    ("flows", "per-pair"),
    ("signals", "packets"),
    ("op", "write"),
];
/// Settings that are shown first.
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

/// Text for a setting that differs between the runs of a sweep.
const VARIED: &str = "(varied)";

/// Returns the lines of a run, and all of its settings as a scenario.
pub(super) fn describe(setup: &Setup) -> Value {
    let text = setup.to_annotated_toml();
    let all: Table = toml::from_str(&text).unwrap_or_default();
    let mut lines = lines(&all, setup.algorithms().count() == 1);
    lines["algorithms"] = several(algorithms(setup)).into();
    lines["time"] = time(&all).into();
    lines["settings"] = text.into();
    lines
}

/// Returns the lines of several runs; a setting that is not equal in all of them is shown as varied.
pub(crate) fn describe_all<'a>(setups: impl Iterator<Item = &'a Setup>) -> Value {
    let (mut all, mut single, mut names) = (None::<Table>, true, Vec::new());
    for setup in setups {
        let table: Table = toml::from_str(&setup.to_annotated_toml()).unwrap_or_default();
        match &mut all {
            None => all = Some(table),
            Some(first) => mark_varied(first, &table),
        }
        single &= setup.algorithms().count() == 1;
        for name in algorithms(setup) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let Some(all) = all else { return Value::Null };
    let mut lines = lines(&all, single);
    lines["algorithms"] = several(names).into();
    lines["time"] = time(&all).into();
    lines
}

/// Marks the values that differ from another table.
fn mark_varied(own: &mut Table, other: &Table) {
    for (key, value) in own.iter_mut() {
        match (value, other.get(key)) {
            (toml::Value::Table(own), Some(toml::Value::Table(other))) => mark_varied(own, other),
            (toml::Value::Array(own), Some(toml::Value::Array(other)))
                if own.len() == other.len() && own.iter().all(toml::Value::is_table) =>
            {
                for (own, other) in own.iter_mut().zip(other) {
                    if let (toml::Value::Table(own), toml::Value::Table(other)) = (own, other) {
                        mark_varied(own, other);
                    }
                }
            }
            (value, other) if Some(&*value) != other => *value = VARIED.into(),
            _ => {}
        }
    }
}

/// Returns the lines of topology and load.
fn lines(all: &Table, single: bool) -> Value {
    let loads = all.get("workload").and_then(toml::Value::as_array).into_iter().flatten();
    // A single algorithm is described by its own line.
    let of_load = |load: &toml::Value| {
        let mut table = load.as_table()?.clone();
        if single {
            table.remove("algorithm");
        }
        Some(load::workload(&table).unwrap_or_else(|| line(&table)))
    };
    let loads: Vec<String> = loads.filter_map(of_load).collect();
    let more = loads.len().saturating_sub(MAX_LOADS);
    let mut loads: Vec<String> = loads.into_iter().take(MAX_LOADS).collect();
    if more > 0 {
        loads.push(format!("and {more} more"));
    }
    let topology = all.get("topology").and_then(toml::Value::as_table);
    let topology = topology.map(|table| load::topology(table).unwrap_or_else(|| line(table)));
    json!({ "topology": topology, "load": loads })
}

/// Returns the algorithms of a run with their profiles.
fn algorithms(setup: &Setup) -> Vec<String> {
    let one = |(label, config): (&str, &AlgorithmConfig)| {
        let (name, profile) = (config.info().name, config.profile());
        let own = if label == name { String::new() } else { format!("{label}: ") };
        format!("{own}{name} (parameters: {profile})")
    };
    setup.algorithms().map(one).collect()
}

/// Returns the times in which load is offered and measured, and the time that ops have to end.
fn time(all: &Table) -> String {
    let text = |key: &str| all.get(key).map(load::short);
    let zero = |time: &String| matches!(time.as_str(), "0s" | "0\u{a0}s");
    let duration = text("duration").unwrap_or_default();
    let measured = match text("warmup").filter(|time| !zero(time)) {
        Some(warmup) => format!("measured after a warm-up of {warmup}"),
        None => "measured from the start".to_owned(),
    };
    let drain = text("drain").filter(|time| !zero(time));
    let drain =
        drain.map_or_else(String::new, |time| format!("; then at most {time} for ops to end"));
    format!("{duration} of load, {measured}{drain}")
}

/// Returns at most three texts, and the number of the remaining ones.
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
    let text = |value: &toml::Value| Some(load::short(value)).filter(|text| !text.is_empty());
    let kind = table.get("kind").and_then(text).unwrap_or_default();
    let mut others: Vec<(&String, &toml::Value)> =
        table.iter().filter(|(key, _)| *key != "kind").collect();
    let place = |key: &String| FIRST.iter().position(|first| first == key).unwrap_or(FIRST.len());
    others.sort_by_key(|(key, _)| place(key));
    let others = others.into_iter().filter_map(|(key, value)| {
        let value = text(value).filter(|value| value != "0\u{a0}s")?;
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
        assert!(line.starts_with("star, ") && line.contains("rate 100\u{a0}Gb/s"), "{line}");
        assert!(line.contains("senders 2 values"), "{line}");
        let four = several(["a", "b", "c", "d"].map(str::to_owned).to_vec());
        assert_eq!(four, "a; b; c; and 1 more");
    }
}
