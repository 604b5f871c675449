//! The effective configuration of a run: the values that the reader recorded, as a scenario.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::rc::Rc;

use apus_cc::{Origin, ParamKind, Parameter};

use super::algorithm::NamedAlgorithm;
use super::declared::Keys;
use super::format::FORMAT;
use super::keys::RUN;
use super::setup::Setup;
use super::tree::{Entry, Node, Table, Value};

/// The effective values of a table while it is read.
#[derive(Debug, Default)]
pub(super) struct Effective(RefCell<BTreeMap<&'static str, Recorded>>);

#[derive(Debug)]
enum Recorded {
    Value(Value),
    Table(Rc<Effective>),
    Tables(Vec<Rc<Effective>>),
}

impl Effective {
    /// Sets the value of a key.
    pub(super) fn set(&self, key: &'static str, value: Value) {
        self.0.borrow_mut().insert(key, Recorded::Value(value));
    }

    /// Removes a key.
    pub(super) fn remove(&self, key: &str) {
        self.0.borrow_mut().remove(key);
    }

    /// Adds a table, and returns it.
    pub(super) fn table(&self, key: &'static str) -> Rc<Self> {
        let table = Rc::default();
        self.0.borrow_mut().insert(key, Recorded::Table(Rc::clone(&table)));
        table
    }

    /// Adds a table to a list of tables, and returns it.
    pub(super) fn append(&self, key: &'static str) -> Rc<Self> {
        let table = Rc::default();
        match self.0.borrow_mut().entry(key).or_insert(Recorded::Tables(Vec::new())) {
            Recorded::Tables(tables) => tables.push(Rc::clone(&table)),
            other => *other = Recorded::Tables(vec![Rc::clone(&table)]),
        }
        table
    }

    /// Returns all values as a table of a scenario.
    pub(super) fn to_table(&self) -> Table {
        let entry = |(key, recorded): (&&str, &Recorded)| {
            let value = match recorded {
                Recorded::Value(value) => value.clone(),
                Recorded::Table(table) => Value::Table(table.to_table()),
                Recorded::Tables(tables) => {
                    let tables = tables.iter().map(|table| Value::Table(table.to_table()));
                    Value::List(tables.map(Node::of).collect())
                }
            };
            ((*key).to_owned(), Entry::of(value))
        };
        Table { entries: self.0.borrow().iter().map(entry).collect() }
    }
}

impl Setup {
    /// Returns a scenario with all settings of the run, which reads back to the same plan.
    #[must_use]
    pub fn to_toml(&self) -> String {
        self.write_toml(&self.effective, false)
    }

    /// Returns the text of [`Setup::to_toml`], with a comment at each parameter of an algorithm
    /// that follows from the network.
    #[must_use]
    pub fn to_annotated_toml(&self) -> String {
        self.write_toml(&self.effective, true)
    }

    /// Returns the run with `settings` in place of its own as a scenario.
    pub(super) fn write_toml(&self, settings: &Table, annotated: bool) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = self.write_all(&mut text, settings, annotated);
        text
    }

    fn write_all(&self, out: &mut String, settings: &Table, annotated: bool) -> fmt::Result {
        writeln!(out, "# The effective configuration of a run: every default resolved.")?;
        writeln!(out, "format_version = {FORMAT}\nname = \"{}\"\nseed = {}", self.name, self.seed)?;
        write_table(out, "", &RUN, settings)?;
        self.algorithms.iter().try_for_each(|named| write_algorithm(out, named, annotated))
    }
}

/// Writes the values of a table in the order of their declarations, then the tables within it.
fn write_table(out: &mut String, path: &str, keys: &Keys, table: &Table) -> fmt::Result {
    let mut below = Vec::new();
    let declared = keys.of_table(table).map(|key| (key.name, key.kind.keys()));
    let chosen = table.entries.keys().filter(|_| keys.others.is_some());
    for (name, keys) in declared.chain(chosen.map(|name| (name.as_str(), None))) {
        match (table.get(name).map(|node| &node.value), keys) {
            (None, _) => {}
            (Some(Value::Table(inner)), Some(keys)) => below.push((name, "[", "]", keys, inner)),
            (Some(Value::List(list)), Some(keys)) => {
                let tables = list.iter().filter_map(|node| match &node.value {
                    Value::Table(inner) => Some((name, "[[", "]]", keys, inner)),
                    _ => None,
                });
                below.extend(tables);
            }
            (Some(value), _) => writeln!(out, "{name} = {}", value.to_toml())?,
        }
    }
    for (name, open, close, keys, inner) in below {
        writeln!(out, "\n{open}{path}{name}{close}")?;
        write_table(out, &format!("{path}{name}."), keys, inner)?;
    }
    Ok(())
}

fn write_algorithm(out: &mut String, named: &NamedAlgorithm, annotated: bool) -> fmt::Result {
    let (label, config) = (&named.label, &named.config);
    let info = config.info();
    writeln!(out, "\n[algorithm.{label}]\nname = \"{}\"", info.name)?;
    writeln!(out, "profile = \"{}\"", config.profile())?;
    for Parameter { name, value, origin } in config.parameters() {
        let kind = info.parameters.iter().find(|p| p.name == *name).map(|p| p.kind);
        match (kind, value.parse::<f64>()) {
            (Some(ParamKind::Number), Ok(number)) => write!(out, "{name} = {number:?}")?,
            (Some(ParamKind::Count | ParamKind::Flag), _) => write!(out, "{name} = {value}")?,
            _ => write!(out, "{name} = \"{value}\"")?,
        }
        match origin {
            Origin::Derived(rule) if annotated => {
                writeln!(out, " # derived: {} ({})", rule.rule, rule.source)?;
            }
            _ => writeln!(out)?,
        }
    }
    Ok(())
}
