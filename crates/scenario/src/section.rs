//! Reads a table of settings. The reader requests each key; keys that were never requested are unknown. Every
//! value that is read, and every default in place of a missing value, is recorded. The records form the
//! effective configuration.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::rc::Rc;

use apus_units::{Bytes, Rate, Span, suggestion};

use super::declared::{Amount, Key, Keys};
use super::effective::Effective;
use super::source::{Place, Problems};
use super::tree::{Node, Table, Value};

/// A table of a scenario, the keys that were requested, and their effective values.
pub(super) struct Section<'a> {
    table: &'a Table,
    keys: &'static Keys,
    path: String,
    place: Place,
    requested: RefCell<Vec<&'static str>>,
    effective: Rc<Effective>,
    problems: &'a Problems,
}

/// A type that the value of a setting can be read as.
pub(super) trait Setting: Sized {
    /// Description and example, for messages: "a time like \"25us\"".
    const KIND: &'static str;

    /// Reads a value. The error contains the mistake in a value of the right type, or `None` if the
    /// type is wrong.
    fn read(value: &Value) -> Result<Self, Option<String>>;

    /// Returns the value that reads back to this one.
    fn value(&self) -> Value;

    /// Returns the value in the base unit of its kind, for comparison with a range.
    fn amount(&self) -> Amount {
        Amount::None
    }
}

macro_rules! quantities {
    ($($type:ty: $kind:literal, $most:expr, $base:expr;)+) => { $(
        impl Setting for $type {
            const KIND: &'static str = $kind;

            fn read(value: &Value) -> Result<Self, Option<String>> {
                let Value::Text(text) = value else { return Err(None) };
                let read: Self = text
                    .parse()
                    .map_err(|error: apus_units::ParseQuantityError| Some(error.to_string()))?;
                within(read, $most)
            }

            fn value(&self) -> Value {
                Value::Text(self.to_string())
            }

            fn amount(&self) -> Amount {
                Amount::Whole($base(*self))
            }
        }
    )+ };
}

quantities! {
    Span: "a time with its unit, like \"25us\"", MAX_TIME, Span::as_ps;
    Rate: "a rate with its unit, like \"100Gbps\"", MAX_RATE, Rate::as_bps;
    Bytes: "a size with its unit, like \"64KiB\"", MAX_SIZE, Bytes::get;
}

/// Longest time of a scenario. Rationale: the longest run, which no other time exceeds.
pub(super) const MAX_TIME: Span = Span::from_secs(86_400);
/// Highest rate of a scenario. Rationale: about 60 times the fastest Ethernet (1.6 Tb/s, IEEE 802.3dj).
pub(super) const MAX_RATE: Rate = Rate::from_gbps(100_000);
/// Largest size of a scenario. Rationale: more than 10 s of a 800 Gb/s link; no op and no switch
/// memory is larger.
pub(super) const MAX_SIZE: Bytes = Bytes::new(1 << 40);
/// Longest delay of a link or a host. Rationale: light in fibre circles the Earth five times in 1 s.
pub(super) const MAX_DELAY: Span = Span::from_secs(1);

/// Returns `value` unless it is above `most`.
fn within<T: PartialOrd + Display>(value: T, most: T) -> Result<T, Option<String>> {
    if value <= most {
        return Ok(value);
    }
    Err(Some(format!("it must be at most {most}, but it is {value}")))
}

impl Setting for u64 {
    const KIND: &'static str = "a whole number without quotes, like 10";

    fn read(value: &Value) -> Result<Self, Option<String>> {
        match value {
            Value::Integer(n) => {
                Self::try_from(*n).map_err(|_| Some(format!("it is {n}, which is below 0")))
            }
            _ => Err(None),
        }
    }

    fn value(&self) -> Value {
        // Every number of a scenario is at most `i64::MAX`.
        Value::Integer(*self as i64)
    }

    fn amount(&self) -> Amount {
        Amount::Whole(*self)
    }
}

impl Setting for u32 {
    const KIND: &'static str = u64::KIND;

    fn read(value: &Value) -> Result<Self, Option<String>> {
        let wide = u64::read(value)?;
        Self::try_from(wide).map_err(|_| Some(format!("{wide} is larger than {}", Self::MAX)))
    }

    fn value(&self) -> Value {
        Value::Integer((*self).into())
    }

