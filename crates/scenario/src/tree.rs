//! Settings as a tree of values, each with its place in a text.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

use apus_units::shorten;

use super::source::{Place, Problems, Source};

/// Maximum number of names in a dotted path, as in the TOML reader. Rationale: trees are walked by recursion.
const MAX_DEPTH: usize = 80;

/// A value and its place.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) place: Place,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Flag(bool),
    List(Vec<Node>),
    Table(Table),
    /// A date or a time of day, which is not valid for any setting.
    Date,
}

/// Values by key.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    pub(super) entries: BTreeMap<String, Entry>,
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Place of the key.
    pub(super) key: Place,
    pub(super) node: Node,
}

impl Node {
    fn is_of(&self, place: Place) -> bool {
        self.place == place
            || match &self.value {
                Value::Table(table) => table.has_value_of(place),
                Value::List(list) => list.iter().any(|node| node.is_of(place)),
                _ => false,
            }
    }
}

impl Value {
    /// Returns a description for messages: "the text \"abc\"".
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Text(text) => format!("the text {text:?}"),
            Self::Integer(n) => format!("the number {n}"),
            Self::Float(x) => format!("the number {x}"),
            Self::Flag(flag) => format!("{flag}"),
            Self::List(_) => "a list".to_owned(),
            Self::Table(_) => "a table".to_owned(),
            Self::Date => "a date".to_owned(),
        }
    }

    /// Returns the value as a scenario writes it; lists and tables are shortened.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Integer(n) => n.to_string(),
            Self::Float(x) => x.to_string(),
            Self::Flag(flag) => flag.to_string(),
            Self::List(_) | Self::Table(_) | Self::Date => self.describe(),
        }
    }

    /// Returns a value that is not a table in TOML.
    pub(super) fn to_toml(&self) -> String {
        match self {
            Self::Text(text) => toml::Value::from(text.as_str()).to_string(),
            Self::Float(x) => format!("{x:?}"),
            Self::List(list) => {
                let list: Vec<String> = list.iter().map(|node| node.value.to_toml()).collect();
                format!("[{}]", list.join(", "))
            }
            other => other.text(),
        }
    }

    fn files(&self, found: &mut dyn FnMut(&str, &Table)) {
        match self {
            Self::Table(table) => table.files(found),
            Self::List(list) => list.iter().for_each(|node| node.value.files(found)),
            _ => {}
        }
    }

    /// Returns `true` if both values are equal, ignoring their places.
    pub(super) fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Integer(a), Self::Integer(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a == b,
            (Self::Flag(a), Self::Flag(b)) => a == b,
            (Self::List(a), Self::List(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.value.same(&b.value))
            }
            _ => false,
        }
    }
}

/// Reads a text as TOML; syntax errors become problems.
pub(super) fn parse(source: &Source, start: Place, problems: &Problems) -> Table {
    let (table, errors) = DeTable::parse_recoverable(&source.text);
    for error in errors {
        let place = start.at(error.span().map_or(0, |span| span.start));
        problems.add(place, format!("this is not TOML: {}", error.message()));
    }
    convert_table(table.into_inner(), start, problems)
}

/// Reads the value of an option: TOML (`10`, `true`, `"25us"`), or otherwise the text itself (`25us`).
pub(super) fn parse_option(text: &str, place: Place, problems: &Problems) -> Node {
    match DeValue::parse(text) {
        Ok(value) => {
            let mut node = convert(value.into_inner(), place, place, problems);
            node.place = place;
            node
        }
        Err(_) => Node { value: Value::Text(text.to_owned()), place },
    }
}

fn convert_table(table: DeTable<'_>, start: Place, problems: &Problems) -> Table {
    let entries = table.into_iter().map(|(key, value)| {
        let place = start.at(key.span().start);
        let at = start.at(value.span().start);
        let node = convert(value.into_inner(), at, start, problems);
        (key.into_inner().into_owned(), Entry { key: place, node })
    });
    Table { entries: entries.collect() }
}

fn convert(value: DeValue<'_>, place: Place, start: Place, problems: &Problems) -> Node {
    let value = match value {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(integer) => {
            let digits = integer.as_str().replace('_', "");
            Value::Integer(i64::from_str_radix(&digits, integer.radix()).unwrap_or_else(|_| {
                problems.add(place, format!("the number {digits} is too large"));
                0
            }))
        }
        DeValue::Float(float) => {
            Value::Float(float.as_str().replace('_', "").parse().unwrap_or(f64::NAN))
        }
        DeValue::Boolean(flag) => Value::Flag(flag),
        DeValue::Datetime(_) => Value::Date,
        DeValue::Array(list) => {
            let nodes = list.into_iter().map(|element| {
                let at = start.at(element.span().start);
                convert(element.into_inner(), at, start, problems)
            });
            Value::List(nodes.collect())
        }
        DeValue::Table(table) => Value::Table(convert_table(table, start, problems)),
    };
    Node { value, place }
}

impl Node {
    /// Creates a value without a place in a text.
    pub(super) fn of(value: Value) -> Self {
        Self { value, place: Place::default() }
    }
}

impl Entry {
    /// Creates a value without a place in a text.
    pub(super) fn of(value: Value) -> Self {
        Self { key: Place::default(), node: Node::of(value) }
    }
}

impl Table {
    /// Puts a value without a place at a dotted path, which leads through tables only.
    pub(super) fn put(&mut self, path: &str, value: Value) {
        let set = self.set(path, Place::default(), Node::of(value));
        debug_assert!(set.is_ok(), "{set:?}");
    }

