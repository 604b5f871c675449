//! Traffic as CSV: a header `start_us,from,to,bytes`, then one message per line. Times are
//! microseconds since the start of the run, exact to the picosecond; nodes are hosts, numbered from
//! 0; bytes are payload. Blank lines and lines that begin with `#` are skipped.

use std::fmt::Write;

use apus_units::Span;

use super::text::{ImportError, content, number, wrong};
use super::traffic::{Message, Traffic};
use apus_units::shorten;

/// The only header.
pub const HEADER: &str = "start_us,from,to,bytes";

/// Reads traffic from a CSV text.
///
/// # Errors
/// An error with line and remedy.
pub fn parse_traffic(text: &str) -> Result<Traffic, ImportError> {
    let mut lines = content(text);
    check_header(lines.next())?;
    let mut traffic = Traffic::default();
    for (line, row) in lines {
        traffic.push(parse_row(line, row)?)?;
    }
    if traffic.messages.is_empty() {
        return Err(no_messages());
    }
    Ok(traffic)
}

/// Checks the first line with content.
pub(crate) fn check_header(first: Option<(usize, &str)>) -> Result<(), ImportError> {
    match first {
        Some((_, header)) if words(header).eq(words(HEADER)) => Ok(()),
        Some((line, header)) => {
            let header = shorten(header);
            wrong(line, format!("the header is `{header}`; it must be `{HEADER}`"))
        }
        None => wrong(1, format!("the header is missing; the first line must be `{HEADER}`")),
    }
}

/// Reads the message of a line.
pub(crate) fn parse_row(line: usize, row: &str) -> Result<Message, ImportError> {
    let mut fields = words(row);
    let four = [fields.next(), fields.next(), fields.next(), fields.next()];
    let ([Some(start), Some(from), Some(to), Some(bytes)], None) = (four, fields.next()) else {
        let found = words(row).count();
        return wrong(line, format!("{found} columns; there must be four: {HEADER}"));
    };
    let read = microseconds(start).map_or_else(|| format!("{start}us").parse::<Span>(), Ok);
    let start = read.or_else(|_| {
        let start = shorten(start);
        let right = "write microseconds as a decimal number with at most 6 digits behind the \
                     point, like 12.5";
        wrong(line, format!("`{start}` is not a start time; {right}"))
    })?;
    let from = number(line, from, "a host")?;
    let to = number(line, to, "a host")?;
    let bytes = number(line, bytes, "a size in bytes")?;
    let message = Message { line, start, from, to, bytes };
    message.check()?;
    Ok(message)
}

/// Reads digits with at most six decimal places, the form of almost all times; `None` for another form.
fn microseconds(text: &str) -> Option<Span> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    // 12 digits of microseconds are 18 digits of picoseconds.
    if whole.is_empty() || whole.len() > 12 || fraction.len() > 6 || text.ends_with('.') {
        return None;
    }
    let digits = whole.bytes().chain(fraction.bytes()).chain((fraction.len()..6).map(|_| b'0'));
    let mut picoseconds = 0;
    for digit in digits {
        picoseconds = picoseconds * 10 + u64::from(digit.checked_sub(b'0').filter(|d| *d < 10)?);
    }
    Some(Span::from_ps(picoseconds))
}

/// Returns the error of a file without messages.
pub(crate) fn no_messages() -> ImportError {
    let message = "the file has no messages; add a line like `0,0,1,1000`".to_owned();
    ImportError { line: 1, message }
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(',').map(str::trim)
}

/// Writes messages in the form that [`parse_traffic`] reads.
#[must_use]
pub fn render<'a>(messages: impl Iterator<Item = &'a Message>) -> String {
    let mut text = format!("{HEADER}\n");
    for message in messages {
        let (start, from, to) = (message.start.as_ps(), message.from, message.to);
        let (us, ps) = (start / 1_000_000, start % 1_000_000);
        // Writing to a String cannot fail.
        let _ = if ps == 0 {
            writeln!(text, "{us},{from},{to},{}", message.bytes)
        } else {
            writeln!(text, "{us}.{ps:06},{from},{to},{}", message.bytes)
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{microseconds, parse_traffic, render};
    use apus_units::Span;

    /// The reader of the short form of times agrees with the general reader, or leaves the text to it.
    #[test]
    fn times_are_those_of_quantities() {
        for text in ["0", "7", "12.5", "0.000001", "00.10", "999999999999.999999", "86400000000"] {
            assert_eq!(microseconds(text), format!("{text}us").parse().ok(), "{text}");
            assert!(microseconds(text).is_some(), "{text}");
        }
        for text in
            ["", ".5", "5.", "-1", "+1", "1e3", "1.0000001", "1000000000000", "1.2.3", "1,5", "٣"]
        {
            assert_eq!(microseconds(text), None, "{text}");
        }
    }

    #[test]
    fn rows_are_read_and_read_back() {
        let text = "# a trace\nstart_us,from,to,bytes\n0,0,1,1000\n12.000001, 3, 0, 7\n";
        let traffic = parse_traffic(text).expect("read");
        let second = traffic.messages[1];
        assert_eq!((second.line, second.start), (4, Span::from_ps(12_000_001)));
        assert_eq!((second.from, second.to, second.bytes), (3, 0, 7));
        let again = parse_traffic(&render(traffic.messages.iter())).expect("again");
        let strip = |t: &super::Traffic| {
            t.messages.iter().map(|m| (m.start, m.from, m.to, m.bytes)).collect::<Vec<_>>()
        };
        assert_eq!(strip(&again), strip(&traffic));
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let head = "start_us,from,to,bytes\n";
        for (text, message) in [
            (String::new(), "1: the header is missing"),
            ("time,from,to,bytes\n".to_owned(), "1: the header is `time,from,to,bytes`"),
            (head.to_owned(), "1: the file has no messages"),
            (format!("{head}0,0,1"), "2: 3 columns; there must be four"),
            (format!("{head}0,0,1,5\n1e3,0,1,5"), "3: `1e3` is not a start time"),
            (format!("{head}-1,0,1,5"), "2: `-1` is not a start time"),
            (format!("{head}0,a,1,5"), "2: `a` is not a host"),
            (format!("{head}0,1,1,5"), "2: node 1 sends to itself"),
            (format!("{head}0,0,1,0"), "2: the size is 0"),
        ] {
            let error = parse_traffic(&text).expect_err(&text).to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