    fn amount(&self) -> Amount {
        Amount::Whole((*self).into())
    }
}

impl Setting for f64 {
    const KIND: &'static str = "a number without quotes, like 0.5";

    fn read(value: &Value) -> Result<Self, Option<String>> {
        match value {
            Value::Integer(n) => Ok(*n as Self),
            Value::Float(x) if x.is_finite() => Ok(*x),
            Value::Float(x) => Err(Some(format!("it is {x}, which is not a finite number"))),
            _ => Err(None),
        }
    }

    fn value(&self) -> Value {
        Value::Float(*self)
    }

    fn amount(&self) -> Amount {
        Amount::Number(*self)
    }
}

impl Setting for bool {
    const KIND: &'static str = "true or false, without quotes";

    fn read(value: &Value) -> Result<Self, Option<String>> {
        match value {
            Value::Flag(flag) => Ok(*flag),
            _ => Err(None),
        }
    }

    fn value(&self) -> Value {
        Value::Flag(*self)
    }
}

impl Setting for Vec<String> {
    const KIND: &'static str = "a list of texts, like [\"left\"]";

    fn read(value: &Value) -> Result<Self, Option<String>> {
        match value {
            Value::List(list) if list.is_empty() => {
                Err(Some("the list is empty; name at least one, or remove the key".to_owned()))
            }
            Value::List(list) => list.iter().map(|node| String::read(&node.value)).collect(),
            _ => Err(None),
        }
    }

    fn value(&self) -> Value {
        list_of(self)
    }
}

/// Returns the list of these values.
pub(super) fn list_of<T: Setting>(values: &[T]) -> Value {
    Value::List(values.iter().map(|value| Node::of(value.value())).collect())
}

impl Setting for String {
    const KIND: &'static str = "a text in quotes";

    fn read(value: &Value) -> Result<Self, Option<String>> {
        match value {
            Value::Text(text) => Ok(text.clone()),
            _ => Err(None),
        }
    }

    fn value(&self) -> Value {
        Value::Text(self.clone())
    }
}

/// The table that replaces one that is not given.
static EMPTY: Table = Table { entries: BTreeMap::new() };

impl<'a> Section<'a> {
    pub(super) fn new(
        table: &'a Table,
        keys: &'static Keys,
        path: impl Into<String>,
        place: Place,
        problems: &'a Problems,
    ) -> Self {
        let (path, requested) = (path.into(), RefCell::default());
        Self { table, keys, path, place, requested, effective: Rc::default(), problems }
    }

    /// Returns the effective values of the keys read so far.
    pub(super) fn effective(&self) -> &Rc<Effective> {
        &self.effective
    }

