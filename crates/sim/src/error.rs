//! Error of a run.

use std::fmt;

/// A run without valid results.
#[derive(Debug)]
pub struct RunError(String);

impl RunError {
    /// Returns the error with this text.
    pub(crate) fn new(why: String) -> Self {
        Self(why)
    }

    /// Returns the error of numbers that contradict each other.
    pub(crate) fn bug(why: impl fmt::Display) -> Self {
        Self(format!("a bug of the simulator: {why}"))
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RunError {}
