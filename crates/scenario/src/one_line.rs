//! A topology in one line: `topology = "fat-tree k=8 100Gbps 1us"`.
//!
//! The kind comes first. Then, in any order: `key=value` for any key of the table, and without a key the rate
//! of the links, their delay, and the buffer of a switch's port (default 4MB). The name of a cluster
//! ([`PRESETS`]) stands for a kind with settings, which the settings of the line replace.

use apus_units::{Bytes, Rate, Span};

use super::presets::PRESETS;
use super::shape::TOPOLOGIES;
use super::source::{Place, Problems};
use super::tree::{Entry, Node, Table, Value};

/// deviation: a one-line topology does not state the buffer; 4 MB is far above Swift's longest
/// queues.
const BUFFER: &str = "4MB";

/// Replaces a topology in one line by the equivalent table.
pub(super) fn expand(table: &mut Table, problems: &Problems) {
    let Some(entry) = table.entries.get_mut("topology") else { return };
    let Value::Text(line) = &entry.node.value else { return };
    let place = entry.node.place;
    match read(line, place, problems) {
        Ok(topology) => entry.node.value = Value::Table(topology),
        Err(why) => {
            let example = "write it like \"fat-tree k=8 100Gbps 1us\"";
            problems.add(place, format!("`topology`: {why}; {example}"));
            // Avoids a second report of the same problem.
            table.entries.remove("topology");
        }
    }
}

fn read(line: &str, place: Place, problems: &Problems) -> Result<Table, String> {
    let (name, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
    if name.is_empty() {
        return Err("the line is empty".to_owned());
    }
    let preset = PRESETS.iter().find(|preset| preset.name == name);
    let kind = preset.map_or(name, |preset| preset.kind);
    if !TOPOLOGIES.iter().any(|known| known.name == kind) {
        let kinds = TOPOLOGIES.iter().map(|known| known.name);
        let hint = apus_units::suggestion(kind, kinds.chain(PRESETS.iter().map(|p| p.name)));
        return Err(format!("unknown kind \"{kind}\"{hint}"));
    }
    let mut table = Table::default();
    let entry = |value| Entry { key: place, node: Node { value, place } };
    table.entries.insert("kind".to_owned(), entry(Value::Text(kind.to_owned())));
    read_settings(&mut table, rest, place, problems)?;
    if let Some(preset) = preset {
        let mut known = Table::default();
        read_settings(&mut known, preset.settings, place, problems)?;
        for (key, entry) in known.entries {
            table.entries.entry(key).or_insert(entry);
        }
    }
    let buffer = || entry(Value::Text(BUFFER.to_owned()));
    table.entries.entry("buffer".to_owned()).or_insert_with(buffer);
    Ok(table)
}

fn read_settings(
    table: &mut Table,
    line: &str,
    place: Place,
    problems: &Problems,
) -> Result<(), String> {
    for word in line.split_whitespace() {
        let (key, text) = match word.split_once('=') {
            Some(pair) => pair,
            None if word.parse::<Rate>().is_ok() => ("rate", word),
            None if word.parse::<Span>().is_ok() => ("delay", word),
            None if word.parse::<Bytes>().is_ok() || word == "unlimited" => ("buffer", word),
            None => return Err(format!("`{word}` is not a rate, time, size or key=value")),
        };
        if key.is_empty() || text.is_empty() {
            return Err(format!("`{word}` is not key=value"));
        }
        let node = super::tree::parse_option(text, place, problems);
        if table.entries.insert(key.to_owned(), Entry { key: place, node }).is_some() {
            return Err(format!("`{key}` is given twice"));
        }
    }
    Ok(())
}
