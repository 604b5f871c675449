//! The tables of keys of the reference page, as Markdown.

use std::fmt::Write;

use super::{Key, Keys, Kind};
use crate::algorithm::ALGORITHM;

/// Returns a table of keys and the tables below it as Markdown, each with a heading.
pub(crate) fn reference(heading: &str, root: &Keys) -> String {
    let mut text = format!("## {heading}\n\n");
    write_keys(&mut text, root.own);
    let mut written: Vec<&Keys> = Vec::new();
    for key in root.own {
        match (key.kind, key.kind.keys()) {
            (Kind::Algorithms, _) => write_table(&mut text, "algorithm", false, &ALGORITHM),
            // Two keys can share their table, as `check` and `show` do.
            (_, Some(keys)) if !written.iter().any(|other| std::ptr::eq(*other, keys)) => {
                written.push(keys);
                write_below(&mut text, "", key);
            }
            _ => {}
        }
    }
    text
}

/// Writes the table of a key, if its value is a table.
fn write_below(text: &mut String, path: &str, key: &Key) {
    if let Some(keys) = key.kind.keys() {
        let list = matches!(key.kind, Kind::Tables(_));
        write_table(text, &format!("{path}{}", key.name), list, keys);
    }
}

fn write_table(text: &mut String, path: &str, list: bool, keys: &Keys) {
    if keys.own.is_empty() {
        return;
    }
    let heading = if list { format!("[[{path}]]") } else { format!("[{path}]") };
    // Writing to a String cannot fail.
    let _ = writeln!(text, "\n### `{heading}`\n");
    write_keys(text, keys.own);
    for kind in keys.kinds {
        let _ = writeln!(text, "\n`kind = \"{}\"`: {}\n", kind.name, kind.doc);
        write_keys(text, kind.keys);
    }
    let mut below: Vec<&Key> = Vec::new();
    for key in keys.own.iter().chain(keys.kinds.iter().flat_map(|kind| kind.keys)) {
        // Kinds share keys, which are written once.
        let same = |other: &&Key| match (other.kind.keys(), key.kind.keys()) {
            (Some(a), Some(b)) => other.name == key.name && std::ptr::eq(a, b),
            _ => false,
        };
        if !below.iter().any(same) {
            below.push(key);
        }
    }
    for key in below {
        write_below(text, &format!("{path}."), key);
    }
}

fn write_keys(text: &mut String, keys: &[Key]) {
    *text += "| key | value | default | meaning |\n|---|---|---|---|\n";
    for key in keys {
        let cell = |text: &str| text.replace('|', "\\|");
        let default =
            if key.default.is_empty() { String::new() } else { format!("`{}`", key.default) };
        let range = key.range.words(&key.kind).map(|range| format!(", {range}"));
        let kind = cell(&key.kind.words()) + &range.unwrap_or_default();
        let doc = cell(key.doc);
        let _ = writeln!(text, "| `{}` | {kind} | {default} | {doc} |", key.name);
    }
}
