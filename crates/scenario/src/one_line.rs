//! A topology in one line: `topology = "fat-tree k=8 100Gbps 1us"`.
//!
//! The kind comes first; then, in any order, `key=value` for any key of the table, and without a key
//! the rate of the links, their delay, and the buffer of a switch's port (4MB unless it is given).

use apus_units::{Bytes, Rate, Span};

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
    let mut table = Table::default();
    let mut words = line.split_whitespace();
    let kind = words.next().ok_or("the line is empty")?;
    if !TOPOLOGIES.iter().any(|known| known.name == kind) {
        let hint = apus_units::suggestion(kind, TOPOLOGIES.iter().map(|known| known.name));
        return Err(format!("unknown kind \"{kind}\"{hint}"));
    }
    let mut put = |key: &str, value: Value| {
        let node = Node { value, place };
        match table.entries.insert(key.to_owned(), Entry { key: place, node }) {
            None => Ok(()),
            Some(_) => Err(format!("`{key}` is given twice")),
        }
    };
    put("kind", Value::Text(kind.to_owned()))?;
    let mut buffered = false;
    for word in words {
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
        buffered |= key == "buffer";
        put(key, super::tree::parse_option(text, place, problems).value)?;
    }
    if !buffered {
        put("buffer", Value::Text(BUFFER.to_owned()))?;
    }
    Ok(table)
}
