//! Keys by their dotted path, explained in words.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::{Key, Keys, Kind};
use crate::algorithm::ALGORITHM;

/// A key with its path, and the kind of table that has it if not all do.
struct Found {
    path: String,
    key: &'static Key,
    of_kind: Option<&'static str>,
}

/// Returns the paths of all keys below `roots`, each once.
pub(crate) fn paths(roots: &[&'static Keys]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let paths = all(roots).into_iter().map(|found| found.path);
    paths.filter(|path| seen.insert(path.clone())).collect()
}

/// Explains the keys with this path; `None` if there is none.
pub(crate) fn explain(roots: &[&'static Keys], path: &str) -> Option<String> {
    let is_number = |word: &&str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    let path: Vec<&str> = path.split('.').filter(|word| !is_number(word)).collect();
    let path = path.join(".");
    let all = all(roots);
    let mut text = format!("{path}, a key of scenarios\n");
    let mut declared: Vec<(String, Vec<&str>)> = Vec::new();
    for found in all.iter().filter(|found| found.path == path) {
        let description = describe(found.key);
        let kinds = match declared.iter_mut().find(|(known, _)| *known == description) {
            Some((_, kinds)) => kinds,
            None => {
                declared.push((description, Vec::new()));
                &mut declared.last_mut()?.1
            }
        };
        kinds.extend(found.of_kind);
    }
    if declared.is_empty() {
        return None;
    }
    for (description, kinds) in &declared {
        if !kinds.is_empty() {
            let kinds: Vec<String> = kinds.iter().map(|kind| format!("\"{kind}\"")).collect();
            // Writing to a String cannot fail.
            let _ = writeln!(text, "with kind = {}", kinds.join(" or "));
        }
        text += description;
    }
    let below = format!("{path}.");
    let mut seen = BTreeSet::new();
    let keys = all.iter().filter_map(|found| found.path.strip_prefix(&below));
    let keys = keys.filter(|key| !key.contains('.') && seen.insert(*key));
    let keys: Vec<&str> = keys.collect();
    if !keys.is_empty() {
        let _ = writeln!(text, "  keys: {}", keys.join(", "));
    }
    Some(text)
}

/// Returns every key of the tables below `roots`, in the order of the declarations.
fn all(roots: &[&'static Keys]) -> Vec<Found> {
    let mut all = Vec::new();
    roots.iter().for_each(|keys| add(&mut all, "", keys));
    all
}

fn add(all: &mut Vec<Found>, above: &str, keys: &'static Keys) {
    let of_kinds =
        keys.kinds.iter().flat_map(|kind| kind.keys.iter().map(|key| (key, Some(kind.name))));
    for (key, of_kind) in keys.own.iter().map(|key| (key, None)).chain(of_kinds) {
        let path = format!("{above}{}", key.name);
        let below = match key.kind {
            Kind::Algorithms => Some(&ALGORITHM),
            _ => key.kind.keys(),
        };
        let inner = format!("{path}.");
        all.push(Found { path, key, of_kind });
        if let Some(below) = below {
            add(all, &inner, below);
        }
    }
}

/// Returns the kind of value, the range, the default and the meaning of a key.
fn describe(key: &Key) -> String {
    let mut text = format!("  {}", key.kind.words());
    if let Some(range) = key.range.words(&key.kind) {
        let _ = write!(text, ", {range}");
    }
    if !key.default.is_empty() {
        let _ = write!(text, "; default {}", key.default);
    }
    let _ = write!(text, "\n  {}\n", key.doc);
    text
}
