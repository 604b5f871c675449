//! The keys of scenarios, each declared once with name, kind of value, range, default and meaning. The reader
//! refuses undeclared keys and values outside the range. The effective configuration, the reference page and
//! the JSON Schema are generated from the declarations. Each declaration is in the file that reads its table.

mod explain;
mod kind;
mod listing;
mod range;
mod reference;
mod schema;
#[cfg(test)]
mod tests;

use super::tree::{Table, Value};

pub(super) use explain::{explain, paths};
pub(super) use kind::Kind;
pub(super) use listing::listing;
pub(super) use range::{Amount, Range};
pub(super) use reference::reference;
pub(super) use schema::schema;

/// The keys of one table.
#[derive(Debug)]
pub(super) struct Keys {
    /// The keys that every such table may have.
    pub(super) own: &'static [Key],
    /// For a table with a `kind`: the kinds, each with further keys.
    pub(super) kinds: &'static [KindKeys],
    /// Kind of the values under names that the scenario chooses.
    pub(super) others: Option<Kind>,
}

/// A word for the key `kind` of a table, and the keys of that kind.
#[derive(Clone, Copy, Debug)]
pub struct KindKeys {
    /// The word.
    pub name: &'static str,
    /// Meaning of the word.
    pub doc: &'static str,
    /// The keys of a table of this kind, in addition to those of all kinds.
    pub(super) keys: &'static [Key],
}

/// A key of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// The value as a scenario writes it, without quotes; empty if there is no default.
    pub(super) default: &'static str,
    pub(super) range: Range,
    pub(super) doc: &'static str,
}

/// Returns the words of a table of words and their meanings.
pub(super) const fn words_of<T, const N: usize>(
    table: &[(&'static str, T); N],
) -> [&'static str; N] {
    let mut words = [""; N];
    let mut index = 0;
    while index < N {
        words[index] = table[index].0;
        index += 1;
    }
    words
}

/// Declares a key.
pub(super) const fn key(name: &'static str, kind: Kind, doc: &'static str) -> Key {
    Key { name, kind, default: "", range: Range::Any, doc }
}

impl Key {
    /// Returns the key with this default.
    pub(super) const fn or(self, default: &'static str) -> Self {
        Self { default, ..self }
    }

    /// Returns the key with values from `low` to `high` in base units.
    pub(super) const fn within(self, low: u64, high: u64) -> Self {
        Self { range: Range::Whole(low, high), ..self }
    }

    /// Returns the key with values from `low` upwards, in base units.
    pub(super) const fn at_least(self, low: u64) -> Self {
        self.within(low, u64::MAX)
    }

    /// Returns the key with values up to `high` in base units.
    pub(super) const fn at_most(self, high: u64) -> Self {
        self.within(0, high)
    }

    /// Returns the key with numbers from `low` to `high`.
    pub(super) const fn between(self, low: f64, high: f64) -> Self {
        Self { range: Range::Number(low, high), ..self }
    }

    /// Returns the key with numbers above 0 and at most `high`.
    pub(super) const fn above_0_to(self, high: f64) -> Self {
        Self { range: Range::Above(0.0, high), ..self }
    }

    /// Returns the words that the value of the key can be; empty for keys of another kind.
    pub(super) fn words(&self) -> &'static [&'static str] {
        match self.kind {
            Kind::Word(words) => words,
            _ => &[],
        }
    }

    /// Returns the default as a value of a scenario.
    pub(super) fn default_value(&self) -> Option<Value> {
        (!self.default.is_empty()).then(|| match self.kind {
            Kind::Count | Kind::Number => match self.default.parse() {
                Ok(integer) => Value::Integer(integer),
                Err(_) => Value::Float(self.default.parse().unwrap_or(f64::NAN)),
            },
            Kind::Flag => Value::Flag(self.default == "true"),
            _ => Value::Text(self.default.to_owned()),
        })
    }
}

impl Keys {
    /// The keys of a table without a `kind`.
    pub(super) const fn of(own: &'static [Key]) -> Self {
        Self { own, kinds: &[], others: None }
    }

    /// Declares a table with names that the scenario chooses, for values of one kind.
    pub(super) const fn named(kind: Kind) -> Self {
        Self { own: &[], kinds: &[], others: Some(kind) }
    }

    /// Returns the keys that `table` may have: its own keys, and those of its kind. A table without one of the
    /// declared kinds has the keys of all kinds.
    pub(super) fn of_table(&self, table: &Table) -> impl Iterator<Item = &'static Key> {
        let word = match table.get("kind").map(|node| &node.value) {
            Some(Value::Text(word)) => self.kinds.iter().position(|kind| kind.name == word),
            _ => None,
        };
        let kinds = word.map_or(self.kinds, |index| &self.kinds[index..=index]);
        self.own.iter().chain(kinds.iter().flat_map(|kind| kind.keys))
    }

    /// Returns the declaration of a key of `table`, or the declaration of that key in another kind.
    pub(super) fn find(&self, name: &str, table: &Table) -> Option<&'static Key> {
        let of_kinds = self.kinds.iter().flat_map(|kind| kind.keys);
        self.of_table(table).chain(of_kinds).find(|key| key.name == name)
    }
}