    /// Returns the table itself.
    pub(super) fn table(&self) -> &'a Table {
        self.table
    }

    pub(super) fn place(&self) -> Place {
        self.place
    }

    /// Returns all keys of the table, requested or not.
    pub(super) fn keys(&self) -> impl Iterator<Item = &'a str> {
        self.table.entries.keys().map(String::as_str)
    }

    /// Returns the name by which messages mention a key.
    pub(super) fn name(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Requests a key of any type.
    pub(super) fn node(&self, key: &'static str) -> Option<&'a Node> {
        self.mark_requested(key);
        self.table.get(key)
    }

    /// Returns the declaration of a key; every requested key has one.
    fn declaration(&self, key: &str) -> Option<&'static Key> {
        let found = self.keys.find(key, self.table);
        debug_assert!(found.is_some(), "`{}` is not declared", self.name(key));
        found
    }

    fn mark_requested(&self, key: &'static str) {
        self.declaration(key);
        let mut requested = self.requested.borrow_mut();
        if !requested.contains(&key) {
            requested.push(key);
        }
    }

    /// Requests a key that may be absent.
    pub(super) fn get<T: Setting>(&self, key: &'static str) -> Option<T> {
        let value: T = self.peek(key)?;
        self.record(key, value.value());
        Some(value)
    }

    /// Requests a key that may be absent and has no effective value of its own, because it determines other
    /// settings.
    pub(super) fn peek<T: Setting>(&self, key: &'static str) -> Option<T> {
        self.read_node(key, self.node(key)?)
    }

    /// Sets the effective value of a key.
    pub(super) fn record(&self, key: &'static str, value: Value) {
        self.effective.set(key, value);
    }

    /// Requests a key that may be absent and then has the value `default`.
    pub(super) fn get_or<T: Setting>(&self, key: &'static str, default: T) -> T {
        let value = self.peek(key).unwrap_or(default);
        self.record(key, value.value());
        value
    }

    /// Requests a key that may be absent and then has its declared default.
    pub(super) fn get_or_default<T: Setting>(&self, key: &'static str) -> T {
        let default = || {
            let default = self.declaration(key).and_then(Key::default_value);
            default.and_then(|value| T::read(&value).ok())
        };
        match default() {
            Some(default) => self.get_or(key, default),
            None => unreachable!("`{}` has no default of its type", self.name(key)),
        }
    }

    /// Requests a key that must be present.
    pub(super) fn require<T: Setting>(&self, key: &'static str) -> Option<T> {
        if self.table.get(key).is_none() {
            self.mark_requested(key);
            self.missing(key, T::KIND);
            return None;
        }
        self.get(key)
    }

    /// Reports that a key is missing.
    pub(super) fn missing(&self, key: &str, kind: &str) {
        self.problems.add(self.place, format!("`{}` is missing; it is {kind}", self.name(key)));
    }

    /// Reads a node that belongs to `key` and must be in the range of the key.
    pub(super) fn read_node<T: Setting>(&self, key: &str, node: &Node) -> Option<T> {
        let must = match T::read(&node.value) {
            Ok(value) => {
                let key = self.keys.find(key, self.table);
                let Some(key) = key.filter(|key| !key.range.holds(value.amount())) else {
                    return Some(value);
                };
                let range = key.range.words(&key.kind).unwrap_or_default();
                format!(" must be {range}, but it is {}", node.value.text())
            }
            Err(Some(why)) => format!(": {why}"),
            Err(None) => format!(" must be {}, not {}", T::KIND, node.value.describe()),
        };
        self.problems.add(node.place, format!("`{}`{must}", self.name(key)));
        None
    }

    /// Requests a key whose value is one of its declared words; by default the first one.
    pub(super) fn word(&self, key: &'static str) -> Option<&'static str> {
        self.one_of(key, self.declaration(key)?.words())
    }

    /// Requests a key whose words have these meanings; by default the first one.
    pub(super) fn meaning<T: Copy>(
        &self,
        key: &'static str,
        meanings: &[(&'static str, T)],
    ) -> Option<T> {
        let word = self.word(key)?;
        meanings.iter().find(|(known, _)| *known == word).map(|(_, meaning)| *meaning)
    }

    /// Requests the `kind` of a table, which must be present; returns its index among the declared
    /// kinds.
    pub(super) fn kind(&self) -> Option<usize> {
        let names: Vec<&'static str> = self.keys.kinds.iter().map(|kind| kind.name).collect();
        if self.node("kind").is_none() {
            let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
            self.missing("kind", &format!("one of {}", quoted.join(", ")));
            return None;
        }
        let word = self.one_of("kind", &names)?;
        names.iter().position(|name| *name == word)
    }

    /// Returns `true` if the `kind` of the table is one of the declared kinds.
    pub(super) fn has_kind(&self) -> bool {
        let Some(Value::Text(word)) = self.table.get("kind").map(|node| &node.value) else {
            return false;
        };
        self.keys.kinds.iter().any(|kind| kind.name == word)
    }

    /// Requests a key whose value is one of `words`, a part of its declared words; by default the first one.
    pub(super) fn one_of(&self, key: &'static str, words: &[&'static str]) -> Option<&'static str> {
        let found = match self.node(key) {
            None => words.first().copied(),
            Some(node) => {
                let word: String = self.read_node(key, node)?;
                let found = words.iter().find(|known| **known == word).copied();
                if found.is_none() {
                    let hint = suggestion(&word, words.iter().copied());
                    self.problem(key, format_args!("cannot be \"{word}\"{hint}"));
                }
                found
            }
        }?;
        self.record(key, Value::Text(found.to_owned()));
        Some(found)
    }

    /// Requests a table within this one.
    pub(super) fn section(&self, key: &'static str) -> Option<Section<'a>> {
        self.mark_requested(key);
        let entry = self.table.entries.get(key)?;
        match &entry.node.value {
            Value::Table(table) => self.child(key, table, entry.key),
            other => {
                let (name, other) = (self.name(key), other.describe());
                let message = format!("`{name}` must be a table like `[{name}]`, not {other}");
                self.problems.add(entry.node.place, message);
                None
            }
        }
    }

    /// Requests a table within this one; an empty one if it is not given.
    pub(super) fn section_or_empty(&self, key: &'static str) -> Option<Section<'a>> {
        self.section(key).or_else(|| self.child(key, &EMPTY, self.place))
    }

    fn child(&self, key: &'static str, table: &'a Table, place: Place) -> Option<Section<'a>> {
        let keys = self.declaration(key)?.kind.keys()?;
        let effective = self.effective.table(key);
        let section = Section::new(table, keys, self.name(key), place, self.problems);
        Some(Section { effective, ..section })
    }

    /// Requests the tables of a list: `[[workload]]`.
    pub(super) fn sections(&self, key: &'static str) -> Vec<Section<'a>> {
        let Some(node) = self.node(key) else { return Vec::new() };
        let name = self.name(key);
        let Value::List(list) = &node.value else {
            let other = node.value.describe();
            let message = format!("`{name}` must be tables like `[[{name}]]`, not {other}");
            self.problems.add(node.place, message);
            return Vec::new();
        };
        if list.is_empty() {
            let message =
                format!("`{name}` is an empty list; add a table `[[{name}]]`, or remove the key");
            self.problems.add(node.place, message);
        }
        let keys = self.declaration(key).and_then(|key| key.kind.keys());
        let Some(keys) = keys else { return Vec::new() };
        let mut sections = Vec::new();
        for element in list {
            match &element.value {
                Value::Table(table) => {
                    let section =
                        Section::new(table, keys, name.clone(), element.place, self.problems);
                    sections.push(Section { effective: self.effective.append(key), ..section });
                }
                other => {
                    let message =
                        format!("`{name}` must be tables `[[{name}]]`, not {}", other.describe());
                    self.problems.add(element.place, message);
                }
            }
        }
        sections
    }

    /// Requests a text that is in a `file` or under a separate key. Returns the key, a name of the text for
    /// messages, and the text.
    pub(super) fn text_or_file(
        &self,
        key: &'static str,
        kind: &str,
    ) -> Option<(&'static str, String, String)> {
        if self.node("file").is_none() {
            if self.node(key).is_none() {
                self.missing("file", &format!("the name of a file ({kind}), or `{key}` its text"));
                return None;
            }
            return Some((key, format!("`{}` line ", self.name(key)), self.peek(key)?));
        }
        self.no_effect(key, "with a `file`");
        let file: String = self.peek("file")?;
        match self.problems.file(&file) {
            Ok(text) => Some(("file", format!("{file}:"), text)),
            Err(why) => {
                self.problem("file", format_args!("cannot be used: {why}"));
                None
            }
        }
    }

    /// Reports a problem at the value of `key`, or at the table if the key is absent. The key may be in an
    /// inner table, like `host.model`.
    pub(super) fn problem(&self, key: &str, message: impl Display) {
        let (mut place, mut table) = (self.place, Some(self.table));
        for key in key.split('.') {
            let Some(node) = table.and_then(|table| table.get(key)) else { break };
            place = node.place;
            table = if let Value::Table(table) = &node.value { Some(table) } else { None };
        }
        self.problems.add(place, format!("`{}` {message}", self.name(key)));
    }

    /// Reports a problem at the value of `key` unless `holds`.
    pub(super) fn check(&self, holds: bool, key: &str, message: impl Display) {
        if !holds {
            self.problem(key, message);
        }
    }

    /// Reports that `key` has no effect, if it is set.
    pub(super) fn no_effect(&self, key: &'static str, why: &str) {
        if self.node(key).is_some() {
            self.problem(key, format!("has no effect {why}; remove it"));
        }
    }

    /// Ends the reading: keys that were not requested are unknown.
    pub(super) fn finish(self) {
        let requested = self.requested.borrow();
        for (key, entry) in &self.table.entries {
            if !requested.contains(&key.as_str()) {
                let hint = suggestion(key, requested.iter().copied());
                let name = self.name(key);
                self.problems.add(entry.key, format!("unknown key `{name}`{hint}"));
            }
        }
    }
}
