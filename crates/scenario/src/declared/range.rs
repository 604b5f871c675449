//! Ranges of values, which the reader checks, and the reference page and the JSON Schema state.

use serde_json::{Map, Value, json};

use super::Kind;

/// The range of a key's values, ends included. Numbers are in the base unit of the kind: picoseconds,
/// bit/s, bytes, parts per billion.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Range {
    /// Every value of the kind.
    Any,
    /// From one whole number to another; `u64::MAX` is no limit.
    Whole(u64, u64),
    /// From one number to another.
    Number(f64, f64),
    /// Above one number, at most the other.
    Above(f64, f64),
}

/// A value in the base unit of its kind.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Amount {
    /// Neither a number nor a quantity.
    None,
    /// A quantity or a whole number.
    Whole(u64),
    /// A number.
    Number(f64),
}

impl Range {
    /// Returns `true` unless the value is outside.
    pub(crate) fn holds(self, amount: Amount) -> bool {
        match (self, amount) {
            (Self::Whole(low, high), Amount::Whole(n)) => (low..=high).contains(&n),
            (Self::Number(low, high), Amount::Number(x)) => (low..=high).contains(&x),
            (Self::Above(low, high), Amount::Number(x)) => x > low && x <= high,
            (Self::Any | Self::Whole(..) | Self::Number(..) | Self::Above(..), _) => true,
        }
    }

    /// Returns the range in words, like "from 1 to 128"; `None` if there is no limit.
    pub(crate) fn words(self, kind: &Kind) -> Option<String> {
        let time = matches!(kind, Kind::Time);
        let text = |n| kind.amount_text(n);
        Some(match self {
            Self::Any => return None,
            Self::Whole(1, u64::MAX) if time => "above 0".to_owned(),
            Self::Whole(1, high) if time => format!("above 0 and at most {}", text(high)),
            Self::Whole(low, u64::MAX) => format!("at least {}", text(low)),
            Self::Whole(0, high) => format!("at most {}", text(high)),
            Self::Whole(low, high) => format!("from {} to {}", text(low), text(high)),
            Self::Number(low, high) => format!("from {low} to {high}"),
            Self::Above(low, high) => format!("above {low} and at most {high}"),
        })
    }

    /// Returns the limits of a number as a JSON Schema states them.
    pub(crate) fn schema(self) -> Map<String, Value> {
        let limits = match self {
            Self::Any => json!({}),
            Self::Whole(low, u64::MAX) => json!({ "minimum": low }),
            Self::Whole(low, high) => json!({ "minimum": low, "maximum": high }),
            Self::Number(low, high) => json!({ "minimum": low, "maximum": high }),
            Self::Above(low, high) => json!({ "exclusiveMinimum": low, "maximum": high }),
        };
        limits.as_object().cloned().unwrap_or_default()
    }
}
