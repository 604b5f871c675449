//! Declarations of results. A field of a struct is declared with its definition and aggregation. Its name in
//! JSON, CSV and checks, its unit, its documentation and its position in the file follow from the
//! declaration.

use std::collections::BTreeMap;

use apus_units::Time;

use super::cell::{Cell, CellType, Value};
use super::metric::{fits, unit_of};

/// A column of a table, or a number of a summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name in the header line, or path in a summary's JSON.
    pub name: String,
    /// Unit, which the name states; empty for counts, fractions and words.
    pub unit: &'static str,
    /// Definition, with the formula.
    pub definition: String,
    /// Scope of the aggregation.
    pub aggregation: &'static str,
    /// Whether checks can name it.
    pub kind: Kind,
    /// Type of its values; `None` for lists, and for the numbers of distributions.
    pub cells: Option<CellType>,
    /// Whether a value may be missing.
    pub optional: bool,
}

impl Column {
    /// Returns `true` if the column stands for this name.
    #[must_use]
    pub fn explains(&self, name: &str) -> bool {
        fits(name, &self.name) || name == self.name
    }
}

/// Use of a result by checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No metric: words, lists, keys, and numbers that checks cannot name.
    Fact,
    /// Metric.
    Number,
    /// Metric that can be given in percent.
    Fraction,
}

/// A file of results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Name in the directory of results. A table in a format other than CSV has the extension of that format.
    pub file: &'static str,
    /// Meaning of a row.
    pub row: &'static str,
    /// Columns in order.
    pub columns: Vec<Column>,
}

impl Table {
    /// Returns the table that consists of rows of a type.
    #[must_use]
    pub fn of<R: Row>() -> Self {
        Self { file: R::FILE, row: R::MEANING.trim(), columns: Columns::of::<R>() }
    }

    /// Returns the name of the file without its extension.
    #[must_use]
    pub fn stem(&self) -> &'static str {
        self.file.split_once('.').map_or(self.file, |(stem, _)| stem)
    }

    /// Returns the names of the columns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.name.as_str())
    }
}

/// A struct whose fields are declared results.
pub trait Declared {
    /// Appends the columns of the fields.
    fn declare(to: &mut Columns);
}

impl<T: Declared> Declared for BTreeMap<String, T> {
    fn declare(to: &mut Columns) {
        T::declare(to);
    }
}

impl<T: Declared> Declared for Vec<T> {
    fn declare(to: &mut Columns) {
        T::declare(to);
    }
}

