//! Lines, words and numbers of a file, and what is wrong with them.

use std::fmt;

use apus_units::shorten;

/// What is wrong with a text: at which line, what, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportError {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong and what would be right.
    pub message: String,
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.message)
    }
}

impl std::error::Error for ImportError {}

/// Says what is wrong.
pub(super) fn wrong<T>(line: usize, message: impl Into<String>) -> Result<T, ImportError> {
    Err(ImportError { line, message: message.into() })
}

/// Whether a line says nothing.
pub(super) fn is_blank(line: &str) -> bool {
    line.is_empty() || line.starts_with('#')
}

/// The lines that say something, with their numbers.
pub(super) fn content(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines()).map(|(n, line)| (n, line.trim())).filter(|(_, line)| !is_blank(line))
}

/// Reads a number, or says what stands there instead.
pub(super) fn number<T: std::str::FromStr>(
    line: usize,
    word: &str,
    what: &str,
) -> Result<T, ImportError> {
    word.parse().or_else(|_| {
        let word = shorten(word);
        wrong(line, format!("`{word}` is not {what}; write a whole number"))
    })
}
