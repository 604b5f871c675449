//! A table and its columns.

/// A column of a table, or a number of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name in the header line, or its path in a summary's JSON.
    pub name: &'static str,
    /// Its unit; empty for counts, fractions and words.
    pub unit: &'static str,
    /// What it is, with its formula.
    pub definition: &'static str,
    /// What the value is taken over.
    pub reducer: &'static str,
}

/// A file of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name in the directory of results.
    pub file: &'static str,
    /// What a row is.
    pub row: &'static str,
    /// Its columns in order.
    pub columns: &'static [Column],
}

impl Table {
    /// The header line.
    #[must_use]
    pub fn header(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|column| column.name).collect();
        names.join(",") + "\n"
    }
}

/// A column, in the order in which its fields are.
pub(super) const fn number(
    name: &'static str,
    unit: &'static str,
    definition: &'static str,
    reducer: &'static str,
) -> Column {
    Column { name, unit, definition, reducer }
}

/// Scope of counts of the whole run.
pub(super) const WHOLE_RUN: &str = "sum over the whole run, warm-up included";

/// Definition of the age of unfinished ops.
pub(super) const OLDEST: &str = "age of the oldest unfinished op; 0 if there are none";
/// Definitions of the bounds of a distribution over ops.
pub(super) const LOWER: &str =
    "lower bound: the unfinished ops had ended with the run; `count` is of all ops";
pub(super) const UPPER: &str =
    "upper bound: the unfinished ops never end; null is unbounded; `count` is of all ops";

/// One list after another.
pub(super) const fn joined<const N: usize>(first: &[Column], second: &[Column]) -> [Column; N] {
    assert!(first.len() + second.len() == N, "N is the number of both together");
    let mut all = [first[0]; N];
    let mut at = 0;
    while at < N {
        all[at] = if at < first.len() { first[at] } else { second[at - first.len()] };
        at += 1;
    }
    all
}