/// The cells of a row.
pub trait Cells {
    /// Passes the cells to `put` in the order of the columns.
    fn cells(&self, put: &mut dyn FnMut(Value<'_>));
}

/// Row of a table whose columns are known only at run time.
impl Cells for Vec<Value<'_>> {
    fn cells(&self, put: &mut dyn FnMut(Value<'_>)) {
        self.iter().for_each(|value| put(*value));
    }
}

/// A row of a table: a struct with one field per column.
pub trait Row: Declared + Cells {
    /// Name of the file.
    const FILE: &'static str;
    /// Meaning of a row.
    const MEANING: &'static str;
}

/// Columns while they are being collected.
#[derive(Debug, Default)]
pub struct Columns {
    /// Path of the struct whose fields are being declared.
    path: String,
    /// Start of the definitions of these fields.
    subject: &'static str,
    all: Vec<Column>,
}

impl Columns {
    /// Returns the columns of a declared struct.
    #[must_use]
    pub fn of<T: Declared + ?Sized>() -> Vec<Column> {
        let mut columns = Self::default();
        T::declare(&mut columns);
        columns.all
    }

    pub(crate) fn into_all(self) -> Vec<Column> {
        self.all
    }

    pub(crate) fn push(&mut self, kind: Kind, name: &str, doc: &str, aggregation: &'static str) {
        let name = format!("{}{name}", self.path);
        let definition = format!("{}{}", self.subject, doc.trim());
        let (unit, cells, optional) = (unit_of(&name), None, false);
        self.all.push(Column { unit, name, definition, aggregation, kind, cells, optional });
    }

    /// Appends a column whose values are of type `T`.
    fn typed<T: Cell>(&mut self, kind: Kind, name: &str, doc: &str, aggregation: &'static str) {
        self.push(kind, name, doc, aggregation);
        if let Some(column) = self.all.last_mut() {
            (column.cells, column.optional) = (Some(T::TYPE), T::OPTIONAL);
        }
    }

    /// Appends a column of a table whose cells are of type `T`.
    pub(crate) fn column<T: Cell>(&mut self, name: &str, doc: &str, aggregation: &'static str) {
        self.typed::<T>(Kind::Fact, name, doc, aggregation);
    }

    fn within(&mut self, path: &str, subject: &'static str, declare: fn(&mut Self)) {
        let outer = (self.path.clone(), self.subject);
        self.path += path;
        self.subject = subject;
        declare(self);
        (self.path, self.subject) = outer;
    }
}

/// Kinds of fields, as `summary!` names them. Each declares the columns of a field of type `T`.
#[allow(clippy::extra_unused_type_parameters, reason = "the macro passes the type to every kind")]
pub(crate) mod kind {
    use super::{Cell, Columns, Declared, Kind};

    const UNFINISHED: &str =
        "ops submitted in the measured phase that had not ended after the drain";
    const LOWER: &str =
        "lower bound, if unfinished ops ended at the end of the run; `count` includes these ops";
    const UPPER: &str =
        "upper bound, if no unfinished op ever ends; null if unbounded; `count` includes these ops";
    /// Definition of the age of unfinished ops.
    const OLDEST: &str = "age of the oldest unfinished op; 0 if there are none";

    /// Result that is not a metric.
    pub(crate) fn fact<T: Cell>(to: &mut Columns, name: &str, doc: &str, over: &'static str) {
        to.typed::<T>(Kind::Fact, name, doc, over);
    }

    /// List whose entries are no metrics.
    pub(crate) fn list<T>(to: &mut Columns, name: &str, doc: &str, over: &'static str) {
        to.push(Kind::Fact, name, doc, over);
    }

    /// Column of a table; `unit` is empty if the name states the unit.
    pub(crate) fn column<T: Cell>(
        to: &mut Columns,
        name: &str,
        doc: &str,
        over: &'static str,
        unit: &[&'static str],
    ) {
        to.column::<T>(name, doc, over);
        if let (Some(column), [unit]) = (to.all.last_mut(), unit) {
            column.unit = unit;
        }
    }

    /// Metric.
    pub(crate) fn number<T: Cell>(to: &mut Columns, name: &str, doc: &str, over: &'static str) {
        to.typed::<T>(Kind::Number, name, doc, over);
    }

    /// Metric that can be given in percent.
    pub(crate) fn fraction<T: Cell>(to: &mut Columns, name: &str, doc: &str, over: &'static str) {
        to.typed::<T>(Kind::Fraction, name, doc, over);
    }

    /// Distribution.
    pub(crate) fn stats<T>(to: &mut Columns, name: &str, doc: &str, over: &'static str) {
        to.push(Kind::Number, &format!("{name}.<stat>"), doc, over);
    }

    /// Distribution over ops: unfinished ops set bounds for its numbers.
    pub(crate) fn op_stats<T>(to: &mut Columns, name: &str, doc: &str, over: &'static str) {
        stats::<T>(to, name, doc, over);
        number::<u64>(to, &format!("{name}.unfinished"), UNFINISHED, over);
        number::<f64>(to, &format!("{name}.oldest_unfinished_us"), OLDEST, over);
        stats::<T>(to, &format!("{name}.lower"), LOWER, over);
        stats::<T>(to, &format!("{name}.upper"), UPPER, over);
    }

    /// Struct whose results have a path of their own and definitions that begin with `subject`.
    pub(crate) fn part<T: Declared>(
        to: &mut Columns,
        name: &str,
        _doc: &str,
        subject: &'static str,
    ) {
        to.within(&format!("{name}."), subject, T::declare);
    }

    /// Structs by `key`, a placeholder such as `<name>`.
    pub(crate) fn parts<T: Declared>(to: &mut Columns, name: &str, _doc: &str, key: &str) {
        to.within(&format!("{name}.{key}."), "", T::declare);
    }

    /// Struct whose results are those of the outer struct.
    pub(crate) fn flat<T: Declared>(to: &mut Columns, _name: &str, _doc: &str) {
        T::declare(to);
    }
}

/// Declares a part of a summary: a struct of public fields, each with its definition (the comment), its kind (a
/// function of [`kind`]) and its aggregation. Fields after `;` are no results.
macro_rules! summary {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $(
                $(#[doc = $doc:literal])+
                $(#[serde($($serde:tt)*)])?
                pub $field:ident: $type:ty = $kind:ident($($argument:expr),*),
            )*
            $(; $($(#[$other_meta:meta])* pub $other:ident: $other_type:ty,)*)?
        }
    ) => {
        $(#[$meta])*
        pub struct $name {
            $(
                $(#[doc = $doc])+
                $(#[serde($($serde)*)])?
                pub $field: $type,
            )*
            $($($(#[$other_meta])* pub $other: $other_type,)*)?
        }

        impl $crate::columns::Declared for $name {
            fn declare(to: &mut $crate::columns::Columns) {
                $($crate::columns::kind::$kind::<$type>(
                    to, stringify!($field), concat!($($doc),+) $(, $argument)*
                );)*
            }
        }
    };
}

/// Declares a row of a table: the file, and a struct of public fields, each with its definition (the comment),
/// its aggregation and, if the name does not state it, its unit. The comment of the struct is the meaning of a row.
/// Fields after `;` are no columns.
macro_rules! row {
    (
        $file:literal
        $(#[doc = $meaning:literal])+
        #[derive($($derive:tt)*)]
        pub struct $name:ident {
            $(
                $(#[doc = $doc:literal])+
                pub $field:ident: $type:ty = $over:expr $(=> $unit:literal)?,
            )*
            $(; $($others:tt)*)?
        }
    ) => {
        $crate::columns::summary! {
            $(#[doc = $meaning])+
            #[derive($($derive)*)]
            pub struct $name {
                $(
                    $(#[doc = $doc])+
                    pub $field: $type = column($over, &[$($unit)?]),
                )*
                $(; $($others)*)?
            }
        }

        impl $crate::columns::Row for $name {
            const FILE: &'static str = $file;
            const MEANING: &'static str = concat!($($meaning),+);
        }

        impl $crate::columns::Cells for $name {
            fn cells(&self, put: &mut dyn FnMut($crate::columns::Value<'_>)) {
                $(put($crate::columns::Cell::value(&self.$field));)*
            }
        }
    };
}

pub(crate) use {row, summary};

/// Returns a time of a run in microseconds.
pub(super) fn us(time: Time) -> f64 {
    time.as_ps() as f64 * 1e-6
}

/// Returns the rate of `bytes` in `seconds`, Gb/s; 0 if no time has passed.
#[must_use]
pub fn gbps(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 * 8e-9 / seconds } else { 0.0 }
}

/// Returns the share of `part` in `whole`; 0 if `whole` is 0.
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::{Cells, Columns, Kind, Table};
    use crate::columns::CellType;

    crate::columns::summary! {
        /// Example.
        #[allow(dead_code)]
        pub struct Inner {
            /// number of things,
            /// on two lines
            pub things: u64 = number("sum"),
            /// share of things
            pub share: f64 = fraction("mean"),
            ;
            /// Not a result.
            pub hidden: (),
        }
    }

    crate::columns::summary! {
        /// Example.
        #[allow(dead_code)]
        pub struct Outer {
            /// Not used.
            pub first: Inner = part("first: "),
            /// duration
            pub wait_us: () = op_stats("ops"),
            /// word
            pub word: &'static str = fact("-"),
        }
    }

    super::row! {
        "example.csv"
        /// One row per example.
        #[derive(Debug)]
        pub struct ExampleRow {
            /// its name
            pub name: String = "key column",
            /// its size
            pub size_bytes: Option<u64> = "-",
        }
    }

    #[test]
    fn a_field_of_a_summary_declares_path_unit_definition_and_kind() {
        let columns = Columns::of::<Outer>();
        let found: Vec<_> = columns
            .iter()
            .map(|c| (c.name.as_str(), c.unit, c.definition.as_str(), c.aggregation, c.kind))
            .collect();
        assert_eq!(
            found[..2],
            [
                ("first.things", "", "first: number of things, on two lines", "sum", Kind::Number),
                ("first.share", "", "first: share of things", "mean", Kind::Fraction),
            ]
        );
        assert_eq!(found[2], ("wait_us.<stat>", "us", "duration", "ops", Kind::Number));
        let names: Vec<&str> = found[3..].iter().map(|column| column.0).collect();
        let bounds = ["wait_us.lower.<stat>", "wait_us.upper.<stat>"];
        assert_eq!(names[..2], ["wait_us.unfinished", "wait_us.oldest_unfinished_us"]);
        assert_eq!(names[2..4], bounds);
        assert_eq!(found[7], ("word", "", "word", "-", Kind::Fact));
    }

    #[test]
    fn a_field_of_a_row_declares_column_and_cell() {
        let table = Table::of::<ExampleRow>();
        assert_eq!((table.file, table.row), ("example.csv", "One row per example."));
        assert_eq!(table.names().collect::<Vec<_>>(), ["name", "size_bytes"]);
        assert_eq!((table.stem(), table.columns[1].unit), ("example", "B"));
        let types: Vec<_> = table.columns.iter().map(|column| column.cells).collect();
        assert_eq!(types, [Some(CellType::Text), Some(CellType::Count)]);
        let row = ExampleRow { name: "a".to_owned(), size_bytes: None };
        let mut cells = Vec::new();
        row.cells(&mut |cell| cells.push(cell.to_string()));
        assert_eq!(cells, ["a", ""]);
    }
}
