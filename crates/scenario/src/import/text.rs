//! Lines, words and numbers of a file, and errors in them.

use std::fmt;

use apus_units::{Span, shorten};

/// Maximum number of ranks of a job in a format whose files state only their number. deviation: no source;
/// about 100 B each.
pub(crate) const MAX_RANKS: u32 = 1_000_000;

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

/// Returns a time of `count` units of `unit`, or an error that quotes the count.
pub(super) fn time(line: usize, count: u64, unit: Span, name: &str) -> Result<Span, ImportError> {
    let ps = count.checked_mul(unit.as_ps()).map(Span::from_ps);
    ps.map_or_else(
        || {
            let most = u64::MAX / unit.as_ps();
            wrong(line, format!("the time is {count} {name}; it must be at most {most}"))
        },
        Ok,
    )
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
