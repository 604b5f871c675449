//! The cells of a line of CSV: numbers and words, which contain no comma.

use apus_units::{Span, Time, suggestion};

use super::event::Event;

/// Returns the cells of a line, without surrounding blanks and quotes.
pub(super) fn split(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| byte == b',').map(|cell| {
        let cell = cell.trim_ascii();
        let quoted = cell.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
        quoted.map_or(cell, <[u8]>::trim_ascii)
    })
}

/// Returns the beginning of a text, for messages.
pub(super) fn shorten(text: &str) -> String {
    const LONGEST: usize = 40;
    let short: String = text.chars().take(LONGEST).collect();
    if short.len() < text.len() { short + "..." } else { short }
}

/// A cell with content.
#[derive(Clone, Copy)]
pub(super) struct Cell<'a>(pub(super) &'a [u8]);

impl Cell<'_> {
    fn text(&self) -> &str {
        std::str::from_utf8(self.0).unwrap_or("\u{fffd}")
    }

    fn fail<T>(&self, must: &str) -> Result<T, String> {
        Err(format!("`{}` is not {must}", shorten(self.text())))
    }

    /// Reads a whole number up to `most`.
    pub(super) fn whole(&self, most: u64) -> Result<u64, String> {
        match self.text().parse() {
            Ok(number) if number <= most => Ok(number),
            _ => self.fail(&format!("a whole number from 0 to {most}")),
        }
    }

    /// Reads an instant in picoseconds.
    pub(super) fn time(&self) -> Result<Time, String> {
        self.ps().map(Time::from_ps)
    }

    /// Reads a span in picoseconds.
    pub(super) fn span(&self) -> Result<Span, String> {
        self.ps().map(Span::from_ps)
    }

    fn ps(&self) -> Result<u64, String> {
        match self.text().parse() {
            Ok(ps) => Ok(ps),
            _ => {
                self.fail("a whole number of picoseconds without a unit, like `25000000` for 25 us")
            }
        }
    }

    /// Reads a finite number.
    pub(super) fn number(&self) -> Result<f64, String> {
        match self.text().parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number),
            _ => self.fail("a number without a unit, like `0.5`"),
        }
    }

    /// Reads the word for an event.
    pub(super) fn event(&self) -> Result<Event, String> {
        let events = [Event::Ack, Event::Loss, Event::Timeout];
        match events.into_iter().find(|event| event.name() == self.text()) {
            Some(event) => Ok(event),
            None => {
                let hint = suggestion(self.text(), events.iter().map(|event| event.name()));
                self.fail(&format!("an event{hint}"))
            }
        }
    }
}
