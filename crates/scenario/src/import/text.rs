//! Lines, words and numbers of a file, and errors in them.

use std::fmt;

use apus_units::shorten;

/// An error in a text: the line, the mistake, and a valid form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportError {
    /// Line, from 1.
    pub line: usize,
    /// The mistake and a valid form.
    pub message: String,
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.message)
    }
}

impl std::error::Error for ImportError {}

/// Returns an error at a line.
pub(super) fn wrong<T>(line: usize, message: impl Into<String>) -> Result<T, ImportError> {
    Err(ImportError { line, message: message.into() })
}

/// Returns `true` if a line is empty or a comment.
pub(crate) fn is_blank(line: &str) -> bool {
    line.is_empty() || line.starts_with('#')
}

/// Returns the lines with content, with their numbers.
pub(super) fn content(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines()).map(|(n, line)| (n, line.trim())).filter(|(_, line)| !is_blank(line))
}

/// Reads a number, or returns an error that quotes the text.
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
