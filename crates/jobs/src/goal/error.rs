//! Errors of GOAL files.

use alloc::string::{String, ToString};
use core::fmt;

use thiserror::Error;

use crate::graph::{GraphError, Prefix};

/// Position in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Line of a text, from 1.
    Line(u64),
    /// Byte of a binary file, from 0.
    Offset(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Offset(offset) => write!(f, "offset {offset}"),
        }
    }
}

/// Reason why bytes are not a GOAL file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoalError {
    /// Position of the error.
    pub place: Place,
    /// Rank that is read at this position.
    pub rank: Option<u32>,
    /// Operation that is read at this position.
    pub op: Option<u32>,
    /// Description of the mistake, and a valid form.
    pub what: String,
}

impl fmt::Display for GoalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}{}", self.place, Prefix(self.rank, self.op), self.what)
    }
}

impl core::error::Error for GoalError {}

impl GoalError {
    /// Returns rank, operation and mistake, without the position.
    #[must_use]
    pub fn detail(&self) -> String {
        alloc::format!("{}{}", Prefix(self.rank, self.op), self.what)
    }
}

/// A mistake, without its position.
#[derive(Debug)]
pub(super) enum Wrong {
    Text(String),
    Graph(GraphError),
}

impl From<String> for Wrong {
    fn from(what: String) -> Self {
        Self::Text(what)
    }
}

impl From<&str> for Wrong {
    fn from(what: &str) -> Self {
        Self::Text(what.to_string())
    }
}

impl From<GraphError> for Wrong {
    fn from(error: GraphError) -> Self {
        Self::Graph(error)
    }
}

impl Wrong {
    /// Adds the position and the rank that is read there.
    pub(super) fn at(self, place: Place, rank: Option<u32>) -> GoalError {
        match self {
            Self::Text(what) => GoalError { place, rank, op: None, what },
            Self::Graph(error) => {
                let what = error.what.to_string();
                GoalError { place, rank: error.rank, op: error.op, what }
            }
        }
    }
}

/// Reason why a job cannot be written as a GOAL file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "rank {rank}, op {op}: a computation of {time} cannot be written; GOAL counts whole nanoseconds"
)]
pub struct UnwritableError {
    /// The rank.
    pub rank: u32,
    /// The operation.
    pub op: u32,
    /// Time of the operation.
    pub time: apus_units::Span,
}
