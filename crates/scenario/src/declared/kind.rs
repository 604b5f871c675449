//! Kinds of values.

use apus_units::{Bytes, Rate, Span};

use super::Keys;

/// The kind of a key's value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// A time with its unit.
    Time,
    /// A rate with its unit.
    Rate,
    /// A size with its unit.
    Size,
    /// A size with its unit, or "unlimited".
    SizeOrUnlimited,
    /// A frequency error in ppm or ppb.
    Drift,
    /// A whole number from 0.
    Count,
    /// A number.
    Number,
    /// `true` or `false`.
    Flag,
    /// Any text.
    Text,
    /// One of the listed words.
    Word(&'static [&'static str]),
    /// The `kind` of its table.
    Discriminant,
    /// Texts.
    Texts,
    /// A text or a list of texts.
    TextOrTexts,
    /// A number of hosts (the first ones) or a list of hosts.
    Hosts,
    /// A host or a list of hosts.
    HostOrHosts,
    /// A time, or the end of an op of a workload.
    Moment,
    /// A time, rate, size or share, by the quantity of the table.
    Threshold,
    /// A scalar value of any type.
    Value,
    /// A list of scalar values.
    Values,
    /// Settings by dotted key.
    Settings,
    /// A table.
    Table(&'static Keys),
    /// A table, or a text in its place.
    TextOrTable(&'static Keys),
    /// A list of tables.
    Tables(&'static Keys),
    /// The table of one algorithm, or a table of such tables.
    Algorithms,
}

impl Kind {
    /// Returns the keys of the table, or of each table of the list.
    pub(crate) fn keys(&self) -> Option<&'static Keys> {
        match self {
            Self::Table(keys) | Self::TextOrTable(keys) | Self::Tables(keys) => Some(keys),
            _ => None,
        }
    }

    /// Returns a number of base units as a scenario writes it.
    pub(crate) fn amount_text(&self, n: u64) -> String {
        match self {
            Self::Time => Span::from_ps(n).to_string(),
            Self::Rate => Rate::from_bps(n).to_string(),
            Self::Size | Self::SizeOrUnlimited => Bytes::new(n).to_string(),
            Self::Drift => format!("{}ppm", n / 1_000),
            _ => n.to_string(),
        }
    }

    /// Returns the description of the kind, in words.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Time => "time".to_owned(),
            Self::Rate => "rate".to_owned(),
            Self::Size => "size".to_owned(),
            Self::SizeOrUnlimited => "size or \"unlimited\"".to_owned(),
            Self::Drift => "ppm or ppb".to_owned(),
            Self::Count => "whole number".to_owned(),
            Self::Number => "number".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Text => "text".to_owned(),
            Self::Word(words) => {
                let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
                quoted.join(", ")
            }
            Self::Discriminant => "kind, see below".to_owned(),
            Self::Texts => "list of texts".to_owned(),
            Self::TextOrTexts => "text or list of texts".to_owned(),
            Self::Hosts => "number or list of hosts".to_owned(),
            Self::HostOrHosts => "host or list of hosts".to_owned(),
            Self::Moment => {
                "time, \"first end of NAME\" or \"last end of NAME\" (of a workload's ops)"
                    .to_owned()
            }
            Self::Threshold => "time, rate, size or number".to_owned(),
            Self::Value => "value".to_owned(),
            Self::Values => "list of values".to_owned(),
            Self::Settings => "table of settings by dotted key".to_owned(),
            Self::Table(_) | Self::Algorithms => "table".to_owned(),
            Self::TextOrTable(_) => "text or table".to_owned(),
            Self::Tables(_) => "list of tables".to_owned(),
        }
    }
}
