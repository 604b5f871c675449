//! Values of the cells of tables: their types, and their text in CSV.

use std::fmt;

/// Type of the cells of a column. Every cell may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellType {
    /// Yes or no.
    Flag,
    /// Whole number that is not negative.
    Count,
    /// Number.
    Number,
    /// Name or other text.
    Text,
}

/// Value of a cell. Its text is that of CSV: a flag is 1 or 0, a number has up to six decimals and no trailing
/// zeros, and a missing value is empty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// There is no value.
    Missing,
    /// Yes or no.
    Flag(bool),
    /// Whole number.
    Count(u64),
    /// Number; one that is not finite is a missing value.
    Number(f64),
    /// Text.
    Text(&'a str),
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => Ok(()),
            Self::Flag(flag) => write!(f, "{}", u8::from(*flag)),
            Self::Count(count) => write!(f, "{count}"),
            Self::Number(number) if !number.is_finite() => Ok(()),
            Self::Number(number) => {
                let text = format!("{number:.6}");
                f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
            }
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// A type of values of cells.
pub trait Cell {
    /// Its type in tables.
    const TYPE: CellType;
    /// Whether it may be missing.
    const OPTIONAL: bool = false;

    /// Returns the value of the cell.
    fn value(&self) -> Value<'_>;
}

macro_rules! cells {
    ($($type:ty: $cell:ident, $self:ident => $value:expr;)*) => {
        $(impl Cell for $type {
            const TYPE: CellType = CellType::$cell;

            fn value(&$self) -> Value<'_> {
                Value::$cell($value)
            }
        })*
    };
}

cells! {
    bool: Flag, self => *self;
    u32: Count, self => u64::from(*self);
    u64: Count, self => *self;
    f64: Number, self => *self;
    String: Text, self => self;
    &'static str: Text, self => self;
}

/// `None` is a missing value.
impl<T: Cell> Cell for Option<T> {
    const TYPE: CellType = T::TYPE;
    const OPTIONAL: bool = true;

    fn value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Missing, T::value)
    }
}

#[cfg(test)]
mod tests {
    use super::{Cell, Value};

    #[test]
    fn numbers_have_up_to_six_decimals_without_trailing_zeros() {
        let numbers = [12.5, 100.0, 0.001, 1e-9, f64::NAN, 0.0, f64::INFINITY];
        let shown = numbers.map(|number| number.value().to_string());
        assert_eq!(shown, ["12.5", "100", "0.001", "0", "", "0", ""]);
    }

    #[test]
    fn a_missing_value_has_no_text_and_a_flag_is_a_digit() {
        let values = [None::<u64>.value(), Some(7u32).value(), true.value(), Value::Text("a")];
        assert_eq!(values.map(|value| value.to_string()), ["", "7", "1", "a"]);
    }
}
