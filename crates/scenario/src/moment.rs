//! Times of a run that are set, or that an op's end decides: "25us", "last end of rpc".

use std::fmt::Write;

use apus_units::{Span, Time};

use super::declared::{Key, Kind, key};
use super::section::{Section, Setting};
use super::tree::Value;
use apus_sim::measure::{Moment, Which};

pub(super) const LEAD: Key = key(
    "lead",
    Kind::Time,
    "Time by which the end of an op is moved forward; whole intervals from there on count",
)
.or("0s");

/// A moment as a scenario writes it.
enum MomentText {
    At(Span),
    End(Which, String),
}

const ENDS: [(&str, Which); 2] = [("first end of ", Which::First), ("last end of ", Which::Last)];

impl Setting for MomentText {
    const KIND: &'static str =
        "a time with its unit, like \"25us\", or \"last end of \" and the name of a workload";

    fn read(value: &Value) -> Result<Self, Option<String>> {
        if let Value::Text(text) = value {
            for (words, op) in ENDS {
                if let Some(name) = text.strip_prefix(words) {
                    return Ok(Self::End(op, name.trim().to_owned()));
                }
            }
        }
        Span::read(value).map(Self::At)
    }
}

/// Reads the moments of one table.
pub(super) struct Moments<'a, 'b> {
    table: &'b Section<'a>,
    workloads: &'b [&'b str],
    lead: Option<Span>,
}

impl<'a, 'b> Moments<'a, 'b> {
    /// Creates a reader; `keys` are the keys of the table's moments.
    pub(super) fn new(
        table: &'b Section<'a>,
        workloads: &'b [&'b str],
        keys: &[&'static str],
    ) -> Self {
        let of_end = |key: &&'static str| {
            let node = table.node(key);
            node.is_some_and(|node| {
                matches!(MomentText::read(&node.value), Ok(MomentText::End(..)))
            })
        };
        if !keys.iter().any(of_end) {
            table.no_effect("lead", "without the end of a workload's op");
        }
        Self { table, workloads, lead: table.get("lead") }
    }

    /// Reads the moment of a key. The outer `None` means that an error was reported, the inner one
    /// that the key is absent.
    pub(super) fn read(&self, key: &'static str) -> Option<Option<Moment>> {
        if self.table.node(key).is_none() {
            return Some(None);
        }
        let (op, name) = match self.table.get(key)? {
            MomentText::At(at) => return Some(Some(Moment::At(Time::ZERO + at))),
            MomentText::End(op, name) => (op, name),
        };
        let found = self.workloads.iter().position(|known| *known == name);
        if found.is_none() {
            let hint = apus_units::suggestion(&name, self.workloads.iter().copied());
            let message = format_args!("names no workload with a `name`{hint}");
            self.table.problem(key, message);
        }
        let lead = self.lead.unwrap_or(Span::ZERO);
        Some(Some(Moment::End { workload: found? as u32, op, lead }))
    }
}

/// Returns the text of a moment in a scenario.
pub(super) fn write(moment: Moment, workloads: &[&str]) -> String {
    match moment {
        Moment::At(time) => time.since(Time::ZERO).to_string(),
        Moment::End { workload, op, .. } => {
            let words = ENDS.iter().find(|(_, one)| *one == op).map_or("", |(words, _)| words);
            format!("{words}{}", workloads[workload as usize])
        }
    }
}

/// Writes the `lead` that the moments of a table share, if they have one.
pub(super) fn write_lead(out: &mut String, moments: &[Moment]) -> std::fmt::Result {
    let lead = moments.iter().find_map(|moment| match moment {
        Moment::End { lead, .. } if !lead.is_zero() => Some(lead),
        _ => None,
    });
    lead.map_or(Ok(()), |lead| writeln!(out, "lead = \"{lead}\""))
}