    /// Returns the value under `key`.
    pub(super) fn value_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.entries.get_mut(key).map(|entry| &mut entry.node.value)
    }

    /// Returns the tables of a list.
    pub(super) fn tables_mut(&mut self, key: &str) -> impl Iterator<Item = &mut Self> {
        let list = match self.value_mut(key) {
            Some(Value::List(list)) => list.as_mut_slice(),
            _ => &mut [],
        };
        list.iter_mut().filter_map(|node| match &mut node.value {
            Value::Table(table) => Some(table),
            _ => None,
        })
    }

    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        self.entries.get(key).map(|entry| &entry.node)
    }

    /// Returns the value at a dotted path, which leads through tables only.
    pub(super) fn at_path(&self, path: &str) -> Option<&Node> {
        let (first, rest) = path.split_once('.').map_or((path, None), |(a, b)| (a, Some(b)));
        let node = self.get(first)?;
        match (rest, &node.value) {
            (None, _) => Some(node),
            (Some(rest), Value::Table(table)) => table.at_path(rest),
            _ => None,
        }
    }

    /// Returns every value that is not a table, with its dotted path and the place of its key.
    pub(super) fn leaves(&self) -> Vec<(String, Place, &Node)> {
        let mut leaves = Vec::new();
        self.collect_leaves("", &mut leaves);
        leaves
    }

    fn collect_leaves<'a>(&'a self, prefix: &str, into: &mut Vec<(String, Place, &'a Node)>) {
        for (key, entry) in &self.entries {
            let path = format!("{prefix}{key}");
            match &entry.node.value {
                Value::Table(table) => table.collect_leaves(&format!("{path}."), into),
                _ => into.push((path, entry.key, &entry.node)),
            }
        }
    }

    /// Returns `true` if a value that was written at `place` is in this table, or in the tables and
    /// lists within.
    pub(super) fn has_value_of(&self, place: Place) -> bool {
        self.entries.values().any(|entry| entry.node.is_of(place))
    }

    /// Calls `found` with every text under the key `file` and its table, in this table and in the tables
    /// and lists within.
    pub(super) fn files(&self, found: &mut dyn FnMut(&str, &Self)) {
        for (key, entry) in &self.entries {
            match &entry.node.value {
                Value::Text(name) if key == "file" => found(name, self),
                value => value.files(found),
            }
        }
    }

    /// Puts a value at a dotted path: `topology.rate`, `workload.1.size`. A list of one table needs
    /// no number.
    pub(super) fn set(&mut self, path: &str, key: Place, node: Node) -> Result<(), String> {
        let depth = path.split('.').count();
        if depth > MAX_DEPTH {
            let path = shorten(path);
            return Err(format!(
                "`{path}` has {depth} names with points between them; a key has at most {MAX_DEPTH}"
            ));
        }
        set_in_table(self, path, path, key, node)
    }

    /// Adds another table's values; calls `conflict` with path and place if both have a value.
    pub(super) fn merge(
        &mut self,
        other: Self,
        prefix: &str,
        conflict: &mut dyn FnMut(&str, Place, Place),
    ) {
        for (key, entry) in other.entries {
            let path = format!("{prefix}{key}");
            let Some(mine) = self.entries.get_mut(&key) else {
                self.entries.insert(key, entry);
                continue;
            };
            match (&mut mine.node.value, entry.node.value) {
                (Value::Table(mine), Value::Table(theirs)) => {
                    mine.merge(theirs, &format!("{path}."), conflict);
                }
                _ => conflict(&path, entry.key, mine.key),
            }
        }
    }
}

fn set_in_table(
    table: &mut Table,
    whole: &str,
    path: &str,
    key: Place,
    node: Node,
) -> Result<(), String> {
    let (first, rest) = path.split_once('.').map_or((path, None), |(a, b)| (a, Some(b)));
    if first.is_empty() {
        return Err(format!("`{whole}` is not a key; write one like `topology.rate`"));
    }
    let Some(rest) = rest else {
        table.entries.insert(first.to_owned(), Entry { key, node });
        return Ok(());
    };
    let entry = table.entries.entry(first.to_owned()).or_insert_with(|| Entry {
        key,
        node: Node { value: Value::Table(Table::default()), place: key },
    });
    match &mut entry.node.value {
        Value::Table(inner) => set_in_table(inner, whole, rest, key, node),
        Value::List(list) => set_in_list(list, whole, rest, key, node),
        other => Err(format!("`{whole}` cannot be set: `{first}` is {}", other.describe())),
    }
}

fn set_in_list(
    list: &mut [Node],
    whole: &str,
    path: &str,
    key: Place,
    node: Node,
) -> Result<(), String> {
    let (first, rest) = path.split_once('.').map_or((path, ""), |(a, b)| (a, b));
    let count = list.len();
    let number = first.parse::<usize>().ok();
    let (index, rest) = match (number, count) {
        (Some(index), _) if index < count && !rest.is_empty() => (index, rest),
        (None, 1) => (0, path),
        _ => {
            return Err(format!(
                "`{whole}` cannot be set: there are {count} of these, numbered from 0; write the \
                 number before the key, like `workload.0.size`"
            ));
        }
    };
    match &mut list[index].value {
        Value::Table(inner) => set_in_table(inner, whole, rest, key, node),
        Value::List(inner) => set_in_list(inner, whole, rest, key, node),
        other => Err(format!("`{whole}` cannot be set inside {}", other.describe())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_too_many_names_is_refused() {
        let set = |names: usize| {
            let path = vec!["a"; names].join(".");
            Table::default().set(&path, Place::default(), Node::of(Value::Flag(true)))
        };
        assert_eq!(set(MAX_DEPTH), Ok(()));
        for names in [MAX_DEPTH + 1, 60_000] {
            let why = set(names).expect_err("too deep");
            assert!(why.contains(&format!("has {names} names")), "{why}");
            assert!(why.contains("at most 80") && why.len() < 200, "{why}");
        }
    }
}
