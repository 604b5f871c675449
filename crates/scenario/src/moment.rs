//! Times of a run that are fixed or determined by the end of an op: "25us", "last end of rpc".

use apus_units::{Span, Time};

use super::declared::{Key, Kind, key};
use super::section::{Section, Setting};
use super::tree::Value;
use apus_sim::measure::{Moment, Which};

pub(super) const LEAD: Key = key(
    "lead",
    Kind::Time,
    "Time that is subtracted from \"first end of NAME\" or \"last end of NAME\". Intervals count if they begin at or after the resulting start",
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

    fn value(&self) -> Value {
        match self {
            Self::At(at) => at.value(),
            Self::End(op, name) => {
                let words = ENDS.iter().find(|(_, one)| one == op).map_or("", |(words, _)| words);
                Value::Text(format!("{words}{name}"))
            }
        }
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

    /// Reads the moment of a key, which is `default` if the key is absent.
    pub(super) fn read(&self, key: &'static str, default: Span) -> Option<Moment> {
        let (op, name) = match self.table.get_or(key, MomentText::At(default)) {
            MomentText::At(at) => return Some(Moment::At(Time::ZERO + at)),
            MomentText::End(op, name) => (op, name),
        };
        let found = self.workloads.iter().position(|known| *known == name);
        if found.is_none() {
            let hint = apus_units::suggestion(&name, self.workloads.iter().copied());
            let message = format_args!("names no workload with a `name`{hint}");
            self.table.problem(key, message);
        }
        let lead = self.lead.unwrap_or(Span::ZERO);
        Some(Moment::End { workload: found? as u32, op, lead })
    }
}
